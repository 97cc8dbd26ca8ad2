"""Rigid-body algebra, inertias, hidden parameters, friction and drives."""
