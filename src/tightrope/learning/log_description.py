"""How a log is read for a model, and what it holds: everything to look at before learning from it.

Rows that cannot be counted do not stop a description. They are left out, counted by reason, and the most
frequent values that the model does not know are listed; `refused` is what a reader says that does not skip
them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tightrope.data.counts import Coverage, cover
from tightrope.data.model_index import Model
from tightrope.data.read_options import ReadOptions
from tightrope.data.reading import Progress, Reading, plan_reading, read_files
from tightrope.data.reading_hints import Unknown, unknown_values
from tightrope.errors import InputError
from tightrope.io.table.files import DataFile
from tightrope.io.table.opening import open_table
from tightrope.learning.point_estimates import PointEstimates, estimate_points
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.verdict import Assumed, Kept, Verdict


@dataclass(frozen=True)
class LogDescription:
    """`columns` says which column was read as what; `estimates` are there for models with parameters."""

    reading: Reading
    columns: Mapping[str, str]
    bytes: int | None
    unknown: Unknown
    refused: str | None
    coverage: Coverage
    estimates: PointEstimates | None
    states: str | None = None

    @property
    def verdict(self) -> Verdict:
        """The best that a result from this log can be worth: intervals do not need its order in time."""
        design = self.reading.counts.design
        missing = "; ".join(design.censored) or ("rows cannot be counted" if self.refused else "")
        whole = Assumed("complete data", Kept.NO if missing else Kept.YES, missing or "nothing is missing")
        conflict = self.estimates.conflict if self.estimates is not None else ()
        return Verdict.of((design.ends, whole), contradicted="; ".join(conflict) or None)

    def to_json(self) -> dict[str, object]:
        reading = self.reading
        design = reading.counts.design
        return {
            "verdict": self.verdict.word.value,
            "order": design.order.to_json(),
            "ends": design.ends.to_json(),
            "rows": reading.rows,
            "episodes": design.episodes,
            "steps": reading.counts.steps,
            "bytes": self.bytes,
            "files": list(reading.files),
            "columns": dict(self.columns),
            "read_as": list(reading.read_as),
            "notes": list(reading.notes),
            "design": design.to_json(),
            "dropped": dict(reading.dropped),
            "censored": list(design.censored),
            "refused": self.refused,
            "unknown": {
                kind: [{"value": entry.value, "rows": entry.rows} for entry in entries]
                for kind, entries in self.unknown.items()
            },
            "coverage": self.coverage.to_json(),
            "estimates": None if self.estimates is None else self.estimates.to_json(),
        }


def describe_log(
    files: Sequence[DataFile],
    model: Model,
    options: ReadOptions,
    delta: float,
    progress: Progress | None = None,
) -> LogDescription:
    """Read files for a model, whatever they hold, and say what was found."""
    tables = [open_table(file) for file in files]
    lenient = replace(options, skip_invalid=True)
    plan = plan_reading(tables, model.structure, lenient)
    try:
        reading = read_files(files, model, lenient, progress)
    except InputError as error:
        raise _with_values(error, unknown_values(plan)) from None
    sizes = [table.bytes for table in tables]
    return describe_reading(
        reading,
        model,
        delta,
        columns={**plan.columns[0].state_roles, **plan.columns[0].roles},
        states=plan.columns[0].by.value,
        size=None if None in sizes else sum(size or 0 for size in sizes),
        unknown=unknown_values(plan) if reading.dropped else {},
        refused=_refusal(files, model, options) if reading.dropped and not options.skip_invalid else None,
    )


def describe_reading(
    reading: Reading,
    model: Model,
    delta: float,
    *,
    columns: Mapping[str, str] | None = None,
    size: int | None = None,
    unknown: Unknown | None = None,
    refused: str | None = None,
    states: str | None = None,
) -> LogDescription:
    """The description of a log that was read already."""
    counts = reading.counts
    estimates = None
    if isinstance(model, ParametricMDP) and model.parameters.names:
        estimates = estimate_points(model, counts, delta)
    coverage = cover(model.structure, counts)
    return LogDescription(reading, columns or {}, size, unknown or {}, refused, coverage, estimates, states)


def _refusal(files: Sequence[DataFile], model: Model, options: ReadOptions) -> str | None:
    """What reading says that does not skip the first bad row."""
    try:
        read_files(files, model, options)
    except InputError as error:
        place = f"{error.location}: " if error.location else ""
        return f"{place}{error.message}" + (f"; {error.hint}" if error.hint else "")
    return None


def _with_values(error: InputError, unknown: Unknown) -> InputError:
    """The error of a log of which nothing can be counted, with what stands in it instead."""
    if not unknown:
        return error
    shown = [
        f"{kind}: " + ", ".join(f"{entry.value} ({entry.rows:,})" for entry in entries)
        for kind, entries in unknown.items()
    ]
    hint = error.hint
    if hint is None or "`skip_invalid=True`" in hint:  # a description skips in any case
        hint = "mend the log, or its reading: `columns`, `maps`, `states`"
    return InputError(
        f"{error.message}; unknown to the model, with rows: {'; '.join(shown)}", error.location, hint
    )
