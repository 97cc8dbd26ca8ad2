/* Velocity feedback: torque for the velocity that a robot lacks behind the ideal one, where its corrections are sent. */
#include "internal.h"

void rt_feedback_reset(rt_core *core) {
  rt_default_part *p = &core->defaults;
  const size_t bytes = sizeof(double) * (size_t)core->model->robot.n;
  double *rows[] = {p->ideal_acceleration, p->asked, p->nominal, p->asked_error, p->nominal_error, p->ignored,
                    p->feedback};
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) memset(rows[k], 0, bytes);
  p->state->known = 0;
}

/* Reported torques are followed from one to the next; what is not finite changes nothing. */
static void compare(double *error, double share, double reported, double told) {
  const double change = reported - told - *error;
  if (isfinite(change)) *error += share * change;
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
    const int follows = p->state->known && follow > RT_ANEW && p->ignored[j] < d->ignored;
    const double now = reported ? velocity[j] : p->ideal_velocity[j];
    p->ideal_velocity[j] += model->timestep * p->ideal_acceleration[j];
    if (!follows) p->ideal_velocity[j] = now;
    const double missing = reported ? p->ideal_velocity[j] - now : 0.0;
    const double kept = rt_clip(missing, -d->feedback_most[j], d->feedback_most[j]);
    p->ideal_velocity[j] += kept - missing - d->feedback_leak * missing;
    p->feedback[j] = follow >= RT_ACTS ? d->feedback_gain[j] * kept : 0.0;
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
