"""`retorque identify`."""

from __future__ import annotations

from retorque.cli.verb import Verb

IDENTIFY = Verb(
    summary="a physically consistent model from logs, with errors and what could not be identified",
    example="retorque identify log.csv --robot panda --json model.json",
    module="identify.commands",
    settings="IdentifySettings",
    function="identify",
)
