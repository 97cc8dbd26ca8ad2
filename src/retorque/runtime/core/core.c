/* A core: its memory laid out, and the adapter's calls dispatched. */
#include "internal.h"

/* Hands out parts of a block of memory; without one it only counts. */
typedef struct {
  unsigned char *base;
  size_t used;
} carver;

static void *carve(carver *c, size_t bytes) {
  void *part = c->base == NULL ? NULL : c->base + c->used;
  c->used += (bytes + 63) / 64 * 64;
  return part;
}

static double *numbers(carver *c, size_t count) { return (double *)carve(c, count * sizeof(double)); }
static float *floats(carver *c, size_t count) { return (float *)carve(c, count * sizeof(float)); }

static int recursive_kind(const rt_model *m) {
  return m->adapter == RT_RECURSIVE || m->adapter == RT_RECURSIVE_CONTACT || rt_has_network(m);
}

int rt_belief_size(const rt_model *model) {
  if (recursive_kind(model)) return rt_layout_of(model).size;
  if (model->adapter == RT_TAM) return 1 + model->robot.n * (model->tam.latent + 1);
  return 1;
}

static void lay_out_recursive(const rt_model *m, rt_recursive_part *p, carver *c) {
  const rt_recursive *r = &m->recursive;
  const size_t n = (size_t)m->robot.n, size = (size_t)r->size, step = (size + 7) / 8 * 8;
  p->state = (rt_recursive_state *)carve(c, sizeof(rt_recursive_state));
  p->filter.size = r->size;
  p->filter.step = (int)step;
  p->filter.mean = numbers(c, step);
  p->filter.root = numbers(c, (size + 3) / 4 * 4 * step);
  p->noise = numbers(c, n);
  p->torque = numbers(c, n);
  p->doubt = numbers(c, n);
  p->persistent = numbers(c, n);
  p->neighbours = numbers(c, n);
  p->total = numbers(c, n);
  p->residuals = numbers(c, (size_t)r->apart * n);
  p->used = (unsigned char *)carve(c, (size_t)r->apart);
  p->external = numbers(c, n);
  p->external_rate = numbers(c, n);
  p->estimate = numbers(c, (size_t)rt_layout_of(m).size);
  p->rows = numbers(c, n * size);
  p->old_rows = numbers(c, n * size);
  p->waiting = numbers(c, m->adapter == RT_RECURSIVE_CONTACT ? (size_t)r->delay * (3 * n + 2 + n * size) : 0);
  p->scratch.spread = numbers(c, n * step);
  p->scratch.lanes = numbers(c, (n + RT_LANES - 1) / RT_LANES * step * RT_LANES);
  p->scratch.blank = numbers(c, n * size);
  if (!rt_has_network(m)) return;
  const rt_residual *x = &m->residual;
  p->before = numbers(c, 3 * n);
  p->ring = numbers(c, (size_t)(x->fine + x->coarse[0] + x->coarse[1] + x->coarse[2]) * n);
  p->velocities = numbers(c, 4 * n);
  p->roughness = numbers(c, n);
  p->pushed = numbers(c, n);
  p->own = numbers(c, n);
  p->uncertain = numbers(c, n);
  p->push_sizes = numbers(c, (size_t)x->memory);
}

