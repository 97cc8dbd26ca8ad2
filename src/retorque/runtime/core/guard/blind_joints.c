/* Where a joint is whose encoder is dead: the other joints feel its weight and its motion. */
#include "internal.h"

void rt_blind_reset(rt_core *core) {
  const rt_supervisor *s = &core->model->supervisor;
  rt_guard *g = &core->guard;
  const int n = core->model->robot.n;
  memset(g->known, 0, (size_t)n);
  memset(g->missed, 0, sizeof(double) * (size_t)((s->blind_before + 1) * n));
  memset(g->missed_size, 0, sizeof(double) * (size_t)(n * n));
  memset(g->place_covariance, 0, sizeof(double) * (size_t)(4 * n * n));
  for (int j = 0; j < n; j++) g->missed_size[j * n + j] = g->missed_lasting[j] = s->held[j] * s->held[j];
  g->state->blind_calm = g->state->blind_seen = 0;
  g->state->blind_doubt = 1.0;
}

void rt_blind_note(rt_core *core) {
  const rt_supervisor *s = &core->model->supervisor;
  rt_guard *g = &core->guard;
  rt_guard_state *x = g->state;
  const int n = core->model->robot.n, rows = s->blind_before + 1;
  int calm = (int)x->good;
  for (int j = 0; j < n; j++) {
    g->known[j] = g->known[j] && g->dead[j];
    calm = calm && !g->dead[j];
  }
  x->blind_calm = calm ? x->blind_calm + 1 : 0;
  memmove(g->missed, g->missed + n, sizeof(double) * (size_t)((rows - 1) * n));
  memcpy(g->missed + (rows - 1) * n, g->window_left, sizeof(double) * (size_t)n);
  if (x->blind_calm < rows) return;
  const double fresh = 1.0 / (1.0 + (double)++x->blind_seen);
  const double rate = fresh > s->blind_rate ? fresh : s->blind_rate, *one = g->missed, *next = g->missed + n;
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < n; j++) g->missed_size[i * n + j] += rate * (one[i] * one[j] - g->missed_size[i * n + j]);
    g->missed_lasting[i] += rate * (one[i] * next[i] - g->missed_lasting[i]);
  }
}

/* The torque that the adapter believes the robot to need for a motion (3, n). */
static void needed_torque(rt_core *core, const double *motion, double *torque) {
  const rt_robot *robot = &core->model->robot;
  double nominal[RT_MOST_JOINTS];
  rt_inverse_dynamics(robot, motion, motion + robot->n, motion + 2 * robot->n, nominal);
  rt_bare_correct(core, core->guard.state->time, motion, motion + robot->n, nominal, torque);
}

/* Solve a x = b for the rows of b, (n, columns), where a = lower lower'. */
static void solve_columns(const double *lower, int n, int columns, const double *b, double *out) {
  double column[RT_MOST_JOINTS];
  for (int c = 0; c < columns; c++) {
    for (int i = 0; i < n; i++) column[i] = b[i * columns + c];
    rt_forward_substitute(lower, n, column);
    rt_back_substitute(lower, n, column);
    for (int i = 0; i < n; i++) out[i * columns + c] = column[i];
  }
}

/* Covariance (3 m, 3 m) of m blind joints' positions, velocities and accelerations at the end of a window. */
static void go_ahead(const rt_core *core, const int *joints, int m, double *p) {
  const rt_supervisor *s = &core->model->supervisor;
  const rt_guard *g = &core->guard;
  const int n = core->model->robot.n, wide = 3 * m;
  const double t = s->score_period;
  double mass[RT_MOST_JOINTS * RT_MOST_JOINTS];
  rt_mass_matrix(&core->model->robot, g->window_motion, mass);
  memset(p, 0, sizeof(double) * (size_t)(wide * wide));
  for (int a = 0; a < m; a++) {
    const int j = joints[a];
    for (int b = 0; b < m; b++) {
      if (!g->known[j] || !g->known[joints[b]]) continue;
      for (int k = 0; k < 2; k++)
        for (int l = 0; l < 2; l++)
          p[(k * m + a) * wide + l * m + b] = g->place_covariance[(k * n + j) * 2 * n + l * n + joints[b]];
    }
    if (!g->known[j]) {
      const double gone = s->blind_speed * (double)g->still[j] * core->model->timestep;
      p[a * wide + a] = s->blind_place * s->blind_place + gone * gone;
      p[(m + a) * wide + m + a] = s->blind_speed * s->blind_speed;
    }
    const double rate = s->held[j] / mass[j * n + j];
    p[(2 * m + a) * wide + 2 * m + a] = rate * rate;
  }
  for (int a = 0; a < m; a++)
    for (int c = 0; c < wide; c++) {
      const double acceleration = p[(2 * m + a) * wide + c];
      p[a * wide + c] += t * p[(m + a) * wide + c] + 0.5 * t * t * acceleration;
      p[(m + a) * wide + c] += t * acceleration;
    }
  for (int c = 0; c < wide; c++)
    for (int a = 0; a < m; a++) {
      const double acceleration = p[c * wide + 2 * m + a];
      p[c * wide + a] += t * p[c * wide + m + a] + 0.5 * t * t * acceleration;
      p[c * wide + m + a] += t * acceleration;
    }
  for (int a = 0; a < 2 * m; a++) {
    const double most = a < m ? s->lost_place : s->lost_speed, spread = p[a * wide + a];
    const double share = spread > most * most ? most / sqrt(spread) : 1.0;
    for (int c = 0; c < wide && share < 1.0; c++) {
      p[a * wide + c] *= share;
      p[c * wide + a] *= share;
    }
    const double around = a < m ? s->gone_place : s->gone_speed;
    if (g->state->blind_doubt > s->blind_gone) p[a * wide + a] += around * around;
  }
}

