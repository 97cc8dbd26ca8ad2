/* What the files of the core share and users of it need not see. */
#ifndef RETORQUE_INTERNAL_H
#define RETORQUE_INTERNAL_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "retorque.h"

#if defined(__GNUC__)
#define RT_PUBLISH(place, value) __atomic_store_n(&(place), (value), __ATOMIC_RELEASE)
#define RT_TAKE(place) __atomic_load_n(&(place), __ATOMIC_ACQUIRE)
#else
#define RT_PUBLISH(place, value) ((place) = (value))
#define RT_TAKE(place) (place)
#endif

#define RT_LANES 8   /* columns that one pass over a matrix serves */
#define RT_ROWS 4    /* and rows */
#define RT_BELIEFS 3 /* a tick may still read one while the next but one is written */
#define RT_ROOM 256  /* rows beyond those asked for: what a learner reads is not written over meanwhile */
#define RT_BLOCKS ((RT_MOST_JOINTS + RT_LANES - 1) / RT_LANES)

typedef struct {
  double rotation[9]; /* of the link in its parent */
  double position[3];
} rt_pose;

typedef struct {
  double turning[3], linear[3], turning_rate[3], linear_rate[3];
} rt_motion;

/* algebra.c */
void rt_cholesky(double *a, int n);                                   /* lower triangle in place */
void rt_forward_substitute(const double *lower, int n, double *b);    /* L x = b */
void rt_back_substitute(const double *lower, int n, double *b);       /* L' x = b */
void rt_lower_inverse(const double *lower, int n, double *out);       /* dense, zeros above */
int rt_symmetric_inverse(const double *a, int n, double *out);        /* of a positive definite matrix */
void rt_eigen4(double *a, double *vectors);                           /* a becomes diagonal */
void rt_feasible(double *ten, double floor);                          /* nearest physical inertia */
int rt_all_finite(const double *x, int count);
double rt_clip(double x, double low, double high);

/* kernels.c: out (rows, outputs) += x (rows, inputs) times weights (inputs, outputs); rows lie `..._step` apart. */
void rt_add_product(int rows, int inputs, int outputs, const double *x, int x_step, const double *weights,
                    int weights_step, double *out, int out_step);
void rt_filter_rows(int rows, int step, int n, double *root, const double *lanes, const double *unit, const double *mix,
                    const double *gain, double *mean);
void rt_exponentials(double *x, int count);
void rt_scores(const double *query, const double *keys, int count, int stride, int size, double *score);
void rt_weighted(const double *score, const double *values, int count, int stride, int size, double *out);
void rt_triangle(double *a, int rows, int width, int stride); /* a Q = (L, 0) in place, Q a rotation */
void rt_hyperbolic_tangents(double *x, int count);
void rt_modulated(int rows, int size, double epsilon, const double *x, const double *gain, const double *shift,
                  double *out);
/* A layer of a network for all joints: single-precision weights, sums in double. With a bias in the last row, or none. */
void rt_dense(const float *weights, int inputs, int outputs, int rows, const double *x, double *out);
void rt_matrix(const float *weights, int inputs, int outputs, int rows, const double *x, double *out);

/* body.c */
void rt_place(const rt_robot *robot, const double *q, rt_pose *pose);
void rt_move(const rt_robot *robot, const rt_pose *pose, const double *qd, const double *qdd, rt_motion *motion);
void rt_torques(const rt_robot *robot, const rt_pose *pose, const rt_motion *motion, const double *inertial,
                double *torque);
void rt_link_regressor(const rt_robot *robot, const rt_pose *pose, const rt_motion *motion, int link, double *out,
                       int stride);
void rt_full_regressor(const rt_robot *robot, const rt_pose *pose, const rt_motion *motion, double *out);
void rt_inertia(const rt_robot *robot, const rt_pose *pose, double *matrix);
void rt_accelerate(const rt_robot *robot, const rt_pose *pose, const double *qd, const double *torque, double *qdd);

