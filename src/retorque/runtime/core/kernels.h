/* The kernels' bodies: included once for each kind of machine, with TARGET and NAMED set. */

TARGET static inline void NAMED(tile)(const double *a, const double *b, const double *c, const double *d, int inputs, const double *weights,
                 int weights_step, double *acc) {
  TILE(DOUBLES_AT, ROWS)
}

TARGET static inline void NAMED(tile_of_singles)(const double *a, const double *b, const double *c, const double *d, int inputs,
                            const float *weights, int weights_step, double *acc) {
  TILE(SINGLES_AT, ROWS)
}

TARGET static inline void NAMED(three_of_singles)(const double *a, const double *b, const double *c, int inputs,
                            const float *weights, int weights_step, double *acc) {
  const double *const d = c;
  TILE(SINGLES_AT, 3)
}

TARGET static void NAMED(add_product)(int rows, int inputs, int outputs, const double *x, int x_step, const double *weights,
                            int weights_step, double *out, int out_step) {
  double acc[ROWS * LANES];
  for (int row = 0; row < rows; row += ROWS) {
    const int here = rows - row < ROWS ? rows - row : ROWS;
    int o = 0;
    for (; o + LANES <= outputs; o += LANES) {
      NAMED(tile)(ROW(0), ROW(1), ROW(2), ROW(3), inputs, weights + o, weights_step, acc);
      for (int r = 0; r < here; r++)
        for (int l = 0; l < LANES; l++) out[(row + r) * out_step + o + l] += acc[r * LANES + l];
    }
    for (; o < outputs; o++)
      for (int r = 0; r < here; r++) {
        double sum = 0.0;
        for (int i = 0; i < inputs; i++) sum += x[(row + r) * x_step + i] * weights[i * weights_step + o];
        out[(row + r) * out_step + o] += sum;
      }
  }
}

/* The product with a single row: a tile's other rows would be made for nothing. */
TARGET static void NAMED(vector)(const float *weights, int inputs, int outputs, const double *x, double *out) {
  int o = 0;
  for (; o + 2 * LANES <= outputs; o += 2 * LANES) {
    double acc[2 * LANES] = {0.0};
    for (int i = 0; i < inputs; i++)
      for (int l = 0; l < 2 * LANES; l++) acc[l] += x[i] * (double)weights[i * outputs + o + l];
    for (int l = 0; l < 2 * LANES; l++) out[o + l] = acc[l];
  }
  for (; o < outputs; o++) {
    double sum = 0.0;
    for (int i = 0; i < inputs; i++) sum += x[i] * (double)weights[i * outputs + o];
    out[o] = sum;
  }
}

TARGET static void NAMED(matrix)(const float *weights, int inputs, int outputs, int rows, const double *x, double *out) {
  const int x_step = inputs;
  double acc[ROWS * LANES];
  if (rows == 1) {
    NAMED(vector)(weights, inputs, outputs, x, out);
    return;
  }
  for (int row = 0; row < rows; row += ROWS) {
    const int here = rows - row < ROWS ? rows - row : ROWS;
    int o = 0;
    for (; o + LANES <= outputs; o += LANES) {
      if (here == ROWS)
        NAMED(tile_of_singles)(ROW(0), ROW(1), ROW(2), ROW(3), inputs, weights + o, outputs, acc);
      else
        NAMED(three_of_singles)(ROW(0), ROW(1), ROW(2), inputs, weights + o, outputs, acc);
      for (int r = 0; r < here; r++)
        for (int l = 0; l < LANES; l++) out[(row + r) * outputs + o + l] = acc[r * LANES + l];
    }
    for (; o < outputs; o++)
      for (int r = 0; r < here; r++) {
        double sum = 0.0;
        for (int i = 0; i < inputs; i++) sum += x[(row + r) * x_step + i] * (double)weights[i * outputs + o];
        out[(row + r) * outputs + o] = sum;
      }
  }
}

/* S += S U Q U' and mean += S U gain, four rows of S at a time: they stay near while both products are made. */
TARGET static void NAMED(filter_rows)(int rows, int step, int n, double *root, const double *lanes, const double *unit,
                            const double *mix, const double *gain, double *mean) {
  double acc[ROWS * LANES], along[ROWS][RT_BLOCKS * RT_LANES], change[ROWS][RT_MOST_JOINTS];
  for (int i = 0; i < rows; i += ROWS) { /* the root has spare rows of zeros at its end */
    double *s = root + i * step;
    for (int block = 0; block * LANES < n; block++) {
      NAMED(tile)(s, s + step, s + 2 * step, s + 3 * step, step, lanes + (size_t)(block * step) * LANES, LANES, acc);
      for (int r = 0; r < ROWS; r++)
        for (int l = 0; l < LANES; l++) along[r][block * LANES + l] = acc[r * LANES + l];
    }
    for (int r = 0; r < ROWS; r++) {
      double moved = 0.0;
      for (int j = 0; j < n; j++) change[r][j] = 0.0;
      for (int k = 0; k < n; k++) {
        for (int j = 0; j < n; j++) change[r][j] += along[r][k] * mix[k * n + j];
        moved += along[r][k] * gain[k];
      }
      if (i + r < rows) mean[i + r] += moved;
    }
    for (int o = 0; o < step; o += LANES) {
      NAMED(tile)(change[0], change[1], change[2], change[3], n, unit + o, step, acc);
      for (int r = 0; r < ROWS; r++)
        for (int l = 0; l < LANES; l++) s[r * step + o + l] += acc[r * LANES + l];
    }
  }
}

