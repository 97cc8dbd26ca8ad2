"""Every card against the file its numbers come from, at 200 random states; rotors against the public TAM presets."""

from __future__ import annotations

import json

import mujoco
import numpy as np
import pinocchio as pin
import pytest

from retorque.physics.rigid_body import RigidBody
from retorque.robots import Frame, Robot, load, names
from retorque.robots import rotation as rot
from retorque.robots.formats.mjcf import to_mjmodel

STATES = 200
TOLERANCE = 1e-6

# card -> source file, then the body of the source that carries the end-effector and its place there [m]
FIXED = {
    "panda": ("franka_panda", "hand", (0.0, 0.0, 0.1034)),
    "piper": ("agilex_piper", "link6", (0.0, 0.0, 0.13503)),
    "iiwa14": ("kuka_iiwa14", "link7", (0.0, 0.0, 0.045)),
    "rizon4": ("flexiv_rizon4", "link7", (0.0, 0.0, 0.081)),
    "rby1": ("rby1_onearm", "hand", (0.0, 0.0, -0.08)),
    "google_robot": ("google_robot", "link_gripper", (0.0, 0.0, 0.13)),
    "z1": ("unitree_z1", "link06", (0.051, 0.0, 0.0)),
    "arx_x5": ("arx_l5", "link6", (0.08657, 0.0, 0.0)),
    "leap_hand": ("leap_hand_right", "if_ds", (0.0, -0.04, 0.015)),
    "leap_hand_left": ("leap_hand_left", "if_ds", (0.0, -0.04, 0.015)),
}
FLOATING = {
    "toddlerbot": ("toddlerbot_2xc", "right_hand", (-0.0174602, -0.0045, -0.057)),
    "toddlerbot_2xm": ("toddlerbot_2xm", "right_hand", (-0.0174602, -0.0045, -0.057)),
    "g1": ("unitree_g1", "right_wrist_yaw_link", (0.0415, -0.003, 0.0)),
}


def positions(robot: Robot, seed: int) -> np.ndarray:
    """Random joint positions inside the limits, (STATES, n)."""
    rng = np.random.default_rng(seed)
    low, high = np.maximum(robot.lower, -np.pi), np.minimum(robot.upper, np.pi)
    return rng.uniform(low, high, (STATES, robot.n))


def source_model(shared, name: str) -> mujoco.MjModel:
    model = mujoco.MjModel.from_xml_path(str(shared / "robots" / f"{name}.xml"))
    model.body_gravcomp[:] = 0.0  # the ideal robot feels gravity
    return model


def close(ours: np.ndarray, theirs: np.ndarray) -> None:
    assert np.abs(ours - theirs).max() <= TOLERANCE * np.abs(theirs).max()


def same_place(position: np.ndarray, turn: np.ndarray, data: mujoco.MjData, body: str, offset=(0.0, 0.0, 0.0)) -> None:
    there = data.body(body).xmat.reshape(3, 3)
    assert np.allclose(position, data.body(body).xpos + there @ np.array(offset), atol=TOLERANCE)
    assert np.allclose(turn, there, atol=TOLERANCE)


def test_every_card_has_a_test() -> None:
    assert set(names()) == set(FIXED) | set(FLOATING) | {"ur10e", "xmate3"}


@pytest.mark.parametrize("name", FIXED)
def test_fixed_base(name: str, shared, dynamics) -> None:
    source, end_body, offset = FIXED[name]
    robot, model = load(name), source_model(shared, source)
    data = mujoco.MjData(model)
    dofs = np.array([model.joint(joint).dofadr[0] for joint in robot.joint_names])
    places = np.array([model.joint(joint).qposadr[0] for joint in robot.joint_names])
    assert robot.torque_limit.max() < np.inf
    public = json.loads((shared / "robots" / "public_tracking.json").read_text())["robots"]
    rotors = public[name]["ideal_armature"] if name in public else model.dof_armature[dofs]
    assert np.array_equal(robot.armature, rotors)
    model.dof_armature[dofs] = rotors
    limits = model.jnt_range[[model.joint(joint).id for joint in robot.joint_names]]
    assert np.array_equal(np.column_stack([robot.lower, robot.upper]), limits)
    q = positions(robot, seed=1)
    qd = np.random.default_rng(2).normal(size=q.shape)
    ours = RigidBody(robot)
    mass, bias = ours.mass_matrix(q), ours.bias(q, qd)
    end = ours.frame_pose(robot.end_effector, q)
    origins = {link.name: ours.frame_pose(Frame(link=link.name), q) for link in robot.moving_links}
    qpos, qvel = model.qpos0.copy(), np.zeros(model.nv)
    for i in range(STATES):
        qpos[places], qvel[dofs] = q[i], qd[i]
        their_mass, their_bias = dynamics(model, data, qpos, qvel)
        close(mass[i], their_mass[np.ix_(dofs, dofs)])
        close(bias[i], their_bias[dofs])
        same_place(end[0][i], end[1][i], data, end_body, offset)
        for link, (position, turn) in origins.items():
            same_place(position[i], turn[i], data, link)


