/* The recursive Bayesian adapter: learns everything linear about the robot while it moves, and inverts it each tick. */
#include "internal.h"

rt_layout rt_layout_of(const rt_model *model) {
  const int n = model->robot.n;
  rt_layout at;
  int next = 1; /* a belief begins with its time */
  at.inertial = next, next += 10 * n;
  at.armature = next, next += n;
  at.offset = next, next += n;
  at.forward = next, next += n * (RT_WIDTHS + 2); /* viscous, friction basis, the bias's step */
  at.backward = next, next += n * (RT_WIDTHS + 2);
  at.push = next, next += 2 * n; /* dead zones, then gains */
  at.pull = next, next += 2 * n;
  at.trust = next, next += 1;
  at.contact = next, next += 1;
  at.share = next, next += 1;
  at.external = next, next += n;
  at.external_rate = next, next += n;
  at.own = next, next += n;
  at.follow = next, next += 1;
  at.backing = next, next += 1;
  at.size = next;
  return at;
}

static double square(double x) { return x * x; }

/* Read the estimate out of the filter. */
void rt_refresh(rt_core *core) {
  const rt_model *model = core->model;
  const rt_layout *at = &core->layout;
  rt_recursive_part *p = &core->recursive;
  const int n = model->robot.n, terms = RT_WIDTHS + 2;
  double joint[RT_MOST_JOINTS * RT_PER_JOINT], *e = p->estimate;
  rt_unknowns(model, p->filter.mean, joint, e + at->inertial);
  for (int j = 0; j < n; j++) {
    const double *u = joint + j * RT_PER_JOINT;
    double *forward = e + at->forward + j * terms, *backward = e + at->backward + j * terms;
    rt_feasible(e + at->inertial + 10 * j, 1e-6);
    e[at->armature + j] = u[0];
    e[at->offset + j] = p->torque[j] - 0.5 * (u[9] + u[10]);
    if (rt_has_network(model)) e[at->offset + j] -= p->torque[j]; /* the network's to judge: push or own */
    forward[0] = u[1];
    backward[0] = u[2];
    for (int k = 0; k < RT_WIDTHS; k++) {
      forward[1 + k] = u[3 + k];
      backward[1 + k] = u[6 + k];
    }
    forward[terms - 1] = backward[terms - 1] = -0.5 * (u[9] - u[10]);
    e[at->push + j] = u[11];
    e[at->push + n + j] = 1.0 + u[13];
    e[at->pull + j] = u[12];
    e[at->pull + n + j] = 1.0 + u[14];
  }
  const double evidence = model->adapter == RT_DEFAULT ? rt_default_evidence(core) : p->state->evidence;
  e[at->trust] = 1.0 / (1.0 + exp(-evidence));
}

void rt_recursive_reset(rt_core *core) {
  const rt_recursive *r = &core->model->recursive;
  rt_recursive_part *p = &core->recursive;
  const int n = core->model->robot.n;
  rt_filter_reset(&p->filter);
  memset(p->state, 0, sizeof *p->state);
  p->state->evidence = r->first_evidence;
  p->state->share = 1.0;
  p->state->learnt_at = -r->stride;
  for (int j = 0; j < n; j++) {
    p->noise[j] = square(r->noise * r->scale[j]);
    p->torque[j] = p->doubt[j] = p->external[j] = p->external_rate[j] = 0.0;
    p->persistent[j] = p->neighbours[j] = square(r->disturbance * r->scale[j]);
    p->total[j] = p->persistent[j] + square(0.1 * r->scale[j]);
  }
  memset(p->residuals, 0, sizeof(double) * (size_t)(r->apart * n));
  memset(p->used, 0, (size_t)r->apart);
  memset(p->estimate, 0, sizeof(double) * (size_t)core->layout.size);
  if (rt_has_network(core->model)) rt_residual_reset(core);
  if (core->model->adapter == RT_DEFAULT) rt_default_reset(core);
  rt_refresh(core);
}

/* Command that gives the estimated robot an acceleration under an external torque (or none), (n) [N m]; where the one
 * that was given is known, so is what the drives lost of it. */
