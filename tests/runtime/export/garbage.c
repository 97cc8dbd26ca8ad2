/* Random garbage through an exported core: whatever comes in, what goes out is finite and within the limits. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "model.h"

static uint64_t state;

static uint64_t bits(void) { /* xorshift64* */
  state ^= state >> 12;
  state ^= state << 25;
  state ^= state >> 27;
  return state * 2685821657736338717ULL;
}

static double uniform(void) { return (double)(bits() >> 11) / 9007199254740992.0; }

static double garbage(double sane) {
  static const double odd[] = {0.0, -0.0, 1e300, -1e300, 1e-310, 1e9, -1e9, 1e6, 30.0, -30.0};
  const double kind = uniform();
  if (kind < 0.9) return sane;
  if (kind < 0.92) return NAN;
  if (kind < 0.94) return uniform() < 0.5 ? INFINITY : -INFINITY;
  if (kind < 0.97) return odd[bits() % (sizeof odd / sizeof *odd)];
  union { uint64_t i; double d; } any;
  any.i = bits();
  return any.d;
}

int main(int argc, char **argv) {
  const rt_model *model = &retorque_model;
  enum { N = RETORQUE_JOINTS };
  const long ticks = argc > 1 ? atol(argv[1]) : 10000;
  const int size = rt_belief_size(model);
  char *memory = (char *)malloc(rt_bytes(model) + 64);
  double *belief = (double *)malloc(sizeof(double) * (size_t)size);
  if (memory == NULL || belief == NULL) return 2;
  rt_core *core = rt_make(model, memory + (64 - (size_t)memory % 64) % 64);
  state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  double time = 0.0;
  long wrong = 0, quiet = 0;
  int have = 0;
  uint64_t dead = 0; /* joints whose encoders die within a quiet spell */
  double stuck[N] = {0.0};
  for (long tick = 0; tick < ticks; tick++) {
    double q[N], v[N], torque[N], nominal[N], sent[N];
    if (quiet == 0 && uniform() < 0.002) {
      quiet = 500; /* spells without garbage: there is something to learn */
      dead = uniform() < 0.5 ? 0 : bits() & bits();
    }
    const int calm = quiet > 0;
    quiet -= calm;
    for (int j = 0; j < N; j++) {
      const double phase = 1e-3 * (double)tick * (1.0 + 0.3 * j);
      const double sane[4] = {model->supervisor.home[j] + 0.2 * sin(phase), 0.2 * (1.0 + 0.3 * j) * cos(phase),
                              0.1 * model->supervisor.limit[j] * sin(phase), 0.1 * model->supervisor.limit[j] * sin(phase)};
      q[j] = calm ? sane[0] : garbage(sane[0]);
      v[j] = calm ? sane[1] : garbage(sane[1]);
      if (!(calm && quiet < 250 && (dead >> j & 1))) stuck[j] = q[j];
      if (q[j] != stuck[j] && calm) q[j] = stuck[j], v[j] = 0.0;
      torque[j] = calm ? sane[2] : garbage(sane[2]);
      nominal[j] = calm ? sane[3] : garbage(sane[3]);
    }
    time += 1e-3;
    const double kind = calm ? 1.0 : uniform();
    const double stamp = kind < 0.02 ? garbage(time) : kind < 0.03 ? time - 5.0 : kind < 0.04 ? (time += 3.0) : time;
    if (!calm && uniform() < 0.0005) rt_reset(core);
    if (!calm && uniform() < 0.001) rt_carry(core);
    rt_observe(core, stamp, q, v, torque);
    if (model->learn_every && tick % model->learn_every == 0 && rt_learn(core, belief)) {
      have = 1;
      rt_adopt(core, belief);
    }
    if (!calm && have && uniform() < 0.0005) { /* a belief that was altered on its way */
      belief[bits() % (uint64_t)size] = garbage(NAN);
      rt_adopt(core, belief);
    }
    rt_correct(core, stamp, q, v, nominal, sent);
    for (int j = 0; j < N; j++)
      if (!isfinite(sent[j]) || fabs(sent[j]) > model->supervisor.limit[j]) wrong++;
    if (rt_health(core) < 0 || rt_health(core) >= (int64_t)1 << RT_CODES) wrong++;
  }
  printf("%ld ticks, %ld wrong\n", ticks, wrong);
  free(memory);
  free(belief);
  return wrong != 0;
}
