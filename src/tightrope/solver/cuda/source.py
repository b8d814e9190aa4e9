"""The text of the kernels, and the names of those compiled from it."""

from __future__ import annotations

from pathlib import Path

SOURCE = Path(__file__).with_name("kernels.cu")

_SWEEPS = tuple(f"sweep<{{k}},{frozen},{lean}>" for frozen in ("false", "true") for lean in ("false", "true"))
_OF_SEGMENTS = (
    "margin",
    "safe_states",
    "safe_choices",
    "backward",
    "judge",
    "answers",
    "optimal",
    "attract",
    "settle",
    "keep_or_sink",
    "only_loops",
    "peel",
)
_OF_VECTORS = ("join", "largest_change")


def kernel_names(k: int) -> tuple[str, ...]:
    """The kernels of kernels.cu for segments of k successors, as the compiler knows them."""
    sweeps = tuple(sweep.format(k=k) for sweep in _SWEEPS)
    return (*sweeps, *(f"{name}<{k}>" for name in _OF_SEGMENTS), *_OF_VECTORS)
