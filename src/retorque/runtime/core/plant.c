/* Many robots of one tree at once: what a bench needs beside its adapters. */
#include "internal.h"

void rt_bias_all(const rt_robot *robot, int count, const double *q, const double *qd, double *bias) {
  const int n = robot->n;
  rt_pose pose[RT_MOST_JOINTS];
  rt_motion motion[RT_MOST_JOINTS];
  for (int k = 0; k < count; k++) {
    rt_place(robot, q + k * n, pose);
    rt_move(robot, pose, qd + k * n, NULL, motion);
    rt_torques(robot, pose, motion, robot->inertial, bias + k * n);
  }
}

/* (M + dt D) a = applied - D v - h, then v += dt a and q += dt v: what MuJoCo's Euler integrator does. */
void rt_step_all(const rt_robot *robot, int steps, const int64_t *which, double timestep, const double *inertial,
                 const double *armature, const int *row, const double *applied, const double *damping, double *q,
                 double *qd) {
  const int n = robot->n;
  rt_pose pose[RT_MOST_JOINTS];
  rt_motion motion[RT_MOST_JOINTS];
  double matrix[RT_MOST_JOINTS * RT_MOST_JOINTS], force[RT_MOST_JOINTS];
  for (int step = 0; step < steps; step++) {
    const int64_t k = which == NULL ? step : which[step];
    const double *slope = damping + k * row[1], *push = applied + k * row[0];
    double *position = q + k * row[2], *velocity = qd + k * row[3];
    rt_robot own = *robot;
    own.inertial = inertial + k * 10 * n;
    own.armature = armature + k * n;
    rt_place(&own, position, pose);
    rt_move(&own, pose, velocity, NULL, motion);
    rt_torques(&own, pose, motion, own.inertial, force);
    rt_inertia(&own, pose, matrix);
    for (int j = 0; j < n; j++) {
      force[j] = push[j] - slope[j] * velocity[j] - force[j];
      matrix[j * n + j] += timestep * slope[j];
    }
    rt_cholesky(matrix, n);
    rt_forward_substitute(matrix, n, force);
    rt_back_substitute(matrix, n, force);
    for (int j = 0; j < n; j++) {
      velocity[j] += timestep * force[j];
      position[j] += timestep * velocity[j];
    }
  }
}
