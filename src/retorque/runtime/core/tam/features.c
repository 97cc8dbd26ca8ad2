/* What TAM's encoder is fed: rows of history with accelerations out of noisy reports with gaps. */
#include "internal.h"

enum { MOST_FIT = 256 }; /* ticks of a derivative fit */

static int window_of(const rt_tam *t) { return 2 * t->half_window + 1; }

/* Solve a positive definite 3 x 3 system in place. */
static void solve3(double *a, double *b) {
  rt_cholesky(a, 3);
  rt_forward_substitute(a, 3, b);
  rt_back_substitute(a, 3, b);
}

/* Information (3, 3) that weighted ticks give about value, slope and curvature. */
static void information(const rt_model *model, const double *weight, double *out) {
  const rt_tam *t = &model->tam;
  for (int k = 0; k < 9; k++) out[k] = 0.0;
  for (int k = 0; k < window_of(t); k++) {
    const double at = (k - t->half_window) * model->timestep;
    const double position[3] = {1.0, at, 0.5 * at * at}, velocity[3] = {0.0, 1.0, at};
    for (int i = 0; i < 3; i++)
      for (int j = 0; j < 3; j++)
        out[3 * i + j] += weight[k] * (t->position_weight * position[i] * position[j] +
                                       t->velocity_weight * velocity[i] * velocity[j]);
  }
  for (int i = 0; i < 3; i++) out[4 * i] += t->ridge * out[4 * i] + 1e-12;
}

static double taper(const rt_tam *t, int k) { return 1.0 / (1.0 + fabs((double)(k - t->half_window))); }

/* Curvature of a parabola through positions and velocities around the middle of a block, where ticks are missing. */
static void masked_curvature(const rt_model *model, const double *rows, const double *valid, double *out) {
  const rt_tam *t = &model->tam;
  const int n = model->robot.n, window = window_of(t), stride = 3 * n;
  const double dt = model->timestep;
  double weight[MOST_FIT], matrix[9], right[3];
  int count = 0, first = -1, last = -1;
  for (int k = 0; k < window; k++) {
    weight[k] = valid[k] != 0.0 ? taper(t, k) : 0.0;
    if (valid[k] == 0.0) continue;
    if (first < 0) first = k;
    last = k;
    count++;
  }
  for (int j = 0; j < n; j++) {
    out[j] = 0.0;
    if (count < t->fewest) {
      if (count >= 2) out[j] = (rows[last * stride + n + j] - rows[first * stride + n + j]) / ((last - first) * dt);
      continue;
    }
    double level = 0.0;
    for (int k = 0; k < window; k++)
      if (valid[k] != 0.0) level += rows[k * stride + j];
    level /= count;
    right[0] = right[1] = right[2] = 0.0;
    for (int k = 0; k < window; k++) {
      if (valid[k] == 0.0) continue;
      const double at = (k - t->half_window) * dt, q = rows[k * stride + j] - level, v = rows[k * stride + n + j];
      right[0] += t->position_weight * weight[k] * q;
      right[1] += weight[k] * (t->position_weight * at * q + t->velocity_weight * v);
      right[2] += weight[k] * (t->position_weight * 0.5 * at * at * q + t->velocity_weight * at * v);
    }
    information(model, weight, matrix);
    solve3(matrix, right);
    out[j] = right[2];
  }
}

/* The same where every tick counts, with weights (ticks) that are made once. */
static void kernel(const rt_model *model, double *of_position, double *of_velocity) {
  const rt_tam *t = &model->tam;
  double weight[MOST_FIT], matrix[9], solved[3] = {0.0, 0.0, 1.0};
  for (int k = 0; k < window_of(t); k++) weight[k] = taper(t, k);
  information(model, weight, matrix);
  solve3(matrix, solved);
  for (int k = 0; k < window_of(t); k++) {
    const double at = (k - t->half_window) * model->timestep;
    of_position[k] = t->position_weight * weight[k] * (solved[0] + at * solved[1] + 0.5 * at * at * solved[2]);
    of_velocity[k] = t->velocity_weight * weight[k] * (solved[1] + at * solved[2]);
  }
}

