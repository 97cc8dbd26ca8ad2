/* What a robot's report is worth, joint by joint: bridged, rebuilt, or a fault with its code. */
#include "internal.h"

static double larger(double a, double b) { return a > b ? a : b; }

static double *newest_sent(const rt_core *core) {
  const int ticks = core->model->supervisor.torque_ticks;
  const int64_t count = core->guard.state->sent_count;
  return core->guard.ring + ((count + ticks - 1) % ticks) * core->model->robot.n;
}

/* All was well until now, and this is expected next: no suspicion is left. */
static void relax(rt_core *core, const double *expected) {
  rt_guard *g = &core->guard;
  const int n = core->model->robot.n;
  for (int j = 0; j < n; j++) {
    g->rebuilt[j] = expected == NULL ? NAN : expected[j];
    g->rebuilt[n + j] = expected == NULL ? NAN : expected[n + j];
    g->raw[j] = g->raw[n + j] = NAN;
    g->error[j] = 0.0;
    g->slipping[j] = g->waiting[j] = g->lost[j] = g->same_q[j] = g->same_v[j] = g->still[j] = g->contrary[j] = 0;
    g->stopped[j] = g->leapt[j] = 0;
  }
}

void rt_reports_reset(rt_core *core) {
  const rt_supervisor *s = &core->model->supervisor;
  rt_guard *g = &core->guard;
  rt_guard_state *x = g->state;
  const int n = core->model->robot.n;
  memset(g->now, 0, sizeof(double) * (size_t)(3 * n));
  memset(g->level, 0, sizeof(double) * (size_t)(2 * n));
  memset(g->offset, 0, sizeof(double) * (size_t)n);
  memset(g->ring, 0, sizeof(double) * (size_t)(s->torque_ticks * n));
  memset(g->suspect, 0, (size_t)n);
  memset(g->fault, 0, (size_t)n);
  memset(g->distrusted, 0, (size_t)n);
  memset(g->blind, 0, (size_t)n);
  memset(g->dead, 0, (size_t)n);
  memset(g->slip_error, 0, sizeof(double) * (size_t)n);
  memset(g->start_torque, 0, sizeof(double) * (size_t)n);
  memcpy(g->now, s->home, sizeof(double) * (size_t)n);
  memcpy(g->expected, g->now, sizeof(double) * (size_t)(3 * n));
  memcpy(g->before, g->now, sizeof(double) * (size_t)(3 * n));
  relax(core, NULL);
  for (int j = 0; j < n; j++) {
    g->lost[j] = s->probation; /* the next report of each joint is believed */
    g->usual[j] = s->jump[j] / s->leap * s->jump[j] / s->leap;
    g->leap[j] = s->jump[j];
    g->last_position[j] = g->earlier_position[j] = NAN;
    g->restless[j] = 0.0;
  }
  x->reports = x->watch = x->calm = x->report_codes = x->sent_count = 0;
  x->in_range = 1;
  x->range_gain = 1.0;
}

void rt_reports_sent(rt_core *core, const double *torque) {
  const rt_supervisor *s = &core->model->supervisor;
  rt_guard *g = &core->guard;
  const int n = core->model->robot.n;
  const size_t row = sizeof(double) * (size_t)n;
  memcpy(g->ring + (g->state->sent_count % s->torque_ticks) * n, torque, row);
  g->state->sent_count++;
  const int64_t at = (g->state->sent_count - s->torque_lag + s->torque_ticks) % s->torque_ticks;
  memcpy(g->expected + 2 * n, g->ring + at * n, row);
}

void rt_drive(rt_core *core, int j, double change) {
  const double most = core->model->supervisor.fastest[j];
  core->guard.coast[j] = rt_clip(core->guard.coast[j] + change, -most, most);
}

/* How far a joint is out of range; one is twice the margin. */
static double beyond(const rt_core *core, int j) {
  const rt_supervisor *s = &core->model->supervisor;
  const double q = core->guard.now[j], v = core->guard.now[core->model->robot.n + j];
  return larger(larger(s->low[j] - q, q - s->high[j]) / s->margin, 3.0 * (fabs(v) / s->speed[j] - 1.0));
}

