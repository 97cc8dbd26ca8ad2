/* Explanations that compete for a mismatch: a touch from outside, a payload, a drive, one joint.
 *
 * Each is y = H x + noise with x ~ N(0, prior) at first and a random walk back to it; its likelihood is kept over time.
 * In order: nothing, a wrench at the hand, a force at the arm, any torques, a payload with a common factor of the
 * drives, and each joint's own gain, bias and friction.
 */
#include "internal.h"

enum { MOST = RT_MOST_JOINTS, NOTHING = 0, HAND = 1, ARM = 2, ANYTHING = 3, STEADY = 4, PAYLOAD = 5, JOINTS = 6 };
enum { OWN = 4 }; /* numbers of a joint: gain, bias, friction, viscous friction */

/* Where an explanation's numbers begin among all means, and among all covariances. */
static void place_of(const rt_model *model, int which, int *mean, int *covariance) {
  *mean = *covariance = 0;
  for (int k = 0; k < which; k++) {
    const int count = model->defaults.counts[k];
    *mean += count;
    *covariance += count * count;
  }
}

/* All begin anew, but remember how well the last measurements were explained. */
static void begin_anew(rt_core *core) {
  const rt_default *d = &core->model->defaults;
  rt_default_part *p = &core->defaults;
  int mean, covariance;
  for (int which = 0; which < JOINTS + core->model->robot.n; which++) {
    const int count = d->counts[which];
    place_of(core->model, which, &mean, &covariance);
    for (int i = 0; i < count; i++) {
      p->means[mean + i] = 0.0;
      for (int j = 0; j < count; j++)
        p->covariances[covariance + i * count + j] = i == j ? d->deviations[mean + i] * d->deviations[mean + i] : 0.0;
    }
    p->evidence[which] = d->odds[which];
  }
  p->state->weighed_for = 0.0;
}

void rt_explanations_restart(rt_core *core) {
  begin_anew(core);
  for (int which = 0; which < JOINTS + core->model->robot.n; which++) core->defaults.recent[which] = 0.0;
}

static double outside_of(const rt_core *core) {
  const double *evidence = core->defaults.evidence;
  double best = evidence[NOTHING];
  for (int k = HAND; k <= ANYTHING; k++) best = evidence[k] > best ? evidence[k] : best;
  return best;
}

/* Where no own explanation has a chance any more, all get another one: something may have been picked up, or a drive
 * have changed, since the mismatch began. 1 where they begin anew. */
int rt_explanations_renew(rt_core *core) {
  const rt_default *d = &core->model->defaults;
  const double *evidence = core->defaults.evidence;
  double own = evidence[PAYLOAD];
  for (int j = 0; j < core->model->robot.n; j++) own = evidence[JOINTS + j] > own ? evidence[JOINTS + j] : own;
  if (!(own - outside_of(core) < -d->hopeless && core->defaults.state->weighed_for > d->round)) return 0;
  begin_anew(core);
  return 1;
}

