/* The promise not to press harder: how far a correction may grow while something may be in the way. */
#include "internal.h"

enum { MOST_POINTS = RT_MOST_JOINTS + 1 };

void rt_force_reset(rt_core *core) {
  rt_guard *g = &core->guard;
  const size_t row = sizeof(double) * (size_t)core->model->robot.n;
  memset(g->left, 0, row);
  memset(g->anchor, 0, row);
  memset(g->unloaded, 0, row);
  memset(g->mean_velocity, 0, row);
  memset(g->drift, 0, row);
  memset(g->moved, 0, row);
  memset(g->pace, 0, row);
  memset(g->own, 0, row);
  memset(g->weight, 0, row);
  g->state->rest = g->state->load_fit[0] = g->state->load_fit[1] = 0.0;
  g->state->engaged = 0;
}

/* Where links stand in the world: rotations (n, 9) and origins (n, 3). */
void rt_world_poses(const rt_robot *robot, const double *q, double *rotation, double *origin) {
  rt_pose pose[RT_MOST_JOINTS];
  rt_place(robot, q, pose);
  for (int i = 0; i < robot->n; i++) {
    const int parent = robot->parent[i];
    for (int a = 0; a < 3; a++) {
      for (int b = 0; b < 3; b++) {
        double sum = parent < 0 ? pose[i].rotation[3 * a + b] : 0.0;
        for (int k = 0; k < 3 && parent >= 0; k++)
          sum += rotation[9 * parent + 3 * a + k] * pose[i].rotation[3 * k + b];
        rotation[9 * i + 3 * a + b] = sum;
      }
      double at = parent < 0 ? pose[i].position[a] : origin[3 * parent + a];
      for (int k = 0; k < 3 && parent >= 0; k++) at += rotation[9 * parent + 3 * a + k] * pose[i].position[k];
      origin[3 * i + a] = at;
    }
  }
}

/* Velocity of a point of a link for each joint's, (3, n). */
void rt_point_jacobian(const rt_robot *robot, const double *rotation, const double *origin, int link,
                       const double *place, double *out) {
  const int n = robot->n;
  double point[3], axis[3];
  for (int k = 0; k < 3 * n; k++) out[k] = 0.0;
  if (link < 0) return;
  for (int a = 0; a < 3; a++) {
    const double *r = rotation + 9 * link + 3 * a;
    point[a] = origin[3 * link + a] + r[0] * place[0] + r[1] * place[1] + r[2] * place[2];
  }
  for (int j = link; j >= 0; j = robot->parent[j]) {
    const double *u = robot->axis + 3 * j;
    double arm[3];
    for (int a = 0; a < 3; a++) {
      const double *r = rotation + 9 * j + 3 * a;
      axis[a] = r[0] * u[0] + r[1] * u[1] + r[2] * u[2];
      arm[a] = point[a] - origin[3 * j + a];
    }
    if (robot->prismatic[j]) {
      for (int a = 0; a < 3; a++) out[a * n + j] = axis[a];
    } else {
      out[j] = axis[1] * arm[2] - axis[2] * arm[1];
      out[n + j] = axis[2] * arm[0] - axis[0] * arm[2];
      out[2 * n + j] = axis[0] * arm[1] - axis[1] * arm[0];
    }
  }
}

