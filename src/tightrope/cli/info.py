"""`tightrope info MODEL`: build a model and say what is in it."""

from __future__ import annotations


def info() -> None:
    """Build a model and say what is in it."""
