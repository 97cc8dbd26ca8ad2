/* The averaged equation of motion that the last samples of a robot give, in whitened unknowns. */
#include "internal.h"

double rt_command_sign(const rt_model *model, int joint, double torque) {
  return rt_clip(torque / model->recursive.torque_width[joint], -1.0, 1.0);
}

/* Add a joint's own features at one moment, times a weight; what does not depend on the velocity is left out. */
static void add_features(const rt_recursive *r, double weight, double velocity, double *out) {
  const double forward = velocity > 0.0 ? velocity : 0.0, backward = velocity - forward;
  const double share = 0.5 * (1.0 + tanh(velocity / r->sign_width));
  out[1] += weight * forward;
  out[2] += weight * backward;
  for (int k = 0; k < RT_WIDTHS; k++) {
    if (forward > 0.0)
      out[3 + k] += weight * tanh(forward * r->basis[k]);
    else
      out[6 + k] += weight * tanh(backward * r->basis[k]);
  }
  out[9] -= weight * share;
  out[10] += weight * (share - 1.0);
}

/* Features (n, 15) of a window: velocities along the fitted slope, piece by piece. */
static void window_features(const rt_model *model, int samples, const double *mean, const double *middle,
                            const double *acceleration, const double *sign, const double *torque, double *features) {
  const rt_recursive *r = &model->recursive;
  const int n = model->robot.n;
  const double piece = (double)(samples - 1) / r->groups;
  memset(features, 0, sizeof(double) * (size_t)(n * RT_PER_JOINT));
  double whole = 0.0;
  int low = 0;
  for (int group = 1; group <= r->groups; group++) {
    const int high = group == r->groups ? samples - 1 : (int)(group * piece);
    if (high == low) continue;
    double weight = 0.0;
    for (int k = low; k < high; k++) weight += mean[k];
    const double offset = (0.5 * (low + high) - 0.5 * (samples - 1)) * model->timestep;
    for (int j = 0; j < n; j++)
      add_features(r, weight, middle[j] + offset * acceleration[j], features + j * RT_PER_JOINT);
    whole += weight;
    low = high;
  }
  for (int j = 0; j < n; j++) {
    double *f = features + j * RT_PER_JOINT;
    const double pushing = torque[j] > 0.0 ? torque[j] : 0.0;
    f[0] = whole * acceleration[j];
    f[11] = whole * (sign[j] > 0.0 ? sign[j] : 0.0);
    f[12] = whole * (sign[j] < 0.0 ? sign[j] : 0.0);
    f[13] = -whole * pushing;
    f[14] = whole * (pushing - torque[j]);
  }
}

/* Prior torque and measurement rows of a regressor (n, 10 n) and features (n, 15). */
static void whitened(const rt_model *model, const double *regressor, const double *features, const double *rate,
                     rt_equation *e) {
  const rt_recursive *r = &model->recursive;
  const int n = model->robot.n, size = r->size, rest = n * RT_PER_JOINT, links = 10 * n;
  memset(e->rows, 0, sizeof(double) * (size_t)(n * size));
  for (int j = 0; j < n; j++) {
    double *row = e->rows + j * size;
    const double *f = features + j * RT_PER_JOINT, *root = r->joint_root + j * RT_PER_JOINT * RT_PER_JOINT;
    double prior = 0.0, ideal = 0.0;
    for (int k = 0; k < RT_PER_JOINT; k++) {
      for (int g = 0; g < RT_PER_JOINT; g++) row[j * RT_PER_JOINT + g] += f[k] * root[k * RT_PER_JOINT + g];
      prior += f[k] * r->joint_mean[j * RT_PER_JOINT + k];
    }
    for (int c = 0; c < links; c++) {
      const double y = regressor[j * links + c];
      if (y == 0.0) continue; /* links farther in do not load the joint */
      const double *direction = r->inertial_root + c * r->directions;
      for (int k = 0; k < r->directions; k++) row[rest + k] += y * direction[k];
      prior += y * r->inertial_mean[c];
      ideal += y * model->robot.inertial[c];
    }
    row[rest + r->directions] = -r->report_delay * rate[j];
    e->prior[j] = prior;
    e->ideal[j] = ideal;
  }
}

/* The equation of motion of the last rows, `most` at most, of a history that holds `total`.
 *
 * The least-squares slope of the velocity is a weighted mean of the accelerations between samples, with weights on a
 * parabola. Torques and features are averaged with the same weights, so that one exact equation comes out.
 */
