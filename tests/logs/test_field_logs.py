"""Logs as they come from the field: units, signs, offsets, couplings, clocks, containers, and files in odd shapes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retorque.identify.commands import IdentifySettings, identify
from retorque.logs.clean import DamagedLog
from retorque.logs.columns import Columns, read_map
from retorque.logs.corrections import Corrections
from retorque.logs.log import Log
from retorque.logs.motion import Motion
from retorque.robots.formats.repair import nearest_inertia
from retorque.robots.library import load, load_as_found
from retorque.robots.robot import Robot
from retorque.work.errors import RetorqueError

Simulate = Callable[..., Any]


@pytest.fixture(scope="module")
def motion(simulate: Simulate) -> Motion:
    return simulate("z1", seconds=4.0, rate=200.0).motion


@pytest.fixture(scope="module")
def robot() -> Robot:
    return Robot.load("z1")


def loaded(path: Path, robot: Robot, columns: Columns | None = None, gains: np.ndarray | None = None) -> Motion:
    found = Log((path,), robot, columns=columns, drive_gains=gains).load()
    assert isinstance(found, Motion)
    return found


def text(
    motion: Motion, path: Path, join: str = ",", point: str = ".", head: str = "", encoding: str = "utf-8"
) -> Path:
    names = ["time", *(f"{stem}{k + 1}" for stem in ("q", "qd", "tau") for k in range(6))]
    rows = np.concatenate([motion.time[:, None], motion.q, motion.qd, motion.torque], axis=1)
    lines = [head or join.join(names), *(join.join(f"{v:.9f}".replace(".", point) for v in row) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding=encoding)
    return path


@pytest.fixture(scope="module")
def plain(motion: Motion, robot: Robot, tmp_path_factory: pytest.TempPathFactory) -> Motion:
    """What the log is when nothing is odd about it."""
    return loaded(text(motion, tmp_path_factory.mktemp("plain") / "log.csv"), robot)


def same(found: Motion, plain: Motion, tolerance: float = 1e-6) -> bool:
    return all(
        np.allclose(getattr(found, name), getattr(plain, name), atol=tolerance) for name in ("q", "qd", "torque")
    )


def test_units_signs_offsets_and_clocks(motion: Motion, robot: Robot, plain: Motion, tmp_path: Path) -> None:
    sign = np.array([1.0, -1.0, 1.0, 1.0, -1.0, 1.0])
    offset = np.linspace(-0.3, 0.3, 6)
    odd = replace(
        motion,
        time=1e3 * motion.time,
        q=np.rad2deg(sign * (motion.q - offset)),
        qd=np.rad2deg(sign * motion.qd),
        torque=1e3 * motion.torque,
    )
    mapping = tmp_path / "map.toml"
    mapping.write_text(
        f'time = "time"\nposition = "q{{}}"\nvelocity = "qd{{}}"\ntorque = "tau{{}}"\ndegrees = true\n'
        f'time_unit = "ms"\nposition_scale = {sign.tolist()}\nposition_offset = {offset.tolist()}\n'
        "effort_scale = 0.001\n"
    )
    path = text(odd, tmp_path / "odd.csv")
    assert same(loaded(path, robot, read_map(mapping)), plain)
    with pytest.raises(DamagedLog, match='time_unit = "ms"') as told:
        loaded(path, robot)
    assert told.value.cause == "time unit"


def test_motors_coupled_to_joints(motion: Motion, robot: Robot, plain: Motion, tmp_path: Path) -> None:
    coupling = np.eye(6)
    coupling[4:, 4:] = [[0.5, -0.5], [0.5, 0.5]]
    back = np.linalg.inv(coupling)
    motors = replace(motion, q=motion.q @ back.T, qd=motion.qd @ back.T, torque=motion.torque @ coupling)
    power = np.sum(motors.qd * motors.torque, axis=1) - np.sum(motion.qd * motion.torque, axis=1)
    assert np.allclose(power, 0.0, atol=1e-9)
    columns = Columns(coupling=tuple(map(tuple, coupling.tolist())))
    assert same(loaded(text(motors, tmp_path / "motors.csv"), robot, columns), plain)
    for bad in (((1.0,),), tuple(map(tuple, np.zeros((6, 6)).tolist()))):
        with pytest.raises(RetorqueError, match="regular matrix"):
            Corrections.of(Columns(coupling=bad), robot)
    with pytest.raises(RetorqueError, match="one for each joint"):
        Corrections.of(Columns(position_scale=(1.0, 2.0)), robot)
    with pytest.raises(RetorqueError, match="unit of time"):
        Corrections.of(Columns(time_unit="m"), robot)


def test_a_rate_in_a_map_is_used(motion: Motion, robot: Robot, plain: Motion, tmp_path: Path) -> None:
    path = text(replace(motion, time=np.zeros(len(motion))), tmp_path / "clockless.csv")
    assert same(loaded(path, robot, Columns(rate=200.0)), plain)


def test_effort_that_is_a_current(motion: Motion, robot: Robot, plain: Motion, tmp_path: Path) -> None:
    gains = np.array([10.0, 9.0, -8.0, 7.0, 6.0, 5.0])
    names = ["time", *(f"{stem}{k + 1}" for stem in ("q", "qd", "effort") for k in range(6))]
    path = text(replace(motion, torque=motion.torque / gains), tmp_path / "effort.csv", head=",".join(names))
    assert same(loaded(path, robot, gains=gains), plain, 1e-5)
    columns = Columns(time="time", position="q{}", velocity="qd{}", effort="effort{}")
    assert same(loaded(path, robot, columns, gains), plain, 1e-5)


def test_files_with_clocks_of_their_own(motion: Motion, robot: Robot, plain: Motion, tmp_path: Path) -> None:
    for signal, values, shift in (
        ("position", motion.q, 0.0),
        ("velocity", motion.qd, 3e-3),
        ("effort", motion.torque, -2e-3),
    ):
        time = motion.time[1:-1] + shift
        moved = np.stack([np.interp(time, motion.time, column) for column in values.T], axis=1)
        names = ",".join(["t", *(f"- {joint}_{signal}" for joint in robot.joint_names)])
        rows = np.column_stack([time, moved])
        np.savetxt(tmp_path / f"{signal}.csv", rows, delimiter=",", header=names, comments="", fmt="%.9f")
    columns = Columns(files={name: f"{name}.csv" for name in ("position", "velocity", "effort")})
    log = Log((tmp_path,), robot, columns=columns)
    found = log.load()
    assert isinstance(found, Motion) and any("own clock" in note for note in log.dropped.notes)
    middle = slice(20, -20)
    for name, tolerance in (("q", 2e-3), ("torque", 0.05)):
        want = np.stack([np.interp(found.time, plain.time, column) for column in getattr(plain, name).T], axis=1)
        assert np.allclose(getattr(found, name)[middle], want[middle], atol=tolerance)


def test_text_in_odd_shapes(motion: Motion, robot: Robot, plain: Motion, tmp_path: Path) -> None:
    for name, options in {
        "utf16": {"encoding": "utf-16"},
        "utf16le": {"encoding": "utf-16-le"},
        "german": {"join": ";", "point": ","},
    }.items():
        assert same(loaded(text(motion, tmp_path / f"{name}.csv", **options), robot), plain), name
    with pytest.raises(RetorqueError, match="commas both between columns and in numbers"):
        loaded(text(motion, tmp_path / "commas.csv", point=","), robot)
    names = ["time", *(f"{stem}{k + 1}" for stem in ("q", "qd", "tau") for k in range(6))]
    names[2] = "q1"
    with pytest.raises(RetorqueError, match="several columns called 'q1'"):
        loaded(text(motion, tmp_path / "twice.csv", head=",".join(names)), robot)


def test_hdf5_and_ros_bags(motion: Motion, robot: Robot, plain: Motion, tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "log.h5"
    with h5py.File(path, "w") as file:
        group = file.create_group("robot")
        group["time"], group["q"], group["qd"], group["tau"] = motion.time, motion.q, motion.qd, motion.torque
        file["settings"] = np.arange(3)
    assert same(loaded(path, robot), plain)
    (tmp_path / "broken.h5").write_bytes(path.read_bytes()[:500])
    with pytest.raises(RetorqueError, match="not an intact HDF5"):
        loaded(tmp_path / "broken.h5", robot)


def test_ros_2_bags_and_mcap(motion: Motion, robot: Robot, plain: Motion, tmp_path: Path) -> None:
    rosbags = pytest.importorskip("rosbags.rosbag2")
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.LATEST)
    state, header, stamp = (
        store.types[f"{name}"]
        for name in ("sensor_msgs/msg/JointState", "std_msgs/msg/Header", "builtin_interfaces/msg/Time")
    )
    for kind in ("sqlite3", "mcap"):
        folder = tmp_path / kind
        plugin = getattr(rosbags.StoragePlugin, kind.upper())
        with rosbags.Writer(folder, version=9, storage_plugin=plugin) as bag:
            connection = bag.add_connection("/joint_states", state.__msgtype__, typestore=store)
            for k in range(len(motion)):
                nano = round(1e9 * motion.time[k]) + 10**9
                order = np.arange(6)[::-1]  # as a driver pleases
                names = [robot.joint_names[j] for j in order]
                values = [signal[k][order] for signal in (motion.q, motion.qd, motion.torque)]
                message = state(header(stamp(nano // 10**9, nano % 10**9), "base"), names, *values)
                bag.write(connection, nano, store.serialize_cdr(message, state.__msgtype__))
        assert same(loaded(folder, robot), plain), kind
    (file,) = (tmp_path / "mcap").glob("*.mcap")
    alone = tmp_path / "alone.mcap"
    alone.write_bytes(file.read_bytes())
    assert same(loaded(alone, robot), plain)


def test_impossible_inertias_become_the_nearest_possible(shared: Path, tmp_path: Path) -> None:
    path = shared / "data" / "tiago" / "tiago_no_hand.urdf"
    with pytest.raises(RetorqueError, match="triangle inequality"):
        load(path)
    arm = tuple(f"arm_{k}_joint" for k in range(1, 8))
    robot = load_as_found(path, ("torso_lift_joint", *arm))
    assert robot.joint_names == ("torso_lift_joint", *arm) and "arm_1_link" in robot.notes
    fine = np.diag([1.0, 1.5, 2.0])
    assert np.allclose(nearest_inertia(1.0, fine), fine)
    values = np.linalg.eigvalsh(nearest_inertia(1.0, np.diag([0.1, 0.1, 1.0])))
    assert values[0] + values[1] > values[2] > 0.0
    with pytest.raises(RetorqueError, match="cannot be locked"):
        load_as_found("z1", ("joint1",))


def test_tiago_as_it_is(shared: Path, tmp_path: Path) -> None:
    """Three files with a clock each, four joints that the log lacks, seven inertias that no body has, currents."""
    mapping = tmp_path / "map.toml"
    mapping.write_text(
        "drive_gains = [1, 13.6, 13.6, -8.7, -8.7, -20.6, -20.6, -20.6]\n[files]\n"
        + "".join(f'{name} = "tiago_{name}.csv.gz"\n' for name in ("position", "velocity", "effort"))
    )
    folder = shared / "data" / "tiago"
    settings = IdentifySettings(logs=(folder,), robot=str(folder / "tiago_no_hand.urdf"), columns=mapping)
    said = " ".join(str(shown.what) for shown in identify(settings).shown)
    assert "replaced by the nearest possible" in said and "wheel_left_joint" in said and "own clock" in said
