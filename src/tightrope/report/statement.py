"""Question and answer in words: what to do, the guarantee and its assumptions.

Common properties get a sentence of their own; others are described as a formula to satisfy, and the notation
is always shown beside it. Bounds in sentences are rounded to the safe side.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from msgspec import UNSET, UnsetType

from tightrope.errors import TightropeError
from tightrope.io.answers import AnswerDocument, ComparisonAnswer
from tightrope.io.results import Breakdown, Interval, Outcome, ResultDocument
from tightrope.numerics.text import (
    bounded,
    claim_text,
    confidence_text,
    interval_text,
    sure_text,
    text_above,
    text_below,
)
from tightrope.prism.parse import property_syntax as formulas
from tightrope.prism.parse.parser import parse_properties
from tightrope.prism.parse.property_syntax import spell
from tightrope.prism.parse.syntax import Binary, Expression, Label, Literal, Unary
from tightrope.prism.properties.shape import is_simple_path
from tightrope.report.style import number
from tightrope.verdict import Assumed, AssumptionStatus, Word

GIVEN = "given the data, for all parameters that fit them"


def quantity_of(text: str, maximises: bool) -> str:
    """What values are, in two words at most. What is to be small is called a cost."""
    if text.lstrip().startswith("P"):
        return "probability"
    return "expected reward" if maximises else "expected cost"


def question_sentence(text: str, maximises: bool) -> str:
    """What `text`, a property, asks of a policy that is learned from data."""
    what = f"{quantity_of(text, maximises)}{_about(text)}"
    if maximises:
        article = "an" if what.startswith("e") else "a"
        return f"How high {article} {what} can a policy guarantee, {GIVEN}?"
    return f"How low can a policy keep the {what}, {GIVEN}?"


def _about(text: str) -> str:
    """Of what: ` of reaching “goal”`, ` until reaching “done”`; nothing where the text cannot be read."""
    try:
        file = parse_properties(text, "the property")
    except TightropeError:
        return ""
    formula = file.properties[0].formula if file.properties else None
    if not isinstance(formula, formulas.ValueOperator):
        return ""
    if isinstance(formula.path, formulas.RewardFormula):
        name = f" (“{formula.reward_name}”)" if formula.reward_name else ""
        return name + _span(formula.path, file)
    return f" of {_path(formula.path, file)}"


def _span(formula: formulas.RewardFormula, file: formulas.PropertyFile) -> str:
    """Over which time a reward is added up."""
    match formula.operator:
        case formulas.RewardOperator.REACH if formula.target is not None:
            return f" until reaching {_states(formula.target, file)}"
        case formulas.RewardOperator.CUMULATIVE if formula.bound is not None:
            extent = "in fewer than" if formula.bound_strict else "in the first"
            return f" {extent} {spell(formula.bound, file)} steps"
        case formulas.RewardOperator.INSTANTANEOUS if formula.bound is not None:
            return f" in step {spell(formula.bound, file)}"
        case formulas.RewardOperator.LONG_RUN:
            return " per step in the long run"
        case formulas.RewardOperator.TOTAL:
            return " in total"
        case formulas.RewardOperator.DISCOUNTED if formula.bound is not None:
            return f" in total, discounted by {spell(formula.bound, file)} per step"
    return " until a formula is satisfied"


def _path(path: Expression, file: formulas.PropertyFile) -> str:
    """What happens, as a noun phrase."""
    if isinstance(path, formulas.PathFormula) and is_simple_path(path):
        when = _steps(path.bound, file)
        match path.operator:
            case formulas.PathOperator.EVENTUALLY:
                return f"reaching {_states(path.right, file)}{when}"
            case formulas.PathOperator.GLOBALLY:
                for_ = when.replace(" within", " for")
                if (never := _find_negated(path.right)) is not None:
                    return f"never meeting {_states(never, file)}{for_}"
                return f"always staying in {_states(path.right, file)}{for_}"
            case formulas.PathOperator.NEXT:
                return f"being in {_states(path.right, file)} after one step"
            case formulas.PathOperator.UNTIL if path.left is not None:
                if isinstance(path.left, Literal) and path.left.value is True:
                    return f"reaching {_states(path.right, file)}{when}"
                goal = f"reaching {_states(path.right, file)}{when}"
                if (never := _find_negated(path.left)) is not None:
                    return f"{goal} without meeting {_states(never, file)} before"
                return f"{goal} and being in {_states(path.left, file)} until then"
    return "satisfying the formula"


def _find_negated(formula: Expression) -> Expression | None:
    """What a negation speaks of."""
    return formula.operand if isinstance(formula, Unary) and formula.operator == "!" else None


def _states(formula: Expression, file: formulas.PropertyFile) -> str:
    """The states that satisfy a formula."""
    if isinstance(formula, Label):
        return f"“{formula.name}”"
    if isinstance(formula, Binary) and formula.operator in "&|":
        word = "and" if formula.operator == "&" else "or"
        sides = (formula.left, formula.right)
        if all(isinstance(side, Label) for side in sides):
            return f" {word} ".join(_states(side, file) for side in sides)
    return f"a state with {spell(formula, file)}"


def _steps(bound: formulas.StepBound | None, file: formulas.PropertyFile) -> str:
    if bound is None:
        return ""
    low = None if bound.lower is None else spell(bound.lower, file)
    high = None if bound.upper is None else spell(bound.upper, file)
    if low is not None and high is not None:
        return f" after {low} to {high} steps"
    if high is not None:
        return f" in fewer than {high} steps" if bound.upper_strict else f" within {high} steps"
    return f" after more than {low} steps" if bound.lower_strict else f" after {low} steps or more"


@dataclass(frozen=True)
class Statement:
    """What was asked, what is answered, on which condition, and what a reader must know beside it."""

    question: str
    headline: str
    answer: str
    assumption: str
    cautions: tuple[str, ...]


def quantity(run: ResultDocument) -> str:
    """What values are, as the label of an axis: a probability, an expected reward or an expected cost."""
    return quantity_of(run.question, run.maximises)


def _whose(outcome: Outcome) -> str:
    """What the guarantee is about."""
    return "robust policy" if outcome.robust_optimum is UNSET else "robust controller"


def _subject(run: ResultDocument, outcome: Outcome) -> str:
    return f"the {_whose(outcome)}" if run.model.choices > run.model.states else ""


def _limits(run: ResultDocument, outcome: Outcome) -> str:
    """What nothing exceeds."""
    best, robust = best_case(run, outcome), outcome.robust_optimum
    if robust is UNSET:
        return f"no policy does better than {best}"
    most = text_above(robust) if run.maximises else text_below(robust)
    return f"no controller guarantees better than {most} over the region, or has a value better than {best}"


def best_case(run: ResultDocument, outcome: Outcome) -> str:
    """The optimistic value, which no policy exceeds: rounded so that this stays true."""
    return text_above(outcome.optimistic) if run.maximises else text_below(outcome.optimistic)


def saving(text: str, maximises: bool, gain: float) -> str:
    """A difference of at least `gain` > 0 in the unit of the property: runs of a thousand, or its reward."""
    if text.lstrip().startswith("P"):
        runs, event = 1000.0 * gain, _about(text).removeprefix(" of ")
        whole = f"{math.floor(runs):,}" if runs >= 1 else text_below(runs, 2)
        more = "more" if maximises else "fewer"
        return f"on average {whole} {more} of 1,000 runs" + (f" with {event}" if event else "")
    return f"on average {text_below(gain)} {'gained' if maximises else 'saved'}{_about(text)}"


def comparison_advice(facts: ComparisonAnswer, question: str) -> list[tuple[str, str]]:
    """The same for the page of `compare` and `improve`."""
    proved, gain = facts.verdict is Word.PROVED, facts.improvement
    if not proved:
        return do_not_act(facts.verdict, facts.assumptions)
    if gain <= 0:
        lines = [("", facts.sentence)]
    else:
        saved = saving(question, facts.difference.lower > 0, gain)
        lines = [("", f"Use {facts.policy} instead of {facts.baseline}. {facts.sentence}")]
        lines.append(("Gain", f"{saved[:1].upper()}{saved[1:]}, or more."))
    rows = 0 if "count" in " ".join(facts.data.read_as) else facts.data.rows  # rows of counts are no steps
    if rows and facts.difference.upper > facts.difference.lower:
        lines.append(("More data", _more_data(rows, "rows", "tightrope plan --improve")))
    return [*lines, *_weakest(facts.assumptions), REVIEW]


DIAGNOSE = ("Next", "'tightrope doctor' says what contradicts the model and how to revise it.")
REVIEW = ("Review", "When the data double or 'tightrope watch' raises an alarm.")


def do_not_act(word: Word, assumptions: Sequence[Assumed]) -> list[tuple[str, str]]:
    """What a result that is not proved advises."""
    if word is Word.CONTRADICTED:
        why = "Do not act on this result: the data contradict the model. Fix the model first."
        return [("", why), DIAGNOSE]
    open_ = [f"{one.name} ({_STATUS[one.kept]})" for one in assumptions if not one.holds]
    why = f". Check first: {', '.join(open_) or 'the assumptions'}."
    why = ": the computation did not finish." if word is Word.LIMIT else why
    return [("", f"Do not act on this result yet{why}"), *_weakest(assumptions)]


def _weakest(assumptions: Sequence[Assumed]) -> list[tuple[str, str]]:
    """The assumption that is worst supported."""
    if not assumptions:
        return []
    frail = min(assumptions, key=lambda one: list(_STATUS).index(one.kept))
    claim, _, tested = frail.why.partition("; tested: ")
    status = f"tested: {tested.partition(':')[0]}" if tested else _STATUS[frail.kept]
    words = f"the model {claim.removeprefix('it ')}" if frail.name == "model" else f"{frail.name}: {claim}"
    return [("Weakest assumption", f"{words[:1].upper()}{words[1:]} ({status}).")]


def _more_data(steps: int, unit: str, command: str) -> str:
    return f"About {3 * steps:,} more {unit} would halve the interval (rule of thumb; see '{command}')."


def advice(run: ResultDocument, rule: str = "") -> list[tuple[str, str]]:
    """What to do, as pairs (title, sentence); the first is `rule` or what else to do."""
    main, what, judged = run.main, quantity(run), run.main.judged
    if judged.word is not Word.PROVED or not math.isfinite(main.guarantee):
        return do_not_act(judged.word, main.assumptions)
    promise = main.guarantee
    if main.tree is not UNSET and main.tree.promise is not None:
        promise = main.tree.promise.guarantee
    bound = f"at least {text_below(promise)}" if run.maximises else f"at most {text_above(promise)}"
    whose = "rule" if main.tree is not UNSET else _whose(main)
    sure = f", with {sure_text(main.ledger.delta)}" if main.ledger.delta else " everywhere in the domain"
    chain = run.model.choices == run.model.states
    of = "" if chain else f" of the {whose}"
    promise_text = f"The {what}{_about(run.question)}{of} is {bound}{sure}."
    lines = (
        [("", promise_text)]
        if chain
        else [("", rule or f"Use the {_whose(main)}."), ("Promise", promise_text)]
    )
    if main.value is not None and main.tree is UNSET:
        low, high = main.robust_policy.lower, main.robust_policy.upper
        gain = low - main.value.upper if run.maximises else main.value.lower - high
        today = f"Its value lies in {ends_text(main.value)}"
        better = (
            f"so the robust policy is better by at least {text_below(gain)} "
            f"({saving(run.question, run.maximises, gain)})"
            if gain > 0
            else "and the two intervals overlap: neither policy is proved better"
        )
        lines.append(("Today's policy", f"{today}, {better}. 'tightrope compare' bounds the difference."))
    elif main.robust_optimum is UNSET and not chain:
        lines.append(("Today's policy", "None given: 'tightrope improve --baseline FILE' compares with it."))
    steps, width = run.data.steps, main.robust_policy.upper - main.robust_policy.lower
    if steps and width > 1e-3 * abs(main.robust_policy.upper):
        lines.append(("More data", _more_data(steps, "steps", "tightrope plan")))
    return [*lines, *_weakest(main.assumptions), REVIEW]


def answer_advice(answer: AnswerDocument, rule: str) -> list[tuple[str, str]]:
    """The same for an answer that is no single objective's; `rule` says what its policy does."""
    if answer.judged.word is not Word.PROVED:
        return do_not_act(answer.judged.word, answer.assumptions)
    claim = answer.headline.partition(": ")[2]
    promise = f"{claim[:1].upper()}{claim[1:]}."
    lines = [("", rule), ("Promise", promise)] if rule else [("", promise)]
    return [*lines, *_weakest(answer.assumptions), REVIEW]


