"""A budget of work for untrusted certificates: counted before it is spent, and refused by name.

Work is counted in steps of about 50 ns on one core, from sizes alone (terms, rows, bits, entries), never from
a clock: whether a certificate is within a budget is a function of the file. No proof uses this module.
"""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import chain
from math import isfinite, lcm

import numpy as np

from tightrope_check.arrays import Number
from tightrope_check.errors import CannotCertify, InputError
from tightrope_check.numbers import Arithmetic, Numbers

STEPS = 20_000_000
"""Of a second."""

SECONDS = 60.0
MORE = 10.0
"""For every MiB of coupled proofs beyond the first, where no amount is given: honest ones take up to 6."""

MEMORY = 2 << 30
_RATIONAL, _SQUARED = 20, 30_000
"""Rationals of a few words take 20 steps; of long ones the greatest common divisors take most."""

_TEXT = re.compile(r"\s*([0-9.]+(?:e[0-9]+)?)\s*(s|m|min|h|x|)\s*\Z")
_UNITS = {"s": 1.0, "": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "x": SECONDS}


class OverBudget(CannotCertify):
    """A certificate whose check would take more than its budget."""


@dataclass
class WorkBudget:
    """So many seconds of a core, and proportionally many bytes: what one check may take. `more` seconds for
    every MiB of coupled proofs beyond the first are `grown` once these are met; memory does not grow."""

    seconds: float = SECONDS
    more: float = 0.0
    grown: float = 0.0
    steps: float = 0.0
    held: float = 0.0
    _known: set[object] = field(default_factory=set)
    _rows: dict[int, tuple[int, int]] = field(default_factory=dict)

    @staticmethod
    def of(amount: float | str | None, exact: bool = False) -> WorkBudget:
        """600, "600s", "10min", "1h" or "10x" (times a minute); by default ten minutes for rationals and one
        for everything else, which grow with coupled proofs (`allow_for`).

        >>> [WorkBudget.of(amount).seconds for amount in ("10min", "10x", None)]
        [600.0, 600.0, 60.0]
        """
        if amount is None:
            return WorkBudget(10 * SECONDS if exact else SECONDS, MORE)
        match = _TEXT.match(str(amount))
        try:
            seconds = float(match[1]) * _UNITS[match[2]] if match else 0.0
        except ValueError:
            seconds = 0.0
        if not (seconds > 0 and isfinite(seconds)):
            raise InputError(f"`budget` is {amount!r}, not an amount of work such as 600s, 10min or 10x")
        return WorkBudget(seconds)

    def allow_for(self, size: int) -> None:
        """Coupled proofs of so many bytes may take longer, where no amount was asked for."""
        self.grown = self.more * max(0, (size >> 20) - 1)

    @property
    def memory(self) -> float:
        return MEMORY * max(1.0, self.seconds / SECONDS)

    @contextmanager
    def on_the_clock(self) -> Iterator[None]:
        """Where work was counted too low, the processor's clock stops it at twice the budget."""
        seconds = 2 * (self.seconds + self.grown)

        def stop(*_: object) -> None:
            raise OverBudget(f"the check of this certificate took over {seconds:g} s; `budget` raises it")

        if threading.current_thread() is not threading.main_thread():  # signals are the main thread's
            yield
            return
        before = signal.signal(signal.SIGPROF, stop)
        signal.setitimer(signal.ITIMER_PROF, seconds)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, before)

    @contextmanager
    def counting(self) -> Iterator[WorkBudget]:
        """Within, what `spend` and `hold` count is this budget's."""
        token = _current.set(self)
        try:
            yield self
        finally:
            _current.reset(token)


_current: ContextVar[WorkBudget | None] = ContextVar("budget", default=None)


def spend(what: str, operations: float, bits: int = 0, once: object = None) -> None:
    """So many operations on entries of arrays are about to be made, or with `bits` on rationals of so many
    bits, numerator and denominator together. What has a name `once` counts once."""
    budget = _current.get()
    if budget is None or (once is not None and once in budget._known):
        return
    if once is not None:
        budget._known.add(once)
    budget.steps += operations * ((_RATIONAL + bits / 26 + bits * bits / _SQUARED) if bits else 1)
    seconds = budget.seconds + budget.grown
    if budget.steps > seconds * STEPS:
        raise OverBudget(_words(f"{seconds:g} seconds", what))


