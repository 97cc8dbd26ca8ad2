/* The last ticks of a robot: the one ring of reports, and the one rule for what is new, late, missing or not finite. */
#include "internal.h"

void rt_clock_reset(rt_clock *clock) {
  clock->zero = clock->other = NAN;
  clock->ticks = clock->settled = 0;
}

static int64_t late(rt_clock *clock, const rt_model *model, double time) {
  const double dt = model->timestep;
  clock->settled = fabs(time - clock->other - dt) < 0.5 * dt ? clock->settled + 1 : 0;
  clock->other = time;
  if (clock->settled < model->settled) return 0;
  const int64_t missed = model->settled + 1; /* the late ones before this one were new reports all along */
  clock->ticks += missed;
  clock->zero = time - (double)clock->ticks * dt;
  clock->settled = 0;
  return missed;
}

/* Control periods since the last report that counted: 1 is the next one, more means missed ones, 0 late. */
int64_t rt_ticks_since(rt_clock *clock, const rt_model *model, double time) {
  const double dt = model->timestep;
  if (!isfinite(time)) return 0;
  if (isnan(clock->zero)) {
    clock->zero = time;
    clock->ticks = 0;
    return 1;
  }
  const double exact = (time - clock->zero) / dt - (double)clock->ticks;
  const double step = nearbyint(exact); /* half to even, as Python's round */
  if (step < 1.0) return late(clock, model, time);
  if (step > model->farthest) { /* a clock from another age: it starts anew */
    clock->zero = time;
    clock->ticks = clock->settled = 0;
    return (int64_t)model->farthest;
  }
  const int64_t count = (int64_t)step;
  clock->ticks += count;
  clock->settled = 0;
  const double share = 1.0 / ((double)clock->ticks + 1.0);
  clock->zero += (model->tracking > share ? model->tracking : share) * (exact - step) * dt;
  return count;
}

void rt_history_reset(rt_history *history, const rt_model *model) {
  rt_clock_reset(&history->state->clock);
  history->state->time = -INFINITY;
  history->state->total = 0;
  history->state->missing = model->bridged; /* nothing good came before */
  memset(history->rows, 0, sizeof(double) * (size_t)(history->capacity * 3 * history->n));
  memset(history->valid, 0, (size_t)history->capacity);
}

/* The newest row repeats the one before it. */
static void hold(rt_history *h, int64_t index) {
  memcpy(rt_history_row(h, index), rt_history_row(h, index - 1), sizeof(double) * (size_t)(3 * h->n));
  h->valid[index % h->capacity] = 0;
  h->state->missing++;
}

/* Interpolate a short run of bad rows before a good one. */
static void bridge(rt_history *h, const rt_model *model, int64_t index) {
  const int64_t length = h->state->missing;
  h->state->missing = 0;
  if (length == 0 || length > model->bridged || index + 1 <= length + 1) return;
  if (!rt_history_valid(h, index - length - 1)) return;
  const double *before = rt_history_row(h, index - length - 1), *after = rt_history_row(h, index);
  for (int64_t k = 1; k <= length; k++) {
    double *row = rt_history_row(h, index - length - 1 + k);
    const double share = (double)k / (double)(length + 1);
    for (int j = 0; j < 3 * h->n; j++) row[j] = before[j] + share * (after[j] - before[j]);
    h->valid[(index - length - 1 + k) % h->capacity] = 1;
  }
}

int rt_history_add(rt_history *h, const rt_model *model, double time, const double *position, const double *velocity,
                   const double *torque) {
  const int n = h->n;
  const int64_t step = rt_ticks_since(&h->state->clock, model, time);
  if (step == 0) return 0;
  h->state->time = time;
  int64_t index = h->state->total;
  const int64_t missed = step - 1 < h->keep ? step - 1 : h->keep;
  if (index > 0)
    for (int64_t k = 0; k < missed; k++) hold(h, index++);
  double *row = rt_history_row(h, index);
  memcpy(row, position, sizeof(double) * (size_t)n);
  memcpy(row + n, velocity, sizeof(double) * (size_t)n);
  memcpy(row + 2 * n, torque, sizeof(double) * (size_t)n);
  const int good = rt_all_finite(row, 3 * n);
  if (index == 0) /* before the first report, the first report stands */
    for (int64_t k = 1; k <= h->keep; k++) {
      double *earlier = rt_history_row(h, -k);
      for (int j = 0; j < 3 * n; j++) earlier[j] = good ? row[j] : 0.0;
    }
  if (good) {
    h->valid[index % h->capacity] = 1;
    if (h->state->missing) bridge(h, model, index);
  } else {
    hold(h, index);
  }
  RT_PUBLISH(h->state->total, index + 1);
  return 1;
}
