"""Data collected episode by episode, under policies that may change.

`GrowingCounts` has an adaptive design: the collector may have seen all earlier data. An update is due after
the episode in which the visits of some choice have doubled (Auer, Jaksch and Ortner 2008), where a batch
ends, or by both rules. Both use visits and numbers of episodes only; learning is time-uniform.

Each simulated episode has its own generator, so a resumed run sees the same episodes. A mixture of policies
(`MixedEpisodes`) draws one policy per episode. `PlannedDraws` is the file of `sample --draws FILE`: planned
draws by signature, spread evenly over its choices.

    {"format": "tightrope draws", "version": 1, "model": "9f2c…", "planned_from": "41ab…", "draws": [
      {"signature": ["p", "1 - p"], "draws": 18000, "choices": 3945, "example": "choice 'bet' of state (…)"}]}

Together with the data of digest `planned_from`, these draws are adaptive.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tightrope.data.counts import Batches, Counts, batch_ends, next_end, sparse
from tightrope.data.design import OPEN_END, SamplingDesign, SamplingKind
from tightrope.data.episode_log import EpisodeLog
from tightrope.data.simulator import EPISODES, EpisodeWalk, Simulator, draw, pick, seed_generator, seed_key
from tightrope.errors import InputError, Location
from tightrope.io.answers import DRAWS_FORMAT, DRAWS_VERSION, DrawsDocument, SignatureDraws
from tightrope.io.coding import read_document, to_text
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy
from tightrope.numerics.arrays import AnyArray, IndexArray, OffsetArray
from tightrope.numerics.jit import kernel
from tightrope.numerics.record import Facts, Record, freeze_fields
from tightrope.provenance import Provenance, of_counts


class GrowingCounts:
    """The data of one learner: `pending` are the counts of the open batch.

    `visits[c]` counts choice c, `looked[c]` did so at the last update. `before` are forgotten episodes and
    steps. `listener` receives all transitions that are added, in their order. `rows` are those of each
    episode that was added by itself.
    """

    def __init__(
        self,
        model: ParametricMDP,
        planned: int | None = None,
        by_choice: bool = True,
        by_batch: bool = False,
        before: tuple[int, int] = (0, 0),
    ):
        self.model, self.planned = model, planned
        self.by_choice, self.by_batch = by_choice, by_batch
        self.before = before
        self.listener: Callable[[OffsetArray], None] | None = None
        self.rows: list[OffsetArray] = []
        self.episodes = 0
        self.steps = 0
        self.pending: OffsetArray = np.zeros(model.transitions, dtype=np.int64)
        self.visits: OffsetArray = np.zeros(model.choices, dtype=np.int64)
        self.looked: OffsetArray = np.zeros(model.choices, dtype=np.int64)
        self.batch_end = next_end(0)
        self._closed: list[tuple[OffsetArray, OffsetArray]] = []
        self._open_episodes = 0
        self._batch_ended = False
        self._begun_with: Counts | None = None
        self._earlier: Callable[[], Provenance] | None = None

    def begin_with(self, counts: Counts) -> None:
        """Go on from data that are there already, before the first episode is added."""
        if counts.model_hash != self.model.hash():
            raise InputError(
                "the data are of another model",
                hint="build both from the same model with the same constants and domain",
            )
        if counts.design.episodes is None:
            raise InputError("the data to begin with do not come in episodes")
        self._closed = list(counts.in_batches)
        self._begun_with, self._earlier = counts, lambda: counts.provenance
        self.episodes, self.steps = counts.design.episodes, counts.steps
        self.visits = counts.visits.copy()
        self.batch_end = next_end(self.episodes)

    @property
    def update_is_due(self) -> bool:
        """Whether one of the rules asks for a look."""
        if self.by_batch and self._batch_ended:
            return True
        return self.by_choice and bool(np.any(self.visits - self.looked >= np.maximum(self.looked, 1)))

    @property
    def compared(self) -> OffsetArray:
        """The visits that a choice must double: those of the last look, or more than there can be."""
        return self.looked if self.by_choice else np.full(len(self.looked), 1 << 61, dtype=np.int64)

    @property
    def number(self) -> int:
        """The number of the next episode: no other one has had it, so its random numbers are its own."""
        return self.before[0] + self.episodes

    def look(self) -> None:
        """From here on visits are compared with those of now."""
        self.looked = self.visits.copy()
        self._batch_ended = False

    def add(self, transitions: OffsetArray, rows: OffsetArray | None = None) -> None:
        """Count one episode, given by its transitions; `rows` are those of the model under a product."""
        self.rows.append(transitions if rows is None else rows)
        np.add.at(self.pending, transitions, 1)
        np.add.at(self.visits, self.model.structure.transition_choice[transitions], 1)
        self.counted(1, len(transitions))
        if self.listener is not None:
            self.listener(transitions)

    def counted(self, episodes: int, steps: int) -> None:
        """Take note of episodes of one batch whose transitions are in `pending` and `visits` already."""
        assert self.episodes + episodes <= self.batch_end
        self.episodes += episodes
        self.steps += steps
        self._open_episodes += episodes
        if self.episodes == self.batch_end:
            self._closed.append(sparse(self.pending))
            self.pending[:] = 0
            self._open_episodes = 0
            self._batch_ended = True
            self.batch_end = next_end(self.episodes)

    def counts(self) -> Counts:
        """What has been seen so far: the closed batches, and the open one where it has an episode."""
        parts = [*self._closed, sparse(self.pending)] if self._open_episodes else self._closed
        design = SamplingDesign(SamplingKind.ADAPTIVE, self.episodes, self.steps, anytime=True)
        design = replace(design, planned=self.planned)
        if self._begun_with is not None:
            before = self._begun_with.design
            added, steps = self.episodes - (before.episodes or 0), self.steps - before.steps
            design = before.merged(SamplingDesign(SamplingKind.ADAPTIVE, added, steps, anytime=True))
        batches, structure = Batches.from_parts(parts), self.model.structure
        counts = Counts.from_batches(batches, structure.transition_start, design, self.model.hash())
        earlier = self._earlier

        def seen() -> Provenance:
            whole = of_counts(structure, counts.transition)
            return whole if earlier is None else whole | earlier()

        return replace(counts, seen=seen)

    def log_of(self, model: ParametricMDP) -> Callable[[], EpisodeLog] | None:
        """All rows, as those of `model`; None where they are not at hand."""
        before, parts = self._begun_with, tuple(self.rows)
        first, known = (None, 0) if before is None else (before.log, before.design.episodes or 0)
        if known + len(parts) < self.episodes or (known and first is None):
            return None

        def log() -> EpisodeLog:
            added = EpisodeLog.of_parts(parts, model.structure, model.hash())
            return added if first is None else first() + added

        return log

    def state(self) -> dict[str, AnyArray]:
        """Everything, as arrays."""
        earlier = b"" if self._earlier is None else self._earlier().text().encode()
        batches = Batches.from_parts(self._closed)
        return {
            "batch_start": batches.start,
            "batch_transition": batches.transition,
            "batch_count": batches.count,
            "pending": self.pending,
            "looked": self.looked,
            "progress": np.array([self.episodes, self.steps, self._open_episodes, self.batch_end]),
            "planned": np.array([] if self.planned is None else [self.planned], dtype=np.int64),
            "before": np.array(self.before, dtype=np.int64),
            "earlier": np.frombuffer(earlier, dtype=np.uint8),
            "row": np.concatenate([np.empty(0, np.int64), *self.rows]),
            "row_start": np.cumsum([0, *map(len, self.rows)]),
        }

    @staticmethod
    def restored(
        model: ParametricMDP,
        state: Mapping[str, AnyArray],
        by_choice: bool = True,
        by_batch: bool = False,
        begun_with: Counts | None = None,
    ) -> GrowingCounts:
        """What `state` was taken of, right after a look; `begun_with` are the data that it began with."""
        plan, (episodes, steps) = state["planned"].tolist(), state["before"].tolist()
        data = GrowingCounts(model, plan[0] if plan else None, by_choice, by_batch, (episodes, steps))
        data._begun_with = None if episodes else begun_with
        if earlier := bytes(state["earlier"]).decode():
            known = Provenance.parse(earlier)
            data._earlier = lambda: known
        data.rows = np.split(state["row"], state["row_start"][1:-1])[: len(state["row_start"]) - 1]
        batches = Batches(state["batch_start"], state["batch_transition"], state["batch_count"])
        data._closed = list(batches)
        data.pending = state["pending"].copy()
        data.looked = state["looked"].copy()
        total = batches.total(model.transitions) + data.pending
        np.add.at(data.visits, model.structure.transition_choice, total)
        data.episodes, data.steps, data._open_episodes, data.batch_end = state["progress"].tolist()
        return data


def simulate_until_doubled(
    simulator: Simulator, policy: Policy, seed: int, data: GrowingCounts, last: int
) -> None:
    """Add episodes of the simulator's model under `policy`, until an update is due or there are `last`."""
    choice_of = simulator.mdp.structure.transition_choice
    walk, runs = replace(simulator, policy=policy)._walk(seed_key(seed, EPISODES))
    assert runs is None, "the policy of one look depends on the state alone"
    compared, due = data.compared, False
    while not due and data.episodes < last:
        walked, steps, doubled = walk_until_doubled(
            walk,
            choice_of,
            data.number,
            data.before[0] + min(last, data.batch_end),
            compared,
            data.visits,
            data.pending,
        )
        data.counted(walked, steps)
        due = doubled or data.update_is_due