/* history.c */
typedef struct {
  double zero, other; /* stamp of tick 0; of the newest late report [s] */
  int64_t ticks;
  int64_t settled;
} rt_clock;

void rt_clock_reset(rt_clock *clock);
int64_t rt_ticks_since(rt_clock *clock, const rt_model *model, double time);

typedef struct {
  rt_clock clock;
  double time;    /* stamp of the newest report [s] */
  int64_t total;  /* rows since the start */
  int64_t missing;
} rt_history_state;

typedef struct {
  rt_history_state *state;
  double *rows;   /* (capacity, 3, n) */
  unsigned char *valid; /* (capacity) */
  int keep, capacity, n;
} rt_history;

void rt_history_reset(rt_history *history, const rt_model *model);
int rt_history_add(rt_history *history, const rt_model *model, double time, const double *position,
                   const double *velocity, const double *torque);
/* Row number `index`, counted from the start; negative ones repeat the first. */
static inline double *rt_history_row(const rt_history *h, int64_t index) {
  int64_t slot = index % h->capacity;
  return h->rows + (slot < 0 ? slot + h->capacity : slot) * 3 * h->n;
}
static inline int rt_history_valid(const rt_history *h, int64_t index) {
  int64_t slot = index % h->capacity;
  return h->valid[slot < 0 ? slot + h->capacity : slot];
}

/* filter.c */
typedef struct {
  double *mean;   /* (size) */
  double *root;   /* (size, step) */
  int size, step; /* rows are padded */
} rt_filter;

/* One averaged equation of motion a joint: torque = prior + rows z. */
typedef struct {
  double torque[RT_MOST_JOINTS], prior[RT_MOST_JOINTS], ideal[RT_MOST_JOINTS];
  double position[RT_MOST_JOINTS], velocity[RT_MOST_JOINTS], acceleration[RT_MOST_JOINTS];
  double factor;
  int accepted;
  double *rows; /* (n, size) */
} rt_equation;

/* What an update needs beside the filter: F' (n, step), F by lanes, ... */
typedef struct {
  double *spread;  /* (most joints, step) */
  double *lanes;   /* (blocks, step, 8) */
  double *blank;   /* (n, size) */
} rt_scratch;

void rt_filter_reset(rt_filter *filter);
void rt_filter_prior_root(rt_filter *filter);
void rt_predict(const rt_model *model, const rt_filter *filter, const double *rows, double *expected, double *spread);
void rt_expect(const rt_model *model, const rt_filter *filter, const double *rows, double *expected);
void rt_gram(const double *spread, int n, int size, int step, double *out);
int rt_filter_update(const rt_model *model, rt_filter *filter, const double *innovation, const double *rows,
                     double *spread, const double *noise, rt_scratch *scratch, int forget);
void rt_project(rt_filter *filter, int first, const double *row, int count, double change, double *scratch);

/* equation.c */
void rt_averaged_equation(const rt_model *model, const rt_history *history, int64_t total, int most,
                          rt_equation *equation);
void rt_unknowns(const rt_model *model, const double *z, double *joint, double *inertial);
double rt_command_sign(const rt_model *model, int joint, double torque);

/* recursive.c */
typedef struct { /* where the parts of an estimate stand in a row of numbers */
  int inertial, armature, offset, forward, backward, push, pull, trust;
  int contact, external, external_rate, share, own, follow, backing, size;
} rt_layout;

typedef struct {
  double evidence, touched, calm, share;
  int64_t disturbance_count, waiting_count, contact, health;
  int64_t learnt_at, answers, touching, blocks, closed, unsound; /* of the network's part */
} rt_recursive_state;

