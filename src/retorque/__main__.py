"""`python -m retorque`: the command line, also for launchers that start modules (`torchrun -m retorque`)."""

from __future__ import annotations

import sys

from retorque.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
