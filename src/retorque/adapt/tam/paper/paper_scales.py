"""What signals are divided by before the paper's network sees them: the same numbers for every robot and joint.

The paper does not publish its normalisation; positions and velocities are taken as they are [rad, rad/s].
"""

TORQUE = 20.0
"""Applied and nominal torques [N·m]."""
RESIDUAL = 3.0
"""The physics residual e^τ [N·m]."""
CORRECTION = 3.0
"""What the adaptor's output is multiplied with [N·m]."""
VARIANCE = 1e-5
"""Added to variances in layer normalisation."""
QUERIES = 2.0
"""Standard deviation of B.9's nominal torques, in the profile's command noise: 6 N·m on the Panda's large joints."""
