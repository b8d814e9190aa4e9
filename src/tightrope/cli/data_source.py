"""From the DATA option of a command to counts: a file of steps or counts, or a recorded Minari dataset."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tightrope.errors import InputError

if TYPE_CHECKING:
    from tightrope.data.reading import Reading
    from tightrope.model.parametric_mdp import ParametricMDP

MINARI = "minari:"


def read_data(data: Path, model: ParametricMDP, skip_invalid: bool) -> Reading:
    """The counts of a model's transitions in the data."""
    from tightrope.data.reading import Reading, read_counts

    if (recorded := minari_name(data)) is not None:
        from tightrope.data.environments import count_minari, load_minari

        if skip_invalid:
            raise InputError("--skip-invalid goes with data files, not with Minari datasets")
        counts = count_minari(load_minari(recorded), model)
        return Reading(counts, counts.steps, {}, None)
    return read_counts(data, model, skip_invalid=skip_invalid)


def look_at(data: Path) -> None:
    """Refuse what is no data file before a model is built for it, which may take long."""
    from tightrope.formats.data_table import open_table

    if minari_name(data) is None:
        open_table(data)


def minari_name(data: Path) -> str | None:
    """The NAME of `--data minari:NAME`, or None for a file."""
    text = str(data)
    return text.removeprefix(MINARI) if text.startswith(MINARI) else None
