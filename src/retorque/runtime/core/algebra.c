/* Small dense algebra: triangles, inverses, 4 x 4 eigenvalues, physical inertias. */
#include "internal.h"

double rt_clip(double x, double low, double high) { return x < low ? low : (x > high ? high : x); }

int rt_all_finite(const double *x, int count) {
  for (int k = 0; k < count; k++)
    if (!isfinite(x[k])) return 0;
  return 1;
}

void rt_cholesky(double *a, int n) {
  for (int j = 0; j < n; j++) {
    for (int i = j; i < n; i++) {
      double sum = a[i * n + j];
      for (int k = 0; k < j; k++) sum -= a[i * n + k] * a[j * n + k];
      a[i * n + j] = i == j ? sqrt(sum) : sum / a[j * n + j];
    }
  }
}

void rt_forward_substitute(const double *lower, int n, double *b) {
  for (int i = 0; i < n; i++) {
    for (int k = 0; k < i; k++) b[i] -= lower[i * n + k] * b[k];
    b[i] /= lower[i * n + i];
  }
}

void rt_back_substitute(const double *lower, int n, double *b) {
  for (int i = n - 1; i >= 0; i--) {
    for (int k = i + 1; k < n; k++) b[i] -= lower[k * n + i] * b[k];
    b[i] /= lower[i * n + i];
  }
}

void rt_lower_inverse(const double *lower, int n, double *out) {
  for (int k = 0; k < n * n; k++) out[k] = 0.0;
  for (int j = 0; j < n; j++) {
    out[j * n + j] = 1.0 / lower[j * n + j];
    for (int i = j + 1; i < n; i++) {
      double sum = 0.0;
      for (int k = j; k < i; k++) sum -= lower[i * n + k] * out[k * n + j];
      out[i * n + j] = sum / lower[i * n + i];
    }
  }
}

int rt_symmetric_inverse(const double *a, int n, double *out) {
  double root[RT_MOST_JOINTS * RT_MOST_JOINTS], half[RT_MOST_JOINTS * RT_MOST_JOINTS];
  memcpy(root, a, sizeof(double) * (size_t)(n * n));
  rt_cholesky(root, n);
  rt_lower_inverse(root, n, half);
  for (int i = 0; i < n; i++)
    for (int j = 0; j <= i; j++) {
      double sum = 0.0;
      for (int k = i; k < n; k++) sum += half[k * n + i] * half[k * n + j];
      out[i * n + j] = out[j * n + i] = sum;
    }
  return rt_all_finite(out, n * n);
}

/* Jacobi's rotations: eigenvectors are the columns of `vectors`, and `a` becomes diagonal. */
void rt_eigen4(double *a, double *vectors) {
  for (int k = 0; k < 16; k++) vectors[k] = k % 5 == 0 ? 1.0 : 0.0;
  for (int sweep = 0; sweep < 30; sweep++) {
    double off = 0.0, all = 0.0;
    for (int i = 0; i < 4; i++)
      for (int j = 0; j < 4; j++) {
        all += a[4 * i + j] * a[4 * i + j];
        if (i != j) off += a[4 * i + j] * a[4 * i + j];
      }
    if (!(off > 1e-34 * all)) return;
    for (int p = 0; p < 3; p++)
      for (int q = p + 1; q < 4; q++) {
        if (a[4 * p + q] == 0.0) continue;
        const double theta = (a[5 * q] - a[5 * p]) / (2.0 * a[4 * p + q]);
        const double t = (theta >= 0.0 ? 1.0 : -1.0) / (fabs(theta) + sqrt(theta * theta + 1.0));
        const double c = 1.0 / sqrt(t * t + 1.0), s = t * c;
        for (int k = 0; k < 4; k++) {
          const double x = a[4 * k + p], y = a[4 * k + q];
          a[4 * k + p] = c * x - s * y;
          a[4 * k + q] = s * x + c * y;
        }
        for (int k = 0; k < 4; k++) {
          const double x = a[4 * p + k], y = a[4 * q + k];
          a[4 * p + k] = c * x - s * y;
          a[4 * q + k] = s * x + c * y;
        }
        for (int k = 0; k < 4; k++) {
          const double x = vectors[4 * k + p], y = vectors[4 * k + q];
          vectors[4 * k + p] = c * x - s * y;
          vectors[4 * k + q] = s * x + c * y;
        }
      }
  }
}

/* Lift every eigenvalue of the pseudo-inertia to at least `floor`; physical bodies stay as they are. */
void rt_feasible(double *ten, double floor) {
  const double xx = ten[4], xy = ten[5], yy = ten[6], xz = ten[7], yz = ten[8], zz = ten[9];
  const double half = 0.5 * (xx + yy + zz);
  double a[16] = {half - xx, -xy, -xz, ten[1], -xy,    half - yy, -yz,    ten[2],
                  -xz,       -yz, half - zz, ten[3], ten[1], ten[2],    ten[3], ten[0]};
  double test[16], vectors[16], lifted[16];
  memcpy(test, a, sizeof a);
  for (int k = 0; k < 4; k++) test[5 * k] -= floor;
  rt_cholesky(test, 4);
  int positive = 1; /* a - floor 1 has a root exactly when no eigenvalue is below the floor */
  for (int k = 0; k < 4; k++) positive = positive && test[5 * k] > 0.0;
  if (positive) return;
  rt_eigen4(a, vectors);
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++) {
      lifted[4 * i + j] = 0.0;
      for (int k = 0; k < 4; k++)
        lifted[4 * i + j] += vectors[4 * i + k] * (a[5 * k] < floor ? floor : a[5 * k]) * vectors[4 * j + k];
    }
  const double trace = lifted[0] + lifted[5] + lifted[10];
  ten[0] = lifted[15];
  for (int k = 0; k < 3; k++) ten[1 + k] = lifted[4 * k + 3];
  ten[4] = trace - lifted[0];
  ten[5] = -lifted[1];
  ten[6] = trace - lifted[5];
  ten[7] = -lifted[2];
  ten[8] = -lifted[6];
  ten[9] = trace - lifted[10];
}
