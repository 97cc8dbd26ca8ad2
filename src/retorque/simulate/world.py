"""The MuJoCo side of a plant: the compiled model, one robot's place in its arrays, and trials that diverge."""

from __future__ import annotations

from dataclasses import replace

import mujoco
import mujoco.batch
import numpy as np

from retorque.robots import rotation
from retorque.robots.formats.mjcf_writer import to_mjmodel, write_mjcf
from retorque.robots.robot import Robot
from retorque.simulate.contact import ContactForces, Spring, add_contacts, set_springs
from retorque.simulate.scene import Finger, Object, Scene
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

TIMES_ITS_LIMIT = 100.0
"""A joint this many times faster than its velocity limit has diverged."""
FASTEST = 1e3
"""Anything else that is faster has diverged [rad/s or m/s]."""
MOST_JOINTS = 300
"""A tree with more joints is refused: MuJoCo's step grows with the square of its depth."""
SETTLES = 0.1
"""A finger's servo is slow within its speed times this [s]."""
ROTOR = 0.1
"""Of a finger's motor, seen at the finger [kg]."""
SHAPES = {
    "plane": mujoco.mjtGeom.mjGEOM_PLANE,
    "box": mujoco.mjtGeom.mjGEOM_BOX,
    "sphere": mujoco.mjtGeom.mjGEOM_SPHERE,
    "cylinder": mujoco.mjtGeom.mjGEOM_CYLINDER,
}