static void lay_out_default(const rt_model *m, rt_default_part *p, carver *c) {
  const rt_default *d = &m->defaults;
  const size_t n = (size_t)m->robot.n, size = (size_t)m->recursive.size, step = (size + 7) / 8 * 8;
  const size_t kept = (size_t)d->snapshots, explanations = 6 + n, doubts = (size_t)d->payload_doubts;
  size_t means = 0, covariances = 0;
  for (size_t k = 0; k < explanations; k++) {
    means += (size_t)d->counts[k];
    covariances += (size_t)(d->counts[k] * d->counts[k]);
  }
  p->state = (rt_default_state *)carve(c, sizeof(rt_default_state));
  p->old_means = numbers(c, kept * step);
  p->old_roots = numbers(c, kept * size * step);
  p->old_evidence = numbers(c, kept);
  p->old_sizes = numbers(c, kept * 2 * n);
  p->undo_mean = numbers(c, step);
  p->undo_root = numbers(c, size * step);
  p->felt = numbers(c, 2 * n);
  p->drift = numbers(c, n);
  p->mismatch = numbers(c, n);
  p->ideal_velocity = numbers(c, n);
  p->ideal_acceleration = numbers(c, n);
  p->asked = numbers(c, n);
  p->nominal = numbers(c, n);
  p->asked_error = numbers(c, n);
  p->nominal_error = numbers(c, n);
  p->ignored = numbers(c, n);
  p->feedback = numbers(c, n);
  p->ring_fast = numbers(c, n);
  p->ring_slow = numbers(c, n);
  p->ring_before = numbers(c, n);
  p->ring_earlier = numbers(c, n);
  p->ring_energy = numbers(c, n);
  p->ring_noise = numbers(c, n);
  p->means = numbers(c, means);
  p->covariances = numbers(c, covariances);
  p->evidence = numbers(c, explanations);
  p->recent = numbers(c, explanations);
  p->old_spread = numbers(c, n * step);
  p->work_stride = (int)((step + RT_PER_JOINT + RT_MOST_JOINTS + doubts + 7) / 8 * 8);
  p->work = numbers(c, size * (size_t)p->work_stride);
}

static void lay_out_tam(const rt_model *m, rt_core *core, carver *c) {
  const rt_tam *t = &m->tam;
  rt_tam_part *p = &core->tam;
  const size_t n = (size_t)m->robot.n, slow_rows = t->slow ? (size_t)(t->patch_rows / t->slow) : 0;
  const size_t cache = (size_t)(t->layers * t->columns) * n * (size_t)t->width;
  const size_t ticks = (size_t)(t->stride_rows * t->average + 2 * t->half_window);
  p->state = (rt_tam_state *)carve(c, sizeof(rt_tam_state));
  p->fast = floats(c, (size_t)t->patch_rows * n * (size_t)t->fast_size);
  p->slow = floats(c, slow_rows * n * (size_t)t->slow_size);
  p->keys = numbers(c, cache);
  p->values = numbers(c, cache);
  p->latent = numbers(c, n * (size_t)t->latent);
  p->trim = numbers(c, n);
  p->work = numbers(c, n * (size_t)(8 * t->width + 2 * t->wide + t->columns + t->latent) + (size_t)(t->patch_rows * t->fast_size) * n +
                          slow_rows * (size_t)t->slow_size * n);
  p->raw = numbers(c, ticks * (3 * n + 1) + (size_t)t->stride_rows * (4 * n + 1));
  for (int k = 0; k <= RT_BELIEFS; k++) {
    rt_modulation *mod = core->modulation + k;
    mod->gain = numbers(c, (size_t)(t->depth * t->hidden) * n);
    mod->shift = numbers(c, (size_t)(t->depth * t->hidden) * n);
    mod->coefficients = numbers(c, (size_t)t->basis_rows * n);
    mod->jump_middle = numbers(c, n);
    mod->jump_half = numbers(c, n);
  }
}

