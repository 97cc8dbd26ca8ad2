/* The default adapter: nothing is cancelled or learnt that may be a touch. Where the estimate stops explaining the robot
 * it is held as it was, explanations compete, and one that is the robot's own is learnt at once. */
#include "internal.h"

enum { MOST = RT_MOST_JOINTS };

static double step_of(const rt_model *model) { return model->recursive.stride * model->timestep; }

static size_t root_bytes(const rt_filter *f) { return sizeof(double) * (size_t)(f->size * f->step); }
static size_t mean_bytes(const rt_filter *f) { return sizeof(double) * (size_t)f->size; }

/* The kept estimate of an age: 0 is the oldest. */
static rt_filter kept(const rt_core *core, int age) {
  rt_filter found = core->recursive.filter;
  found.mean = core->defaults.old_means + (size_t)age * (size_t)found.step;
  found.root = core->defaults.old_roots + (size_t)age * (size_t)(found.size * found.step);
  return found;
}

static void copy(const rt_filter *from, const rt_filter *to) {
  memcpy(to->mean, from->mean, mean_bytes(from));
  memcpy(to->root, from->root, root_bytes(from));
}

static void copy_to_kept(rt_core *core) {
  for (int age = 0; age < core->model->defaults.snapshots; age++) {
    const rt_filter to = kept(core, age);
    copy(&core->recursive.filter, &to);
  }
}

static rt_filter undo_of(const rt_core *core) {
  rt_filter found = core->recursive.filter;
  found.mean = core->defaults.undo_mean;
  found.root = core->defaults.undo_root;
  return found;
}

/* The prior, gains believed near one. */
static void begin(rt_core *core) {
  const rt_model *model = core->model;
  const rt_default *d = &model->defaults;
  rt_filter *filter = &core->recursive.filter;
  memset(filter->mean, 0, mean_bytes(filter));
  rt_filter_prior_root(filter);
  for (int j = 0; j < model->robot.n; j++)
    for (int a = 0; a < RT_PER_JOINT; a++)
      memcpy(filter->root + (j * RT_PER_JOINT + a) * filter->step + j * RT_PER_JOINT,
             d->closed_root + (j * RT_PER_JOINT + a) * RT_PER_JOINT, sizeof(double) * RT_PER_JOINT);
  copy_to_kept(core);
}

void rt_default_reset(rt_core *core) {
  const rt_model *model = core->model;
  const rt_default *d = &model->defaults;
  rt_default_part *p = &core->defaults;
  const int n = model->robot.n;
  memset(p->state, 0, sizeof *p->state);
  memset(p->felt, 0, sizeof(double) * (size_t)(2 * n));
  memset(p->drift, 0, sizeof(double) * (size_t)n);
  memset(p->mismatch, 0, sizeof(double) * (size_t)n);
  for (int k = 0; k < d->snapshots; k++) {
    p->old_evidence[k] = model->recursive.first_evidence;
    for (int j = 0; j < 2 * n; j++) p->old_sizes[k * 2 * n + j] = INFINITY;
  }
  p->state->own_since = INFINITY;
  begin(core);
  rt_explanations_restart(core);
  rt_feedback_reset(core);
}

/* What counts as noise, and as what is never explained: never more than before a mismatch began. */
static double less(double a, double b) { return a < b ? a : b; }

static double distance_of(const rt_core *core, const double *innovation, const double *spread, double factor) {
  const rt_recursive_part *r = &core->recursive;
  const int n = core->model->robot.n;
  const double *noise = core->defaults.old_sizes, *total = noise + n;
  double covariance[MOST * MOST], white[MOST], sum = 0.0;
  rt_gram(spread, n, r->filter.size, r->filter.step, covariance);
  for (int j = 0; j < n; j++) {
    covariance[j * n + j] += less(noise[j], r->noise[j]) * (factor > 1.0 ? factor : 1.0) + less(total[j], r->total[j]);
    white[j] = innovation[j];
  }
  rt_cholesky(covariance, n);
  rt_forward_substitute(covariance, n, white);
  for (int j = 0; j < n; j++) sum += white[j] * white[j];
  return sum;
}

/* Mass beyond the ideal last link's that can be put down, as far as the estimate knows [kg]. */
static double carried(const rt_core *core) {
  const rt_model *model = core->model;
  const int last = 10 * (model->robot.n - 1);
  double joint[MOST * RT_PER_JOINT], inertial[10 * MOST];
  rt_unknowns(model, core->recursive.filter.mean, joint, inertial);
  const double mass = inertial[last] - model->robot.inertial[last];
  return model->defaults.carried_share * (mass > 0.0 ? mass : 0.0) + model->defaults.carried_mass;
}

