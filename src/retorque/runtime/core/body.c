/* Rigid-body algebra of a tree of joints with any axis: Newton-Euler, regressor, mass matrix, forward dynamics. */
#include "internal.h"

static void cross(const double *a, const double *b, double *out) {
  out[0] = a[1] * b[2] - a[2] * b[1];
  out[1] = a[2] * b[0] - a[0] * b[2];
  out[2] = a[0] * b[1] - a[1] * b[0];
}

static double dot(const double *a, const double *b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

static void turn(const double *r, const double *v, double *out) { /* R v */
  for (int i = 0; i < 3; i++) out[i] = r[3 * i] * v[0] + r[3 * i + 1] * v[1] + r[3 * i + 2] * v[2];
}

static void turn_back(const double *r, const double *v, double *out) { /* R' v */
  for (int i = 0; i < 3; i++) out[i] = r[i] * v[0] + r[3 + i] * v[1] + r[6 + i] * v[2];
}

/* Inertia (Ixx, Ixy, Iyy, Ixz, Iyz, Izz) times a vector. */
static void inertia_times(const double *six, const double *w, double *out) {
  out[0] = six[0] * w[0] + six[1] * w[1] + six[3] * w[2];
  out[1] = six[1] * w[0] + six[2] * w[1] + six[4] * w[2];
  out[2] = six[3] * w[0] + six[4] * w[1] + six[5] * w[2];
}

void rt_place(const rt_robot *robot, const double *q, rt_pose *pose) {
  for (int i = 0; i < robot->n; i++) {
    const double *r0 = robot->rotation + 9 * i, *p0 = robot->position + 3 * i, *u = robot->axis + 3 * i;
    double *r = pose[i].rotation, *p = pose[i].position;
    if (robot->prismatic[i]) {
      double along[3];
      turn(r0, u, along);
      for (int k = 0; k < 9; k++) r[k] = r0[k];
      for (int k = 0; k < 3; k++) p[k] = p0[k] + q[i] * along[k];
      continue;
    }
    const double s = sin(q[i]), c = cos(q[i]), t = 1.0 - c;
    const double about[9] = {
        c + t * u[0] * u[0],        t * u[0] * u[1] - s * u[2], t * u[0] * u[2] + s * u[1],
        t * u[0] * u[1] + s * u[2], c + t * u[1] * u[1],        t * u[1] * u[2] - s * u[0],
        t * u[0] * u[2] - s * u[1], t * u[1] * u[2] + s * u[0], c + t * u[2] * u[2]};
    for (int a = 0; a < 3; a++)
      for (int b = 0; b < 3; b++)
        r[3 * a + b] = r0[3 * a] * about[b] + r0[3 * a + 1] * about[3 + b] + r0[3 * a + 2] * about[6 + b];
    for (int k = 0; k < 3; k++) p[k] = p0[k];
  }
}

/* Velocities and accelerations of the links in their own frames; gravity is an acceleration of the ground. */
void rt_move(const rt_robot *robot, const rt_pose *pose, const double *qd, const double *qdd, rt_motion *motion) {
  rt_motion ground;
  for (int k = 0; k < 3; k++) {
    ground.turning[k] = ground.linear[k] = ground.turning_rate[k] = 0.0;
    ground.linear_rate[k] = -robot->gravity[k];
  }
  for (int i = 0; i < robot->n; i++) {
    const rt_motion *from = robot->parent[i] < 0 ? &ground : motion + robot->parent[i];
    const double *r = pose[i].rotation, *p = pose[i].position, *u = robot->axis + 3 * i;
    rt_motion *m = motion + i;
    double at[3], extra[3];
    const double rate = qdd ? qdd[i] : 0.0;
    cross(from->turning, p, at);
    for (int k = 0; k < 3; k++) at[k] += from->linear[k];
    turn_back(r, at, m->linear);
    turn_back(r, from->turning, m->turning);
    cross(from->turning_rate, p, at);
    for (int k = 0; k < 3; k++) at[k] += from->linear_rate[k];
    turn_back(r, at, m->linear_rate);
    turn_back(r, from->turning_rate, m->turning_rate);
    /* The joint's own part of the acceleration: S qdd + v x S qd. */
    cross(m->turning, u, extra);
    if (robot->prismatic[i]) {
      for (int k = 0; k < 3; k++) m->linear_rate[k] += u[k] * rate + extra[k] * qd[i];
      for (int k = 0; k < 3; k++) m->linear[k] += u[k] * qd[i];
    } else {
      double sideways[3];
      cross(m->linear, u, sideways);
      for (int k = 0; k < 3; k++) {
        m->turning_rate[k] += u[k] * rate + extra[k] * qd[i];
        m->linear_rate[k] += sideways[k] * qd[i];
        m->turning[k] += u[k] * qd[i];
      }
    }
  }
}

/* Torques of a motion, for ten inertial numbers a link. */
void rt_torques(const rt_robot *robot, const rt_pose *pose, const rt_motion *motion, const double *inertial,
                double *torque) {
  double force[RT_MOST_JOINTS][6];
  for (int i = 0; i < robot->n; i++) {
    const rt_motion *m = motion + i;
    const double *ten = inertial + 10 * i, *h = ten + 1, *w = m->turning;
    double d[3], a[3], b[3], spin[3];
    cross(w, m->linear, d); /* acceleration of the origin itself */
    for (int k = 0; k < 3; k++) d[k] += m->linear_rate[k];
    cross(m->turning_rate, h, a);
    cross(w, h, b);
    cross(w, b, spin);
    for (int k = 0; k < 3; k++) force[i][k] = ten[0] * d[k] + a[k] + spin[k];
    cross(h, d, a);
    inertia_times(ten + 4, w, b);
    cross(w, b, spin);
    inertia_times(ten + 4, m->turning_rate, b);
    for (int k = 0; k < 3; k++) force[i][3 + k] = a[k] + b[k] + spin[k];
  }
  for (int i = robot->n - 1; i >= 0; i--) {
    const double *f = force[i], *u = robot->axis + 3 * i;
    torque[i] = robot->prismatic[i] ? dot(u, f) : dot(u, f + 3);
    if (robot->parent[i] >= 0) {
      double linear[3], angular[3], arm[3], *up = force[robot->parent[i]];
      turn(pose[i].rotation, f, linear);
      turn(pose[i].rotation, f + 3, angular);
      cross(pose[i].position, linear, arm);
      for (int k = 0; k < 3; k++) up[k] += linear[k];
      for (int k = 0; k < 3; k++) up[3 + k] += angular[k] + arm[k];
    }
  }
}

/* A joint's axis as seen from a link farther out: what it does to a point of that link. */
typedef struct {
  double linear[3], angular[3];
} screw;

static void own_screw(const rt_robot *robot, int joint, screw *s) {
  const double *u = robot->axis + 3 * joint;
  for (int k = 0; k < 3; k++) {
    s->linear[k] = robot->prismatic[joint] ? u[k] : 0.0;
    s->angular[k] = robot->prismatic[joint] ? 0.0 : u[k];
  }
}

static void screw_outwards(const rt_pose *pose, const screw *from, screw *to) {
  double at[3];
  cross(from->angular, pose->position, at);
  for (int k = 0; k < 3; k++) at[k] += from->linear[k];
  turn_back(pose->rotation, at, to->linear);
  turn_back(pose->rotation, from->angular, to->angular);
}

/* Columns of one link in the regressor: torque (n, 10) that each of its ten numbers needs, rows `stride` apart. */
void rt_link_regressor(const rt_robot *robot, const rt_pose *pose, const rt_motion *motion, int link, double *out,
                       int stride) {
  screw seen[RT_MOST_JOINTS];
  int chain[RT_MOST_JOINTS], count = 0;
  for (int j = link; j >= 0; j = robot->parent[j]) chain[count++] = j;
  const rt_motion *m = motion + link;
  const double *w = m->turning, *a = m->turning_rate;
  double d[3];
  cross(w, m->linear, d);
  for (int k = 0; k < 3; k++) d[k] += m->linear_rate[k];
  /* force = m d + E h, with E h = a x h + w x (w x h) */
  const double ww = dot(w, w);
  const double e[9] = {w[0] * w[0] - ww,     w[0] * w[1] - a[2], w[0] * w[2] + a[1],
                       w[1] * w[0] + a[2],   w[1] * w[1] - ww,   w[1] * w[2] - a[0],
                       w[2] * w[0] - a[1],   w[2] * w[1] + a[0], w[2] * w[2] - ww};
  /* moment = h x d + I a + w x I w, as a matrix (3, 6) of the inertia's numbers */
  const double g[18] = {
      a[0],         a[1] - w[0] * w[2],         -w[1] * w[2], a[2] + w[0] * w[1],          w[1] * w[1] - w[2] * w[2], w[1] * w[2],
      w[0] * w[2],  a[0] + w[1] * w[2],         a[1],         w[2] * w[2] - w[0] * w[0],   a[2] - w[0] * w[1],        -w[0] * w[2],
      -w[0] * w[1], w[0] * w[0] - w[1] * w[1],  w[0] * w[1],  a[0] - w[1] * w[2],          a[1] + w[0] * w[2],        a[2]};
  for (int c = 0; c < count; c++) own_screw(robot, chain[c], seen + c);
  for (int c = 1; c < count; c++) /* carry each ancestor's screw out to the link */
    for (int hop = c - 1; hop >= 0; hop--) {
      screw next;
      screw_outwards(pose + chain[hop], seen + c, &next);
      seen[c] = next;
    }
  for (int c = 0; c < count; c++) {
    const double *l = seen[c].linear, *s = seen[c].angular;
    double *row = out + chain[c] * stride, turned[3];
    row[0] = dot(l, d);
    cross(d, s, turned); /* s . (e_k x d) = (d x s)_k */
    for (int k = 0; k < 3; k++) row[1 + k] = l[0] * e[k] + l[1] * e[3 + k] + l[2] * e[6 + k] + turned[k];
    for (int k = 0; k < 6; k++) row[4 + k] = s[0] * g[k] + s[1] * g[6 + k] + s[2] * g[12 + k];
  }
}

void rt_full_regressor(const rt_robot *robot, const rt_pose *pose, const rt_motion *motion, double *out) {
  const int n = robot->n;
  for (int k = 0; k < 10 * n * n; k++) out[k] = 0.0;
  for (int i = 0; i < n; i++) rt_link_regressor(robot, pose, motion, i, out + 10 * i, 10 * n);
}

/* The ten numbers of a link as its parent sees them, added to the parent's. */
static void add_to_parent(const rt_pose *pose, const double *ten, double *parent) {
  static const int row[6] = {0, 0, 1, 0, 1, 2}, column[6] = {0, 1, 1, 2, 2, 2};
  const double *r = pose->rotation, *p = pose->position;
  double h[3], half[9], full[9] = {ten[4], ten[5], ten[7], ten[5], ten[6], ten[8], ten[7], ten[8], ten[9]};
  turn(r, ten + 1, h);
  for (int a = 0; a < 3; a++)
    for (int b = 0; b < 3; b++)
      half[3 * a + b] = r[3 * a] * full[b] + r[3 * a + 1] * full[3 + b] + r[3 * a + 2] * full[6 + b];
  const double around = 2.0 * dot(p, h) + ten[0] * dot(p, p);
  parent[0] += ten[0];
  for (int k = 0; k < 3; k++) parent[1 + k] += h[k] + ten[0] * p[k];
  for (int k = 0; k < 6; k++) {
    const int a = row[k], b = column[k];
    double value = half[3 * a] * r[3 * b] + half[3 * a + 1] * r[3 * b + 1] + half[3 * a + 2] * r[3 * b + 2];
    value -= p[a] * h[b] + h[a] * p[b] + ten[0] * p[a] * p[b];
    parent[4 + k] += a == b ? value + around : value;
  }
}

void rt_inertia(const rt_robot *robot, const rt_pose *pose, double *matrix) {
  const int n = robot->n;
  double composite[RT_MOST_JOINTS][10];
  for (int i = 0; i < n; i++)
    for (int k = 0; k < 10; k++) composite[i][k] = robot->inertial[10 * i + k];
  for (int k = 0; k < n * n; k++) matrix[k] = 0.0;
  for (int i = n - 1; i >= 0; i--) {
    const double *ten = composite[i], *u = robot->axis + 3 * i;
    double f[6];
    if (robot->prismatic[i]) {
      for (int k = 0; k < 3; k++) f[k] = ten[0] * u[k];
      cross(ten + 1, u, f + 3);
    } else {
      cross(u, ten + 1, f);
      inertia_times(ten + 4, u, f + 3);
    }
    for (int j = i; j >= 0;) {
      const double *axis = robot->axis + 3 * j;
      matrix[i * n + j] = matrix[j * n + i] = robot->prismatic[j] ? dot(axis, f) : dot(axis, f + 3);
      double linear[3], angular[3], arm[3];
      turn(pose[j].rotation, f, linear);
      turn(pose[j].rotation, f + 3, angular);
      cross(pose[j].position, linear, arm);
      for (int k = 0; k < 3; k++) f[k] = linear[k];
      for (int k = 0; k < 3; k++) f[3 + k] = angular[k] + arm[k];
      j = robot->parent[j];
    }
    matrix[i * n + i] += robot->armature[i];
    if (robot->parent[i] >= 0) add_to_parent(pose + i, ten, composite[robot->parent[i]]);
  }
}

/* Acceleration of the ideal robot under a torque, where the links stand and (without acceleration) move already. */
void rt_accelerate(const rt_robot *robot, const rt_pose *pose, const double *qd, const double *torque, double *qdd) {
  const int n = robot->n;
  double matrix[RT_MOST_JOINTS * RT_MOST_JOINTS], bias[RT_MOST_JOINTS];
  rt_motion motion[RT_MOST_JOINTS];
  rt_move(robot, pose, qd, NULL, motion);
  rt_torques(robot, pose, motion, robot->inertial, bias);
  rt_inertia(robot, pose, matrix);
  for (int i = 0; i < n; i++) qdd[i] = torque[i] - bias[i];
  rt_cholesky(matrix, n);
  rt_forward_substitute(matrix, n, qdd);
  rt_back_substitute(matrix, n, qdd);
}

void rt_inverse_dynamics(const rt_robot *robot, const double *q, const double *qd, const double *qdd, double *torque) {
  rt_pose pose[RT_MOST_JOINTS];
  rt_motion motion[RT_MOST_JOINTS];
  rt_place(robot, q, pose);
  rt_move(robot, pose, qd, qdd, motion);
  rt_torques(robot, pose, motion, robot->inertial, torque);
  for (int i = 0; i < robot->n; i++) torque[i] += robot->armature[i] * qdd[i];
}

void rt_bias(const rt_robot *robot, int count, const double *q, const double *qd, double *torque) {
  rt_pose pose[RT_MOST_JOINTS];
  rt_motion motion[RT_MOST_JOINTS];
  for (int k = 0; k < count; k++, q += robot->n, qd += robot->n, torque += robot->n) {
    rt_place(robot, q, pose);
    rt_move(robot, pose, qd, NULL, motion);
    rt_torques(robot, pose, motion, robot->inertial, torque);
  }
}

void rt_forward_dynamics(const rt_robot *robot, const double *q, const double *qd, const double *torque, double *qdd) {
  rt_pose pose[RT_MOST_JOINTS];
  rt_place(robot, q, pose);
  rt_accelerate(robot, pose, qd, torque, qdd);
}

void rt_mass_matrix(const rt_robot *robot, const double *q, double *matrix) {
  rt_pose pose[RT_MOST_JOINTS];
  rt_place(robot, q, pose);
  rt_inertia(robot, pose, matrix);
}

void rt_regressor(const rt_robot *robot, const double *q, const double *qd, const double *qdd, double *regressor) {
  rt_pose pose[RT_MOST_JOINTS];
  rt_motion motion[RT_MOST_JOINTS];
  rt_place(robot, q, pose);
  rt_move(robot, pose, qd, qdd, motion);
  rt_full_regressor(robot, pose, motion, regressor);
}
