"""`retorque calibrate-motor`."""

from __future__ import annotations

from retorque.cli.verb import Verb

CALIBRATE = Verb(
    summary="a motor's constants from a log: free sweep, winding, or a load that is known",
    example="retorque calibrate-motor sweep.csv --motor 2XL430 --payload 0.2 --arm 0.15 --output mine.toml",
    module="sense.calibrate_command",
    settings="CalibrateSettings",
    function="calibrate",
)
