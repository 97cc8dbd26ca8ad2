/* The network of tam-recursive: it reads what the estimate leaves unexplained, and says push or own. */
#include "internal.h"

enum { MOST_NUMBERS = 128 }; /* of a joint's features, or of a hidden layer */

static int depth_of(const rt_residual *r) { return r->fine + r->coarse[0] + r->coarse[1] + r->coarse[2]; }

void rt_residual_reset(rt_core *core) {
  const rt_residual *r = &core->model->residual;
  rt_recursive_part *p = &core->recursive;
  const int n = core->model->robot.n;
  memset(p->ring, 0, sizeof(double) * (size_t)(depth_of(r) * n));
  memset(p->before, 0, sizeof(double) * (size_t)(3 * n));
  memset(p->velocities, 0, sizeof(double) * (size_t)(4 * n));
  memset(p->push_sizes, 0, sizeof(double) * (size_t)r->memory);
  for (int j = 0; j < n; j++) {
    p->roughness[j] = r->unit[j] * r->unit[j];
    p->pushed[j] = p->own[j] = 0.0;
    p->uncertain[j] = r->unit[j];
  }
}

/* End the newest block; 1 where there is a new residual. */
static int close_block(rt_core *core, int64_t total) {
  const rt_model *model = core->model;
  const rt_residual *r = &model->residual;
  rt_recursive_part *p = &core->recursive;
  const int n = model->robot.n, depth = depth_of(r);
  p->state->closed = total - (total - p->state->closed) % r->block;
  double now[3 * RT_MOST_JOINTS] = {0};
  int broken = 0;
  for (int k = 0; k < r->block; k++) {
    const int64_t index = p->state->closed - r->block + k;
    const double *row = rt_history_row(&core->history, index);
    for (int j = 0; j < 3 * n; j++) now[j] += row[j];
    broken = broken || !rt_history_valid(&core->history, index);
  }
  for (int j = 0; j < 3 * n; j++) now[j] /= r->block;
  if (broken)
    p->state->unsound = r->fine;
  else if (p->state->unsound > 0)
    p->state->unsound--;
  double middle[3 * RT_MOST_JOINTS], acceleration[RT_MOST_JOINTS], needed[RT_MOST_JOINTS];
  for (int j = 0; j < 3 * n; j++) middle[j] = 0.5 * (now[j] + p->before[j]);
  for (int j = 0; j < n; j++) acceleration[j] = (now[n + j] - p->before[n + j]) / (r->block * model->timestep);
  memcpy(p->before, now, sizeof(double) * (size_t)(3 * n));
  p->state->blocks++;
  if (p->state->blocks < 2) return 0;
  rt_pose pose[RT_MOST_JOINTS];
  rt_place(&model->robot, middle, pose);
  const double *given = model->adapter == RT_DEFAULT ? middle + 2 * n : NULL;
  rt_estimate_torque(core, p->estimate, pose, middle + n, acceleration, NULL, given, needed);
  memmove(p->velocities + n, p->velocities, sizeof(double) * (size_t)(3 * n));
  memcpy(p->velocities, now + n, sizeof(double) * (size_t)n);
  const double keep = exp(-r->block * model->timestep / r->noise_memory);
  for (int j = 0; j < n; j++) {
    const double residual = middle[2 * n + j] - needed[j], change = residual - p->ring[j];
    const double rough = 0.5 * change * change, most = 100.0 * r->unit[j] * r->unit[j];
    p->roughness[j] = keep * p->roughness[j] + (1.0 - keep) * (rough < most ? rough : most);
    needed[j] = residual;
  }
  memmove(p->ring + n, p->ring, sizeof(double) * (size_t)((depth - 1) * n));
  memcpy(p->ring, needed, sizeof(double) * (size_t)n);
  return 1;
}

/* The newest residuals one by one, averages of older ones, and the disturbance, (n, taps) [units]. */
static void write_taps(const rt_core *core, double *taps) {
  const rt_residual *r = &core->model->residual;
  const rt_recursive_part *p = &core->recursive;
  const int n = core->model->robot.n;
  for (int j = 0; j < n; j++) {
    double *out = taps + j * r->taps;
    for (int k = 0; k < r->fine; k++) out[k] = p->ring[k * n + j] / r->unit[j];
    int start = r->fine;
    for (int part = 0; part < 3; part++) {
      double sum = 0.0;
      for (int k = start; k < start + r->coarse[part]; k++) sum += p->ring[k * n + j];
      out[r->fine + part] = sum / r->coarse[part] / r->unit[j];
      start += r->coarse[part];
    }
    out[r->fine + 3] = p->torque[j] / r->unit[j];
  }
}

