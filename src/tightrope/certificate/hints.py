"""Numbers that help to check the way from a parametric model and its data to sets of distributions.

A wrong one can only make a check fail.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, eq=False)
class LearnedHints:
    """Numbers behind the sets of a parametric model over its domain."""
