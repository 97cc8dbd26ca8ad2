/* The kernels' bodies: included once for each kind of machine, with TARGET and NAMED set. */

TARGET static inline void NAMED(tile)(const double *a, const double *b, const double *c, const double *d, int inputs, const double *weights,
                 int weights_step, double *acc) {
  TILE(DOUBLES_AT)
}

TARGET static inline void NAMED(tile_of_singles)(const double *a, const double *b, const double *c, const double *d, int inputs,
                            const float *weights, int weights_step, double *acc) {
  TILE(SINGLES_AT)
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

TARGET static void NAMED(matrix)(const float *weights, int inputs, int outputs, int rows, const double *x, double *out) {
  const int x_step = inputs;
  double acc[ROWS * LANES];
  for (int row = 0; row < rows; row += ROWS) {
    const int here = rows - row < ROWS ? rows - row : ROWS;
    int o = 0;
    for (; o + LANES <= outputs; o += LANES) {
      NAMED(tile_of_singles)(ROW(0), ROW(1), ROW(2), ROW(3), inputs, weights + o, outputs, acc);
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
