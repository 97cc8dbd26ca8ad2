/* Velocity feedback: torque for the velocity that a robot lacks behind the ideal one, where its corrections are sent. */
#include "internal.h"

void rt_feedback_reset(rt_core *core) {
  rt_default_part *p = &core->defaults;
  const size_t bytes = sizeof(double) * (size_t)core->model->robot.n;
  double *rows[] = {p->ideal_acceleration, p->asked, p->nominal, p->asked_error, p->nominal_error, p->ignored,
                    p->feedback, p->ring_fast, p->ring_slow, p->ring_before, p->ring_earlier, p->ring_noise};
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) memset(rows[k], 0, bytes);
  for (int j = 0; j < core->model->robot.n; j++) p->ring_energy[j] = core->model->defaults.ring_floor[j];
  p->state->known = 0;
}

/* Reported torques are followed from one to the next; what is not finite changes nothing. */
static void compare(double *error, double share, double reported, double told) {
  const double change = reported - told - *error;
  if (isfinite(change)) *error += share * change;
}

/* How little a joint rings: 0, it does, to 1, not at all; a velocity that is not counted shows nothing. */
static double quiet(rt_core *core, int j, double velocity, int counted) {
  const rt_default *d = &core->model->defaults;
  const rt_default_part *p = &core->defaults;
  p->ring_fast[j] += d->ring_fast * (velocity - p->ring_fast[j]);
  p->ring_slow[j] += d->ring_slow * (velocity - p->ring_slow[j]);
  const double band = p->ring_fast[j] - p->ring_slow[j];
  const double turn = velocity - 2.0 * p->ring_before[j] + p->ring_earlier[j];
  p->ring_earlier[j] = p->ring_before[j];
  p->ring_before[j] = velocity;
  if (counted) {
    p->ring_energy[j] += d->ring_share * (band * band - p->ring_energy[j]);
    p->ring_noise[j] += d->ring_share * (turn * turn / 6.0 - p->ring_noise[j]);
  }
  return rt_clip(1.0 - p->ring_energy[j] / (d->ring_loud * p->ring_noise[j] + d->ring_floor[j]), 0.0, 1.0);
}

void rt_feedback_observe(rt_core *core, const double *position, const double *velocity, const double *torque) {
  const rt_model *model = core->model;
  const rt_default *d = &model->defaults;
  rt_default_part *p = &core->defaults;
  const int n = model->robot.n, reported = rt_all_finite(velocity, n) && rt_all_finite(position, n);
  const double *belief = core->beliefs + RT_TAKE(*core->current) * core->belief_size;
  const double follow = belief[core->layout.follow];
  for (int j = 0; j < n; j++) {
    compare(p->asked_error + j, d->sent_share, torque[j], p->asked[j]);
    compare(p->nominal_error + j, d->sent_share, torque[j], p->nominal[j]);
    const double nearer = fabs(p->asked_error[j]) - fabs(p->nominal_error[j]); /* to the nominal torque */
    if (nearer > d->sent_margin[j]) p->ignored[j] += model->timestep;
    if (-nearer > d->sent_margin[j]) p->ignored[j] = 0.0;
    const int counted = follow > RT_ANEW && p->ignored[j] < d->ignored, follows = p->state->known && counted;
    const double now = reported ? velocity[j] : p->ideal_velocity[j];
    p->ideal_velocity[j] += model->timestep * p->ideal_acceleration[j];
    if (!follows) p->ideal_velocity[j] = now;
    const double missing = reported ? p->ideal_velocity[j] - now : 0.0;
    const double gain = d->feedback_gain[j] * (1.0 + d->feedback_more * quiet(core, j, missing, counted));
    const double kept = rt_clip(missing, -d->feedback_most[j] / gain, d->feedback_most[j] / gain);
    p->ideal_velocity[j] += kept - missing - d->feedback_leak * missing;
    p->feedback[j] = follow >= RT_ACTS ? gain * kept : 0.0;
  }
  p->state->known = p->state->known || reported;
}

void rt_feedback_expect(const rt_core *core, const double *acceleration, const double *nominal, const double *asked) {
  const rt_default_part *p = &core->defaults;
  const int n = core->model->robot.n, known = rt_all_finite(acceleration, n);
  for (int j = 0; j < n; j++) {
    p->ideal_acceleration[j] = known ? acceleration[j] : 0.0;
    p->nominal[j] = nominal[j];
    p->asked[j] = asked[j];
  }
}
