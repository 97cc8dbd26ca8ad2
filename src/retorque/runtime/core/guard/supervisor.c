/* What stands between any adapter and the robot: ramps, limits, fallbacks and a code for every tick. */
#include "internal.h"

/* Torque that holds the ideal robot at its last good position, within the limits. */
static void gravity(const rt_core *core, double *torque) {
  const rt_model *model = core->model;
  const int n = model->robot.n;
  const double nothing[RT_MOST_JOINTS] = {0};
  rt_inverse_dynamics(&model->robot, core->guard.now, nothing, nothing, torque);
  for (int j = 0; j < n; j++) torque[j] = rt_clip(torque[j], -model->supervisor.limit[j], model->supervisor.limit[j]);
}

void rt_guard_reset(rt_core *core) {
  const rt_model *model = core->model;
  rt_guard *g = &core->guard;
  rt_guard_state *x = g->state;
  const int n = model->robot.n;
  int64_t counts[RT_CODES];
  memcpy(counts, x->counts, sizeof counts); /* they count on */
  memset(x, 0, sizeof *x);
  memcpy(x->counts, counts, sizeof counts);
  x->time = -model->timestep;
  x->stamp = -INFINITY;
  x->score_count = -1;
  rt_clock_reset(&x->clock);
  rt_reports_reset(core);
  rt_force_reset(core);
  rt_blind_reset(core);
  memset(g->squares, 0, sizeof(double) * (size_t)(2 * n));
  for (int j = 0; j < n; j++) {
    g->gain[j] = g->bad_for[j] = g->at_limit[j] = g->rested[j] = g->whole_gain[j] = g->last[j] = 0.0;
    g->ramp[j] = model->supervisor.ramp;
    g->tripped[j] = 0;
    g->nominal_gain[j] = 1.0;
  }
  gravity(core, g->last_nominal);
}

void rt_guard_observe(rt_core *core, double time, const double *position, const double *velocity,
                      const double *torque) {
  rt_guard *g = &core->guard;
  rt_guard_state *x = g->state;
  const int n = core->model->robot.n;
  const size_t row = sizeof(double) * (size_t)n;
  const int64_t step = rt_ticks_since(&x->clock, core->model, time);
  x->codes = 0;
  if (step != 1) {
    x->codes = step == 0 ? RT_BAD_CLOCK : RT_GAP;
    x->broken = 1;
    if (step == 0) {
      x->silent++;
      return;
    }
  }
  x->silent = 0;
  x->fresh = 1;
  x->time += (double)step * core->model->timestep;
  x->stamp = time;
  memcpy(g->now, position, row);
  memcpy(g->now + n, velocity, row);
  memcpy(g->now + 2 * n, torque, row);
  rt_reports_take(core, step);
  if (!x->calm) x->codes |= x->report_codes;
  rt_bare_observe(core, x->time, g->shown, g->shown + n, g->shown + 2 * n);
}

/* Fade every joint's gain a tick further, and count the time at limits. */
static void advance(rt_core *core, const int *trusted, const int *out, const int *limited) {
  const rt_supervisor *s = &core->model->supervisor;
  rt_guard *g = &core->guard;
  const double dt = core->model->timestep;
  int full = 1;
  for (int j = 0; j < core->model->robot.n; j++) {
    const double at = g->at_limit[j] + (limited[j] ? dt : -s->limit_ease * dt);
    g->at_limit[j] = at > 0.0 ? at : 0.0;
    g->rested[j] = limited[j] ? 0.0 : g->rested[j] + dt;
    const int over = g->at_limit[j] > s->trip_after;
    g->tripped[j] = (g->tripped[j] || over) && !(g->rested[j] > s->rearm);
    if (over) g->at_limit[j] = 0.0;
    g->bad_for[j] = trusted[j] ? 0.0 : g->bad_for[j] + dt;
    const int fades = out[j] || g->bad_for[j] > s->bridge + 1e-9 || g->tripped[j];
    const double next = fades ? g->gain[j] - s->fade : (trusted[j] ? g->gain[j] + g->ramp[j] : g->gain[j]);
    if (fades && g->gain[j] > 0.0) g->ramp[j] = s->recovery;
    g->gain[j] = rt_clip(next, 0.0, 1.0);
    g->nominal_gain[j] = rt_clip(g->nominal_gain[j] + (g->blind[j] ? -s->off : s->recovery), 0.0, 1.0);
    full = full && g->nominal_gain[j] == 1.0 && g->gain[j] == 1.0 && trusted[j] && g->at_limit[j] == 0.0;
  }
  g->state->full = full;
}