static void lay_out_guard(const rt_model *m, rt_guard *g, carver *c) {
  const rt_supervisor *s = &m->supervisor;
  const size_t n = (size_t)m->robot.n, points = (size_t)s->points;
  double **rows[] = {&g->offset, &g->error,  &g->slip_error, &g->start_torque, &g->gain,        &g->ramp,
                     &g->bad_for, &g->at_limit, &g->rested,  &g->whole_gain,   &g->left,        &g->anchor, &g->unloaded,
                     &g->nominal_gain, &g->coast, &g->last_position, &g->earlier_position,
                     &g->restless, &g->usual, &g->leap, &g->missed_lasting, &g->window_torque,
                     &g->window_left, &g->window_correction, &g->last,         &g->last_nominal,
                     &g->mean_velocity, &g->drift, &g->moved, &g->pace, &g->own, &g->weight};
  double **pairs[] = {&g->level, &g->raw, &g->rebuilt, &g->sums, &g->squares};
  double **triples[] = {&g->now, &g->expected, &g->before, &g->from, &g->shown, &g->window_motion};
  int64_t **counters[] = {&g->slipping, &g->waiting, &g->lost, &g->same_q, &g->same_v, &g->still, &g->contrary};
  unsigned char **flags[] = {&g->suspect, &g->fault, &g->distrusted, &g->blind, &g->dead,
                            &g->stopped, &g->leapt, &g->tripped, &g->known};
  g->state = (rt_guard_state *)carve(c, sizeof(rt_guard_state));
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) *rows[k] = numbers(c, n);
  for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++) *pairs[k] = numbers(c, 2 * n);
  for (size_t k = 0; k < sizeof triples / sizeof *triples; k++) *triples[k] = numbers(c, 3 * n);
  for (size_t k = 0; k < sizeof counters / sizeof *counters; k++)
    *counters[k] = (int64_t *)carve(c, n * sizeof(int64_t));
  for (size_t k = 0; k < sizeof flags / sizeof *flags; k++) *flags[k] = (unsigned char *)carve(c, n);
  g->ring = numbers(c, (size_t)s->torque_ticks * n);
  g->jacobian = numbers(c, points * 3 * n);
  g->inverse = numbers(c, points * 3 * n);
  g->missed = numbers(c, (size_t)(s->blind_before + 1) * n);
  g->missed_size = numbers(c, n * n);
  g->place_covariance = numbers(c, 4 * n * n);
  g->work = numbers(c, 18 * n * n);
}

static size_t lay_out(const rt_model *m, rt_core *core, unsigned char *base) {
  carver c = {base, 0};
  const size_t n = (size_t)m->robot.n, capacity = (size_t)(m->history + RT_ROOM);
  core->current = (int64_t *)carve(&c, sizeof(int64_t));
  core->history.state = (rt_history_state *)carve(&c, sizeof(rt_history_state));
  core->history.rows = numbers(&c, capacity * 3 * n);
  core->history.valid = (unsigned char *)carve(&c, capacity);
  core->history.keep = m->history;
  core->history.capacity = (int)capacity;
  core->history.n = m->robot.n;
  core->belief_size = rt_belief_size(m);
  core->beliefs = numbers(&c, (size_t)(RT_BELIEFS * core->belief_size));
  if (recursive_kind(m)) {
    core->layout = rt_layout_of(m);
    lay_out_recursive(m, &core->recursive, &c);
  }
  if (m->adapter == RT_DEFAULT) lay_out_default(m, &core->defaults, &c);
  if (m->adapter == RT_TAM) lay_out_tam(m, core, &c);
  if (m->supervisor.active) lay_out_guard(m, &core->guard, &c);
  return c.used;
}

static size_t head_bytes(void) { return (sizeof(rt_core) + 63) / 64 * 64; }

size_t rt_memory_bytes(const rt_model *model) {
  rt_core nowhere;
  return lay_out(model, &nowhere, NULL);
}

size_t rt_model_bytes(void) { return sizeof(rt_model); }

size_t rt_bytes(const rt_model *model) { return head_bytes() + rt_memory_bytes(model); }

rt_core *rt_make(const rt_model *model, void *memory) {
  if (model->robot.n < 1 || model->robot.n > RT_MOST_JOINTS) return NULL;
  rt_core *core = (rt_core *)memory;
  memset(core, 0, rt_bytes(model));
  core->model = model;
  core->memory = (unsigned char *)memory + head_bytes();
  core->memory_bytes = lay_out(model, core, core->memory);
  rt_reset(core);
  return core;
}

void *rt_memory(rt_core *core) { return core->memory; }

