"""The question and the answer in words, with the guarantee and what it assumes.

Bounds in sentences are rounded to the safe side, so that the sentence itself is true.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal

from tightrope.io.results import Outcome, ResultDocument
from tightrope.report.picture import at_least, at_most, interval_text, number
from tightrope.report.question_words import quantity_of, question_sentence
from tightrope.verdict import Word


@dataclass(frozen=True)
class Statement:
    """What was asked, what is answered, on which condition, and what a reader must know beside it."""

    question: str
    notation: str
    headline: str
    answer: str
    assumption: str
    cautions: tuple[str, ...]


def quantity(run: ResultDocument) -> str:
    """What values are, as the label of an axis: a probability, an expected reward or an expected cost."""
    return quantity_of(run.question, run.maximises)


def confidence(delta: float) -> str:
    """1 − δ as people write it."""
    return f"{(Decimal(1) - Decimal(repr(delta))).normalize():f}"


def best_case(run: ResultDocument, outcome: Outcome) -> str:
    """The optimistic value, which no policy exceeds: rounded so that this stays true."""
    return at_most(outcome.optimistic) if run.maximises else at_least(outcome.optimistic)


def statement(run: ResultDocument) -> Statement:
    """The answer is that of the run's main outcome."""
    main, what = run.main, quantity(run)
    verdict, sure = main.judged, confidence(main.ledger.delta)
    with_it = f"with confidence {sure}" if main.ledger.delta else "over the domain"
    side = "least" if run.maximises else "most"
    bound = at_least(main.guarantee) if run.maximises else at_most(main.guarantee)
    question = question_sentence(run.question, run.maximises)
    inside = interval_text(main.robust_policy.lower, main.robust_policy.upper)
    if math.isinf(main.guarantee):
        headline = verdict.headline("nothing finite", with_it)
        answer = (
            f"The data rule out no parameters under which every policy's {what} is unbounded, so the "
            "robust policy has no finite guarantee."
        )
    else:
        headline = verdict.headline(f"at {side} {bound}", with_it)
        answer = (
            f"{with_it[:1].upper()}{with_it[1:]} the {what} of the robust policy is at {side} {bound}: its "
            f"true value lies in {inside} ({_source(main)}), and no policy does better than "
            f"{best_case(run, main)}."
        )
    if main.value is not None:
        answer += f" The given policy's value lies in {interval_text(main.value.lower, main.value.upper)}."
    word = verdict.word.name
    if verdict.word is Word.CONTRADICTED:
        answer = f"{word}: {verdict.why} So no number here is guaranteed; what was computed: {inside}."
    elif verdict.doubts:
        why = "; ".join(verdict.doubts)
        answer = (
            f"{word}: nothing is guaranteed, since not all that the method assumes is known to hold ({why}). "
            f"If it did, the {what} of the robust policy would lie in {inside} ({_source(main)})."
        )
    else:
        answer = f"{word}: {answer[:1].lower()}{answer[1:]}"
    if run.true_value is not None:
        answer += f" At the true point, where it is known, the best value is {number(run.true_value.lower)}."
    return Statement(question, run.question, headline, answer, _assumption(main), _cautions(run))


def _source(outcome: Outcome) -> str:
    if outcome.region is None or outcome.contradiction is not None:
        return f"{outcome.sets} sets"
    return f"{outcome.sets} sets over the {outcome.region} region"


def _statements(run: ResultDocument) -> int:
    """Of how many confidence statements the results of the run are made."""
    return len({tuple(outcome.ledger.lines) for outcome in run.results})


def _assumption(outcome: Outcome) -> str:
    """That the model is right, and the ledger's line about the assumption as a sentence about the data."""
    right = "If the model is right: it has the states and transitions of the real process, and the true "
    right += "parameters lie in its domain."
    line = next((line for line in outcome.ledger.lines if line.startswith("assumes ")), None)
    if line is None:
        return f"{right} Nothing is recorded about how the data must have been collected."
    kind, _, words = line.removeprefix("assumes ").partition(": ")
    needed = f"Of the data the guarantee needs ({kind}): {words}." if words else f"{kind.capitalize()}."
    return f"{right} {needed}"


def _cautions(run: ResultDocument) -> tuple[str, ...]:
    main, found = run.main, []
    if main.contradiction is not None:
        found.append(f"{main.contradiction} Tied sets were used instead.")
    if main.misfit is not None:
        found.append(f"{main.misfit[:1].upper()}{main.misfit[1:]}")
    if main.judged.doubts:
        found.append(
            "The confidence is nominal: something that the method assumes of the data is not known to hold, "
            "or the method itself has no valid proof. See the ledger."
        )
    if main.verdict is Word.LIMIT:
        found.append(f"{main.status}: the solver did not come as close as asked; the bounds are bounds.")
    if len(run.shown) > 1 and (len(run.results) < len(run.shown) or _statements(run) > 1):
        found.append(
            "Results below that share a ledger hold together; those of different ledgers, or of other runs, "
            "hold each with its own confidence. Choosing among these after looking costs confidence: decide "
            "beforehand."
        )
    return tuple(found)
