/* TAM's history encoder, one column of tokens at a time, with cached keys and values. */
#include "internal.h"

enum { MOST_HEAD = 128 }; /* numbers of an attention head */

/* x times its logistic function; `work` is as long. */
static void silu(double *x, int count, double *work) {
  for (int k = 0; k < count; k++) work[k] = -x[k];
  rt_exponentials(work, count);
  for (int k = 0; k < count; k++) x[k] /= 1.0 + work[k];
}

/* Every joint's row scaled to a mean square of one, times a weight each. */
static void normed(const rt_tam *t, int n, const double *x, const float *weight, double *out) {
  const int w = t->width;
  for (int j = 0; j < n; j++) {
    double square = 0.0;
    for (int k = 0; k < w; k++) square += x[j * w + k] * x[j * w + k];
    const double scale = sqrt(square / w + t->epsilon);
    for (int k = 0; k < w; k++) out[j * w + k] = x[j * w + k] / scale * (double)weight[k];
  }
}

static void softmax(double *score, int count) {
  double most = score[0], sum = 0.0;
  for (int k = 1; k < count; k++) most = score[k] > most ? score[k] : most;
  for (int k = 0; k < count; k++) score[k] -= most;
  rt_exponentials(score, count);
  for (int k = 0; k < count; k++) sum += score[k];
  for (int k = 0; k < count; k++) score[k] /= sum;
}

/* Turn the halves of every head by the column's angles. */
static void rotate(const rt_tam *t, const double *sine, const double *cosine, double *x) {
  const int size = t->width / t->heads, half = size / 2;
  for (int head = 0; head < t->heads; head++) {
    double *a = x + head * size, *b = a + half;
    for (int k = 0; k < half; k++) {
      const double p = a[k], q = b[k];
      a[k] = p * cosine[k] - q * sine[k];
      b[k] = p * sine[k] + q * cosine[k];
    }
  }
}

/* What one head of a query (size) finds among `count` keys and values that lie `stride` apart. */
static void attend(const double *query, const double *keys, const double *values, int count, int stride, int size,
                   double *score, double *out) {
  rt_scores(query, keys, count, stride, size, score);
  softmax(score, count);
  rt_weighted(score, values, count, stride, size, out);
}

/* Parts of the scratch memory, one row a joint each. */
typedef struct {
  double *x, *inner, *read, *found, *hidden, *score;
} desk;

static void add(double *x, const double *step, int count) {
  for (int k = 0; k < count; k++) x[k] += step[k];
}

static void over_time(const rt_model *model, rt_tam_part *p, const desk *d, int layer, int64_t column) {
  const rt_tam *t = &model->tam;
  const int n = model->robot.n, w = t->width, size = w / t->heads, half = size / 2;
  const double scale = 1.0 / sqrt((double)size);
  double sine[MOST_HEAD], cosine[MOST_HEAD];
  for (int k = 0; k < half; k++) {
    const double angle = (double)column * t->frequency[k];
    sine[k] = sin(angle);
    cosine[k] = cos(angle);
  }
  double *keys = p->keys + (size_t)layer * (size_t)(t->columns * n * w);
  double *values = p->values + (size_t)layer * (size_t)(t->columns * n * w);
  const size_t slot = (size_t)(column % t->columns) * (size_t)(n * w);
  const int known = column + 1 < t->columns ? (int)column + 1 : t->columns;
  normed(t, n, d->x, t->time_norm + layer * w, d->inner);
  rt_matrix(t->time_read + (size_t)layer * (size_t)(3 * w * w), w, 3 * w, n, d->inner, d->read);
  for (int j = 0; j < n; j++) {
    double *read = d->read + j * 3 * w;
    rotate(t, sine, cosine, read);
    rotate(t, sine, cosine, read + w);
    for (int k = 0; k < w; k++) read[k] *= scale;
    memcpy(keys + slot + j * w, read + w, sizeof(double) * (size_t)w);
    memcpy(values + slot + j * w, read + 2 * w, sizeof(double) * (size_t)w);
  }
  for (int j = 0; j < n; j++)
    for (int head = 0; head < t->heads; head++) {
      const double *query = d->read + j * 3 * w + head * size;
      double *out = d->found + j * w + head * size;
      if (t->factorised) /* only this joint's past, else every joint's */
        attend(query, keys + j * w + head * size, values + j * w + head * size, known, n * w, size, d->score, out);
      else
        attend(query, keys + head * size, values + head * size, known * n, w, size, d->score, out);
    }
  rt_matrix(t->time_write + (size_t)layer * (size_t)(w * w), w, w, n, d->found, d->inner);
  add(d->x, d->inner, n * w);
}

static void over_joints(const rt_model *model, const desk *d, int layer) {
  const rt_tam *t = &model->tam;
  const int n = model->robot.n, w = t->width, size = w / t->heads;
  const double scale = 1.0 / sqrt((double)size);
  normed(t, n, d->x, t->joint_norm + layer * w, d->inner);
  rt_matrix(t->joint_read + (size_t)layer * (size_t)(3 * w * w), w, 3 * w, n, d->inner, d->read);
  for (int j = 0; j < n; j++)
    for (int k = 0; k < w; k++) d->read[j * 3 * w + k] *= scale;
  for (int j = 0; j < n; j++)
    for (int head = 0; head < t->heads; head++)
      attend(d->read + j * 3 * w + head * size, d->read + w + head * size, d->read + 2 * w + head * size, n, 3 * w, size,
             d->score, d->found + j * w + head * size);
  rt_matrix(t->joint_write + (size_t)layer * (size_t)(w * w), w, w, n, d->found, d->inner);
  add(d->x, d->inner, n * w);
}

/* Latents out of one patch a joint (n, numbers); the past is kept as keys and values. */
void rt_encode(const rt_model *model, rt_tam_part *p, const double *patch) {
  const rt_tam *t = &model->tam;
  const int n = model->robot.n, w = t->width;
  const int numbers = t->patch_rows * t->fast_size + (t->slow ? t->patch_rows / t->slow * t->slow_size : 0);
  const int64_t column = p->state->columns - 1;
  desk d;
  d.x = p->work;
  d.inner = d.x + n * w;
  d.read = d.inner + n * w;
  d.found = d.read + 3 * n * w;
  d.hidden = d.found + n * w;
  d.score = d.hidden + 2 * n * t->wide;
  rt_dense(t->patch, numbers, w, n, patch, d.inner);
  silu(d.inner, n * w, d.read);
  rt_dense(t->token, w, w, n, d.inner, d.x);
  for (int k = 0; k < n * w; k++) d.x[k] += t->base[k];
  for (int layer = 0; layer < t->layers; layer++) {
    over_time(model, p, &d, layer, column);
    if (t->factorised) over_joints(model, &d, layer);
    normed(t, n, d.x, t->norm + layer * w, d.inner);
    rt_dense(t->up + (size_t)layer * (size_t)((w + 1) * t->wide), w, t->wide, n, d.inner, d.hidden);
    silu(d.hidden, n * t->wide, d.hidden + n * t->wide);
    rt_dense(t->down + (size_t)layer * (size_t)((t->wide + 1) * w), t->wide, w, n, d.hidden, d.inner);
    add(d.x, d.inner, n * w);
  }
  normed(t, n, d.x, t->last_norm, d.inner);
  rt_dense(t->to_latent, w, t->latent, n, d.inner, p->latent);
}
