"""Pictures of a LeRobot data set: PNG in a column of the table, and their statistics."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from retorque.work.array import Array

IMAGES = "observation.images.gripper"
"""Name of the column."""


def image_feature(pictures: Array) -> dict[str, Any]:
    """What the data set says of pictures (frames, height, width, 3)."""
    return {"dtype": "image", "shape": list(pictures.shape[1:]), "names": ["height", "width", "channels"]}


def image_array(pictures: Array) -> Any:
    """The column: a PNG and no path in each row, as `datasets` has its images."""
    import pyarrow as pa

    rows = [{"bytes": _png(picture), "path": None} for picture in pictures]
    return pa.array(rows, type=pa.struct([("bytes", pa.binary()), ("path", pa.string())]))


def images_of(column: Any) -> Array:
    """(frames, height, width, 3) of bytes from the column."""
    from PIL import Image

    return np.stack([np.asarray(Image.open(io.BytesIO(row["bytes"])).convert("RGB")) for row in column.to_pylist()])


def image_statistics(pictures: Array) -> dict[str, Any]:
    """Of each colour, within 0 and 1, in LeRobot's shape (3, 1, 1)."""
    flat = pictures.reshape(-1, 3) / 255.0
    found = {name: getattr(flat, name)(axis=0) for name in ("min", "max", "mean", "std")}
    return {**{name: value[:, None, None].tolist() for name, value in found.items()}, "count": [len(pictures)]}


def _png(picture: Array) -> bytes:
    from PIL import Image

    data = io.BytesIO()
    Image.fromarray(picture).save(data, "PNG")
    return data.getvalue()