_STATUS = {
    AssumptionStatus.NO: "violated",
    AssumptionStatus.UNKNOWN: "unverified",
    AssumptionStatus.STATED: "stated, not tested",
    AssumptionStatus.YES: "satisfied by the input",
}


def assumption_lines(assumptions: Sequence[Assumed]) -> list[str]:
    """Every assumption with its status."""
    return [f"{one.name} ({_STATUS[one.kept]}): {one.why}" for one in assumptions]


def promises(run: ResultDocument) -> list[tuple[str, str, str]]:
    """The robust policy beside others: what each promises, and its value at the best fit."""
    main = run.main
    if isinstance(main.estimate, UnsetType):
        return []
    values, best = main.estimate
    named = [
        ("robust", "robust policy", main.robust_policy),
        ("best", "best policy at the best fit", best),
    ]
    if main.value is not None:
        named.append(("given", "tree" if main.tree is not UNSET else "today's policy", main.value))
    return [
        (
            name,
            bounded(span.lower if run.maximises else span.upper, run.maximises),
            number(values[key]) if key in values else "–",
        )
        for key, name, span in named
    ]


def statement(run: ResultDocument) -> Statement:
    """The answer is that of the run's main outcome."""
    main, what = run.main, quantity(run)
    verdict, sure = main.judged, confidence_text(main.ledger.delta)
    with_it = f"with confidence {sure}" if main.ledger.delta else "over the domain"
    claim = claim_text(run.question, bounded(main.guarantee, run.maximises), _subject(run, main))
    headline = verdict.headline(claim, sure_text(main.ledger.delta))
    question = question_sentence(run.question, run.maximises)
    inside = interval_text(main.robust_policy.lower, main.robust_policy.upper)
    if math.isinf(main.guarantee):
        answer = (
            f"The {what} may be unbounded for every policy under parameters that fit the data, so the robust "
            "policy has no finite guarantee."
        )
    else:
        answer = (
            f"{with_it[:1].upper()}{with_it[1:]} the {what} of the {_whose(main)} lies in {inside} "
            f"({_source(main)}), and {_limits(run, main)}."
        )
    if main.value is not None:
        whose = "given policy" if main.tree is UNSET else "tree"
        answer += f" The {whose}'s value lies in {interval_text(main.value.lower, main.value.upper)}."
    seen = main.seen
    if verdict.word is Word.CONTRADICTED:
        holds = f"No number in this report is guaranteed; the computed interval is {inside}."
        if seen is not None and seen.interval is not None:
            about = f"the value of {seen.policy} lies in {ends_text(seen.interval)}"
            holds = f"Without the model's probabilities, by the observed returns: {about}."
        answer = f"{verdict.why[:1].upper()}{verdict.why[1:]} {holds}"
    elif verdict.doubts:
        why = "; ".join(verdict.doubts)
        answer = (
            f"Nothing is guaranteed ({why}). If all assumptions held, "
            f"the {what} of the {_whose(main)} would lie in {inside} ({_source(main)})."
        )
    if run.true_value is not None:
        answer += f" The best value at the true parameters is {number(run.true_value.lower)}."
    return Statement(question, headline, answer, _assumption(main), _cautions(run))


