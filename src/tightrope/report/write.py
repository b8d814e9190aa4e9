"""Reports and figures of results as files.

Reports are pages, pictures files for papers (PDF) and pages (PNG, SVG):

    run = load_run("results")
    INTERVALS.figure(run).savefig("intervals.pdf")
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from matplotlib.figure import Figure
from msgspec import UnsetType

from tightrope.atomic import atomic_write
from tightrope.errors import InputError, Location, TightropeError
from tightrope.io import answers
from tightrope.io.coding import from_plain, to_plain
from tightrope.io.output import FIGURE, OutputFile, add_file, check_added, claim_file, read_manifest
from tightrope.io.output import REPORT as REPORT_FILE
from tightrope.io.results import EventTable, ExpressionTexts, ResultDocument, StoredOutcome, read_result
from tightrope.numerics.text import interval_text
from tightrope.report.draw_fit import EVIDENCE, WORST
from tightrope.report.draw_intervals import INTERVALS, draw_intervals
from tightrope.report.draw_regions import regions_figure
from tightrope.report.draw_widths import EVENTS, WIDTHS
from tightrope.report.page import comparison_page, page
from tightrope.report.plan_page import answer_page, plan_page
from tightrope.report.policy_map import PolicyMap, draw_policy, read_policy_map
from tightrope.report.self_check import self_check
from tightrope.report.statement import statement
from tightrope.report.style import PAPER, WIDTH, named, plain, save_figure
from tightrope.report.what_if import WhatIf
from tightrope_check.archive import load

REPORT = "report.html"


@contextmanager
def drawn_from(result: str | Path) -> Iterator[None]:
    """What cannot be drawn of files that are not as tightrope left them is said to be wrong with these."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        folder = Path(result) if Path(result).is_dir() else Path(result).parent
        known = [(place, read_manifest(place)) for place in (folder, folder.parent)]
        as_written = any(manifest is not None and not manifest.strangers(at)[1] for at, manifest in known)
        if isinstance(error, TightropeError) or as_written:
            raise
        raise InputError(
            f"its files do not fit together and cannot be shown: {type(error).__name__}: {error}",
            Location(str(result)),
            "they were changed after tightrope wrote them: write the result again",
        ) from error


def load_run(
    result: str | Path, beside: Sequence[str | Path] = (), certificate: str | Path | None = None
) -> ResultDocument:
    """The run, with the regions and outcomes of others `beside` it and the digest of its certificate."""
    run = read_result(result)
    for other in beside:
        run = run.beside(read_result(other))
    if certificate is not None:
        run = run.having(about_certificate=_about_certificate(run, Path(certificate)))
    return with_names(run)


def with_names(run: ResultDocument) -> ResultDocument:
    """The run with values of variables as the log or the model calls them, in all texts about it."""
    names = run.data.names
    if isinstance(names, UnsetType):
        return run

    def called(part: object) -> object:
        if isinstance(part, dict):
            return {key: called(value) for key, value in part.items()}
        if isinstance(part, list):
            return [called(value) for value in part]
        return named(part, names) if isinstance(part, str) else part

    results = from_plain(called(to_plain(run.results)), list[StoredOutcome])
    texts = from_plain(called(to_plain(run.expressions)), ExpressionTexts)
    events = run.events and from_plain(called(to_plain(run.events)), EventTable)
    return run.having(results=results, expressions=texts, events=events)


def _about_certificate(run: ResultDocument, path: Path) -> dict[str, str]:
    """Its digest and what it claims; refused where it names another model."""
    loaded = load(path)
    named = loaded.certificate.about.get("model_hash")
    if named is not None and named != run.model.hash:
        raise InputError(f"{path} is a certificate of another model than {run.file}")
    known = {"digest": loaded.digest, "file": str(path), "check": f"tightrope verify {path}"}
    for claim in loaded.certificate.claims:
        known[f"claimed of the {claim.name}"] = interval_text(claim.lower, claim.upper)
    return known


def policy_beside(result: Path, listed: Sequence[str], name: str) -> Path | None:
    """The file of a policy that a result lists, where it exists; one outside of its folder is refused."""
    file = next((file for file in listed if file.endswith(f"{name}-policy.json")), None)
    if file is None or not (path := result.parent / file).is_file():
        return None
    if not path.resolve().is_relative_to(result.parent.resolve()):
        words = f"the policy {file} lies outside of the folder of its result"
        raise InputError(words, Location(str(result)), "save the result again, or remove that name")
    return path


def load_policies(run: ResultDocument) -> PolicyMap | None:
    """The robust and the optimistic policy of the main outcome, where their files lie beside the result."""
    files = {}
    written = run.main.files
    if run.file is None or isinstance(written, UnsetType):
        return None
    for name in ("robust", "optimistic", "given"):
        if (path := policy_beside(run.file, written, name)) is not None:
            files[name] = path
    policies, names = read_policy_map(files) if files else None, run.data.names
    return policies if policies is None or isinstance(names, UnsetType) else policies.calling(names)


