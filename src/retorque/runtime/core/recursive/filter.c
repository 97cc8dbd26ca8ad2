/* A square-root Kalman filter over whitened unknowns, with directional forgetting.
 *
 * The covariance is S S' and only S is kept. With F = S'H' and its columns scaled to length one, U, everything that an
 * update does to S is S <- S + S U Q U' with a small matrix Q: one pass over S, row by row. Forgetting widens S by
 * S U P U' with P = (U'U + 1e-6)^-1 sqrt(grow grow'), which makes F' = U B with B = D + P'G D, G = U'U, D the lengths;
 * Andrews' form of Potter's update is S' - S'F' M F'' with M = C^-T (C + V)^-1, C C' = F''F' + R, V V' = R. Together
 * Q = P - (1 + P G) B M B'.
 */
#include "internal.h"

enum { MOST = RT_MOST_JOINTS };

void rt_filter_prior_root(rt_filter *filter) {
  memset(filter->root, 0, sizeof(double) * (size_t)(filter->size * filter->step));
  for (int i = 0; i < filter->size; i++) filter->root[i * filter->step + i] = 1.0;
}

void rt_filter_reset(rt_filter *filter) {
  memset(filter->mean, 0, sizeof(double) * (size_t)filter->size);
  rt_filter_prior_root(filter);
}

/* Rows of H are zero but for the joint's own unknowns and those behind `rest` that all joints share. */
void rt_expect(const rt_model *model, const rt_filter *filter, const double *rows, double *expected) {
  const int n = model->robot.n, size = filter->size, rest = n * RT_PER_JOINT;
  for (int j = 0; j < n; j++) {
    const double *row = rows + j * size;
    double sum = 0.0;
    for (int k = j * RT_PER_JOINT; k < (j + 1) * RT_PER_JOINT; k++) sum += row[k] * filter->mean[k];
    for (int k = rest; k < size; k++) sum += row[k] * filter->mean[k];
    expected[j] = sum;
  }
}

/* Expected measurement H z, and F = S'H' as rows (n, step). */
void rt_predict(const rt_model *model, const rt_filter *filter, const double *rows, double *expected, double *spread) {
  const int n = model->robot.n, size = filter->size, step = filter->step, rest = n * RT_PER_JOINT;
  rt_expect(model, filter, rows, expected);
  memset(spread, 0, sizeof(double) * (size_t)(n * step));
  for (int j = 0; j < n; j++) {
    const int first = j * RT_PER_JOINT;
    rt_add_product(1, RT_PER_JOINT, step, rows + j * size + first, size, filter->root + first * step, step,
                   spread + j * step, step);
  }
  rt_add_product(n, size - rest, step, rows + rest, size, filter->root + rest * step, step, spread, step);
}

static double inner(const double *a, const double *b, int count) {
  double x = 0.0, y = 0.0, z = 0.0, w = 0.0; /* rows are padded to a multiple of four */
  for (int k = 0; k < count; k += 4) {
    x += a[k] * b[k];
    y += a[k + 1] * b[k + 1];
    z += a[k + 2] * b[k + 2];
    w += a[k + 3] * b[k + 3];
  }
  return (x + y) + (z + w);
}

/* F'F, (n, n). */
void rt_gram(const double *spread, int n, int size, int step, double *out) {
  (void)size;
  for (int i = 0; i < n; i++)
    for (int j = 0; j <= i; j++) out[i * n + j] = out[j * n + i] = inner(spread + i * step, spread + j * step, step);
}

static void times(const double *a, const double *b, int n, double *out) { /* (n, n) each */
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      double sum = 0.0;
      for (int k = 0; k < n; k++) sum += a[i * n + k] * b[k * n + j];
      out[i * n + j] = sum;
    }
}

static void times_turned(const double *a, const double *b, int n, double *out) { /* a b' */
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      double sum = 0.0;
      for (int k = 0; k < n; k++) sum += a[i * n + k] * b[j * n + k];
      out[i * n + j] = sum;
    }
}

static void turned_times(const double *a, const double *b, int n, double *out) { /* a' b */
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      double sum = 0.0;
      for (int k = 0; k < n; k++) sum += a[k * n + i] * b[k * n + j];
      out[i * n + j] = sum;
    }
}

/* Bring the unknown that is wider than its prior most, where there is one, back to the prior's width. */
static void cap(rt_filter *filter, double *reach) {
  const int size = filter->size, step = filter->step;
  int worst = 0;
  double now = -1.0;
  for (int i = 0; i < size; i++) {
    const double *row = filter->root + i * step, width = inner(row, row, step);
    if (width > now) now = width, worst = i;
  }
  if (!(now > 1.0 + 1e-9)) return;
  double spread[1024];
  memcpy(spread, filter->root + worst * step, sizeof(double) * (size_t)step);
  for (int i = 0; i < size; i++) reach[i] = inner(filter->root + i * step, spread, step);
  const double gain = 1.0 - 1.0 / now, mean = gain / now * filter->mean[worst];
  const double shrink = (1.0 - sqrt(1.0 - gain)) / now;
  for (int i = 0; i < size; i++) {
    double *row = filter->root + i * step;
    const double share = shrink * reach[i];
    filter->mean[i] -= reach[i] * mean;
    for (int k = 0; k < step; k++) row[k] -= share * spread[k];
  }
}

