"""Demonstrations as a LeRobot data set, format v3.0, and back."""

from __future__ import annotations

import io
import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from retorque.tasks.flip.demonstrations import FPS, Episode
from retorque.tasks.flip.image_column import IMAGES, image_array, image_feature, image_statistics, images_of
from retorque.work.array import Array
from retorque.work.errors import RetorqueError
from retorque.work.files import write_whole

VERSION = "v3.0"
TASK = "flip the cube onto its far face"
FILE = "chunk-000/file-000.parquet"
CUBE = ("cube_x", "cube_y", "cube_z", "cube_qw", "cube_qx", "cube_qy", "cube_qz")


def write_dataset(folder: Path, episodes: list[Episode], robot: str) -> Path:
    """Write a data set whole: it is made under another name and moved to its place.

    Args:
        folder: must not exist yet.
        episodes: at least one.
        robot: its name.
    """
    if not episodes:
        raise RetorqueError("there is no demonstration to write; record at least one that succeeded")
    if folder.exists():
        raise RetorqueError(f"'{folder}' exists already; choose another folder or delete it")
    made = folder.with_name(f".{folder.name}-{os.getpid()}")
    try:
        _write(made, episodes, robot)
        os.replace(made, folder)
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return folder


def read_dataset(folder: Path) -> list[Episode]:
    """The episodes of a data set; a torn file, another version or another rate is refused."""
    import pyarrow.parquet as pq

    try:
        info = json.loads((folder / "meta" / "info.json").read_text())
        version, fps = info["codebase_version"], info["fps"]
        joints = len(info["features"]["action"]["names"]) - 1
        table = pq.read_table(folder / "data" / FILE)
        state = np.array(table["observation.state"].to_pylist(), dtype=float)
        action = np.array(table["action"].to_pylist(), dtype=float)
        number = table["episode_index"].to_numpy()
        pictures = images_of(table[IMAGES]) if IMAGES in info["features"] else None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RetorqueError(f"'{folder}' is not an intact data set ({error}); record it again") from error
    if version != VERSION or fps != FPS:
        raise RetorqueError(f"'{folder}' is {version} at {fps} frames a second; this reads {VERSION} at {FPS}")
    if state.ndim != 2 or state.shape[1] != joints + len(CUBE) or not np.isfinite(state).all():
        raise RetorqueError(f"'{folder}' holds other observations than joints and cube; record it again")
    return [
        Episode(state[own, :joints], state[own, joints:], action[own], None if pictures is None else pictures[own])
        for own in (number == k for k in range(int(info["total_episodes"])))
    ]