/* Take in a measurement y (n) with rows H (n, count) and noise (n, n); the evidence that it gave. */
static double take(rt_core *core, int which, const double *y, const double *rows, const double *noise, double weight) {
  const rt_default *d = &core->model->defaults;
  rt_default_part *p = &core->defaults;
  const int n = core->model->robot.n, count = d->counts[which];
  int at, covariance_at;
  place_of(core->model, which, &at, &covariance_at);
  double *mean = p->means + at, *covariance = p->covariances + covariance_at;
  const double keep = d->keep[which], *deviation = d->deviations + at;
  double reach[MOST * MOST], base[MOST * MOST], total[MOST * MOST], left[MOST], white[MOST], gained = 0.0;
  for (int i = 0; i < count; i++) {
    mean[i] *= keep;
    for (int j = 0; j < count; j++) covariance[i * count + j] *= keep * keep;
    covariance[i * count + i] += (1.0 - keep * keep) * deviation[i] * deviation[i];
  }
  for (int i = 0; i < count; i++)
    for (int r = 0; r < n; r++) {
      reach[i * n + r] = 0.0;
      for (int j = 0; j < count; j++) reach[i * n + r] += covariance[i * count + j] * rows[r * count + j];
    }
  for (int r = 0; r < n; r++) {
    left[r] = y[r];
    for (int i = 0; i < count; i++) left[r] -= rows[r * count + i] * mean[i];
    white[r] = left[r];
    for (int c = 0; c < n; c++) {
      base[r * n + c] = 0.0;
      for (int i = 0; i < count; i++) base[r * n + c] += rows[r * count + i] * reach[i * n + c];
      total[r * n + c] = base[r * n + c] + noise[r * n + c];
    }
  }
  rt_cholesky(total, n);
  rt_forward_substitute(total, n, white);
  for (int r = 0; r < n; r++) gained -= weight * (0.5 * white[r] * white[r] + log(total[r * n + r]));
  p->evidence[which] += gained;
  p->recent[which] = d->fade * p->recent[which] + gained;
  /* What is learnt of x counts as much as the measurement is worth: its noise is that much larger. */
  for (int k = 0; k < n * n; k++) total[k] = base[k] + noise[k] / weight;
  rt_cholesky(total, n);
  for (int i = 0; i < count; i++) {
    double *gain = base + i * n; /* no longer needed */
    memcpy(gain, reach + i * n, sizeof(double) * (size_t)n);
    rt_forward_substitute(total, n, gain);
    rt_back_substitute(total, n, gain);
    for (int r = 0; r < n; r++) mean[i] += gain[r] * left[r];
  }
  for (int i = 0; i < count; i++)
    for (int j = 0; j < count; j++)
      for (int r = 0; r < n; r++) covariance[i * count + j] -= base[i * n + r] * reach[j * n + r];
  return gained;
}

/* A push that has been growing may have come to keep its size. */
static void settle(rt_core *core) {
  const rt_default *d = &core->model->defaults;
  rt_default_part *p = &core->defaults;
  const double least = p->evidence[HAND] - d->settling;
  int from, from_covariance, to, to_covariance;
  if (p->evidence[STEADY] >= least) return;
  place_of(core->model, HAND, &from, &from_covariance);
  place_of(core->model, STEADY, &to, &to_covariance);
  memcpy(p->means + to, p->means + from, sizeof(double) * 6);
  memcpy(p->covariances + to_covariance, p->covariances + from_covariance, sizeof(double) * 36);
  p->evidence[STEADY] = least;
}

/* Torques that a wrench at the hand (n, 6) and a force at the arm (n, 3) leave unexplained. */
static void touches(const rt_model *model, const double *q, double *hand, double *arm) {
  const rt_default *d = &model->defaults;
  const rt_robot *robot = &model->robot;
  const int n = robot->n;
  double rotation[9 * MOST], origin[3 * MOST], jacobian[3 * MOST];
  rt_world_poses(robot, q, rotation, origin);
  rt_point_jacobian(robot, rotation, origin, d->arm_link, d->arm_place, jacobian);
  for (int j = 0; j < n; j++)
    for (int a = 0; a < 3; a++) arm[3 * j + a] = -jacobian[a * n + j];
  rt_point_jacobian(robot, rotation, origin, d->hand_link, d->hand_place, jacobian);
  for (int j = 0; j < n; j++)
    for (int a = 0; a < 3; a++) hand[6 * j + a] = -jacobian[a * n + j], hand[6 * j + 3 + a] = 0.0;
  for (int j = d->hand_link; j >= 0; j = robot->parent[j]) {
    if (robot->prismatic[j]) continue;
    for (int a = 0; a < 3; a++) {
      const double *r = rotation + 9 * j + 3 * a, *u = robot->axis + 3 * j;
      hand[6 * j + 3 + a] = -(r[0] * u[0] + r[1] * u[1] + r[2] * u[2]);
    }
  }
}