/* Where each point of the arm is, and which force there a torque amounts to. */
static void look(rt_core *core) {
  const rt_model *model = core->model;
  const rt_supervisor *s = &model->supervisor;
  const int n = model->robot.n;
  double rotation[9 * RT_MOST_JOINTS], origin[3 * RT_MOST_JOINTS];
  rt_world_poses(&model->robot, core->guard.now, rotation, origin);
  for (int p = 0; p < s->points; p++) {
    double *jacobian = core->guard.jacobian + p * 3 * n, *inverse = core->guard.inverse + p * 3 * n, gram[9];
    rt_point_jacobian(&model->robot, rotation, origin, s->point_link[p], s->point_place + 3 * p, jacobian);
    for (int a = 0; a < 3; a++)
      for (int b = 0; b < 3; b++) {
        gram[3 * a + b] = a == b ? s->least_lever * s->least_lever : 0.0;
        for (int j = 0; j < n; j++) gram[3 * a + b] += jacobian[a * n + j] * jacobian[b * n + j];
      }
    rt_cholesky(gram, 3);
    for (int j = 0; j < n; j++) {
      double column[3] = {jacobian[j], jacobian[n + j], jacobian[2 * n + j]};
      rt_forward_substitute(gram, 3, column);
      rt_back_substitute(gram, 3, column);
      for (int a = 0; a < 3; a++) inverse[a * n + j] = column[a];
    }
  }
}

/* What the correction of a free robot is, as a load in the hand and a rest: the load is carried to wherever the arm
 * goes, so that its weight there is no growth. */
static void follow_load(rt_core *core, int free) {
  const rt_model *model = core->model;
  const rt_supervisor *s = &model->supervisor;
  rt_guard *g = &core->guard;
  const int n = model->robot.n;
  const double *gravity = model->robot.gravity;
  double rotation[9 * RT_MOST_JOINTS], origin[3 * RT_MOST_JOINTS], hand[3 * RT_MOST_JOINTS], now[2] = {0.0, 0.0};
  rt_world_poses(&model->robot, g->now, rotation, origin);
  rt_point_jacobian(&model->robot, rotation, origin, s->point_link[0], s->point_place, hand);
  for (int j = 0; j < n; j++) {
    g->weight[j] = -(gravity[0] * hand[j] + gravity[1] * hand[n + j] + gravity[2] * hand[2 * n + j]);
    now[0] += g->weight[j] * g->window_correction[j];
    now[1] += g->weight[j] * g->weight[j];
  }
  double *fit = g->state->load_fit;
  for (int k = 0; k < 2 && free; k++) fit[k] += s->load_rate * (now[k] - fit[k]);
  const double load = rt_clip(fit[0] / (fit[1] > 1e-9 ? fit[1] : 1e-9), -s->most_load, s->most_load);
  for (int j = 0; j < n; j++) {
    const double carried = load * g->weight[j];
    if (free) g->unloaded[j] += s->force_follow * (g->window_correction[j] - carried - g->unloaded[j]);
    g->anchor[j] = g->unloaded[j] + carried;
  }
}

/* A window of the score has ended: is the robot free, and what does its correction look like then? */
void rt_force_window(rt_core *core) {
  const rt_supervisor *s = &core->model->supervisor;
  rt_guard *g = &core->guard;
  rt_guard_state *x = g->state;
  const int n = core->model->robot.n;
  if (!isfinite(s->force_most)) return;
  int stands = 0, still = 1;
  for (int j = 0; j < n; j++) {
    double faster = 0.0;
    if (x->good) {
      faster = g->now[n + j] - g->mean_velocity[j];
      g->left[j] += s->force_rate * (g->window_left[j] - g->left[j]);
      g->mean_velocity[j] += s->force_rate * faster;
      g->drift[j] += s->force_travel * (g->now[n + j] - g->drift[j]);
    }
    const int slow = fabs(g->mean_velocity[j]) < s->force_still;
    const double before = s->force_forget * g->moved[j], now = fabs(g->drift[j]);
    g->moved[j] = before > now ? before : now;
    const double paced = s->force_forget * g->pace[j], changed = fabs(faster) / s->force_memory;
    g->pace[j] = paced > changed ? paced : changed;
    g->own[j] = (g->moved[j] > s->force_moves ? s->swing[j] : 0.0) + s->rotor[j] * g->pace[j];
    still = still && slow;
    stands = stands || fabs(g->left[j]) > s->band[j];
  }
  x->rest = still ? x->rest + s->score_period : 0.0;
  x->engaged = stands || x->rest > s->force_rest;
  follow_load(core, x->good && !x->engaged);
  if (x->engaged) look(core);
}