/* Add independent doubt to the unknowns: columns (size, count) that lie behind the root's in the work space. */
static void widen(rt_core *core, int count) {
  rt_filter *f = &core->recursive.filter;
  const int stride = core->defaults.work_stride;
  double *work = core->defaults.work;
  for (int i = 0; i < f->size; i++) memcpy(work + i * stride, f->root + i * f->step, sizeof(double) * (size_t)f->step);
  rt_triangle(work, f->size, f->step + count, stride);
  memset(f->root, 0, root_bytes(f));
  for (int i = 0; i < f->size; i++)
    memcpy(f->root + i * f->step, work + i * stride, sizeof(double) * (size_t)(i + 1));
}

/* The distance of an equation from the estimate as it is now. */
static double distance_now(rt_core *core, const rt_equation *e) {
  double expected[MOST], left[MOST];
  rt_predict(core->model, &core->recursive.filter, e->rows, expected, core->defaults.old_spread);
  for (int j = 0; j < core->model->robot.n; j++) left[j] = e->torque[j] - e->prior[j] - expected[j];
  return distance_of(core, left, core->defaults.old_spread, e->factor);
}

/* Evidence must have lasted to count. */
double rt_default_evidence(const rt_core *core) {
  const rt_default *d = &core->model->defaults;
  double least = core->recursive.state->evidence;
  if (core->defaults.state->kept < d->delayed) return least;
  for (int k = d->snapshots - d->delayed; k < d->snapshots; k++) least = less(least, core->defaults.old_evidence[k]);
  return least;
}

/* Whether the robot has shown that nothing is hidden. */
static int looks_ideal(const rt_core *core) {
  return core->defaults.state->kept >= core->model->defaults.delayed && rt_default_evidence(core) < 0.0;
}

/* So much speaks for it that something is hidden, and has for a while. */
static void hold_evidence(rt_core *core, double evidence) {
  core->recursive.state->evidence = evidence;
  for (int k = 0; k < core->model->defaults.snapshots; k++) core->defaults.old_evidence[k] = evidence;
}

/* How much noisier the window of an equation is than a full one. */
static double shorter(const rt_core *core, const rt_equation *e) {
  const double factor = e->factor / core->model->defaults.full_factor;
  return factor > 1.0 ? factor : 1.0;
}

/* Learn how far equations are from the ideal robot's while a robot looks like it. */
static void learn_mismatch(rt_core *core, const rt_equation *e) {
  rt_default_part *p = &core->defaults;
  if (!(e->accepted && looks_ideal(core) && core->recursive.state->evidence < 0.0)) return;
  p->state->mismatches += 1.0;
  const double first = 1.0 / p->state->mismatches, usual = core->model->defaults.mismatch_share;
  const double rate = first > usual ? first : usual;
  for (int j = 0; j < core->model->robot.n; j++) {
    const double left = e->torque[j] - e->ideal[j];
    p->mismatch[j] += rate * (left * left / shorter(core, e) - p->mismatch[j]);
  }
}

/* What has changed is the robot's own: move the estimate there, give it doubt about it, and go on learning, unless even
 * the equation of now is not explained by it. */
static void open_to(rt_core *core, int verdict, const rt_equation *e) {
  rt_default_part *p = &core->defaults;
  rt_filter *f = &core->recursive.filter;
  const rt_filter undo = undo_of(core);
  double *shift = p->old_spread; /* (size), before anything else needs it */
  const int count = rt_explanations_opening(core, verdict, shift, p->work + f->step, p->work_stride);
  copy(f, &undo);
  for (int k = 0; k < f->size; k++) f->mean[k] += shift[k];
  widen(core, count);
  if (distance_now(core, e) > core->model->defaults.clear) {
    copy(&undo, f);
    p->state->refuted += 1.0;
    return;
  }
  p->state->own_since = 0.0;
  p->state->undo_evidence = rt_default_evidence(core);
  hold_evidence(core, core->model->defaults.own_odds);
  copy_to_kept(core);
  p->state->disputed = 0;
}