/* How well the best touch has explained the last measurements. */
static double touch_recent(const rt_core *core) {
  const double *recent = core->defaults.recent;
  double best = recent[HAND];
  for (int k = ARM; k <= ANYTHING; k++) best = recent[k] > best ? recent[k] : best;
  return best;
}

/* Weigh one averaged equation: y (n) is what the estimate does not explain, with its covariance (n, n); `weight` is the
 * share of an independent one that it is worth. */
void rt_explanations_take(rt_core *core, const rt_equation *e, const double *y, const double *noise,
                          double weight) {
  const rt_model *model = core->model;
  const int n = model->robot.n, payload = model->defaults.counts[PAYLOAD];
  double rows[MOST * MOST], arm[3 * MOST], columns[MOST * 10] = {0};
  core->defaults.state->weighed_for += model->recursive.stride * model->timestep;
  memset(rows, 0, sizeof(double) * (size_t)n);
  const double nothing = take(core, NOTHING, y, rows, noise, weight);
  touches(model, e->position, rows, arm);
  take(core, HAND, y, rows, noise, weight);
  take(core, STEADY, y, rows, noise, weight);
  settle(core);
  take(core, ARM, y, arm, noise, weight);
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) rows[i * n + j] = i == j ? -1.0 : 0.0;
  take(core, ANYTHING, y, rows, noise, weight);
  rt_pose pose[MOST];
  rt_motion motion[MOST];
  rt_place(&model->robot, e->position, pose);
  rt_move(&model->robot, pose, e->velocity, e->acceleration, motion);
  rt_link_regressor(&model->robot, pose, motion, model->defaults.carrier, columns, 10);
  for (int j = 0; j < n; j++) {
    memcpy(rows + j * payload, columns + j * 10, sizeof(double) * 10);
    rows[j * payload + payload - 1] = e->torque[j];
  }
  take(core, PAYLOAD, y, rows, noise, weight);
  for (int j = 0; j < n; j++) {
    if (!(fabs(e->velocity[j]) > model->defaults.own_width)) { /* a joint that sticks tells nothing of itself */
      core->defaults.evidence[JOINTS + j] += nothing;
      continue;
    }
    memset(rows, 0, sizeof(double) * (size_t)(n * OWN));
    double *own = rows + j * OWN;
    own[0] = e->torque[j];
    own[1] = 1.0;
    own[2] = tanh(e->velocity[j] / model->defaults.own_width);
    own[3] = e->velocity[j];
    take(core, JOINTS + j, y, rows, noise, weight);
  }
  const double least = touch_recent(core) - model->defaults.forgiven;
  if (core->defaults.recent[NOTHING] < least) core->defaults.recent[NOTHING] = least;
}

static double beyond(double excess, double deviation) {
  return excess > 0.0 ? 0.5 * (excess / deviation) * (excess / deviation) : 0.0;
}

/* Log odds against the payload and the drives' factor that fit best, for what they are. */
static double strangeness(const rt_core *core, double carried) {
  const rt_default *d = &core->model->defaults;
  int at, covariance;
  place_of(core->model, PAYLOAD, &at, &covariance);
  const double *mean = core->defaults.means + at, mass = mean[0], least = 0.3 * d->most_mass / 4.0;
  double moment = 0.0;
  for (int k = 1; k < 4; k++) moment = fabs(mean[k]) > moment ? fabs(mean[k]) : moment;
  const double reach = d->reach * (fabs(mass) > least ? fabs(mass) : least), heavy = d->strange_mass * d->most_mass;
  if (!(-carried - mass < d->impossible * heavy)) return INFINITY;
  return beyond(-carried - mass, heavy) + beyond(mass - d->most_mass, heavy) +
         beyond(moment - reach, d->strange_reach * reach) +
         beyond(fabs(mean[d->counts[PAYLOAD] - 1]) - d->most_gain, d->strange_gain);
}