/* Positions that jump are watched; where they stay, their zero has moved. */
static void note_slip(rt_core *core, int j, double error, int usable) {
  const rt_supervisor *s = &core->model->supervisor;
  rt_guard *g = &core->guard;
  const int begins = usable && fabs(error - g->error[j]) > s->slip[j] && fabs(error) > s->slip[j];
  const int stays = usable && g->slipping[j] > 0 && fabs(error - g->slip_error[j]) < s->far[j];
  if (begins && !stays) g->slip_error[j] = error;
  g->slipping[j] = stays ? g->slipping[j] + 1 : begins;
  if (g->slipping[j] < s->settled) return;
  g->offset[j] += g->slip_error[j];
  if (fabs(g->offset[j]) < s->far[j]) g->offset[j] = 0.0;
  g->slipping[j] = 0;
}

/* A velocity has changed by so much within a tick, as is seen once in a period. */
static void note_change(rt_core *core, int j, double change, double period) {
  const rt_supervisor *s = &core->model->supervisor;
  rt_guard *g = &core->guard;
  const double share = period / s->leap_memory;
  g->usual[j] += (share < 1.0 ? share : 1.0) * (change * change - g->usual[j]);
  g->leap[j] = rt_clip(s->leap * sqrt(g->usual[j]), s->least_leap, s->jump[j]);
}

/* Whether a slow joint's last three positions turn round, as noise does. */
static void note_restlessness(rt_core *core, int j, double now, double last, double earlier, double v) {
  const rt_supervisor *s = &core->model->supervisor;
  const int turns = (now > last && last < earlier) || (now < last && last > earlier);
  const double seen = turns - s->repeated * (now == last || last == earlier);
  if (fabs(v) < s->slow) core->guard.restless[j] += (seen - core->guard.restless[j]) / s->restless_memory;
}

/* Whether a joint repeats itself although it must move. */
static int note_repeats(rt_core *core, int j, double q, double v, double sent) {
  const rt_supervisor *s = &core->model->supervisor;
  rt_guard *g = &core->guard;
  const int n = core->model->robot.n, same_q = q == g->raw[j], same_v = v == g->raw[n + j];
  g->raw[j] = q;
  g->raw[n + j] = v;
  g->same_q[j] = same_q ? g->same_q[j] + 1 : 0;
  g->same_v[j] = same_v ? g->same_v[j] + 1 : 0;
  if (same_q && same_v && g->still[j] == 0) {
    g->start_torque[j] = sent;
    g->stopped[j] = g->waiting[j] > 0 || g->leapt[j] == 1; /* a second leap takes the first one back */
    if (!g->stopped[j]) g->coast[j] = v;
    g->stopped[j] = g->stopped[j] || g->restless[j] > s->restless; /* noise does not rest */
    g->restless[j] -= s->repeated / s->restless_memory;
  }
  g->still[j] = same_q && same_v ? g->still[j] + 1 : 0;
  if (!g->still[j]) return 0;
  /* What the torque would have done to it meanwhile; once it is known to be dead, the ideal robot says it. */
  const int lasts = g->still[j] >= s->still_ticks;
  const double more = sent - g->start_torque[j];
  if (!(lasts && g->stopped[j]) && isfinite(more)) rt_drive(core, j, core->model->timestep * more / s->inertia[j]);
  g->stopped[j] = g->stopped[j] || (lasts && fabs(more) > s->held[j]);
  return lasts && g->stopped[j];
}

/* What one joint's position and velocity are worth. */
typedef struct {
  int suspect, rebuilt, missing, dead, disagree, slipped, contrary;
} verdict;

