"""Distance between a robot's own links: segments with a radius, pair by pair."""

from __future__ import annotations

import numpy as np

from retorque.physics.kernels.compiled import kernel
from retorque.physics.kernels.compiled_tree import CompiledTree
from retorque.robots.robot import Geom, Link, Robot
from retorque.robots.rotation import from_quaternion
from retorque.work.array import Array

NEIGHBOURS = 2
"""Links fewer joints apart than this touch by design."""


@kernel
def _closest(
    position: Array, rotation: Array, link: Array, ends: Array, radius: Array, pairs: Array, out: Array
) -> None:
    """Least distance (trials,) between pairs of capsules."""
    a, b = np.empty((2, 3)), np.empty((2, 3))
    for t in range(position.shape[0]):
        least = 1e9
        for p in range(pairs.shape[0]):
            for side in range(2):
                g = pairs[p, side]
                k = link[g]
                into = a if side == 0 else b
                for e in range(2):
                    for i in range(3):
                        into[e, i] = (
                            position[t, k, i]
                            + rotation[t, k, i, 0] * ends[g, e, 0]
                            + rotation[t, k, i, 1] * ends[g, e, 1]
                            + rotation[t, k, i, 2] * ends[g, e, 2]
                        )
            # Closest points of two segments (Lumelsky): parameters x and y, clamped one after the other.
            uu, vv, uv, uw, vw = 0.0, 0.0, 0.0, 0.0, 0.0
            for i in range(3):
                u, v, w = a[1, i] - a[0, i], b[1, i] - b[0, i], b[0, i] - a[0, i]
                uu += u * u
                vv += v * v
                uv += u * v
                uw += u * w
                vw += v * w
            det = uu * vv - uv * uv
            x = min(1.0, max(0.0, (uw * vv - vw * uv) / det)) if det > 1e-12 else 0.0
            y = (x * uv - vw) / vv if vv > 1e-12 else 0.0
            if y < 0.0 or y > 1.0:
                y = min(1.0, max(0.0, y))
                x = min(1.0, max(0.0, (y * uv + uw) / uu)) if uu > 1e-12 else 0.0
            d = 0.0
            for i in range(3):
                gap = a[0, i] + x * (a[1, i] - a[0, i]) - b[0, i] - y * (b[1, i] - b[0, i])
                d += gap * gap
            least = min(least, d**0.5 - radius[pairs[p, 0]] - radius[pairs[p, 1]])
        out[t] = least


class SelfCollision:
    """How near a robot's links come to each other, each shape taken as the capsule along its longest side.

    Pairs that are nearer than the margin at joint position zero touch by design and are left out, and so are links that
    no site's joints move against each other.

    Args:
        tree: the robot's compiled tree; its links must be up to date when `distance` is asked.
        margin: [m]
    """

    def __init__(self, tree: CompiledTree, margin: float):
        robot = tree.robot
        self._tree = tree
        index = {link.name: k for k, link in enumerate(robot.links)}
        shapes = [(index[link.name], *_capsule(geom)) for link in robot.links for geom in link.geoms]
        self._link = np.array([k for k, _, _ in shapes], dtype=np.int64)
        self._ends = np.array([ends for _, ends, _ in shapes]).reshape(-1, 2, 3)
        self._radius = np.array([radius for _, _, radius in shapes])
        used: Array = np.asarray(tree.on_chain.any(axis=0))
        depth = [_ancestors(robot, k) for k in range(len(robot.links))]
        columns = {name: c for c, name in enumerate(robot.joint_names)}
        pairs = []
        for i in range(len(shapes)):
            for j in range(i):
                k, m = self._link[i], self._link[j]
                between = depth[k] ^ depth[m]
                names = [_moving(robot.links[x]) for x in between if _moving(robot.links[x])]
                if len(names) > NEIGHBOURS and any(used[columns[name]] for name in names):
                    pairs.append((i, j))
        self._out = np.zeros(tree.trials)
        self._pairs = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        tree.update(np.broadcast_to(robot.home, (tree.trials, robot.n)).copy())
        keep = []
        for row in self._pairs:
            if self._distance(row[None])[0] > margin:
                keep.append(row)
        self._pairs = np.array(keep, dtype=np.int64).reshape(-1, 2)

    def distance(self) -> Array:
        """Least distance (trials,) [m]; large where nothing could touch."""
        return self._distance(self._pairs)

    def _distance(self, pairs: Array) -> Array:
        tree = self._tree
        _closest(tree.link_position, tree.link_rotation, self._link, self._ends, self._radius, pairs, self._out)
        return self._out


def _moving(link: Link) -> str:
    """The name of a link's joint, or nothing where it has none of its own."""
    return link.joint.name if link.joint is not None and link.joint.kind != "free" else ""


def _ancestors(robot: Robot, k: int) -> set[int]:
    links = robot.links
    index = {link.name: i for i, link in enumerate(links)}
    found = {k}
    while links[k].parent in index:
        k = index[links[k].parent]
        found.add(k)
    return found


def _capsule(geom: Geom) -> tuple[Array, float]:
    """Ends (2, 3) in the link's frame and radius [m] of a capsule about a shape."""
    size = np.array(geom.size, dtype=float)
    if geom.shape == "sphere":
        half, radius, axis = 0.0, size[0], 2
    elif geom.shape in ("capsule", "cylinder"):
        half, radius, axis = size[1], size[0], 2
    else:
        axis = int(np.argmax(size))
        others = np.delete(size, axis)
        radius = float(np.mean(others))
        half = max(0.0, float(size[axis]) - radius)
    direction = from_quaternion(geom.quaternion)[:, axis]
    centre = np.array(geom.position, dtype=float)
    return np.stack([centre - half * direction, centre + half * direction]), float(radius)