@pytest.mark.parametrize("name", FLOATING)
def test_floating_base(name: str, shared, dynamics) -> None:
    source, end_body, offset = FLOATING[name]
    robot, model = load(name), source_model(shared, source)
    add_reflected_armature(name, model)
    ours = to_mjmodel(robot)
    data, our_data = mujoco.MjData(model), mujoco.MjData(ours)
    kept = [link.joint.name for link in robot.moving_links if link.joint is not None]
    dofs = np.concatenate([np.arange(model.jnt_dofadr[model.joint(j).id], model.nv)[: size(j, robot)] for j in kept])
    places = np.concatenate([model.joint(j).qposadr[0] + np.arange(7 if size(j, robot) == 6 else 1) for j in kept])
    q = positions(robot, seed=3)
    rng = np.random.default_rng(4)
    base = np.hstack([rng.normal(size=(STATES, 3)), rng.normal(size=(STATES, 4))])
    base[:, 3:] /= np.linalg.norm(base[:, 3:], axis=1, keepdims=True)
    qd = rng.normal(size=(STATES, ours.nv))
    qpos, qvel = model.qpos0.copy(), np.zeros(model.nv)
    for i in range(STATES):
        state = np.concatenate([base[i], q[i]])
        qpos[places], qvel[dofs] = state, qd[i]
        their_mass, their_bias = dynamics(model, data, qpos, qvel)
        mass, bias = dynamics(ours, our_data, state, qd[i])
        close(mass, their_mass[np.ix_(dofs, dofs)])
        close(bias, their_bias[dofs])
        for link in robot.links:
            same_place(our_data.body(link.name).xpos, our_data.body(link.name).xmat.reshape(3, 3), data, link.name)
        mujoco.mj_kinematics(ours, our_data)
        site = our_data.site("end_effector")
        same_place(site.xpos, site.xmat.reshape(3, 3), data, end_body, offset)


def size(joint: str, robot: Robot) -> int:
    """Degrees of freedom of a joint."""
    return 1 if joint in robot.joint_names else 6


def add_reflected_armature(name: str, model: mujoco.MjModel) -> None:
    """Put the armature of ToddlerBot's drive gears onto the joints they turn, as the card does."""
    if not name.startswith("toddlerbot"):
        return
    if name == "toddlerbot_2xm":  # its motor list has another motor than its model file
        for side in ("left", "right"):
            model.dof_armature[model.joint(f"{side}_shoulder_pitch").dofadr[0]] = 0.0022
    armature = model.dof_armature.copy()
    for e in range(model.neq):
        if model.eq_type[e] == mujoco.mjtEq.mjEQ_JOINT:
            driven, drive = (model.jnt_dofadr[j] for j in (model.eq_obj1id[e], model.eq_obj2id[e]))
            model.dof_armature[driven] += armature[drive] / model.eq_data[e, 1] ** 2
    rotor = armature[model.joint("waist_act_1").dofadr[0]]
    for joint, coefficient in (("waist_yaw", 0.208333), ("waist_roll", 0.291667)):  # two motors share each waist joint
        model.dof_armature[model.joint(joint).dofadr[0]] += rotor / (2 * coefficient**2)
    model.dof_armature[model.joint("neck_pitch").dofadr[0]] += armature[model.joint("neck_pitch_act").dofadr[0]]


def test_ur10e(shared) -> None:
    robot = load("ur10e")
    model = pin.buildModelFromUrdf(str(shared / "data" / "ur10e" / "ur10e.urdf"))
    data = model.createData()
    q = positions(robot, seed=5)
    qd = np.random.default_rng(6).normal(size=q.shape)
    ours = RigidBody(robot)
    mass, bias = ours.mass_matrix(q), ours.bias(q, qd)
    end = ours.frame_pose(robot.end_effector, q)
    origins = {link.name: ours.frame_pose(Frame(link=link.name), q) for link in robot.moving_links}
    assert tuple(model.names)[1:] == robot.joint_names
    assert np.allclose(model.lowerPositionLimit, robot.lower) and np.allclose(model.upperPositionLimit, robot.upper)
    for i in range(STATES):
        theirs = pin.crba(model, data, q[i]).copy()
        theirs = np.triu(theirs) + np.triu(theirs, 1).T
        close(mass[i], theirs)
        close(bias[i], pin.nonLinearEffects(model, data, q[i], qd[i]))
        pin.framesForwardKinematics(model, data, q[i])
        for link, (position, turn) in {"tool0": end, **origins}.items():
            pose = data.oMf[model.getFrameId(link)]
            assert np.allclose(position[i], pose.translation, atol=TOLERANCE)
            assert np.allclose(turn[i], pose.rotation, atol=TOLERANCE)


