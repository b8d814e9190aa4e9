"""`tightrope verify CERTIFICATE`: re-check a certificate without the program that made it.

Where the user gives them, it is compared with the user's own model, property, data and policy.
"""

from __future__ import annotations

import dataclasses
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import msgspec
import typer
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

import tightrope as tr
from tightrope.certify.verification import AboutOther, Verified, verify_file, worth
from tightrope.cli import late, options
from tightrope.cli.options import declare, switch, takes
from tightrope.cli.output import Content, Table, common, leave, print_json, show
from tightrope.errors import CannotCertify, InputError
from tightrope.io.coding import Real, record_of
from tightrope.io.log_words import LOG_WORDS, LogWords
from tightrope.io.results import Interval
from tightrope.verdict import Assessment, Assumed
from tightrope_check.budget import OverBudget, WorkBudget
from tightrope_check.problem import Certificate
from tightrope_check.report import facts, headline, rows
from tightrope_check.verdict import Check

if TYPE_CHECKING:  # what a check alone does not load
    from tightrope.certify.comparison import Own
    from tightrope.certify.rates import OwnChain
    from tightrope.cli.sources import Loaded
    from tightrope.prism.properties.query import Query
    from tightrope.problem import Model


class ProvedCheckFacts(msgspec.Struct, frozen=True):
    """What the proved checker said: accepts, refuses or does not cover; theorems by their names in Coq."""

    verdict: str
    theorems: list[str]
    words: str | UnsetType = UNSET


class VerifyAnswer(msgspec.Struct, kw_only=True, frozen=True):
    """`verify`: whether a certificate proves its claims; `bound` says what of one's own it is about.

    `verdict` is what it is worth in one word, `headline` the same for people, `answer` whether a property
    with a threshold is true, false or not certified.
    """

    verdict: str
    headline: str
    valid: bool
    bound: dict[str, bool | None]
    assumes: list[str]
    assumptions: list[dict[str, str]]
    checked: tuple[Check, ...]
    seconds: float
    digest: str | UnsetType = UNSET
    answer: str | UnsetType = UNSET
    nominal: bool | UnsetType = UNSET
    lower: Real | UnsetType = UNSET
    upper: Real | UnsetType = UNSET
    kind: str | UnsetType = UNSET
    policies: dict[str, Interval] | UnsetType = UNSET
    delta: float | UnsetType = UNSET
    method: str | UnsetType = UNSET
    sets: str | UnsetType = UNSET
    proved: ProvedCheckFacts | UnsetType = UNSET
    about: dict[str, Any] | UnsetType = UNSET


@dataclass(frozen=True, kw_only=True)
class VerifyRequest:
    """The options of the command."""

    certificate: Annotated[
        Path, typer.Argument(metavar="CERTIFICATE", help="A file written by --certificate.")
    ]
    model: str | None = declare(
        "--model", f"Compare the certificate with this model. {options.MODEL_HELP}", "MODEL"
    )
    prop: options.Prop = None
    data: list[str] | None = declare("--data", "Compare the certificate with these data.", "FILE")
    observations: str | None = declare(
        "--observations", "Compare the certificate with these labelled sensor readings.", "FILE"
    )
    policy: Path | None = declare("--policy", "Compare the certificate with this policy.", "FILE")
    baseline: Path | None = declare("--baseline", "Compare the certificate with this baseline.", "FILE")
    misfit: float | None = declare("--misfit", "Compare the certificate with this model error.", "EPS")
    shield: Path | None = declare("--shield", "Check that this shield follows from the certificate.", "FILE")
    at: options.At = None
    const: options.Const = None
    param: options.Param = None
    domain: options.Domain = None
    discount: options.Discount = None
    terminal_reward: options.TerminalReward = None
    ltl_translator: options.LtlTranslator = None
    budget: str | None = declare(
        "--budget",
        "Limit on the work of the check: 600s, 10min or 10x. Default: 60s, with --exact 600s, "
        "plus 10s per MiB of coupled proofs.",
        "AMOUNT",
    )
    exact: bool = switch("--exact", "Check in exact rationals; for small models.")
    proved: bool = switch("--proved", "Also run the machine-checked program (installation: docs/proved.md).")
    reading: LogWords