typedef struct {
  rt_recursive_state *state;
  rt_filter filter;
  double *noise, *torque, *doubt, *persistent, *neighbours, *total; /* (n) each: noise, and the disturbance's */
  double *residuals;      /* (apart, n) */
  unsigned char *used;    /* (apart) */
  double *external, *external_rate; /* (n) */
  double *estimate;       /* as in a belief */
  double *waiting;        /* (delay, 4 n + 2 + n size) */
  double *rows;           /* (n, size) of the newest equation */
  double *old_rows;       /* (n, size) of the one that has waited */
  rt_scratch scratch;
  /* The network's: */
  double *before, *ring, *velocities, *roughness, *pushed, *own, *uncertain, *push_sizes;
} rt_recursive_part;

/* Variance of what lasts; residuals that turn round from one to the next do not [(N m)^2]. */
static inline double rt_lasting(const rt_recursive_part *p, int j) {
  return p->neighbours[j] > 0.0 ? rt_clip(p->persistent[j], 0.0, p->total[j]) : 0.0;
}

/* default/ */
/* Velocity that a robot lacks is forgotten, counted, or counted and fed back. */
#define RT_ANEW 0.0
#define RT_COUNTS 0.5
#define RT_ACTS 1.0

typedef struct {
  int64_t disputed, held, kept, under_touch, walked, known, counted;
  double disputed_for, calm_for, unseen_for, rest, fastest, since_snapshot, own_since, refuted;
  double rising_for, hidden_for, ideal_for, ideal_run, watched, weighed_for, lately, pause, undo_evidence, mismatches;
} rt_default_state;

typedef struct {
  rt_default_state *state;
  double *old_means, *old_roots;      /* (snapshots, step), (snapshots, size, step) */
  double *old_evidence, *old_sizes;   /* (snapshots), (snapshots, 2, n) noise and what is never explained */
  double *undo_mean, *undo_root;      /* (step), (size, step) */
  double *felt;                       /* (2, n) torque from outside, and its rate */
  double *drift;                      /* (n) velocities, smoothed [rad/s] */
  double *mismatch;                   /* (n) variance of what the ideal robot's equation leaves [(N m)^2] */
  double *ideal_velocity, *ideal_acceleration; /* (n) of the velocity feedback [rad/s], [rad/s2] */
  double *asked, *nominal, *asked_error, *nominal_error; /* (n) torques of the last tick, and how far reports are [N m] */
  double *ignored, *feedback;         /* (n) how long corrections were not sent [s], [N m] */
  double *ring_fast, *ring_slow;      /* (n) two low passes of what is lacking [rad/s] */
  double *ring_before, *ring_earlier; /* (n) its last two values [rad/s] */
  double *ring_energy, *ring_noise;   /* (n) between the low passes, and of white noise [(rad/s)^2] */
  double *means, *covariances, *evidence, *recent; /* of the explanations */
  double *old_spread;                 /* (n, step) */
  double *work;                       /* (size, work_stride) a root and doubt beside it */
  int work_stride;
} rt_default_part;

/* tam.c, encoder.c */
typedef struct {
  int64_t columns, checked;
} rt_tam_state;

typedef struct {
  rt_tam_state *state;
  float *fast, *slow;      /* (patch_rows, n, fast_size), (slow rows, n, slow_size) */
  double *keys, *values;   /* (layers, columns, n, width) */
  double *latent;          /* (n, latent) */
  double *trim;            /* (n) */
  double *work;            /* scratch of the encoder */
  double *raw;             /* scratch of the features */
} rt_tam_part;

/* What an adaptor needs of a latent, made once a column. */
typedef struct {
  double *gain, *shift;    /* (depth, n, hidden) */
  double *coefficients;    /* (n, basis_rows) */
  double *jump_middle, *jump_half; /* (n) */
} rt_modulation;

