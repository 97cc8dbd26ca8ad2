"""`retorque payload`."""

from __future__ import annotations

from retorque.cli.verb import Verb

PAYLOAD = Verb(
    summary="a payload's mass, centre and inertia from an empty and a loaded log",
    example="retorque payload empty.csv loaded.csv --robot ur10e",
    module="identify.payload_command",
    settings="PayloadSettings",
    function="payload",
)
