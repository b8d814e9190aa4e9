"""What `check` prints and writes of its answers: of one P or R, and of properties that are more than that.

Of one P or R these are the values of the initial states, and of all states where they are wanted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType, structs

from tightrope.cli.output import (
    memory_text,
    peak_memory,
    print_facts,
    print_json,
    print_table,
    print_verdict,
    warn,
)
from tightrope.errors import InputError
from tightrope.io.coding import Real, to_plain
from tightrope.io.results import CoupledValueFacts, Interval, WitnessFacts
from tightrope.model.mdp import JOINT_BOUNDS
from tightrope.numerics.text import interval_text, text_above, text_below
from tightrope.prism.properties.query import Query
from tightrope.solver.iteration.budget import SolveOptions
from tightrope.solver.solution import OPEN, InitialValues, Solution, Status
from tightrope.verdict import Assumed, Kept, Verdict, Word

if TYPE_CHECKING:
    from tightrope.cli.sources import LoadedModel, TimedModel
    from tightrope.io.output import OutputFile
    from tightrope.logic.model_checking import Answer
    from tightrope.model.continuous import CTMC
    from tightrope.model.mdp import MDP, IntervalMDP
    from tightrope.numerics.arrays import BoolArray
    from tightrope.prism.properties.query import Query
    from tightrope.problem import Model

MOST_POINTS = 20
"""Of a trade-off, that are printed."""


class StateValue(msgspec.Struct, frozen=True):
    """A state with its bounds and what is done there."""

    state: str
    lower: Real
    upper: Real
    action: str


class InitialFacts(msgspec.Struct, frozen=True):
    """Several initial states: how many, and bounds on the least and on the greatest of their values."""

    states: int
    least: Interval
    greatest: Interval


class PropertyAnswer(msgspec.Struct, kw_only=True):
    """The value of one property; `answer` where it asks whether something is true.

    `verdict`: proved, or limit where the bounds are wider than was asked or leave it open; `why` says what
    is missing. `verdicts` are answers state by state, `notes` how the property was read, `points` what
    policies attain of several objectives. Where there are several `initial` states, the values of all of
    them lie between `lower` and `upper`.
    """

    verdict: Word
    why: str
    assumptions: list[Assumed]
    question: str | UnsetType = msgspec.field(default=UNSET, name="property")
    name: str | UnsetType = UNSET
    read_as: str | UnsetType = UNSET
    robust_form: str | UnsetType = UNSET
    lower: Real | UnsetType = UNSET
    upper: Real | UnsetType = UNSET
    initial: InitialFacts | UnsetType = UNSET
    status: str | UnsetType = UNSET
    answer: str | UnsetType = UNSET
    iterations: int | UnsetType = UNSET
    states: list[StateValue] | UnsetType = UNSET
    verdicts: dict[str, str] | UnsetType = UNSET
    notes: list[str] | UnsetType = UNSET
    points: list[list[Real]] | UnsetType = UNSET


class Built(msgspec.Struct, frozen=True):
    """How much of a model was built."""

    states: int
    all: bool


class CheckAnswer(PropertyAnswer, kw_only=True):
    """`check`: the one property's answer is the head; several are listed under `properties`."""

    model: str
    properties: list[PropertyAnswer] | UnsetType = UNSET
    built: Built
    seconds: dict[str, float]
    peak_memory: int


class DomainAnswer(msgspec.Struct, kw_only=True, frozen=True):
    """`check --sets`: the interval of a policy over the whole domain."""

    model: str
    question: str = msgspec.field(name="property")
    verdict: Word
    why: str
    assumptions: list[Assumed]
    sets: str
    policy: str
    lower: Real
    upper: Real
    status: str
    witness: dict[str, WitnessFacts | None] | None
    gap: Real | None
    coupled: CoupledValueFacts | None
    limit: Real | None
    optimality_gap: Real | None
    certificate: Interval | None
    notes: list[str]
    peak_memory: int
    seconds: dict[str, float]


