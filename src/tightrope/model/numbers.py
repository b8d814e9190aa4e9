"""Conversion of numbers: exact values of users and files, the doubles of models, and refused values.

Readers and builders keep numbers exact. A model holds the nearest double, of a rational interval bound the
next one outward. A value is refused if its double would change the model:

1. Nothing finite becomes infinite. 2. Nothing but 0 becomes smaller in size than 2⁻¹⁰²², so positive stays
positive and no number moves by more than 2⁻⁵³ of its size, as certificates assume. Denormal doubles are
refused. 3. No interval bound but 1 becomes 1. 4. Sums of bounds of a choice stay on their side of 1
(`settle_rows`), as nature's options depend on it. 5. State and choice rewards that cancel sum to 0 only if
they do so exactly (`check_totals`).

`docs/python.md` has the rule for Python floats. `check_room` refuses arrays that do not fit into memory.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from decimal import Context, Decimal
from fractions import Fraction
from itertools import combinations

import numpy as np

from tightrope.errors import InputError, Location
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray
from tightrope.numerics.rationals import RationalArray

TINY = 2.0**-1022
"""The smallest double with all its digits."""

_SHARE = 0.8
_NEAR = 1e-12
_MOST_COMBINED = 10
"""Of choices with more successors only all bounds but one are compared with 1."""
_ROWS = 2**12
_CANCELLED = 2.0**-12
_DIGITS = 2.0**-40

Bounds = tuple[Fraction, Fraction]


class NotHeldError(InputError):
    """No double can stand for a number; `index` is its place among those that were asked about."""

    def __init__(
        self, message: str, location: Location | None = None, hint: str | None = None, index: int = 0
    ):
        super().__init__(message, location, hint)
        self.index = index


def show(value: Fraction) -> str:
    """A number for a message, also where no double is near it.

    >>> show(Fraction(1, 10**400)), show(Fraction(1, 3))
    ('1e-400', '0.333333')
    """
    context = Context(prec=6, Emax=10**9, Emin=-(10**9))
    quotient = context.divide(Decimal(value.numerator), Decimal(value.denominator)).normalize(context)
    return f"{quotient:g}".replace("+", "")


def why_not(value: Fraction) -> str | None:
    """What is wrong with a number as a double by rules 1 and 2, or None."""
    try:
        size = abs(value.numerator / value.denominator)
    except OverflowError:
        return f"{show(value)} is too large for a double"
    if size < TINY and value:
        return f"{show(value)} is not 0, but too small for a double, of which the least is 2.3e-308"
    return None


def double(value: Fraction) -> float:
    """The nearest double, by rules 1 and 2.

    >>> double(Fraction(1, 10))
    0.1
    """
    if (wrong := why_not(value)) is not None:
        raise NotHeldError(wrong)
    return value.numerator / value.denominator


def bound(value: Fraction, outward: float = 0.0) -> float:
    """The double nearest to an interval's bound, or the next one towards `outward` (±inf), by rules 1–3."""
    nearest = double(value)
    if outward and Fraction(nearest) != value and (Fraction(nearest) > value) != (outward > 0):
        nearest = math.nextafter(nearest, outward)
    if nearest == 1 and value != 1:
        raise NotHeldError(
            f"a bound that misses 1 by {show(1 - value)} is 1 as a double, and nature's choice depends on it"
        )
    if abs(nearest) < TINY and value:
        raise NotHeldError(f"{show(value)} is not 0, but too small for a double")
    return nearest


def doubles(values: RationalArray, what: str = "") -> FloatArray:
    """The nearest double of every number, by rules 1 and 2; `what` they are, for the message."""
    if (wrong := first_not_held(values)) is not None:
        raise NotHeldError(f"{what}{': ' * bool(what)}{why_not(values[wrong])}", index=wrong)
    return values.to_float()


def first_not_held(values: RationalArray) -> int | None:
    """The index of the first number that breaks rule 1 or 2. Costs nothing where all are of ordinary size."""
    if values.numerator.dtype != object and values.denominator.dtype != object:
        return None
    nearest = values.to_float()
    wrong: BoolArray = ~np.isfinite(nearest) | (np.abs(nearest) < TINY)
    wrong &= np.not_equal(values.numerator, 0).astype(np.bool_)
    return int(np.argmax(wrong)) if wrong.any() else None


