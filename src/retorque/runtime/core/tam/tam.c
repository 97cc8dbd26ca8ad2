/* The torque adaptation module: the adaptor of every tick, its trim, and when columns are due. */
#include "internal.h"

enum { MOST_WINDOW = 32, MOST_HIDDEN = 128, MOST_EMBED = 128, MOST_DEPTH = 8, MOST_INPUTS = 128 };
enum { PROBES = 4, COEFFICIENTS = 14 };
/* The basis of the physical part: saturated and plain velocity, armature, own mass, payloads; the same without their
 * signs; the known armature; one. */
enum { BENDS = 0, MEAN = 3, SPREAD = 4, CARRIED = 5, PROBED = 6, SIGNED = 10, KNOWN = 20, CONSTANT = 21, BASIS = 22 };

/* Everything in the adaptor that depends on the latent (n, latent). */
void rt_modulate(const rt_model *model, const double *latent, rt_modulation *out) {
  const rt_tam *t = &model->tam;
  const int n = model->robot.n, wide = t->depth * t->hidden;
  double few[RT_ROWS * 2 * MOST_DEPTH * MOST_HIDDEN], raw[COEFFICIENTS], jump[2];
  for (int j = 0; j < n; j++) {
    const double *z = latent + j * t->latent, unit = t->unit[j], *both = few + j % RT_ROWS * 2 * wide;
    double *c = out->coefficients + j * BASIS;
    if (j % RT_ROWS == 0) rt_dense(t->modulate, t->latent, 2 * wide, n - j < RT_ROWS ? n - j : RT_ROWS, z, few);
    for (int layer = 0; layer < t->depth; layer++)
      for (int k = 0; k < t->hidden; k++) {
        const int to = (layer * n + j) * t->hidden + k;
        out->gain[to] = 1.0 + both[layer * t->hidden + k];
        out->shift[to] = both[wide + layer * t->hidden + k];
      }
    rt_dense(t->to_basis, t->latent, COEFFICIENTS, 1, z, raw);
    for (int k = 0; k < COEFFICIENTS; k++) {
      const double middle = (double)t->middle[k], half = (double)t->half[k];
      raw[k] = middle + half * tanh((raw[k] - middle) / half);
    }
    memset(c, 0, sizeof(double) * BASIS);
    c[CONSTANT] = raw[0] * unit;
    c[MEAN] = raw[1] * unit;
    c[SIGNED + MEAN] = raw[2] * unit;
    for (int k = 0; k < 3; k++) c[BENDS + k] = raw[3 + k] * unit;
    c[SIGNED + BENDS + 1] = raw[6] * unit;
    c[SPREAD] = raw[7];
    c[KNOWN] = raw[8];
    c[CARRIED] = raw[9];
    for (int k = 0; k < PROBES; k++) c[PROBED + k] = raw[10 + k] * unit;
    rt_dense(t->to_jump, t->latent, 2, 1, z, jump);
    for (int k = 0; k < 2; k++) /* log(1 + exp(x)) without overflow */
      jump[k] = ((jump[k] > 0.0 ? jump[k] : 0.0) + log1p(exp(-fabs(jump[k])))) * unit;
    out->jump_middle[j] = 0.5 * (jump[0] - jump[1]);
    out->jump_half[j] = 0.5 * (jump[0] + jump[1]);
  }
}

static void rectify(double *x, int count) {
  for (int k = 0; k < count; k++) x[k] = x[k] > 0.0 ? x[k] : 0.0;
}

/* One number for each joint out of its inputs (n, inputs). */
static void perceptron(const rt_model *model, const rt_modulation *mod, const double *inputs, double *out) {
  const rt_tam *t = &model->tam;
  const int n = model->robot.n, h = t->hidden, e = 3 * t->embed;
  double x[RT_MOST_JOINTS * MOST_HIDDEN], step[RT_MOST_JOINTS * MOST_HIDDEN], wide[RT_MOST_JOINTS * 3 * MOST_EMBED];
  double mean[MOST_HIDDEN] = {0}, inner[RT_MOST_JOINTS * MOST_HIDDEN];
  memset(wide, 0, sizeof(double) * (size_t)(n * e));
  rt_add_product(n, t->inputs, e, inputs, t->inputs, t->embedding, e, wide, e);
  rectify(wide, n * e);
  rt_dense(t->combine, e, h, n, wide, x);
  for (int j = 0; j < n; j++)
    for (int k = 0; k < h; k++) mean[k] += x[j * h + k];
  for (int k = 0; k < h; k++) mean[k] /= n;
  rectify(mean, h);
  rt_dense(t->summary, h, h, 1, mean, step);
  for (int j = 0; j < n; j++)
    for (int k = 0; k < h; k++) x[j * h + k] += step[k];
  for (int layer = 0; layer < t->depth; layer++) {
    const size_t at = (size_t)(layer * n * h);
    rt_modulated(n, h, t->epsilon, x, mod->gain + at, mod->shift + at, inner);
    if (layer == t->depth - 1) break; /* the last layer and the head are one vector */
    rt_dense(t->stack + (size_t)layer * (size_t)((h + 1) * h), h, h, n, inner, step);
    for (int k = 0; k < n * h; k++) x[k] += step[k];
  }
  double last[RT_MOST_JOINTS];
  rt_scores(t->head, x, n, h, h, out);
  rt_scores(t->head + h + 1, inner, n, h, h, last);
  for (int j = 0; j < n; j++) out[j] += last[j] + t->head[2 * h + 1];
}