@dataclass(frozen=True)
class ComposedAnswer:
    """An answer, and which states are shown besides the initial one."""

    answer: Answer
    name: str | None
    shown: BoolArray | None
    assumed: tuple[Assumed, ...] = ()

    @property
    def text(self) -> str:
        return self.answer.text

    @property
    def seconds(self) -> float:
        return self.answer.seconds

    @property
    def is_answered(self) -> bool:
        return self.answer.is_answered

    @property
    def trouble(self) -> str:
        return self.answer.trouble

    @property
    def verdict(self) -> Verdict:
        """What the answer is worth."""
        own = self.answer.verdict
        return Verdict(own.word, (*own.assumptions, *self.assumed), own.why)

    @property
    def headline(self) -> str:
        """The verdict in a line."""
        answer = self.answer
        curve = "a curve" if answer.achieved is not None else ""
        span = curve if answer.bounds is None else interval_text(*answer.bounds)
        return self.verdict.headline(answer.truth or span)

    def record(self) -> PropertyAnswer:
        answer, bounds = self.answer, self.answer.bounds
        states = UNSET if self.shown is None or bounds is None else self._state_values()
        verdicts = UNSET if self.shown is None or bounds is not None else dict(self._state_verdicts())
        return PropertyAnswer(
            verdict=self.verdict.word,
            why=self.verdict.why,
            assumptions=list(self.verdict.assumptions),
            question=answer.text,
            name=self.name or UNSET,
            lower=UNSET if bounds is None else bounds[0],
            upper=UNSET if bounds is None else bounds[1],
            initial=UNSET if self._initial is None else initial_record(self._initial),
            status=status_beside(self.verdict, answer.status),
            answer=answer.truth or UNSET,
            iterations=answer.iterations,
            states=states,
            verdicts=verdicts,
            notes=list(answer.readings) or UNSET,
            points=UNSET if answer.achieved is None else answer.achieved.points.tolist(),
        )

    def facts(self) -> list[tuple[str, str]]:
        """What is printed of the initial states."""
        answer = self.answer
        facts = [("note", reading) for reading in answer.readings]
        if answer.achieved is not None:
            points = [", ".join(f"{value:.6g}" for value in row) for row in answer.achieved.points]
            facts += [("a policy attains", point) for point in points[:MOST_POINTS]]
            if self._initial is None and answer.truth is None:
                return facts
        if self._initial is None:
            return [*facts, ("answer", answer.truth or "")]
        return [*facts, *initial_facts(self._initial)]

    @property
    def _initial(self) -> InitialValues | None:
        """The values of the initial states; None where they are verdicts."""
        answer = self.answer
        if answer.lower is None or answer.upper is None:
            return None
        return InitialValues.of(answer.structure, answer.lower, answer.upper)

    def table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]] | None:
        """Columns and rows of the states that are shown."""
        if self.shown is None:
            return None
        if self.answer.bounds is None:
            return ("state", "answer"), list(self._state_verdicts())
        rows = [(row.state, text_below(row.lower), text_above(row.upper)) for row in self._state_values()]
        return ("state", "lower", "upper"), list(rows)

    def _state_values(self) -> list[StateValue]:
        answer, shown = self.answer, self.shown
        assert answer.lower is not None and answer.upper is not None and shown is not None
        name = answer.structure.state_name
        return [
            StateValue(name(int(s)), float(answer.lower[s]), float(answer.upper[s]), "")
            for s in np.flatnonzero(shown)
        ]

    def _state_verdicts(self) -> list[tuple[str, str]]:
        answer, shown = self.answer, self.shown
        assert answer.holds is not None and answer.fails is not None and shown is not None
        name = answer.structure.state_name
        return [
            (
                name(int(s)),
                "true" if answer.holds[s] else "false" if answer.fails[s] else "not certified",
            )
            for s in np.flatnonzero(shown)
        ]


def refuse_composed(queries: Sequence[Query], given: Sequence[str]) -> None:
    """Refuse options that do not go with a query, of those that are given."""
    from tightrope.prism.properties.capabilities import Task

    for query in queries:
        for option in given:
            query.require(Task(f"check {option}"))


def claim_figure(target: Path, overwrite: bool) -> OutputFile:
    """Refuse a file that no picture can be written to, before anything is computed."""
    from tightrope.report.write import check_picture

    return check_picture(target, overwrite)


def require_curve(queries: Sequence[Query]) -> None:
    """A figure is that of two objectives which are both asked for."""
    from tightrope.logic.model_checking import is_curve

    if len(queries) != 1 or not is_curve(queries[0].formula):
        raise InputError(
            "--figure goes with one property that asks for two objectives",
            hint='multi(Pmax=? [ F "a" ], Pmin=? [ F "b" ])',
        )


def write_figure(target: OutputFile, result: PlainAnswer | ComposedAnswer) -> None:
    """The curve of two objectives."""
    from tightrope.report.curves import write_pareto_curve

    assert isinstance(result, ComposedAnswer)
    write_pareto_curve(result.answer, target)


