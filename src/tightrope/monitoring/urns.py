"""E-values for "the outcome depends on a feature", without paying for unknown probabilities.

Given how often each outcome stands among the first N visits to a choice, the next is a draw from an urn: fair
bets on it are e-values under every policy, for 48 numbers N with equal weights. All rows of long logs are
weighed by tables of counts; changes by bets on pairs of blocks, whose false alarms add up. Sums of logarithms
are lowered by more than rounding. Proofs: docs/proofs/statistics.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import betaln, expit, gammaln, logit

from tightrope.data.fit_tables import VISITS, CountTable
from tightrope.monitoring.departures import SPARE, bet_on_all, hedged, mean
from tightrope.numerics.arrays import AnyArray, BoolArray, FloatArray, IndexArray, OffsetArray
from tightrope.numerics.jit import kernel

SHRINKAGE = np.array([4.0, 16.0, 64.0, 256.0])
"""κ: what is known of a value counts as much as the frequencies of all after so many rows."""

MOST_VALUES = 64
"""Values of a feature in one context, by first appearance; all others count as one."""

FIRST_VISITS, FIRST_ROWS, GROWTH, LOOKS = 24, 96, 1.25, 48
"""Where evidence is looked at first, by what factor data grow between looks, and how many looks there are."""

PARTS_OF_UNITS = (0.08, 0.2, 0.5)
RATIOS = (0.4, 1.6, 2.4)
"""How many units differ, and by what factor the frequencies of some outcomes do."""

LEFT_OUT = 0.2

CONCENTRATIONS = np.array([2.0, 8.0, 32.0, 128.0, 512.0])
MEANS, WIDEST = 4001, 10.0
"""Of beta distributions that units are drawn from; the logits of means lie within ±WIDEST."""

LEAST_VISITS, LEAST_SEEN = 256, 16
"""Choices with fewer visits, and outcomes that are seen less, are not looked at for units by counts."""

CANDIDATES = np.searchsorted(VISITS, np.rint(32.0 * 2.0 ** (np.arange(8 * 24) / 8.0)))
"""Places in `VISITS` after which a change is looked for, eight in an octave from 32 visits on."""

SIZES = np.array([[6.0, 0.6], [12.0, 0.25], [24.0, 0.15]])
"""Differences of shares, in standard errors after j visits before and after, and their weights."""

LEAST_CHANGE = 64
"""Visits before which no change is looked for."""


@dataclass(frozen=True)
class Visits:
    """Rows sorted by context, those of i are start[i]:start[i+1]; `contexts` counts unvisited ones, too."""

    row: OffsetArray
    start: OffsetArray
    outcome: IndexArray
    width: OffsetArray
    context: OffsetArray
    contexts: int

    @staticmethod
    def of(context: OffsetArray, outcome: OffsetArray, width: OffsetArray) -> Visits:
        """Those where more than one thing can happen; `width` is by context."""
        wide = width > 1
        row = np.flatnonzero(wide[context])
        key = context[row].astype(np.uint16 if len(width) < 1 << 16 else np.int64)
        row = row[np.argsort(key, kind="stable")].astype(np.int64)
        names, first = np.unique(context[row], return_index=True)
        start = np.append(first, len(row)).astype(np.int64)
        return Visits(
            row,
            start,
            outcome[row].astype(np.int32),
            width[names].astype(np.int64),
            names.astype(np.int64),
            int(np.count_nonzero(wide)),
        )

    def before(self, rows: int) -> Visits:
        """Those of the first rows."""
        early = self.row < rows
        start = np.r_[0, np.cumsum(early)][self.start]
        return replace(self, row=self.row[early], start=start, outcome=self.outcome[early])


def looks(first: int, most: int) -> list[int]:
    """The numbers of visits, or rows, at which evidence is looked at, up to `most`.

    >>> looks(24, 60)
    [24, 30, 37, 46, 58]
    """
    result = [int(first * GROWTH**place) for place in range(LOOKS)]
    return result[: int(np.searchsorted(result, most, side="right"))]


def first_visits(visits: Visits) -> OffsetArray:
    """How many visits to each context are used."""
    number = np.diff(visits.start)
    grid = np.array([0, *looks(FIRST_VISITS, int(number.max(initial=0)))], dtype=np.int64)
    result: OffsetArray = grid[np.searchsorted(grid, number, side="right") - 1]
    return result


def before_last_exits(visits: Visits, rows: int, end: int) -> OffsetArray:
    """How many of the first `rows` rows are exits from each state but for the last; of state `end` all."""
    number = np.diff(visits.before(rows).start)
    return np.where(visits.context == end, number, np.maximum(number - 1, 0)).astype(np.int64)


@dataclass(frozen=True)
class FeatureCells:
    """`cell` of each visit by the feature's value; those of context i are start[i]:start[i+1] (value −2:
    several)."""

    cell: IndexArray
    start: OffsetArray
    value: IndexArray

    @staticmethod
    def of(visits: Visits, code: IndexArray) -> FeatureCells:
        contexts = len(visits.width)
        owner = np.repeat(np.arange(contexts), np.diff(visits.start))
        value = code[visits.row].astype(np.int64) + 1
        wide = int(value.max(initial=0)) + 1
        key, size = owner * wide + value, contexts * wide
        is_dense = size <= 8 * len(value)
        names, key = (np.arange(size), key) if is_dense else np.unique(key, return_inverse=True)
        first = first_rows(key, len(names))
        order = np.argsort(first, kind="stable")[: np.count_nonzero(first < len(key))]
        rank = np.arange(len(order)) - np.searchsorted(names[order] // wide, names[order] // wide)
        kept = rank < MOST_VALUES
        place = np.zeros(len(names), dtype=np.int32)
        place[order] = np.cumsum(kept) - 1
        last = np.flatnonzero(kept & np.append(~kept[1:], False))
        labels = (names[order] % wide - 1).astype(np.int32)
        labels[last] = -2
        start = np.searchsorted(names[order][kept] // wide, np.arange(contexts + 1)).astype(np.int64)
        return FeatureCells(place[key], start, labels[kept])


def weigh(visits: Visits, cells: FeatureCells, used: OffsetArray, by_context: bool) -> float:
    """log of an e-value: products over contexts and cells, hedged in several ways, averaged over κ."""
    gain, owner, each = _by_context(visits, cells, used)
    rank = np.arange(len(owner)) - cells.start[owner]
    single = np.full(each.shape, -math.inf)
    np.logaddexp.at(single, owner, gain - np.log((rank + 1.0) * (rank + 2.0))[:, None])
    single = np.logaddexp(single, -np.log(np.diff(cells.start) + 1.0)[:, None])
    dense = each.sum(axis=0)
    if by_context:
        reached = np.where(used > 0, -math.log(LOOKS), -math.inf)[:, None]
        each, single = each + reached, single + reached
    share = 1.0 / max(visits.contexts, 2)
    parts = [hedged(each, 0.5), hedged(each, share), hedged(single, share)]
    return mean(np.concatenate(parts if by_context else [dense, *parts]))


def _by_context(
    visits: Visits, cells: FeatureCells, used: OffsetArray
) -> tuple[FloatArray, OffsetArray, FloatArray]:
    """log of the product of bets at each cell, by κ; the context of each; the product of each context."""
    gain = _gains(visits.start, visits.outcome, visits.width, cells.cell, cells.start, used, SHRINKAGE)
    gain -= 1e-12 * np.abs(gain) + 1e-12
    owner = np.repeat(np.arange(len(visits.width)), np.diff(cells.start))
    each = np.zeros((len(visits.width), len(SHRINKAGE)))
    np.add.at(each, owner, gain)
    return gain, owner, each


def hedged_by_context(visits: Visits, cells: FeatureCells, used: OffsetArray) -> FloatArray:
    """What each context says, the best κ: for naming it."""
    each = _by_context(visits, cells, used)[2]
    result: FloatArray = each[:, int(np.argmax(np.maximum(each, 0.0).sum(axis=0)))]
    return result


def weigh_units(
    visits: Visits, unit: IndexArray, units: int, used: OffsetArray, sorts: list[BoolArray], by_context: bool
) -> float:
    """log of the e-value for units that differ; a visited context is left out with weight `LEFT_OUT`."""
    start = np.concatenate([[0], np.cumsum(visits.width)]).astype(np.int64)
    part, ratio = (np.ravel(one) for one in np.meshgrid(PARTS_OF_UNITS, RATIOS, indexing="ij"))
    low = 1.0 / (1.0 - part + part * ratio)
    factors = np.concatenate([low, low * ratio])
    results = []
    for sort in sorts:
        marked = np.add.reduceat(sort.astype(np.int64), start[:-1])
        concerned = (marked > 0) & (marked < visits.width)
        taken, price = np.where(concerned, used, 0), 0.0
        if by_context:
            taken = np.where(taken * 16 >= taken.max(initial=0), taken, 0)
            number = int(np.count_nonzero(taken))
            price = number * math.log(LOOKS / (1.0 - LEFT_OUT))
            price -= (int(concerned.sum()) - number) * math.log(LEFT_OUT)
        gain = _tilts(visits.start, visits.outcome, start, taken, sort, unit, units, factors)
        gain -= 1e-12 * np.abs(gain) + 1e-12
        low_gain, high_gain = gain[:, : len(part)], gain[:, len(part) :]
        each = np.logaddexp(np.log1p(-part) + low_gain, np.log(part) + high_gain)
        results.append(each.sum(axis=0) - price)
    return mean(np.concatenate(results))


@dataclass(frozen=True)
class ChangePoint:
    """The strongest evidence for a change, after `before` visits; `reached`: visits at the level, or −1."""

    log_e: float
    context: int
    outcome: int
    before: int
    reached: int


def weigh_changes(counts: Sequence[OffsetArray], level: float, is_timed: bool = False) -> ChangePoint | None:
    """Evidence that the distribution of a context changed, from counts at the visits of `VISITS`."""
    best: ChangePoint | None = None
    contexts = sum(seen.shape[1] > 1 for seen in counts)
    for context, seen in enumerate(counts):
        width, visits = seen.shape[1], int(VISITS[len(seen) - 1])
        blocks = np.count_nonzero(np.diff(seen, axis=0), axis=1)
        mixed = width if is_timed else np.count_nonzero(blocks > 1)  # without times, sorted logs say nothing
        if width < 2 or visits < LEAST_CHANGE or mixed < width:
            continue
        outcomes = [1] if width == 2 else range(width)
        price = math.log(contexts * len(outcomes) * len(CANDIDATES))
        for outcome in outcomes:
            own = np.ascontiguousarray(seen[:, outcome])
            if not 0 < own[-1] < visits:
                continue
            least = (level + price) * (1.0 + 2e-9) + 2e-9  # more than rounding can make up
            log_e, before, reached = _follow_changes(own, VISITS, CANDIDATES, SIZES, least)
            value = log_e - price - 1e-9 * (1.0 + abs(log_e))
            if best is None or value > best.log_e:
                best = ChangePoint(value, context, outcome, int(before), int(reached))
    return best


@kernel
def _follow_changes(
    seen: OffsetArray, visits: OffsetArray, candidates: OffsetArray, sizes: FloatArray, level: float
) -> tuple[float, int, int]:
    """(largest log of a mixture of bets, its j, visits at the level); pairs of blocks around j."""
    best, at, reached = -np.inf, 0, -1
    wealth = np.zeros((len(sizes), 2))
    for place in candidates:
        if place + 1 >= len(seen):
            break
        j = visits[place]
        for s in range(len(sizes)):
            wealth[s, :] = np.log(0.5 * sizes[s, 1])
        low, high, number, total = place, place, 0.0, 0.0
        while high + 1 < len(seen) and low > 0:
            high += 1
            start, goal = low - 1, 2 * j - visits[high]
            while start > 0 and 2 * goal < visits[start] + visits[start - 1]:
                start -= 1
            x, size_x = float(seen[low] - seen[start]), float(visits[low] - visits[start])
            y, size_y = float(seen[high] - seen[high - 1]), float(visits[high] - visits[high - 1])
            if number > 0.0:
                mean = (total + 0.5) / (number + 1.0)
                even = 2.0 * size_x * size_y / (size_x + size_y)
                largest, least = -np.inf, min(size_x, size_y)
                for s in range(len(sizes)):
                    apart = sizes[s, 0] * np.sqrt(mean * (1.0 - mean) / (2.0 * j)) * even
                    apart = min(apart, 0.9 * min(mean, 1.0 - mean) * least)
                    for sign in range(2):
                        before, after = apart / size_x, apart / size_y
                        if sign == 1:
                            before, after = -before, -after
                        wealth[s, sign] += x * np.log1p(-before / mean)
                        wealth[s, sign] += (size_x - x) * np.log1p(before / (1.0 - mean))
                        wealth[s, sign] += y * np.log1p(after / mean)
                        wealth[s, sign] += (size_y - y) * np.log1p(-after / (1.0 - mean))
                        largest = max(largest, wealth[s, sign])
                summed = 0.0
                for s in range(len(sizes)):
                    summed += np.exp(wealth[s, 0] - largest) + np.exp(wealth[s, 1] - largest)
                value = largest + np.log(summed)
                if value > best:
                    best, at = value, j
                if value >= level and (reached < 0 or visits[high] < reached):
                    reached = visits[high]
            number += size_x + size_y
            total += x + y
            low = start
    return best, at, reached


def weigh_counts(
    table: CountTable, choice_of: IndexArray, width: OffsetArray, units: bool = False
) -> tuple[float, FloatArray]:
    """log of an e-value by counts alone, and that of each choice; `choice_of` is by transition, `width` the
    number of outcomes by choice. `units`: the values of the feature are many and alike."""
    table = table.select(width[choice_of[table.transition]] > 1)
    choice, number = choice_of[table.transition].astype(np.int64), table.number.astype(np.float64)
    pooled = sums(table.transition, number, len(choice_of))
    visits = sums(choice, number, len(width))
    seen = np.flatnonzero(pooled)
    owner, half = choice_of[seen], 0.5 * width
    most = sums(owner, pooled[seen] * np.log(pooled[seen] / visits[owner]), len(width))
    whole = sums(owner, gammaln(pooled[seen] + 0.5) - gammaln(0.5), len(width))
    names, value = np.unique(table.value, return_inverse=True)
    cell, place = np.unique(choice * max(len(names), 1) + value, return_inverse=True)
    owner = cell // max(len(names), 1)
    cells = np.bincount(owner, minlength=len(width))
    inside = sums(place, number, len(cell))
    own = sums(place, gammaln(number + 0.5) - gammaln(0.5), len(cell)) - _norm(inside, half[owner])
    every = pooled[table.transition]
    less = sums(place, gammaln(every + 0.5) - gammaln(every - number + 0.5), len(cell))
    rest = whole[owner] - less - _norm(visits[owner] - inside, half[owner])
    single = np.full(len(width), -math.inf)
    np.logaddexp.at(single, owner, own + rest - np.log(cells[owner] * (cells[owner] + 1.0)))
    terms = [sums(owner, own, len(width)), single]
    if units:
        terms.append(_spread(table, choice, pooled, visits, width, whole))
    met = visits > 0.0
    gain = np.zeros(len(width))
    gain[met] = np.logaddexp.reduce(np.stack(terms)[:, met], axis=0) - math.log(len(terms)) - most[met]
    gain[met] -= SPARE * (8.0 * (visits * np.log(visits + half + 3.0) + width + cells) + 100.0)[met]
    return bet_on_all(gain[met], max(int(np.count_nonzero(width > 1)), 2)) + table.log_weight, gain


def sums(place: AnyArray, weights: FloatArray, size: int) -> FloatArray:
    return np.bincount(place, weights=weights, minlength=size).astype(np.float64)


def _norm(number: FloatArray, half: FloatArray) -> FloatArray:
    """What the probabilities of a mixture of Krichevsky and Trofimov are divided by, a logarithm."""
    result: FloatArray = gammaln(number + half) - gammaln(half)
    return result


def _spread(
    table: CountTable,
    choice: OffsetArray,
    pooled: FloatArray,
    visits: FloatArray,
    width: OffsetArray,
    whole: FloatArray,
) -> FloatArray:
    """log of predictions of units with probabilities of their own around one mean, by choice."""
    result = np.full(len(width), -math.inf)
    order = np.argsort(choice, kind="stable")
    limits = np.searchsorted(choice[order], np.arange(len(width) + 1))
    for one in np.flatnonzero(visits >= LEAST_VISITS).tolist():
        part = order[limits[one] : limits[one + 1]]
        unit, place = np.unique(table.value[part], return_inverse=True)
        number = table.number[part].astype(np.float64)
        total = sums(place, number, len(unit))
        terms = []
        for outcome in np.unique(table.transition[part]).tolist():
            if not LEAST_SEEN <= pooled[outcome] <= visits[one] - LEAST_SEEN:
                continue
            mine = table.transition[part] == outcome
            pair = sums(place[mine], number[mine], len(unit)) * (total.max() + 1.0) + total
            pair, times = np.unique(pair, return_counts=True)
            own, every = np.divmod(pair, total.max() + 1.0)
            others = 0.5 * (width[one] - 1.0)
            rest = whole[one] - gammaln(pooled[outcome] + 0.5) + gammaln(0.5)
            rest -= gammaln(visits[one] - pooled[outcome] + others) - gammaln(others)
            terms.append(rest + _around(own, every, times, pooled[outcome] / visits[one]))
        if terms:
            result[one] = np.logaddexp.reduce(terms) - math.log(width[one])
    return result


def _around(own: FloatArray, every: FloatArray, times: OffsetArray, share: float) -> float:
    """log of the average over beta distributions, of those that have means next to this one."""
    step = 2.0 * WIDEST / (MEANS - 1)
    below = math.floor((min(max(float(logit(share)), -WIDEST), WIDEST - 2.0 * step) + WIDEST) / step)
    means = expit(np.array([below, below + 1]) * step - WIDEST)
    a = (CONCENTRATIONS[:, None] * means).reshape(-1, 1)
    b = (CONCENTRATIONS[:, None] * (1.0 - means)).reshape(-1, 1)
    each = (betaln(own + a, every - own + b) - betaln(a, b)) @ times
    return float(np.logaddexp.reduce(each)) - math.log(MEANS * len(CONCENTRATIONS))


def first_rows(code: AnyArray, codes: int) -> OffsetArray:
    """The first row that has each code; their number where none has."""
    result = np.full(codes, len(code), dtype=np.int64)
    result[code[::-1]] = np.arange(len(code) - 1, -1, -1)
    return result


@kernel
def _gains(
    start: OffsetArray,
    outcome: IndexArray,
    width: OffsetArray,
    cell: IndexArray,
    first: OffsetArray,
    used: OffsetArray,
    shrinkage: FloatArray,
) -> FloatArray:
    """log of the product of bets at each cell, by κ, over the first used[i] visits of context i."""
    sizes = len(shrinkage)
    result = np.zeros((first[-1], sizes))
    product = np.ones((first[-1], sizes))
    widest = max(1, width.max()) if len(width) else 1
    urn, rarity, every = np.empty(widest), np.empty(widest), np.empty(widest)
    for context in range(len(width)):
        number = used[context]
        if number < 2:
            continue
        begin, wide = start[context], width[context]
        urn[:wide] = 0.0
        for i in range(begin, begin + number):
            urn[outcome[i]] += 1.0
        for x in range(wide):
            rarity[x] = number / urn[x] if urn[x] > 0.0 else 0.0
        low, cells = first[context], first[context + 1] - first[context]
        seen, visits = np.zeros((cells, wide)), np.zeros(cells)
        every[:wide] = 0.0
        left = float(number)
        for i in range(begin, begin + number):
            at, o = cell[i], outcome[i]
            own, mine = seen[at - low], visits[at - low]
            theirs = number - left - mine
            if mine + theirs > 0.0:
                part = (mine + 1.0) / (mine + theirs + 2.0)
                for j in range(sizes):
                    kappa = shrinkage[j]
                    here, there = part / (mine + kappa), (1.0 - part) / (theirs + kappa)
                    total, drawn = 0.0, 0.0
                    for x in range(wide):
                        if urn[x] > 0.0:
                            high = (own[x] + kappa) * here
                            weight = high / (high + (every[x] - own[x] + kappa) * there)
                            total += urn[x] * weight
                            if x == o:
                                drawn = weight
                    value = product[at, j] * (drawn * left / total)
                    if value < 1e-200 or value > 1e200:
                        result[at, j] += np.log(value)
                        value = 1.0
                    product[at, j] = value
            urn[o] -= 1.0
            left -= 1.0
            own[o] += rarity[o]
            every[o] += rarity[o]
            visits[at - low] += 1.0
    for at in range(first[-1]):
        for j in range(sizes):
            result[at, j] += np.log(product[at, j])
    return result


@kernel
def _tilts(
    start: OffsetArray,
    outcome: IndexArray,
    outcomes: OffsetArray,
    used: OffsetArray,
    sort: BoolArray,
    unit: IndexArray,
    units: int,
    factors: FloatArray,
) -> FloatArray:
    """log of the product of bets at each unit, by factor, over the first used[i] visits of context i."""
    sizes = len(factors)
    result = np.zeros((units, sizes))
    product = np.ones((units, sizes))
    for context in range(len(used)):
        begin, number = start[context], used[context]
        left, marked = float(number), 0.0
        for i in range(begin, begin + number):
            if sort[outcomes[context] + outcome[i]]:
                marked += 1.0
        if marked == 0.0 or marked == number:
            continue
        for i in range(begin, begin + number):
            who = unit[i]
            is_marked = sort[outcomes[context] + outcome[i]]
            if who >= 0:
                share = marked / left
                for j in range(sizes):
                    value = product[who, j] / (1.0 + (factors[j] - 1.0) * share)
                    if is_marked:
                        value *= factors[j]
                    if value < 1e-200 or value > 1e200:
                        result[who, j] += np.log(value)
                        value = 1.0
                    product[who, j] = value
            left -= 1.0
            if is_marked:
                marked -= 1.0
    for who in range(units):
        for j in range(sizes):
            result[who, j] += np.log(product[who, j])
    return result
