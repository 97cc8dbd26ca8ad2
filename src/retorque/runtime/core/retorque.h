/* Retorque's control tick and its learning in C99 (also valid C++17): one robot, no allocation, libm only.
 *
 * A model holds every constant; Python makes it (`retorque export c`, or ctypes), and nothing here writes to it. A core
 * is the memory of one robot: the caller gives `rt_bytes(model)` bytes, aligned to 64. A tick is `rt_observe`, then
 * `rt_correct`; `rt_learn` need not run within the tick: in the same thread, or in one other, every `learn_every`
 * ticks, and what it writes `rt_adopt` hands to the tick. Torques include gravity. Nothing here fails: codes say what a
 * tick was worth.
 */
#ifndef RETORQUE_H
#define RETORQUE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RT_MOST_JOINTS 32
#define RT_PER_JOINT 15 /* unknowns of a joint: see adapt/recursive/unknowns.py */
#define RT_WIDTHS 3     /* functions in the friction basis */

/* What a tick was worth: the same codes as `retorque.Health`. */
enum {
  RT_RAMP = 1,
  RT_RESIDUAL_LIMIT = 2,
  RT_RATE_LIMIT = 4,
  RT_TORQUE_LIMIT = 8,
  RT_BAD_CORRECTION = 16,
  RT_STALE = 32,
  RT_BAD_STATE = 64,
  RT_OUT_OF_RANGE = 128,
  RT_BAD_NOMINAL = 256,
  RT_BAD_CLOCK = 512,
  RT_GAP = 1024,
  RT_FROZEN = 2048,
  RT_SATURATED = 4096,
  RT_FAULT = 8192,
  RT_SKIPPED = 16384,
  RT_SURPRISED = 32768,
  RT_TORQUE_REPORT = 65536,
  RT_VELOCITY_REPORT = 131072,
  RT_SLIPPED = 262144,
  RT_TRIPPED = 524288,
  RT_FORCE_LIMIT = 1048576
};
#define RT_CODES 21

enum { RT_DIRECT, RT_RECURSIVE, RT_RECURSIVE_CONTACT, RT_TAM, RT_TAM_RECURSIVE, RT_DEFAULT };

/* The ideal robot: a tree of n links, each on its own joint, parents first. */
typedef struct {
  int n;
  const int *parent;         /* (n) index of the parent link; -1: the ground */
  const int *prismatic;      /* (n) 1 where the joint slides, 0 where it turns */
  const double *axis;        /* (n, 3) in the link's frame */
  const double *rotation;    /* (n, 3, 3) of the link in its parent at joint position zero */
  const double *position;    /* (n, 3) [m] */
  const double *inertial;    /* (n, 10) m, m c, Ixx, Ixy, Iyy, Ixz, Iyz, Izz about the link's origin */
  const double *armature;    /* (n) [kg m2] */
  double gravity[3];         /* [m/s2] */
} rt_robot;

/* The recursive Bayesian adapter, with what its contact-aware versions add. */
typedef struct {
  int size;                  /* unknowns, whitened */
  int directions;            /* inertial ones among them */
  int samples;               /* rows in a full window */
  int first_samples;         /* rows in the first window */
  int stride;                /* ticks between updates */
  int groups;                /* pieces of a window for velocity-dependent features */
  int apart;                 /* updates between windows that share no sample */
  int delay;                 /* updates that an equation waits where contact is watched */
  const double *joint_mean;  /* (n, 15) */
  const double *joint_root;  /* (n, 15, 15) */
  const double *joint_size;  /* (n, 15) prior standard deviations */
  const double *inertial_mean; /* (10 n) */
  const double *inertial_root; /* (10 n, directions) */
  const double *low;         /* (n, 15) */
  const double *high;        /* (n, 15) */
  const double *torque_width; /* (n) torque over which the dead zone switches [N m] */
  const double *scale;       /* (n) torque that counts as one [N m] */
  const double *strength;    /* (n) torque limits or a stand-in [N m] */
  double basis[RT_WIDTHS];   /* inverse widths of the friction basis [s/rad] */
  double sign_width;         /* velocity over which the bias switches [rad/s] */
  double report_delay;       /* standard deviation of the time between reports of torque and motion [s] */
  double sane;               /* rows and torques beyond this are no measurement */
  double shared;             /* extra noise of overlapping windows */
  double noise;              /* first guess of an equation's noise [scale] */
  double noise_floor;        /* [scale] */
  double noise_memory;       /* [s] */
  double forgetting;         /* share of the information that survives an update */
  double disturbance;        /* first guess of what the model cannot say [scale] */
  double disturbance_time;   /* [s] */
  double disturbance_memory; /* [s] */
  double residual_floor;     /* least noise of a residual [scale] */
  double first_evidence;     /* log odds that something is hidden, before any motion */
  double suspect;            /* squared distance above which something touches the robot */
  double clear;              /* ... below which it has let go */
  double calm;               /* after so long [s] */
  double longest;            /* a contact that lasts longer is a change of the robot [s] */
  double lead;               /* farthest extrapolation of the external torque [s] */
  double authority;          /* largest answer to an external torque, as a multiple of it */
} rt_recursive;

