"""The best mixture of policies for an amount of data, with a certified distance from the optimum.

Fully corrective Frank–Wolfe minimises Φ(past + n·M(ρ)), Φ convex and decreasing (`Criterion`). With S = −∇Φ
the loss is at most n·(max_ρ ⟨S, M(ρ)⟩ − ⟨S, M(ρ)⟩), and ⟨S, M(ρ)⟩ is the total of rewards tr(S·I_c) of an
episode: an upper bound on the value of an MDP certifies the distance. Multiplicative steps improve all
weights. With prices everything counts per unit of cost. A stage's directions are those of the robust policy
(weight 1), of the optimistic one (½) and of the best policies at θ̂ ± √K·I⁻¹c/‖c‖_{I⁻¹} (¼ each), c the
gradient of its value.

*Draws* per choice, for a generative model in which every choice can be sampled. Experiments are signatures; a
draw has the information I_i = F_iᵀF_i, F_i = ∇p/√p. The design minimises Φ = Σ_k w_k·‖v_k‖_{M⁻¹} over shares
of the money. One direction without a past: Elfving's theorem, a cone program. Otherwise multiplicative steps,
within `optimality` of the best by the slope. A tenth is spread evenly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tightrope.coupled.ball import golden_section
from tightrope.data.counts import Counts
from tightrope.design.directions import Criterion, Directions, EveryDirection, Information, find_directions
from tightrope.design.episodes import Episodes, stationary
from tightrope.design.oracle import Atom, Oracle, best_episodes
from tightrope.errors import InputError
from tightrope.model.mdp import MDP
from tightrope.model.objective import Objective
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray
from tightrope.numerics.linear_program import least_norms
from tightrope.solver.solve import solve
from tightrope.statistics.outcomes import Outcomes

OPTIMALITY = 0.005
"""Of Φ: a design this close to the best is good enough."""

EFFICIENCY = 0.03
"""… if what matters also comes in at nearly the best rate: where past data dominate, Φ hardly changes."""

MOST_SOLVES = 60
_STEPS = 60
_SMALL_SHARE = 1e-4


@dataclass(frozen=True, eq=False)
class Design:
    """A mixture of policies to explore with.

    * `atoms` and `shares` of episodes: draw an atom per episode. `policy` is the same as one randomised
      policy; under a cap only nearly so.
    * `matrix` is the information, `steps` the length, `cost` the price of an episode, all expected.
    * `optimality`: at most this share of Φ is lost against the best exploration of equal cost at the
      estimate; certified by the last of `solves` oracle calls. `efficiency`: the rate of relevant information
      over the most possible.
    """

    atoms: tuple[Atom, ...]
    shares: FloatArray
    occupancy: FloatArray
    matrix: FloatArray
    steps: float
    cost: float
    value: float
    optimality: float
    efficiency: float
    solves: int
    policy: Policy

    @property
    def policies(self) -> list[tuple[float, Policy]]:
        """Every policy with its share of episodes."""
        return [
            (float(share) * part, policy)
            for share, atom in zip(self.shares, self.atoms, strict=True)
            for part, policy in atom.parts
        ]


def design(
    information: Information,
    criterion: Criterion,
    past: FloatArray,
    amount: float,
    oracle: Oracle,
    start: Sequence[Atom] = (),
) -> Design:
    """Return the mixture that makes Φ(past + amount·M) small.

    `past` is prior information (with smoothing, so regular); `amount` the planned episodes, or their cost.
    `start` are atoms to begin with.
    """
    search = _DesignSearch(information, criterion, past, amount)
    for atom in start:
        search.join(atom)
    solves, loss, efficiency = 0, np.inf, 0.0
    while solves < MOST_SOLVES:
        slope = criterion.slope(search.total)
        answer = oracle(information.rewards(slope))
        solves += 1
        if search.atoms:
            reached = float(np.vdot(slope, search.mixed))
            value = criterion.value(search.total)
            room = max(answer.upper - reached, 0.0)
            bound = amount * room / max(criterion.unit(value), 1e-300)
            loss, efficiency = min(loss, bound), 1.0 - room / max(answer.upper, 1e-300)
            if bound <= OPTIMALITY and efficiency >= 1.0 - EFFICIENCY:
                break
            if answer.value <= reached * (1.0 + 1e-9):  # nothing better is known: weights alone are left
                if not search.correct():
                    break
                continue
        search.join(answer.atom)
    return search.design(loss, efficiency, solves)


class _DesignSearch:
    """Atoms with weights; everything per unit of cost."""

    def __init__(self, information: Information, criterion: Criterion, past: FloatArray, amount: float):
        self.information, self.criterion = information, criterion
        self.past, self.amount = past, amount
        self.atoms: list[Atom] = []
        self.matrices = np.zeros((0, *past.shape))
        self.weights = np.zeros(0)

    @property
    def mixed(self) -> FloatArray:
        """The information per unit of cost."""
        return np.tensordot(self.weights, self.matrices, 1)

    @property
    def total(self) -> FloatArray:
        return self._total(self.weights)

    def join(self, atom: Atom) -> None:
        """Add an atom with its best weight, then improve all weights."""
        matrix = self.information.of_visits(atom.occupancy) / atom.cost
        self.atoms.append(atom)
        self.matrices = np.concatenate([self.matrices, matrix[None]])
        self.weights = self._with_newest()
        self.correct()
        weighty = self.weights >= _SMALL_SHARE
        self.atoms = [one for one, stays in zip(self.atoms, weighty, strict=True) if stays]
        self.matrices, self.weights = (
            self.matrices[weighty],
            self.weights[weighty] / self.weights[weighty].sum(),
        )

    def correct(self) -> bool:
        """Multiplicative steps on all weights, as long as they help; whether they did."""
        value = begin = self._value(self.weights)
        for _ in range(_STEPS):
            slope = self.criterion.slope(self.total)
            gain = np.sqrt(np.maximum(np.einsum("ij,kij->k", slope, self.matrices), 0.0))
            weights = self.weights * gain
            if not weights.sum() > 0.0:
                break
            weights /= weights.sum()
            reached = self._value(weights)
            if not reached < value:
                break
            self.weights = weights
            improved, value = value - reached, reached
            if improved <= 1e-7 * abs(value):
                break
        return value < begin - 1e-7 * abs(begin)

    def design(self, loss: float, efficiency: float, solves: int) -> Design:
        cost = np.array([atom.cost for atom in self.atoms])
        shares = self.weights / cost
        shares = shares / shares.sum()
        occupancy = np.zeros(self.information.model.structure.choices)
        for share, atom in zip(shares, self.atoms, strict=True):
            occupancy += share * atom.occupancy
        structure = self.information.model.structure
        return Design(
            tuple(self.atoms),
            shares,
            occupancy,
            self.information.of_visits(occupancy),
            float(occupancy.sum()),
            float(shares @ cost),
            self._value(self.weights),
            loss,
            efficiency,
            solves,
            stationary(structure, occupancy),
        )

    def _with_newest(self) -> FloatArray:
        """The weights with the newest atom's found by golden section."""
        if len(self.atoms) == 1:
            return np.ones(1)

        def at(share: float) -> FloatArray:
            return np.append(self.weights * (1.0 - share), share)

        return at(golden_section(lambda share: self._value(at(share)), 0.0, 1.0, 40)[0])

    def _total(self, weights: FloatArray) -> FloatArray:
        return self.past + self.amount * np.tensordot(weights, self.matrices, 1)

    def _value(self, weights: FloatArray) -> float:
        return self.criterion.value(self._total(weights))