void rt_averaged_equation(const rt_model *model, const rt_history *history, int64_t total, int most,
                          rt_equation *e) {
  const rt_recursive *r = &model->recursive;
  const int n = model->robot.n, samples = total < most ? (int)total : most;
  const double dt = model->timestep;
  double slope[512], mean[512], late[512], square = 0.0, shorter = 0.0;
  double q[RT_MOST_JOINTS] = {0}, middle[RT_MOST_JOINTS] = {0}, acceleration[RT_MOST_JOINTS] = {0};
  double sign[RT_MOST_JOINTS] = {0}, rate[RT_MOST_JOINTS] = {0};
  double features[RT_MOST_JOINTS * RT_PER_JOINT], regressor[RT_MOST_JOINTS * RT_MOST_JOINTS * 10];
  for (int k = 0; k < samples; k++) {
    slope[k] = (k - 0.5 * (samples - 1)) * dt;
    square += slope[k] * slope[k];
  }
  double sum = 0.0;
  for (int k = 0; k < samples; k++) {
    slope[k] /= square;
    sum += slope[k];
    mean[k] = -sum * dt; /* of the interval after sample k; the last is none */
  }
  for (int k = 0; k < samples - 1; k++) { /* slope of the torques, which have one sample less */
    late[k] = (k - 0.5 * (samples - 2)) * dt;
    shorter += late[k] * late[k];
  }
  e->accepted = 1;
  for (int j = 0; j < n; j++) e->torque[j] = 0.0;
  for (int k = 0; k < samples; k++) {
    const double *row = rt_history_row(history, total - samples + k);
    const double before = k > 0 ? mean[k - 1] : 0.0, after = k < samples - 1 ? mean[k] : 0.0;
    const double at = 0.5 * (before + after);
    for (int j = 0; j < n; j++) {
      q[j] += at * row[j];
      middle[j] += row[n + j];
      acceleration[j] += slope[k] * row[n + j];
    }
    if (k > 0)
      for (int j = 0; j < n; j++) {
        const double torque = row[2 * n + j];
        e->torque[j] += before * torque;
        sign[j] += before * rt_command_sign(model, j, torque);
        rate[j] += late[k - 1] * torque;
      }
    e->accepted = e->accepted && rt_history_valid(history, total - samples + k);
  }
  for (int j = 0; j < n; j++) {
    e->position[j] = q[j];
    e->velocity[j] = middle[j] /= samples;
    e->acceleration[j] = acceleration[j];
    rate[j] /= shorter;
  }
  window_features(model, samples, mean, middle, acceleration, sign, e->torque, features);
  rt_pose pose[RT_MOST_JOINTS];
  rt_motion motion[RT_MOST_JOINTS];
  rt_place(&model->robot, q, pose);
  rt_move(&model->robot, pose, middle, acceleration, motion);
  rt_full_regressor(&model->robot, pose, motion, regressor);
  whitened(model, regressor, features, rate, e);
  double largest_row = 0.0, largest_torque = 0.0;
  for (int j = 0; j < n; j++) {
    e->ideal[j] += model->robot.armature[j] * acceleration[j];
    if (!(fabs(e->torque[j]) <= largest_torque)) largest_torque = fabs(e->torque[j]);
    for (int k = 0; k < r->size; k++) {
      const double value = fabs(e->rows[j * r->size + k]);
      if (!(value <= largest_row)) largest_row = value;
      if (isnan(value)) e->accepted = 0;
    }
  }
  if (!(largest_row + largest_torque < r->sane)) e->accepted = 0;
  const double shortness = (double)r->samples / samples;
  e->factor = r->shared * r->samples / r->stride * shortness * shortness * shortness;
}

/* Joint unknowns (n, 15) and inertial parameters (10 n) of whitened coordinates (size). */
void rt_unknowns(const rt_model *model, const double *z, double *joint, double *inertial) {
  const rt_recursive *r = &model->recursive;
  const int n = model->robot.n, rest = n * RT_PER_JOINT;
  for (int j = 0; j < n; j++)
    for (int f = 0; f < RT_PER_JOINT; f++) {
      const double *root = r->joint_root + (j * RT_PER_JOINT + f) * RT_PER_JOINT;
      double sum = 0.0;
      for (int g = 0; g < RT_PER_JOINT; g++) sum += root[g] * z[j * RT_PER_JOINT + g];
      joint[j * RT_PER_JOINT + f] = r->joint_mean[j * RT_PER_JOINT + f] + sum;
    }
  for (int c = 0; inertial != NULL && c < 10 * n; c++) {
    const double *direction = r->inertial_root + c * r->directions;
    double sum = 0.0;
    for (int k = 0; k < r->directions; k++) sum += direction[k] * z[rest + k];
    inertial[c] = r->inertial_mean[c] + sum;
  }
}
