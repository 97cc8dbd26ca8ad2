"""One task as a Gymnasium environment: a robot whose dynamics are hidden, corrected by an adapter or not."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from scipy.spatial.transform import Rotation

from retorque.adapt import make as make_adapter
from retorque.control.action import PoseAction
from retorque.control.operational_space import OperationalSpace
from retorque.loop.loop import Loop
from retorque.loop.supervisor import Supervisor, SupervisorSettings
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.simulate.cameras.camera import Camera
from retorque.simulate.target import Target
from retorque.tasks.ball.ball_task import BallTask
from retorque.tasks.ball.plate import on_plate
from retorque.tasks.experiments import make_task
from retorque.tasks.flip.flip_task import FlipTask
from retorque.tasks.flip.gripper import CLOSED
from retorque.tasks.policy_task import PolicyTask, Referee, Robots
from retorque.tasks.push.box_task import BoxTask, errors, planar
from retorque.work.array import Array
from retorque.work.errors import RetorqueError, unknown

PERIOD = 0.05
"""Of an action [s]."""
FASTEST = 0.3
"""Hand velocity of an action of one [m/s]."""
TILT = 0.12
"""Tilt of the plate at an action of one [rad]."""
FARTHEST = 100.0
"""Observations are kept within this [rad, rad/s, m]."""
REACH = np.array([[0.25, 0.80], [-0.40, 0.40], [0.06, 0.60]])
"""Where the hand may be told to be [m]."""


class _Told:
    """The policy that an environment's user is: the pose that was last asked for."""

    period = 0.0

    def __init__(self, position: Array, rotation: Array):
        self.position, self.rotation, self.velocity = position, rotation, np.zeros_like(position)

    def reset(self, state: State) -> None:
        pass

    def act(self, state: State) -> PoseAction:
        return PoseAction(self.position, self.rotation, self.velocity, np.zeros_like(self.velocity))