/* The unknowns of a touch are others than before: back to their prior, others kept. */
static void renew_touch(rt_core *core) {
  rt_filter *f = &core->recursive.filter;
  const int stride = core->defaults.work_stride, keep = f->size - core->model->defaults.touch;
  double *work = core->defaults.work;
  for (int i = 0; i < keep; i++) memcpy(work + i * stride, f->root + i * f->step, sizeof(double) * (size_t)f->step);
  rt_triangle(work, keep, f->step, stride);
  rt_filter_prior_root(f);
  for (int i = 0; i < keep; i++)
    memcpy(f->root + i * f->step, work + i * stride, sizeof(double) * (size_t)(i + 1));
  for (int k = keep; k < f->size; k++) f->mean[k] = 0.0;
}

/* Learn on under a touch that lasts, any torques at the joints among the unknowns: what they cannot follow, as friction
 * that turns with the motion, is the robot's own. */
static void learn_touched(rt_core *core, const rt_equation *e) {
  const rt_model *model = core->model;
  const rt_default *d = &model->defaults;
  rt_default_state *s = core->defaults.state;
  rt_recursive_part *r = &core->recursive;
  const int n = model->robot.n, size = r->filter.size, first = size - d->touch, stride = core->defaults.work_stride;
  const int ready = s->disputed && s->disputed_for > d->touched && s->rest < d->rest;
  if (ready && !s->under_touch) renew_touch(core);
  s->under_touch = ready || (s->under_touch && s->disputed);
  if (!ready) return;
  s->walked++;
  if (s->walked % d->walk_every == 0) {
    const double far = d->walk * sqrt(d->walk_every * step_of(model));
    for (int i = 0; i < size; i++)
      for (int k = 0; k < d->touch; k++)
        core->defaults.work[i * stride + r->filter.step + k] = i == first + k ? far : 0.0;
    widen(core, d->touch);
  }
  double expected[MOST], innovation[MOST], noise[MOST], *rows = r->old_rows;
  memcpy(rows, e->rows, sizeof(double) * (size_t)(n * size));
  for (int j = 0; j < n; j++) /* torque for each prior standard deviation of the touch */
    for (int k = 0; k < d->touch; k++)
      rows[j * size + first + k] = j == k ? -d->touch_size * model->recursive.strength[j] : 0.0;
  rt_predict(model, &r->filter, rows, expected, core->defaults.old_spread);
  for (int j = 0; j < n; j++) {
    innovation[j] = e->torque[j] - e->prior[j] - expected[j];
    noise[j] = r->noise[j] * e->factor + r->total[j];
  }
  rt_filter_update(model, &r->filter, innovation, rows, core->defaults.old_spread, noise, &r->scratch, 0);
  rt_constrain(core);
}

/* Whether velocity that is lacking may be the robot's own, or a push: what came at once, or may. */
static int counts(const rt_core *core) {
  const rt_default *d = &core->model->defaults;
  const rt_default_state *s = core->defaults.state;
  if (s->rest >= d->rest) return 0;
  return s->disputed ? s->watched == 0.0 && s->disputed_for < d->counted : s->held;
}

/* Whether it has just turned out to be the robot's own. */
static int makes_good(const rt_core *core) {
  const rt_default *d = &core->model->defaults;
  const rt_default_state *s = core->defaults.state;
  return s->own_since <= d->made_good && !s->disputed && s->rest < d->rest;
}

/* Whether the velocity that the robot lacks is forgotten, counted, or fed back: where nothing may be a touch. */
double rt_default_follow(const rt_core *core) {
  const rt_default_state *s = core->defaults.state;
  const int yields = s->disputed || s->held || s->rest >= core->model->defaults.rest;
  if (makes_good(core)) return RT_ACTS;
  if (counts(core)) return RT_COUNTS;
  return yields || s->pause > 0.0 ? RT_ANEW : RT_ACTS;
}

/* The share of velocity feedback that counts: as much as the estimate, but all of it before there is any evidence. */
double rt_default_backing(const rt_core *core, double trust) {
  return core->defaults.state->kept < core->model->defaults.delayed ? 1.0 : trust;
}

