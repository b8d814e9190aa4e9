"""Robust policies for Markov decision processes with unknown parameters, learned from data.

The public names below are loaded when they are first used, so `import tightrope` costs
nothing: neither numpy nor numba is imported before a model is built.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0.dev0"

if TYPE_CHECKING:
    from tightrope.errors import CannotCertify, InputError, Location, TightropeError

_HOME = {
    "CannotCertify": "tightrope.errors",
    "InputError": "tightrope.errors",
    "Location": "tightrope.errors",
    "TightropeError": "tightrope.errors",
}

__all__ = ["CannotCertify", "InputError", "Location", "TightropeError", "__version__"]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'tightrope' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
