"""`retorque excite`."""

from __future__ import annotations

from retorque.cli.verb import Verb

EXCITE = Verb(
    summary="a motion that makes a robot's parameters show, within its limits",
    example="retorque excite --robot panda --time 20 --harmonics 5",
    module="identify.excite.excite_command",
    settings="ExciteSettings",
    function="excite",
)