/* What the network sees, (n, features). */
static void write_features(const rt_core *core, const double *taps, float *out) {
  const rt_residual *r = &core->model->residual;
  const rt_recursive_part *p = &core->recursive;
  const int n = core->model->robot.n;
  const double *v = p->velocities;
  double recent[RT_MOST_JOINTS], energy = 0.0;
  for (int j = 0; j < n; j++) {
    const double noise = sqrt(p->roughness[j]) / r->unit[j];
    double mean = 0.0;
    for (int k = 0; k < r->fine; k++) mean += taps[j * r->taps + k];
    recent[j] = mean / r->fine / (noise / sqrt((double)r->fine) + 0.02);
    energy += recent[j] * recent[j] / n;
  }
  for (int j = 0; j < n; j++) {
    float *f = out + j * r->features;
    const double noise = sqrt(p->roughness[j]) / r->unit[j];
    for (int k = 0; k < r->taps; k++) *f++ = (float)asinh(taps[j * r->taps + k]);
    for (int k = 0; k < 4; k++) *f++ = (float)tanh(v[k * n + j] / 0.03);
    *f++ = (float)tanh(v[j] / 0.2);
    *f++ = (float)v[j];
    *f++ = (float)(v[j] - v[3 * n + j]);
    *f++ = (float)log(noise + 0.01);
    *f++ = (float)asinh(recent[j]);
    *f++ = (float)tanh((v[j] - v[3 * n + j]) / 0.03);
    *f++ = (float)asinh(energy);
    const double lasting = rt_lasting(p, j);
    *f++ = (float)log(p->uncertain[j] / r->unit[j] + 0.01);
    *f++ = (float)log(sqrt(lasting) / r->unit[j] + 0.01);
    *f++ = (float)log(sqrt(p->total[j]) / r->unit[j] + 0.01);
  }
}

/* A layer of all joints without its bias, (n, inputs) -> (n, outputs). */
static void layer(const double *weights, int inputs, int outputs, int n, const double *x, double *out) {
  memset(out, 0, sizeof(double) * (size_t)(n * outputs));
  rt_add_product(n, inputs, outputs, x, inputs, weights, outputs, out, outputs);
}

static void rectified(const double *x, int count, double *out) {
  for (int k = 0; k < count; k++) out[k] = x[k] > 0.0 ? x[k] : 0.0;
}

/* External and own torque (n) each [units]. */
static void ask(const rt_model *model, const float *seen, const double *taps, double *external, double *own) {
  const rt_residual *r = &model->residual;
  const int n = model->robot.n, h = r->hidden, answers = 2 * r->taps + 1;
  double x[RT_MOST_JOINTS * MOST_NUMBERS], inner[RT_MOST_JOINTS * MOST_NUMBERS], step[RT_MOST_JOINTS * MOST_NUMBERS];
  double summary[2 * MOST_NUMBERS], shared[MOST_NUMBERS];
  for (int k = 0; k < n * r->features; k++) inner[k] = (double)seen[k];
  layer(r->embed, r->features, h, n, inner, step);
  for (int k = 0; k < n * h; k++) step[k] += r->embed[r->features * h + k % h];
  rectified(step, n * h, x);
  for (int k = 0; k < h; k++) {
    summary[k] = 0.0;
    summary[h + k] = x[k];
    for (int j = 0; j < n; j++) {
      const double value = x[j * h + k];
      summary[k] += value / n;
      if (value > summary[h + k]) summary[h + k] = value;
    }
  }
  layer(r->summary, 2 * h, h, 1, summary, shared);
  layer(r->combine, h, h, n, x, step);
  for (int k = 0; k < n * h; k++) x[k] = step[k] + shared[k % h] + r->summary[2 * h * h + k % h];
  for (int index = 0; index < r->layers; index++) {
    const double *weights = r->stack + index * (h + 1) * h;
    rectified(x, n * h, inner);
    layer(weights, h, h, n, inner, step);
    for (int k = 0; k < n * h; k++) x[k] += step[k] + weights[h * h + k % h];
  }
  rectified(x, n * h, inner);
  layer(r->head, h, answers, n, inner, step);
  for (int j = 0; j < n; j++) {
    const double *out = step + j * answers, *bias = r->head + h * answers, *tap = taps + j * r->taps;
    external[j] = own[j] = 0.0;
    for (int k = 0; k < r->taps; k++) {
      external[j] -= (out[k] + bias[k]) * tap[k];
      own[j] += (out[r->taps + k] + bias[r->taps + k]) * tap[k];
    }
    own[j] += r->offset * tanh(out[2 * r->taps] + bias[2 * r->taps]);
  }
}