static verdict judge(rt_core *core, int j, int64_t step, double sent) {
  const rt_supervisor *s = &core->model->supervisor;
  rt_guard *g = &core->guard;
  const int n = core->model->robot.n;
  const double dt = core->model->timestep, raw_q = g->now[j], raw_v = g->now[n + j];
  double *expected_q = g->expected + j, *expected_v = g->expected + n + j;
  const int finite = isfinite(raw_q) && isfinite(raw_v) && fabs(raw_q) < 1e6 && fabs(raw_v) < 1e6;
  const double v = finite ? raw_v : *expected_v;
  double q = finite ? raw_q - g->offset[j] : *expected_q;
  /* A few ticks are bridged by the last velocity; after more than that a joint may be anywhere. */
  const int gone = g->lost[j] >= s->probation && raw_q != g->raw[j];
  const int anew = finite && (gone || step > s->probation);
  const double ahead = (double)((step < s->probation ? step : s->probation) - 1);
  const double centre = anew ? q : *expected_q + ahead * dt * *expected_v;
  const int dies = g->still[j] && g->stopped[j]; /* where it is believed to be may move, but not what it reports */
  note_slip(core, j, finite ? q - centre : g->error[j], finite && !anew && !dies);
  q = finite ? raw_q - g->offset[j] : centre;
  const double error = q - centre;
  const int jumped = finite && !anew && fabs(v - *expected_v) > s->jump[j] * (double)step;
  const double change = finite && !anew ? v - *expected_v : 0.0;
  const int leapt = fabs(change) > g->leap[j] * (double)step;
  if (leapt) g->coast[j] = *expected_v;
  g->waiting[j] = jumped ? s->probation : (g->waiting[j] > step ? g->waiting[j] - step : 0);
  const int dead = note_repeats(core, j, raw_q, raw_v, sent);
  note_change(core, j, g->still[j] ? sqrt(g->usual[j]) : rt_clip(change, -s->jump[j], s->jump[j]), dt);
  g->leapt[j] = (unsigned char)(leapt ? (g->leapt[j] ? 2 : 1) : 0);
  const double near = (g->same_v[j] >= s->still_ticks ? s->constant : 1.0) * s->far[j];
  int far = finite && fabs(error) > near * (double)(step < 3 ? step : 3) && g->slipping[j] == 0;
  const double missed = (double)g->same_q[j] * dt * fabs(v); /* what a position that repeats should have moved by */
  const int stuck = (g->same_q[j] >= s->repeats && (far || missed > s->resolution)) || dead;
  far = far || (stuck && !dead);
  if (stuck && g->still[j]) g->stopped[j] = 1;
  g->error[j] = error;
  g->lost[j] = finite && !stuck ? 0 : g->lost[j] + step;
  const int trusted = finite && !stuck && g->slipping[j] == 0;
  *expected_q = centre + (trusted ? s->follow * error : 0.0) + dt * (dead ? g->coast[j] : v);
  *expected_v = v;
  /* Velocities from positions alone. */
  const double next = g->rebuilt[j] + dt * g->rebuilt[n + j], off = trusted ? q - next : 0.0;
  g->rebuilt[j] = anew ? q : next + s->alpha * off;
  g->rebuilt[n + j] = anew ? v : g->rebuilt[n + j] + s->beta * off;
  const double rate = g->rebuilt[n + j];
  const int contrary = trusted && (g->waiting[j] > 0 || far) && v * rate < 0.0 && fabs(v - rate) > s->contrary;
  g->contrary[j] = contrary ? g->contrary[j] + 1 : 0;
  g->now[j] = trusted ? q : centre;
  g->now[n + j] = far && !stuck ? g->rebuilt[n + j] : v;
  const int repeats = g->still[j] && g->stopped[j];
  const verdict found = {!finite || g->slipping[j] > 0 || g->waiting[j] > 0 || far || dead || repeats,
                         far && !dead,
                         !finite,
                         stuck,
                         far && !stuck,
                         g->offset[j] != 0.0,
                         g->contrary[j] >= s->contradicted};
  return found;
}

/* Whether a reported torque is not what was sent. */
static int torque_wrong(const rt_core *core, int j, double torque) {
  const rt_supervisor *s = &core->model->supervisor;
  const rt_guard *g = &core->guard;
  const int n = core->model->robot.n;
  if (g->state->sent_count < s->torque_ticks) return 0;
  double low = g->ring[j], high = g->ring[j];
  for (int k = 1; k < s->torque_ticks; k++) {
    const double sent = g->ring[k * n + j];
    low = sent < low ? sent : low;
    high = sent > high ? sent : high;
  }
  const double room = s->tolerance[j] + s->relative * larger(fabs(low), fabs(high));
  return !(torque >= low - room && torque <= high + room);
}