OPTIMISTIC_WEIGHT = 0.5
NEARBY_WEIGHT = 0.25
FEWEST = 16
"""Episodes that a stage is planned for at least."""


@dataclass(frozen=True, eq=False)
class Question:
    """What exploration is for, and when an episode ends; `radius` is about √K of the region."""

    model: ParametricMDP
    objective: Objective
    stop: BoolArray
    cap: int | None
    coupled: bool
    radius: float


@dataclass(frozen=True, eq=False)
class Stage:
    """What is known when a stage is designed."""

    question: Question
    information: Information
    episodes: Episodes
    past: FloatArray

    @staticmethod
    def after(question: Question, counts: Counts) -> Stage:
        """After these data."""
        model = question.model
        outcomes = Outcomes.of(model)
        weight = outcomes.by_expression(outcomes.pooled(counts)) * outcomes.informative
        information = Information.at(model, outcomes.maximiser.estimate(weight))
        past = information.of_counts(weight) + information.smoothing
        episodes = Episodes.of(information, question.stop, question.cap)
        return Stage(question, information, episodes, past)

    def criterion(self, robust: Policy, optimistic: Policy) -> Criterion:
        """What the stage is to make small."""
        parts = [(1.0, self._directions(robust)), (OPTIMISTIC_WEIGHT, self._directions(optimistic))]
        parts += [(NEARBY_WEIGHT, self._directions(policy)) for policy in self._nearby(robust)]
        known = [(weight, part) for weight, part in parts if part is not None and len(part)]
        return Directions.together(*known) if known else EveryDirection(self.information.size)

    def design(self, criterion: Criterion, amount: float, oracle: Oracle | None = None) -> Design:
        """The exploration that makes the criterion smallest after `amount` more episodes (or money)."""
        ask = oracle or best_episodes(self.episodes)
        return design(self.information, criterion, self.past, amount, ask)

    def _directions(self, policy: Policy) -> Directions | None:
        question = self.question
        return find_directions(self.information, question.objective, policy, coupled=question.coupled)

    def _nearby(self, robust: Policy) -> Sequence[Policy]:
        """The best policies at two points of the region, far apart in what the robust policy depends on."""
        question, information = self.question, self.information
        directions_there = find_directions(information, question.objective, robust, coupled=True)
        if directions_there is None or not len(directions_there):
            return ()
        along = np.linalg.solve(self.past, directions_there.vector[0])
        length = float(np.sqrt(max(directions_there.vector[0] @ along, 0.0)))
        if not length > 0.0:
            return ()
        policies = []
        for sign in (1.0, -1.0):
            step = sign * question.radius / length * along
            point = information.point + 0.999 * information.room(step) * step
            policies.append(_best_at(question, Information.at(question.model, point)))
        return policies


