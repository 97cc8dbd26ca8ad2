"""A batch of simulated robots with hidden parameters in a scene, on MuJoCo."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import mujoco
import numpy as np

from retorque.physics.actuator import PreparedDrive, PreparedLosses
from retorque.physics.inertia import principal_axes
from retorque.physics.parameters import Parameters
from retorque.physics.presliding import SlipState
from retorque.robots.command import Command
from retorque.robots.robot import Robot
from retorque.robots.state import Base, State
from retorque.simulate.effects import Effect
from retorque.simulate.scene import Scene
from retorque.simulate.sensors import Seed, Sensors, SensorSettings
from retorque.simulate.servo import PositionLoop
from retorque.simulate.world import World
from retorque.work.array import Array
from retorque.work.errors import RetorqueError


class Target:
    """Robots that differ in what is hidden, stepped together at the control rate.

    Each tick the command goes through the torque limit and the actuator model (B.5), and MuJoCo moves the robot.
    Friction can be too steep for explicit integration, so its local slope is given to MuJoCo as joint damping, which
    the Euler integrator treats implicitly, and `slope * velocity` is added back to the applied torque. A servo's
    damping goes the same way.

    A trial that diverges (not finite, a joint at 100 times its velocity limit, anything beyond 1000 rad/s or m/s) stops
    where it was, at rest, and is marked in `diverged` until the next reset; the other trials go on untouched.

    Args:
        robot: the ideal robot; a joint of torque limit zero is passive.
        parameters: the hidden ones: (trials, ...), or without a leading axis for one robot and arrays (n,).
        scene: what stands around the robot; default: nothing.
        servo: the joints' own position servos; with one, the target takes positions, else torques.
        sensors: noise and delays; default: perfect sensors.
        effects: what the parameters cannot say (ripple, stick-slip, flexibility, ...).
        joint_limits: whether joints stop at their position limits; off, as the published benches have it.
        timestep: control period [s].
        substeps: physics steps a control period, at least; effects may need more.
        seed: of the sensor noise.
        threads: MuJoCo's threads; 0 takes all cores.
    """

    takes: Literal["torque", "position"]

    def __init__(
        self,
        robot: Robot,
        parameters: Parameters,
        *,
        scene: Scene | None = None,
        servo: PositionLoop | None = None,
        sensors: SensorSettings | None = None,
        effects: Sequence[Effect] = (),
        joint_limits: bool = False,
        timestep: float = 1e-3,
        substeps: int = 1,
        seed: Seed = 0,
        threads: int = 0,
    ):
        if len(parameters.trials) > 1:
            raise RetorqueError("a target needs parameters with one leading axis (trials), or none")
        self.robot = robot
        self.timestep = timestep
        self.effects = tuple(effects)
        self.servo = servo
        self.takes = "torque" if servo is None else "position"
        self._lead = parameters.trials
        self._substeps = max([substeps, *(effect.substeps for effect in self.effects)])
        self._world = World(
            robot,
            scene,
            self._lead[0] if self._lead else 1,
            timestep=timestep / self._substeps,
            threads=threads,
            limits=joint_limits,
        )
        self._bodies = np.array([self._world.model.body(link.name).id for link in robot.moving_links])
        self.position = self._rows(self._world.qpos)[..., self._world.joint_q]
        self.velocity = self._rows(self._world.qvel)[..., self._world.joint_v]
        self._applied = self._rows(self._world.applied)[..., self._world.joint_v]
        self._damping = self._rows(self._world.batch.expand("dof_damping"))[..., self._world.joint_v]
        self._torque_limit = robot.torque_limit
        self._sensors = Sensors(sensors or SensorSettings.perfect(self._lead), robot.n, seed)
        self.set_parameters(parameters)
        self.reset(robot.home)

    @property
    def trials(self) -> int:
        """How many robots."""
        return self._lead[0] if self._lead else 1

    @property
    def time(self) -> float:
        """Since the last reset [s]."""
        return self._ticks * self.timestep

    @property
    def diverged(self) -> Array:
        """(trials,) which have diverged since the last reset; () of one robot."""
        return self._rows(self._world.diverged)

    def set_parameters(self, parameters: Parameters) -> None:
        """Change what is hidden, also while running (a payload picked up)."""
        self.parameters = parameters
        self._losses, self._drive = PreparedLosses(parameters), PreparedDrive(parameters)
        mass, centre, principal, axes = principal_axes(parameters.total_inertial(self.robot))
        batch = self._world.batch
        batch.expand("body_mass")[:, self._bodies] = mass
        batch.expand("body_ipos")[:, self._bodies] = centre
        batch.expand("body_inertia")[:, self._bodies] = principal
        batch.expand("body_iquat")[:, self._bodies] = axes
        armature = parameters.armature
        for effect in self.effects:
            armature = effect.link_armature(armature)
        batch.expand("dof_armature")[:, self._world.joint_v] = armature
        self._world.constants()

    def reset(self, position: Array, velocity: Array | float = 0.0, base: Base | None = None) -> State:
        """Put the robots at a state and the things where the scene has them, and read.

        Args:
            position: (..., n) [rad].
            velocity: (..., n) [rad/s].
            base: of a robot with a free base; default: where its card has it, at rest.
        """
        self._ticks = 0
        self._external: Array | float = 0.0
        self._wrenches: dict[str, Array] = {}
        self._world.reset()
        self.position[...] = position
        self.velocity[...] = velocity
        if base is not None:
            if not self.robot.floating:
                raise RetorqueError(f"the base of robot '{self.robot.name}' is fixed; reset its joints only")
            self._world.set_base(base.pose, base.twist)
        self.command = np.zeros((*self._lead, self.robot.n))
        self._slip = SlipState(self.position) if self.parameters.friction.presliding else None
        self._sensors.reset(self.velocity)
        for effect in self.effects:
            effect.reset(self.position, self.velocity)
        self._settle()
        return self.read()

    def _settle(self) -> None:
        """What a preset does to a state after a reset, before it is read."""

    def read(self) -> State:
        """What the sensors say now; once a tick. The base and the things are reported as they are."""
        state = self._sensors.read(self.time, *self._encoders(), self.command)
        if self.robot.floating:
            pose, twist = self._world.base()
            state.base = Base(self._rows(pose), self._rows(twist))
        state.objects = self.objects
        return state

    @property
    def objects(self) -> Array | None:
        """(..., k, 13) poses and twists of the scene's things that move freely; None where there are none."""
        objects = self._world.objects()
        return None if objects is None else self._rows(objects)

    def limit_torque(self, limit: Array | None) -> None:
        """Limit commands to (n,) [N·m] instead of the robot's own limits; None: not at all."""
        self._torque_limit = np.full(self.robot.n, np.inf) if limit is None else np.asarray(limit, dtype=float)

    def push(self, torque: Array | float) -> None:
        """External torque on the joints from now on, (..., n) [N·m]."""
        self._external = torque

    def push_frame(self, frame: str, force: Array, moment: Array | float = 0.0) -> None:
        """A force (..., 3) [N] and a moment (..., 3) [N·m] on a frame of the robot from now on, in world axes."""
        self.robot.frame(frame)
        self._wrenches[frame] = np.concatenate(np.broadcast_arrays(force, moment), axis=-1)

    def grip(self, width: Array | float) -> None:
        """Tell the scene's fingers how far apart to be from now on, one distance or (trials,) [m]."""
        self._world.grip(width)

    def place(self, name: str, pose: Array, twist: Array | float = 0.0) -> None:
        """Put a thing of the scene at a pose (..., 7), moving with a twist (..., 6) if it is free to.

        A thing without a mass can be moved while running, but contact takes it as standing still in each step.
        """
        self._world.place(name, pose, twist)

    def vary(self, name: str, *, mass: Array | float | None = None, friction: Array | float | None = None) -> None:
        """Give a thing of the scene another mass [kg] or friction, one for all or (trials,)."""
        self._world.vary(name, mass, friction)

    def contact_force(self, of: str, by: str | None = None) -> Array:
        """The net force (..., 3) on a thing, a link or "robot" during the last physics step, world axes [N].

        Args:
            of: what feels it; a thing that is mounted on the robot counts by its own name, not as "robot".
            by: what exerts it; default: everything that it touches. Contacts of the robot with itself are left out.
        """
        return self._rows(self._world.contact_force(of, by))

    def write(self, command: Command) -> None:
        """One control period under a torque (..., n) [N·m], or towards a position [rad] where there are servos."""
        told = command.torque if self.servo is None else command.position
        if told is None:
            raise RetorqueError(f"this target takes {self.takes}s; use a controller that gives them")
        if command.gripper is not None:
            self._world.grip(command.gripper)
        if self.servo is None:
            told = self.command = np.minimum(np.maximum(told, -self._torque_limit), self._torque_limit)
        for effect in self.effects:
            told = effect.command(told)
        if self.servo is None:
            driven = self._drive(told)
            for _ in range(self._substeps):
                self._substep(driven)
        else:
            target_velocity = 0.0 if command.velocity is None else command.velocity
            for _ in range(self._substeps):
                self.command, slope = self.servo.torque(told, target_velocity, *self._encoders(), self._torque_limit)
                self._substep(self._drive(self.command), slope)
        self._ticks += 1

    def snapshot(self, trial: int = 0, into: mujoco.MjData | None = None) -> tuple[mujoco.MjModel, mujoco.MjData]:
        """The model, and one trial's state as MuJoCo has it now, for pictures and for tools of the user's own.

        Args:
            trial: which robot.
            into: what an earlier snapshot gave, filled again with places only; default: a new one, with forces too.
        """
        return self._world.snapshot(trial, into)

    def _substep(self, driven: Array, servo_slope: Array | None = None) -> None:
        velocity = self.velocity
        motor_side = [effect for effect in self.effects if effect.transmits]
        at = motor_side[0].motor_velocity if motor_side else velocity
        step = self.timestep / self._substeps
        slip, slip_slope = (None, None) if self._slip is None else self._slip.after(at, step)
        lost, slope = self._losses(at, self.position, slip, slip_slope)
        torque = driven - lost
        if servo_slope is not None:
            slope = slope + servo_slope
        for effect in self.effects:
            torque, slope = effect.torque(self.position, velocity, torque, slope, step)
        self._damping[...] = slope
        self._applied[...] = torque + slope * velocity + self._external
        if self._wrenches:
            self._world.push(self._wrenches)
        self._world.step()
        if self._slip is not None:
            self._slip.advance(self.position)

    def _encoders(self) -> tuple[Array, Array]:
        """Position and velocity (..., n) of what the encoders turn with."""
        position, velocity = self.position, self.velocity
        for effect in self.effects:
            position, velocity = effect.encoders(position, velocity)
        if self.effects and self._world.diverged.any():  # an effect's own state has gone astray there
            astray = self.diverged[..., None]
            position, velocity = np.where(astray, self.position, position), np.where(astray, 0.0, velocity)
        return position, velocity

    def _rows(self, array: Array) -> Array:
        """All trials of an array, or the only one's row."""
        return array if self._lead else array[0]
