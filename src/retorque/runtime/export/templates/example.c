/* A control loop around the exported adapter. Instead of a robot it replays a recorded run, and compares what goes out
 * with what NumPy sent: `make check`. Your own loop has the same calls, marked below. */
#define _POSIX_C_SOURCE 199309L
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "model.h"

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int compare(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *values, long count) {
  qsort(values, (size_t)count, sizeof(double), compare);
  return count ? values[count / 2] : 0.0;
}

static int numbers(FILE *file, double *out, int count) {
  char word[64];
  for (int k = 0; k < count; k++) {
    if (fscanf(file, "%63s", word) != 1) return 0;
    out[k] = strtod(word, NULL); /* also reads nan and inf */
  }
  return 1;
}

int main(int argc, char **argv) {
  const rt_model *model = &retorque_model;
  enum { N = RETORQUE_JOINTS };

  /* Memory: once, before the loop; nothing is allocated afterwards. Aligned to 64 bytes. */
  char *memory = (char *)calloc(rt_bytes(model) + 64, 1);
  double *belief = (double *)calloc((size_t)rt_belief_size(model), sizeof(double));
  if (memory == NULL || belief == NULL) return 2;
  rt_core *core = rt_make(model, memory + (64 - (size_t)memory % 64) % 64);
  if (core == NULL) return 2;

  FILE *file = fopen(argc > 1 ? argv[1] : "parity.txt", "r");
  int ticks = 0, joints = 0;
  if (file == NULL || fscanf(file, "%d %d", &ticks, &joints) != 2 || joints != N) {
    fprintf(stderr, "cannot read parity.txt of %d joints\n", N);
    return 2;
  }
  double worst = 0.0, *spent = (double *)calloc((size_t)ticks, sizeof(double));
  double *learning = (double *)calloc((size_t)ticks, sizeof(double));
  if (spent == NULL || learning == NULL) return 2;
  long other_codes = 0, not_finite = 0, learnt = 0;
  for (int tick = 0; tick < ticks; tick++) {
    int reset, carry;
    long code;
    double time, position[N], velocity[N], torque[N], nominal[N], expected[N], sent[N];
    if (fscanf(file, "%d %d %ld", &reset, &carry, &code) != 3 || !numbers(file, &time, 1) ||
        !numbers(file, position, N) || !numbers(file, velocity, N) || !numbers(file, torque, N) ||
        !numbers(file, nominal, N) || !numbers(file, expected, N)) {
      fprintf(stderr, "parity.txt ends at tick %d of %d\n", tick, ticks);
      return 2;
    }
    if (reset) rt_reset(core);
    if (carry) rt_carry(core);

    /* --- a tick of your loop: read the robot, then ... */
    const double begin = seconds();
    rt_observe(core, time, position, velocity, torque);
    const double middle = seconds();
    if (model->learn_every && tick % model->learn_every == 0) { /* here, or in one other thread */
      if (rt_learn(core, belief)) {
        rt_adopt(core, belief);
        learning[learnt++] = seconds() - middle;
      }
    }
    const double after = seconds();
    /* ... compute your controller's nominal torque (gravity included), then ... */
    rt_correct(core, time, position, velocity, nominal, sent);
    spent[tick] = seconds() - after + middle - begin;
    /* ... and send `sent`; rt_health(core) says what the tick was worth. --- */

    for (int j = 0; j < N; j++) {
      const double off = fabs(sent[j] - expected[j]);
      if (!isfinite(sent[j])) not_finite++;
      if (off > worst) worst = off;
    }
    if (rt_health(core) != code) other_codes++;
  }
  fclose(file);
  printf("%d ticks: largest difference %.3g N m, %ld other codes, %ld not finite; median %.2f us a tick, %.1f us a learn\n",
         ticks, worst, other_codes, not_finite, 1e6 * median(spent, ticks), 1e6 * median(learning, learnt));
  free(spent);
  free(learning);
  free(memory);
  free(belief);
  return worst <= RETORQUE_TOLERANCE && other_codes == 0 && not_finite == 0 ? 0 : 1;
}
