"""What `check` says of a property: one record, however it was answered, for JSON and for the terminal."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType, structs

from tightrope.cli import output as screen
from tightrope.io.coding import Real, record_of
from tightrope.io.results import CoupledValueFacts, DomainPart, Interval, Judged, WitnessFacts
from tightrope.model.mdp import JOINT_BOUNDS
from tightrope.numerics import text as texts
from tightrope.numerics.machine import peak_memory
from tightrope.prism.properties.query import Query
from tightrope.solver.solution import OPEN, InitialValues, Solution, Status
from tightrope.verdict import Assessment, Assumed

if TYPE_CHECKING:
    from tightrope.cli.sources import Loaded
    from tightrope.logic.model_checking import Answer
    from tightrope.model.policy import Policy
    from tightrope.model.pomdp import Controller
    from tightrope.numerics.arrays import BoolArray
    from tightrope.trees.partition import Partition


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


class PropertyAnswer(Judged, kw_only=True):
    """The value of one property; `answer` where it asks whether something is true.

    `verdict`: proved, or limit where the bounds are wider than was asked or leave it open; `why` says what
    is missing. `verdicts` are answers state by state, `notes` how the property was read, `points` what
    policies attain of several objectives. Where there are several `initial` states, the values of all of
    them lie between `lower` and `upper`.
    """

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


class DomainAnswer(Judged, kw_only=True):
    """`check --sets`: the interval of a policy over the whole domain."""

    model: str
    question: str = msgspec.field(name="property")
    sets: str
    policy: str
    lower: Real | None
    upper: Real | None
    truth: str | None = None
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


class PartitionAnswer(Judged, kw_only=True):
    """`check --open`: where in the domain a property holds. `holds`, `fails` and `open` are shares of it."""

    model: str
    question: str = msgspec.field(name="property")
    parameters: tuple[str, ...]
    holds: float
    fails: float
    open: float
    parts: tuple[DomainPart, ...]
    status: str
    peak_memory: int
    seconds: dict[str, float]


@dataclass(frozen=True, eq=False)
class Answered:
    """A property, its result as it was computed, and what is said of it."""

    query: Query
    result: object
    seconds: float
    record: PropertyAnswer
    whose: str = ""

    @property
    def verdict(self) -> Assessment:
        """What the answer is worth."""
        return self.record.judged

    @property
    def headline(self) -> str:
        """The verdict in a line."""
        record, text = self.record, self.query.text
        if record.answer:
            claim = f"{text} is {record.answer}"
        elif relation := _relation(record):
            claim = texts.claim_text(text, relation, self.whose)
        else:
            claim = f"{len(record.points or ())} points of the trade-off of {text}"
        return self.verdict.headline(claim)


About: TypeAlias = "tuple[Sequence[Fraction] | None, Policy | Controller | None, Mapping[str, object]]"
"""What a certificate is about beside its problem: a point, a given policy, and words."""


def describe_solution(
    query: Query, solution: Solution, all_states: bool, has_factors: bool, assumed: tuple[Assumed, ...]
) -> PropertyAnswer:
    """Describe the value of one P or R; a threshold is answered by any bounds that decide it."""
    value, truth, structure = solution.at_initial_states, solution.truth, solution.kernel.structure
    status = solution.status if all_states else solution.initial_status
    trouble = status.value
    if truth == OPEN and status is Status.CERTIFIED:
        trouble = (
            f"its bounds {texts.interval_text(value.lower, value.upper)} lie on both sides of the threshold: "
            "the value is equal to it, as far as rounding lets us tell. Move the threshold."
        )
    is_answered = status is Status.CERTIFIED if truth is None else truth != OPEN
    states = [
        StateValue(
            structure.state_name(s),
            float(solution.lower[s]),
            float(solution.upper[s]),
            structure.action_name(int(c)) if (c := solution.choice[s]) >= 0 else "",
        )
        for s in range(structure.states if all_states else 0)
    ]
    reading = query.reading
    return _record(
        query,
        Assessment.of(assumed, limit=None if is_answered else f"{query.text}: {trouble}"),
        value,
        status.name.lower().replace("_", "-"),
        read_as=UNSET if reading is None else reading.taken,
        robust_form=UNSET if reading is None else reading.robust,
        answer=truth or UNSET,
        iterations=solution.iterations,
        states=states if all_states else UNSET,
        notes=[JOINT_BOUNDS] if has_factors and not solution.is_factored else UNSET,
    )


def describe_answer(
    query: Query, answer: Answer, shown: BoolArray | None, assumed: tuple[Assumed, ...]
) -> PropertyAnswer:
    """What is said of any other property; `shown` are the states that are listed, with values or truths."""
    name, own = answer.structure.state_name, answer.verdict
    listed = [] if shown is None else np.flatnonzero(shown).tolist()
    value, states, verdicts = None, None, None
    if answer.lower is not None and answer.upper is not None:
        value = InitialValues.of(answer.structure, answer.lower, answer.upper)
        states = [StateValue(name(s), float(answer.lower[s]), float(answer.upper[s]), "") for s in listed]
    elif answer.holds is not None and answer.fails is not None:
        truths = {s: "true" if answer.holds[s] else "false" if answer.fails[s] else OPEN for s in listed}
        verdicts = {name(s): truth for s, truth in truths.items()}
    return _record(
        query,
        Assessment(own.word, (*own.assumptions, *assumed), own.why),
        value,
        answer.status,
        answer=answer.truth or UNSET,
        iterations=answer.iterations,
        states=UNSET if shown is None or states is None else states,
        verdicts=UNSET if shown is None or verdicts is None else verdicts,
        notes=list(answer.readings) or UNSET,
        points=UNSET if answer.achieved is None else answer.achieved.points.tolist(),
    )


def _record(
    query: Query, verdict: Assessment, value: InitialValues | None, status: str, **others: object
) -> PropertyAnswer:
    """The status never says more or less than the verdict."""
    if verdict.is_proved:
        status = status if status == "automaton-believed" else "certified"
    elif status == "certified":
        status = verdict.word.value
    return record_of(
        PropertyAnswer,
        **verdict.facts,
        question=query.text,
        name=query.name or UNSET,
        lower=UNSET if value is None else value.lower,
        upper=UNSET if value is None else value.upper,
        initial=UNSET
        if value is None or value.states == 1
        else InitialFacts(value.states, Interval.of(*value.least), Interval.of(*value.greatest)),
        status=status,
        **others,
    )


def report_answers(loaded: Loaded, answers: Sequence[Answered], is_part: bool = False) -> Assessment:
    """Print all answers, and return the verdict of all; `is_part`: the build ended when it was decided."""
    verdict = Assessment.worst([answer.verdict for answer in answers])
    if screen.common.json:
        records = [answer.record for answer in answers]
        seconds = {"build": loaded.seconds, "solve": sum(answer.seconds for answer in answers)}
        head = structs.asdict(records[0])
        if len(records) > 1:
            head = {**verdict.facts, "properties": records}
        screen.print_json(
            CheckAnswer(
                model=loaded.source,
                **head,
                built=Built(loaded.model.states, not loaded.is_partial),
                seconds=round_seconds(seconds),
                peak_memory=peak_memory(),
            )
        )
    for answer in [] if screen.common.json else answers:
        rest = _shown(loaded, answer, is_part)
        screen.show(answer.headline, replace(rest, rows=[*screen.doubts_of(answer.verdict), *rest.rows]))
    sys.stdout.flush()  # the answer comes before files, which may fail
    return verdict


def _shown(loaded: Loaded, answer: Answered, is_part: bool) -> screen.Content:
    record, relation, initial = answer.record, _relation(answer.record), answer.record.initial
    claim, span = texts.claim_text(answer.query.text, relation), _relation(record, texts.interval_text)
    several = initial if isinstance(initial, InitialFacts) else None
    states = screen.count(loaded.model.states, "state")
    part = "enough for this question" if is_part else "none behind targets or forbidden ones"
    robust = f"{record.read_as}: nature helps the agent. Robust: {record.robust_form}"
    rows: screen.Rows = [
        ("property", None if record.answer else answer.query.text),
        ("value", claim if record.answer and relation else None),
        ("read as", robust if record.read_as else None),
        *screen.assumed_facts(answer.verdict),
        ("note", record.notes or None),
        ("attained", [", ".join(map(texts.number_text, row)) for row in record.points or ()]),
        ("initial", several and f"{several.states:,} initial states"),
        ("least", several and str(several.least)),
        ("greatest", several and str(several.greatest)),
    ]
    more: screen.Rows = [
        ("bounds", span),
        ("built", f"{states}, {part} (--build-all)" if loaded.is_partial else None),
        *screen.spent({"build": loaded.seconds, "solve": answer.seconds}),
    ]
    return screen.Content(rows, more, _states(record))


def round_seconds(seconds: Mapping[str, float]) -> dict[str, float]:
    """Seconds by phase as JSON has them."""
    return {phase: round(spent, 6) for phase, spent in seconds.items()}


def _states(record: PropertyAnswer) -> screen.Table | None:
    """The states that are listed, where there are some."""
    if isinstance(record.verdicts, dict):
        return screen.Table(("state", "answer"), list(record.verdicts.items()))
    if not isinstance(record.states, list):
        return None
    acts = any(row.action for row in record.states)
    rows = [
        (row.state, texts.text_below(row.lower), texts.text_above(row.upper), *([row.action] if acts else []))
        for row in record.states
    ]
    return screen.Table(("state", "lower", "upper", *(["action"] if acts else [])), rows)


def _relation(record: PropertyAnswer, shown: Callable[[float, float], str] = texts.value_text) -> str:
    """The value in numbers, as a relation or otherwise `shown`; empty where there is no value."""
    if isinstance(record.lower, UnsetType) or isinstance(record.upper, UnsetType):
        return ""
    is_total = re.search(r"\[\s*C\s*\]", str(record.question))
    if is_total and shown is texts.value_text and record.lower == math.inf:
        return texts.bounded(record.lower, is_lower=True)
    return shown(record.lower, record.upper)


def report_domain(answer: DomainAnswer, details: screen.Rows) -> None:
    """Print the interval over a domain; `details` are facts that are printed of a coupled value."""
    verdict, claim = answer.judged, f"{answer.question} is {answer.truth}"
    if answer.lower is not None and answer.upper is not None:
        whose = "" if answer.policy.startswith("none") else answer.policy
        claim = texts.claim_text(answer.question, texts.value_text(answer.lower, answer.upper), whose)
    proved = answer.certificate and f"proves {answer.certificate}"
    rows = [("property", answer.question), ("sets", answer.sets), ("certificate", proved)]
    more = [*details, ("note", answer.notes), *screen.spent(answer.seconds)]
    headline = verdict.headline(claim, "over the domain")
    screen.answer(verdict, headline, answer, lambda: screen.Content(rows, more))


def report_partition(loaded: Loaded, query: Query, partition: Partition, share: float) -> Assessment:
    """Print the parts of a domain, of which at most a `share` should be open; the largest first."""
    shares = partition.shares
    words = f"more than {100 * share:.3g}% of the domain is open: raise --time-limit or --open"
    verdict = Assessment.of(limit=words if shares["open"] > share else None)
    answer = record_of(
        PartitionAnswer,
        **verdict.facts,
        **shares,
        model=loaded.source,
        question=query.text,
        parameters=partition.names,
        parts=partition.parts,
        status="certified" if verdict.is_proved else "limit",
        peak_memory=peak_memory(),
        seconds=round_seconds({"build": loaded.seconds, "solve": partition.seconds}),
    )
    rows = [
        [*(f"[{side.lower:.5g}, {side.upper:.5g}]" for side in part.box), part.truth]
        for part in sorted(partition.parts, key=lambda part: (part.truth == OPEN, -part.volume))
    ]
    claim = ", ".join(f"{word} on {100 * size:.1f}%" for word, size in shares.items())
    more = [("parts", f"{len(rows):,}, the largest first"), *screen.spent(answer.seconds)]
    table = screen.Table([*partition.names, "holds"], rows, numeric=False)
    headline = verdict.headline(f"{query.text} {claim} of the domain")
    screen.answer(verdict, headline, answer, lambda: screen.Content((), more, table))
    return verdict
