"""A recording in other formats: Parquet, and a ROS 2 bag."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

from retorque.logs.formats.mcap_log import RecordingTable, RobotRecording
from retorque.logs.recording import SCALARS, VECTORS
from retorque.work.errors import RetorqueError
from retorque.work.files import write_whole


def write_parquet(recording: RobotRecording, path: Path) -> Path:
    """Write the ticks as columns that `retorque identify` knows: time, q1.., qd1.., tau1.., and everything else."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ModuleNotFoundError as error:
        raise RetorqueError("Parquet needs pyarrow; run: pip install 'retorque[record]'") from error
    table = RecordingTable.of(recording)
    values = np.concatenate([block for _, block in table.blocks()])
    columns = dict(zip(table.names or (), values.T, strict=True))
    columns |= {name: recording.ticks[name] for name in SCALARS if name != "time"}
    file = io.BytesIO()
    parquet.write_table(pyarrow.table({name: np.ascontiguousarray(column) for name, column in columns.items()}), file)
    return write_whole(path, file.getvalue())


def write_bag(recording: RobotRecording, folder: Path) -> Path:
    """Write the ticks as a ROS 2 bag: /joint_states, efforts of what was asked and sent, /health and /belief."""
    try:
        from rosbags.rosbag2 import Writer
        from rosbags.typesys import Stores, get_typestore
    except ModuleNotFoundError as error:
        raise RetorqueError("a ROS 2 bag needs rosbags; run: pip install 'retorque[record]'") from error
    store = get_typestore(Stores.ROS2_HUMBLE)
    types = store.types
    header, stamp = types["std_msgs/msg/Header"], types["builtin_interfaces/msg/Time"]
    joints, number = types["sensor_msgs/msg/JointState"], types["std_msgs/msg/UInt64"]
    nothing = np.zeros(0)

    def joint_state(at: int, position: Any, velocity: Any, effort: Any) -> Any:
        time = stamp(sec=at // 10**9, nanosec=at % 10**9)
        head = header(stamp=time, frame_id="")
        return joints(header=head, name=list(recording.joints), position=position, velocity=velocity, effort=effort)

    with Writer(folder, version=9) as writer:
        efforts = {name: f"/{name}" for name in VECTORS if name not in ("position", "velocity", "torque")}
        topics = {
            name: writer.add_connection(topic, joints.__msgtype__, typestore=store)
            for name, topic in {"state": "/joint_states", **efforts}.items()
        }
        codes = {
            name: writer.add_connection(f"/{name}", number.__msgtype__, typestore=store)
            for name in ("health", "belief")
        }
        for tick in recording.ticks:
            at = int(tick["stamp"])
            messages = {"state": joint_state(at, tick["position"], tick["velocity"], tick["torque"])}
            messages |= {name: joint_state(at, nothing, nothing, tick[name]) for name in efforts}
            for name, message in messages.items():
                writer.write(topics[name], at, store.serialize_cdr(message, joints.__msgtype__))
            for name, connection in codes.items():
                message = number(data=int(tick[name]))
                writer.write(connection, at, store.serialize_cdr(message, number.__msgtype__))
    return folder
