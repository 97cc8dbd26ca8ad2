"""Contact in a scene: which shapes may touch, how stiffly, and the forces that come of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import mujoco
import mujoco.batch
import numpy as np

from retorque.robots.robot import Robot
from retorque.simulate.scene import Object, Scene
from retorque.work.array import Array
from retorque.work.errors import unknown

ROBOT, THING = 1, 2
"""Collision bits: a robot's shapes meet things, things meet each other."""
RELAXATION = 0.01
"""Damping over stiffness of a contact whose stiffness alone is given [s]."""
NET_FORCE = (1 << int(mujoco.mjtConDataField.mjCONDATA_FORCE), 3, 1)
"""Of a contact sensor: the force alone, summed over contacts in world axes, once."""


@dataclass(frozen=True)
class Spring:
    """A pair of shapes whose contact has a given stiffness."""

    bodies: tuple[str, str]
    stiffness: float
    """[N/m]"""
    damping: float
    """[N·s/m]"""


def add_contacts(spec: mujoco.MjSpec, robot: Robot, scene: Scene) -> list[Spring]:
    """Let the shapes of robot and things touch; the springs returned are the spec's contact pairs, in order."""
    shapes = {link.name: spec.body(link.name) for link in robot.links if spec.body(link.name) is not None}
    still = {link.name for link in robot.links if link.joint is None}
    for body in shapes.values():
        for geom in body.geoms:
            geom.contype, geom.conaffinity = ROBOT, ROBOT | THING if scene.self_contact else THING
    springs: list[Spring] = []
    for thing in scene.objects:
        (geom,) = spec.body(thing.name).geoms
        geom.friction = _friction(thing)[[0, 2, 3]]
        geom.condim, geom.priority = thing.dimensions, 1
        geom.solref, geom.solimp = thing.solref, thing.solimp
        geom.contype = ROBOT if thing.moves == "mounted" else THING
        geom.conaffinity = THING if thing.moves == "mounted" else ROBOT | THING
    stiff = [thing for thing in scene.objects if thing.stiffness is not None]
    for thing in stiff:
        (geom,) = spec.body(thing.name).geoms
        geom.contype = geom.conaffinity = 0  # it meets others in the pairs below only
        if thing.moves != "mounted":
            for name, body in shapes.items():
                if thing.moves == "free" or name not in still:
                    springs += [_pair(spec, [thing], shape.name, thing.name, name) for shape in body.geoms]
        for other in scene.objects:
            if _may_touch(thing, other) and not (other in stiff and stiff.index(other) <= stiff.index(thing)):
                springs.append(_pair(spec, [thing, other], other.name, thing.name, other.name))
    return springs


def _pair(spec: mujoco.MjSpec, things: list[Object], shape: str, first: str, second: str) -> Spring:
    """Things that are both stiff are springs in series."""
    stiff = [thing for thing in things if thing.stiffness is not None]
    friction = np.max([_friction(thing) for thing in things], axis=0)
    spec.add_pair(
        geomname1=first,
        geomname2=shape,
        condim=max(thing.dimensions for thing in things),
        friction=friction,
    )
    stiffness = 1.0 / sum(1.0 / float(thing.stiffness or np.inf) for thing in stiff)
    damping = [thing.damping for thing in stiff if thing.damping is not None]
    return Spring((first, second), stiffness, min(damping) if damping else RELAXATION * stiffness)


def _may_touch(first: Object, second: Object) -> bool:
    return first is not second and (first.moves, second.moves) not in (("placed", "placed"), ("mounted", "mounted"))


def _friction(thing: Object) -> Array:
    """MuJoCo's five coefficients."""
    slide, spin, roll = thing.friction, thing.torsional_friction, thing.rolling_friction
    return np.array([slide, slide, max(spin, roll), roll, roll])


def set_springs(batch: mujoco.batch.Batch, springs: list[Spring], timestep: float) -> None:
    """Turn stiffnesses into MuJoCo's references, trial by trial.

    MuJoCo's contact obeys (1 - d) / d w f = b v + k d x - a at depth x, rate v and acceleration a, where w is its
    estimate of the touching masses' inverse. So f = stiffness x + damping v - m a, and d sets the added mass m: the
    least that keeps spring and damper stable in explicit steps however light the link is.
    """
    if not springs:
        return
    weight = batch.expanded("body_invweight0")  # (trials, bodies, 2) [1/kg, 1/(kg·m²)]
    if weight is None:  # where the trials' are all the same
        weight = batch.get_model(0).body_invweight0[None]
    first, second = (np.array([batch.model.body(s.bodies[k]).id for s in springs]) for k in (0, 1))
    inverse_mass = np.maximum(weight[:, first, 0] + weight[:, second, 0], mujoco.mjMINVAL)
    stiffness, damping = (np.array([getattr(s, key) for s in springs]) for key in ("stiffness", "damping"))
    added = np.maximum(2.0 * damping * timestep, stiffness * timestep**2)
    share = added * inverse_mass / (1.0 + added * inverse_mass)
    share = np.clip(share, mujoco.mjMINIMP, mujoco.mjMAXIMP)
    batch.expand("pair_solimp")[..., 0] = batch.expand("pair_solimp")[..., 1] = share
    scale = -(1.0 - share) * inverse_mass
    batch.expand("pair_solref")[:] = np.stack([scale * stiffness, scale * damping], axis=-1)
    # Friction has no depth; it stops a sliding point within a few steps.
    batch.expand("pair_solreffriction")[:] = np.stack([-share, -0.5 / timestep * share], axis=-1)


class ContactForces:
    """Net forces between things and links, from MuJoCo's contact sensors."""

    def __init__(self, spec: mujoco.MjSpec, robot: Robot, scene: Scene):
        self._links = [link.name for link in robot.links if spec.body(link.name) is not None]
        self._things = [thing.name for thing in scene.objects]
        still = {link.name for link in robot.links if link.joint is None}
        pairs = [
            (link, thing.name)
            for thing in scene.objects
            for link in self._links
            if thing.moves == "free" or (thing.moves == "placed" and link not in still)
        ]
        objects = list(scene.objects)
        pairs += [(a.name, b.name) for k, a in enumerate(objects) for b in objects[k + 1 :] if _may_touch(a, b)]
        self._columns: dict[tuple[str, str], int] = {}
        body = mujoco.mjtObj.mjOBJ_BODY
        for count, (first, second) in enumerate(pairs):
            spec.add_sensor(
                name=f"{first} on {second}",
                type=mujoco.mjtSensor.mjSENS_CONTACT,
                objtype=body,
                objname=first,
                reftype=body,
                refname=second,
                intprm=NET_FORCE,
            )
            self._columns[first, second] = 3 * count

    def between(self, readings: Array, of: str, by: str | None) -> Array:
        """The force (..., 3) [N] on `of`; `by` None: by everything that it touches."""
        total = np.zeros((*readings.shape[:-1], 3))
        takers, givers = set(self._group(of)), None if by is None else set(self._group(by))
        for (first, second), column in self._columns.items():
            force = readings[..., column : column + 3]
            if second in takers and (givers is None or first in givers):
                total += force
            if first in takers and (givers is None or second in givers):
                total -= force
        return total

    def _group(self, name: str) -> Iterable[str]:
        if name == "robot":
            return self._links
        if name not in (*self._links, *self._things):
            raise unknown("link or thing", name, ["robot", *self._links, *self._things])
        return [name]
