"""A test of the model on the data of a result, in numbers and in words (`tightrope.io.results.ModelFit`).

The test of `monitoring.e_process` at its own level α spends nothing of δ; rows of a log are examined under
the same α (`monitoring.examination`). Of more than `READ_AGAIN` rows all are tested by tables kept while
counting, the first in order as well. Costs are tested against the reward in question at a level of their own:
they do not refute the model, but make an answer nominal.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tightrope.data.columns import COST, HABITS
from tightrope.data.counts import LONG, MOST, Counts, LazyLog
from tightrope.data.design import SamplingDesign
from tightrope.data.episode_log import EpisodeLog
from tightrope.data.fit_tables import FitTables
from tightrope.io.results import CONTRADICTED, FITS, GROWING, UNTESTED, Look, ModelFit, power_text
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.structure import ParametricReward, RewardStructure
from tightrope.monitoring.departures import bet_on_all
from tightrope.monitoring.examination import Examination, Finding, Rows, is_planned, weigh_all
from tightrope.monitoring.features import has_bins
from tightrope.monitoring.monitor import Monitor
from tightrope.problem import Problem
from tightrope.statistics.costs import mean_evidence

ALPHA = 0.001
"""The probability of a false alarm of the test that `learn` makes."""

LISTED = 6

READ_AGAIN, MOST_READ, EXAMINED = LONG, MOST, 20_000
"""Rows read again; read without tables of them; examined in the order of visits."""


def rows_at_hand(model: ParametricMDP, counts: Counts) -> Rows | None:
    """The rows of a log that are tested, or the first of them with tables of all."""
    if counts.log is None or not counts.steps:
        return None
    tables = tables_of(counts)
    log = None if tables is None else first_rows(counts.log, tables)
    if tables is None or (
        log is not None and counts.steps <= MOST_READ and any(map(has_bins, log.columns.values()))
    ):
        tables, log = None, counts.log() if counts.steps <= MOST_READ else None
    if log is None or log.model_hash != model.hash() or (tables is None and not len(log)):
        return None
    return Rows(log, tables, is_planned(counts.design), counts.design.order.holds, EXAMINED)


def tables_of(counts: Counts) -> FitTables | None:
    """The tables of all rows of a long log, where they were kept while it was counted."""
    tables = next((one for one in counts.observed if isinstance(one, FitTables)), None)
    is_used = tables is not None and counts.steps > READ_AGAIN and tables.rows == counts.steps
    return tables if is_used else None


def first_rows(log: Callable[[], EpisodeLog], tables: FitTables, rows: int = EXAMINED) -> EpisodeLog:
    """The first rows of a log; none where these may depend on outcomes, for want of an order in time."""
    first: EpisodeLog = log.first(rows) if isinstance(log, LazyLog) else log().first(rows)
    if tables.grid is not None and tables.grid.is_ordered:
        return first
    return first.select(np.zeros(len(first), dtype=np.bool_))


def weigh_fit(
    model: ParametricMDP, counts: Counts, alpha: float = ALPHA, watched: Monitor | None = None
) -> ModelFit:
    """Test whether the data fit the model; `watched` has seen the same events, with its part of alpha."""
    batches = 0 if counts.batches is None else int(np.count_nonzero(np.diff(counts.batches.start)))
    seen = weigh_all(model, rows_at_hand(model, counts), counts, alpha, watched)
    return fit_of(seen, model, counts.design, batches > 1, counts.log is not None)


def fit_of(
    seen: Examination, model: ParametricMDP, design: SamplingDesign, ordered: bool = True, is_log: bool = True
) -> ModelFit:
    """The record of an examination: what it says of a model, for results about the same data."""
    by_rows = replace(seen, findings=tuple(one for one in seen.findings if one.by_counts is None))
    needs_order = (ordered or seen.rows > 0) and not by_rows.refutes_in_any_order(model)
    doubts = [one for one in (design.ends, *([design.order] if needs_order else [])) if not one.holds]
    nominal = (*design.censored, *(f"{one.name}: {one.why}" for one in doubts))
    nominal += () if seen.doubtful_columns is None else (seen.doubtful_columns,)
    suspects = [one.anomaly for one in seen.findings if one.log_e_value > 0.0 or one.by_counts is not None]
    alpha, first, (events, log_e) = seen.alpha, seen.first_alarm, seen.looks[-1]
    tested = seen.rows if is_log else None
    if is_untested := bool(seen.untested) and not seen.rows:
        verdict, text, log_e = UNTESTED, f"{UNTESTED}: {seen.untested}", 0.0
    else:
        verdict = CONTRADICTED if seen.alarm else GROWING if seen.is_doubt else FITS
        how = "" if ordered else " of counts without order"
        rate = f"a correct model reaches {1.0 / alpha:,.0f} with probability at most {alpha:g}"
        if nominal:
            rate += ", nominally: data are missing, or their order or ends or a column are not known"
        when = "" if first is None else f", alarm after {first:,}"
        if tested is not None:
            how += ", all rows tested" if tested >= events else f", {tested:,} rows tested"
        text = f"{verdict}: e-value {power_text(log_e)} after {events:,} events{how}{when} ({rate})"
    return ModelFit(
        verdict=verdict,
        alarm=seen.alarm,
        e_value=math.inf if log_e > 700.0 else math.exp(log_e),
        log_e_value=log_e,
        alpha=alpha,
        events=events,
        first_alarm=first,
        ordered=ordered,
        nominal=nominal,
        text=text,
        looks=() if is_untested else tuple(Look(*look) for look in seen.looks),
        suspects=tuple(sorted(suspects, key=lambda one: -one.log_evidence)[:LISTED]),
        rows_tested=tested,
    )


def cost_finding(
    problem: Problem, log: EpisodeLog, alpha: float, bounds: tuple[float, float] | None
) -> Finding | None:
    """Compare costs with the reward in question: number by number, or means where `bounds` are stated."""
    reward = asked_reward(problem)
    wanted = {COST, *HABITS[COST], *(() if reward is None else problem.model.structure.rewards)}
    name = next(
        (one for one in log.columns if one.lower() in wanted and log.columns[one].values is not None), ""
    )
    if reward is None or not name:
        return None
    structure, values = problem.model.structure, log.columns[name].values
    assert values is not None
    seen = np.isfinite(values)
    choice, cost = log.choice(structure)[seen], values[seen]
    expected = reward.per_choice(structure)[choice]
    apart = np.abs(cost - expected)
    first = cost[np.unique(choice, return_index=True)[1]][np.unique(choice, return_inverse=True)[1]]
    if (cost == first).all():
        wrong = apart > 1e-6 * np.maximum(1.0, np.abs(expected))
        log_e = math.inf if wrong.any() else -math.inf
    elif bounds is None:
        return None
    else:
        each = mean_evidence(cost, expected, choice.astype(np.int32), bounds)
        logs = np.array(list(each.values()))
        log_e = bet_on_all(logs, structure.choices)
        wrong = choice == list(each)[int(np.argmax(logs))]
    if log_e < math.log(1.0 / alpha):
        return None
    at = int(choice[wrong][0])
    here = choice == at
    text = (
        f"{structure.choice_name(at)} costs {cost[here].mean():.6g} in column '{name}' ({int(here.sum()):,} "
        f"rows), and the model says {expected[here][0]:.6g}"
    )
    contexts = tuple(dict.fromkeys(choice[wrong].tolist()))
    return Finding("cost", f"cost:{name}", text, log_e, contexts=contexts, effect=float(apart.mean()))


def asked_reward(problem: Problem) -> RewardStructure | None:
    """The reward of numbers that a question is about."""
    objective = problem.query.plain_objective if isinstance(problem.model, ParametricMDP) else None
    reward = None if objective is None else objective.reward
    if reward is None or isinstance(reward, ParametricReward):
        return None
    return next((one for one in problem.model.structure.rewards.values() if one is reward), None)
