"""Evidence that whole episodes stand in a log several times, so that its counts are too large.

A bet names a source for some episodes. Each of the others is fresh with probability 1 − ε, or begins a block
of copies, its source each of the n episodes with probability 1/n; the next one continues the block with
probability γ. ε and γ have Beta(½, ½) mixtures. How well the sources are guessed decides how much evidence
there is, never whether it is valid (docs/proofs/statistics.md). Where files overlap, episodes have namesakes:
earlier ones of the same name that begin at the same time. Half of the evidence is a bet that these are the
sources, with one probability.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import betaln, gammaln, xlogy

from tightrope.data.episode_log import EpisodeLog
from tightrope.data.exposure import Pieces
from tightrope.monitoring.departures import SPARE, free_prediction
from tightrope.monitoring.features import is_varied
from tightrope.monitoring.urns import sums
from tightrope.numerics.arrays import AnyArray, BoolArray, FloatArray, IndexArray, OffsetArray
from tightrope.statistics.outcomes import Outcomes

OFFSETS = 8
"""Distances between copies and sources that are tried."""

LEAST = 20
"""Episodes of a block that is copied; shorter ones are single episodes, or patterns."""

PATTERN, RECURS = 200, 3
"""Blocks below this number of episodes that recur more often than this are patterns."""


@dataclass(frozen=True, eq=False)
class Copies:
    """Evidence (its logarithm, rounded down) that episodes repeat others, and which these are."""

    log_e: float
    copied: BoolArray

    @property
    def text(self) -> str:
        """What is wrong with such a log."""
        number, episodes = int(self.copied.sum()), len(self.copied)
        return f"{number:,} of {episodes:,} episodes repeat an earlier one row by row: count each once"


def weigh_copies(outcomes: Outcomes, log: EpisodeLog) -> Copies:
    """Of a log in discrete time, where rows of fresh episodes have the mixture of their signature."""
    outcome, size = outcomes.of_transition[log.transition], len(outcomes)
    seen = np.bincount(outcome, minlength=size).astype(np.float64)
    visits = np.bincount(outcomes.signature, weights=seen, minlength=len(outcomes.width))[outcomes.signature]
    surprise = -xlogy(1.0, np.maximum(seen, 1.0) / np.maximum(visits, 1.0))
    gain = sums(log.episode, surprise[outcome], log.episodes)
    order, start = log.by_episode()

    def terms(source: OffsetArray) -> list[float]:
        for episode in np.flatnonzero(source >= 0).tolist():  # rows are predicted by some that stand before
            rows, others = (order[start[one] : start[one + 1]] for one in (episode, source[episode]))
            source[episode] = source[episode] if np.all(others < rows) else -1
        fresh = seen - np.bincount(outcome[(source >= 0)[log.episode]], minlength=size)
        free = free_prediction(fresh, outcomes.signature, len(outcomes.width), outcomes.width)
        return [*free, *(seen * surprise)]

    kind = kinds_of([log.transition[order]], start)
    return _weigh(terms, kind, gain, _namesakes(len(kind), log.episode, log.names, log.time))


def weigh_repeated(log: EpisodeLog, unit: OffsetArray | None = None) -> Copies:
    """Of independent episodes, of each unit, of which nothing else is known: all their orders are equally
    likely."""
    order, start = log.by_episode()
    kind = kinds_of([log.transition[order]], start)
    unit = np.zeros(len(kind), np.int64) if unit is None else unit
    cell = np.unique(unit * np.int64(len(kind)) + kind, return_inverse=True)[1]
    gain = np.log(np.bincount(unit)[unit] / np.bincount(cell)[cell])

    def terms(source: OffsetArray) -> list[float]:
        parts = slice(None), _first(source), source >= 0
        ratio = [
            _draws(*(np.bincount(group[one], minlength=len(group)) for one in parts))
            for group in (unit, cell)
        ]
        return [*ratio[0].tolist(), *(-ratio[1]).tolist()]

    return _weigh(terms, kind, gain, _namesakes(len(kind), log.episode, log.names, log.time))


def weigh_timed_copies(pieces: Pieces) -> Copies:
    """Of a log in continuous time, by Cox's partial likelihood.

    Of the sojourns that have lasted as long in a state, those that end now are a uniform draw. First come
    those of sources, then the copies of what has ended.
    """
    last = np.flatnonzero(np.r_[pieces.since_entry[1:] <= 0.0, True])  # of each sojourn
    state, ends = pieces.state[last], pieces.transition[last] >= 0
    ended = (pieces.since_entry + pieces.duration)[last].tolist()
    lasted = np.array([float(f"{one:.9e}") for one in ended])  # equal times are sums of other parts
    number, time = np.unique(pieces.episode[last], return_inverse=True)[1], np.unique(lasted)
    code = state * len(time) + np.searchsorted(time, lasted)
    cells, cell = np.unique(code, return_inverse=True)

    def at_risk(chosen: BoolArray) -> OffsetArray:
        held = np.sort(code[chosen])
        following = np.searchsorted(held, (cells // len(time) + 1) * len(time))
        count: OffsetArray = following - np.searchsorted(held, cells)
        return count

    def ending(chosen: BoolArray) -> OffsetArray:
        return np.bincount(cell[chosen & ends], minlength=len(cells))

    every = np.ones(len(last), np.bool_)
    gain = np.where(ends, np.log(at_risk(every)[cell] / np.maximum(ending(every)[cell], 1)), 0.0)
    episodes = int(number.max(initial=-1)) + 1
    start = np.r_[0, np.cumsum(np.bincount(number, minlength=episodes))]

    def terms(source: OffsetArray) -> list[float]:
        sources, copies = _first(source)[number], ending((source >= 0)[number])
        drawn = _draws(at_risk(every), at_risk(sources), copies)
        return list(drawn - _draws(ending(every), ending(sources), copies))

    kind, total = kinds_of([code, pieces.transition[last]], start), sums(number, gain, episodes)
    names, clock = pieces.names, None if pieces.clock is None else pieces.clock[last]
    namesake = _namesakes(episodes, number, None if names is None else names[last], clock)
    return _weigh(terms, kind, total, namesake)


def _draws(whole: OffsetArray, sources: OffsetArray, copies: OffsetArray) -> FloatArray:
    """The logarithm of the number of orders in which copies can be drawn from all but the sources."""
    left = whole - sources
    return np.asarray(gammaln(left + 1) - gammaln(left - copies + 1), dtype=np.float64)


def _first(source: OffsetArray) -> BoolArray:
    """Episodes that are the source of others, and no copies themselves."""
    return np.isin(np.arange(len(source)), source) & (source < 0)


def _weigh(
    terms_of: Callable[[OffsetArray], list[float]], kind: OffsetArray, gain: FloatArray, namesake: OffsetArray
) -> Copies:
    """The evidence with the prior of the sources: anywhere, or namesakes where there are some."""
    source = _sources(kind, gain)
    terms, copied = terms_of(source), source >= 0
    continued = int((copied[1:] & copied[:-1] & (np.diff(source) == 1)).sum())
    begun, stopped = int(copied.sum()) - continued, int(copied[:-1].sum()) - continued
    terms += [-begun * math.log(max(len(source), 1)), 2.0 * -betaln(0.5, 0.5)]
    terms += [betaln(begun + 0.5, int((~copied).sum()) + 0.5), betaln(continued + 0.5, stopped + 0.5)]
    results = [(terms, copied)]
    if (among := namesake >= 0).any():
        source = np.where(among & (kind == kind[namesake]), namesake, -1)
        terms, copied = terms_of(source), source >= 0
        number = int(copied.sum())
        terms += [betaln(number + 0.5, int(among.sum()) - number + 0.5), -betaln(0.5, 0.5)]
        results.append((terms, copied))
    price = math.log(len(results))
    each = [Copies(math.fsum(t) - SPARE * math.fsum(map(abs, t)) - price, copied) for t, copied in results]
    return max(each, key=lambda one: one.log_e)


def _namesakes(
    size: int, episode: AnyArray, names: OffsetArray | None, time: FloatArray | None
) -> OffsetArray:
    """The first episode that has the same name and begins at the same time, −1 where none is."""
    source = np.full(size, -1, dtype=np.int64)
    if names is not None:
        number, first = np.unique(episode, return_index=True)
        key = names[first] if time is None else names[first] ^ time[first].view(np.int64)
        place, which = np.unique(key, return_index=True, return_inverse=True)[1:]
        source[number] = number[place[which]]
        source[source == np.arange(size)] = -1
    return source


def kinds_of(rows: Sequence[IndexArray | OffsetArray], start: OffsetArray) -> OffsetArray:
    """Episodes with the same rows have the same number."""
    table = np.stack(rows, axis=1)
    known = dict[bytes, int]()
    cuts = zip(start[:-1].tolist(), start[1:].tolist(), strict=True)
    return np.array([known.setdefault(table[a:b].tobytes(), len(known)) for a, b in cuts], dtype=np.int64)


def _sources(kind: OffsetArray, gain: FloatArray) -> OffsetArray:
    """A guess of the episode that each one repeats, or −1; `gain` is how surprising an episode is."""
    episodes, chosen = len(kind), math.log(max(len(kind), 1))
    first = np.unique(kind, return_index=True, return_inverse=True)[1:]
    source = np.where(gain > chosen, first[0][first[1]], episodes)
    source[source >= np.arange(episodes)] = -1
    total, is_pattern = np.r_[0.0, np.cumsum(gain)], np.zeros(episodes, np.bool_)
    for offset in _offsets(kind, gain):
        same = np.r_[np.zeros(offset, np.bool_), kind[offset:] == kind[:-offset]]
        blocks = np.flatnonzero(np.diff(np.r_[False, same, False].astype(np.int8))).reshape(-1, 2)
        for begin, end in blocks[np.diff(total[blocks])[:, 0] > 2.0 * chosen].tolist():
            copied = slice(begin - offset, min(end - offset, begin))
            is_pattern[begin:end] |= offset < PATTERN and end - begin > RECURS * offset
            is_new = end - begin >= LEAST and np.any(np.diff(source[begin:end]) != 1)
            is_new &= not is_pattern[begin:end].all()
            if is_new and is_varied(kind[copied], float(gain[copied].mean())):
                source[begin:end] = np.arange(begin, end) - offset
    return source


def _offsets(kind: OffsetArray, gain: FloatArray) -> list[int]:
    """The distances at which most episodes are equal, by the spectrum of random signs of their kinds."""
    if len(kind) < 2:
        return []
    sign = np.random.default_rng(0).choice([-1.0, 1.0], size=int(kind.max()) + 1)
    wave = sign[kind] * gain
    spectrum = np.fft.rfft(wave - wave.mean(), 2 * len(wave))
    equal = np.fft.irfft(abs(spectrum) ** 2)[1 : len(wave)]
    return sorted(int(place) + 1 for place in np.argsort(-equal)[:OFFSETS])