def check_doubles(values: FloatArray, what: str) -> None:
    """Rule 2 for numbers that come as doubles."""
    wrong = (np.abs(values) < TINY) & (values != 0)
    if wrong.any():
        index = int(np.argmax(wrong))
        shown = f"{what} {float(values.reshape(-1)[index]):g} is a denormal number"
        raise NotHeldError(f"{shown}, too small for a model", index=index)


def check_totals(state: FloatArray, choice: FloatArray, exact: Callable[[int], Sequence[Fraction]]) -> None:
    """Rule 5: the rewards of a choice's state and of the choice itself, as doubles and `exact` by index."""
    if state.min(initial=0.0) >= 0.0 <= choice.min(initial=0.0):
        return  # nothing cancels
    total = state + choice
    close = (np.abs(total) < _CANCELLED * np.maximum(np.abs(state), np.abs(choice))) & (state != -choice)
    close |= (state == -choice) & (state != 0)
    for index in np.flatnonzero(close).tolist():
        a, b = exact(index)
        if abs(Fraction(float(total[index])) - a - b) > Fraction(_DIGITS) * abs(a + b):
            raise NotHeldError(
                f"a state earns {show(a)} and its choice {show(b)}, together {show(a + b)}: as doubles they "
                "cancel to something else; give one reward",
                index=index,
            )


def check_choice_totals(
    choice_start: OffsetArray,
    state: FloatArray,
    choice: FloatArray,
    held: Callable[[int], Fraction],
    earned: Callable[[int], Fraction],
) -> None:
    """The same of all states and choices of a model, whose exact rewards are `held` and `earned`."""
    owner = np.repeat(np.arange(len(state)), np.diff(choice_start))
    check_totals(state[owner], choice, lambda number: (held(int(owner[number])), earned(number)))


def settle_rows(
    start: OffsetArray, lower: FloatArray, upper: FloatArray, exact: Callable[[int], Bounds]
) -> tuple[FloatArray, FloatArray]:
    """Rule 4: bounds of choices whose doubles sum otherwise than `exact` are rounded outward, or refused."""
    widths = np.diff(start)
    known: dict[tuple[object, ...], tuple[list[float], list[float]] | None] = {}
    for width in np.unique(widths[widths > 2]).tolist():
        begins = start[:-1][widths == width]
        subsets = _subsets(width)
        chosen = np.zeros((len(subsets), width))
        for row, some in enumerate(subsets):
            chosen[row, list(some)] = 1.0
        for first in range(0, len(begins), _ROWS):
            place = begins[first : first + _ROWS, None] + np.arange(width)
            low, high = lower[place], upper[place]
            close = (np.abs(high @ chosen.T - 1) < _NEAR).any(axis=1)
            close |= (np.abs(low.sum(axis=1) - 1) < _NEAR) & ((low == 0) & (high > 0)).any(axis=1)
            close &= (low < high).any(axis=1)
            for row in np.flatnonzero(close).tolist():
                at = place[row]
                bounds = [exact(t) for t in at.tolist()]
                key = (low[row].tobytes(), high[row].tobytes(), *bounds)
                if key not in known:
                    known[key] = _settle(bounds, low[row], high[row], subsets)
                settled = known[key]
                if settled is None:
                    raise NotHeldError(
                        "bounds of this choice miss 1 in sum by less than a double can tell, and nature's "
                        "choice depends on it; write bounds that sum to 1, or miss it by 1e-15 or more",
                        index=int(at[0]),
                    )
                lower, upper = _written(lower, at, settled[0]), _written(upper, at, settled[1])
    return lower, upper


def _subsets(width: int) -> list[tuple[int, ...]]:
    sizes = range(2, width) if width <= _MOST_COMBINED else (width - 1,)
    return [some for size in sizes for some in combinations(range(width), size)]


def _settle(
    exact: list[Bounds], low: FloatArray, high: FloatArray, subsets: list[tuple[int, ...]]
) -> tuple[list[float], list[float]] | None:
    """Bounds of one choice that agree with the exact ones, or None."""
    least, most = sum(a for a, _ in exact), sum(b for _, b in exact)
    own = low.tolist(), high.tolist()
    if _agree(exact, *own, subsets):
        return own
    if least == 1 or most == 1:
        point = [double(pair[0 if least == 1 else 1]) for pair in exact]
        return point, point
    outward = [bound(a, -math.inf) for a, _ in exact], [bound(b, math.inf) for _, b in exact]
    return outward if _agree(exact, *outward, subsets) else None


