"""From a certificate to a verdict: read it, compare it with the user's own files, check it.

The proved checker is a program of its own, extracted from machine-checked proofs (`docs/proved.md`); it is
called where it is installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

from tightrope.errors import CannotCertify, InputError, check_keywords, check_type, shown
from tightrope.verdict import Assessment, Assumed, AssumptionStatus
from tightrope_check.archive import load
from tightrope_check.budget import WorkBudget
from tightrope_check.checker import check
from tightrope_check.numbers import FLOAT64, RATIONAL
from tightrope_check.problem import Certificate
from tightrope_check.verdict import Verdict as Verdict

if TYPE_CHECKING:  # a check alone loads none of it
    from tightrope.certify.comparison import Own
    from tightrope.certify.rates import OwnChain
    from tightrope.model.objective import Objective
    from tightrope.model.parameters import Point
    from tightrope.model.policy import Policy
    from tightrope.model.pomdp import Controller
    from tightrope.problem import AnyModel


class OwnKwargs(TypedDict, total=False):
    """What a certificate is compared with, as keyword arguments of `verify`."""

    model: AnyModel | None
    property: Objective | str | None
    at: Point | None
    data: object
    policy: Policy | Controller | None
    baseline: Policy | None
    misfit: float | None
    ltl_translator: str | None


def verify(
    certificate: str | Path,
    *,
    shield: str | Path | None = None,
    exact: bool = False,
    budget: float | str | None = None,
    **own: Unpack[OwnKwargs],
) -> Verdict:
    """Check a certificate, and whether it is about a given model, property, data or policy.

    Parameters
    ----------
    certificate : str or path
        The file.
    model, property, at, data, policy, baseline
        What the certificate is compared with. A `CTMC` stands for its embedded chain, a model without
        parameters for its graph, if the certificate is about these. The policy of a `POMDP` is a controller.
    misfit : float
        The claims must hold for processes within this total variation of the model at every choice.
    ltl_translator : str, optional
        The command that translates LTL, if another program made the automaton.
    shield : str or path, optional
        A shield: its values, fallback and prices must follow from this certificate.
    exact : bool
        Use rationals alone.
    budget : float or str, optional
        The work that the check may take, 600 (seconds), "10min" or "10x"; 60 s by default (600 s if `exact`).

    Returns
    -------
    Verdict
        `valid`: the claims are proved. `word`: proved, nominal, contradicted or limit. `answer`: whether a
        property with a threshold is true. `not_tied`: what was not compared. `values`: the proved bounds.

    Raises
    ------
    CannotCertify
        If a field differs; the message names the first one.

    Examples
    --------
    >>> import tightrope as tr
    >>> parameters = tr.Parameters.box(p=(0, 1))
    >>> (p,) = parameters.symbols()
    >>> rows = [(0, "toss", {1: p, 2: 1 - p}), (1, "", {1: 1}), (2, "", {2: 1})]
    >>> model = tr.build_from_rows(rows, parameters, labels={"heads": [1]})
    >>> problem = model.problem('Pmax=? [ F "heads" ]')
    >>> result = tr.learn(problem, [[(0, "toss", 1)]] * 80 + [[(0, "toss", 2)]] * 20, delta=0.01)
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     proved = tr.certify(result, os.path.join(folder, "coin.cert"))
    ...     verdict = tr.verify(os.path.join(folder, "coin.cert"), model=model)
    >>> verdict.word, verdict.not_tied
    ('proved', ('property', 'data', 'policy'))
    """
    given = check_keywords("verify", OwnKwargs, own, ("certificate", "shield", "exact", "budget"))
    given = {**dict.fromkeys(OwnKwargs.__annotations__), **given}
    model, property, at, data, *policies, misfit, translator = given.values()
    if model is None and (misfit or any(one is not None for one in (property, at, data, *policies))):
        raise InputError(
            "a property, data, a point or a policy can only be compared beside a model", hint="add `model`"
        )
    check_type("certificate", certificate, str | Path, "the name of a file")
    reads = None
    if model is not None:

        def reads(file: Certificate) -> Own | OwnChain:
            from tightrope.certify.comparison import own_of

            return own_of(file, model, property, at, data, policies, misfit or 0.0, translator)

    work = WorkBudget.of(budget, exact)
    return verify_file(certificate, work, exact=exact, own=reads, shield=shield).verdict


_PLAIN = [one for one in signature(verify).parameters.values() if one.kind is not Parameter.VAR_KEYWORD]
_OWN = [Parameter(name, Parameter.KEYWORD_ONLY, default=None) for name in OwnKwargs.__annotations__]
vars(verify)["__signature__"] = signature(verify).replace(parameters=[*_PLAIN, *_OWN])  # for `help`


class AboutOther(CannotCertify):
    """A certificate is about something else than what was given."""

    def __init__(self, trouble: str, bound: dict[str, bool | None], digest: str):
        self.bound, self.digest = bound, digest
        super().__init__(trouble)


@dataclass(frozen=True, eq=False)
class Verified:
    """A certificate, its digest, the verdict, and what the proved checker says where it was asked."""

    certificate: Certificate
    digest: str
    verdict: Verdict
    proved: ProvedAnswer | None


def verify_file(
    path: str | Path,
    budget: WorkBudget,
    *,
    exact: bool = False,
    own: Callable[[Certificate], Own | OwnChain] | None = None,
    proved: bool = False,
    timed: bool = False,
    shield: str | Path | None = None,
) -> Verified:
    """The whole way. `own` reads what the user has, as the certificate is about it; `proved` asks the proved
    checker, too; a `shield` must follow from the certificate; `timed`: a long check is announced, and stopped
    by the clock at twice its budget."""
    if proved:
        find_proved_checker()
    loaded = load(path, budget)
    certificate, mine, bound = loaded.certificate, None, dict[str, bool | None]()
    if own is not None:
        from tightrope.certify.comparison import compare, tie_verdict

        with WorkBudget(budget.seconds).counting():  # of what the file asks to be built again
            mine = own(certificate)
            bound, trouble = compare(certificate, mine)
        if trouble is not None:
            raise AboutOther(trouble, bound, loaded.digest)
    seconds = budget.seconds + budget.grown
    if timed and budget.grown:
        words = f"its coupled proofs are long: the check may take {seconds:g} s; `budget` limits it"
        warnings.warn(words, UserWarning, stacklevel=2)
    with budget.on_the_clock() if timed else nullcontext():
        verdict = check(certificate, RATIONAL if exact else FLOAT64, budget)
    if shield is not None and verdict.valid:
        from tightrope.shield.verification import check_shield

        model = getattr(getattr(mine, "model", None), "structure", None)
        verdict = replace(verdict, checks=(*verdict.checks, *check_shield(shield, loaded, model)))
    if mine is not None:
        verdict = tie_verdict(verdict, certificate, mine, bound)
    answer = ask_proved_checker(path, loaded.digest, seconds) if proved else None
    return Verified(certificate, loaded.digest, verdict, answer)


def worth(verdict: Verdict) -> Assessment:
    """The verdict as all surfaces show it; a check that fails is an assumption that is not kept."""
    assumed = [Assumed(name, AssumptionStatus(status), words) for name, status, words in verdict.assumptions]
    failed = [f"{one.name}: {one.detail}" for one in verdict.checks if not one.passed]
    if failed:
        assumed.insert(0, Assumed.violated("proof", failed[0]))
    undecided = "the bounds lie on both sides of the threshold" if verdict.answer == "not certified" else None
    whole = Assessment.of(assumed, contradicted=verdict.contradicted)
    return Assessment.of(assumed, limit=undecided) if whole.is_proved else whole


PROGRAM = "tightrope-proved-check"
PLACE = "TIGHTROPE_PROVED_CHECK"
"""The environment variable that says where the program is."""

_BUILT = Path(__file__).parents[3] / "proved" / "build" / PROGRAM
_INSTALL = (
    "build it in a checkout of tightrope by `make proved` (only OCaml and Zarith: `make -C proved checker`), "
    f"and put it on the PATH or name it in the environment variable {PLACE}"
)
_VERDICTS = {0: "accepts", 1: "refuses", 2: "refuses", 3: "does not cover"}


@dataclass(frozen=True)
class ProvedAnswer:
    """`verdict`: accepts, refuses or does not cover; `theorems`: what an acceptance means, by their names in
    Coq; `words`: why it does not accept."""

    verdict: str
    theorems: tuple[str, ...] = ()
    words: str = ""

    @property
    def line(self) -> str:
        """For people: "proved checker: accepts, theorem …"."""
        if self.verdict == "accepts":
            several = "theorem" if len(self.theorems) == 1 else "theorems"
            return f"proved checker: accepts, {several} {', '.join(self.theorems)}"
        return (
            f"proved checker: {self.verdict}{' this kind' * (self.verdict == 'does not cover')}: {self.words}"
        )


def find_proved_checker() -> Path:
    """Where the program is: named by the environment, built in this checkout, or on the PATH."""
    named = os.environ.get(PLACE)
    if named is not None:
        if not os.access(named, os.X_OK) or not Path(named).is_file():
            raise InputError(
                f"{PLACE} is {shown(named)!r}, which is not a program that can be run", hint=_INSTALL
            )
        return Path(named)
    if _BUILT.is_file():
        return _BUILT
    on_path = shutil.which(PROGRAM)
    if on_path is None:
        raise InputError("the proved checker is not installed on this machine", hint=_INSTALL)
    return Path(on_path)


def ask_proved_checker(certificate: str | Path, digest: str, seconds: float) -> ProvedAnswer:
    """What it says of the file with this digest, within so many seconds."""
    program = find_proved_checker()
    try:
        done = subprocess.run(
            [program, str(certificate)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="backslashreplace",
            timeout=seconds,
            check=False,
        )
    except OSError as error:
        words = f"the proved checker {shown(str(program))} cannot be run: {error.strerror}"
        raise InputError(words, hint=_INSTALL) from error
    except subprocess.TimeoutExpired as error:
        words = f"the proved checker takes more than {seconds:g} s; --budget allows more, such as --budget 1h"
        raise CannotCertify(words) from error
    lines = [line.partition(": ") for line in done.stdout.splitlines()]
    answers = {name: value for name, _, value in lines}
    verdict = _VERDICTS.get(done.returncode)
    if verdict == "accepts" and answers.get("digest") != digest:
        verdict = None
    if verdict is None:
        raise CannotCertify(f"the proved checker {shown(str(program))} gave no answer that can be used")
    if verdict == "accepts":
        return ProvedAnswer(verdict, tuple(answers.get("theorems", "").split()))
    return ProvedAnswer(verdict, words=shown(next((value for _, _, value in lines if value), "no reason")))