/* A nominal torque that is finite; 0 where it is not the controller's own. */
static int usable_nominal(rt_core *core, const double *given, double *nominal) {
  rt_guard *g = &core->guard;
  rt_guard_state *x = g->state;
  const size_t row = sizeof(double) * (size_t)core->model->robot.n;
  const int usable = rt_all_finite(given, core->model->robot.n);
  if (usable) {
    x->held = 0.0;
    memcpy(g->last_nominal, given, row);
  } else {
    x->codes |= RT_BAD_NOMINAL;
    x->held += core->model->timestep;
    if (x->held > core->model->supervisor.hold) gravity(core, g->last_nominal);
  }
  memcpy(nominal, g->last_nominal, row);
  return usable;
}

/* Torques under which the ideal robot's blind joints come to rest while the others do as they are told: those of the
 * blind ones answer to nothing real. */
static void braked(const rt_core *core, const double *nominal, double *torque) {
  const rt_robot *robot = &core->model->robot;
  const rt_guard *g = &core->guard;
  const int n = robot->n;
  const rt_supervisor *s = &core->model->supervisor;
  const double rate = s->brake / core->model->timestep, *q = g->now, *v = g->now + n;
  double matrix[RT_MOST_JOINTS * RT_MOST_JOINTS], acceleration[RT_MOST_JOINTS] = {0};
  int seeing[RT_MOST_JOINTS], count = 0;
  for (int j = 0; j < n; j++) {
    acceleration[j] = g->blind[j] ? rt_clip(-rate * v[j], -s->halt, s->halt) : 0.0;
    if (!g->blind[j]) seeing[count++] = j;
  }
  rt_inverse_dynamics(robot, q, v, acceleration, torque);
  rt_mass_matrix(robot, q, matrix);
  double part[RT_MOST_JOINTS * RT_MOST_JOINTS], left[RT_MOST_JOINTS], held[RT_MOST_JOINTS];
  for (int a = 0; a < count; a++) {
    left[a] = nominal[seeing[a]] - torque[seeing[a]];
    for (int b = 0; b < count; b++) part[a * count + b] = matrix[seeing[a] * n + seeing[b]];
  }
  rt_cholesky(part, count);
  rt_forward_substitute(part, count, left);
  rt_back_substitute(part, count, left);
  for (int j = 0; j < n; j++)
    for (int a = 0; a < count; a++) torque[j] += matrix[j * n + seeing[a]] * left[a];
  gravity(core, held);
  for (int j = 0; j < n; j++) {
    const double most = s->against * s->inertia[j];
    double brake = held[j];
    for (int k = 0; k < n; k++) brake += matrix[j * n + k] * acceleration[k];
    torque[j] = brake + rt_clip(torque[j] - brake, -most, most);
  }
  if (!rt_all_finite(torque, n)) memcpy(torque, held, sizeof held[0] * (size_t)n);
}

/* Put what brakes a joint in the place of a nominal torque that is worked out from wrong numbers; whether it stands
 * for one anywhere. */
static int replace_blind(rt_core *core, double *nominal) {
  rt_guard *g = &core->guard;
  const int n = core->model->robot.n;
  double torque[RT_MOST_JOINTS];
  int any = 0;
  for (int j = 0; j < n; j++) any = any || g->blind[j] || g->nominal_gain[j] < 1.0;
  if (!any) return 0;
  g->state->codes |= RT_BAD_NOMINAL;
  braked(core, nominal, torque);
  for (int j = 0; j < n; j++) nominal[j] = torque[j] + g->nominal_gain[j] * (nominal[j] - torque[j]);
  return 1;
}