static double bounded(double value, double most) { return isnan(value) ? 0.0 : rt_clip(value, -most, most); }

/* Bound what the network says, and take it over; what is not finite is nothing. */
static void answer(rt_core *core, const double *external, const double *own) {
  const rt_model *model = core->model;
  const rt_residual *r = &model->residual;
  rt_recursive_part *p = &core->recursive;
  const int n = model->robot.n;
  double push = 0.0, size = 0.0, largest = 0.0;
  for (int j = 0; j < n; j++) {
    p->pushed[j] = bounded(external[j], r->most_external * model->recursive.strength[j]);
    p->own[j] = bounded(own[j], r->most_own * r->unit[j]);
    push += p->pushed[j] / r->unit[j] * (p->pushed[j] / r->unit[j]);
    size += p->own[j] / r->unit[j] * (p->own[j] / r->unit[j]);
  }
  push = sqrt(push / n);
  size = sqrt(size / n);
  p->push_sizes[p->state->answers % r->memory] = push;
  for (int k = 0; k < r->memory; k++) largest = p->push_sizes[k] > largest ? p->push_sizes[k] : largest;
  const int begins = push > r->pushed && push > r->clearly * size;
  p->state->touching = begins || (p->state->touching && largest > r->pushed);
  rt_limit_share(core, p->pushed);
}

/* Decide whether an equation is contact, by what the network said and by how surprising it is. */
void rt_screen_residual(rt_core *core, rt_equation *equation, const double *innovation, const double *spread) {
  const rt_model *model = core->model;
  rt_recursive_part *p = &core->recursive;
  rt_recursive_state *s = p->state;
  const int step = p->filter.step;
  for (int j = 0; j < model->robot.n; j++) {
    double variance = 0.0;
    for (int k = 0; k < step; k++) variance += spread[j * step + k] * spread[j * step + k];
    p->uncertain[j] = sqrt(variance);
  }
  s->touched = s->touching ? s->touched + model->recursive.stride * model->timestep : 0.0;
  s->contact = s->touching && s->touched <= model->recursive.longest; /* what lasts longer is the robot's own */
  if (s->contact) s->contact = rt_distance(core, innovation, spread, equation->factor) > model->residual.surprising;
  if (s->contact) equation->accepted = 0;
  s->health = s->contact ? RT_SURPRISED : 0;
}

/* Update the estimate and ask the network, each where it is due; 1 where anything is new. */
int rt_residual_learn(rt_core *core) {
  const rt_model *model = core->model;
  const rt_residual *r = &model->residual;
  rt_recursive_part *p = &core->recursive;
  const int n = model->robot.n;
  const int64_t total = RT_TAKE(core->history.state->total);
  int fresh = 0;
  if (total - p->state->learnt_at >= model->recursive.stride) {
    p->state->learnt_at = total;
    fresh = rt_recursive_learn(core);
  }
  if (total - p->state->closed < r->block || !close_block(core, total)) return fresh;
  double taps[RT_MOST_JOINTS * 32], external[RT_MOST_JOINTS], own[RT_MOST_JOINTS];
  float features[RT_MOST_JOINTS * 64];
  write_taps(core, taps);
  write_features(core, taps, features);
  ask(model, features, taps, external, own);
  for (int j = 0; j < n; j++) {
    external[j] = p->state->unsound == 0 ? external[j] * r->unit[j] : 0.0 * external[j];
    own[j] = p->state->unsound == 0 ? own[j] * r->unit[j] : 0.0 * own[j];
  }
  answer(core, external, own);
  if (model->adapter == RT_DEFAULT) rt_default_answer(core);
  p->state->answers++;
  return 1;
}