void rt_estimate_torque(const rt_core *core, const double *e, const rt_pose *pose, const double *qd, const double *qdd,
                        const double *external, const double *given, double *torque) {
  const rt_model *model = core->model;
  const rt_layout *at = &core->layout;
  const int n = model->robot.n, terms = RT_WIDTHS + 2;
  rt_motion motion[RT_MOST_JOINTS];
  rt_move(&model->robot, pose, qd, qdd, motion);
  rt_torques(&model->robot, pose, motion, e + at->inertial, torque);
  for (int j = 0; j < n; j++) {
    const double end = qd[j] + model->timestep * qdd[j]; /* friction is paid for at the end of the tick */
    const double *w = e + (end >= 0.0 ? at->forward : at->backward) + j * terms;
    double lost = end * w[0];
    for (int k = 0; k < RT_WIDTHS; k++) lost += tanh(end * model->recursive.basis[k]) * w[1 + k];
    lost += tanh(end / model->recursive.sign_width) * w[terms - 1];
    double all = torque[j] + lost + e[at->armature + j] * qdd[j] + e[at->offset + j];
    if (external != NULL) all -= external[j];
    const double *side = e + ((given != NULL ? given[j] : all) > 0.0 ? at->push : at->pull);
    double dead = side[j] * rt_command_sign(model, j, all);
    if (given != NULL) {
      const double up = e[at->push + j], down = e[at->pull + j];
      dead = rt_clip(side[n + j] * given[j], down > 0.0 ? -down : 0.0, up > 0.0 ? up : 0.0);
    }
    torque[j] = (all + dead) / side[n + j];
  }
}

double rt_ahead(const rt_model *model, double age) {
  const double ahead = 0.5 * model->recursive.samples * model->timestep + age;
  return ahead < model->recursive.lead ? ahead : model->recursive.lead;
}

void rt_recursive_correct(const rt_core *core, const double *belief, double time, const double *q, const double *qd,
                          const double *nominal, double *torque) {
  const rt_model *model = core->model;
  const rt_layout *at = &core->layout;
  const int n = model->robot.n, network = rt_has_network(model);
  const int touched = network || (model->adapter == RT_RECURSIVE_CONTACT && belief[at->contact] != 0.0);
  rt_pose pose[RT_MOST_JOINTS];
  double pushed[RT_MOST_JOINTS], external[RT_MOST_JOINTS] = {0}, ideal[RT_MOST_JOINTS], found[RT_MOST_JOINTS];
  const double age = time - belief[0] > 0.0 ? time - belief[0] : 0.0;
  const double ahead = network ? 0.0 : rt_ahead(model, age);
  for (int j = 0; j < n; j++) {
    external[j] = touched ? belief[at->share] * (belief[at->external + j] + ahead * belief[at->external_rate + j]) : 0.0;
    pushed[j] = nominal[j] + external[j];
  }
  rt_place(&model->robot, q, pose);
  rt_robot followed = model->robot;
  if (model->adapter == RT_DEFAULT) followed.armature = model->defaults.armature;
  rt_accelerate(&followed, pose, qd, pushed, ideal);
  rt_estimate_torque(core, belief, pose, qd, ideal, touched ? external : NULL, NULL, found);
  for (int j = 0; network && j < n; j++) found[j] += belief[at->own + j];
  double asked[RT_MOST_JOINTS];
  for (int j = 0; j < n; j++) asked[j] = nominal[j] + belief[at->trust] * (found[j] - nominal[j]);
  if (model->adapter == RT_DEFAULT)
    for (int j = 0; j < n; j++) asked[j] += belief[at->backing] * core->defaults.feedback[j];
  if (model->adapter == RT_DEFAULT && belief[at->follow] == RT_COUNTS) /* what it lacks if nothing pushes */
    rt_accelerate(&followed, pose, qd, nominal, ideal);
  if (model->adapter == RT_DEFAULT) rt_feedback_expect(core, ideal, nominal, asked);
  memcpy(torque, asked, sizeof(double) * (size_t)n);
}