def write_controller(target: OutputFile, result: ComposedAnswer, model_hash: str, over: str) -> None:
    """The policy of a temporal formula, with the interval that it attains."""
    from tightrope.io.results import CertifiedFacts

    answer = result.answer
    if answer.controller is None or answer.attained is None:
        raise InputError(
            f"--policy-out does not go with {answer.text}: its automaton is another program's",
            hint="leave --ltl-translator out",
        )
    lower, upper = answer.attained
    certified = CertifiedFacts(
        question=answer.text, lower=lower, upper=upper, over=over, status=answer.status
    )
    target.check()
    answer.controller.save(target.path, model_hash, to_plain(certified))


def certify_composed(
    target: OutputFile,
    result: ComposedAnswer,
    query: Query,
    whole: Model,
    theta: Sequence[Fraction] | None,
    options: SolveOptions,
    about: Mapping[str, object],
) -> None:
    """Write the certificate of a long-run average or a temporal formula, about the model as it was given."""
    from tightrope.certify.certificate_file import save_certificate
    from tightrope.certify.problem import asked_of
    from tightrope.certify.solved import composed_certificate

    request = asked_of(query, options.translator)
    proof = composed_certificate(whole, request, theta, options, options.assume_support, about)
    claim, bounds = proof.claims[0], result.answer.bounds
    if bounds is not None and (claim.lower < bounds[0] or claim.upper > bounds[1]):
        low, high = text_below(claim.lower), text_above(claim.upper)
        warn(f"the certificate proves [{low}, {high}], a little less than the answer says")
    target.check()
    save_certificate(proof, target.path)


def answer_composed(
    query: Query,
    model: MDP | IntervalMDP | CTMC,
    options: SolveOptions,
    all_states: bool,
    controller: bool = False,
) -> ComposedAnswer:
    """Answer a property that is not plain."""
    from tightrope.logic.model_checking import check_query

    chosen = replace(options, controller=controller)
    result = check_query(query, model, chosen, options.assume_support, all_states)
    shown = np.ones(model.states, np.bool_) if all_states else result.listed
    return ComposedAnswer(result, query.name, shown, support_assumed(options.assume_support))


def support_assumed(least: float | None) -> tuple[Assumed, ...]:
    """What `--assume-support` states."""
    if least is None:
        return ()
    words = f"no transition that can happen has a probability below {least:g}"
    return (Assumed("support", Kept.STATED, words),)


def report_answers(
    source: str,
    loaded: LoadedModel | TimedModel,
    answers: Sequence[PlainAnswer | ComposedAnswer],
    as_json: bool,
) -> None:
    """Print all answers, as one JSON object or as tables; the verdict of all of them first."""
    verdict = Verdict.worst([answer.verdict for answer in answers])
    if as_json:
        results = [answer.record() for answer in answers]
        seconds = {
            "build": round(loaded.seconds, 6),
            "solve": round(sum(answer.seconds for answer in answers), 6),
        }
        head = structs.asdict(results[0])
        if len(results) > 1:
            judged = {"verdict": verdict.word, "why": verdict.why, "assumptions": list(verdict.assumptions)}
            head = {**judged, "properties": results}
        built = Built(loaded.model.states, not loaded.is_partial)
        print_json(CheckAnswer(model=source, **head, built=built, seconds=seconds, peak_memory=peak_memory()))
        return
    together = f"{sum(answer.is_answered for answer in answers)} of {len(answers)} properties answered"
    print_verdict(verdict, answers[0].headline if len(answers) == 1 else verdict.headline(together))
    for answer in answers:
        facts = answer.facts()
        if len(answers) > 1:
            facts.insert(0, ("verdict", answer.verdict.word.value))
        if loaded.is_partial:
            size = f"{loaded.model.states:,} states"
            facts.append(("built", f"{size}, none behind targets or forbidden ones (--build-all)"))
        facts.append(("seconds", f"{loaded.seconds:.3g} to build, {answer.seconds:.3g} to solve"))
        facts.append(("memory", memory_text()))
        print_facts(answer.text, facts)
        if (table := answer.table()) is not None:
            print_table("", *table)