def allow_for(size: int) -> None:
    """Coupled proofs of so many bytes are about to be checked."""
    budget = _current.get()
    if budget is not None:
        budget.allow_for(size)


def spend_on(what: str, operations: float, n: Arithmetic, *arrays: Numbers) -> None:
    """As `spend`, in an arithmetic: of rationals by the longest in the arrays, doubles being as long as
    their exponents say."""
    if _current.get() is not None:
        spend(what, operations, bits_in(*arrays) if n.exact else 0)


def spend_terms(what: str, operations: float, *terms: Iterable[Number]) -> None:
    """As `spend` on rationals, by the longest of some; nothing is looked at where nothing is counted."""
    if _current.get() is not None:
        spend(what, operations, longest(*terms))


def spend_product(what: str, operations: float, left: Iterable[Number], right: Iterable[Number]) -> None:
    """As `spend` on products, which are as long as two factors together."""
    if _current.get() is not None:
        spend(what, operations, longest(left) + longest(right))


def spend_sums(what: str, operations: float, rows: Iterable[Iterable[Number]], bits: int = 0) -> None:
    """As `spend`, of so many operations for every row of rationals that is added up with others of `bits`."""
    if _current.get() is not None:
        for row in rows:
            spend(what, operations, bits_of_sum(what, row) + bits)


def spend_rows(what: str, operations: float, n: Arithmetic, rows: Numbers, *others: Numbers) -> None:
    """As `spend_on`, where the entries of a row are added up."""
    if _current.get() is not None:
        bits = max((bits_of_sum(what, row) for row in rows.tolist()), default=1) if n.exact else 0
        spend(what, operations, bits + bits_in(*others) if n.exact else 0)


def spend_dots(what: str, rows: list[Number], terms: list[Number]) -> None:
    """As `spend` on the products of some rows (a, b) with the same terms; the rows are looked at once."""
    if (budget := _current.get()) is None:
        return
    if id(rows) not in budget._rows:
        known = [row for row, _ in filter(None, rows)]
        most = max((bits_of_sum(what, row) for row in known), default=1)
        budget._rows[id(rows)] = 2 * sum(map(bool, chain(*known))), most
    operations, bits = budget._rows[id(rows)]
    spend(what, operations, bits + longest(terms))


def bits_of_sum(what: str, row: Iterable[Number]) -> int:
    """The bits of a sum of rationals: it is as long as what its terms' denominators have in common."""
    below, most = 1, 1
    for value in row if _current.get() is not None else ():
        own = int(value.q if hasattr(value, "q") else value.denominator)
        most = max(most, _bits(value))
        if below % own:
            spend(what, 1, below.bit_length() + own.bit_length())
            below = lcm(below, own)
    return most + below.bit_length()


def hold(what: str, size: float, lasting: bool = False) -> None:
    """So many bytes are about to be taken, beside what is taken for good (`lasting`)."""
    budget = _current.get()
    if budget is None:
        return
    if budget.held + size > budget.memory:
        raise OverBudget(_words(f"{budget.memory / 2**30:g} GiB", what))
    if lasting:
        budget.held += size


def longest(*numbers: Iterable[Number]) -> int:
    """The most bits that one of some rationals has."""
    return max((_bits(value) for some in numbers for value in some), default=1)


def bits_in(*arrays: Numbers) -> int:
    """The most bits of an entry of some arrays."""
    doubles = [np.abs(np.frexp(one)[1]).max(initial=0) for one in arrays if one.dtype == np.float64]
    others = longest(*(one.flat for one in arrays if one.dtype != np.float64))
    return max(others, 64 + int(max(doubles)) if doubles else 1)


def _bits(value: Number) -> int:
    if isinstance(value, float):
        return 64
    if type(value) is Fraction:
        top, bottom = value.as_integer_ratio()
    else:
        top, bottom = (value.p, value.q) if hasattr(value, "p") else (value.numerator, value.denominator)
    return int(top.bit_length()) + int(bottom.bit_length())


def _words(amount: str, what: str) -> str:
    return f"the check of this certificate takes more than its budget of {amount}: {what}; `budget` raises it"
