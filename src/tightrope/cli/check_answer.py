"""What `check` prints and writes of one P or R: values of initial states, and of all where asked for."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec import UNSET, UnsetType

from tightrope.io.answers import InitialFacts, PropertyAnswer, StateValue
from tightrope.io.results import Span, assumed_facts
from tightrope.model.factored import JOINT_BOUNDS
from tightrope.model.initial_values import InitialValues
from tightrope.numerics.text import interval_text, text_above, text_below
from tightrope.prism.properties.query import Query
from tightrope.solver.solution import Solution, Status
from tightrope.verdict import Assumed, Verdict


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
        """True where it is true in every initial state: the least or the greatest value decides."""
        if self.query.comparison is None:
            return None
        decides = self.value.least if self.query.comparison.startswith(">") else self.value.greatest
        return self.query.answer(*decides)

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
        return f"{self.query.text}: {self._status.value}"

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
            assumptions=assumed_facts(self.verdict),
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
    return InitialFacts(value.states, Span(*value.least), Span(*value.greatest))


def _span(lower: float, upper: float) -> str:
    return interval_text(lower, upper)