/* Set the last correction to this one within its size, force and rate, where it may be trusted. */
static void limit(rt_core *core, const double *residual, int usable, int *trusted, int *limited) {
  const rt_supervisor *s = &core->model->supervisor;
  rt_guard *g = &core->guard;
  rt_guard_state *x = g->state;
  const int n = core->model->robot.n, finite = rt_all_finite(residual, n);
  double cut[RT_MOST_JOINTS], kept[RT_MOST_JOINTS];
  if (!finite) x->codes |= RT_BAD_CORRECTION;
  for (int j = 0; j < n; j++) {
    trusted[j] = finite && usable && !g->suspect[j];
    const double wanted = trusted[j] ? residual[j] : g->last[j];
    cut[j] = rt_clip(wanted, -s->residual_limit[j], s->residual_limit[j]);
    limited[j] = cut[j] != wanted;
    if (limited[j]) x->codes |= RT_RESIDUAL_LIMIT;
  }
  if (rt_force_limit(core, cut, kept)) {
    for (int j = 0; j < n; j++) {
      if (fabs(kept[j] - cut[j]) > 1e-9) x->codes |= RT_FORCE_LIMIT;
      cut[j] = rt_clip(kept[j], -s->residual_limit[j], s->residual_limit[j]);
    }
  }
  for (int j = 0; j < n; j++) {
    if (x->ticks) {
      const double slow = g->last[j] + rt_clip(cut[j] - g->last[j], -s->step_limit[j], s->step_limit[j]);
      if (fabs(slow - cut[j]) > 1e-12) x->codes |= RT_RATE_LIMIT;
      cut[j] = slow;
    }
    g->last[j] = cut[j];
  }
}

static int stale(const rt_core *core) {
  const rt_model *m = core->model;
  const rt_guard_state *x = core->guard.state;
  return (m->learn_every && x->age > m->supervisor.stale_ticks) || x->silent > m->supervisor.stale_ticks;
}

/* The torque where something is not as it should be, joint by joint; `asked` may be there already. */
static void careful(rt_core *core, const double *given, const double *asked, double *sent) {
  const rt_supervisor *s = &core->model->supervisor;
  rt_guard *g = &core->guard;
  rt_guard_state *x = g->state;
  const int n = core->model->robot.n;
  double nominal[RT_MOST_JOINTS], found[RT_MOST_JOINTS];
  int trusted[RT_MOST_JOINTS], limited[RT_MOST_JOINTS], out[RT_MOST_JOINTS], tripped = 0, spoilt = 0, ramping = 0;
  if (x->ended) rt_blind_window(core);
  const int usable = usable_nominal(core, given, nominal), old = stale(core);
  double whole[RT_MOST_JOINTS];
  memcpy(whole, nominal, sizeof(double) * (size_t)n);
  const int replaced = replace_blind(core, nominal);
  if (asked == NULL || !usable || replaced) {
    rt_bare_correct(core, x->time, g->now, g->now + n, nominal, found);
    asked = found;
  }
  for (int j = 0; j < n; j++) found[j] = asked[j] - nominal[j];
  limit(core, found, usable, trusted, limited);
  if (old) x->codes |= RT_STALE;
  for (int j = 0; j < n; j++) {
    const double torque = nominal[j] + g->gain[j] * g->last[j];
    out[j] = g->fault[j] || old;
    limited[j] = limited[j] || (fabs(torque) > s->limit[j] && fabs(nominal[j]) < s->limit[j]);
    spoilt = spoilt || !trusted[j] || g->blind[j];
  }
  advance(core, trusted, out, limited);
  if (spoilt) x->broken = 1;
  for (int j = 0; j < n; j++) {
    tripped = tripped || g->tripped[j];
    g->whole_gain[j] = g->gain[j] * x->range_gain;
    ramping = ramping || g->whole_gain[j] < 1.0;
    const double torque = s->shadow ? whole[j] : nominal[j] + g->whole_gain[j] * g->last[j];
    sent[j] = rt_clip(torque, -s->limit[j], s->limit[j]);
    if (sent[j] != torque) x->codes |= RT_TORQUE_LIMIT;
  }
  if (tripped) x->codes |= RT_TRIPPED;
  if (!x->full && ramping) x->codes |= RT_RAMP;
}