def _agree(exact: list[Bounds], low: list[float], high: list[float], subsets: list[tuple[int, ...]]) -> bool:
    lower, upper = [Fraction(x) for x in low], [Fraction(x) for x in high]
    if any(a == 0 < b for a, b in exact) and (sum(a for a, _ in exact) >= 1) != (sum(lower) >= 1):
        return False
    return all(
        (sum(exact[i][1] for i in some) >= 1) == (sum(upper[i] for i in some) >= 1) for some in subsets
    )


def _written(values: FloatArray, at: OffsetArray, new: list[float]) -> FloatArray:
    changed = values if values.flags.writeable else values.copy()
    changed[at] = new
    return changed


def check_room(size: float, what: str) -> None:
    """Refuse to make arrays of so many bytes where the machine has less."""
    if size > most_bytes():
        raise InputError(
            f"{what} would take {size / 2**30:,.0f} GiB, more than this machine's memory holds",
            hint="a smaller instance of the model may fit",
        )


def most_bytes() -> float:
    """What a model may take: most of this machine's memory."""
    try:
        return _SHARE * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return math.inf


Number = int | Fraction | float | str | Decimal
"""A number as users write it."""

WRITTEN_DIGITS = 15
"""A decimal of so many digits survives the way into a float and back."""

LARGEST_DENOMINATOR = 10**6
"""Of a fraction that a computed float is taken for."""


def exact(value: Number) -> Fraction:
    """Convert a number to a rational.

    Parameters
    ----------
    value : int, float, str, Fraction or Decimal
        A float stands for the rational with a small denominator that rounds to it, if there is one.

    Returns
    -------
    Fraction
        The exact value.

    >>> exact(0.3), exact("0.3"), exact(1 / 3), exact(2 / 7)
    (Fraction(3, 10), Fraction(3, 10), Fraction(1, 3), Fraction(2, 7))
    >>> exact(0.1 + 0.2) == exact("0.30000000000000004")
    True
    """
    if isinstance(value, Fraction):
        return value
    if isinstance(value, bool | np.bool_):
        raise InputError(f"{value} is not a number")
    if isinstance(value, int | np.integer):
        return Fraction(int(value))
    if isinstance(value, float | np.floating):
        return _of_float(value)
    try:
        return Fraction(value)
    except ZeroDivisionError:
        raise InputError(f"{value!r} divides by zero") from None
    except (ValueError, OverflowError, TypeError):
        raise InputError(
            f"{_show(value)} is not a number", hint="write 0.3, '3/10' or Fraction(3, 10)"
        ) from None


def exact_argument(value: Number, argument: str) -> Fraction:
    """The same, with the name of the argument in the error."""
    try:
        return exact(value)
    except InputError as error:
        raise InputError(f"{argument}: {error.message}", hint=error.hint) from None


def number_text(value: Number | bool, argument: str) -> str:
    """A number or a truth value as PRISM writes it, exactly."""
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    return str(exact_argument(value, argument))


def _of_float(value: float | np.floating) -> Fraction:
    if not math.isfinite(value):
        raise InputError(f"{float(value)} is not a finite number")
    text = repr(value.item()) if isinstance(value, np.float64) else _digits(value)
    decimal = Fraction(text)
    digits = len(Decimal(text).normalize().as_tuple().digits)
    if not isinstance(value, float) or digits > WRITTEN_DIGITS:
        simplest = _simplest_near(value)
        if simplest.denominator <= LARGEST_DENOMINATOR:
            return simplest
    return decimal


def _digits(value: float | np.floating) -> str:
    """The shortest decimal that is read back as this number."""
    if isinstance(value, float):
        return repr(value)
    return np.format_float_scientific(value, unique=True)


def _simplest_near(value: float | np.floating) -> Fraction:
    """The fraction with the smallest denominator within half a unit in the last place of the float."""
    centre = Fraction(float(value))
    half = Fraction(float(np.spacing(np.abs(value)))) / 2
    if centre < 0:
        return -_simplest_between(-centre - half, -centre + half)
    return _simplest_between(max(centre - half, Fraction(0)), centre + half)


def _simplest_between(low: Fraction, high: Fraction) -> Fraction:
    """The fraction with the smallest denominator in [low, high], 0 ≤ low: down the Stern–Brocot tree."""
    whole = math.floor(low)
    if whole == low:
        return Fraction(whole)
    if whole + 1 <= high:
        return Fraction(whole + 1)
    return whole + 1 / _simplest_between(1 / (high - whole), 1 / (low - whole))


def _show(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}…"