def _best_at(question: Question, information: Information) -> Policy:
    plain = MDP(question.model.structure, information.probability[question.model.expression])
    return solve(plain, question.objective, precision=1e-4).policy.at(0)


# --- draws -------------------------------------------------------------------------------
EVENLY = 0.1
"""The share of draws that all signatures get alike."""

CLOSE = 0.005
"""Distance from the best at which steps end."""
STEPS = 4000
MOST_DIRECTIONS = 12
"""The heaviest, whose own best shares are what steps begin with."""
NEGLIGIBLE = 1e-12
"""Probabilities below this carry no finite information and are left out."""


@dataclass(frozen=True, eq=False)
class Experiments:
    """Signatures that tell something: `signature[i]` has the factor `factors[i]`, a draw costs `price[i]`."""

    signature: OffsetArray
    factors: tuple[FloatArray, ...]
    price: FloatArray

    @staticmethod
    def of(known: Information, price: FloatArray | None = None) -> Experiments:
        """Those of a model at an estimate; `price` is per signature, 1 by default."""
        signatures = known.model.signatures
        signatures_told: list[int] = []
        factors: list[FloatArray] = []
        for number in range(len(signatures)):
            rows = signatures.expression[signatures.start[number] : signatures.start[number + 1]]
            rows = rows[known.probability[rows] > NEGLIGIBLE]
            factor = _compact(known.slope[rows] / np.sqrt(known.probability[rows])[:, None])
            if len(factor):
                signatures_told.append(number)
                factors.append(factor)
        which = np.array(signatures_told, dtype=np.int64)
        cost = np.ones(len(which)) if price is None else np.asarray(price, dtype=np.float64)[which]
        return Experiments(which, tuple(factors), cost)

    def __len__(self) -> int:
        return len(self.factors)

    @property
    def information(self) -> FloatArray:
        """I_i, one matrix per experiment."""
        return np.array([factor.T @ factor for factor in self.factors])


@dataclass(frozen=True, eq=False)
class DrawDesign:
    """Shares of draws; `best` lacks the even tenth and loses at most `optimality` of the least width."""

    experiments: Experiments
    share: FloatArray
    best: FloatArray
    matrix: FloatArray
    optimality: float
    steps: int

    def draws(self, total: int, signatures: int) -> OffsetArray:
        """Whole numbers of draws for all signatures of the model."""
        drawn = np.zeros(signatures, dtype=np.int64)
        drawn[self.experiments.signature] = whole_draws(self.share, total)
        return drawn


