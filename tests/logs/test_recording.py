"""One layout of a tick for the ring, the file and the reader; and what tells one robot's recordings from another's."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from retorque.logs.recording import SCALARS, VECTORS, TickLayout, kinematics_of
from retorque.robots.robot import Robot


@pytest.mark.parametrize("n", [1, 6, 7, 23])
def test_bytes_and_records_are_the_same_row(n: int) -> None:
    layout = TickLayout(n)
    assert layout.row.size == layout.dtype.itemsize == 8 * layout.width
    vectors = np.random.default_rng(n).normal(0.0, 1.0, (len(VECTORS), n))
    written = layout.row.pack(3, 0.25, 2**63, 5, 6, *(vector.tobytes() for vector in vectors))
    row = layout.rows(written)[0]
    assert [row[name] for name in SCALARS] == [3, 0.25, 2**63, 5, 6]
    for name, vector in zip(VECTORS, vectors, strict=True):
        np.testing.assert_array_equal(row[name], vector)


def test_rows_lie_one_after_another() -> None:
    layout = TickLayout(2)
    empty = np.zeros(2).tobytes()
    data = b"".join(layout.row.pack(k, 0.001 * k, 0, 0, 0, *[empty] * len(VECTORS)) for k in range(5))
    rows = layout.rows(data)
    assert rows["sequence"].tolist() == [0, 1, 2, 3, 4] and rows["position"].shape == (5, 2)
    assert len(layout.rows(b"")) == 0


def test_the_schema_names_every_field_in_order() -> None:
    layout = TickLayout(4)
    names = [line.split(" ")[1] for line in layout.schema().splitlines()]
    assert names == list(layout.dtype.names or ()) == [*SCALARS, *VECTORS]
    assert layout.schema().count("float64[4]") == len(VECTORS)


def test_kinematics_outlast_identification_but_not_another_arm() -> None:
    arm = Robot.load("z1")
    link = arm.links[2]
    assert link.joint is not None

    def changed(**fields: object) -> str:
        return kinematics_of(arm.with_links((*arm.links[:2], replace(link, **fields), *arm.links[3:])))

    own = kinematics_of(arm)
    assert len(own) == 16 and own == kinematics_of(Robot.load("z1"))
    assert changed(mass=2.0 * link.mass, joint=replace(link.joint, armature=0.3)) == own
    x, y, z = link.position
    assert changed(position=(x + 1e-5, y, z)) == own  # less than a tenth of a millimetre
    assert changed(position=(x + 1e-3, y, z)) != own
    assert changed(joint=replace(link.joint, axis=tuple(-a for a in link.joint.axis))) != own
    assert kinematics_of(Robot.load("piper")) != own