/* What holds against everything from outside: -2 nothing, -1 a payload or all drives alike, else the joint. */
int rt_explanations_verdict(const rt_core *core, double least, double carried) {
  const double *evidence = core->defaults.evidence;
  const double outside = outside_of(core);
  int best = 0;
  for (int j = 1; j < core->model->robot.n; j++)
    if (evidence[JOINTS + j] > evidence[JOINTS + best]) best = j;
  const double joint = evidence[JOINTS + best], payload = evidence[PAYLOAD] - strangeness(core, carried);
  const double own = payload > joint ? payload : joint;
  /* what came slowly may be a push that keeps its size, and what it explains clearly better is one anyway */
  const rt_default *d = &core->model->defaults;
  const double *recent = core->defaults.recent;
  const int slow = core->defaults.state->watched > 0.0;
  if (!(own - outside > least && own - evidence[STEADY] > (slow ? d->wary : -d->behind))) return -2;
  if (slow && !(recent[payload >= joint ? PAYLOAD : JOINTS + best] > recent[STEADY] - d->worse)) return -2;
  return payload >= joint ? -1 : best;
}

/* Whether nothing at all has lately been as good an explanation as a touch that lasts. */
int rt_explanations_over(const rt_core *core) {
  return core->defaults.recent[NOTHING] > touch_recent(core) - core->model->defaults.gone;
}

/* Lower root of a covariance (count, count) in place; what rounding made negative is nothing. */
static void root_of(double *a, int count) {
  for (int j = 0; j < count; j++)
    for (int i = j; i < count; i++) {
      double sum = a[i * count + j];
      for (int k = 0; k < j; k++) sum -= a[i * count + k] * a[j * count + k];
      if (i == j)
        a[i * count + j] = sum > 0.0 ? sqrt(sum) : 0.0;
      else
        a[i * count + j] = a[j * count + j] > 0.0 ? sum / a[j * count + j] : 0.0;
    }
}

/* Change of the estimate that an explanation means: `shift` (size) of its mean, and doubt as columns (size, returned)
 * whose rows lie `stride` apart. */
int rt_explanations_opening(const rt_core *core, int verdict, double *shift, double *doubt, int stride) {
  const rt_model *model = core->model;
  const rt_default *d = &model->defaults;
  const int size = model->recursive.size, which = verdict < 0 ? PAYLOAD : JOINTS + verdict, count = d->counts[which];
  const int more = verdict < 0 ? d->payload_doubts : RT_PER_JOINT;
  int at, covariance_at;
  place_of(model, which, &at, &covariance_at);
  const double *mean = core->defaults.means + at;
  double root[MOST * MOST];
  memcpy(root, core->defaults.covariances + covariance_at, sizeof(double) * (size_t)(count * count));
  root_of(root, count);
  for (int row = 0; row < size; row++) {
    const int own = verdict < 0 ? row : row - verdict * RT_PER_JOINT; /* a joint's change stays in its own unknowns */
    const int inside = verdict < 0 || (own >= 0 && own < RT_PER_JOINT);
    const double *map = verdict < 0 ? d->payload_shift + row * count
                                    : d->joint_shift + (verdict * RT_PER_JOINT + (inside ? own : 0)) * OWN;
    const double *rest = verdict < 0 ? d->payload_doubt + row * more
                                     : d->joint_doubt + (verdict * RT_PER_JOINT + (inside ? own : 0)) * RT_PER_JOINT;
    double *out = doubt + row * stride;
    shift[row] = 0.0;
    for (int k = 0; k < count + more; k++) out[k] = 0.0;
    if (!inside) continue;
    for (int k = 0; k < count; k++) {
      shift[row] += map[k] * mean[k];
      for (int c = 0; c <= k; c++) out[c] += d->inflation * map[k] * root[k * count + c];
    }
    for (int k = 0; k < more; k++) out[count + k] = rest[k];
  }
  return count + more;
}
