/* The recursive adapter that knows contact from mismatch: screening, waiting equations, the external torque. */
#include "internal.h"

/* Squared Mahalanobis distance of an innovation, given F of the estimate. */
double rt_distance(const rt_core *core, const double *innovation, const double *spread, double factor) {
  const rt_recursive_part *p = &core->recursive;
  const int n = core->model->robot.n;
  double covariance[RT_MOST_JOINTS * RT_MOST_JOINTS], white[RT_MOST_JOINTS], sum = 0.0;
  rt_gram(spread, n, p->filter.size, p->filter.step, covariance);
  for (int j = 0; j < n; j++) {
    covariance[j * n + j] += p->noise[j] * (factor > 1.0 ? factor : 1.0) + p->total[j];
    white[j] = innovation[j];
  }
  rt_cholesky(covariance, n);
  rt_forward_substitute(covariance, n, white);
  for (int j = 0; j < n; j++) sum += white[j] * white[j];
  return sum;
}

/* How much of an external torque is answered: at most `authority` times it, as shares of the torque limits. */
void rt_limit_share(rt_core *core, const double *external) {
  const rt_model *model = core->model;
  rt_recursive_part *p = &core->recursive;
  const int n = model->robot.n;
  const double *row = rt_history_row(&core->history, core->history.state->total - 1), *q = row, *qd = row + n;
  rt_pose pose[RT_MOST_JOINTS];
  rt_motion motion[RT_MOST_JOINTS];
  double torque[RT_MOST_JOINTS], ideal[RT_MOST_JOINTS], nothing[RT_MOST_JOINTS] = {0};
  double pushed[RT_MOST_JOINTS], held[RT_MOST_JOINTS], size = 0.0, room = 0.0;
  rt_place(&model->robot, q, pose);
  rt_move(&model->robot, pose, qd, NULL, motion);
  rt_torques(&model->robot, pose, motion, model->robot.inertial, torque);
  for (int j = 0; j < n; j++) torque[j] += external[j];
  rt_accelerate(&model->robot, pose, qd, torque, ideal);
  rt_estimate_torque(core, p->estimate, pose, qd, ideal, external, NULL, pushed);
  rt_estimate_torque(core, p->estimate, pose, qd, nothing, NULL, NULL, held);
  for (int j = 0; j < n; j++) {
    const double change = (pushed[j] - held[j]) / model->recursive.strength[j];
    const double own = external[j] / model->recursive.strength[j];
    size += change * change;
    room += own * own;
  }
  size = sqrt(size);
  const double share = model->recursive.authority * sqrt(room) / (size > 1e-9 ? size : 1e-9);
  p->state->share = share < 1.0 ? share : 1.0;
}

static void refuse_waiting(rt_core *core) {
  const rt_recursive *r = &core->model->recursive;
  const int n = core->model->robot.n, length = 3 * n + 2 + n * r->size;
  for (int slot = 0; slot < r->delay; slot++) core->recursive.waiting[slot * length + 3 * n + 1] = 0.0;
}

/* Put an equation in the queue; 1 where the oldest came out of it. */
int rt_exchange(rt_core *core, rt_equation *equation, rt_equation *oldest) {
  const rt_recursive *r = &core->model->recursive;
  rt_recursive_part *p = &core->recursive;
  const int n = core->model->robot.n, length = 3 * n + 2 + n * r->size;
  const size_t row = sizeof(double) * (size_t)n, rows = sizeof(double) * (size_t)(n * r->size);
  double *slot = p->waiting + (int)(p->state->waiting_count % r->delay) * length;
  const int full = p->state->waiting_count >= r->delay;
  if (full) {
    memcpy(oldest->torque, slot, row);
    memcpy(oldest->prior, slot + n, row);
    memcpy(oldest->ideal, slot + 2 * n, row);
    oldest->factor = slot[3 * n];
    oldest->accepted = slot[3 * n + 1] != 0.0;
    memcpy(oldest->rows, slot + 3 * n + 2, rows);
  }
  memcpy(slot, equation->torque, row);
  memcpy(slot + n, equation->prior, row);
  memcpy(slot + 2 * n, equation->ideal, row);
  slot[3 * n] = equation->factor;
  slot[3 * n + 1] = equation->accepted ? 1.0 : 0.0;
  memcpy(slot + 3 * n + 2, equation->rows, rows);
  p->state->waiting_count++;
  return full;
}

/* Decide whether something touches the robot, and follow what it does. */
void rt_screen_contact(rt_core *core, rt_equation *equation, const double *innovation, const double *spread) {
  const rt_model *model = core->model;
  const rt_recursive *r = &model->recursive;
  rt_recursive_part *p = &core->recursive;
  rt_recursive_state *s = p->state;
  const int n = model->robot.n;
  const double step = r->stride * model->timestep;
  const double distance = rt_distance(core, innovation, spread, equation->factor);
  s->calm = distance < r->clear ? s->calm + step : 0.0;
  s->contact = (s->contact ? s->calm < r->calm : distance > r->suspect) && equation->accepted;
  s->touched = s->contact ? s->touched + step : 0.0;
  if (s->touched > r->longest) { /* what never ends is no contact: doubt everything again and learn it */
    rt_filter_prior_root(&p->filter);
    s->contact = 0;
    s->touched = 0.0;
  }
  if (s->contact) {
    refuse_waiting(core);
    equation->accepted = 0;
  }
  double ahead[RT_MOST_JOINTS];
  for (int j = 0; j < n; j++) {
    const double expected = p->external[j] + step * p->external_rate[j];
    const double error = p->torque[j] - innovation[j] - expected;
    p->external_rate[j] = s->contact ? p->external_rate[j] + 0.3 * error / step : 0.0;
    p->external[j] = s->contact ? expected + 0.8 * error : 0.0;
    ahead[j] = p->external[j] + p->external_rate[j] * rt_ahead(model, 0.0);
  }
  if (s->contact) rt_limit_share(core, ahead);
  s->health = s->contact ? RT_SURPRISED : 0;
}
