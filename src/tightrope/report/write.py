"""From a result on disk to a report on disk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import UnsetType

from tightrope.atomic import atomic_write
from tightrope.certificate.archive import load
from tightrope.errors import InputError
from tightrope.io.output import REPORT as REPORT_FILE
from tightrope.io.output import OutputFile, add_file, check_added, claim_file, read_manifest
from tightrope.io.plans import plan_file, read_plan
from tightrope.io.results import ResultDocument, read_result
from tightrope.report.page import page
from tightrope.report.picture import interval_text
from tightrope.report.plan_page import plan_page
from tightrope.report.policy_map import PolicyMap, read_policy_map

REPORT = "report.html"


def load_run(
    result: str | Path, beside: Sequence[str | Path] = (), certificate: str | Path | None = None
) -> ResultDocument:
    """The run, with the regions and outcomes of others `beside` it and the digest of its certificate."""
    run = read_result(result)
    for other in beside:
        run = run.beside(read_result(other))
    if certificate is not None:
        run = run.having(about_certificate=_about_certificate(run, Path(certificate)))
    return run


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


def load_policies(run: ResultDocument) -> PolicyMap | None:
    """The robust and the optimistic policy of the main outcome, where their files lie beside the result."""
    files = {}
    written = run.main.files
    if run.file is None or isinstance(written, UnsetType):
        return None
    for name in ("robust", "optimistic"):
        listed = next((file for file in written if file.endswith(f"{name}-policy.json")), None)
        if listed is not None and (run.file.parent / listed).is_file():
            files[name] = run.file.parent / listed
    return read_policy_map(files) if files else None


def write_report(
    result: str | Path,
    output: str | Path | None = None,
    *,
    beside: Sequence[str | Path] = (),
    certificate: str | Path | None = None,
    overwrite: bool = False,
) -> Path:
    """Write the report of a result or a plan; its path, `report.html` beside it if none is given.

    A file that exists and is no report of ours is refused first, unless `overwrite` is set.
    """
    claimed = None if output is None else _claim(Path(output), overwrite)
    planned = plan_file(result)
    if planned is not None:
        refuse_beside_plans(planned, [*beside, *([] if certificate is None else [certificate])])
        target = planned.parent / REPORT if output is None else Path(output)
        alone = _claim(target, overwrite) if output is None else claimed
        return _write(plan_page(read_plan(planned)), target, alone, overwrite)
    run = load_run(result, beside, certificate)
    assert run.file is not None
    target = run.file.parent / REPORT if output is None else Path(output)
    alone = _claim(target, overwrite) if output is None else claimed
    return _write(page(run, load_policies(run)), target, alone, overwrite)


def refuse_beside_plans(plan: Path, others: Sequence[object]) -> None:
    """What reports of results can have beside them, plans cannot."""
    if any(others):
        raise InputError(
            f"{plan} is a plan: its figure is there already, and nothing goes beside it",
            hint="name the plan and '-o FILE' alone",
        )


def write_page(
    run: ResultDocument, policies: PolicyMap | None, target: Path, overwrite: bool = False
) -> Path:
    """Write the report of a run in memory."""
    alone = _claim(target, overwrite)
    return _write(page(run, policies), target, alone, overwrite)


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