/* The network that reads residuals (tam-recursive). */
typedef struct {
  int features;              /* numbers it sees of a joint */
  int taps;                  /* torques that it weighs */
  int hidden;
  int layers;
  int block;                 /* ticks averaged into a block */
  int fine;                  /* newest residuals kept one by one */
  int coarse[3];             /* blocks in each of the older averages */
  int memory;                /* answers that an equation's samples reach back to */
  const double *embed;        /* (features + 1, hidden): the last row is the bias, as everywhere below */
  const double *combine;      /* (hidden, hidden) */
  const double *summary;      /* (2 hidden + 1, hidden) */
  const double *stack;        /* (layers, hidden + 1, hidden) */
  const double *head;         /* (hidden + 1, 2 taps + 1) */
  const double *unit;        /* (n) torque that counts as one [N m] */
  double offset;             /* largest torque that is no multiple of residuals [units] */
  double noise_memory;       /* [s] */
  double most_own;           /* [units] */
  double most_external;      /* [torque limits] */
  double pushed;             /* [units] */
  double clearly;            /* times the own torques */
  double surprising;         /* squared distance below which the estimate learns on */
} rt_residual;

/* What the default adapter adds: explanations that compete for a mismatch. */
typedef struct {
  int touch;                 /* unknowns of a touch, behind all others */
  int snapshots, sudden, delayed; /* estimates kept; which is gone back to; through how many evidence must last */
  int settled;               /* estimates kept before a robot that only trembles counts as still */
  int walk_every;            /* updates between two steps of a touch that wanders */
  int hand_link, arm_link, carrier; /* -1: on the ground */
  int payload_doubts;
  const int *counts;         /* (5 + n) numbers of each explanation */
  const double *deviations;  /* of all of them, one after another */
  const double *odds, *keep; /* (5 + n) log odds beforehand; what a number keeps of its value in an update */
  const double *armature;    /* (n) of the ideal robot that the tick follows [kg m2] */
  const double *closed_root; /* (n, 15, 15) of the first covariance */
  const double *payload_shift, *payload_doubt; /* (size, 11), (size, payload_doubts) */
  const double *joint_shift, *joint_doubt;     /* (n, 15, 4), (n, 15, 15) */
  double hand_place[3], arm_place[3]; /* in the links' frames [m] */
  int brief_samples;         /* of a window at the beginning of a dispute */
  double brief_from, brief_weight; /* from when on there is one [s], and what it is worth */
  double fade, weight;       /* of the last measurements; share of an independent one that an equation is worth */
  double own_width;          /* velocity over which a joint's friction switches [rad/s] */
  double inflation;          /* how much wider than its own errors an explanation opens the estimate */
  double most_mass, reach, gone, settling, forgiven, most_gain; /* [kg], [m], log odds, log odds, share */
  double impossible;         /* deviations beyond what is carried at which nothing can have been put down */
  double strange_mass, strange_reach, strange_gain; /* deviations of what lies beyond these, in shares of them */
  double hopeless, round, wary, behind, worse, own_odds; /* log odds, [s], log odds */
  double suspect, pushed, clear, creeping, surprised, rising, lately; /* squared distances */
  double snapshot_every, lasting, touched, again, calm, unseen, straddle, probation, rest; /* [s] */
  double certain, sure, patience; /* log odds, log odds, [s] */
  double abrupt, watched, convinced, ideal, ideal_run, turns, counted, made_good, pause; /* [s] */
  double full_factor;        /* noise factor of a full window */
  double mismatch_share;     /* of a new equation in the variance of the ideal robot's */
  const double *mismatch_floor; /* (n) [(N m)^2] */
  double lately_share;       /* of a new distance in the smoothed one */
  double carried_share, carried_mass; /* what can be put down [kg] */
  double still, quick, shows; /* [rad/s] */
  double drift_share;        /* of a new velocity in the smoothed one */
  double felt_fade, felt_lead, felt_kept, young_from, young_to; /* share, [s], [s], [s] */
  double felt_share, most_felt;                      /* share, [torque limits] */
  double touch_size;         /* standard deviation of a touch [torque limits] */
  double walk, budget;       /* [prior deviations in a second], [units] */
  const double *feedback_gain, *feedback_most, *sent_margin; /* (n) [N m s/rad], [N m], [N m] */
  const double *ring_floor;  /* (n) energy that is no ringing [(rad/s)^2] */
  double feedback_more;      /* times the gain that is added where a joint does not ring */
  double ring_fast, ring_slow, ring_share, ring_loud; /* shares of the newest velocity; energy of ringing in noises */
  double feedback_leak, sent_share; /* forgotten in a tick; of the newest report in the comparison of torques */
  double ignored;            /* corrections that were not sent for so long are not sent [s] */
} rt_default;

