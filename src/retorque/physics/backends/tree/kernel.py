"""How functions are compiled here: ahead of use for one signature, kept on disk, without the interpreter's lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from numba import njit

Function = TypeVar("Function", bound=Callable[..., object])
I1, F1, F2, F3 = "int64[::1]", "float64[::1]", "float64[:, ::1]", "float64[:, :, ::1]"
"""Contiguous arrays, as signatures name them."""


def kernel(signature: str) -> Callable[[Function], Function]:
    """Compile a function for one signature; arithmetic may be reordered, but keeps what is not finite."""
    made = njit(signature, cache=True, nogil=True, error_model="numpy", fastmath={"contract", "nsz", "arcp", "reassoc"})
    return cast(Callable[[Function], Function], made)
