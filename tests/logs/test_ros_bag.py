"""ROS 2 bags as drivers write them: joints in any order, some missing, no velocities, several topics."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retorque.logs.table import open_table
from retorque.work.errors import RetorqueError

rosbags = pytest.importorskip("rosbags.rosbag2")
from rosbags.typesys import Stores, get_typestore  # noqa: E402 (after the check that it is there)

STORE = get_typestore(Stores.LATEST)
KIND = "sensor_msgs/msg/JointState"
State = STORE.types[KIND]
Header, Time = STORE.types["std_msgs/msg/Header"], STORE.types["builtin_interfaces/msg/Time"]
Sample = tuple[float, list[str], list[float], list[float], list[float]]
Write = Callable[[dict[str, list[Sample]]], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a bag of joint states by topic: (time, names, positions, velocities, efforts)."""

    def make(topics: dict[str, list[Sample]]) -> Path:
        folder = tmp_path / "bag"
        with rosbags.Writer(folder, version=9) as bag:
            for topic, samples in topics.items():
                connection = bag.add_connection(topic, KIND, typestore=STORE)
                for k, (time, names, *signals) in enumerate(samples):
                    nano = round(1e9 * time)
                    arrays = [np.array(signal, dtype=float) for signal in signals]
                    message = State(Header(Time(nano // 10**9, nano % 10**9), ""), names, *arrays)
                    bag.write(connection, nano or 10**6 * (k + 1), STORE.serialize_cdr(message, KIND))
        return folder

    return make


def columns(path: Path) -> dict[str, Any]:
    table = open_table(path)
    values = np.concatenate([values for _, values in table.blocks()])
    assert table.names is not None
    return dict(zip(table.names, values.T, strict=True))


def test_joints_are_told_by_name_whatever_their_order(write: Write) -> None:
    samples: list[Sample] = []
    for k in range(6):
        names = ["a", "b"] if k % 3 else ["b", "a"]
        value = {"a": 1.0 + k, "b": -1.0 - k}
        samples.append((1.0 + 0.1 * k, names, *([scale * value[name] for name in names] for scale in (1.0, 10.0, 0.1))))
    found = columns(write({"/joint_states": samples}))
    np.testing.assert_allclose(found["time"], 1.0 + 0.1 * np.arange(6))
    for signal, scale in (("position", 1.0), ("velocity", 10.0), ("effort", 0.1)):
        np.testing.assert_allclose(found[f"{signal} a"], scale * np.arange(1.0, 7.0))
        np.testing.assert_allclose(found[f"{signal} b"], -scale * np.arange(1.0, 7.0))


def test_what_a_driver_does_not_publish_is_no_column_and_a_gap_is_not_a_number(write: Write) -> None:
    samples: list[Sample] = [(1.0 + k, ["a", "b"], [k, -k], [], [2.0 * k, 3.0 * k]) for k in range(4)]
    samples[2] = (3.0, ["a"], [9.0], [], [9.0])
    found = columns(write({"/joint_states": samples}))
    assert set(found) == {"time", "position a", "position b", "effort a", "effort b"}
    assert found["position a"][2] == 9.0 and np.isnan(found["position b"][2])
    assert np.all(np.isfinite(found["position b"][[0, 1, 3]]))


def test_the_topic_with_most_messages_is_the_robots(write: Write) -> None:
    arm: list[Sample] = [(1.0 + k, ["a"], [k], [k], [k]) for k in range(5)]
    gripper: list[Sample] = [(1.0, ["finger"], [0.0], [0.0], [0.0])]
    assert "position a" in columns(write({"/gripper": gripper, "/arm": arm}))


def test_without_stamps_the_bags_own_times_are_taken(write: Write) -> None:
    samples: list[Sample] = [(0.0, ["a"], [k], [k], [k]) for k in range(4)]
    np.testing.assert_allclose(columns(write({"/joint_states": samples}))["time"], 1e-3 * np.arange(1, 5))


def test_a_bag_of_nothing_or_of_something_else_says_what_to_record(write: Write, tmp_path: Path) -> None:
    with pytest.raises(RetorqueError, match="record the topic /joint_states"):
        open_table(write({}))
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "metadata.yaml").write_text("rosbag2_bagfile_information: 3\n")
    with pytest.raises(RetorqueError, match="cannot be read as a ROS 2 bag"):
        open_table(tmp_path / "broken")
