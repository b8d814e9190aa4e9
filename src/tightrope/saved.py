"""Results read from the directories of `result.save`, `tightrope learn -o` and `online -o`.

Restored: the guarantee with interval, verdict, confidence budget and notes; parameters; policies; contents of
plots and reports. Not restored: sets, region and solutions, so there are no values per state and no new
certificates. Policies need the model: it is loaded from its recorded source, and must be identical, or given.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path

import numpy as np
from msgspec import UnsetType

from tightrope.atomic import path_of
from tightrope.errors import InputError, Location, ReadingWarning, TightropeError
from tightrope.io import results
from tightrope.learning.result import LearningResult, Result
from tightrope.loading import BENCHMARK, load
from tightrope.logic.product_problem import product_problem
from tightrope.model.mdp import IntervalMDP
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy
from tightrope.model.states import Table
from tightrope.model.structure import ParametricReward
from tightrope.numerics.record import Facts
from tightrope.prism.properties.capabilities import QueryKind
from tightrope.problem import Problem
from tightrope.report.policy_map import PolicyMap
from tightrope.report.what_if import REFUTED, TOO_LARGE, WhatIf, is_too_large, what_if
from tightrope.report.write import load_policies, policy_beside
from tightrope.shield import Shield
from tightrope.solver.solve import solve
from tightrope.statistics.estimates import constant_values
from tightrope.verdict import Word


def load_result(path: str | PathLike[str], *, model: ParametricMDP | None = None) -> SavedResult:
    """Read a saved result.

    Parameters
    ----------
    path : str or path
        Its directory or `result.json`; of several kinds of sets the last is read.
    model : optional
        Needed for the policies alone, if the model cannot be loaded from its source.

    Returns
    -------
    SavedResult
        Numbers, policies and reports as in `LearningResult`.

    Examples
    --------
    >>> import tempfile
    >>> import tightrope as tr
    >>> bench = tr.benchmark("betting(5)")
    >>> data = tr.Simulator(bench.at_truth.model, model_hash=bench.model.hash()).generative(1000, seed=1)
    >>> result = tr.learn(bench.problem, data, delta=0.01, sets="tied")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tr.load_result(result.save(f"{folder}/run")) == result
    True
    """
    file = results.result_file(path_of(path))
    saved = SavedResult(results.read_result(file), file, given=model)
    if model is not None:
        saved._refuse_another(model)
    return saved


@dataclass(frozen=True, eq=False, repr=False)
class SavedResult(Result):
    """A result that was written earlier; its names are those of `LearningResult`.

    >>> import tempfile
    >>> import tightrope as tr
    >>> model = tr.build_from_rows([(0, "", {0: tr.free, 1: tr.free}), (1, "", {1: 1})], labels={"end": [1]})
    >>> result = tr.learn(model.problem('Pmax=? [ F<=3 "end" ]'), [[(0, "", 1)]] * 9, delta=0.1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     saved = tr.load_result(result.save(f"{folder}/run"), model=model)
    >>> saved.guarantee == result.guarantee, saved.interval == result.interval
    (True, True)
    """

    document: results.ResultDocument
    file: Path
    given: ParametricMDP | None = None
    which: int = -1

    @property
    def outcome(self) -> results.StoredOutcome:
        """All that is said of the result: the keys of `tightrope learn --json`, as one record."""
        return self.document.results[self.which]

    @property
    def all(self) -> tuple[SavedResult, ...]:
        """The results of all kinds of sets that were written together."""
        count = len(self.document.results)
        return tuple(SavedResult(self.document, self.file, self.given, i) for i in range(count))

    @property
    def value(self) -> results.Interval | None:
        """The certified interval of the policy that was given, where one was."""
        return self.outcome.value

    @property
    def parameters(self) -> dict[str, results.Interval]:
        """What the data leave of each parameter; its whole domain where the sets have no region."""
        known = self.outcome.widths.parameters
        whole = {each.name: (each.lower, each.upper) for each in self.document.model.parameters}
        return {name: results.Interval.of(*known.get(name, ends)) for name, ends in whole.items()}

    @property
    def ledger(self) -> results.LedgerFacts:
        """How δ was spent, and what the guarantee assumes of the data."""
        return self.outcome.ledger

    @property
    def contradiction(self) -> str | None:
        """Words about an empty region, else None."""
        return self.outcome.contradiction

    @property
    def fit(self) -> results.ModelFit | None:
        """Whether the data fit the model; None without data, and in results of earlier versions."""
        fit = self.outcome.fit
        return None if isinstance(fit, UnsetType) else fit

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(self.outcome.notes)

    @property
    def seconds(self) -> Mapping[str, float]:
        """By phase."""
        return self.outcome.seconds

    @cached_property
    def model(self) -> ParametricMDP:
        """The model that was learned about."""
        if self.given is not None:
            return self.given
        facts = self.document.model
        hint = "give it: tr.load_result(path, model=…)"
        try:
            constants, domains = dict(facts.constants) or None, [facts.domain or None]
            if facts.source.startswith(BENCHMARK):  # it has a domain of its own, which counts once
                domains.insert(0, None)
            for domain in domains:
                model = load(facts.source, const=constants, domain=domain)
                if model.hash() == facts.hash:
                    break
        except TightropeError as error:
            raise InputError(
                f"the model of this result cannot be loaded from {facts.source!r}: {error}",
                Location(str(self.file)),
                hint,
            ) from error
        self._refuse_another(model)
        if not isinstance(model, ParametricMDP):
            raise InputError(
                "this result is about a controller of a partially observable model, not a policy of states",
                Location(str(self.file)),
                "read its numbers, and take the model from tr.load",
            )
        return model

    @property
    def policy(self) -> Policy:
        """The robust policy: the one whose guarantee is the best."""
        return self._read("robust")

    @property
    def optimistic_policy(self) -> Policy:
        """The policy that is best if nature helps."""
        return self._read("optimistic")

    def shield(self, *, slack: float, patience: int | None = None) -> Shield:
        """Return a shield over the saved intervals; `slack`, `patience` as in `LearningResult.shield`."""
        problem = self.problem
        if problem.query.kind is QueryKind.LTL:
            problem = product_problem(self.model, problem.query)[0]
        model, listed, bounds = problem.model, self.document.expressions, self.outcome.bounds
        assert isinstance(model, ParametricMDP)
        partial = listed.total > len(listed.index) or any(
            one.name == "misfit" for one in self.verdict.assumptions
        )
        if partial or isinstance(problem.objective.reward, ParametricReward):
            raise InputError(
                "this result does not contain all intervals", hint="make the shield from its data"
            )
        lower, upper = np.zeros(len(model.expressions)), np.ones(len(model.expressions))
        constant, lower[constant], upper[constant] = constant_values(model.expressions)
        lower[listed.index], upper[listed.index] = bounds.lower, bounds.upper
        over = IntervalMDP(model.structure, lower[model.expression], upper[model.expression])
        objective = replace(problem.objective, nature=problem.objective.agent.opposite)
        options = self.document.options
        solution = solve(over, objective, precision=options.precision, assume_support=options.assume_support)
        seen = self.document.data.provenance
        known = self.verdict.facts | {"confidence": 1 - self.ledger.delta}
        known |= {} if isinstance(seen, UnsetType) else {"made_from": seen}
        return Shield.of(solution, problem, slack=slack, patience=patience, **known)

    def to_dataframe(self) -> Table:
        """Return the robust policy; values per state are not restored."""
        return self.policy.to_dataframe()

    def _read(self, name: str) -> Policy:
        files = self.outcome.files
        path = policy_beside(self.file, [] if isinstance(files, UnsetType) else files, name)
        if path is None:
            raise InputError(f"there is no {name} policy beside {self.file}")
        return Policy(self.model, path)

    def _refuse_another(self, model: object) -> None:
        if not hasattr(model, "hash") or model.hash() != self.document.model.hash:
            raise InputError(
                f"this result is about another model: {self.document.model.title}",
                Location(str(self.file)),
                "give the model that was learned with, with the same constants and domain",
            )

    @property
    def _maximises(self) -> bool:
        return self.document.maximises

    @property
    def _question(self) -> str:
        return self.document.question

    @property
    def _has_choices(self) -> bool:
        return self.document.model.choices > self.document.model.states

    def _document(self, shapes: bool = False) -> results.ResultDocument:
        is_last = self.which in (-1, len(self.document.results) - 1)
        return self.document if is_last else self.document.having(results=[self.outcome])

    def _policy_map(self) -> PolicyMap | None:
        return load_policies(self._document())

    @property
    def problem(self) -> Problem:
        """The question about the model, as it was asked."""
        facts, options = self.document.model, self.document.options
        words = {
            name: given
            for name in ("discount", "terminal_reward")
            if not isinstance(given := getattr(options, name), UnsetType)
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ReadingWarning)
            return Problem(self.model, self.document.question, const=facts.constants, **words)

    def _what_if(self) -> WhatIf:
        if is_too_large(self.document.model.transitions):
            return WhatIf(remark=TOO_LARGE)
        if self.verdict.word is Word.CONTRADICTED:
            return WhatIf(remark=REFUTED)
        try:
            problem = self.problem
            files = self.outcome.files
            listed = [] if isinstance(files, UnsetType) else files
            given = any(file.endswith("given-policy.json") for file in listed)
            policies = {name: self._read(name) for name in ("robust", *(["given"] if given else []))}
        except TightropeError as error:
            return WhatIf(remark=f"left out: {getattr(error, 'message', error)}")
        shapes = {shape.kind: shape.tracks or {} for shape in self.document.regions}
        certified = {"robust": self.interval, **({"given": self.value} if self.value is not None else {})}
        return what_if(problem, policies, shapes.get(self.outcome.region or "", {}), certified)

    def __eq__(self, other: object) -> bool:
        """Whether the same is said of both: numbers, ledger, notes; not how long it took."""
        if not isinstance(other, SavedResult | LearningResult):
            return NotImplemented
        return self._identity == other._identity and _describe(self) == _describe(other)

    def __hash__(self) -> int:
        return hash(self._identity)

    @property
    def _identity(self) -> tuple[str, str, float]:
        return self.document.model.hash, self.document.question, self.guarantee

    def _title_(self) -> str:
        return f"SavedResult of {self.document.question} on {self.document.model.title}"

    def _facts_(self) -> Facts:
        return [
            ("verdict", self.headline(9)),
            *(("attention", reason) for reason in self.verdict.reasons),
            ("interval", str(self.interval)),
            ("sets", self.outcome.label),
            ("from", str(self.file)),
        ]


def _describe(result: Result) -> dict[str, object]:
    return {key: value for key, value in result.to_json().items() if key != "seconds"}