/* What the adaptor sees at one moment. */
typedef struct {
  const double *row[MOST_WINDOW]; /* reports (3, n), newest first */
  const double *nominal;          /* (n) [N m] */
} sight;

/* The torque to add, (n) [N m], at a state (q, qd) where the ideal robot would answer the nominal torque. */
static void correction(const rt_model *model, const rt_modulation *mod, const sight *s, const double *q,
                       const double *qd, double *out) {
  const rt_tam *t = &model->tam;
  const int n = model->robot.n, window = t->window, each = window + 5;
  double ideal[RT_MOST_JOINTS], columns[RT_MOST_JOINTS * 10] = {0}, basis[RT_MOST_JOINTS][BASIS];
  double inputs[RT_MOST_JOINTS * MOST_INPUTS], found[RT_MOST_JOINTS], bent[RT_MOST_JOINTS * (MOST_WINDOW + 5)];
  rt_pose pose[RT_MOST_JOINTS];
  rt_motion motion[RT_MOST_JOINTS];
  rt_place(&model->robot, q, pose);
  rt_accelerate(&model->robot, pose, qd, s->nominal, ideal);
  rt_move(&model->robot, pose, qd, ideal, motion);
  rt_link_regressor(&model->robot, pose, motion, t->carrier, columns, 10);
  for (int j = 0; j < n; j++) { /* everything that is bent by a hyperbolic tangent, at once */
    const double newest = s->row[0][n + j], load = 0.5 / t->load[j];
    double *to = bent + j * each, mean = 0.0;
    for (int k = 0; k < window; k++) {
      mean += s->row[k][n + j];
      *to++ = s->row[k][2 * n + j] * load;
    }
    basis[j][MEAN] = mean /= window;
    for (int k = 0; k < 2; k++) *to++ = newest * t->newest_bends[k];
    for (int k = 0; k < 3; k++) *to++ = mean * t->bends[k];
  }
  rt_hyperbolic_tangents(bent, n * each);
  for (int j = 0; j < n; j++) {
    double *f = inputs + j * t->inputs, *b = basis[j];
    const double now = s->row[0][j], *from = bent + j * each;
    *f++ = 1.0;
    *f++ = sin(now);
    *f++ = cos(now);
    for (int k = 1; k < window; k++) *f++ = (s->row[k][j] - now);
    for (int k = 0; k < window; k++) *f++ = s->row[k][n + j];
    for (int k = 0; k < each; k++) *f++ = from[k];
    for (int k = 0; k < 3; k++) b[BENDS + k] = from[window + 2 + k];
    b[SPREAD] = ideal[j] * t->armature_range[j];
    b[CARRIED] = s->nominal[j] - ideal[j] * model->robot.armature[j];
    for (int probe = 0; probe < PROBES; probe++) {
      double torque = 0.0;
      for (int k = 0; k < 10; k++) torque += t->payload[probe * 10 + k] * columns[j * 10 + k];
      b[PROBED + probe] = torque * t->probe_scale[j];
    }
    for (int k = 0; k < SIGNED; k++) b[SIGNED + k] = fabs(b[k]);
    b[KNOWN] = ideal[j] * t->armature_shift[j];
    b[CONSTANT] = 1.0;
  }
  perceptron(model, mod, inputs, found);
  for (int j = 0; j < n; j++) {
    const double *b = basis[j], *c = mod->coefficients + j * BASIS, *limit = t->limits + j * BASIS;
    double smooth = 0.0, most = 0.0;
    for (int k = 0; k < BASIS; k++) {
      smooth += c[k] * b[k];
      most += limit[k] * b[k];
    }
    smooth += found[j] * t->unit[j];
    const double whole = s->nominal[j] + b[KNOWN] + smooth;
    const double jump = tanh(whole * 0.5 / t->jump) * mod->jump_half[j] + mod->jump_middle[j] + smooth;
    out[j] = rt_clip(jump, -most, most) + b[KNOWN];
  }
}

void rt_tam_correct(const rt_core *core, const double *belief, const rt_modulation *modulation, const double *nominal,
                    double *torque) {
  const rt_model *model = core->model;
  const int n = model->robot.n;
  const double *trim = belief + 1 + n * model->tam.latent;
  const int64_t newest = core->history.state->total - 1;
  double added[RT_MOST_JOINTS];
  sight s;
  for (int k = 0; k < model->tam.window; k++) s.row[k] = rt_history_row(&core->history, newest - k);
  s.nominal = nominal;
  correction(model, modulation, &s, s.row[0], s.row[0] + n, added);
  for (int j = 0; j < n; j++) torque[j] = added[j] + nominal[j] + trim[j];
}