/* Let the explanations compete, and act on what is certain. */
static void weigh_dispute(rt_core *core, const rt_equation *e, const double *innovation, const double *spread,
                          double distance, int usable) {
  const rt_model *model = core->model;
  const rt_default *d = &model->defaults;
  rt_default_state *s = core->defaults.state;
  const rt_recursive_part *r = &core->recursive;
  const int n = model->robot.n;
  s->disputed_for += step_of(model);
  double expected[MOST], brief_left[MOST], weight = d->weight;
  rt_equation brief;
  if (s->disputed_for <= d->straddle && s->disputed_for > d->brief_from) { /* a window that begins after the change */
    brief.rows = r->old_rows;
    rt_averaged_equation(model, &core->history, RT_TAKE(core->history.state->total), d->brief_samples, &brief);
    rt_predict(model, &r->filter, brief.rows, expected, core->defaults.old_spread);
    for (int j = 0; j < n; j++) brief_left[j] = brief.torque[j] - brief.prior[j] - expected[j];
    e = &brief;
    innovation = brief_left;
    spread = core->defaults.old_spread;
    weight = d->brief_weight;
    usable = brief.accepted;
  }
  if (usable && s->disputed_for > d->brief_from) {
    double noise[MOST * MOST], ideal_left[MOST];
    const int ideal = looks_ideal(core);
    if (ideal) { /* a robot that hides nothing is known better than any estimate of it */
      memset(noise, 0, sizeof(double) * (size_t)(n * n));
      for (int j = 0; j < n; j++) {
        const double floor = d->mismatch_floor[j], variance = core->defaults.mismatch[j];
        noise[j * n + j] = shorter(core, e) * (variance > floor ? variance : floor);
        ideal_left[j] = e->torque[j] - e->ideal[j];
      }
      innovation = ideal_left;
    } else {
      rt_gram(spread, n, r->filter.size, r->filter.step, noise);
      for (int j = 0; j < n; j++) noise[j * n + j] += r->noise[j] * (e->factor > 1.0 ? e->factor : 1.0) + r->total[j];
    }
    rt_explanations_take(core, e, innovation, noise, weight);
    const double asked = ideal ? d->sure : d->certain;
    const double least = asked * (1.0 + s->disputed_for / d->patience) * pow(3.0, s->refuted);
    const int verdict = rt_explanations_verdict(core, least, carried(core));
    /* who stands still may be leaning on something, and what came slowly may still be growing */
    if (verdict > -2 && s->rest < d->rest && s->disputed_for > s->watched) open_to(core, verdict, e);
    s->refuted += rt_explanations_renew(core);
    learn_touched(core, e);
  }
  s->unseen_for = r->state->touching ? 0.0 : s->unseen_for + step_of(model);
  s->lately += d->lately_share * ((distance < 2.0 * d->suspect ? distance : 2.0 * d->suspect) - s->lately);
  const int small = distance < (s->fastest > d->quick ? d->suspect : d->surprised) && s->lately < d->lately;
  const int unseen = small && s->unseen_for > d->unseen;
  const int gone = (distance < d->clear && rt_explanations_over(core)) || unseen;
  const int over = s->disputed && !r->state->touching && gone;
  s->calm_for = over ? s->calm_for + step_of(model) : 0.0;
  if (s->disputed && s->calm_for >= d->calm) {
    s->refuted = 0.0;
    s->disputed = 0;
  }
}

static void note_rest(rt_core *core) {
  const rt_model *model = core->model;
  const rt_default *d = &model->defaults;
  const int n = model->robot.n, samples = model->recursive.samples;
  const int64_t total = RT_TAKE(core->history.state->total);
  rt_default_state *s = core->defaults.state;
  double farthest = 0.0;
  s->fastest = 0.0;
  for (int j = 0; j < n; j++) {
    double mean = 0.0, way = 0.0, *drift = core->defaults.drift + j;
    for (int k = 1; k <= samples; k++) {
      const double velocity = rt_history_row(&core->history, total - k)[n + j];
      mean += fabs(velocity);
      way += velocity;
    }
    mean /= samples;
    *drift += d->drift_share * (way / samples - *drift);
    s->fastest = mean > s->fastest ? mean : s->fastest;
    farthest = fabs(*drift) > farthest ? fabs(*drift) : farthest;
  }
  const int trembles = s->kept >= d->settled && farthest < d->still;
  s->rest = s->fastest < d->still || trembles ? s->rest + step_of(model) : 0.0;
}

