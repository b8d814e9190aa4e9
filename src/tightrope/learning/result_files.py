"""The directory of a learning run: it appears whole or not at all.

    result.json               everything a report needs (`tightrope.learning.document`)
    robust-policy.json        the policy with the best guarantee
    optimistic-policy.json    the policy that is best if nature is kind
    robust-controller.json    in their place where the property is temporal: policies with memory, small ones
    robust-controller.dot …   as graphs, too
and, where they are asked for (`exports`), as they can take long and be large:

    learned.drn               the learned interval model, for Storm and for tightrope
    learned.tra .lab .sta …   the same as PRISM's explicit files
    learned.umb               the same as UMB, for which the package umbi is needed
    learned.props             the property with both directions: checking it on learned.drn or learned.tra
                              repeats the guarantee

With several kinds of sets, the files of each lie in a directory of its name. Rectangular sets are more than
intervals: their model is the hull, as in expression sets. Coupled sets are no interval model at all, and have
policies alone.

All is written to a hidden directory first and takes its place in the end, so that Ctrl-C leaves nothing
behind. Only files that an earlier run of the same kind wrote, and that nobody has changed since, are replaced
(`tightrope.formats.output_directory`).

Policies are written with the interval that they attain, computed anew. The interval of a policy holds its
value under every nature in the sets, the true one among them with the ledger's confidence: nature against the
policy gives one end, nature for it the other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from tightrope.answering.product_problem import ProductProblem
from tightrope.errors import InputError, choose
from tightrope.formats.atomic import atomic_write
from tightrope.formats.controller import MOST_DRAWN
from tightrope.formats.documents.coding import to_text
from tightrope.formats.documents.files import CertifiedFacts
from tightrope.formats.documents.result import FILE, ResultDocument
from tightrope.formats.drn import write_drn
from tightrope.formats.explicit import write_explicit
from tightrope.formats.output_directory import claim
from tightrope.formats.policy import Policy
from tightrope.formats.policy_write import write_policy
from tightrope.formats.umb import umb_is_available, write_umb
from tightrope.learning.document import Setting, document
from tightrope.learning.policies import maximises
from tightrope.learning.result import Interval, LearningResult
from tightrope.prism.properties.question import with_letters
from tightrope.solver.attained import Attained, attained
from tightrope.solver.solution import Solution, Status
from tightrope.solver.solve_sets import solve_sets
from tightrope.solver.workspace import Workspace
from tightrope.uncertainty.sets import SetsKind

if TYPE_CHECKING:
    from tightrope.learning.result import LearningResult


@dataclass(frozen=True, eq=False)
class Exported:
    """A policy, its name, and what is certified of it."""

    name: str
    policy: Policy
    interval: Interval
    status: Status

    def certified(self, result: LearningResult, text: str) -> CertifiedFacts:
        """The entry of the policy's file."""
        ledger = result.ledger
        return CertifiedFacts(
            question=text,
            lower=self.interval.lower,
            upper=self.interval.upper,
            over=f"{result.kind.value} sets",
            confidence=None if ledger.delta == 0 else 1 - ledger.delta,
            holds=ledger.holds,
            status=self.status.name.lower().replace("_", "-"),
        )


def export_policies(result: LearningResult) -> Iterator[Exported]:
    """The robust and the optimistic policy."""
    yield robust_policy(result)
    yield _optimistic(result)


def robust_policy(result: LearningResult) -> Exported:
    """The robust policy; over a domain the one that was asked about."""
    value = result.robust
    policy = value.policy
    if value.coupled is not None or value is result.value:  # computed of this very policy
        status = Status.CERTIFIED if value.is_certified else Status.PRECISION_LIMIT
        return Exported("robust", policy, value.interval, status)
    against, beside = value.solutions if maximises(result.objective) else value.solutions[::-1]
    again = attained(against, policy, _workspace(result))
    initial = result.model.initial
    if maximises(result.objective):
        interval = Interval(again.lower, float(beside.upper[initial]))
    else:
        interval = Interval(float(beside.lower[initial]), again.upper)
    return Exported("robust", policy, interval, _worst(again.status, beside.status))


def _optimistic(result: LearningResult) -> Exported:
    solution = result.optimistic
    policy = solution.policy
    workspace = _workspace(result)
    kind = attained(solution, policy, workspace)
    against = _against(solution, policy, workspace)
    ends = (against.lower, kind.upper) if maximises(result.objective) else (kind.lower, against.upper)
    return Exported("optimistic", policy, Interval(*ends), _worst(kind.status, against.status))


def _workspace(result: LearningResult) -> Workspace:
    return Workspace(result.options.device, result.options.threads)