@dataclass(frozen=True)
class PlainAnswer:
    """A question with its solution."""

    query: Query
    solution: Solution
    seconds: float
    of_all_states: bool = False
    has_factors: bool = False
    """Whether the model knows independent factors of synchronised intervals."""
    assumed: tuple[Assumed, ...] = ()

    @property
    def text(self) -> str:
        return self.query.text

    @property
    def value(self) -> InitialValues:
        return self.solution.at_initial_states

    @property
    def verdict(self) -> Verdict:
        """What the answer is worth."""
        return Verdict.of(self.assumed, limit=None if self.is_answered else self.trouble)

    @property
    def headline(self) -> str:
        """The verdict in a line."""
        return self.verdict.headline(self.truth or _span(self.value.lower, self.value.upper))

    @property
    def truth(self) -> str | None:
        """True where it is true in every initial state."""
        return self.solution.truth

    @property
    def is_answered(self) -> bool:
        """A threshold is answered by any bounds that decide it, a number only by close ones."""
        if self.truth is not None:
            return self.truth != "not certified"
        return self._status is Status.CERTIFIED

    @property
    def _status(self) -> Status:
        """That of what was asked: the initial state, or all of them."""
        return self.solution.status if self.of_all_states else self.solution.initial_status

    @property
    def status(self) -> str:
        return self._status.name.lower().replace("_", "-")

    @property
    def trouble(self) -> str:
        why = self._status.value
        if self.truth == OPEN and self._status is Status.CERTIFIED:
            why = (
                f"its bounds {_span(self.value.lower, self.value.upper)} lie on both sides of the threshold: "
                "the value is equal to it, as far as rounding lets us tell. Move the threshold."
            )
        return f"{self.query.text}: {why}"

    @property
    def notes(self) -> list[str]:
        """What a reader must be told of how it was read."""
        return [JOINT_BOUNDS] if self.has_factors and not self.solution.is_factored else []

    def record(self) -> PropertyAnswer:
        value = self.value
        reading = self.query.reading
        return PropertyAnswer(
            verdict=self.verdict.word,
            why=self.verdict.why,
            assumptions=list(self.verdict.assumptions),
            question=self.query.text,
            name=self.query.name or UNSET,
            read_as=UNSET if reading is None else reading.taken,
            robust_form=UNSET if reading is None else reading.robust,
            lower=value.lower,
            upper=value.upper,
            initial=initial_record(value),
            status=status_beside(self.verdict, self.status),
            answer=UNSET if self.truth is None else self.truth,
            iterations=self.solution.iterations,
            states=_all_states(self) if self.of_all_states else UNSET,
            notes=self.notes or UNSET,
        )

    def facts(self) -> list[tuple[str, str]]:
        """What is printed of the initial states."""
        facts = initial_facts(self.value)
        facts = [*(("note", note) for note in self.notes), *facts]
        if (reading := self.query.reading) is not None:
            facts.insert(0, ("read as", f"{reading.taken}: nature for the agent; robust: {reading.robust}"))
        if self.truth is not None:
            facts.insert(0, ("answer", self.truth))
        return facts

    def table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]] | None:
        """Columns and rows of all states, where they were asked for."""
        if not self.of_all_states:
            return None
        rows = [
            (row.state, text_below(row.lower), text_above(row.upper), row.action) for row in _all_states(self)
        ]
        return ("state", "lower", "upper", "action"), list(rows)


def status_beside(verdict: Verdict, status: str) -> str:
    """The status of an answer, which never says more or less than its verdict."""
    if verdict.is_proved:
        return status if status == "automaton-believed" else "certified"
    return verdict.word.value if status == "certified" else status


def _all_states(answer: PlainAnswer) -> list[StateValue]:
    structure, solution = answer.solution.kernel.structure, answer.solution
    return [
        StateValue(
            structure.state_name(s),
            float(solution.lower[s]),
            float(solution.upper[s]),
            structure.action_name(int(c)) if (c := solution.choice[s]) >= 0 else "",
        )
        for s in range(structure.states)
    ]


def initial_facts(value: InitialValues) -> list[tuple[str, str]]:
    """What is printed of the values of initial states."""
    if value.states == 1:
        return [("value", _span(*value.least))]
    return [
        ("value", f"{_span(value.lower, value.upper)} over {value.states:,} initial states"),
        ("least", _span(*value.least)),
        ("greatest", _span(*value.greatest)),
    ]


def initial_record(value: InitialValues) -> InitialFacts | UnsetType:
    """The same for JSON; nothing where there is one initial state."""
    if value.states == 1:
        return UNSET
    return InitialFacts(value.states, Interval(*value.least), Interval(*value.greatest))


def _span(lower: float, upper: float) -> str:
    return interval_text(lower, upper)
