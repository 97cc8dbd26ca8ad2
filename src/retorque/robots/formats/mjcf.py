"""Robots from MJCF files: MuJoCo compiles the file, and its bodies become links."""

from __future__ import annotations

import logging
from collections.abc import Collection
from pathlib import Path

import mujoco
import numpy as np

from retorque.robots import rotation
from retorque.robots.formats.assemble import Marker, assemble
from retorque.robots.formats.mjcf_writer import to_mjmodel, write_mjcf
from retorque.robots.formats.tree import Body, Hinge, vector
from retorque.robots.formats.xml_file import as_utf8
from retorque.robots.robot import Geom, Joint, Kind, Robot, Shape
from retorque.work.errors import RetorqueError, unknown

__all__ = ["read_menagerie", "read_mjcf", "to_mjmodel", "write_mjcf"]

log = logging.getLogger(__name__)
SHAPES: dict[int, tuple[Shape, int]] = {
    int(mujoco.mjtGeom.mjGEOM_BOX): ("box", 3),
    int(mujoco.mjtGeom.mjGEOM_SPHERE): ("sphere", 1),
    int(mujoco.mjtGeom.mjGEOM_CAPSULE): ("capsule", 2),
    int(mujoco.mjtGeom.mjGEOM_CYLINDER): ("cylinder", 2),
}
KINDS: dict[int, Kind] = {
    int(mujoco.mjtJoint.mjJNT_HINGE): "revolute",
    int(mujoco.mjtJoint.mjJNT_SLIDE): "prismatic",
    int(mujoco.mjtJoint.mjJNT_FREE): "free",
}


def read_mjcf(path: str | Path, joints: Collection[str] | None = None) -> Robot:
    """The robot in an MJCF file.

    Bodies without a joint are fused into the link they are fixed to; joints that are not named are welded at their
    reference position. Friction, damping, springs, gravity compensation and actuator dynamics are left out: the result
    is the ideal rigid robot. Equality constraints are left out too, so a closed chain is cut open into its tree. Simple
    shapes that collide in the file are kept; meshes are not.

    Args:
        path: The file; meshes it refers to may be missing if they are not needed for inertias.
        joints: The joints to keep, in any order; None: every hinge, slide and free joint.
    """
    path = Path(path)
    if not path.is_file():
        raise RetorqueError(f"there is no file '{path}'; give the path of an MJCF file")
    model = _compile(path)
    notes = []
    if model.neq:
        notes.append(f"{model.neq} equality constraints left out, closed chains cut open")
    if np.any(model.body_gravcomp):
        notes.append("the file's gravity compensation left out")
    return assemble(
        name=_model_name(model) or path.stem,
        bodies=_bodies(model, joints, path.name),
        markers=_sites(model),
        keep=None if joints is None else set(joints),
        poses=_keyframes(model),
        gravity=vector(model.opt.gravity),
        source=path.name,
        notes=notes,
    )


def read_menagerie(name: str, joints: Collection[str] | None = None) -> Robot:
    """A robot of the `mujoco-menagerie` package, which downloads a model when it is first asked for.

    Args:
        name: The model's name there, such as `franka_emika_panda`.
        joints: The joints to keep; None: all.
    """
    try:
        import mujoco_menagerie as menagerie
    except ImportError:
        raise RetorqueError(
            f"'{name}' is asked of MuJoCo Menagerie, which is not installed; run: pip install 'retorque[menagerie]'"
        ) from None
    if name not in menagerie.names():
        raise unknown("Menagerie robot", name, menagerie.names())
    entry = menagerie.get(name)
    try:
        path = entry.xml(entry.default_model)
    except (menagerie.MenagerieError, OSError) as error:
        raise RetorqueError(
            f"the model '{name}' of MuJoCo Menagerie could not be fetched ({_one_line(error)}); check the network, or "
            "load an MJCF file of yours by its path"
        ) from None
    return read_mjcf(path, joints)


def _compile(path: Path) -> mujoco.MjModel:
    try:
        return _parse(path).compile()
    except (ValueError, mujoco.FatalError) as first:
        try:
            spec = _parse(path)
            _drop_meshes(spec)
            model = spec.compile()
        except (ValueError, mujoco.FatalError):
            raise RetorqueError(
                f"{path.name}: MuJoCo cannot load this file ({_one_line(first)}); correct it, and keep the files it "
                "refers to beside it"
            ) from None
        log.info("%s: loaded without its meshes (%s)", path.name, _one_line(first))
        return model


def _parse(path: Path) -> mujoco.MjSpec:
    text = as_utf8(path)
    if text is None and path.suffix.lower() == ".xml":
        return mujoco.MjSpec.from_file(str(path))
    # MuJoCo tells formats by the ending and reads UTF-8 only, so for others the text is handed over instead.
    spec = mujoco.MjSpec.from_string(path.read_text(encoding="utf-8") if text is None else text)
    spec.modelfiledir = str(path.parent)
    return spec


def _drop_meshes(spec: mujoco.MjSpec) -> None:
    shaped = {mujoco.mjtGeom.mjGEOM_MESH, mujoco.mjtGeom.mjGEOM_HFIELD, mujoco.mjtGeom.mjGEOM_SDF}
    for geom in [g for g in spec.geoms if g.type in shaped or g.meshname]:
        spec.delete(geom)
    for group in (spec.skins, spec.meshes, spec.hfields, spec.materials, spec.textures):
        for thing in list(group):
            spec.delete(thing)
    for geom in spec.geoms:
        geom.material = ""
    for site in spec.sites:
        site.material = ""


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".")