/* The torque adaptation module. */
typedef struct {
  int average, patch_rows, stride_rows, half_window, slow, columns, width, layers, heads, wide, factorised;
  int latent, window, hidden, depth, embed;
  int fast_size, slow_size, inputs, basis_rows;
  int carrier;               /* link that carries the test payloads */
  int trimmed;               /* whether recent errors are taken out between latents */
  int encoded;               /* whether there is a history encoder */
  int span, every;           /* ticks of a trim's check, and between checks */
  const float *seen;         /* (fast_size + slow_size) 0 where a variant may not look */
  const float *patch;        /* (patch numbers + 1, width) */
  const float *token;        /* (width + 1, width) */
  const double *base;        /* (n, width) what is known of each joint beforehand */
  const double *frequency;   /* (width / heads / 2) of the rotary embedding */
  const float *time_norm, *time_read, *time_write;    /* (layers, width), (layers, width, 3 width), (layers, width, width) */
  const float *joint_norm, *joint_read, *joint_write; /* the same over joints */
  const float *norm, *up, *down; /* (layers, width), (layers, width + 1, wide), (layers, wide + 1, width) */
  const float *last_norm;    /* (width) */
  const float *to_latent;    /* (width + 1, latent) */
  const double *embedding;   /* (inputs, 3 embed) */
  const float *combine;      /* (3 embed + 1, hidden) */
  const float *summary;      /* (hidden + 1, hidden) */
  const float *stack;        /* (depth - 1, hidden + 1, hidden) */
  const double *head;        /* (2 hidden + 2) of state, nothing, inner, one */
  const float *modulate;     /* (latent + 1, 2 depth hidden) */
  const float *to_basis;     /* (latent + 1, 14) */
  const float *to_jump;      /* (latent + 1, 2) */
  const float *middle, *half; /* (14) of the coefficients' ranges */
  const double *limits;      /* (n, basis_rows) most that a target can need */
  const double *unit, *load, *armature_range, *armature_shift; /* (n) */
  const double *payload;     /* (4, 10) test payloads on the carrier */
  const double *probe_scale; /* (n) */
  double newest_bends[2], bends[3]; /* inverse widths [s/rad] */
  double jump;               /* torque over which a dead zone's jump is smoothed [N m] */
  double idle, bound, epsilon;
  double position_weight, velocity_weight, ridge;
  int fewest;
  double trim_time, trim_most, trim_surprise; /* [s], [units], [units] */
} rt_tam;

