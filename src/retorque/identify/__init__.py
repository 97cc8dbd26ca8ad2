"""From a log to a model with errors: `identify.from_log(log, robot)`."""

from retorque.identify.from_log import from_log

__all__ = ["from_log"]
