"""Which reports of a world's targets are wrong, and when."""

from __future__ import annotations

import numpy as np

from retorque.simulate.report_faults import FaultyReports
from retorque.simulate.target import Target
from retorque.work.errors import unknown

FAULTS = {
    **{
        f"{quantity}-{fault}": f"{quantity} {fault}"
        for quantity in ("torque", "velocity")
        for fault in ("zero", "scaled", "flipped", "stuck")
    },
    "velocity-zero-joint": "velocity zero, one joint",
    "encoder-dead": "dead encoder",
    "nan": "5 % missing",
    "repeated": "5 % repeated",
    "jitter": "clock jitters",
    "clock-back": "clock set back",
}
"""The worlds' faults, and what `simulate.report_faults` calls them."""
BEGIN, END = 4.0, 12.0
"""When lasting faults begin and end [s]."""
LENGTHS = {"velocity-flipped": 0.3, "encoder-dead": 2.0}
"""How long those last under which no controller could stand [s]."""
THROUGHOUT = ("nan", "repeated", "jitter")
"""Faults that are there from the first tick to the last."""


def broken_reports(target: Target, fault: str, seed: int) -> FaultyReports:
    """A target whose reports are wrong in one of the worlds' ways; what it really does is unchanged.

    Args:
        target: the robots.
        fault: one of `FAULTS`, or empty.
        seed: of what is random: joints, which reports, jitter.
    """
    if fault and fault not in FAULTS:
        raise unknown("fault", fault, FAULTS)
    rng = np.random.default_rng([seed, 7])
    trials, n = target.position.shape
    joint = np.zeros((trials, n), dtype=bool)
    joint[np.arange(trials), rng.integers(0, n, trials)] = True
    begin, end = BEGIN, min(END, BEGIN + LENGTHS.get(fault, np.inf))
    if fault in THROUGHOUT:
        begin, end = 0.0, np.inf
    elif fault == "clock-back":
        begin, end = 0.5 * (BEGIN + END), np.inf
    return FaultyReports(target, FAULTS.get(fault, ""), start=begin, stop=end, joint=joint, seed=rng)