/* Take in a measurement: `spread` is F of rt_predict and becomes U; `forget`: it takes the place of older ones. 0 where
 * it cannot be (not finite). */
int rt_filter_update(const rt_model *model, rt_filter *filter, const double *innovation, const double *rows,
                     double *spread, const double *noise, rt_scratch *scratch, int forget) {
  const int n = model->robot.n, size = filter->size, step = filter->step, rest = n * RT_PER_JOINT;
  double length[MOST], grow[MOST], gram[MOST * MOST], push[MOST * MOST], wide[MOST * MOST], work[MOST * MOST];
  double root[MOST * MOST], inverse[MOST * MOST], outer[MOST * MOST], mix[MOST * MOST], gain[MOST], white[MOST];
  const int forgets = forget && model->recursive.forgetting < 1.0;
  for (int j = 0; j < n; j++) {
    const double *row = rows + j * size;
    const double now = inner(spread + j * step, spread + j * step, step);
    double prior = 0.0;
    for (int k = j * RT_PER_JOINT; k < (j + 1) * RT_PER_JOINT; k++) prior += row[k] * row[k];
    for (int k = rest; k < size; k++) prior += row[k] * row[k];
    const double room = rt_clip(1.0 - now / (prior > 1e-12 ? prior : 1e-12), 0.0, 1.0);
    grow[j] = forgets ? (1.0 / sqrt(model->recursive.forgetting) - 1.0) * room : 0.0;
    length[j] = sqrt(now > 1e-18 ? now : 1e-18);
    for (int k = 0; k < step; k++) spread[j * step + k] /= length[j];
  }
  rt_gram(spread, n, size, step, gram);
  memcpy(work, gram, sizeof(double) * (size_t)(n * n));
  for (int j = 0; j < n; j++) work[j * n + j] += 1e-6;
  if (!rt_symmetric_inverse(work, n, push)) return 0;
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) push[i * n + j] *= sqrt(grow[i] * grow[j]);
  /* B = D + P'G D: what F' is made of, in columns of U. */
  turned_times(push, gram, n, wide);
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) wide[i * n + j] = (wide[i * n + j] + (i == j ? 1.0 : 0.0)) * length[j];
  /* C C' = B'G B + R */
  times(gram, wide, n, work);
  turned_times(wide, work, n, root);
  for (int j = 0; j < n; j++) root[j * n + j] += noise[j];
  rt_cholesky(root, n);
  rt_lower_inverse(root, n, inverse);
  for (int i = 0; i < n; i++) {
    white[i] = 0.0;
    for (int k = 0; k <= i; k++) white[i] += inverse[i * n + k] * innovation[k];
  }
  for (int j = 0; j < n; j++) root[j * n + j] += sqrt(noise[j]);
  rt_lower_inverse(root, n, outer);
  turned_times(inverse, outer, n, work); /* M = C^-T (C + V)^-1 */
  times(wide, work, n, outer);
  times_turned(outer, wide, n, work); /* B M B' */
  times(push, gram, n, root);         /* P G */
  for (int j = 0; j < n; j++) root[j * n + j] += 1.0;
  times(root, work, n, mix);
  for (int k = 0; k < n * n; k++) mix[k] = push[k] - mix[k];
  /* The gain along U: (1 + P G) B C^-T white. */
  for (int i = 0; i < n; i++) {
    length[i] = 0.0;
    for (int k = i; k < n; k++) length[i] += inverse[k * n + i] * white[k];
  }
  times(root, wide, n, work);
  for (int i = 0; i < n; i++) {
    gain[i] = 0.0;
    for (int k = 0; k < n; k++) gain[i] += work[i * n + k] * length[k];
  }
  if (!rt_all_finite(mix, n * n) || !rt_all_finite(gain, n)) return 0;
  const int blocks = (n + RT_LANES - 1) / RT_LANES;
  for (int block = 0; block < blocks; block++)
    for (int k = 0; k < step; k++)
      for (int l = 0; l < RT_LANES; l++) {
        const int j = block * RT_LANES + l;
        scratch->lanes[(block * step + k) * RT_LANES + l] = j < n ? spread[j * step + k] : 0.0;
      }
  rt_filter_rows(size, step, n, filter->root, scratch->lanes, spread, mix, gain, filter->mean);
  if (forgets) cap(filter, scratch->lanes);
  return 1;
}

/* Move the mean onto a constraint on `count` unknowns from `first`, the likeliest way. */
void rt_project(rt_filter *filter, int first, const double *row, int count, double change, double *scratch) {
  const int size = filter->size, step = filter->step;
  memset(scratch, 0, sizeof(double) * (size_t)step);
  rt_add_product(1, count, step, row, count, filter->root + first * step, step, scratch, step);
  const double variance = inner(scratch, scratch, step);
  const double share = change / (variance > 1e-12 ? variance : 1e-12);
  for (int i = 0; i < size; i++) filter->mean[i] += inner(filter->root + i * step, scratch, step) * share;
}