/* Look at a report joint by joint. */
static void sort_out(rt_core *core, int64_t step) {
  const rt_supervisor *s = &core->model->supervisor;
  rt_guard *g = &core->guard;
  rt_guard_state *x = g->state;
  const int n = core->model->robot.n;
  const double dt = core->model->timestep, *newest = newest_sent(core);
  const double more = (double)step * dt, less = -s->suspicion_ease * (double)step * dt;
  int64_t codes = 0;
  int any_bad = 0, any_level = 0, idle = 1, hidden = 0, contrary = 0;
  if (x->calm) relax(core, g->expected);
  for (int j = 0; j < n; j++) {
    const double raw_torque = g->now[2 * n + j];
    const verdict m = judge(core, j, step, s->watching ? raw_torque : newest[j]);
    const int finite = isfinite(raw_torque) && fabs(raw_torque) < s->absurd;
    const int saturated = isfinite(raw_torque) && fabs(raw_torque) > s->report_limit[j];
    const int wrong = !finite || (!s->watching && torque_wrong(core, j, raw_torque)) || saturated;
    g->level[j] = rt_clip(g->level[j] + (m.suspect ? more : less), 0.0, s->suspicion_most);
    g->level[n + j] = rt_clip(g->level[n + j] + (wrong ? more : less), 0.0, s->suspicion_most);
    const int lasting = g->level[j] > s->bridge + 1e-9, lasting_torque = g->level[n + j] > s->bridge + 1e-9;
    const int unknown = m.suspect && !(lasting && m.rebuilt);
    const int driven = lasting && m.contrary; /* by the controller's own damping */
    g->blind[j] = (lasting && m.dead) || driven;
    g->dead[j] = lasting && m.dead && g->still[j];
    g->suspect[j] = unknown && !g->blind[j];
    g->fault[j] = (lasting && !g->blind[j]) || lasting_torque || m.slipped;
    if (g->dead[j]) g->now[n + j] = g->coast[j];
    /* A wrong velocity passes for a right one now and then: it is rebuilt until all suspicion is gone. */
    g->distrusted[j] = (g->distrusted[j] || (m.disagree && lasting)) && g->level[j] > 0.0;
    if (g->distrusted[j]) g->now[n + j] = g->rebuilt[n + j];
    if (driven) g->now[n + j] = 0.0;
    if (wrong) g->now[2 * n + j] = x->sent_count >= s->torque_ticks ? newest[j] : 0.0;
    if (m.missing || !isfinite(raw_torque)) codes |= RT_BAD_STATE;
    if (m.dead) codes |= RT_FROZEN;
    if (m.disagree && lasting) codes |= RT_VELOCITY_REPORT;
    if (m.slipped) codes |= RT_SLIPPED;
    if (wrong && finite) codes |= RT_TORQUE_REPORT;
    if (saturated) codes |= RT_SATURATED;
    any_bad = any_bad || m.suspect || wrong;
    any_level = any_level || g->level[j] != 0.0 || g->level[n + j] != 0.0;
    idle = idle && g->offset[j] == 0.0 && !g->waiting[j] && !g->slipping[j] && !g->still[j] && !g->leapt[j];
    hidden = hidden || unknown || driven;
    contrary += m.contrary;
  }
  const int wild = contrary > s->wild * n; /* the velocities are wrong as a whole */
  for (int j = 0; j < n && wild; j++) {
    g->blind[j] = hidden = 1;
    g->suspect[j] = 0;
    if (g->level[n + j] <= s->bridge + 1e-9 && g->offset[j] == 0.0) g->fault[j] = 0;
    g->now[n + j] = 0.0;
  }
  double most = beyond(core, 0);
  for (int j = 1; j < n; j++) most = larger(most, beyond(core, j));
  x->in_range = !(most > 0.0);
  x->range_gain = x->in_range ? 1.0 : rt_clip(1.0 - most, 0.0, 1.0);
  if (!x->in_range) codes |= RT_OUT_OF_RANGE;
  x->watch = x->watch > 0 ? x->watch - 1 : 0;
  x->calm = idle && x->in_range && !x->watch && !any_bad && !any_level;
  if (x->calm) {
    memset(g->suspect, 0, (size_t)n);
    memset(g->fault, 0, (size_t)n);
    memset(g->blind, 0, (size_t)n);
    memset(g->dead, 0, (size_t)n);
    codes = 0;
  }
  x->report_codes = codes;
  for (int j = 0; j < 3 * n; j++) g->shown[j] = hidden ? NAN : g->now[j];
}

