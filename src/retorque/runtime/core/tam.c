#include "internal.h"
void rt_tam_reset(rt_core *core) { (void)core; }
int rt_tam_learn(rt_core *core) { (void)core; return 0; }
void rt_modulate(const rt_model *model, const float *latent, rt_modulation *out) { (void)model; (void)latent; (void)out; }
void rt_tam_correct(const rt_core *core, const double *belief, const rt_modulation *modulation, const double *nominal, double *torque) { (void)core; (void)belief; (void)modulation; (void)nominal; (void)torque;}