/* Copy the ticks of the column that is due out of the ring; those before the first report, and invalid ones, are zero. */
static void read_ticks(const rt_core *core, int64_t total, double *rows, double *valid) {
  const rt_model *model = core->model;
  const rt_tam *t = &model->tam;
  const int n = model->robot.n, ticks = t->stride_rows * t->average + 2 * t->half_window;
  const int64_t start = t->stride_rows * t->average * (core->tam.state->columns - 1) - t->half_window;
  for (int k = 0; k < ticks; k++) {
    const int64_t index = start + k;
    const int kept = index >= 0 && total - index <= core->history.keep;
    double *row = rows + k * 3 * n;
    valid[k] = kept && rt_history_valid(&core->history, index) ? 1.0 : 0.0;
    if (valid[k] != 0.0)
      memcpy(row, rt_history_row(&core->history, index), sizeof(double) * (size_t)(3 * n));
    else
      memset(row, 0, sizeof(double) * (size_t)(3 * n));
    int idle = 1;
    for (int j = 0; j < n; j++) idle = idle && fabs(row[2 * n + j]) < t->idle;
    if (idle) valid[k] = 0.0;
  }
}

static float feature(const rt_tam *t, double value, float seen) {
  return (float)rt_clip(value, -t->bound, t->bound) * seen;
}

/* Mean position, velocity and torque (3 n) of a block, and its acceleration (n); 0 where too little of it is valid. */
static int block_means(const rt_model *model, const double *rows, const double *valid, int block, double *mean,
                       double *qdd) {
  const rt_tam *t = &model->tam;
  const int n = model->robot.n, from = t->half_window + block * t->average;
  double total = 0.0;
  for (int j = 0; j < 3 * n; j++) mean[j] = 0.0;
  for (int k = from; k < from + t->average; k++) {
    total += valid[k];
    if (valid[k] != 0.0)
      for (int j = 0; j < 3 * n; j++) mean[j] += rows[k * 3 * n + j];
  }
  const int usable = total / t->average >= 0.5;
  for (int j = 0; j < 3 * n; j++) mean[j] = usable ? mean[j] / total : 0.0;
  for (int j = 0; j < n && !usable; j++) qdd[j] = 0.0;
  return usable;
}

static void fast_features(const rt_model *model, const double *mean, const double *qdd, float *out) {
  const rt_tam *t = &model->tam;
  const int n = model->robot.n;
  double ideal[RT_MOST_JOINTS];
  rt_inverse_dynamics(&model->robot, mean, mean + n, qdd, ideal);
  for (int j = 0; j < n; j++) {
    const double velocity = mean[n + j], applied = mean[2 * n + j];
    const double residual = (applied - ideal[j] - t->armature_shift[j] * qdd[j]) / t->unit[j];
    float *f = out + j * t->fast_size;
    if (t->slow) {
      f[0] = feature(t, velocity, t->seen[0]);
      f[1] = feature(t, tanh(velocity / 0.03), t->seen[1]);
      f[2] = feature(t, applied / t->load[j], t->seen[2]);
      f[3] = feature(t, residual, t->seen[3]);
      f[4] = feature(t, qdd[j] * t->armature_range[j] / t->unit[j], t->seen[4]);
      f[5] = t->seen[5];
    } else {
      f[0] = feature(t, mean[j], t->seen[0]);
      f[1] = feature(t, velocity, t->seen[1]);
      f[2] = feature(t, applied / t->load[j], t->seen[2]);
      f[3] = feature(t, residual, t->seen[3]);
    }
  }
}

/* Averages (position, velocity, torque, acceleration) of a few rows of which some are usable. */
static void slow_features(const rt_model *model, const double *rows, int count, int usable, float *out) {
  const rt_tam *t = &model->tam;
  const int n = model->robot.n;
  double mean[3 * RT_MOST_JOINTS] = {0}, ideal[RT_MOST_JOINTS], columns[RT_MOST_JOINTS * 10] = {0};
  const double *q = mean, *qd = mean + n, *qdd = mean + 2 * n;
  if (!usable) {
    memset(out, 0, sizeof(float) * (size_t)(n * t->slow_size));
    return;
  }
  for (int k = 0; k < count; k++) { /* rows that are not usable are zero */
    for (int j = 0; j < 2 * n; j++) mean[j] += rows[k * 4 * n + j] / usable;
    for (int j = 0; j < n; j++) mean[2 * n + j] += rows[k * 4 * n + 3 * n + j] / usable;
  }
  rt_pose pose[RT_MOST_JOINTS];
  rt_motion motion[RT_MOST_JOINTS];
  rt_place(&model->robot, q, pose);
  rt_move(&model->robot, pose, qd, qdd, motion);
  rt_torques(&model->robot, pose, motion, model->robot.inertial, ideal);
  rt_link_regressor(&model->robot, pose, motion, t->carrier, columns, 10);
  const float *seen = t->seen + t->fast_size;
  for (int j = 0; j < n; j++) {
    float *f = out + j * t->slow_size;
    f[0] = feature(t, sin(q[j]), seen[0]);
    f[1] = feature(t, cos(q[j]), seen[1]);
    f[2] = feature(t, ideal[j] / t->load[j], seen[2]);
    for (int probe = 0; probe < 4; probe++) {
      double torque = 0.0;
      for (int k = 0; k < 10; k++) torque += t->payload[probe * 10 + k] * columns[j * 10 + k];
      f[3 + probe] = feature(t, torque * t->probe_scale[j], seen[3 + probe]);
    }
  }
}

