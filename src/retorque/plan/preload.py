"""What a server of planning processes imports before it forks them: everything, compiled code too."""

from __future__ import annotations

from retorque.physics.backends.kernel_cache import load_all, ready

if ready():
    load_all()
