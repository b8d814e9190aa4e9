"""`tightrope improve MODEL --data F --baseline B`: the policy with the largest certified improvement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tightrope.cli.compare import ComparedOptions, answer
from tightrope.cli.options import SOLVING, declare, learn_words, takes
from tightrope.io.log_words import LOG_WORDS

if TYPE_CHECKING:
    from tightrope.cli.sources import Subject
    from tightrope.data.reading import Reading
    from tightrope.learning.differences import Comparison


@dataclass(frozen=True, kw_only=True)
class ImproveRequest(ComparedOptions):
    """The options of the command."""

    keep: list[str] | None = declare(
        "--keep",
        "A property that must not get worse; the option may be repeated.",
        "'P>=baseline [ F \"goal\" ]'",
    )
    candidate: list[str] | None = declare(
        "--candidate", "A policy to try and start from; the option may be repeated.", "FILE"
    )


@takes(ImproveRequest, {"data": LOG_WORDS, "check": SOLVING})
def improve(request: ImproveRequest) -> None:
    """Find the policy with the largest certified improvement over a baseline.

    All differences hold simultaneously with probability at least 1 - delta, for any number of candidates. The
    search ends when no other choice in a single state is certified to gain more. If nothing is certified to
    be better, the baseline is the answer. Properties to keep are bounded over the same parameters and use no
    additional delta: 'P>=baseline [ … ]', 'R{"cost"}<=baseline+5 [ … ]', 'P>=0.9 [ … ]'.

    Example: tightrope improve 'bench:betting(25)' --data log.parquet --baseline old.json -o new.json
    """
    from tightrope.cli.compare import policies_of
    from tightrope.learning.compare import improve as improve_policy

    def run(subject: Subject, reading: Reading, baseline: Any, progress: Any) -> Comparison:
        return improve_policy(
            subject.problem,
            reading.counts,
            baseline=baseline,
            keep=request.keep or (),
            candidate=policies_of(subject, request.candidate) if request.candidate else None,
            delta=request.delta,
            progress=progress,
            **learn_words(request),
        )

    answer(request, run)