/* Make the rows of the column that is due, and write its patch, (n, numbers). */
void rt_patch(rt_core *core, double *patch) {
  const rt_model *model = core->model;
  const rt_tam *t = &model->tam;
  rt_tam_part *p = &core->tam;
  const int n = model->robot.n, ticks = t->stride_rows * t->average + 2 * t->half_window, window = window_of(t);
  const size_t fast_row = (size_t)(n * t->fast_size), slow_row = (size_t)(n * t->slow_size);
  const int slow_rows = t->slow ? t->patch_rows / t->slow : 0, slow_stride = t->slow ? t->stride_rows / t->slow : 0;
  if (p->state->columns > 0) {
    double *rows = p->raw, *valid = rows + ticks * 3 * n, *means = valid + ticks, *usable = means + t->stride_rows * 4 * n;
    double of_position[MOST_FIT], of_velocity[MOST_FIT];
    read_ticks(core, RT_TAKE(core->history.state->total), rows, valid);
    kernel(model, of_position, of_velocity);
    memmove(p->fast, p->fast + t->stride_rows * fast_row,
            sizeof(float) * (size_t)(t->patch_rows - t->stride_rows) * fast_row);
    for (int block = 0; block < t->stride_rows; block++) {
      const int first = t->average / 2 + block * t->average;
      double *mean = means + block * 4 * n, *qdd = mean + 3 * n;
      int complete = 1;
      for (int k = first; k < first + window; k++) complete = complete && valid[k] != 0.0;
      if (complete) {
        const double *centre = rows + (first + t->half_window) * 3 * n;
        for (int j = 0; j < n; j++) qdd[j] = 0.0;
        for (int k = 0; k < window; k++) {
          const double *row = rows + (first + k) * 3 * n;
          for (int j = 0; j < n; j++) qdd[j] += of_position[k] * (row[j] - centre[j]) + of_velocity[k] * row[n + j];
        }
      } else {
        masked_curvature(model, rows + first * 3 * n, valid + first, qdd);
      }
      float *out = p->fast + (size_t)(t->patch_rows - t->stride_rows + block) * fast_row;
      usable[block] = block_means(model, rows, valid, block, mean, qdd) ? 1.0 : 0.0;
      if (usable[block] != 0.0)
        fast_features(model, mean, qdd, out);
      else
        memset(out, 0, sizeof(float) * fast_row);
    }
    if (t->slow) {
      memmove(p->slow, p->slow + slow_stride * slow_row, sizeof(float) * (size_t)(slow_rows - slow_stride) * slow_row);
      for (int block = 0; block < slow_stride; block++) {
        int count = 0;
        for (int k = 0; k < t->slow; k++) count += usable[block * t->slow + k] != 0.0;
        slow_features(model, means + block * t->slow * 4 * n, t->slow, count,
                      p->slow + (size_t)(slow_rows - slow_stride + block) * slow_row);
      }
    }
  }
  p->state->columns++;
  const int numbers = t->patch_rows * t->fast_size + slow_rows * t->slow_size;
  for (int j = 0; j < n; j++) {
    double *out = patch + j * numbers;
    for (int k = 0; k < t->patch_rows; k++)
      for (int f = 0; f < t->fast_size; f++) *out++ = p->fast[(size_t)k * fast_row + (size_t)(j * t->fast_size + f)];
    for (int k = 0; k < slow_rows; k++)
      for (int f = 0; f < t->slow_size; f++) *out++ = p->slow[(size_t)k * slow_row + (size_t)(j * t->slow_size + f)];
  }
}