/* guard/ */
typedef struct {
  rt_clock clock;
  double time, stamp; /* the adapter's own clock, and the newest report's [s] */
  int64_t ticks, age, silent, fresh, health, codes;
  double held;        /* how long the nominal torque has not been finite [s] */
  /* reports */
  int64_t reports, watch, calm, report_codes, in_range;
  double range_gain;
  int64_t sent_count;
  /* fading, force, score */
  int64_t full, engaged, score_count, samples, broken, good, ended; /* the last: a window did with the last tick */
  /* blind joints */
  int64_t blind_calm, blind_seen; /* windows in a row in which all could be seen; learnt from */
  double blind_doubt;
  double rest, load_fit[2]; /* [s]; of a load in the hand to the correction, w c and w w */
  int64_t counts[RT_CODES];
} rt_guard_state;

typedef struct {
  rt_guard_state *state;
  double *now, *expected, *before; /* (3, n) each: position, velocity, torque */
  double *level;                   /* (2, n) suspicion of motion and torque [s] */
  unsigned char *suspect, *fault, *distrusted; /* (n) the last: its velocity is rebuilt */
  unsigned char *blind, *dead;     /* (n) its nominal torque is worked out from wrong numbers; it stands still */
  double *raw, *rebuilt;           /* (2, n) */
  double *offset, *error, *slip_error, *start_torque; /* (n) */
  double *mean_velocity, *drift, *moved, *pace, *own, *weight; /* (n) of the force promise */
  int64_t *slipping, *waiting, *lost, *same_q, *same_v, *still, *contrary; /* (n) */
  double *last_position, *earlier_position; /* (n) of the last two reports [rad] */
  double *restless;                /* (n) share of looks at which positions turn round */
  unsigned char *stopped, *leapt;  /* (n) */
  double *usual, *leap;            /* (n) mean square of a velocity's change within a tick; what is looked at */
  double *ring;                    /* (torque_ticks, n) torques sent */
  double *gain, *ramp, *bad_for, *at_limit, *rested, *whole_gain; /* (n) */
  double *nominal_gain;            /* (n) how much of the nominal torque goes out */
  double *coast;                   /* (n) velocity that a joint would have whose encoder stands still [rad/s] */
  unsigned char *tripped;          /* (n) */
  double *left, *anchor, *unloaded, *jacobian, *inverse; /* (n) three times, (points, 3, n) twice */
  double *sums, *from, *squares;   /* (2, n), (3, n), (2, n) */
  double *window_left, *window_correction, *window_torque, *window_motion; /* (n) three times, (3, n) */
  unsigned char *known;            /* (n) blind joints that are followed */
  double *missed, *missed_size, *missed_lasting; /* (windows, n), (n, n), (n) what corrections leave */
  double *place_covariance, *work; /* (2 n, 2 n) of blind joints; of a window */
  double *last, *last_nominal;     /* (n) */
  double *shown;                   /* (3, n) */
} rt_guard;

struct rt_core {
  const rt_model *model;
  size_t memory_bytes;
  unsigned char *memory;   /* everything that is learnt, without addresses */
  rt_history history;
  double *beliefs;         /* (RT_BELIEFS, size) */
  rt_modulation modulation[RT_BELIEFS + 1]; /* the last one is the learner's own */
  int belief_size;
  int64_t *current;        /* which belief the tick uses */
  rt_layout layout;
  rt_recursive_part recursive;
  rt_default_part defaults;
  rt_tam_part tam;
  rt_guard guard;
};

/* core.c: the adapter without its supervisor */
void rt_bare_observe(rt_core *core, double time, const double *position, const double *velocity, const double *torque);
int rt_bare_learn(rt_core *core, double *belief);
void rt_bare_correct(rt_core *core, double time, const double *position, const double *velocity, const double *nominal,
                     double *torque);