def design_draws(
    experiments: Experiments, criterion: Criterion, past: FloatArray, spend: float
) -> DrawDesign:
    """The shares of draws that make Φ(past + spend·information per money) smallest."""
    if len(experiments) == 0:
        raise InputError("no choice of the model depends on a parameter, so draws give no information")
    if np.any(experiments.price <= 0.0) or not np.all(np.isfinite(experiments.price)):
        raise InputError("the price of a draw must be a positive number")
    each = experiments.information
    even = np.full(len(experiments), 1.0 / len(experiments))
    heaviest = criterion.vector[:MOST_DIRECTIONS] if isinstance(criterion, Directions) else np.zeros((0, 0))
    apart = [elfving(experiments, direction) for direction in heaviest]
    known = [shares for shares in apart if shares is not None]
    if isinstance(criterion, Directions) and len(criterion) == 1 and not np.any(past):
        if not known:
            raise unidentifiable()
        money, distance = known[0]
        steps = 0
    else:
        first = np.mean([shares for shares, _ in known], axis=0) if known else even
        per_money = each / experiments.price[:, None, None]
        money, distance, steps = _improve(per_money, criterion, past, spend, 0.9 * first + 0.1 * even)
    draws = money / experiments.price
    best: FloatArray = draws / draws.sum()
    share: FloatArray = (1.0 - EVENLY) * best + EVENLY * even
    return DrawDesign(experiments, share, best, np.tensordot(share, each, 1), distance, steps)


def elfving(experiments: Experiments, direction: FloatArray) -> tuple[FloatArray, float] | None:
    """Best shares of money for one direction without a past, and their distance; None without information."""
    weight = np.sqrt(experiments.price)
    norms = least_norms(experiments.factors, weight, direction)
    if norms is None or norms.norm.sum() == 0.0:
        return None
    spent = weight * norms.norm
    spent = np.where(spent > 1e-9 * spent.sum(), spent, 0.0)
    share: FloatArray = spent / spent.sum()
    reached = _length(experiments, share, direction)
    return share, max(reached / norms.bound - 1.0, 0.0) if norms.bound > 0.0 else np.inf


def whole_draws(share: FloatArray, total: int) -> OffsetArray:
    """Whole numbers with these shares that sum to the total: the largest remainders get one more."""
    exact = share / share.sum() * total
    whole: OffsetArray = np.floor(exact).astype(np.int64)
    order = np.argsort(-(exact - whole), kind="stable")
    whole[order[: total - int(whole.sum())]] += 1
    return whole


def unidentifiable() -> InputError:
    """No draw tells anything about a direction that matters."""
    return InputError(
        "no choice depends on the parameters that the value depends on, so draws give no information",
        hint="'tightrope info' lists the expressions; a parameter that only constants meet cannot be learned",
    )


def _length(experiments: Experiments, money: FloatArray, direction: FloatArray) -> float:
    """‖v‖_{M⁻¹} for one unit of money, within the range of M (best shares are often singular)."""
    used: BoolArray = money > 0.0
    information = np.zeros((len(direction), len(direction)))
    for factor, share, price in zip(experiments.factors, money, experiments.price, strict=True):
        if share > 0.0:
            information += share / price * (factor.T @ factor)
    size, axes = np.linalg.eigh(information)
    seen = size > 1e-9 * size[-1]
    along = axes[:, seen].T @ direction
    missed = np.linalg.norm(direction - axes[:, seen] @ along)
    if not used.any() or missed > 1e-4 * np.linalg.norm(direction):
        return np.inf
    return float(np.sqrt((along**2 / size[seen]).sum()))


def _improve(
    each: FloatArray, criterion: Criterion, past: FloatArray, spend: float, share: FloatArray
) -> tuple[FloatArray, float, int]:
    """Multiplicative steps on shares of the money, until the distance from the best is small."""
    best, distance, steps = share, np.inf, 0
    for number in range(STEPS):
        total = past + spend * np.tensordot(share, each, 1)
        gain = np.einsum("iab,ab->i", each, criterion.slope(total))
        mean = float(share @ gain)
        unit = max(criterion.unit(criterion.value(total)), 1e-300)
        apart = spend * (float(gain.max()) - mean) / unit
        if apart < distance:
            best, distance, steps = share, apart, number
        if distance <= CLOSE or mean <= 0.0:
            break
        share = share * np.sqrt(np.maximum(gain, 0.0))
        share = share / share.sum()
    return best, float(distance), steps


def _compact(factor: FloatArray) -> FloatArray:
    """Fewest rows with the same FᵀF; none where the factor is zero."""
    if len(factor) == 0:
        return factor
    _, length, directions = np.linalg.svd(factor, full_matrices=False)
    seen: Sequence[bool] = (length > 1e-10 * max(length.max(initial=0.0), 1e-300)) & (length > 0.0)
    compact: FloatArray = length[seen, None] * directions[seen]
    return compact
