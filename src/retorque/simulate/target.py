"""A batch of simulated robots with hidden parameters, on MuJoCo."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import mujoco.batch
import numpy as np

from retorque.physics.actuator import drive, friction_slope, losses
from retorque.physics.inertia import from_vector
from retorque.physics.parameters import Parameters
from retorque.physics.presliding import SlipState
from retorque.robots.command import Command
from retorque.robots.mjcf import to_mjmodel
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.simulate.effects import Effect
from retorque.simulate.sensors import Sensors, SensorSettings
from retorque.work.array import Array
from retorque.work.errors import RetorqueError


class Target:
    """`trials` robots that differ in what is hidden, stepped together at the control rate.

    Each tick the command goes through the torque limit and the actuator model (B.5), and MuJoCo moves the arm. Friction
    can be too steep for explicit integration, so its local slope is given to MuJoCo as joint damping, which the Euler
    integrator treats implicitly, and `slope * velocity` is added back to the applied torque.

    Args:
        robot: the ideal robot.
        parameters: the hidden ones, (trials, ...).
        sensors: noise and delays; default: perfect sensors.
        effects: what the parameters cannot say (ripple, stick-slip, flexibility, ...).
        timestep: control period [s].
        seed: of the sensor noise.
        threads: MuJoCo's threads; 0 takes all cores.
    """

    takes: Literal["torque", "position"] = "torque"

    def __init__(
        self,
        robot: Robot,
        parameters: Parameters,
        *,
        sensors: SensorSettings | None = None,
        effects: Sequence[Effect] = (),
        timestep: float = 1e-3,
        seed: int = 0,
        threads: int = 0,
    ):
        if robot.floating:
            raise RetorqueError(f"robot '{robot.name}' has a free base; targets need a fixed one")
        if len(parameters.trials) != 1:
            raise RetorqueError("a target needs parameters with one leading axis (trials)")
        self.robot = robot
        self.trials = parameters.trials[0]
        self.timestep = timestep
        self.effects = tuple(effects)
        self._substeps = max((effect.substeps for effect in self.effects), default=1)
        model = to_mjmodel(robot, timestep=timestep / self._substeps)
        self._batch = mujoco.batch.Batch(model, self.trials, threads)
        self._bodies = np.array([model.body(link.name).id for link in robot.moving_links])
        self.position = self._batch.bind("qpos")
        self.velocity = self._batch.bind("qvel")
        self._applied = self._batch.bind("qfrc_applied")
        self._damping = self._batch.expand("dof_damping")
        self._torque_limit = robot.torque_limit
        self._sensors = Sensors(sensors or SensorSettings.perfect(self.trials), robot.n, seed)
        self.set_parameters(parameters)
        self.reset(np.broadcast_to(robot.home, (self.trials, robot.n)))

    @property
    def time(self) -> float:
        """Since the last reset [s]."""
        return self._ticks * self.timestep

    def set_parameters(self, parameters: Parameters) -> None:
        """Change what is hidden, also while running (a payload picked up)."""
        self.parameters = parameters
        mass, centre, inertia = from_vector(parameters.total_inertial(self.robot))
        principal, axes = np.linalg.eigh(inertia)
        axes[..., :, 0] *= np.linalg.det(axes)[..., None]
        self._batch.expand("body_mass")[:, self._bodies] = mass
        self._batch.expand("body_ipos")[:, self._bodies] = centre
        self._batch.expand("body_inertia")[:, self._bodies] = principal
        self._batch.expand("body_iquat")[:, self._bodies] = _quaternion(axes)
        armature = parameters.armature
        for effect in self.effects:
            armature = effect.link_armature(armature)
        self._batch.expand("dof_armature")[:] = armature
        self._batch.set_const()

    def reset(self, position: Array, velocity: Array | float = 0.0) -> State:
        """Put the robots at a state and read them."""
        self._ticks = 0
        self._external: Array | float = 0.0
        self.position[:] = position
        self.velocity[:] = velocity
        self.command = np.zeros((self.trials, self.robot.n))
        self._slip = SlipState(self.position) if self.parameters.friction.presliding else None
        self._sensors.reset(self.velocity)
        for effect in self.effects:
            effect.reset(self.position, self.velocity)
        return self.read()

    def read(self) -> State:
        """What the sensors say now; once a tick."""
        return self._sensors.read(self.time, self.position, self.velocity, self.command)

    def push(self, torque: Array | float) -> None:
        """External torque on the joints from now on, (trials, n) [N·m]."""
        self._external = torque

    def write(self, command: Command) -> None:
        """One control period under a torque (trials, n) [N·m]."""
        if command.torque is None:
            raise RetorqueError("this target takes torques; use a controller that gives them")
        self.command = np.clip(command.torque, -self._torque_limit, self._torque_limit)
        sent = self.command
        for effect in self.effects:
            sent = effect.command(sent)
        driven = drive(sent, self.parameters)
        for _ in range(self._substeps):
            self._substep(driven)
        self._ticks += 1

    def _substep(self, driven: Array) -> None:
        velocity = self.velocity
        motor_side = [effect for effect in self.effects if effect.transmits]
        at = motor_side[0].motor_velocity if motor_side else velocity
        slip, slip_slope = self._slip.after(at, self.timestep / self._substeps) if self._slip else (None, None)
        torque = driven - losses(at, self.parameters, self.position, slip)
        slope = friction_slope(at, self.parameters, slip_slope)
        for effect in self.effects:
            torque, slope = effect.torque(self.position, velocity, torque, slope, self.timestep / self._substeps)
        self._damping[:] = slope
        self._applied[:] = torque + slope * velocity + self._external
        self._batch.step()
        if self._slip:
            self._slip.advance(self.position)


def _quaternion(rotation: Array) -> Array:
    """Quaternions (..., 4), (w, x, y, z), of rotation matrices (..., 3, 3)."""
    from scipy.spatial.transform import Rotation

    flat = Rotation.from_matrix(rotation.reshape(-1, 3, 3)).as_quat(scalar_first=True)
    return flat.reshape(*rotation.shape[:-2], 4)