class World:
    """`trials` copies of a robot and its scene.

    Args:
        robot: the robot.
        scene: what stands around it; None: nothing, and nothing touches.
        trials: how many copies.
        timestep: of the integrator [s].
        threads: MuJoCo's threads; 0 takes all cores.
        limits: whether the joints stop at their position limits.
    """

    def __init__(self, robot: Robot, scene: Scene | None, trials: int, *, timestep: float, threads: int, limits: bool):
        if robot.n > MOST_JOINTS:
            raise RetorqueError(f"robot '{robot.name}' has {robot.n} joints; at most {MOST_JOINTS} can be simulated")
        self.scene = scene or Scene()
        self._springs: list[Spring] = []
        self._forces: ContactForces | None = None
        self._timestep = timestep
        model = self._scene_model(robot, limits) if scene else to_mjmodel(robot, timestep=timestep, limits=limits)
        # A trial that diverges is stopped and marked below; MuJoCo would put it back to the start.
        model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_AUTORESET)
        self.model = model
        self.batch = mujoco.batch.Batch(model, trials, threads)
        self.qpos, self.qvel = self.batch.bind("qpos"), self.batch.bind("qvel")
        self.applied = self.batch.bind("qfrc_applied")
        self._readings = self.batch.bind("sensordata")  # bound now: MuJoCo fills what is bound before a step
        first = model.joint(robot.joint_names[0])
        # MuJoCo lists bodies depth first, as cards do, so one robot's joints stand together.
        self.joint_q = slice(int(first.qposadr[0]), int(first.qposadr[0]) + robot.n)
        self.joint_v = slice(int(first.dofadr[0]), int(first.dofadr[0]) + robot.n)
        self.diverged = np.zeros(trials, dtype=bool)
        self._fastest = np.full(model.nv, FASTEST)
        limit = robot.velocity_limit
        self._fastest[self.joint_v] = np.where(np.isfinite(limit), TIMES_ITS_LIMIT * limit, FASTEST)
        self._before, self._speed = np.empty_like(self.qpos), np.empty_like(self.qvel)
        self._fine = np.empty(self.qvel.shape, dtype=bool)
        self._running: Array | None = None
        self._pushed = False
        self._fingers = [thing for thing in self.scene.objects if isinstance(thing, Finger)]
        if self._fingers:
            self._told_fingers = self.batch.bind("ctrl")
        self._loud, self._quiet = mujoco.MjLogConfig.get(), mujoco.MjLogConfig.get()
        self._quiet.logto_file = self._quiet.logto_console = False

    def step(self) -> None:
        """One step of the trials that have not diverged; one that does stays where it was before the step."""
        if self._running is not None and not len(self._running):
            return
        np.copyto(self._before, self.qpos)
        failed: Array | None = None
        self._quiet.set()  # no MUJOCO_LOG.TXT in the user's folder
        try:
            self.batch.step(self._running)
        except mujoco.batch.SimulationError as error:
            failed = error.ids
        finally:
            self._loud.set()
        np.abs(self.qvel, out=self._speed)
        np.less(self._speed, self._fastest, out=self._fine)  # not a number is not less
        if failed is None and self._fine.all():
            return
        stopped = np.logical_not(np.all(self._fine, axis=1))
        if failed is not None:
            stopped[failed] = True
        self.qpos[stopped], self.qvel[stopped] = self._before[stopped], 0.0
        self.diverged |= stopped
        self._running = np.flatnonzero(~self.diverged)

    def reset(self) -> None:
        """Everything back to where the scene has it, at rest; no trial has diverged."""
        self.batch.reset(stage=mujoco.mjtStage.mjSTAGE_NONE)
        self.diverged[:] = False
        self._running = None
        for number, finger in enumerate(self._fingers):
            self._told_fingers[:, number] = finger.opens

    def constants(self) -> None:
        """Follow changed masses, inertias and armatures."""
        self.batch.set_const()
        set_springs(self.batch, self._springs, self._timestep)

    def base(self) -> tuple[Array, Array]:
        """Pose (trials, 7) and twist (trials, 6) in world axes of the free joint before the robot's joints."""
        return self.free_joint(self.joint_q.start - 7, self.joint_v.start - 6)

    def set_base(self, pose: Array, twist: Array) -> None:
        """The inverse of `base`."""
        self.set_free_joint(self.joint_q.start - 7, self.joint_v.start - 6, pose, twist)

    def free_joint(self, q: int, v: int) -> tuple[Array, Array]:
        """Pose (trials, 7) and twist (trials, 6) in world axes of the free joint at these columns."""
        pose, twist = self.qpos[:, q : q + 7].copy(), self.qvel[:, v : v + 6].copy()
        twist[:, 3:] = rotate(pose[:, 3:], twist[:, 3:])  # MuJoCo's angular velocities are in the body's axes
        return pose, twist

    def set_free_joint(self, q: int, v: int, pose: Array, twist: Array | float) -> None:
        """The inverse of `free_joint`."""
        twist = np.broadcast_to(twist, (len(self.qpos), 6))
        pose = np.broadcast_to(pose, (len(self.qpos), 7))
        self.qpos[:, q : q + 7], self.qvel[:, v : v + 3] = pose, twist[:, :3]
        self.qvel[:, v + 3 : v + 6] = rotate(pose[:, 3:] * [1.0, -1.0, -1.0, -1.0], twist[:, 3:])

    def objects(self) -> Array | None:
        """(trials, k, 13) poses and twists of the things that move freely, in the scene's order."""
        free = [thing for thing in self.scene.objects if thing.moves == "free"]
        if not free:
            return None
        return np.stack([np.concatenate(self.free_joint(*self._columns(x)), axis=1) for x in free], axis=1)

    def place(self, name: str, pose: Array, twist: Array | float = 0.0) -> None:
        """Put a thing at a pose (7,) or (trials, 7) with a twist (6,) or (trials, 6)."""
        thing = self.thing(name)
        if thing.moves == "mounted":
            raise RetorqueError(f"'{name}' is mounted on the robot and cannot be placed")
        if thing.moves == "free":
            self.set_free_joint(*self._columns(thing), pose, twist)
            return
        number = int(self.model.body(name).mocapid[0])
        pose = np.asarray(pose, dtype=float)
        self.batch.bind("mocap_pos")[:, number] = pose[..., :3]
        self.batch.bind("mocap_quat")[:, number] = pose[..., 3:]

    def vary(self, name: str, mass: Array | float | None, friction: Array | float | None) -> None:
        """Give a thing other values, one for all trials or (trials,); the inertia follows the mass."""
        thing, body = self.thing(name), self.model.body(name)
        if mass is not None:
            if not thing.mass > 0.0:
                raise RetorqueError(f"'{name}' has no mass that could be changed; give it one in the scene")
            scale = np.asarray(mass, dtype=float)[..., None] / thing.mass
            self.batch.expand("body_mass")[:, body.id] = mass
            self.batch.expand("body_inertia")[:, body.id] = scale * self.model.body_inertia[body.id]
            self.constants()
        if friction is not None:
            shape = int(body.geomadr[0])
            self.batch.expand("geom_friction")[:, shape, 0] = friction
            pairs = np.flatnonzero((self.model.pair_geom1 == shape) | (self.model.pair_geom2 == shape))
            if len(pairs):
                self.batch.expand("pair_friction")[:, pairs, :2] = np.reshape(friction, (-1, 1, 1))

    def grip(self, width: Array | float) -> None:
        """Tell all fingers a distance between them, one or (trials,) [m]; one that is not finite is not heard."""
        if not self._fingers:
            raise RetorqueError("the scene has no finger; leave the gripper's command out, or give the robot fingers")
        told = np.broadcast_to(np.asarray(width, dtype=float), len(self.qpos))
        heard = np.isfinite(told)
        for number, finger in enumerate(self._fingers):
            self._told_fingers[heard, number] = np.clip(0.5 * told[heard], 0.0, finger.opens)

    def push(self, wrenches: dict[str, Array]) -> None:
        """Forces and moments (..., 6) on sites of these names in world axes, for the next step."""
        applied = self.batch.bind("xfrc_applied")
        if not self._pushed:
            self._pushed = True
            self._centres, self._sites = self.batch.bind("xipos"), self.batch.bind("site_xpos")
            self.batch.forward(stage=mujoco.mjtStage.mjSTAGE_POS)
        applied[:] = 0.0
        for name, wrench in wrenches.items():
            site = self.model.site(name)
            body = int(site.bodyid[0])
            force, moment = wrench[..., :3], wrench[..., 3:]
            arm = self._sites[:, site.id] - self._centres[:, body]  # MuJoCo's forces act at centres of mass
            applied[:, body, :3] += force
            applied[:, body, 3:] += moment + np.cross(arm, force)

    def contact_force(self, of: str, by: str | None) -> Array:
        """(trials, 3) force on a link, a thing or the robot in the last step, world axes [N]."""
        if self._forces is None:
            raise RetorqueError("nothing touches without a scene; give the target one")
        return self._forces.between(self._readings, of, by)

    def snapshot(self, trial: int, into: mujoco.MjData | None = None) -> tuple[mujoco.MjModel, mujoco.MjData]:
        """The model, and one trial's state in a data structure of its own, or its places in one that there is."""
        data = into or mujoco.MjData(self.model)
        data.qpos[:], data.qvel[:] = self.qpos[trial], self.qvel[trial]
        if self.model.nmocap:
            data.mocap_pos[:] = self.batch.bind("mocap_pos")[trial]
            data.mocap_quat[:] = self.batch.bind("mocap_quat")[trial]
        (mujoco.mj_forward if into is None else mujoco.mj_kinematics)(self.model, data)
        return self.model, data

    def thing(self, name: str) -> Object:
        """The thing of that name."""
        for thing in self.scene.objects:
            if thing.name == name:
                return thing
        raise RetorqueError(
            f"the scene has no '{name}'; it has: {', '.join(x.name for x in self.scene.objects) or 'nothing'}"
        )

    def _columns(self, thing: Object) -> tuple[int, int]:
        joint = self.model.joint(thing.name)
        return int(joint.qposadr[0]), int(joint.dofadr[0])

    def _scene_model(self, robot: Robot, limits: bool) -> mujoco.MjModel:
        self.scene.check(robot)
        plain = replace(robot, friction=None)  # the target adds friction itself
        text = write_mjcf(plain, timestep=self._timestep, contact=self.scene.self_contact, limits=limits)
        spec = mujoco.MjSpec.from_string(text)
        for key in list(spec.keys):
            spec.delete(key)  # it holds the robot alone
        spec.option.disableflags &= ~int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
        spec.option.cone, spec.option.impratio = mujoco.mjtCone.mjCONE_ELLIPTIC, self.scene.impratio
        for thing in self.scene.objects:
            _add_thing(spec, robot, thing)
        self._springs = add_contacts(spec, robot, self.scene)
        self._forces = ContactForces(spec, robot, self.scene)
        return spec.compile()