int rt_learnt_of(rt_core *core, rt_learnt *learnt) {
  rt_recursive_part *p = &core->recursive;
  if (!recursive_kind(core->model)) return 0;
  learnt->size = p->filter.size;
  learnt->step = p->filter.step;
  learnt->mean = p->filter.mean;
  learnt->root = p->filter.root;
  learnt->noise = p->noise;
  learnt->torque = p->torque;
  learnt->doubt = p->doubt;
  learnt->persistent = p->persistent;
  learnt->neighbours = p->neighbours;
  learnt->total = p->total;
  learnt->evidence = &p->state->evidence;
  return 1;
}

void rt_learnt_changed(rt_core *core) {
  rt_refresh(core);
  rt_write_belief(core, core->beliefs + *core->current * core->belief_size);
}

void rt_reset(rt_core *core) {
  const rt_model *m = core->model;
  rt_history_reset(&core->history, m);
  *core->current = 0;
  memset(core->beliefs, 0, sizeof(double) * (size_t)(RT_BELIEFS * core->belief_size));
  if (recursive_kind(m)) {
    rt_recursive_reset(core);
    rt_write_belief(core, core->beliefs);
  }
  if (m->adapter == RT_TAM) rt_tam_reset(core);
  if (m->supervisor.active) rt_guard_reset(core);
}

void rt_carry(rt_core *core) {
  if (core->model->supervisor.active) core->guard.state->broken = 1;
}

void rt_observe(rt_core *core, double time, const double *position, const double *velocity, const double *torque) {
  if (core->model->supervisor.active)
    rt_guard_observe(core, time, position, velocity, torque);
  else
    rt_bare_observe(core, time, position, velocity, torque);
}

int rt_learn(rt_core *core, double *belief) {
  if (core->model->supervisor.active) {
    if (!core->guard.state->fresh) return 0; /* the same samples twice would count twice */
    core->guard.state->fresh = 0;
  }
  return rt_bare_learn(core, belief);
}

void rt_bare_observe(rt_core *core, double time, const double *position, const double *velocity, const double *torque) {
  if (core->model->adapter == RT_DIRECT) return;
  const int64_t before = core->history.state->total;
  rt_history_add(&core->history, core->model, time, position, velocity, torque);
  const int64_t fresh = core->history.state->total - before;
  if (core->model->adapter != RT_DEFAULT || fresh == 0) return;
  if (fresh > 1) rt_feedback_reset(core); /* reports are missing */
  rt_feedback_observe(core, position, velocity, torque);
}

int rt_bare_learn(rt_core *core, double *belief) {
  const rt_model *m = core->model;
  int fresh = 0;
  if (m->adapter == RT_TAM) {
    fresh = rt_tam_learn(core);
    if (fresh) {
      const int numbers_of_latent = m->robot.n * m->tam.latent;
      belief[0] = core->history.state->time;
      for (int k = 0; k < numbers_of_latent; k++) belief[1 + k] = core->tam.latent[k];
      memcpy(belief + 1 + numbers_of_latent, core->tam.trim, sizeof(double) * (size_t)m->robot.n);
    }
    return fresh;
  }
  if (rt_has_network(m))
    fresh = rt_residual_learn(core);
  else if (recursive_kind(m))
    fresh = rt_recursive_learn(core);
  if (fresh) rt_write_belief(core, belief);
  return fresh;
}