/* How well the correction explains what the robot did over a window. */
static void score(rt_core *core) {
  const rt_model *model = core->model;
  const rt_supervisor *s = &model->supervisor;
  rt_guard *g = &core->guard;
  rt_guard_state *x = g->state;
  const int n = model->robot.n;
  int begins = x->score_count < 0;
  x->ended = 0;
  if (!begins) {
    for (int j = 0; j < n; j++) g->sums[j] += g->now[2 * n + j];
    begins = ++x->score_count == s->window;
    if (begins) {
      double *middle = g->window_motion, *speed = middle + n, *acceleration = speed + n, needed[RT_MOST_JOINTS];
      for (int j = 0; j < n; j++) {
        acceleration[j] = (g->now[n + j] - g->from[n + j]) / s->score_period;
        middle[j] = 0.5 * (g->now[j] + g->from[j]);
        speed[j] = 0.5 * (g->now[n + j] + g->from[n + j]);
        g->window_torque[j] = g->sums[j] / s->window;
      }
      rt_inverse_dynamics(&model->robot, middle, speed, acceleration, needed);
      for (int j = 0; j < n; j++) {
        needed[j] = g->window_torque[j] - needed[j]; /* what was lost */
        g->window_correction[j] = g->sums[n + j] / s->window;
        g->window_left[j] = needed[j] - g->window_correction[j];
      }
      x->good = !x->broken && rt_all_finite(g->window_left, n);
      for (int j = 0; j < n && x->good; j++) {
        g->squares[j] += s->score_rate * (needed[j] * needed[j] - g->squares[j]);
        g->squares[n + j] += s->score_rate * (g->window_left[j] * g->window_left[j] - g->squares[n + j]);
      }
      x->samples += x->good;
    }
  }
  if (begins) {
    x->ended = x->score_count > 0;
    x->score_count = 0;
    x->broken = 0;
    memset(g->sums, 0, sizeof(double) * (size_t)(2 * n));
    memcpy(g->from, g->now, sizeof(double) * (size_t)(3 * n));
    if (x->ended) {
      rt_force_window(core);
      rt_blind_note(core);
    }
  }
  for (int j = 0; j < n; j++) g->sums[n + j] += g->last[j];
}

/* Joints whose encoders are dead move as the ideal robot's would. */
static void drive_unseen(rt_core *core, const double *sent) {
  const rt_guard *g = &core->guard;
  const int n = core->model->robot.n;
  double torque[RT_MOST_JOINTS], answer[RT_MOST_JOINTS];
  int any = 0;
  for (int j = 0; j < n; j++) any = any || g->dead[j];
  if (!any) return;
  for (int j = 0; j < n; j++) torque[j] = sent[j] - g->whole_gain[j] * g->last[j];
  rt_forward_dynamics(&core->model->robot, g->now, g->now + n, torque, answer);
  for (int j = 0; j < n; j++)
    if (g->dead[j]) rt_drive(core, j, core->model->timestep * answer[j]);
}

void rt_guard_correct(rt_core *core, const double *nominal, double *sent) {
  const rt_supervisor *s = &core->model->supervisor;
  rt_guard *g = &core->guard;
  rt_guard_state *x = g->state;
  const int n = core->model->robot.n;
  double asked[RT_MOST_JOINTS], correction[RT_MOST_JOINTS];
  RT_PUBLISH(x->age, x->age + 1);
  int untroubled = x->calm && x->full && !s->shadow && !stale(core);
  if (untroubled) {
    rt_bare_correct(core, x->time, g->now, g->now + n, nominal, asked);
    for (int j = 0; j < n; j++) {
      correction[j] = asked[j] - nominal[j];
      sent[j] = nominal[j] + correction[j];
      untroubled = untroubled && fabs(correction[j]) <= s->residual_limit[j] &&
                   fabs(correction[j] - g->last[j]) <= s->step_limit[j] && fabs(sent[j]) <= s->limit[j];
    }
    double kept[RT_MOST_JOINTS];
    untroubled = untroubled && !rt_force_limit(core, correction, kept);
    if (untroubled) {
      memcpy(g->last, correction, sizeof(double) * (size_t)n);
      memcpy(g->last_nominal, nominal, sizeof(double) * (size_t)n);
    } else {
      careful(core, nominal, asked, sent);
    }
  } else {
    careful(core, nominal, NULL, sent);
  }
  drive_unseen(core, sent);
  score(core);
  rt_reports_sent(core, sent);
  x->health = x->codes | rt_bare_health(core);
  for (int k = 0; k < RT_CODES; k++) x->counts[k] += (x->health >> k) & 1;
  x->ticks++;
}