def _source(outcome: Outcome) -> str:
    seen = outcome.seen
    both = ", and observed returns" if seen is not None and seen.model is not None else ""
    if outcome.region is None or outcome.contradiction is not None:
        return f"{outcome.sets} sets{both}"
    return f"{outcome.sets} sets over the {outcome.region} region{both}"


def ends_text(interval: Interval) -> str:
    """Its ends, rounded outward."""
    return interval_text(interval.lower, interval.upper)


def outcome_lines(outcome: Outcome) -> list[str]:
    """What episodes returned, beside the model's part."""
    seen = outcome.seen
    if seen is None:
        return []
    lines = [seen.text] + ([f"of {seen.policy}"] if seen.policy else [])
    if seen.contradiction is not None:
        lines.append(seen.contradiction)
    elif seen.model is not None and outcome.verdict is not Word.CONTRADICTED:
        lines.append(f"by the model: {ends_text(seen.model)}")
    return lines


def _assumption(outcome: Outcome) -> str:
    """That the model is correct, and the assumption of the confidence budget about the data."""
    right = "The model has the states and transitions of the process, and its domain has the true parameters."
    line = next((one for one in outcome.ledger.lines if one.startswith(("sampling: ", "assumes "))), None)
    if line is None:
        return f"{right} No assumption about the sampling is recorded."
    words = line.partition(": ")[2] or line.removeprefix("assumes ")
    return f"{right} Sampling: {words}."


def _cautions(run: ResultDocument) -> tuple[str, ...]:
    main, remarks = run.main, []
    if main.contradiction is not None:
        remarks.append(f"{main.contradiction} Tied sets were used instead.")
    if main.seen is not None and isinstance(main.seen.tension, str):
        remarks.append(f"{main.seen.tension[:1].upper()}{main.seen.tension[1:]}.")
    if isinstance(main.breakdown, Breakdown):
        remarks.append(f"Breakdown point: the guarantee {main.breakdown.text}.")
    if main.misfit is not None and main.judged.word is not Word.CONTRADICTED:
        remarks.append(f"{main.misfit[:1].upper()}{main.misfit[1:]}")
    if main.verdict is Word.LIMIT:
        remarks.append(f"{main.status}: the bounds hold, but are less precise than requested.")
    budgets = {tuple(outcome.ledger.lines) for outcome in run.results}
    if len(run.shown) > 1 and (len(run.results) < len(run.shown) or len(budgets) > 1):
        remarks.append(
            "Results with the same confidence budget hold simultaneously. Others hold each with its own "
            "confidence, so choose among them before you see the results."
        )
    return tuple(remarks)