def _against(solution: Solution, policy: Policy, workspace: Workspace) -> Attained:
    """The optimistic policy where nature is not kind after all."""
    objective = replace(solution.objective, nature=solution.objective.nature.opposite)
    found = solve_sets(
        solution.kernel, objective, policy=policy, precision=solution.precision, workspace=workspace
    )
    initial = solution.kernel.structure.initial
    return Attained(float(found.lower[initial]), float(found.upper[initial]), found.status)


def _worst(*statuses: Status) -> Status:
    return next((status for status in statuses if status is not Status.CERTIFIED), Status.CERTIFIED)


RESULT = FILE
LEARNED = "learned"

KIND = "learn"
"""The command that such a directory belongs to."""


class Export(Enum):
    """Formats of the learned interval model."""

    DRN = "drn"
    EXPLICIT = "explicit"
    UMB = "umb"


def parse_exports(asked: str | Collection[str] | None) -> tuple[Export, ...]:
    """What `--export drn,explicit` asks for, or a list of names."""
    listed = asked.split(",") if isinstance(asked, str) else asked or ()
    names = [name.strip() for name in listed]
    exports = tuple(dict.fromkeys(choose("export", Export, name) for name in names))
    if Export.UMB in exports and not umb_is_available():
        raise InputError("UMB files need the package umbi", hint="pip install 'tightrope[umbi]'")
    return exports


def write_results(
    path: Path,
    results: Sequence[LearningResult],
    content: ResultDocument,
    *,
    exports: Collection[Export] = (),
    progress: Callable[[str], None] | None = None,
) -> list[Path]:
    """Write the directory; the paths of its files. `content` is the document, which lists them as well."""
    with claim(path, KIND).filling(RESULT) as folder:
        names = fill_results(folder, results, content, exports=exports, progress=progress)
    return [path / name for name in names]


def save_result(
    result: LearningResult, path: Path, *, source: str | None = None, exports: Collection[str] = ()
) -> list[Path]:
    """Write one result as `tightrope learn -o` does; `source` says where its model came from."""
    return write_results(path, [result], result_document(result, source), exports=parse_exports(exports))


def result_document(
    result: LearningResult, source: str | None = None, *, shapes: bool = True
) -> ResultDocument:
    """The document of a single result that was learned in Python."""
    named = source or f"a model of {result.model.states:,} states"
    setting = Setting(model=named, property=result.problem.text, delta=result.ledger.delta)
    return document([result], result.counts, result.options, setting, shapes=shapes)


def fill_results(
    folder: Path,
    results: Sequence[LearningResult],
    content: ResultDocument,
    *,
    exports: Collection[Export] = (),
    progress: Callable[[str], None] | None = None,
) -> list[str]:
    """Write all files into an empty folder; their names, the document's first."""
    say = progress or (lambda what: None)
    several = len(results) > 1
    names: list[list[str]] = []
    for result in results:
        inner = folder / result.decisions.sets.value if several else folder
        inner.mkdir(exist_ok=True)
        there = {file.name for file in inner.iterdir()}
        say(f"write: the policies ({result.kind.value})")
        write_policies(result, inner, content.question)
        if exports and result.kind is not SetsKind.COUPLED:
            say(f"write: the learned model ({result.sets.kind.value})")
            _write_models(result, inner, content.question, exports)
        new = sorted(file for file in inner.iterdir() if file.name not in there)
        names.append([str(file.relative_to(folder)) for file in new])
    for entry, files in zip(content.results, names, strict=True):
        entry.files = files
    with atomic_write(folder / RESULT) as file:
        file.write(to_text(content) + "\n")
    return [RESULT, *(name for files in names for name in files)]


def write_policies(result: LearningResult, folder: Path, text: str) -> None:
    """The robust and the optimistic policy, each with the interval that it attains."""
    for exported in export_policies(result):
        if isinstance(result.problem, ProductProblem):
            controller = result.problem.controller(exported.policy)
            certified, name = exported.certified(result, text), f"{exported.name}-controller"
            controller.save(folder / f"{name}.json", result.problem.base.hash(), certified)
            if len(controller.state) <= MOST_DRAWN:
                controller.save(folder / f"{name}.dot")
            continue
        with atomic_write(folder / f"{exported.name}-policy.json") as file:
            certified = exported.certified(result, text)
            write_policy(exported.policy, file, result.model.hash(), certified)


def _write_models(result: LearningResult, folder: Path, text: str, exports: Collection[Export]) -> None:
    model = result.sets.interval_model()
    with atomic_write(folder / f"{LEARNED}.props") as file:
        agent, nature = result.objective.agent, result.objective.nature
        if result.objective.complement:
            agent, nature = agent.opposite, nature.opposite
        file.write(with_letters(text, agent, nature) + "\n")
    if Export.DRN in exports:
        write_drn(model, folder / f"{LEARNED}.drn")
    if Export.EXPLICIT in exports:
        write_explicit(model, folder / LEARNED)
    if Export.UMB in exports:
        write_umb(model, folder / f"{LEARNED}.umb")
