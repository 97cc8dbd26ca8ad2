"""What a server of planning processes imports before it forks them: everything, compiled code too."""

from __future__ import annotations

from retorque.physics.backends.compiled import load_all, ready

if ready():
    load_all()