def _add_thing(spec: mujoco.MjSpec, robot: Robot, thing: Object) -> None:
    parent, position, quaternion = spec.worldbody, thing.position, thing.quaternion
    if thing.moves == "mounted":
        frame = robot.frame(thing.mount)
        turn = rotation.from_quaternion(frame.quaternion)
        parent = spec.body(frame.link)
        position = np.array(frame.position) + turn @ np.array(thing.position)
        quaternion = rotation.to_quaternion(turn @ rotation.from_quaternion(thing.quaternion))
    if isinstance(thing, Finger):
        turn = rotation.from_quaternion(robot.frame(thing.mount).quaternion)
        position = np.asarray(position) + thing.opens * (turn @ np.array(thing.axis) / np.linalg.norm(thing.axis))
    body = parent.add_body(name=thing.name, pos=position, quat=quaternion, mocap=thing.moves == "placed")
    if thing.mass > 0.0:
        body.mass, body.explicitinertial, body.ipos, body.iquat = thing.mass, True, [0.0] * 3, [1.0, 0.0, 0.0, 0.0]
        body.inertia = thing.inertia if thing.inertia is not None else thing.solid_inertia()
    if thing.moves == "free":
        body.add_freejoint(name=thing.name)
    if isinstance(thing, Finger):
        _add_servo(spec, body, thing)
    body.add_geom(name=thing.name, type=SHAPES[thing.shape], size=_three(thing.geom_size), pos=thing.geom_position)


