"""A test of the model on the data of a result, in numbers and in words (`tightrope.io.results.ModelFit`).

The test of `monitoring.e_process` at its own level α spends nothing of δ; rows of a log are examined under
the same α (`monitoring.examination`). Of more than `READ_AGAIN` rows all are tested by tables kept while
counting, the first in order as well. Costs are tested against the reward in question at a level of their own:
they do not refute the model, but make an answer nominal.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tightrope.data.columns import COST, HABITS
from tightrope.data.counts import LONG, MOST, Counts, LazyLog
from tightrope.data.design import SamplingDesign
from tightrope.data.episode_log import EpisodeLog
from tightrope.data.fit_tables import FitTables
from tightrope.errors import InputError
from tightrope.io.results import CONTRADICTED, FITS, GROWING, UNTESTED, Anomaly, Look, ModelFit, power_text
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.structure import ParametricReward, RewardStructure
from tightrope.monitoring.departures import bet_on_all, log_sum
from tightrope.monitoring.e_process import BatchTest, weigh_batches
from tightrope.monitoring.examination import (
    SHARES,
    Examination,
    Finding,
    columns_words,
    examine,
    is_planned,
    replay,
)
from tightrope.monitoring.features import has_bins
from tightrope.monitoring.monitor import Monitor
from tightrope.problem import Problem
from tightrope.statistics.costs import mean_evidence

ALPHA = 0.001
"""The probability of a false alarm of the test that `learn` makes."""

LISTED = 6

MOST_PARAMETERS = 400
"""Models of more are not tested."""

READ_AGAIN, MOST_READ, EXAMINED = LONG, MOST, 20_000
"""Rows read again; read without tables of them; examined in the order of visits."""


def examine_rows(model: ParametricMDP, counts: Counts, alpha: float) -> Examination | None:
    """The examination of the rows of a log, where they are at hand or tables of them are."""
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
    planned, ordered = is_planned(counts.design), counts.design.order.holds
    return examine(model, log, alpha=alpha, planned=planned, first=EXAMINED, ordered=ordered, tables=tables)


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
    ordered = batches > 1
    events, design = counts.steps, counts.design
    rows = examine_rows(model, counts, alpha)
    reason, test = None if events else "there are no data yet", None
    try:
        if model.is_table or len(model.parameters) > MOST_PARAMETERS:
            raise InputError(f"a model of {len(model.parameters):,} parameters explains almost all counts")
        test = BatchTest(model, counts) if events else None
    except InputError as error:
        reason = error.message if rows is None else None
    nominal = _doubts(
        design, (ordered or rows is not None) and not (rows and rows.refutes_in_any_order(model))
    )
    looks = weigh_batches(test, counts) if test is not None else [(events, -math.inf)]
    if counts.log is not None:
        looks = [(event, log_e + math.log(SHARES["counts"])) for event, log_e in looks]
    summed, stated, changed = [looks[-1][1]], [looks[-1][1]], -math.inf
    if rows is not None:
        stated.append(rows.log_e_stated)
        summed.append(rows.log_e_summed)
        changed = rows.log_e_change
    level, so_far = math.log(1.0 / alpha), max(log_sum(np.array(summed)), changed)
    is_undecided = rows is not None and test is not None and 0.5 * level <= so_far < level
    if watched is None and is_undecided and events <= READ_AGAIN:
        assert counts.log is not None
        watched = replay(model, counts.log(), alpha)
    if watched is not None:
        stated.append(watched.log_evidence + math.log(SHARES["events"]))
        summed.append(stated[-1])
    is_excluded = rows is not None and rows.log_e_value == math.inf
    looks[-1] = looks[-1][0], math.inf if is_excluded else max(log_sum(np.array(summed)), changed, -700.0)
    alarms = [event for event, log_e in looks if log_e >= level][:1]
    alarms += [one.first_alarm for one in (rows, watched) if one is not None and one.first_alarm is not None]
    first = min(alarms, default=None)
    if first is not None and rows is not None and max(changed, log_sum(np.array(stated))) < level:
        names = [one.feature.partition(":")[2] for one in rows.findings if not one.is_stated]
        nominal = (*nominal, columns_words(names))
    suspects = [] if test is None else test.worst(LISTED, "about event")
    if rows is not None:
        suspects += [one.anomaly for one in rows.findings if one.log_e_value > 0.0]
        suspects = sorted(suspects, key=lambda one: -one.log_evidence)[:LISTED]
    tested = None if counts.log is None else 0 if rows is None else rows.rows
    return _fit(alpha, first, ordered, nominal, looks, suspects, reason, tested)


def fit_of(seen: Examination, model: ParametricMDP, design: SamplingDesign) -> ModelFit:
    """What an examination that was made says of a model, for results about the same data."""
    nominal = _doubts(design, not seen.refutes_in_any_order(model))
    nominal += () if seen.doubtful_columns is None else (seen.doubtful_columns,)
    suspects = [one.anomaly for one in seen.findings if one.log_e_value > 0.0][:LISTED]
    looks = [(seen.rows, seen.log_e_value)]
    return _fit(seen.alpha, seen.first_alarm, True, nominal, looks, suspects, None, seen.rows)


def _doubts(design: SamplingDesign, needs_order: bool) -> tuple[str, ...]:
    """What is missing from data, or not known of their order and ends."""
    doubts = (one for one in (design.ends, *([design.order] if needs_order else [])) if not one.holds)
    return (*design.censored, *(f"{one.name}: {one.why}" for one in doubts))


def _fit(
    alpha: float,
    first: int | None,
    ordered: bool,
    nominal: tuple[str, ...],
    looks: list[tuple[int, float]],
    suspects: list[Anomaly],
    reason: str | None,
    tested: int | None,
) -> ModelFit:
    """The record of a test; `reason` says why there was none, `tested` are the rows that were examined."""
    events, log_e = looks[-1] if reason is None else (looks[-1][0], 0.0)
    if reason is not None:
        verdict, text = UNTESTED, f"{UNTESTED}: {reason}"
    else:
        half = 0.5 * math.log(1.0 / alpha)
        verdict = CONTRADICTED if first is not None else GROWING if log_e >= half else FITS
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
        alarm=first is not None,
        e_value=math.inf if log_e > 700.0 else math.exp(log_e),
        log_e_value=log_e,
        alpha=alpha,
        events=events,
        first_alarm=first,
        ordered=ordered,
        nominal=nominal,
        text=text,
        looks=tuple(Look(*look) for look in looks if reason is None),
        suspects=tuple(suspects),
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