def _model_name(model: mujoco.MjModel) -> str:
    name = model.names[: model.names.index(b"\0")].decode()
    return "" if name == "MuJoCo Model" else name


def _bodies(model: mujoco.MjModel, keep: Collection[str] | None, where: str) -> list[Body]:
    bodies = []
    for b in range(1, model.nbody):  # body 0 is the world
        first, count = int(model.body_jntadr[b]), int(model.body_jntnum[b])
        hinges = [_hinge(model, j, keep, where) for j in range(first, first + count)]
        turn = rotation.from_quaternion(model.body_iquat[b])
        bodies.append(
            Body(
                name=model.body(b).name or f"body{b}",
                parent=int(model.body_parentid[b]) - 1,
                position=model.body_pos[b].copy(),
                rotation=rotation.from_quaternion(model.body_quat[b]),
                hinges=hinges,
                mass=float(model.body_mass[b]),
                centre=model.body_ipos[b].copy(),
                inertia=turn @ np.diag(model.body_inertia[b]) @ turn.T,
                geoms=_geoms(model, b),
            )
        )
    return bodies


def _geoms(model: mujoco.MjModel, body: int) -> list[Geom]:
    """The body's simple shapes that collide."""
    geoms = []
    first, count = int(model.body_geomadr[body]), int(model.body_geomnum[body])
    for g in range(first, first + count):
        known = SHAPES.get(int(model.geom_type[g]))
        if known is None or not (model.geom_contype[g] or model.geom_conaffinity[g]):
            continue
        shape, numbers = known
        w, x, y, z = (float(value) + 0.0 for value in model.geom_quat[g])
        geoms.append(
            Geom(
                shape=shape,
                size=tuple(float(value) for value in model.geom_size[g, :numbers]),
                position=vector(model.geom_pos[g]),
                quaternion=(w, x, y, z),
                friction=float(model.geom_friction[g, 0]),
            )
        )
    return geoms


def _hinge(model: mujoco.MjModel, j: int, keep: Collection[str] | None, where: str) -> Hinge:
    name = model.joint(j).name or f"joint{j}"
    kind = KINDS.get(int(model.jnt_type[j]))
    if kind is None:
        if keep is None or name in keep:
            raise RetorqueError(
                f"{where}: '{name}' is a ball joint, which a robot here cannot have; use three hinges, or "
                "name the joints to keep without it"
            )
        kind = "revolute"  # it is welded: only its name matters
    if kind == "free":
        return Hinge(joint=Joint(name=name, kind="free"), anchor=np.zeros(3))
    lower, upper = (float(value) for value in model.jnt_range[j])
    limited = lower < upper  # a range counts even where the file says not to enforce it
    return Hinge(
        joint=Joint(
            name=name,
            kind=kind,
            axis=vector(model.jnt_axis[j]),
            lower=lower if limited else -np.inf,
            upper=upper if limited else np.inf,
            torque_limit=_torque_limit(model, j),
            armature=float(model.dof_armature[model.jnt_dofadr[j]]),
        ),
        anchor=model.jnt_pos[j].copy(),
        reference=float(model.qpos0[model.jnt_qposadr[j]]),
    )


def _torque_limit(model: mujoco.MjModel, j: int) -> float:
    """The largest torque at a joint: of its actuators together, or of the joint's own range where that is smaller."""
    # As with positions, a range counts even where the file says not to enforce it.
    of_joint = float(np.abs(model.jnt_actfrcrange[j]).max()) or np.inf
    on_joint = (int(mujoco.mjtTrn.mjTRN_JOINT), int(mujoco.mjtTrn.mjTRN_JOINTINPARENT))
    of_actuators = 0.0
    for a in range(model.nu):
        if int(model.actuator_trntype[a]) not in on_joint or model.actuator_trnid[a, 0] != j:
            continue
        gear = abs(float(model.actuator_gear[a, 0]))
        limits = [np.inf]
        if np.any(model.actuator_forcerange[a]):
            limits.append(float(np.abs(model.actuator_forcerange[a]).max()) * gear)
        plain = (
            model.actuator_gaintype[a] == mujoco.mjtGain.mjGAIN_FIXED
            and model.actuator_biastype[a] == mujoco.mjtBias.mjBIAS_NONE
            and model.actuator_dyntype[a] == mujoco.mjtDyn.mjDYN_NONE
        )
        if plain and model.actuator_ctrllimited[a]:  # a torque motor: its command is the torque
            gain = abs(float(model.actuator_gainprm[a, 0]))
            limits.append(float(np.abs(model.actuator_ctrlrange[a]).max()) * gain * gear)
        of_actuators += min(limits)
    limit = min(of_joint, of_actuators if of_actuators > 0.0 else np.inf)
    return limit if limit > 0.0 else float("inf")


def _sites(model: mujoco.MjModel) -> list[Marker]:
    markers = []
    for s in range(model.nsite):
        body, name = int(model.site_bodyid[s]), model.site(s).name
        if body > 0 and name:
            turn = rotation.from_quaternion(model.site_quat[s])
            markers.append(Marker(name, body - 1, model.site_pos[s].copy(), turn))
    return markers


def _keyframes(model: mujoco.MjModel) -> list[dict[str, float]]:
    """The keyframe called "home", then the first one, as joint positions."""
    names = [model.key(k).name for k in range(model.nkey)]
    order = [k for k in ([names.index("home")] if "home" in names else []) + ([0] if names else [])]
    joints = [(model.joint(j).name or f"joint{j}", int(model.jnt_qposadr[j])) for j in range(model.njnt)]
    return [{name: float(model.key_qpos[k, address]) for name, address in joints} for k in order]
