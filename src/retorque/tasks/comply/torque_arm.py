"""A torque-controlled arm in contact tasks: the estimate of contact of the adapter beneath it is the sensor."""

from __future__ import annotations

from typing import cast

import numpy as np

from retorque.adapt import make
from retorque.control.comply.admittance import Admittance, AdmittanceSettings
from retorque.control.comply.compliance import Compliance, PositionOnly
from retorque.control.comply.site_kinematics import DampedLeastSquares
from retorque.control.comply.torque_compliance import TorqueCompliance
from retorque.control.joint_impedance import JointImpedance
from retorque.control.windowed_sines import WindowedSines
from retorque.loop.loop import Loop
from retorque.loop.supervisor import Supervisor
from retorque.physics.default_profile import critical_damping, profile_of
from retorque.physics.kernels.compiled_tree import CompiledTree
from retorque.physics.parameters import Parameters
from retorque.robots.robot import Robot
from retorque.sense.adapter_torque import AdapterTorque, KnowsContact
from retorque.sense.wrench_estimator import WrenchEstimator, own_joints
from retorque.sense.wrench_solve import WrenchPrior
from retorque.simulate.scene import Scene
from retorque.simulate.sensors import SensorSettings
from retorque.simulate.target import Target
from retorque.tasks.comply.method_controller import SPEED
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

ADAPTER = "default"
"""The adapter that takes no lasting contact for the robot's own."""
TIMESTEP = 1e-3
"""Control period [s]."""
LEARNING = 6.0
"""Sines before anything is touched, from which the adapter learns the arm [s]."""
STIFFER = 3.0
"""Joint stiffness, times that of the tracking bench."""
METHODS = ("retorque", "without f_ext", "position")
"""retorque: the adapter's estimate is felt; the others feel nothing."""


class TorqueArm:
    """Arms with hidden parameters, an adapter each, and the compliant controller on top.

    Args:
        robot: the ideal robot, the sites among its frames.
        site: the frame that touches.
        trials: how many.
        seed: of what is hidden.
    """

    def __init__(self, robot: Robot, site: str, trials: int, seed: int):
        self.robot, self.site, self.trials, self.seed = robot, site, trials, seed
        self.profile = profile_of(robot)
        stiffness = STIFFER * self.profile.tracking_stiffness
        self.impedance = JointImpedance(robot, stiffness, critical_damping(robot, stiffness))
        self.adapter = make(ADAPTER, robot, trials, timestep=TIMESTEP, seed=seed)

    def target(self, scene: Scene, start: Array) -> Target:
        """The plant at rest at a pose (n,)."""
        hidden = Parameters.sample(self.robot, self.profile, self.trials, self.seed)
        sensors = SensorSettings.sample(self.profile, self.trials, self.seed)
        target = Target(self.robot, hidden, scene=scene, sensors=sensors, timestep=TIMESTEP, seed=self.seed, threads=1)
        target.reset(np.tile(start, (self.trials, 1)))
        return target

    def check(self, method: str) -> None:
        """Refuse a method that needs motors."""
        if method not in METHODS:
            raise RetorqueError(
                f"'{method}' reads motors, which '{self.robot.name}' has no cards of; choose {', '.join(METHODS)}"
            )

    def controller(self, method: str, prior: WrenchPrior) -> TorqueCompliance:
        """The compliant controller of a method."""
        self.check(method)
        robot, trials = self.robot, self.trials
        frames = (robot.frame(self.site),)
        tree = CompiledTree(robot, frames, trials)
        kinematics = DampedLeastSquares(robot, frames, own_joints(tree), trials, TIMESTEP)
        if method == "position":
            return TorqueCompliance(PositionOnly(tree, kinematics), self.impedance, TIMESTEP)
        torque = AdapterTorque(cast(KnowsContact, self.adapter))
        source = WrenchEstimator(robot, (self.site,), torque, prior, None, trials, TIMESTEP)
        admittance = Admittance(1, trials, TIMESTEP, AdmittanceSettings(speed=SPEED))
        compliance = Compliance(source, admittance, kinematics, blind=method == "without f_ext")
        return TorqueCompliance(compliance, self.impedance, TIMESTEP)

    def loop(self, target: Target, start: Array) -> Loop:
        """A loop that has moved in sines long enough for the adapter to know the arm, and is back at the start."""
        sines = WindowedSines.sample(
            start, 0.5 * self.profile.tracking_amplitude, self.trials, LEARNING, self.seed, cycles=(1.0, 2.5)
        )
        loop = Loop(target, sines, self.impedance, Supervisor(self.adapter))
        for _ in range(round((LEARNING + 1.0) / TIMESTEP)):
            loop.tick()
        return loop
