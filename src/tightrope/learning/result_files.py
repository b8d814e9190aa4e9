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
(`tightrope.io.output`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from tightrope.ambiguity.sets import SetsKind
from tightrope.atomic import atomic_write
from tightrope.errors import InputError, choose
from tightrope.io.coding import to_plain, to_text
from tightrope.io.drn import write_drn
from tightrope.io.explicit import write_explicit
from tightrope.io.output import claim
from tightrope.io.results import RESULT_FILE, ResultDocument
from tightrope.io.umb import umb_is_available, write_umb
from tightrope.learning.document import Setting, document
from tightrope.learning.exported import export_policies
from tightrope.logic.product_problem import ProductProblem
from tightrope.model.policy import MOST_DRAWN
from tightrope.prism.properties.resolve import with_letters

if TYPE_CHECKING:
    from tightrope.learning.result import LearningResult

RESULT = RESULT_FILE
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
            policy = result.problem.controller(exported.policy)
            certified, name = to_plain(exported.certified(result, text)), f"{exported.name}-controller"
            policy.save(folder / f"{name}.json", result.problem.base.hash(), certified)
            if policy.memory is not None and len(policy.memory.state) <= MOST_DRAWN:
                policy.save(folder / f"{name}.dot")
            continue
        certified = to_plain(exported.certified(result, text))
        exported.policy.save(folder / f"{exported.name}-policy.json", result.model.hash(), certified)


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