@kernel
def walk_until_doubled(
    walk: EpisodeWalk,
    transition_choice: IndexArray,
    first: int,
    last: int,
    looked: OffsetArray,
    visits: OffsetArray,
    count: OffsetArray,
) -> tuple[int, int, bool]:
    """Walk episodes from `first` on, at most up to last−1, and end with the one in which a choice doubles.

    Adds to `visits` and `count`. Returns the episodes walked, their steps, and whether a choice doubled.
    """
    row, bucket, successor, initial, cap, key = walk
    generator = np.empty(4, dtype=np.uint64)
    steps, due, number = 0, False, first
    while number < last and not due:
        seed_generator(key, number, generator)
        state = initial
        done = 0
        while done < cap and row[state] >= 0:
            t = pick(row[state], bucket, draw(generator))
            c = transition_choice[t]
            count[t] += 1
            visits[c] += 1
            if visits[c] - looked[c] >= max(looked[c], 1):
                due = True
            done += 1
            state = successor[t]
        steps += done
        number += 1
    return number - first, steps, due


CLOSE = 1e-6
"""How far shares may sum from 1."""


@dataclass(frozen=True, eq=False)
class MixedEpisodes:
    """A simulator whose policy is drawn anew for every episode.

    >>> import tightrope as tr
    >>> bench = tr.benchmark("betting(5)")
    >>> truth = tr.Simulator(bench.at_truth.model, model_hash=bench.model.hash())
    >>> both = MixedEpisodes(truth, [0.25, 0.75], [tr.Policy.uniform(bench.model)] * 2)
    >>> both.episodes(100, seed=1).design.episodes
    100
    """

    simulator: Simulator
    shares: Sequence[float]
    policies: Sequence[Policy]

    def __post_init__(self) -> None:
        if len(self.shares) != len(self.policies) or not len(self.shares):
            raise InputError(f"{len(self.policies)} policies have {len(self.shares)} shares")
        if min(self.shares) < 0.0 or abs(sum(self.shares) - 1.0) > CLOSE:
            raise InputError(f"the shares of policies sum to {sum(self.shares):.6g}, not to 1")

    @property
    def hash(self) -> str:
        """The hash that the counts carry."""
        return self.simulator.hash

    @property
    def repeats(self) -> bool:
        """Whether an episode can take the same choice twice."""
        return self.simulator.repeats

    def episodes(self, episodes: int, seed: int, first: int = 0) -> Counts:
        """Counts of episodes in batches, as `Simulator.episodes` has them."""
        if episodes < 1:
            raise InputError(f"the number of episodes is {episodes}, but it must be at least 1")
        share = np.asarray(self.shares, dtype=np.float64)
        each = [replace(self.simulator, policy=policy) for policy in self.policies]
        parts: list[tuple[OffsetArray, OffsetArray]] = []
        begin = 0
        for end in batch_ends(episodes).tolist():
            rng = np.random.default_rng([seed, first + begin])
            sizes = rng.multinomial(end - begin, share / share.sum())
            total = np.zeros(self.simulator.mdp.transitions, dtype=np.int64)
            for walker, size in zip(each, sizes.tolist(), strict=True):
                if size:
                    total += walker.episodes(size, seed, first=first + begin).transition
                    begin += size
            parts.append(sparse(total))
        batches = Batches.from_parts(parts)
        steps = int(batches.count.sum())
        design = SamplingDesign(SamplingKind.TRAJECTORIES, episodes, steps, self.repeats, planned=episodes)
        return Counts.from_batches(batches, self.simulator.mdp.transition_start, design, self.hash)


