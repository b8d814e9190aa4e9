"""Dataclasses whose methods are made late behave as those of the standard library."""

from __future__ import annotations

import dataclasses
import inspect
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field, fields, is_dataclass, replace
from typing import Any, ClassVar

import pytest

from tightrope.lazy_dataclass import dataclass as late

LISTS: list[list[int]] = []


def declared(dataclass: Callable[..., Any]) -> dict[str, type]:
    """The same declarations with one or the other decorator."""

    @dataclass(frozen=True)
    class Base:
        a: int
        b: str = "b"
        shared: ClassVar[int] = 3

        def __post_init__(self) -> None:
            assert self.a != 7

    @dataclass(frozen=True)
    class Below(Base):
        b: str
        c: list[int] = field(default_factory=list, compare=False)
        d: float = field(default=2.0, repr=False)

    @dataclass(frozen=True, kw_only=True)
    class Named(Base):
        e: int
        f: int = field(default=1, init=False)
        g: list[int] = field(default_factory=lambda: [1], init=False)

    @dataclass
    class Open:
        x: int = 0
        y: list[int] = field(default_factory=list)

    @dataclass(frozen=True, eq=False)
    class ByIdentity:
        x: int = 0

    @dataclass(frozen=True)
    class Own:
        x: int = 0

        def __eq__(self, other: object) -> bool:
            return True

        def __repr__(self) -> str:
            return "mine"

    @dataclass(eq=False, repr=False)
    class Written:
        x: int

        def __init__(self) -> None:
            self.x = 5

    return {each.__name__: each for each in (Base, Below, Named, Open, ByIdentity, Own, Written)}


OURS, THEIRS = declared(late), declared(dataclasses.dataclass)
CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("Base", (1,), {}),
    ("Base", (1, "c"), {}),
    ("Base", (7,), {}),
    ("Base", (), {}),
    ("Base", (1,), {"z": 2}),
    ("Below", (1, "c", [2]), {}),
    ("Below", (1,), {"d": 4.0}),
    ("Named", (1,), {"e": 2}),
    ("Named", (1, "b", 2), {}),
    ("Open", (), {}),
    ("Open", (3, [4]), {}),
    ("Own", (), {}),
    ("Written", (), {}),
    ("Written", (1,), {}),
]


@pytest.mark.parametrize(("name", "places", "words"), CALLS)
def test_records_are_made_as_by_the_standard_library(
    name: str, places: tuple[Any, ...], words: dict[str, Any]
) -> None:
    results = []
    for kinds in (OURS, THEIRS):
        try:
            record = kinds[name](*places, **words)
        except (TypeError, AssertionError) as error:
            results.append((type(error), str(error)))
        else:
            described = [(each.name, each.type, each.compare, each.kw_only) for each in fields(record)]
            text = "" if name == "Written" else repr(record)
            results.append((vars(record), described, text, kinds[name].__match_args__))  # type: ignore[attr-defined]
    assert results[0] == results[1]


@pytest.mark.parametrize("name", OURS)
def test_signatures_hashes_and_flags(name: str) -> None:
    ours, theirs = declared(late)[name], THEIRS[name]
    assert str(inspect.signature(ours)) == str(inspect.signature(theirs))
    assert (ours.__hash__ is None) == (theirs.__hash__ is None)
    assert ours.__dataclass_params__.frozen == theirs.__dataclass_params__.frozen  # type: ignore[attr-defined]
    assert is_dataclass(ours)


def test_equality_and_hash() -> None:
    base, below, identity = OURS["Base"], OURS["Below"], OURS["ByIdentity"]
    assert base(1) == base(1, "b") and base(1) != base(2) and base(1, "b") != below(1, "b")
    assert below(1, "b", [1]) == below(1, "b", [2])  # a field that is not compared
    assert len({base(1), base(1), base(2)}) == 2
    assert identity() != identity() and len({identity(), identity()}) == 2
    assert OURS["Open"](1) == OURS["Open"](1)
    with pytest.raises(TypeError, match="unhashable"):
        hash(OURS["Open"]())


def test_frozen_records_refuse_assignments_before_and_after_they_are_completed() -> None:
    kind = declared(late)["Base"]
    record = kind.__new__(kind)
    for _ in range(2):
        with pytest.raises(FrozenInstanceError, match="cannot assign to field 'a'"):
            record.a = 3
        with pytest.raises(FrozenInstanceError, match="cannot delete field 'a'"):
            del record.a
        record = kind(1)

    class Plain(kind):  # type: ignore[misc, valid-type]
        pass

    plain = Plain(1)
    plain.note = 4
    with pytest.raises(FrozenInstanceError):
        plain.b = "c"
    assert plain.note == 4 and replace(plain, a=2).a == 2


def test_dataclasses_of_the_standard_library_inherit() -> None:
    @dataclasses.dataclass(frozen=True)
    class Theirs(OURS["Below"]):  # type: ignore[misc]
        h: int = 9

    record = Theirs(1, "c")
    assert [each.name for each in fields(record)] == ["a", "b", "c", "d", "h"] and record.d == 2.0
    with pytest.raises(TypeError, match="cannot inherit frozen"):
        dataclasses.dataclass(frozen=True)(type("Wrong", (OURS["Open"],), {}))


def test_every_record_has_a_list_of_its_own_and_matches_by_place() -> None:
    kind: Any = OURS["Open"]
    one, other = kind(), kind()
    one.y.append(1)
    assert other.y == []
    match one:
        case kind(x, y):
            assert (x, y) == (0, [1])
        case _:
            raise AssertionError


@late(frozen=True)
class Sent:
    """For pickles, which find classes by name."""

    x: int
    y: tuple[int, ...] = ()


def test_pickles() -> None:
    assert pickle.loads(pickle.dumps(Sent(1, (2,)))) == Sent(1, (2,))


def test_nothing_is_compiled_before_it_is_needed() -> None:
    kind = declared(late)["Below"]
    before = kind.__init__
    assert "_describe_" in vars(kind) and not before.__annotations__.get("a")
    kind(1, "b")
    assert kind.__init__ is not before and kind.__repr__.__module__ == __name__
    assert kind.__init__.__annotations__["a"] == "int"
