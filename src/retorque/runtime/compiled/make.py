"""An adapter or a supervisor, in C where that can be, in NumPy otherwise; `engine` says which."""

from __future__ import annotations

from retorque.loop.adapter import Adapter
from retorque.loop.single import Single
from retorque.loop.supervisor import Supervisor
from retorque.runtime.compiled.adapter import CompiledAdapter
from retorque.runtime.compiled.build import build
from retorque.runtime.compiled.compiled_supervisor import CompiledSupervisor
from retorque.runtime.compiled.constants import has_core
from retorque.work.errors import RetorqueError


def compiled(adapter: Adapter) -> Adapter:
    """The same adapter, bare or supervised, running in the compiled core.

    Where there is none (no compiler, no cache that can be written, an adapter that was not ported), the adapter itself
    comes back, and its `engine` says why it stays in NumPy. What it has learnt so far is not taken over.
    """
    inner = adapter.adapter if isinstance(adapter, Supervisor) else adapter
    own = inner.adapter if isinstance(inner, Single) else inner
    if not has_core(own):
        adapter.engine = f"NumPy: {type(own).__name__} has no compiled core"
        return adapter
    try:
        library = build()
        return (
            CompiledSupervisor(adapter, library)
            if isinstance(adapter, Supervisor)
            else CompiledAdapter(adapter, library)
        )
    except RetorqueError as error:
        adapter.engine = f"NumPy: {error}"
        return adapter