MODEL_WORDS = """
    prop data observations policy baseline misfit at const param domain discount terminal_reward
    ltl_translator
"""
"""Options that say something about the user's own model."""


@takes(VerifyRequest, {"data": LOG_WORDS}, {MODEL_WORDS: "model"})
def verify(request: VerifyRequest) -> None:
    """Re-check a certificate with a program that shares no code with the solver or with learning.

    `verify` rechecks every inequality behind a bound. For a learned result it also rechecks the steps from
    counts to bounds: intervals, confidence, region, projections. Rounding is on the safe side. The work is
    estimated first; a check of more than 60 s on one core or 2 GiB needs --budget.

    A certificate is about the problem in its file. With --model, --prop, --data and --policy, that problem is
    built again from your own files, with the same options, and compared. `compared` lists what was compared.

    --proved also runs the program extracted from machine-checked proofs, if it is installed. A kind of
    certificate that it does not cover counts as a failure.

    Exit code 0: valid and proved. 1: not valid, nominal, contradicted by the data, about something else, or
    a property with a threshold that is false or undecided.

    Example: tightrope verify betting.cert --model 'bench:betting(50)' --data data.parquet
    """
    begin = time.perf_counter()
    if request.data is None and (given := options.list_given(request.reading)):
        raise InputError(f"{given[0]} requires --data: it is an import setting")
    budget = WorkBudget.of(request.budget, request.exact)
    own = None if request.model is None else partial(own_files, request, request.model)
    try:
        verified = verify_file(
            request.certificate,
            budget,
            exact=request.exact,
            own=own,
            proved=request.proved,
            timed=True,
            shield=request.shield,
        )
    except OverBudget as error:
        if common.json:
            print_json(_refused(Assessment.of([], limit=str(error)), f"NOT CHECKED: {error}", begin))
        raise
    except AboutOther as error:
        if common.json:
            other = Assessment.of([Assumed.violated("binding", str(error))])
            failed = Check("it is about what was given", False, str(error))
            refused = _refused(other, f"NOT VALID for what you gave: {error}", begin, failed)
            print_json(replace(refused, bound=error.bound, digest=error.digest))
        raise
    if common.json:
        print_json(_answer(verified, time.perf_counter() - begin))
    else:
        show(headline(verified.verdict, verified.certificate), _shown(verified))
    verdict, proved = verified.verdict, verified.proved
    accepted = proved is None or proved.verdict == "accepts"
    if not verdict.valid or not accepted or verdict.answer not in (None, "true"):
        raise typer.Exit(1)
    leave(worth(verdict))


def _answer(verified: Verified, seconds: float) -> VerifyAnswer:
    """The bounds of the claim that answers the question are the head; without one, those of the first."""
    certificate, verdict, proved = verified.certificate, verified.verdict, verified.proved
    values = {name: Interval.of(low, high) for name, (low, high) in verdict.values.items()}
    first, data = values[verdict.claim or next(iter(values))], certificate.problem.data
    result = worth(verdict)
    return record_of(
        VerifyAnswer,
        verdict,
        first,
        certificate,
        verdict=result.word.value,
        headline=headline(verdict, certificate),
        assumptions=[one.to_json() for one in result.assumptions],
        checked=verdict.checks,
        policies=values,
        delta=UNSET if data is None else data.total_delta,
        method=UNSET if data is None else data.method,
        sets=sets_of(certificate),
        digest=verified.digest,
        proved=UNSET
        if proved is None
        else ProvedCheckFacts(proved.verdict, list(proved.theorems), proved.words or UNSET),
        seconds=round(seconds, 6),
    )