/* Evidence that anything is hidden at all: the prior family's likelihood against the ideal robot's. */
static void weigh(rt_core *core, const double *mismatch, const double *innovation, const double *spread,
                  const double *noise) {
  const int n = core->model->robot.n;
  rt_recursive_part *p = &core->recursive;
  double covariance[RT_MOST_JOINTS * RT_MOST_JOINTS], white[RT_MOST_JOINTS], hidden = 0.0, nothing = 0.0;
  rt_gram(spread, n, p->filter.size, p->filter.step, covariance);
  for (int j = 0; j < n; j++) {
    covariance[j * n + j] += noise[j];
    white[j] = innovation[j];
  }
  rt_cholesky(covariance, n);
  rt_forward_substitute(covariance, n, white);
  for (int j = 0; j < n; j++) {
    hidden -= 0.5 * white[j] * white[j] + log(covariance[j * n + j]);
    nothing -= 0.5 * (mismatch[j] * mismatch[j] / noise[j] + log(noise[j]));
  }
  p->state->evidence = rt_clip(0.995 * p->state->evidence + hidden - nothing, -8.0, 8.0);
}

/* Move the joint unknown that is farthest out of its bounds back onto them, where there is one. */
void rt_constrain(rt_core *core) {
  const rt_model *model = core->model;
  const rt_recursive *r = &model->recursive;
  rt_recursive_part *p = &core->recursive;
  double joint[RT_MOST_JOINTS * RT_PER_JOINT], largest = -1.0, change = 0.0;
  int worst = 0;
  rt_unknowns(model, p->filter.mean, joint, NULL);
  for (int k = 0; k < model->robot.n * RT_PER_JOINT; k++) {
    const double below = r->low[k] - joint[k], above = joint[k] - r->high[k];
    const double beyond = (below > 0.0 ? below : 0.0) - (above > 0.0 ? above : 0.0);
    const double relative = fabs(beyond) / (r->joint_size[k] > 1e-12 ? r->joint_size[k] : 1e-12);
    if (relative > largest) largest = relative, worst = k, change = beyond;
  }
  if (!(largest > 1e-3)) return;
  const int first = worst - worst % RT_PER_JOINT;
  rt_project(&p->filter, first, r->joint_root + worst * RT_PER_JOINT, RT_PER_JOINT, change, p->scratch.lanes);
}

/* Update the unknowns and the noise level with an equation; one that is not accepted says nothing. */
static void absorb(rt_core *core, const rt_equation *e) {
  const rt_model *model = core->model;
  const rt_recursive *r = &model->recursive;
  rt_recursive_part *p = &core->recursive;
  const int n = model->robot.n;
  const double *rows = e->accepted ? e->rows : p->scratch.blank;
  double *spread = p->scratch.spread;
  double measured[RT_MOST_JOINTS], mismatch[RT_MOST_JOINTS], innovation[RT_MOST_JOINTS], expected[RT_MOST_JOINTS];
  double noise[RT_MOST_JOINTS];
  rt_predict(model, &p->filter, rows, expected, spread);
  for (int j = 0; j < n; j++) {
    measured[j] = e->accepted ? e->torque[j] - e->prior[j] : 0.0;
    mismatch[j] = e->accepted ? e->torque[j] - e->ideal[j] : 0.0;
    innovation[j] = measured[j] - expected[j];
    noise[j] = p->noise[j] * e->factor;
  }
  if (e->accepted) weigh(core, mismatch, innovation, spread, noise); /* what is not learnt from says nothing */
  rt_filter_update(model, &p->filter, innovation, rows, spread, noise, &p->scratch, 1);
  if (!e->accepted) return;
  rt_constrain(core);
  rt_predict(model, &p->filter, rows, expected, spread);
  const double rate = r->stride * model->timestep / r->noise_memory;
  for (int j = 0; j < n; j++) {
    const double *f = spread + j * p->filter.step, left = measured[j] - expected[j];
    const double least = square(r->noise_floor * r->scale[j]);
    double variance = 0.0;
    for (int k = 0; k < p->filter.step; k++) variance += f[k] * f[k];
    p->noise[j] += rate * (left * left + variance - p->noise[j]);
    if (p->noise[j] < least) p->noise[j] = least;
  }
}