/* By which share a growth is beyond the promise at the point that explains it, and what of it that point explains. */
static double beyond(const rt_core *core, const double *grown, double *explained) {
  const rt_supervisor *s = &core->model->supervisor;
  const rt_guard *g = &core->guard;
  const int n = core->model->robot.n;
  double force[MOST_POINTS][3], size[MOST_POINTS], missed[MOST_POINTS], least = INFINITY, whole = 0.0;
  int any = 0, best = -1;
  for (int p = 0; p < s->points; p++) {
    double square = 0.0;
    for (int a = 0; a < 3; a++) {
      force[p][a] = 0.0;
      for (int j = 0; j < n; j++) force[p][a] += g->inverse[(p * 3 + a) * n + j] * grown[j];
      square += force[p][a] * force[p][a];
    }
    size[p] = sqrt(square);
    any = any || size[p] > s->force_most;
  }
  if (!any) return 0.0;
  for (int j = 0; j < n; j++) whole += grown[j] * grown[j];
  for (int p = 0; p < s->points; p++) {
    missed[p] = 0.0;
    for (int j = 0; j < n; j++) {
      double torque = 0.0;
      for (int a = 0; a < 3; a++) torque += force[p][a] * g->jacobian[(p * 3 + a) * n + j];
      missed[p] += (grown[j] - torque) * (grown[j] - torque);
    }
    if (missed[p] < least) least = missed[p];
  }
  const double close = s->explained * whole > least ? s->explained * whole : least;
  for (int p = 0; p < s->points; p++)
    if (missed[p] <= close && (best < 0 || size[p] > size[best])) best = p;
  if (best < 0 || !(size[best] > s->force_most)) return 0.0;
  for (int j = 0; j < n; j++) {
    explained[j] = 0.0;
    for (int a = 0; a < 3; a++) explained[j] += force[best][a] * g->jacobian[(best * 3 + a) * n + j];
  }
  return 1.0 - 0.999 * s->force_most / (size[best] > 1e-9 ? size[best] : 1e-9);
}

/* Take away what of a growth a payload that is picked up or put down would need. */
static void put_down(const rt_core *core, double *grown) {
  const double *weight = core->guard.weight, most = core->model->supervisor.heaviest;
  const int n = core->model->robot.n;
  double along = 0.0, square = 0.0;
  for (int j = 0; j < n; j++) {
    along += weight[j] * grown[j];
    square += weight[j] * weight[j];
  }
  const double mass = rt_clip(along / (square > 1e-9 ? square : 1e-9), -most, most);
  for (int j = 0; j < n; j++) grown[j] -= mass * weight[j];
}

/* The correction within the promise; 0 where it already is (and `out` is not written). */
int rt_force_limit(const rt_core *core, const double *correction, double *out) {
  const rt_supervisor *s = &core->model->supervisor;
  const rt_guard *g = &core->guard;
  const int n = core->model->robot.n;
  double cut[RT_MOST_JOINTS], grown[RT_MOST_JOINTS], explained[RT_MOST_JOINTS];
  int changed = 0;
  if (!g->state->engaged) return 0;
  for (int j = 0; j < n; j++) cut[j] = correction[j];
  for (int turn = 0; turn < s->rounds; turn++) {
    for (int j = 0; j < n; j++) {
      grown[j] = cut[j] - g->anchor[j];
      grown[j] -= rt_clip(grown[j], -g->own[j], g->own[j]);
    }
    put_down(core, grown);
    const double share = beyond(core, grown, explained);
    if (share == 0.0) break;
    changed = 1;
    for (int j = 0; j < n; j++) cut[j] -= share * (turn < s->rounds - 1 ? explained[j] : grown[j]);
  }
  if (changed)
    for (int j = 0; j < n; j++) out[j] = cut[j];
  return changed;
}