int64_t rt_bare_health(const rt_core *core);
/* guard/reports.c */
void rt_reports_reset(rt_core *core);
void rt_reports_take(rt_core *core, int64_t step); /* `now` holds the report; `shown` is what the adapter may see */
void rt_reports_sent(rt_core *core, const double *torque);
void rt_drive(rt_core *core, int joint, double change); /* a joint that nobody sees moves faster */
/* guard/blind_joints.c */
void rt_blind_reset(rt_core *core);
void rt_blind_note(rt_core *core);
void rt_blind_window(rt_core *core);
/* guard/force.c */
void rt_world_poses(const rt_robot *robot, const double *q, double *rotation, double *origin);
void rt_point_jacobian(const rt_robot *robot, const double *rotation, const double *origin, int link,
                       const double *place, double *out);
void rt_force_reset(rt_core *core);
void rt_force_window(rt_core *core);
int rt_force_limit(const rt_core *core, const double *correction, double *out);
/* guard/supervisor.c */
void rt_guard_reset(rt_core *core);
void rt_guard_observe(rt_core *core, double time, const double *position, const double *velocity, const double *torque);
void rt_guard_correct(rt_core *core, const double *nominal, double *torque);

rt_layout rt_layout_of(const rt_model *model);
void rt_recursive_reset(rt_core *core);
int rt_recursive_learn(rt_core *core);
void rt_write_belief(rt_core *core, double *belief);
void rt_refresh(rt_core *core);
void rt_estimate_torque(const rt_core *core, const double *estimate, const rt_pose *pose, const double *qd,
                        const double *qdd, const double *external, const double *given, double *torque);
void rt_recursive_correct(const rt_core *core, const double *belief, double time, const double *q, const double *qd,
                          const double *nominal, double *torque);
double rt_distance(const rt_core *core, const double *innovation, const double *spread, double factor);
void rt_limit_share(rt_core *core, const double *external);
double rt_ahead(const rt_model *model, double age);
void rt_constrain(rt_core *core);
static inline int rt_has_network(const rt_model *model) {
  return model->adapter == RT_TAM_RECURSIVE || model->adapter == RT_DEFAULT;
}
/* contact.c */
void rt_screen_contact(rt_core *core, rt_equation *equation, const double *innovation, const double *spread);
int rt_exchange(rt_core *core, rt_equation *equation, rt_equation *oldest);
/* residual.c */
void rt_residual_reset(rt_core *core);
void rt_screen_residual(rt_core *core, rt_equation *equation, const double *innovation, const double *spread);
int rt_residual_learn(rt_core *core);
/* default/explanations.c */
void rt_explanations_restart(rt_core *core);
int rt_explanations_renew(rt_core *core);
void rt_explanations_take(rt_core *core, const rt_equation *equation, const double *y, const double *noise,
                          double weight);
int rt_explanations_verdict(const rt_core *core, double least, double carried);
int rt_explanations_over(const rt_core *core);
int rt_explanations_opening(const rt_core *core, int verdict, double *shift, double *doubt, int stride);
/* default/velocity_feedback.c */
void rt_feedback_reset(rt_core *core);
void rt_feedback_observe(rt_core *core, const double *position, const double *velocity, const double *torque);
void rt_feedback_expect(const rt_core *core, const double *acceleration, const double *nominal, const double *asked);
/* default/default.c */
void rt_default_reset(rt_core *core);
void rt_screen_default(rt_core *core, rt_equation *equation, double *innovation, double *spread);
double rt_default_evidence(const rt_core *core);
double rt_default_follow(const rt_core *core);
double rt_default_backing(const rt_core *core, double trust);
void rt_default_answer(rt_core *core);
/* tam.c */
void rt_tam_reset(rt_core *core);
int rt_tam_learn(rt_core *core);
void rt_modulate(const rt_model *model, const double *latent, rt_modulation *out);
void rt_tam_correct(const rt_core *core, const double *belief, const rt_modulation *modulation, const double *nominal,
                    double *torque);
/* encoder.c */
void rt_encode(const rt_model *model, rt_tam_part *tam, const double *patch);
/* features.c */
void rt_patch(rt_core *core, double *patch);

#endif