/* x becomes e^x, to the last digits of double precision: 2^k times a polynomial. */
TARGET static void NAMED(exponentials)(double *x, int count) {
  int i = 0;
#if defined(__GNUC__)
  static const double part[] = {1.0 / 39916800.0, 1.0 / 3628800.0, 1.0 / 362880.0, 1.0 / 40320.0, 1.0 / 5040.0,
                                1.0 / 720.0,      1.0 / 120.0,     1.0 / 24.0,     1.0 / 6.0,     0.5};
  const double shift = 6755399441055744.0; /* 1.5 * 2^52: adding it leaves a whole number in the lowest bits */
  for (; i + 3 < count; i += 4) {
    if (!(fabs(x[i]) < 700.0 && fabs(x[i + 1]) < 700.0 && fabs(x[i + 2]) < 700.0 && fabs(x[i + 3]) < 700.0)) {
      for (int k = i; k < i + 4; k++) x[k] = exp(x[k]);
      continue;
    }
    const four value = DOUBLES_AT(x + i), moved = value * 1.4426950408889634 + shift, whole = moved - shift;
    const four r = (value - whole * 0.693147180369123816490) - whole * 1.90821492927058770002e-10;
    four p = r * part[0] + part[1];
    for (int k = 2; k < 10; k++) p = p * r + part[k];
    p = (p * r + 1.0) * r + 1.0;
    const four_whole powers = (four_whole)moved << 52; /* the whole number, where the exponent is */
    *(four *)(x + i) = (four)((four_whole)p + powers);
  }
#endif
  for (; i < count; i++) x[i] = exp(x[i]);
}

/* x becomes tanh x = sign(x) (1 - e) / (1 + e), e = exp(-2 |x|): right to 1e-16, not to that share of it. */
TARGET static void NAMED(hyperbolic_tangents)(double *x, int count) {
  enum { PIECE = 64 };
  double e[PIECE];
  for (int from = 0; from < count; from += PIECE, x += PIECE) {
    const int here = count - from < PIECE ? count - from : PIECE;
    for (int k = 0; k < here; k++) e[k] = -2.0 * fabs(x[k]);
    NAMED(exponentials)(e, here);
    for (int k = 0; k < here; k++) x[k] = copysign((1.0 - e[k]) / (1.0 + e[k]), x[k]);
  }
}

/* Scores (count) of one head's query (size) with keys that lie `stride` apart, and the weighted sum of values. */
TARGET static void NAMED(scores)(const double *query, const double *keys, int count, int stride, int size,
                                 double *score) {
  for (int c = 0; c < count; c++) {
    const double *key = keys + c * stride;
    double sum[4] = {0.0, 0.0, 0.0, 0.0};
    int k = 0;
    for (; k + 3 < size; k += 4)
      for (int l = 0; l < 4; l++) sum[l] += query[k + l] * key[k + l];
    for (; k < size; k++) sum[0] += query[k] * key[k];
    score[c] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
  }
}

TARGET static void NAMED(weighted)(const double *score, const double *values, int count, int stride, int size,
                                   double *out) {
  for (int k = 0; k < size; k++) out[k] = 0.0;
  for (int c = 0; c < count; c++) {
    const double *value = values + c * stride, weight = score[c];
    for (int k = 0; k < size; k++) out[k] += weight * value[k];
  }
}

/* max(x scale gain + shift, 0) of rows (rows, size), each scaled to a mean square of one. */
TARGET static void NAMED(modulated)(int rows, int size, double epsilon, const double *x, const double *gain,
                                    const double *shift, double *out) {
  for (int row = 0; row < rows; row++, x += size, gain += size, shift += size, out += size) {
    double sum[4] = {0.0, 0.0, 0.0, 0.0};
    int k = 0;
    for (; k + 3 < size; k += 4)
      for (int l = 0; l < 4; l++) sum[l] += x[k + l] * x[k + l];
    for (; k < size; k++) sum[0] += x[k] * x[k];
    const double scale = 1.0 / sqrt(((sum[0] + sum[1]) + (sum[2] + sum[3])) / size + epsilon);
    for (k = 0; k < size; k++) {
      const double value = x[k] * scale * gain[k] + shift[k];
      out[k] = value > 0.0 ? value : 0.0;
    }
  }
}

/* Lower triangle of rows (rows, width) by reflections from the right: a Q = (L, 0), in place. */
TARGET static void NAMED(triangle)(double *a, int rows, int width, int stride) {
  for (int i = 0; i < rows; i++) {
    double *v = a + i * stride, square = 0.0;
    for (int k = i + 1; k < width; k++) square += v[k] * v[k];
    if (square == 0.0) continue;
    const double size = sqrt(v[i] * v[i] + square), to = v[i] > 0.0 ? -size : size, first = v[i] - to;
    const double share = 2.0 / (first * first + square);
    v[i] = first;
    for (int r = i + 1; r < rows; r++) {
      double *row = a + r * stride, sum[4] = {0.0, 0.0, 0.0, 0.0};
      int k = i;
      for (; k + 3 < width; k += 4)
        for (int l = 0; l < 4; l++) sum[l] += v[k + l] * row[k + l];
      for (; k < width; k++) sum[0] += v[k] * row[k];
      const double along = share * ((sum[0] + sum[1]) + (sum[2] + sum[3]));
      for (k = i; k < width; k++) row[k] -= along * v[k];
    }
    v[i] = to;
    for (int k = i + 1; k < width; k++) v[k] = 0.0;
  }
}