def _add_servo(spec: mujoco.MjSpec, body: mujoco.MjsBody, finger: Finger) -> None:
    """A slide from closed (0) to open, and a motor whose force is spent on damping at the finger's speed."""
    turn = rotation.from_quaternion(finger.quaternion)
    damping = finger.force / finger.speed
    body.add_joint(
        name=finger.name,
        type=mujoco.mjtJoint.mjJNT_SLIDE,
        axis=turn.T @ np.array(finger.axis),
        ref=finger.opens,
        range=(0.0, finger.opens),
        limited=True,
        solref_limit=(0.004, 1.0),
        damping=damping,
        armature=ROTOR,
    )
    stiffness = damping / SETTLES
    motor = spec.add_actuator(name=finger.name, target=finger.name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
    motor.gainprm[0], motor.biastype, motor.biasprm[1] = stiffness, mujoco.mjtBias.mjBIAS_AFFINE, -stiffness
    motor.forcerange, motor.forcelimited = (-finger.force, finger.force), True


def _three(size: tuple[float, ...]) -> list[float]:
    return [*size, 0.0, 0.0][:3]


def rotate(quaternion: Array, vector: Array) -> Array:
    """Vectors (..., 3) turned by quaternions (..., 4), (w, x, y, z)."""
    w, axis = quaternion[..., :1], quaternion[..., 1:]
    twice = 2.0 * _cross(axis, vector)
    return vector + w * twice + _cross(axis, twice)


def _cross(a: Array, b: Array) -> Array:
    """What `np.cross` gives, (..., 3), without the time that it takes to sort out its axes."""
    out = np.empty(np.broadcast_shapes(a.shape, b.shape))
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        out[..., i] = a[..., j] * b[..., k] - a[..., k] * b[..., j]
    return out