def sets_of(certificate: Certificate) -> str | UnsetType:
    """The sets over which the proofs of a learned certificate run, as `learn --sets` calls them."""
    hints, data = certificate.learned, certificate.problem.data
    if hints is None:
        return UNSET
    if data is not None and data.shared_by == "transitions":
        return "untied"
    if hints.coupled:
        return "coupled"
    joint = any(one.lower_basis is not None or one.upper_basis is not None for one in certificate.values)
    return "rectangular" if joint else "tied" if hints.region is None else "expression"


def _refused(worth: Assessment, headline: str, begin: float, *failed: Check) -> VerifyAnswer:
    """What is said of a certificate in which nothing was checked."""
    return VerifyAnswer(
        verdict=worth.word.value,
        headline=headline,
        valid=False,
        bound={},
        assumes=[],
        assumptions=[one.to_json() for one in worth.assumptions],
        checked=failed,
        seconds=round(time.perf_counter() - begin, 6),
    )


def _shown(verified: Verified) -> Content:
    both = verified.verdict, verified.certificate
    proved = [] if verified.proved is None else [("proved", verified.proved.line)]
    checks = Table(("check", "", ""), list(rows(*both)), numeric=False)
    return Content([*proved, *facts(*both)], tables=[checks])


def own_files(request: VerifyRequest, model_name: str, certificate: Certificate) -> Own | OwnChain:
    """All that is compared with a certificate, read from the user's files."""
    problem, in_time = certificate.problem, late.loading.is_continuous(model_name)
    if problem.time is not None:
        options.refuse_options(
            request, "observations policy baseline misfit discount terminal_reward ltl_translator"
        )
        if not in_time:
            raise CannotCertify(
                "this certificate is about a chain in continuous time, and your model is none"
            )
    log = None if request.data is None else late.sources.LogRequest.of(request.reading, request.data)
    tables = () if log is None else log.tables()
    loaded, query, readings = _load(request, in_time, problem.time is not None)
    model, data = loaded.model, cast(object, readings)
    observed = isinstance(model, tr.POMDP)
    at = None
    if problem.law == "point" or (observed and problem.law != "domain") or request.at is not None:
        whole = dataclasses.replace(loaded, model=model.model) if isinstance(model, tr.POMDP) else loaded
        at = None if in_time and problem.time is None else whole.point(request.at)
    if at == () and request.at is None:
        at = None
    if log is not None and problem.time is not None:
        data = late.exposure.exposure_of(tables, model.structure, log.options)
    elif log is not None:
        data = log.read(cast("Model", model.model if isinstance(model, tr.POMDP) else model), tables).counts
    given = ((request.policy, request.baseline), request.misfit or 0.0, request.ltl_translator)
    return late.comparison.own_of(certificate, model, query, at, data, *given)


def _load(wanted: VerifyRequest, in_time: bool, timed: bool) -> tuple[Loaded, Query | None, tr.Counts | None]:
    """The model (of a chain `in_time` its jumps, unless `timed`), what is asked, and a sensor's counts."""
    question, counts = late.sources.Question.of(cast(options.ModelOptions, wanted)), None
    loaded: Loaded
    if timed:
        loaded = question.load(timed=True, quiet=wanted.at is not None)
    elif in_time:
        options.refuse_options(wanted, "discount terminal_reward")
        loaded = question.load_embedded(wanted.at)
    else:
        loaded = question.load(observed=True)
    if wanted.observations is not None:
        if wanted.data is not None:
            raise InputError("--observations replaces --data: give one of them")
        loaded, pomdp, readings = late.sources.seen_through(loaded, wanted.observations)
        loaded = dataclasses.replace(loaded, model=cast(tr.POMDP, pomdp))
        counts = None if readings is None else readings.counts
    if wanted.prop is None and loaded.benchmark is None:
        return loaded, None, counts
    query = question.query(loaded, "a certificate is about one property")
    return (
        loaded,
        late.sources.paced(query, loaded.model if isinstance(loaded.model, tr.POMDP) else None),
        counts,
    )