def _write(folder: Path, episodes: list[Episode], robot: str) -> None:
    import pyarrow as pa

    joints = episodes[0].joints.shape[-1]
    lengths = np.array([len(episode.action) for episode in episodes])
    ends = np.cumsum(lengths)
    columns = {
        "observation.state": np.concatenate([np.concatenate([e.joints, e.cube], axis=-1) for e in episodes]),
        "action": np.concatenate([e.action for e in episodes]),
        "timestamp": np.concatenate([np.arange(length) / FPS for length in lengths]).astype(np.float32),
        "frame_index": np.concatenate([np.arange(length) for length in lengths]),
        "episode_index": np.repeat(np.arange(len(episodes)), lengths),
        "index": np.arange(ends[-1]),
        "task_index": np.zeros(ends[-1], dtype=np.int64),
    }
    pictures = [e.pictures for e in episodes if e.pictures is not None]
    if pictures:
        columns[IMAGES] = np.concatenate(pictures)
    _parquet(folder / "data" / FILE, pa.table({name: _arrow(value) for name, value in columns.items()}))
    names = [f"joint_{k + 1}" for k in range(joints)]
    features: dict[str, Any] = {
        "observation.state": {"dtype": "float32", "shape": [joints + len(CUBE)], "names": [*names, *CUBE]},
        "action": {"dtype": "float32", "shape": [joints + 1], "names": [*names, "gripper"]},
        "timestamp": {"dtype": "float32", "shape": [1], "names": None},
    }
    if pictures:
        features[IMAGES] = image_feature(columns[IMAGES])
    for name in ("frame_index", "episode_index", "index", "task_index"):
        features[name] = {"dtype": "int64", "shape": [1], "names": None}
    info = {
        "codebase_version": VERSION,
        "robot_type": robot,
        "total_episodes": len(episodes),
        "total_frames": int(ends[-1]),
        "total_tasks": 1,
        "chunks_size": 1000,
        "data_files_size_in_mb": 100,
        "video_files_size_in_mb": 200,
        "fps": FPS,
        "splits": {"train": f"0:{len(episodes)}"},
        "data_path": "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet",
        "video_path": None,
        "features": features,
    }
    meta = folder / "meta"
    rows: dict[str, Any] = {
        "episode_index": np.arange(len(episodes)),
        "tasks": [[TASK]] * len(episodes),
        "length": lengths,
        "data/chunk_index": np.zeros_like(lengths),
        "data/file_index": np.zeros_like(lengths),
        "dataset_from_index": ends - lengths,
        "dataset_to_index": ends,
        "meta/episodes/chunk_index": np.zeros_like(lengths),
        "meta/episodes/file_index": np.zeros_like(lengths),
    }
    each = [_statistics({name: value[a:b] for name, value in columns.items()}) for a, b in zip(ends - lengths, ends)]
    for name in columns:
        for what in ("min", "max", "mean", "std", "count"):
            rows[f"stats/{name}/{what}"] = [stats[name][what] for stats in each]
    _parquet(meta / "episodes" / FILE, pa.table(rows))
    _parquet(meta / "tasks.parquet", _tasks())
    write_whole(meta / "stats.json", json.dumps(_statistics(columns), indent=1) + "\n")
    write_whole(meta / "info.json", json.dumps(info, indent=1) + "\n")


def _tasks() -> Any:
    """The table of tasks, indexed by their texts, as pandas reads it."""
    import pyarrow as pa

    index = "__index_level_0__"
    pandas = {
        "index_columns": [index],
        "column_indexes": [],
        "columns": [
            {"name": n, "field_name": f, "pandas_type": t, "numpy_type": k, "metadata": None}
            for n, f, t, k in (
                ("task_index", "task_index", "int64", "int64"),
                (None, index, "unicode", "object"),
            )
        ],
        "pandas_version": "2.0.0",
    }
    table = pa.table({"task_index": [0], index: [TASK]})
    return table.replace_schema_metadata({b"pandas": json.dumps(pandas).encode()})


def _statistics(columns: dict[str, Array]) -> dict[str, dict[str, Any]]:
    """Smallest, largest, mean, spread and count of every column."""
    found: dict[str, dict[str, Any]] = {}
    for name, value in columns.items():
        if name == IMAGES:
            found[name] = image_statistics(value)
            continue
        flat = np.asarray(value, dtype=float).reshape(len(value), -1)
        found[name] = {
            "min": flat.min(axis=0).tolist(),
            "max": flat.max(axis=0).tolist(),
            "mean": flat.mean(axis=0).tolist(),
            "std": flat.std(axis=0).tolist(),
            "count": [len(flat)],
        }
    return found


def _arrow(value: Array) -> Any:
    import pyarrow as pa

    if value.ndim == 1:
        return pa.array(value)
    if value.ndim == 4:
        return image_array(value)
    flat = pa.array(value.astype(np.float32).ravel())
    return pa.FixedSizeListArray.from_arrays(flat, value.shape[1])


def _parquet(path: Path, table: Any) -> None:
    import pyarrow.parquet as pq

    path.parent.mkdir(parents=True, exist_ok=True)
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    write_whole(path, buffer.getvalue())
