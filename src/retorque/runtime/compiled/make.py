"""An adapter or a supervisor, in C where that can be, in NumPy otherwise; `engine` says which."""

from __future__ import annotations

from retorque.loop.adapter import Adapter
from retorque.loop.single import Single
from retorque.loop.supervisor import Supervisor
from retorque.runtime.compiled.adapter import CompiledAdapter
from retorque.runtime.compiled.build import build
from retorque.runtime.compiled.constants import has_core
from retorque.work.errors import RetorqueError


def compiled(adapter: Adapter) -> Adapter:
    """The same adapter, bare or supervised, running in the compiled core.

    Where there is none (no compiler, no cache that can be written, an adapter that was not ported), the adapter itself
    comes back, and its `engine` says why it stays in NumPy. What it has learnt so far is not taken over.
    """
    if isinstance(adapter, Supervisor):
        inner = compiled(adapter.adapter)
        if inner is adapter.adapter:
            adapter.engine = inner.engine
            return adapter
        supervisor = Supervisor(inner, adapter.settings)
        supervisor.engine = inner.engine
        return supervisor
    own = adapter.adapter if isinstance(adapter, Single) else adapter
    if not has_core(own):
        adapter.engine = f"NumPy: {type(own).__name__} has no compiled core"
        return adapter
    try:
        return CompiledAdapter(adapter, build())
    except RetorqueError as error:
        adapter.engine = f"NumPy: {error}"
        return adapter