def append_episodes(counts: Counts, simulator: Simulator | MixedEpisodes, episodes: int, seed: int) -> Counts:
    """The counts with so many episodes of the simulator after them.

    With the seed of earlier episodes of the same simulator new numbers are drawn all the same.
    """
    earlier, design = counts.design.episodes, counts.design
    if counts.model_hash != simulator.hash:
        raise InputError(
            "the data are those of another model",
            hint="build the model with the constants and the domain that the data were collected with",
        )
    if earlier is None or counts.batches is None:
        raise InputError("the data do not come in episodes, so no episodes can be appended to them")
    if episodes < 1:
        raise InputError(f"the number of episodes is {episodes}, but it must be at least 1")
    parts = list(counts.batches)
    total = earlier + episodes
    ends = batch_ends(total)
    is_open = len(parts) > 0 and earlier not in batch_ends(next_end(earlier) * 2)
    begin = earlier
    for end in ends[ends > earlier].tolist():
        drawn = simulator.episodes(end - begin, seed, first=begin).transition
        if begin == earlier and is_open:
            drawn = drawn + Batches.from_parts([parts.pop()]).total(len(drawn))
        parts.append(sparse(drawn))
        begin = end
    batches = Batches.from_parts(parts)
    steps = int(batches.count.sum())
    missing = tuple(dict.fromkeys([*design.censored, *([OPEN_END] if design.open_end else [])]))
    repeats = design.repeats or simulator.repeats
    later = SamplingDesign(SamplingKind.ADAPTIVE, total, steps, repeats, censored=missing)
    return Counts.from_batches(batches, counts.transition_start, later, counts.model_hash)