def write_report(
    result: str | Path,
    output: str | Path | None = None,
    *,
    beside: Sequence[str | Path] = (),
    certificate: str | Path | None = None,
    overwrite: bool = False,
    what_if: Callable[[], WhatIf] | None = None,
) -> Path:
    """Write a report; its path. Files that are no reports of ours are refused, unless `overwrite`."""
    claimed = None if output is None else _claim(Path(output), overwrite)
    planned = answers.plan_file(result) or answers.answer_file(result) or answers.comparison_file(result)
    run = load_run(result, beside, certificate) if planned is None else None
    if planned is not None:
        refuse_beside_plans(planned, [*beside, *([] if certificate is None else [certificate])])
    place = planned if run is None else run.file
    assert place is not None
    target = place.parent / REPORT if output is None else Path(output)
    alone = _claim(target, overwrite) if output is None else claimed
    files = {name: place.parent / file for name, file in answers.POLICY_FILES.items()}
    if run is not None:
        values = None if what_if is None else what_if()
        text = page(run, load_policies(run), values, self_check(run))
    elif answers.plan_file(result) is not None:
        text = plan_page(answers.read_plan(place))
    elif answers.answer_file(result) is not None:
        text = answer_page(answers.read_answer(place), _map_of({"new": files["new"]}))
    else:
        compared = answers.read_comparison(place)
        text = comparison_page(compared.answer, compared.headline, compared.about, _map_of(files))
    return _write(text, target, alone, overwrite)


def _map_of(files: dict[str, Path]) -> PolicyMap | None:
    """The policies of files that are all there."""
    return read_policy_map(files) if all(file.is_file() for file in files.values()) else None


def refuse_beside_plans(plan: Path, others: Sequence[object]) -> None:
    """What reports of results can have beside them, plans cannot."""
    if any(others):
        raise InputError(
            f"{plan} is a plan or an answer: it has one figure, and no other goes beside it",
            hint="name it and '-o FILE' alone",
        )


def write_page(
    run: ResultDocument,
    policies: PolicyMap | None,
    target: Path,
    overwrite: bool = False,
    what_if: WhatIf | None = None,
) -> Path:
    """Write the report of a run in memory."""
    alone = _claim(target, overwrite)
    return _write(page(with_names(run), policies, what_if), target, alone, overwrite)


def _write(text: str, target: Path, alone: OutputFile | None, overwrite: bool) -> Path:
    if alone is None:
        with add_file(target, overwrite=overwrite) as place:
            place.write_text(text, encoding="utf-8", newline="\n")
        return target
    alone.check()
    with atomic_write(target) as file:
        file.write(text)
    return target


def _claim(target: Path, overwrite: bool) -> OutputFile | None:
    """Refuse a file that must not be written; None where it is added to a directory with a manifest."""
    if read_manifest(target.parent) is None:
        return claim_file(target, REPORT_FILE, overwrite)
    check_added(target, overwrite)
    return None


SUFFIXES = (".pdf", ".png", ".svg")

FILES = {
    "intervals": INTERVALS,
    "widths": WIDTHS,
    "events": EVENTS,
    "fit": EVIDENCE,
    "observed": WORST,
}
"""The pictures that are written each to a file of its name; regions, policy and overview come on top."""

NAMES = (*FILES, "regions", "policy", "overview")


def policy_figure(
    policies: PolicyMap, x: str | None = None, y: str | None = None, name: str = "robust"
) -> Figure:
    """The policy as a heat map over two state variables (`x`, `y`: their names)."""
    with PAPER.style():
        figure = Figure(figsize=(WIDTH * 0.75, WIDTH * 0.62), layout="constrained")
        draw_policy(policies, figure.subplots(), x, y, name)
    return figure


def overview(run: ResultDocument, policies: PolicyMap | None) -> Figure:
    """One picture of a result: the answer, the intervals of all sets, and the policy."""
    with PAPER.style():
        figure = Figure(figsize=(8.6, 4.1), layout="constrained")
        figure.suptitle(
            plain(f"{statement(run).headline}  ({run.model.title})"), fontsize=11, fontweight="bold"
        )
        if policies is None:
            draw_intervals(run, figure.subplots())
            return figure
        left, right = figure.subplots(1, 2, width_ratios=[1.25, 1.0])
        draw_intervals(run, left)
        left.set_title("value intervals, all sets", fontsize=9)
        draw_policy(policies, right)
        right.set_title(f"robust policy ({run.main.label} sets)", fontsize=9)
    return figure


def write_figures(
    result: str | Path,
    folder: str | Path,
    *,
    beside: Sequence[str | Path] = (),
    overwrite: bool = False,
) -> list[Path]:
    """Write every figure that the result has something to show in; their paths."""
    check_figures(folder, overwrite)
    run = load_run(result, beside)
    policies = load_policies(run)
    drawn = {name: picture.figure(run) if picture.applies(run) else None for name, picture in FILES.items()}
    drawn["regions"] = regions_figure(run)
    drawn["policy"] = policy_figure(policies) if policies is not None else None
    drawn["overview"] = overview(run, policies)
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot write {folder}: {error.strerror}") from error
    written = []
    for name, figure in drawn.items():
        if figure is not None:
            written.append(Path(folder) / f"{name}.pdf")
            with add_file(written[-1], "report", overwrite=overwrite) as place:
                save_figure(figure, place)
    return written


def check_figures(folder: str | Path, overwrite: bool = False) -> None:
    """Refuse a directory in which a figure's name is taken by a file that is not ours."""
    if Path(folder).is_dir():
        for name in NAMES:
            check_added(Path(folder) / f"{name}.pdf", overwrite)


def check_picture(target: str | Path, overwrite: bool = False) -> OutputFile:
    """Refuse a file that no picture can or must be written to."""
    if Path(target).suffix not in SUFFIXES:
        raise InputError(f"cannot draw {target}", hint="end its name in .pdf, .png or .svg")
    return claim_file(target, FIGURE, overwrite)


def write_picture(
    result: str | Path, target: str | Path, *, beside: Sequence[str | Path] = (), overwrite: bool = False
) -> Path:
    """Write the overview as .png, .pdf or .svg."""
    claimed = check_picture(target, overwrite)
    run = load_run(result, beside)
    figure = overview(run, load_policies(run))
    return save_figure(figure, claimed.checked())