/* Compare the torque that the adaptor would have sent along the measured motion with the one that was sent. */
static int check_trim(rt_core *core) {
  const rt_model *model = core->model;
  const rt_tam *t = &model->tam;
  rt_tam_part *p = &core->tam;
  const int n = model->robot.n, middle = t->span / 2, half = t->window / 2;
  const int64_t total = RT_TAKE(core->history.state->total);
  if (total < t->span || total % t->every || total == p->state->checked) return 0;
  p->state->checked = total;
  double qd[RT_MOST_JOINTS] = {0}, qdd[RT_MOST_JOINTS] = {0}, applied[RT_MOST_JOINTS] = {0};
  double nominal[RT_MOST_JOINTS], predicted[RT_MOST_JOINTS], square = 0.0;
  int sound = 1;
  for (int k = 0; k < t->span; k++) square += (0.5 * (t->span - 1) - k) * (0.5 * (t->span - 1) - k);
  for (int k = 0; k < t->span; k++) { /* newest first */
    const double *row = rt_history_row(&core->history, total - 1 - k);
    const double slope = (0.5 * (t->span - 1) - k) / (square * model->timestep);
    for (int j = 0; j < n; j++) {
      qd[j] += row[n + j] / t->span;
      qdd[j] += slope * row[n + j];
      applied[j] += row[2 * n + j] / t->span;
    }
    sound = sound && rt_history_valid(&core->history, total - 1 - k);
  }
  if (!sound) return 1;
  const double *q = rt_history_row(&core->history, total - 1 - middle);
  sight s;
  for (int k = 0; k < t->window; k++) s.row[k] = rt_history_row(&core->history, total - 1 - (middle - half + k));
  rt_inverse_dynamics(&model->robot, q, qd, qdd, nominal);
  s.nominal = nominal;
  correction(model, core->modulation + RT_BELIEFS, &s, q, qd, predicted);
  const double keep = exp(-t->every * model->timestep / t->trim_time);
  for (int j = 0; j < n; j++) {
    const double error = applied[j] - (nominal[j] + predicted[j]), most = t->trim_most * t->unit[j];
    const double own = fabs(error) < t->trim_surprise * t->unit[j] ? error : 0.0; /* larger is contact */
    p->trim[j] = rt_clip(keep * p->trim[j] + (1.0 - keep) * own, -most, most);
  }
  return 1;
}

static int column_due(const rt_core *core) {
  const rt_tam *t = &core->model->tam;
  const int64_t columns = core->tam.state->columns, total = RT_TAKE(core->history.state->total);
  if (!t->encoded) return columns == 0;
  return columns == 0 || total > t->stride_rows * t->average * columns + t->half_window;
}

static void make_column(rt_core *core) {
  const rt_tam *t = &core->model->tam;
  rt_tam_part *p = &core->tam;
  double *patch = p->work + (size_t)core->model->robot.n * (size_t)(8 * t->width + 2 * t->wide + t->columns);
  rt_patch(core, patch);
  if (!t->encoded) return;
  rt_encode(core->model, p, patch);
  rt_modulate(core->model, p->latent, core->modulation + RT_BELIEFS);
}

void rt_repeat_column(rt_core *core) {
  if (core->model->adapter != RT_TAM || core->tam.state->columns < 1) return;
  core->tam.state->columns--;
  make_column(core);
}

int rt_tam_learn(rt_core *core) {
  const rt_tam *t = &core->model->tam;
  int fresh = 0;
  while (column_due(core)) {
    make_column(core);
    fresh = 1;
  }
  if (t->trimmed) fresh = check_trim(core) || fresh;
  return fresh;
}

void rt_tam_reset(rt_core *core) {
  const rt_model *model = core->model;
  const rt_tam *t = &model->tam;
  rt_tam_part *p = &core->tam;
  const int n = model->robot.n, count = n * t->latent;
  memset(p->state, 0, sizeof *p->state);
  memset(p->fast, 0, sizeof(float) * (size_t)(t->patch_rows * n * t->fast_size));
  if (t->slow) memset(p->slow, 0, sizeof(float) * (size_t)(t->patch_rows / t->slow * n * t->slow_size));
  memset(p->latent, 0, sizeof(double) * (size_t)count);
  memset(p->trim, 0, sizeof(double) * (size_t)n);
  rt_tam_learn(core); /* the first column is always due: it knows the robot's profile only */
  rt_modulate(model, p->latent, core->modulation);
  core->beliefs[0] = core->history.state->time;
  for (int k = 0; k < count; k++) core->beliefs[1 + k] = p->latent[k];
  for (int j = 0; j < n; j++) core->beliefs[1 + count + j] = 0.0;
}
