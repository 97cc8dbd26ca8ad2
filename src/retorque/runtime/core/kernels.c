/* The places where the time goes: products with a few rows, the pass over a filter's root, exponentials, attention.
 *
 * They are compiled twice on x86, for every machine and for those with AVX2 and FMA, and chosen when they are called:
 * one file serves all.
 */
#include "internal.h"

enum { ROWS = RT_ROWS, LANES = RT_LANES };

/* A row's pointer; those beyond the last are the last once more, and their sums are dropped. */
#define ROW(k) (x + (row + (k) < rows ? row + (k) : rows - 1) * x_step)

#if defined(__GNUC__)
/* Four numbers that the compiler keeps in a register, or in two where registers are narrower. */
typedef double four __attribute__((vector_size(32), aligned(8), may_alias));
typedef int64_t four_whole __attribute__((vector_size(32), aligned(8), may_alias));
typedef float four_singles __attribute__((vector_size(16), aligned(4), may_alias));
#define SINGLES_AT(place) __builtin_convertvector(*(const four_singles *)(place), four)
#define DOUBLES_AT(place) (*(const four *)(place))

/* acc (count <= 4 rows, 8) = x (count rows, inputs) times weights (inputs, 8); `count` is known to the compiler. */
#define TILE(LOAD, count)                                                                                      \
  const double *const row[ROWS] = {a, b, c, d};                                                                \
  four low[ROWS] = {{0}}, high[ROWS] = {{0}};                                                                  \
  for (int i = 0; i < inputs; i++, weights += weights_step) {                                                  \
    const four u = LOAD(weights), v = LOAD(weights + 4);                                                       \
    for (int r = 0; r < count; r++) low[r] += row[r][i] * u, high[r] += row[r][i] * v;                         \
  }                                                                                                            \
  for (int r = 0; r < count; r++) ((four *)acc)[2 * r] = low[r], ((four *)acc)[2 * r + 1] = high[r];
#else
#define SINGLES_AT(place) (place)
#define DOUBLES_AT(place) (place)
#define TILE(LOAD, count)                                                                                      \
  const double *const row[ROWS] = {a, b, c, d};                                                                \
  for (int k = 0; k < count * LANES; k++) acc[k] = 0.0;                                                        \
  for (int i = 0; i < inputs; i++, weights += weights_step)                                                    \
    for (int r = 0; r < count; r++)                                                                            \
      for (int l = 0; l < LANES; l++) acc[r * LANES + l] += row[r][i] * LOAD(weights)[l];
#endif

#define TARGET
#define NAMED(name) name##_plain
#include "kernels.h"
#undef TARGET
#undef NAMED

#if !defined(RT_PLAIN) && defined(__GNUC__) && defined(__x86_64__)
#define TARGET __attribute__((target("avx2,fma")))
#define NAMED(name) name##_wide
#include "kernels.h"
#define CALL(name, ...)                                                             \
  do {                                                                              \
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))            \
      name##_wide(__VA_ARGS__);                                                     \
    else                                                                            \
      name##_plain(__VA_ARGS__);                                                    \
  } while (0)
#else
#define CALL(name, ...) name##_plain(__VA_ARGS__)
#endif

void rt_add_product(int rows, int inputs, int outputs, const double *x, int x_step, const double *weights,
                    int weights_step, double *out, int out_step) {
  CALL(add_product, rows, inputs, outputs, x, x_step, weights, weights_step, out, out_step);
}

void rt_matrix(const float *weights, int inputs, int outputs, int rows, const double *x, double *out) {
  CALL(matrix, weights, inputs, outputs, rows, x, out);
}

void rt_filter_rows(int rows, int step, int n, double *root, const double *lanes, const double *unit, const double *mix,
                    const double *gain, double *mean) {
  CALL(filter_rows, rows, step, n, root, lanes, unit, mix, gain, mean);
}

void rt_exponentials(double *x, int count) { CALL(exponentials, x, count); }

void rt_triangle(double *a, int rows, int width, int stride) { CALL(triangle, a, rows, width, stride); }

void rt_hyperbolic_tangents(double *x, int count) { CALL(hyperbolic_tangents, x, count); }

void rt_scores(const double *query, const double *keys, int count, int stride, int size, double *score) {
  CALL(scores, query, keys, count, stride, size, score);
}

void rt_weighted(const double *score, const double *values, int count, int stride, int size, double *out) {
  CALL(weighted, score, values, count, stride, size, out);
}

void rt_modulated(int rows, int size, double epsilon, const double *x, const double *gain, const double *shift,
                  double *out) {
  CALL(modulated, rows, size, epsilon, x, gain, shift, out);
}

void rt_dense(const float *weights, int inputs, int outputs, int rows, const double *x, double *out) {
  const float *bias = weights + (size_t)inputs * (size_t)outputs;
  rt_matrix(weights, inputs, outputs, rows, x, out);
  for (int row = 0; row < rows; row++)
    for (int o = 0; o < outputs; o++) out[row * outputs + o] += (double)bias[o];
}