/* Whether a report is near to what was expected. A torque that changes quickly is late by more than a lookalike: where
 * only torques are off, what matters is whether they were sent at all. */
static int as_expected(const rt_core *core) {
  const rt_supervisor *s = &core->model->supervisor;
  const rt_guard *g = &core->guard;
  const int n = core->model->robot.n;
  int torques_near = 1;
  for (int j = 0; j < n; j++) {
    const int near = fabs(g->now[j] - g->expected[j]) <= s->far[j] &&
                     fabs(g->now[n + j] - g->expected[n + j]) <= g->leap[j];
    if (!near) return 0;
    const double off = fabs(g->now[2 * n + j] - g->expected[2 * n + j]);
    torques_near = torques_near && off <= (s->watching ? INFINITY : s->tolerance[j]);
  }
  if (torques_near) return 1;
  if (g->state->sent_count < s->torque_ticks) return 0;
  for (int j = 0; j < n; j++)
    if (torque_wrong(core, j, g->now[2 * n + j])) return 0;
  return 1;
}

void rt_reports_take(rt_core *core, int64_t step) {
  const rt_supervisor *s = &core->model->supervisor;
  rt_guard *g = &core->guard;
  rt_guard_state *x = g->state;
  const int n = core->model->robot.n;
  if (step > s->probation && x->sent_count) { /* the next reports may tell of torques that somebody else sent */
    memmove(g->ring, newest_sent(core), sizeof(double) * (size_t)n);
    x->sent_count = 1;
  }
  if (s->from_sent)
    for (int j = 0; j < n; j++) g->now[2 * n + j] = x->reports ? newest_sent(core)[j] : 0.0;
  x->reports++;
  int simple = x->calm && step == 1 && as_expected(core);
  for (int j = 0; j < n; j++) /* a joint that repeats itself is looked at for a while */
    if (simple && g->now[n + j] == g->expected[n + j] && g->now[j] == g->last_position[j]) {
      simple = 0;
      x->watch = s->look;
    }
  if (simple && x->reports % s->look == 0) { /* now and then: does a joint repeat itself or leave its range? */
    for (int j = 0; j < n; j++) {
      if (g->now[j] == g->before[j] || g->now[n + j] == g->before[n + j] || beyond(core, j) > 0.0) simple = 0;
      note_change(core, j, g->now[n + j] - g->expected[n + j], (double)s->look * core->model->timestep);
      note_restlessness(core, j, g->now[j], g->last_position[j], g->earlier_position[j], g->now[n + j]);
    }
    memcpy(g->before, g->now, sizeof(double) * (size_t)(3 * n));
    if (!simple) x->watch = s->look; /* look at every report until the next time */
  }
  memcpy(g->earlier_position, g->last_position, sizeof(double) * (size_t)n);
  memcpy(g->last_position, g->now, sizeof(double) * (size_t)n);
  if (!simple) {
    sort_out(core, step);
    return;
  }
  for (int j = 0; j < n; j++) {
    const double q = g->now[j], v = g->now[n + j];
    g->expected[j] = s->follow * q + core->model->timestep * v + (1.0 - s->follow) * g->expected[j];
    g->expected[n + j] = v;
  }
  memcpy(g->shown, g->now, sizeof(double) * (size_t)(3 * n));
}