/* Remember the estimate now and then, where nothing is disputed. */
static void keep_snapshots(rt_core *core) {
  const rt_default *d = &core->model->defaults;
  rt_default_part *p = &core->defaults;
  const rt_recursive_part *r = &core->recursive;
  const int n = core->model->robot.n, last = d->snapshots - 1;
  p->state->since_snapshot += step_of(core->model);
  if (p->state->since_snapshot < d->snapshot_every) return;
  p->state->since_snapshot = 0.0;
  if (p->state->disputed) return;
  p->state->kept++;
  for (int age = 0; age < last; age++) {
    const rt_filter from = kept(core, age + 1), to = kept(core, age);
    copy(&from, &to);
    p->old_evidence[age] = p->old_evidence[age + 1];
    memcpy(p->old_sizes + age * 2 * n, p->old_sizes + (age + 1) * 2 * n, sizeof(double) * (size_t)(2 * n));
  }
  const rt_filter newest = kept(core, last);
  copy(&r->filter, &newest);
  p->old_evidence[last] = r->state->evidence;
  memcpy(p->old_sizes + last * 2 * n, r->noise, sizeof(double) * (size_t)n);
  memcpy(p->old_sizes + (last * 2 + 1) * n, r->total, sizeof(double) * (size_t)n);
}

/* What a touch adds to the residuals is neither noise nor, where it crept in, evidence: back to before. */
static void forget_noise(rt_core *core, int crept) {
  rt_recursive_part *r = &core->recursive;
  const int n = core->model->robot.n;
  if (crept) r->state->evidence = core->defaults.old_evidence[0];
  for (int j = 0; j < n; j++) {
    r->noise[j] = less(core->defaults.old_sizes[j], r->noise[j]);
    r->total[j] = less(core->defaults.old_sizes[n + j], r->total[j]);
  }
}

/* Whether a robot that has looked like the ideal one is so no more. */
static int turns(rt_core *core, int moving) {
  const rt_default *d = &core->model->defaults;
  rt_default_state *s = core->defaults.state;
  const int hidden = core->recursive.state->evidence > 0.0;
  const double step = step_of(core->model);
  s->hidden_for = hidden ? s->hidden_for + step : 0.0;
  if (!hidden) s->ideal_for += step;
  if (!hidden && moving) s->ideal_run += step;
  if (s->hidden_for > d->turns) s->ideal_run = 0.0;
  return hidden && s->hidden_for <= d->turns && s->ideal_run > d->ideal_run;
}