class TaskEnv(gymnasium.Env[Array, Array]):
    """`push` and `flip`: the action is the hand's velocity; `ball`: the plate's tilt; each within -1 and 1.

    The observation holds joint positions and velocities, the hand's place, the thing's pose, and the goal. Every
    episode draws a new robot from the profile's ranges, unless `hidden` is off.

    Args:
        task: push, flip or ball.
        adapter: what corrects the torques, supervised; "": nothing.
        hidden: whether the robot differs from its model.
        payload: on top of what is hidden [kg].
        robot: an arm of the Panda's size.
        render_mode: "rgb_array" or None.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 20}  # noqa: RUF012 (Gymnasium's own, by that name)

    def __init__(
        self,
        task: str = "push",
        *,
        adapter: str = "",
        hidden: bool = True,
        payload: float = 0.0,
        robot: str = "panda",
        render_mode: str | None = None,
    ):
        if render_mode not in (None, "rgb_array"):
            raise unknown("render mode", str(render_mode), ("rgb_array",))
        self._name, self._adapter, self._hidden, self._payload = task, adapter, hidden, payload
        self._robot, self.render_mode = Robot.load(robot), render_mode
        self._camera: Camera | None = None
        self._score = 0.0
        self._task: PolicyTask = make_task(task, self._robot, 1, 0)
        self._body = RigidBody(self._task.robot)
        self._width = 2 if isinstance(self._task, BallTask) else 3
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (self._width,), np.float32)
        size = len(self._begin(0))
        self.observation_space = gymnasium.spaces.Box(-FARTHEST, FARTHEST, (size,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        """A new robot, a new start and a new goal."""
        super().reset(seed=seed)
        return self._begin(int(self.np_random.integers(2**31))), {}

    def step(self, action: Array) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """One action, for 50 ms; one that is not finite counts as zero, and `info` says so."""
        told = np.asarray(action, dtype=float)
        if told.shape != (self._width,):
            raise RetorqueError(f"an action of '{self._name}' has {self._width} numbers, not the shape {told.shape}")
        info: dict[str, Any] = {"action_not_finite": bool(not np.isfinite(told).all())}
        self._tell(np.clip(np.nan_to_num(told, nan=0.0, posinf=0.0, neginf=0.0), -1.0, 1.0))
        for _ in range(round(PERIOD / self._target.timestep)):
            self._referee.look(self._target, self._ticks)
            self._state = self._loop.tick().state
            self._ticks += 1
        score = float(self._referee.scores()[0])
        gained, self._score = score - self._score, score
        lost = bool(self._target.diverged[0]) or bool(getattr(self._referee, "lost", np.zeros(1))[0])
        done = lost or (score >= 1.0 and not isinstance(self._task, BallTask))
        over = self._ticks * self._target.timestep >= self._task.duration - 1e-9
        info |= {"score": score, "lost": lost}
        return self._observation(), self._nearness() + gained - float(lost), done, over, info

    def render(self) -> Any:
        """What a camera sees, (height, width, 3)."""
        if self.render_mode is None:
            return None
        if self._camera is None:
            self._camera = Camera(self._target)
        return self._camera.picture()

    def close(self) -> None:
        """Put the camera away."""
        if self._camera is not None:
            self._camera.__exit__(None, None, None)
            self._camera = None

    def _begin(self, seed: int) -> Array:
        self.close()
        self._task = make_task(self._name, self._robot, 1, seed)
        model = self._task.robot
        robots = Robots.hidden(model, 1, seed, self._payload) if self._hidden else Robots.ideal(model, 1)
        self._target: Target = self._task.target(robots)
        if isinstance(self._task, FlipTask):
            self._target.grip(CLOSED)  # no action opens it
        adapter = None
        if self._adapter:
            target = self._target
            made = make_adapter(self._adapter, model, 1, seed=seed, truth=lambda: target.parameters)
            adapter = Supervisor(made, SupervisorSettings(enable_ramp=0.0))
        self._frame = model.frame("plate") if isinstance(self._task, BallTask) else model.end_effector
        place, turn = self._body.frame_pose(self._frame, model.home[None])
        self._home = place.copy()
        self._level, self._told = turn, _Told(place, turn)
        if isinstance(self._task, BallTask):  # three times as stiff: the plate must tilt quickly
            controller = OperationalSpace(model, [600.0] * 3 + [180.0] * 3, [52.0] * 3 + [17.0] * 3, frame=self._frame)
        else:
            controller = OperationalSpace(model)
        self._loop = Loop(self._target, self._told, controller, adapter)
        self._referee: Referee = self._task.referee()
        self._ticks, self._score = 0, 0.0
        self._state = self._target.read()
        return self._observation()

    def _tell(self, action: Array) -> None:
        if isinstance(self._task, BallTask):
            tilt = Rotation.from_euler("xy", TILT * action).as_matrix()
            self._told.rotation = np.matmul(tilt, self._level)
            return
        self._told.velocity = FASTEST * action[None]
        moved = self._told.position + PERIOD * self._told.velocity
        self._told.position = np.clip(moved, REACH[:, 0], REACH[:, 1])

    def _observation(self) -> Array:
        state = self._state
        assert state.objects is not None
        hand, _ = self._body.frame_pose(self._frame, state.position)
        thing = state.objects[0, 0, :7]
        parts = [state.position[0], state.velocity[0], hand[0], thing, self._goal()]
        return np.clip(np.concatenate(parts), -FARTHEST, FARTHEST).astype(np.float32)

    def _goal(self) -> Array:
        if isinstance(self._task, BoxTask):
            x, y, yaw = self._task.goal[0]
            return np.array([x, y, np.cos(yaw), np.sin(yaw)])
        if isinstance(self._task, BallTask):
            assert self._state.objects is not None
            ball = on_plate(self._body, self._frame, self._state.position, self._state.objects[:, 0, :3])[0, :2]
            return np.concatenate([self._task.goals.current[0], ball])
        return np.zeros(0)

    def _nearness(self) -> float:
        """What a step is worth besides its score: less, the farther the thing is from where it should be."""
        assert self._target.objects is not None
        thing = self._target.objects[:, 0]
        if isinstance(self._task, BoxTask):
            distance, turn = errors(planar(thing), self._task.goal)
            return -float(np.minimum(distance[0], 1.0) + 0.1 * np.minimum(turn[0], np.pi))
        if isinstance(self._task, BallTask):
            ball = on_plate(self._body, self._frame, self._target.position, thing[:, :3])[0, :2]
            return -min(float(np.linalg.norm(ball - self._task.goals.current[0])), 1.0)
        assert isinstance(self._task, FlipTask)
        w, x, y, z = thing[0, 3:7]
        return -0.5 * float(1.0 + 2.0 * (x * z - w * y))