/* What stands between the adapter and the robot. */
typedef struct {
  int active;                /* 0: the adapter runs bare */
  int shadow;                /* 1: compute and score the correction, send the nominal torque */
  int from_sent;             /* 1: the sent torque stands for the reported one */
  int watching;              /* 1: somebody else drives: reported torques are not those sent */
  int stale_ticks;           /* a belief older than this fades out */
  int torque_ticks, torque_lag; /* torques sent that a report may be of; the one it is expected to be near to */
  int look;                  /* ticks between looks at what changes slowly */
  int settled, probation, still_ticks, repeats, contradicted; /* ticks: see loop/guard/motion_check.py */
  int window;                /* ticks that the score averages */
  int points;                /* of the arm that may touch something */
  int rounds;                /* in which a correction is cut to the promise */
  const double *limit;       /* (n) of the torque [N m] */
  const double *residual_limit; /* (n) of the correction [N m] */
  const double *step_limit;  /* (n) of its change in a tick [N m] */
  const double *report_limit; /* (n) a report beyond this is saturated [N m] */
  const double *tolerance;   /* (n) a reported torque may be off by this [N m] */
  const double *speed;       /* (n) [rad/s] */
  const double *low, *high, *home; /* (n) [rad] */
  const double *far, *jump, *slip, *held; /* (n) [rad], [rad/s], [rad], [N m] */
  const double *fastest, *inertia; /* (n) [rad/s], [kg m2] */
  const double *swing;       /* (n) change of a moving joint's own friction [N m] */
  const double *rotor;       /* (n) by how much more a rotor may weigh, or less [kg m2] */
  const double *band;        /* (n) torque that may move nothing although the robot is free [N m] */
  const int *point_link;     /* (points) -1: on the ground */
  const double *point_place; /* (points, 3) in the link's frame [m] */
  double relative;           /* a reported torque may be off by this share of what was sent */
  double margin, absurd, bridge, suspicion_ease, suspicion_most;
  double follow, alpha, beta, constant, resolution, contrary, wild, brake, halt, against;
  double slow, restless, restless_memory, repeated; /* [rad/s], share, looks, times */
  double leap, least_leap, leap_memory; /* times what is usual, [rad/s], [s] */
  int blind_before;          /* windows */
  double blind_place, blind_speed, lost_place, lost_speed; /* [rad], [rad/s], [rad], [rad/s] */
  double blind_gone, gone_place, gone_speed; /* times, [rad], [rad/s] */
  double blind_rate, blind_noise, blind_least, blind_doubt; /* see loop/guard/blind_joints.py */
  double blind_nudge[3];     /* [rad], [rad/s], [rad/s2] */
  double ramp, recovery, fade, off; /* of the gain, a tick */
  double trip_after, rearm, limit_ease, hold; /* [s], [s], share, [s] */
  double score_rate, score_period; /* a window; [s] */
  double force_most, force_rate, force_follow; /* [N], a window each */
  double force_rest, force_still, force_moves, force_forget; /* [s], [rad/s], [rad/s], a window */
  double force_travel, force_memory, heaviest; /* a window, [s], [kg] */
  double load_rate, most_load; /* a window, [kg] */
  double least_lever, explained; /* [m], share */
} rt_supervisor;

typedef struct {
  int adapter;               /* RT_DIRECT ... */
  int learn_every;           /* ticks between calls of rt_learn; 0: never */
  int history;               /* rows that the ring of reports must keep */
  int bridged;               /* so many missing rows are interpolated */
  int settled;               /* reports in a row that set the clock anew */
  double farthest;           /* ticks ahead beyond which a stamp starts the clock anew */
  double tracking;           /* how fast the clock's zero follows drifting stamps */
  double timestep;           /* control period [s] */
  rt_robot robot;
  rt_recursive recursive;
  rt_residual residual;
  rt_default defaults;
  rt_tam tam;
  rt_supervisor supervisor;
} rt_model;

typedef struct rt_core rt_core;

