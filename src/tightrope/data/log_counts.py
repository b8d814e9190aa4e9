"""Counts of a log, with missing data, ends of episodes, and order in time.

*Missing data* (`describe_missing`). If the presence of an outcome depends on the outcome, no confidence
statement holds. The result is therefore nominal if

* rows were dropped because they could not be read or explained;
* steps are missing within an episode or at its start, or a regular clock has a gap;
* the log lacks the outcome of an action that has several in the model.

Truncated episodes lose nothing, nor does the end of the log, except for the very last action if visits were
fixed in advance or more data follow (`SamplingDesign.open_end`).

*Ends* (`ends_of`) are known from a flag or an absorbing state. The last episode, or one instant that cuts all
running episodes, needs none. Otherwise the user states that episodes are complete. *Order* (`order_of`) is
known from times, or within a single episode; otherwise it is stated or unknown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from tightrope.data import row_sequence as seq
from tightrope.data.columns import BATCH, COST, COUNT, EPISODE, STEP, TIME, WATCHED_UNTIL
from tightrope.data.costs import CostSums
from tightrope.data.counts import BatchCounter, Counts, batch_ends
from tightrope.data.design import ENDS, ORDER, SamplingDesign, SamplingKind, has_levels, worse
from tightrope.data.fold import Fold, NotInTime, fold_log
from tightrope.data.free_columns import free_columns
from tightrope.data.read_options import AS_READ, BY_TIME, COMPLETE
from tightrope.data.read_plan import Part, ReadPlan
from tightrope.data.row_sequence import no_notes
from tightrope.data.row_validation import likely_reading
from tightrope.data.rows import EventBatch
from tightrope.data.time_order import begin_times, end_instants, moment_of, times_fall
from tightrope.errors import InputError
from tightrope.io.table.columns import RowProblem, mark, whole_numbers
from tightrope.io.table.data_table import DataTable
from tightrope.numerics.arrays import AnyArray, OffsetArray
from tightrope.provenance import Provenance, RowTally, joined, of_counts, transition_marks
from tightrope.verdict import Assumed


class CountTally:
    """Counts per transition in batches, exact sums of costs, and the rows of every table."""

    def __init__(self, plan: ReadPlan, is_placed: bool = True) -> None:
        self.plan, self.counter = plan, BatchCounter()
        self.waiting: list[tuple[OffsetArray, OffsetArray]] | None = None if is_placed else []
        """Rows by their numbers and transitions, where the rows before them are not counted yet."""
        self.costs = CostSums() if COST in plan.roles else None
        self.rows = [RowTally() for _ in plan.tables]

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "plan": None}

    def update(self, batch: EventBatch) -> None:
        batch = batch.counted
        if not len(batch):
            return
        if self.waiting is None:
            self.counter.add(batch.batch, batch.transition)
        else:
            self.waiting.append((_short(batch.batch), _short(batch.transition)))
        if self.costs is not None:
            self.costs += CostSums.observed(batch.transition, batch.cost)
        first = int(batch.table[0])
        if (batch.table == first).all():
            self._see(batch, first)
            return
        for table in range(int(batch.table.min()), int(batch.table.max()) + 1):
            self._see(batch[batch.table == table], table)

    def _see(self, batch: EventBatch, table: int) -> None:
        mark = transition_marks(self.plan.structure)[batch.transition]
        names = self.plan.names_of(batch.episode, batch.number, table)
        self.rows[table].add(mark, names, batch.since_start, None if self.costs is None else batch.cost)

    def place(self, before: int, is_known: bool) -> None:
        placed = [(before + number.astype(np.int64), transition) for number, transition in self.waiting or ()]
        self.waiting = None if is_known else placed
        for number, transition in placed if is_known else ():
            self.counter.add_at(transition.astype(np.int64), number)

    def merge(self, later: CountTally) -> None:
        self.counter.merge(later.counter)
        if self.waiting is not None:
            self.waiting += later.waiting or []
        if self.costs is not None and later.costs is not None:
            self.costs += later.costs
        for mine, others in zip(self.rows, later.rows, strict=True):
            mine.merge(others)

    def finish(self) -> None:
        """Nothing waits here."""


def _short(numbers: OffsetArray) -> AnyArray:
    """The same in as few bytes as they need: they travel from workers."""
    return numbers.astype(np.min_scalar_type(int(numbers.max(initial=0))))


def count_fold(
    plan: ReadPlan, part: Part | None = None, by_name: bool = False, is_sorted: bool = False
) -> Fold:
    """A fold that counts a log, or a part of it with rows before."""
    beside = free_columns(plan, for_tables=True) if plan.observers else {}
    fold = Fold(plan, by_name=by_name, is_sorted=is_sorted, part=part, beside=beside)
    is_ordered = plan.boundaries is None and not by_name
    fold.must_rise = plan.is_in_time and is_ordered
    others = (make(part is not None, is_ordered) for make in plan.observers)
    fold.observers = (CountTally(plan, not fold.waits_for_place), *others)
    return fold


def describe_missing(
    dropped: Mapping[str, int], notes: OffsetArray, late_starts: int = 0, outages: bool = False
) -> tuple[str, ...]:
    """What is missing, one phrase each; nothing where nothing is, or where outages are stated."""
    lines = []
    if dropped:
        rows = sum(dropped.values())
        reasons = ", ".join(f"{times} {reason}" for reason, times in sorted(dropped.items()))
        lines.append(f"{rows:,} {_plural(rows, 'row was', 'rows were')} dropped ({reasons})")
    if notes[seq.HOLES] and not outages:
        holes = int(notes[seq.HOLES])
        lines.append(
            f"{holes:,} {_plural(holes, 'silence is', 'silences are')} longer than the clock's usual step: "
            "rows are missing there (--gaps outage states that this had nothing to do with what happened)"
        )
    if notes[seq.GAPS] and not outages:
        steps = int(notes[seq.MISSING])
        lines.append(f"{steps:,} {_plural(steps, 'step is', 'steps are')} missing within episodes")
    if late_starts:
        lines.append(f"{late_starts:,} {_plural(late_starts, 'episode begins', 'episodes begin')} late")
    if lost := int(notes[seq.LOST]):
        lines.append(f"{lost:,} {_plural(lost, 'action has', 'actions have')} {NO_OUTCOME}")
    return tuple(lines)


def _plural(number: int, one: str, many: str) -> str:
    return one if number == 1 else many


NO_OUTCOME = "no outcome in the log"
OUT_OF_ORDER = "rows are out of order"
"""How the note on rows begins that were sorted before they were counted."""


@dataclass
class ReadProgress:
    """How far reading is; `tell` is called with it now and then."""

    total_bytes: int
    tell: Callable[[ReadProgress], None] | None = None
    rows: int = 0
    bytes: int = 0

    @staticmethod
    def over(tables: Sequence[DataTable], tell: Callable[[ReadProgress], None] | None) -> ReadProgress:
        return ReadProgress(sum(table.bytes or 0 for table in tables), tell)

    def add(self, rows: int, read: int) -> None:
        self.rows += rows
        self.bytes += read
        if self.tell is not None:
            self.tell(self)


@dataclass(frozen=True)
class LogCounts:
    """The counts of a log, with what there is to say about it; `seen` are the rows of every table."""

    counts: Counts
    rows: int
    dropped: Counter[str]
    notes: tuple[str, ...]
    seen: Sequence[Provenance]


def count_log(plan: ReadPlan, watch: ReadProgress) -> LogCounts:
    """Count a log or a table of counts, under the design that its file states."""
    stated = stated_design(plan.tables[0])
    try:
        return (_count_table if plan.columns[0].is_counted else _count_in_turn)(plan, stated, watch)
    except InputError as error:
        if stated is None and times_fall(plan):
            return _count_sorted(plan, stated)
        raise explain(plan, error) from error.__cause__


def _count_in_turn(plan: ReadPlan, stated: SamplingDesign | None, watch: ReadProgress) -> LogCounts:
    """Count episodes one after the other, else followed by their names, else sorted."""
    roles, options, episodes = plan.roles, plan.options, plan.by_episodes
    if not (options.drop_duplicates or WATCHED_UNTIL in roles or (episodes and stated is None)):
        try:
            fold = fold_log(plan, count_fold, watch.add)
        except NotInTime:
            plan = replace(plan, boundaries=end_instants(plan))
            fold = fold_log(plan, count_fold, watch.add)
        if fold.is_out_of_order and stated is not None:
            raise plan.tables[0].error(
                "the rows are not in the order in which the file was written",
                "it was edited after it was written",
            )
        if not fold.is_out_of_order or not (EPISODE in roles or TIME in roles):
            return describe(plan, fold, stated)
        if EPISODE not in roles:
            return _count_sorted(plan, stated)
    if plan.is_in_time and (episodes or plan.boundaries is None):
        plan = replace(plan, boundaries=end_instants(plan, begin_times(plan) if episodes else None))
    if episodes and not plan.is_in_time:  # how many had begun is known in the order of the log alone
        plan = replace(plan, engine=None)
    fold = fold_log(plan, partial(count_fold, by_name=True))
    if fold.is_out_of_order and (fold.named or fold.has_time):
        return _count_sorted(plan, stated)
    how = () if episodes else ("several episodes at once, each followed by its name",)
    return describe(plan, fold, stated, how)


def _count_sorted(plan: ReadPlan, stated: SamplingDesign | None) -> LogCounts:
    table = plan.tables[0]
    if plan.options.order == AS_READ:
        message = "`order` states that rows are in order of time, but the rows of an episode are not"
        raise table.error(message, "leave `order` out, or sort the log")
    if WATCHED_UNTIL in plan.roles:
        raise table.error(
            "the rows of an episode are not in order of time, and `watched_until` names the column "
            f"'{plan.roles[WATCHED_UNTIL]}'",
            "sort the log by time",
        )
    fold = fold_log(plan, partial(count_fold, by_name=True, is_sorted=True))
    return describe(plan, fold, stated, (f"{OUT_OF_ORDER}: {fold.how_sorted}",))


def describe(
    plan: ReadPlan, fold: Fold, stated: SamplingDesign | None = None, remarks: tuple[str, ...] = ()
) -> LogCounts:
    """The counts of a log, with what is known of it."""
    notes, (tally, *others) = fold.notes, fold.observers
    assert isinstance(tally, CountTally)
    batches = tally.counter.finish(_number_of_batches(plan, fold, stated))
    late = 0
    if fold.is_sorted and fold.has_steps:
        late = int((np.concatenate(fold.first_steps) > notes[seq.START_LOW]).sum())
    elif fold.is_out_of_order and fold.has_steps:
        notes[seq.GAPS] += int(notes[seq.START_LOW] < notes[seq.START_HIGH])
    missing = describe_missing(fold.dropped, notes, late, plan.options.gaps is not None)
    if copies := int(notes[seq.COPIES]):
        remarks += (f"{copies:,} rows that were logged twice were dropped, as was asked",)
    order = order_of(plan, fold)
    follows = fold.named or fold.has_steps or fold.from_next or bool(plan.columns[0].ends)
    count = batches.total(plan.structure.transitions)
    design = SamplingDesign(
        SamplingKind.ADAPTIVE,
        int(notes[seq.EPISODES]) if remarks or plan.by_episodes or follows else None,
        int(count.sum()),
        censored=missing,
        open_end=fold.open_end,
        by_episodes=plan.by_episodes,
        order=order,
        ends=ends_of(plan, fold, order),
    )
    counts = Counts(
        count,
        plan.structure.transition_start,
        _as_stated(plan, design, stated, bool(fold.dropped)),
        plan.model_hash,
        None if fold.is_sorted and fold.batches is None else batches,
        tally.costs,
        observed=tuple(other.finish() for other in others),
    )
    seen = [rows.finish() for rows in tally.rows]
    counts = replace(counts, seen=replace(joined(seen), episodes=design.episodes))
    return LogCounts(counts, fold.rows, fold.dropped, remarks, seen)


def stated_design(table: DataTable) -> SamplingDesign | None:
    """The design that a file of ours states."""
    fields = (table.metadata or {}).get("design")
    if not isinstance(fields, dict):
        return None
    try:
        return SamplingDesign.from_json(fields)
    except InputError as error:
        raise table.error(error.message, error.hint) from None


def _as_stated(
    plan: ReadPlan, design: SamplingDesign, stated: SamplingDesign | None, has_dropped: bool
) -> SamplingDesign:
    """The design that a file states, with what is missing from it."""
    if stated is None:
        return design
    if not has_dropped and design.steps != stated.steps:
        raise plan.tables[0].error(
            f"the file was written with {stated.steps} steps, but holds {design.steps}",
            "it was cut off or edited after it was written",
        )
    if has_dropped:
        kind, steps = SamplingKind.ADAPTIVE, design.steps
        stated = replace(stated, kind=kind, steps=steps, planned=None, repeats=True)
    censored = tuple(dict.fromkeys(stated.censored + design.censored))
    return replace(stated, censored=censored, open_end=stated.open_end or design.open_end)


def _number_of_batches(plan: ReadPlan, fold: Fold, stated: SamplingDesign | None) -> int:
    """How many batches there are, those in which nothing was counted included."""
    if fold.is_sorted:
        return fold.batches or 0
    if plan.boundaries is not None:
        return len(plan.boundaries) + 1
    if plan.by_episodes and stated is not None:
        return 0 if stated.episodes is None else len(batch_ends(stated.episodes))
    if plan.by_episodes:
        return len(batch_ends(int(fold.notes[seq.EPISODES])))
    return len(batch_ends(fold.rows)) if fold.by_name else 0


def order_of(plan: ReadPlan, fold: Fold) -> Assumed:
    """Whether batches follow the order in which rows happened, and how that is known."""
    notes, stated = fold.notes, plan.options.order
    if plan.is_in_time:
        if stated == BY_TIME:
            return Assumed.stated(ORDER, "--order time: one clock runs for all episodes")
        alike = notes[seq.EPISODES] > 1 and notes[seq.FIRST_LOW] == notes[seq.FIRST_HIGH]
        if alike and not plan.has_dates and (fold.is_sorted or not fold.shows_one_clock):
            why = (
                "every episode begins at the same number, so each may have a clock of its own; "
                "--order time says that one clock runs for all"
            )
            return Assumed.unverified(ORDER, why)
        return Assumed.derived(ORDER, "batches follow the times of rows, over all files and episodes")
    if notes[seq.EPISODES] == 1 and len(plan.tables) == 1 and not fold.is_sorted:
        return Assumed.derived(ORDER, "all rows are of one episode, in its order")
    if stated == AS_READ:
        return Assumed.stated(ORDER, "--order as-read: rows stand in the order in which they happened")
    why = (
        "no column has the time of rows, so the order of episodes is unknown; --order as-read states that "
        "rows stand in that order"
    )
    return Assumed.unverified(ORDER, why)


def ends_of(plan: ReadPlan, fold: Fold, order: Assumed) -> Assumed:
    """Whether episodes stop where they were over or cut by a rule, and how that is known."""
    ends, options = _ends_of(plan, fold, order), plan.options
    if options.gaps is not None and options.ends != COMPLETE and not _shows_gaps(plan):
        why = "--gaps outage: neither step numbers nor a regular clock show where rows are missing"
        return worse(ends, Assumed.unverified(ENDS, why))
    if options.gaps is None or not (fold.notes[seq.HOLES] or fold.notes[seq.GAPS]):
        return ends
    why = "--gaps outage: where rows are missing within episodes, logging stopped for reasons of its own"
    return worse(ends, Assumed.stated(ENDS, why))


def _ends_of(plan: ReadPlan, fold: Fold, order: Assumed) -> Assumed:
    options = plan.options
    others, episodes = int(fold.notes[seq.OPEN_ENDS]), int(fold.notes[seq.EPISODES])
    # without a trace rows may lack, unless every step of the model leads one level further
    may_lack = fold.from_next and not _shows_gaps(plan) and not has_levels(plan.structure)
    if not may_lack and not others and not fold.last_is_open:
        why = "every episode ends in a state that nothing leaves, or is marked as over"
        return Assumed.derived(ENDS, why)
    if not may_lack and not others and (episodes == 1 or order.holds):
        return Assumed.derived(ENDS, "all episodes are over but the last, which the end of the log cuts")
    if options.ends == COMPLETE:
        return Assumed.stated(ENDS, "--ends complete: every episode is whole, no row of it is missing")
    if fold.is_watched or options.until_now or options.watched_until is not None:
        return _watched(plan, fold.notes)
    if may_lack:
        why = (
            "next states are those of the next rows, and neither step numbers nor a regular clock show "
            "that none is missing between; --ends complete states it"
        )
        return Assumed.unverified(ENDS, why)
    stop = others + fold.last_is_open
    why = (
        f"{stop:,} of {episodes:,} {_plural(episodes, 'episode', 'episodes')} stop in a state that can be "
        "left, and nothing says that they were over; --ends complete states that no row is missing, "
        "--until-now cuts a running log at its last instant, a column truncated or terminated says it of each"
    )
    return Assumed.unverified(ENDS, why)


def _shows_gaps(plan: ReadPlan) -> bool:
    """Whether steps or a clock show that a row is missing within an episode."""
    return STEP in plan.roles or plan.tick.step > 0.0


def _watched(plan: ReadPlan, notes: OffsetArray) -> Assumed:
    """Until when open episodes were watched: a column says it, or it is one instant for all. What the longest
    time from a last row to the end says; where rows stand at the very end, each open episode needs one there.
    """
    table, options, until = plan.tables[0], plan.options, plan.roles.get(WATCHED_UNTIL)
    if until is not None:
        how = f"the column {until} says until when each episode was watched"
        if unknown := int(notes[seq.UNWATCHED]):
            some = f"{unknown:,} {_plural(unknown, 'episode', 'episodes')}"
            return Assumed.unverified(ENDS, f"{how}, but not for {some} that can go on")
        longest, has_rows_at_ends = int(notes[seq.WATCHED_LONGEST]), notes[seq.ROWS_AT_ENDS] > 0
    else:
        if TIME not in plan.roles:
            word = "`until_now`" if options.until_now else "`watched_until`"
            raise table.error(f"{word} needs times, and the log has none", 'name them: `columns="time=…"`')
        end = last = int(notes[seq.LAST_TIME])
        how = "--until-now: episodes that are not over went on until the log's last instant"
        if options.watched_until is not None:
            end = moment_of(options.watched_until, plan)
            if end < last:
                raise table.error(f"`watched_until` is {options.watched_until}, but the log has later rows")
            how = (
                f"--watched-until {options.watched_until}: episodes that are not over were watched until then"
            )
        earliest, latest = plan.tick.parts(np.array([notes[seq.OPEN_EARLIEST], end])).tolist()
        longest, has_rows_at_ends = latest - earliest, end == last
    if not plan.tick.step:
        why = "no row is missing until then, and how long an outcome takes does not depend on it"
        return Assumed.stated(ENDS, f"{how}; {why}")
    if longest > (seq.PARTS - 2 if has_rows_at_ends else seq.PARTS + 2):
        return Assumed.violated(ENDS, f"{how}; but some stop before, and rows are missing there")
    return Assumed.derived(ENDS, f"{how}, as their last rows show")


def explain(plan: ReadPlan, error: InputError) -> InputError:
    """The error, with another reading of the log where that fits and this one does not."""
    if error.message.startswith("row "):
        names, place = [table.path for table in plan.tables], error.location
        table = names.index(place.file) if place is not None and place.file in names else 0
        if (alternative := likely_reading(plan, table)) is not None:
            return InputError(error.message, error.location, alternative)
    return error


LARGEST_TOTAL = 2.0**62
"""Counts must not add up to more than an int64 holds."""

MOST_BATCHES = 1 << 20
"""More batches than any file of ours has."""


def _count_table(plan: ReadPlan, stated: SamplingDesign | None, watch: ReadProgress) -> LogCounts:
    """Add up a table with one row per transition, with or without a batch number."""
    table, roles, fold, structure = plan.tables[0], plan.roles, Fold(plan), plan.structure
    decoder, is_batched, read = fold.decoder(0), BATCH in roles, 0
    parts = [np.empty((3, 0), dtype=np.int64)]
    for chunk in fold.chunks(0):
        rows = decoder.decode(chunk)
        fold.rows += chunk.rows
        for role, problem in ((COUNT, RowProblem.NEGATIVE_COUNT), (BATCH, RowProblem.NEGATIVE_BATCH)):
            if role in roles:
                number = whole_numbers(chunk.columns[roles[role]], roles[role], table.path, rows.problems)
                mark(rows.problems, number < 0, problem)
                rows.columns[role] = number
        rows.transition = plan.index.transitions(rows.state, rows.taken, rows.next_state, rows.problems)
        rows = fold.admitted(rows, chunk)
        count = rows.columns[COUNT]
        parts.append(np.stack([rows.transition, count, rows.columns[BATCH] if is_batched else count]))
        watch.add(chunk.rows, max(0, chunk.bytes_read - read))
        read = chunk.bytes_read
    transition, count, batch = np.concatenate(parts, axis=1)
    if (total := float(count.astype(np.float64).sum())) > LARGEST_TOTAL:
        raise table.error(f"the counts add up to {total:.3g}, which is more than 2^62")
    counts = Counts.from_table(
        transition,
        count,
        structure.transition_start,
        SamplingDesign(SamplingKind.ADAPTIVE),
        plan.model_hash,
        batch if is_batched else None,
        batches=_read_stated_batches(table, batch) if is_batched else None,
    )
    design = SamplingDesign(
        SamplingKind.ADAPTIVE,
        steps=counts.steps,
        censored=describe_missing(fold.dropped, no_notes()),
        by_episodes=plan.by_episodes,
        order=_order_of_table(plan),
        ends=_ends_of_table(plan, counts),
    )
    design = _as_stated(plan, design, stated, bool(fold.dropped))
    seen = of_counts(structure, counts.transition)
    counts = replace(counts, design=design, seen=joined([seen]))
    return LogCounts(counts, fold.rows, fold.dropped, (), [seen])


def _order_of_table(plan: ReadPlan) -> Assumed:
    if BATCH not in plan.roles:
        return Assumed.unverified(ORDER, "a table of counts without a column batch has no order")
    if plan.options.order is not None:
        return Assumed.stated(ORDER, f"--order {plan.options.order}: batches are numbered as they came")
    return Assumed.stated(ORDER, "the column batch numbers batches in the order in which they came")


def _ends_of_table(plan: ReadPlan, counts: Counts) -> Assumed:
    if plan.absorbing[plan.structure.successor[counts.transition > 0]].all():
        return Assumed.derived(ENDS, "what is counted leads to states that nothing leaves")
    if plan.options.ends == COMPLETE:
        return Assumed.stated(ENDS, "the counts include every outcome (--ends complete)")
    why = "a table of counts does not show how episodes ended; add --ends complete if no outcome is missing"
    return Assumed.unverified(ENDS, why)


def _read_stated_batches(table: DataTable, batch: OffsetArray) -> int | None:
    """How many batches the file says it has; the numbers in it must lie below."""
    stated = (table.metadata or {}).get("batches")
    if stated is None:
        return None
    if not isinstance(stated, int) or not int(batch.max(initial=-1)) < stated <= MOST_BATCHES:
        raise table.error(
            f"the file's metadata refer to {stated} batches, its rows of number {batch.max(initial=-1)}"
        )
    return stated