/* Decide what an equation is worth; `innovation` and `spread` may be made anew. */
void rt_screen_default(rt_core *core, rt_equation *e, double *innovation, double *spread) {
  const rt_model *model = core->model;
  const rt_default *d = &model->defaults;
  rt_default_part *p = &core->defaults;
  rt_default_state *s = p->state;
  rt_recursive_part *r = &core->recursive;
  const int n = model->robot.n, step = r->filter.step, usable = e->accepted;
  double expected[MOST], old[MOST];
  for (int j = 0; j < n; j++) {
    double variance = 0.0;
    for (int k = 0; k < step; k++) variance += spread[j * step + k] * spread[j * step + k];
    r->uncertain[j] = sqrt(variance);
  }
  double distance = distance_of(core, innovation, spread, e->factor);
  const double at_first = distance;
  const rt_filter oldest = kept(core, 0), undo = undo_of(core);
  rt_predict(model, &oldest, e->rows, expected, p->old_spread);
  for (int j = 0; j < n; j++) old[j] = e->torque[j] - e->prior[j] - expected[j];
  const double before = distance_of(core, old, p->old_spread, e->factor);
  const int ripe = s->kept >= d->snapshots; /* else the oldest estimate is nothing but the prior */
  const int moving = s->fastest > d->quick && s->rest == 0.0, seen = r->state->touching && distance > d->pushed;
  const int creeping = ripe && before > d->creeping && (!moving || r->state->touching);
  s->held = seen && moving;
  const int shared = r->state->touching || before > d->surprised || (ripe && !moving);
  const int sudden = (distance > d->suspect && shared) || (seen && !s->held);
  const int settled = s->own_since > d->straddle; /* else equations average over the correction's own jump */
  const int turned = turns(core, s->fastest > d->shows && s->rest == 0.0) && s->own_since > d->probation;
  const int begins = usable && !s->disputed && (sudden || creeping || turned) && settled;
  const int wrong = begins && s->own_since < d->probation;
  const int lasts = s->disputed && fabs(s->disputed_for - d->lasting) < 0.5 * step_of(model);
  if (wrong) { /* the last explanation is taken back */
    copy(&undo, &r->filter);
    copy_to_kept(core);
    hold_evidence(core, s->undo_evidence);
    s->refuted += 1.0;
    s->own_since = INFINITY;
  }
  const int astray = s->disputed && s->under_touch && distance > before + d->suspect;
  if (astray) {
    s->under_touch = 0;
    s->disputed_for = d->touched - d->again;
  }
  if ((begins && !sudden && !wrong) || astray) copy(&oldest, &r->filter); /* what was learnt since is taken back */
  if (lasts && ripe) {
    const rt_filter earlier = kept(core, d->sudden);
    copy(&earlier, &r->filter);
  }
  if (begins) forget_noise(core, !sudden);
  if (begins && s->kept < d->delayed && s->hidden_for <= d->convinced && s->ideal_for > d->ideal)
    r->state->evidence = less(r->state->evidence, p->old_evidence[0]); /* it was the push itself */
  if (begins || lasts || astray) {
    rt_predict(model, &r->filter, e->rows, expected, spread);
    for (int j = 0; j < n; j++) innovation[j] = e->torque[j] - e->prior[j] - expected[j];
    distance = distance_of(core, innovation, spread, e->factor);
  }
  if (begins) {
    rt_explanations_restart(core);
    s->disputed_for = s->calm_for = s->unseen_for = 0.0;
    if (!wrong) s->watched = s->rising_for <= d->abrupt && at_first > d->suspect ? 0.0 : d->watched;
    s->lately = 2.0 * d->suspect;
    s->under_touch = 0;
    s->disputed = 1;
  }
  if (s->disputed) weigh_dispute(core, e, innovation, spread, distance, usable);
  s->rising_for = at_first > d->rising ? s->rising_for + step_of(model) : 0.0;
  s->own_since += step_of(model);
  if (!s->disputed && s->own_since > d->probation) s->refuted = 0.0; /* it stood */
  note_rest(core);
  const int dropped = s->counted && !counts(core) && !makes_good(core);
  s->pause = dropped ? d->pause : s->pause > step_of(model) ? s->pause - step_of(model) : 0.0;
  s->counted = counts(core);
  r->state->contact = s->disputed;
  e->accepted = e->accepted && !s->disputed && !s->held && s->rest < d->rest && s->own_since > d->straddle;
  learn_mismatch(core, e);
  keep_snapshots(core);
  r->state->health = s->disputed ? RT_SURPRISED : 0;
}

/* How far the network's word no longer counts, from 0 to 1. */
static double oldness(const rt_core *core) {
  const rt_default *d = &core->model->defaults;
  const rt_default_state *s = core->defaults.state;
  return s->disputed ? rt_clip((s->disputed_for - d->young_from) / (d->young_to - d->young_from), 0.0, 1.0) : 0.0;
}

/* After the network's answer: what lasts from outside is what the estimate misses. */
void rt_default_answer(rt_core *core) {
  const rt_model *model = core->model;
  const rt_default *d = &model->defaults;
  const rt_residual *x = &model->residual;
  rt_recursive_part *r = &core->recursive;
  const rt_default_state *s = core->defaults.state;
  const double old = oldness(core), period = x->block * model->timestep;
  const double share = s->disputed ? d->felt_share + (1.0 - d->felt_share) * old : 0.0;
  const double units = (s->disputed || s->held || s->rest >= d->rest ? d->budget : x->most_own) * (1.0 - old);
  for (int j = 0; j < model->robot.n; j++) {
    double *felt = core->defaults.felt + j, *rate = felt + model->robot.n;
    const double most = d->most_felt * model->recursive.strength[j], own = units * x->unit[j];
    if (r->state->unsound == 0) { /* what grows steadily is followed without a lag */
      const double ahead = *felt + period * *rate, error = -r->ring[j] - ahead;
      *felt = ahead + (1.0 - d->felt_fade * d->felt_fade) * error;
      *rate += (1.0 - d->felt_fade) * (1.0 - d->felt_fade) / period * error;
    } else {
      if (r->state->unsound == x->fine) *felt *= d->felt_kept; /* what nobody feels is not yielded to */
      *rate = 0.0;
    }
    if (!s->disputed && !s->held) r->pushed[j] = 0.0; /* the estimate has the last word */
    r->pushed[j] += share * (rt_clip(*felt + d->felt_lead * *rate, -most, most) - r->pushed[j]);
    r->own[j] = rt_clip(r->own[j], -own, own);
  }
  rt_limit_share(core, r->pushed);
}