/* What the unknowns do not explain, as far as it lasts for a moment, joint by joint. */
static void disturb(rt_core *core, const double *residual, int use) {
  const rt_recursive *r = &core->model->recursive;
  rt_recursive_part *p = &core->recursive;
  const int n = core->model->robot.n;
  const double step = r->stride * core->model->timestep, keep = exp(-step / r->disturbance_time);
  const double rate = use ? step / r->disturbance_memory : 0.0, between = pow(keep, r->apart);
  const int slot = (int)(p->state->disturbance_count % r->apart);
  const int before = (slot + r->apart - 1) % r->apart;
  double *earlier = p->residuals + slot * n, *last = p->residuals + before * n;
  const int full = p->state->disturbance_count >= r->apart;
  const double both = full && p->used[slot] ? rate : 0.0, next = full && p->used[before] ? rate : 0.0;
  for (int j = 0; j < n; j++) {
    p->persistent[j] += both * (residual[j] * earlier[j] / between - p->persistent[j]);
    p->neighbours[j] += next * (residual[j] * last[j] - p->neighbours[j]);
    p->total[j] += rate * (residual[j] * residual[j] - p->total[j]);
    const double floor = square(r->residual_floor * r->scale[j]);
    const double variance = rt_lasting(p, j);
    const double white = p->total[j] - variance > floor ? p->total[j] - variance : floor;
    const double predicted = keep * keep * p->doubt[j] + (1.0 - keep * keep) * variance;
    const double gain = use ? predicted / (predicted + white) : 0.0;
    p->torque[j] *= keep;
    p->torque[j] += gain * (residual[j] - p->torque[j]);
    p->doubt[j] = (1.0 - gain) * predicted;
    earlier[j] = residual[j];
  }
  p->used[slot] = (unsigned char)use;
  p->state->disturbance_count++;
}

/* One update from the newest window; 0 where there are too few rows yet. */
int rt_recursive_learn(rt_core *core) {
  const rt_model *model = core->model;
  rt_recursive_part *p = &core->recursive;
  const int n = model->robot.n;
  const int64_t total = RT_TAKE(core->history.state->total);
  if (total < model->recursive.first_samples) return 0;
  rt_equation newest, oldest, *ready = &newest;
  double expected[RT_MOST_JOINTS], innovation[RT_MOST_JOINTS];
  newest.rows = p->rows;
  oldest.rows = p->old_rows;
  rt_averaged_equation(model, &core->history, total, model->recursive.samples, &newest);
  if (model->adapter == RT_RECURSIVE) {
    p->state->health = newest.accepted ? 0 : RT_SKIPPED;
  } else {
    rt_predict(model, &p->filter, newest.rows, expected, p->scratch.spread);
    for (int j = 0; j < n; j++) innovation[j] = newest.torque[j] - newest.prior[j] - expected[j];
    if (model->adapter == RT_DEFAULT)
      rt_screen_default(core, &newest, innovation, p->scratch.spread);
    else if (model->adapter == RT_TAM_RECURSIVE)
      rt_screen_residual(core, &newest, innovation, p->scratch.spread);
    else
      rt_screen_contact(core, &newest, innovation, p->scratch.spread);
  }
  if (model->adapter == RT_RECURSIVE_CONTACT) ready = rt_exchange(core, &newest, &oldest) ? &oldest : NULL;
  if (ready != NULL) {
    absorb(core, ready);
    rt_expect(model, &p->filter, newest.rows, expected);
    for (int j = 0; j < n; j++)
      innovation[j] = newest.accepted ? newest.torque[j] - newest.prior[j] - expected[j] : 0.0;
    disturb(core, innovation, newest.accepted);
    rt_refresh(core);
  }
  return 1;
}

void rt_write_belief(rt_core *core, double *belief) {
  const rt_layout *at = &core->layout;
  const rt_recursive_part *p = &core->recursive;
  const int n = core->model->robot.n, network = rt_has_network(core->model);
  memcpy(belief, p->estimate, sizeof(double) * (size_t)at->size);
  belief[0] = core->history.state->time;
  belief[at->contact] = (double)p->state->contact;
  belief[at->share] = p->state->share;
  for (int j = 0; j < n; j++) {
    belief[at->external + j] = network ? p->pushed[j] : p->external[j];
    belief[at->external_rate + j] = network ? 0.0 : p->external_rate[j];
    belief[at->own + j] = network ? p->own[j] : 0.0;
  }
  belief[at->follow] = core->model->adapter == RT_DEFAULT ? rt_default_follow(core) : RT_ANEW;
  belief[at->backing] = core->model->adapter == RT_DEFAULT ? rt_default_backing(core, belief[at->trust]) : 0.0;
}
