"""Let an adapter watch before it acts: compute, score and log the correction, but send the nominal torque."""

import numpy as np

from retorque import (
    JointImpedance,
    Loop,
    Parameters,
    Robot,
    Supervisor,
    SupervisorSettings,
    Target,
    WindowedSines,
    make_adapter,
    profile_of,
    run,
)

robot = Robot.load("panda")
profile = profile_of(robot)
motion = WindowedSines.sample(robot.home, profile.tracking_amplitude, (), duration=4.0, seed=3, cycles=(1, 2))
controller = JointImpedance(robot, profile.tracking_stiffness, profile.tracking_damping)
target = Target(robot, Parameters.sample(robot, profile, (), seed=4))

watcher = Supervisor(make_adapter("default", robot), SupervisorSettings(shadow=True, log_ticks=4000))
run(Loop(target, motion, controller, watcher), motion.duration)
time, correction, codes = watcher.log()
print(f"{len(time)} ticks watched; it would have added, root mean square a joint [N·m]:")
print(np.round(np.sqrt(np.mean(correction**2, axis=0)), 2))
print("codes seen:", {flag.name: count for flag, count in watcher.counts.items() if count} or "none")