/* Positions and velocities of dead joints are believed to be farther. */
static void move(rt_core *core, const int *joints, int m, const double *by) {
  const rt_supervisor *s = &core->model->supervisor;
  rt_guard *g = &core->guard;
  const int n = core->model->robot.n;
  for (int a = 0; a < m; a++) {
    const int j = joints[a];
    g->expected[j] = rt_clip(g->expected[j] + by[a], s->low[j], s->high[j]);
    rt_drive(core, j, by[m + a]);
    g->from[j] += by[a];
    g->from[n + j] += by[m + a];
  }
}

void rt_blind_window(rt_core *core) {
  const rt_supervisor *s = &core->model->supervisor;
  rt_guard *g = &core->guard;
  const int n = core->model->robot.n;
  int joints[RT_MOST_JOINTS], m = 0, any_known = 0, any_new = 0;
  for (int j = 0; j < n; j++) {
    if (!g->dead[j]) continue;
    joints[m++] = j;
    any_known = any_known || g->known[j];
    any_new = any_new || !g->known[j];
  }
  if (!m) return;
  const int wide = 3 * m;
  double *p = g->work, *rows = p + wide * wide, *reach = rows + n * wide, *gain = reach + n * wide;
  double needed[RT_MOST_JOINTS], moved[RT_MOST_JOINTS], motion[3 * RT_MOST_JOINTS], lacking[RT_MOST_JOINTS];
  double felt[RT_MOST_JOINTS * RT_MOST_JOINTS], noise[RT_MOST_JOINTS * RT_MOST_JOINTS];
  double total[RT_MOST_JOINTS * RT_MOST_JOINTS], found[3 * RT_MOST_JOINTS], solved[RT_MOST_JOINTS], distance = 0.0;
  needed_torque(core, g->window_motion, needed);
  for (int i = 0; i < n; i++) lacking[i] = g->window_torque[i] - needed[i];
  for (int a = 0; a < m; a++)
    for (int k = 0; k < 3; k++) {
      memcpy(motion, g->window_motion, sizeof(double) * (size_t)(3 * n));
      motion[k * n + joints[a]] += s->blind_nudge[k];
      needed_torque(core, motion, moved);
      for (int i = 0; i < n; i++) rows[i * wide + k * m + a] = (moved[i] - needed[i]) / s->blind_nudge[k];
    }
  go_ahead(core, joints, m, p);
  for (int i = 0; i < n; i++)
    for (int c = 0; c < wide; c++) {
      double sum = 0.0;
      for (int a = 0; a < wide; a++) sum += rows[i * wide + a] * p[a * wide + c];
      reach[i * wide + c] = sum;
    }
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      double sum = 0.0;
      for (int c = 0; c < wide; c++) sum += reach[i * wide + c] * rows[j * wide + c];
      felt[i * n + j] = sum;
      noise[i * n + j] = g->missed_size[i * n + j];
      if (i == j) {
        const double least = s->blind_least * s->blind_least, lasting = g->missed_lasting[i];
        noise[i * n + j] += least + s->blind_noise * (lasting > least ? lasting : least);
      }
      total[i * n + j] = felt[i * n + j] + noise[i * n + j];
    }
  rt_cholesky(total, n);
  solve_columns(total, n, 1, lacking, solved);
  for (int i = 0; i < n; i++) distance += lacking[i] * solved[i] / n;
  double *doubt = &g->state->blind_doubt;
  *doubt = any_known ? *doubt + s->blind_doubt * (distance - *doubt) : 1.0;
  const double more = rt_clip(*doubt, 1.0, s->blind_gone);
  for (int k = 0; k < n * n; k++) total[k] = felt[k] + more * noise[k];
  rt_cholesky(total, n);
  solve_columns(total, n, wide, reach, gain);
  for (int k = 0; k < n * wide && any_new; k++) gain[k] = 0.0; /* that window began before */
  for (int a = 0; a < wide; a++) {
    found[a] = 0.0;
    for (int i = 0; i < n; i++) found[a] += gain[i * wide + a] * lacking[i];
    for (int c = 0; c < wide; c++)
      for (int i = 0; i < n; i++) p[a * wide + c] -= gain[i * wide + a] * reach[i * wide + c];
  }
  const int sound = rt_all_finite(found, wide) && rt_all_finite(p, wide * wide) && isfinite(*doubt);
  memset(g->place_covariance, 0, sizeof(double) * (size_t)(4 * n * n));
  memset(g->known, 0, (size_t)n);
  if (!sound) {
    *doubt = 1.0;
    return;
  }
  for (int a = 0; a < m; a++) {
    g->known[joints[a]] = 1;
    for (int b = 0; b < m; b++)
      for (int k = 0; k < 2; k++)
        for (int l = 0; l < 2; l++)
          g->place_covariance[(k * n + joints[a]) * 2 * n + l * n + joints[b]] = p[(k * m + a) * wide + l * m + b];
  }
  move(core, joints, m, found);
}