void rt_adopt(rt_core *core, const double *belief) {
  const rt_model *m = core->model;
  const int64_t now = *core->current, next = (now + 1) % RT_BELIEFS;
  double *slot = core->beliefs + next * core->belief_size;
  if (m->adapter == RT_TAM) {
    const int count = m->robot.n * m->tam.latent;
    const double *before = core->beliefs + now * core->belief_size;
    rt_modulation *mod = core->modulation + next;
    if (memcmp(before + 1, belief + 1, sizeof(double) * (size_t)count) == 0) { /* only the trim is new */
      const size_t wide = sizeof(double) * (size_t)(m->tam.depth * m->tam.hidden * m->robot.n);
      memcpy(mod->gain, core->modulation[now].gain, wide);
      memcpy(mod->shift, core->modulation[now].shift, wide);
      memcpy(mod->coefficients, core->modulation[now].coefficients,
             sizeof(double) * (size_t)(m->tam.basis_rows * m->robot.n));
      memcpy(mod->jump_middle, core->modulation[now].jump_middle, sizeof(double) * (size_t)m->robot.n);
      memcpy(mod->jump_half, core->modulation[now].jump_half, sizeof(double) * (size_t)m->robot.n);
    } else {
      rt_modulate(m, belief + 1, mod);
    }
  }
  memcpy(slot, belief, sizeof(double) * (size_t)core->belief_size);
  RT_PUBLISH(*core->current, next);
  if (m->supervisor.active) RT_PUBLISH(core->guard.state->age, (int64_t)0);
}

void rt_correct(rt_core *core, double time, const double *position, const double *velocity, const double *nominal,
                double *torque) {
  if (core->model->supervisor.active)
    rt_guard_correct(core, nominal, torque);
  else
    rt_bare_correct(core, time, position, velocity, nominal, torque);
}

void rt_bare_correct(rt_core *core, double time, const double *position, const double *velocity, const double *nominal,
                     double *torque) {
  const rt_model *m = core->model;
  const int64_t now = RT_TAKE(*core->current);
  const double *belief = core->beliefs + now * core->belief_size;
  if (recursive_kind(m))
    rt_recursive_correct(core, belief, time, position, velocity, nominal, torque);
  else if (m->adapter == RT_TAM)
    rt_tam_correct(core, belief, core->modulation + now, nominal, torque);
  else
    memmove(torque, nominal, sizeof(double) * (size_t)m->robot.n);
}

int64_t rt_bare_health(const rt_core *core) {
  return recursive_kind(core->model) ? core->recursive.state->health : 0;
}

int64_t rt_health(const rt_core *core) {
  return core->model->supervisor.active ? core->guard.state->health : rt_bare_health(core);
}

const double *rt_correction(const rt_core *core) { return core->guard.last; }
const double *rt_gain(const rt_core *core) { return core->guard.whole_gain; }
const int64_t *rt_counts(const rt_core *core) { return core->guard.state->counts; }
const double *rt_score(const rt_core *core) { return core->guard.squares; }
const int64_t *rt_score_samples(const rt_core *core) { return &core->guard.state->samples; }

void rt_batch_reset(rt_batch *b) {
  for (int k = 0; k < b->count; k++) {
    rt_reset(b->cores[k]);
    b->health[k] = 0;
  }
}

void rt_batch_carry(rt_batch *b) {
  for (int k = 0; k < b->count; k++) rt_carry(b->cores[k]);
}

void rt_batch_observe(rt_batch *b) {
  const int n = b->cores[0]->model->robot.n;
  for (int k = 0; k < b->count; k++)
    rt_observe(b->cores[k], *b->time, b->position + k * n, b->velocity + k * n, b->torque + k * n);
}

int rt_batch_learn(rt_batch *b, double *beliefs) {
  int fresh = 0; /* all cores have seen the same clock: they are due together */
  for (int k = 0; k < b->count; k++) {
    fresh = rt_learn(b->cores[k], beliefs + k * b->cores[k]->belief_size) || fresh;
    if (!b->cores[k]->model->supervisor.active) b->health[k] = rt_health(b->cores[k]);
  }
  return fresh;
}

void rt_batch_adopt(rt_batch *b, const double *beliefs) {
  for (int k = 0; k < b->count; k++) rt_adopt(b->cores[k], beliefs + k * b->cores[k]->belief_size);
}

void rt_batch_correct(rt_batch *b) {
  const int n = b->cores[0]->model->robot.n;
  for (int k = 0; k < b->count; k++) {
    rt_correct(b->cores[k], *b->time, b->position + k * n, b->velocity + k * n, b->nominal + k * n, b->sent + k * n);
    b->health[k] = rt_health(b->cores[k]);
  }
}