MOST_DRAWS = 1 << 31
"""Of one signature."""


@dataclass(frozen=True, eq=False, repr=False)
class PlannedDraws(Record):
    """How often each signature of a model is to be drawn.

    >>> import tightrope as tr
    >>> model = tr.benchmark("betting(5)").model
    >>> draws = np.zeros(len(model.signatures), dtype=np.int64)
    >>> draws[-1] = 100
    >>> int(PlannedDraws(model, draws).per_choice.sum())
    100
    """

    model: ParametricMDP
    draws: OffsetArray
    planned_from: str | None = None

    def __post_init__(self) -> None:
        if len(self.draws) != len(self.model.signatures) or np.any(self.draws < 0):
            raise ValueError("one number of draws per signature, none of them negative")
        freeze_fields(self)

    def _facts_(self) -> Facts:
        drawn = int(np.count_nonzero(self.draws))
        return [("draws", f"{int(self.draws.sum()):,} of {drawn:,} of {len(self.draws):,} signatures")]

    @property
    def per_choice(self) -> OffsetArray:
        """The draws of every choice: a signature's are spread evenly, the first choices get what is left."""
        of_choice = self.model.signatures.of_choice
        members = np.bincount(of_choice, minlength=len(self.draws))
        order, rank = np.argsort(of_choice, kind="stable"), np.empty(len(of_choice), dtype=np.int64)
        rank[order] = np.arange(len(of_choice)) - np.repeat(np.cumsum(members) - members, members)
        whole, rest = np.divmod(self.draws, np.maximum(members, 1))
        return whole[of_choice] + (rank < rest[of_choice])

    @property
    def table(self) -> list[SignatureDraws]:
        """A row per signature that is drawn, most draws first."""
        model, signatures = self.model, self.model.signatures
        members = np.bincount(signatures.of_choice, minlength=len(self.draws))
        drawn = np.argsort(-self.draws, kind="stable")[: np.count_nonzero(self.draws)]
        return [
            SignatureDraws(
                signature=_texts(model, number),
                draws=int(self.draws[number]),
                choices=int(members[number]),
                example=model.structure.choice_name(int(np.argmax(signatures.of_choice == number))),
            )
            for number in drawn.tolist()
        ]

    def to_text(self) -> str:
        """The file's text."""
        document = DrawsDocument(model=self.model.hash(), planned_from=self.planned_from, draws=self.table)
        return to_text(document) + "\n"


def read_draws(path: str | Path, model: ParametricMDP) -> PlannedDraws:
    """Read a file of planned draws; an `InputError` where it does not fit the model."""
    place = Location(str(path))
    hint = "'tightrope plan --generative' writes one"
    document = read_document(Path(path), DrawsDocument, DRAWS_FORMAT, DRAWS_VERSION, hint)
    if document.model is not None and document.model != model.hash():
        raise InputError(
            "these draws were planned for another model",
            place,
            hint="use the model with the same constants and domain, or plan again",
        )
    number_of = {tuple(_texts(model, number)): number for number in range(len(model.signatures))}
    draws = np.zeros(len(model.signatures), dtype=np.int64)
    seen: set[int] = set()
    for row, entry in enumerate(document.draws, start=1):
        number = number_of.get(tuple(entry.signature))
        shown = ", ".join(entry.signature)
        if number is None:
            raise InputError(f"entry {row}: no choice of the model has the signature ({shown})", place)
        if number in seen:
            raise InputError(f"entry {row} names the signature ({shown}) a second time", place)
        if not 0 <= entry.draws <= MOST_DRAWS:
            raise InputError(
                f"entry {row}: {entry.draws} draws, but a signature has between 0 and {MOST_DRAWS:,}", place
            )
        seen.add(number)
        draws[number] = entry.draws
    if draws.sum() == 0:
        raise InputError("no draws are planned: the table is empty", place)
    return PlannedDraws(model, draws, document.planned_from)


def _texts(model: ParametricMDP, number: int) -> list[str]:
    """The expressions of a signature."""
    signatures = model.signatures
    of = signatures.expression[signatures.start[number] : signatures.start[number + 1]]
    names = model.parameters.names
    return [model.expressions.function(int(index)).text(names) for index in of]