/* Bytes of an rt_model: whoever makes one elsewhere compares. */
size_t rt_model_bytes(void);
/* Bytes that one core needs. */
size_t rt_bytes(const rt_model *model);
/* Make a core in memory that is aligned to 64; NULL where it cannot serve (too many joints). */
rt_core *rt_make(const rt_model *model, void *memory);
/* Forget everything learnt from the robot. */
void rt_reset(rt_core *core);
/* Another controller takes over; what was learnt stays. */
void rt_carry(rt_core *core);
/* Take in a report; a row that is not finite is no data. */
void rt_observe(rt_core *core, double time, const double *position, const double *velocity, const double *torque);
/* Numbers in a belief: time [s] first, then what the adapter hands to its tick. */
int rt_belief_size(const rt_model *model);
/* Update the estimate from what was observed; 1 where `belief` now holds a new one. */
int rt_learn(rt_core *core, double *belief);
/* Correct by this belief from now on. */
void rt_adopt(rt_core *core, const double *belief);
/* The torque to send instead of the nominal one [N m]. Under the supervisor the state is the last one observed. */
void rt_correct(rt_core *core, double time, const double *position, const double *velocity, const double *nominal,
                double *torque);
/* The tick's codes; of a bare adapter those that it sets itself. */
int64_t rt_health(const rt_core *core);
/* Of the supervisor: the correction after limits (n), how much of it goes out (n), how often each code came (RT_CODES),
 * mean squares of the missing torque, without and with the correction (2 n), and the windows that these rest on. */
const double *rt_correction(const rt_core *core);
const double *rt_gain(const rt_core *core);
const int64_t *rt_counts(const rt_core *core);
const double *rt_score(const rt_core *core);
const int64_t *rt_score_samples(const rt_core *core);
/* What a core has learnt, as bytes without addresses: to be saved and put back. */
size_t rt_memory_bytes(const rt_model *model);
void *rt_memory(rt_core *core);

/* What an adapter of the recursive family has learnt, in place: to be moved to another core, or out of C. */
typedef struct {
  int size, step;            /* unknowns; numbers from one row of the root to the next */
  double *mean, *root;       /* (size), (size, step) */
  double *noise;             /* (n) variance of an equation [(N m)^2] */
  double *torque, *doubt, *persistent, *neighbours, *total; /* (n) each, of what the unknowns leave */
  double *evidence;          /* (1) log odds that something is hidden */
} rt_learnt;
/* 1, or 0 where the adapter has no such estimate. */
int rt_learnt_of(rt_core *core, rt_learnt *learnt);
/* The numbers were written to: correct by them from now on. */
void rt_learnt_changed(rt_core *core);

/* Several cores behind one set of arrays (count, n): what Python and benches call, one call for all. */
typedef struct {
  rt_core **cores;
  int count;
  const double *time;        /* (1) of the report [s] */
  const double *position, *velocity, *torque, *nominal; /* (count, n) */
  double *sent;              /* (count, n) [N m] */
  int64_t *health;           /* (count) */
} rt_batch;

void rt_batch_reset(rt_batch *batch);
void rt_batch_carry(rt_batch *batch);
void rt_batch_observe(rt_batch *batch);
int rt_batch_learn(rt_batch *batch, double *beliefs);        /* (count, belief size); 1 where they are new */
void rt_batch_adopt(rt_batch *batch, const double *beliefs);
void rt_batch_correct(rt_batch *batch);

/* Make TAM's last column of tokens once more: to time it. */
void rt_repeat_column(rt_core *core);

/* The algebra by itself: inverse dynamics, forward dynamics, mass matrix (n, n), regressor (n, 10 n). */
void rt_inverse_dynamics(const rt_robot *robot, const double *q, const double *qd, const double *qdd, double *torque);
/* Coriolis, centrifugal and gravity torques of so many robots at once, (count, n) each. */
void rt_bias(const rt_robot *robot, int count, const double *q, const double *qd, double *torque);
void rt_forward_dynamics(const rt_robot *robot, const double *q, const double *qd, const double *torque, double *qdd);
void rt_mass_matrix(const rt_robot *robot, const double *q, double *matrix);
void rt_regressor(const rt_robot *robot, const double *q, const double *qd, const double *qdd, double *regressor);

#ifdef __cplusplus
}
#endif
#endif