def test_xmate3_link_lengths() -> None:
    robot = load("xmate3")
    data = mujoco.MjData(to_mjmodel(robot))
    mujoco.mj_kinematics(to_mjmodel(robot), data)
    heights = [data.body(f"link{i}").xpos[2] for i in (2, 4, 6)] + [data.site("end_effector").xpos[2]]
    assert np.allclose(np.diff([0.0, *heights]), [0.3415, 0.394, 0.366, 0.2503])
    assert sum(link.mass for link in robot.links) == pytest.approx(22.0)
    assert "estimated" in robot.source and "ESTIMATED" in robot.notes


def test_profiles_follow_the_published_ranges(shared) -> None:
    import json

    published = json.loads((shared / "robots" / "perturbation_profiles.json").read_text())
    keys = {
        "panda": "panda_pandagripper",
        "piper": "piper_description",
        "iiwa14": "iiwa14",
        "rizon4": "flexiv_rizon4",
        "rby1": "rby1_onearm",
        "google_robot": "google_robot",
        "z1": "unitree_z1",
    }
    assert {name for name in names() if load(name).profile is not None} == set(keys)
    for name, key in keys.items():
        profile, table = load(name).profile, published[key]
        assert profile is not None
        assert profile.armature_min.tolist() == table["armature_min_profile"]
        assert profile.armature_max.tolist() == table["armature_max_profile"]
        assert profile.stiffness.tolist() == table["base_kp_profile"]
        assert profile.command_noise_white.tolist() == table["white_base_profile"]
        assert profile.command_noise_walk.tolist() == table["walk_base_profile"]
        assert np.allclose(np.rad2deg(profile.waypoint_delta), table["waypoint_max_delta_deg_profile"])
        force = (table["external_force_magnitude_min_n"], table["external_force_magnitude_max_n"])
        assert profile.external_force == force
        if name != "panda":
            assert np.allclose(profile.tracking_stiffness, profile.stiffness / 2)
            assert profile.tracking_damping is None


def test_panda_end_effector_is_turned_like_the_hand() -> None:
    turn = rot.from_quaternion(load("panda").end_effector.quaternion)
    assert np.allclose(turn, rot.from_axis_angle((0.0, 0.0, 1.0), -np.pi / 4), atol=1e-6)


def _corners(model: mujoco.MjModel, data: mujoco.MjData, geom: int) -> np.ndarray:
    """The corners of a box, or the outermost points of a sphere, in the world, (..., 3)."""
    signs = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, -1).T
    half = model.geom_size[geom]
    if model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_SPHERE:
        half = np.full(3, half[0])
    return data.geom_xpos[geom] + signs * half @ data.geom_xmat[geom].reshape(3, 3).T


@pytest.mark.parametrize(
    ("name", "source", "links"),
    [
        (
            "toddlerbot_2xm",
            "toddlerbot_2xm",
            ("left_ankle_roll_link", "right_ankle_roll_link", "left_hand", "right_hand"),
        ),
        ("toddlerbot", "toddlerbot_2xc", ("left_hand", "right_hand", "torso")),
        ("leap_hand", "leap_hand_right", ("palm", "if_bs", "th_px")),
        ("leap_hand_left", "leap_hand_left", ("palm", "if_bs", "th_px")),
        ("iiwa14", "kuka_iiwa14", ("link5", "link7")),
    ],
)
def test_shapes_are_where_the_source_has_them(name: str, source: str, links: tuple[str, ...], shared) -> None:
    ours, theirs = to_mjmodel(load(name)), source_model(shared, source)
    for link in links:
        found = []
        for model in (ours, theirs):
            data = mujoco.MjData(model)
            mujoco.mj_kinematics(model, data)
            body = model.body(link)
            shapes = [
                g for g in range(model.ngeom) if model.geom_bodyid[g] == body.id and model.geom_group[g] in (0, 3)
            ]
            points = np.concatenate([_corners(model, data, g) for g in shapes]) - data.xpos[body.id]
            found.append(points @ data.xmat[body.id].reshape(3, 3))
        low, high = ([np.min(p, axis=0) for p in found], [np.max(p, axis=0) for p in found])
        np.testing.assert_allclose(low[0], low[1], atol=1e-5)
        np.testing.assert_allclose(high[0], high[1], atol=1e-5)


def test_g1_stands_on_a_box_around_the_source_s_four_spheres(shared) -> None:
    model = source_model(shared, "unitree_g1")
    for side in ("left", "right"):
        (box,) = load("g1").link(f"{side}_ankle_roll_link").geoms
        body = model.body(f"{side}_ankle_roll_link").id
        spheres = [g for g in range(model.ngeom) if model.geom_bodyid[g] == body]
        centres = model.geom_pos[spheres]
        radius = model.geom_size[spheres[0], 0]
        low, high = np.array(box.position) - box.size, np.array(box.position) + box.size
        np.testing.assert_allclose(low[[0, 2]], (centres.min(axis=0) - radius)[[0, 2]], atol=1e-9)
        np.testing.assert_allclose(high[[0, 2]], (centres.max(axis=0) + radius)[[0, 2]], atol=1e-9)
        assert box.friction == model.geom_friction[spheres[0], 0] == 0.6
