"""Files that are no certificates, each made to hurt the reader in one way."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import random
import struct
import zlib
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from adversary.archive import Forgery, Stored, archive_bytes, digest_of

Make = Callable[[Forgery], bytes]

MIB = 1 << 20
BIG = 10**9


def edited(*changes: tuple[str, Any], head: dict[str, Any] | None = None) -> Make:
    """The honest file with other values in some fields, under a fitting digest."""

    def make(forgery: Forgery) -> bytes:
        for path, value in changes:
            forgery[path] = value
        forgery.head.update(head or {})
        return archive_bytes(forgery.members())

    return make


def raw_header(text: bytes | str) -> Make:
    """Another header, byte by byte."""

    def make(forgery: Forgery) -> bytes:
        members = forgery.members()
        members["header.json"] = text if isinstance(text, bytes) else text.encode()
        return archive_bytes(members)

    return make


def replaced_header(old: str, new: str) -> Make:
    def make(forgery: Forgery) -> bytes:
        members = forgery.members()
        text = members["header.json"].decode()
        assert old in text, old
        members["header.json"] = text.replace(old, new, 1).encode()
        return archive_bytes(members)

    return make


def recipe(value: Any, content: bytes | None = None, path: str = "values.0.lower") -> Make:
    """Another description of an array in the header."""

    def make(forgery: Forgery) -> bytes:
        stored = forgery[path]
        forgery[path] = Stored(value, np.asarray(stored).tobytes() if content is None else content)
        return archive_bytes(forgery.members())

    return make


def rational(text: str) -> Make:
    def make(forgery: Forgery) -> bytes:
        forgery["problem.polynomial"] = [text, *forgery["problem.polynomial"][1:]]
        return archive_bytes(forgery.members())

    return make


def with_members(*extra: tuple[str, bytes], kept: bool = True) -> Make:
    """More members, in a zip archive written by hand: names may be there twice, or be odd."""

    def make(forgery: Forgery) -> bytes:
        members = forgery.members() if kept else {}
        listed = [("digest", digest_of(members).encode()), *members.items(), *extra]
        return zip_bytes(listed)

    return make


def zip_bytes(
    members: list[tuple[str | bytes, bytes]],
    *,
    flags: int = 0,
    method: int = 8,
    size: int | None = None,
    crc: int | None = None,
) -> bytes:
    """A zip archive written field by field, so that its directory may say what it likes."""
    body, directory = io.BytesIO(), io.BytesIO()
    for name, content in members:
        plain = name if isinstance(name, bytes) else name.encode()
        deflated, check = _deflate(content)
        packed = content if method == 0 else deflated
        check = check if crc is None else crc
        length = len(content) if size is None else size
        common = struct.pack(
            "<HHHHHIIIHH", 20, flags, method, 0, 33, check, len(packed), length, len(plain), 0
        )
        place = body.tell()
        body.write(b"PK\3\4" + common + plain + packed)
        directory.write(
            b"PK\1\2" + struct.pack("<H", 20) + common + struct.pack("<HHHII", 0, 0, 0, 0, place) + plain
        )
    listed = directory.getvalue()
    end = struct.pack("<HHHHIIH", 0, 0, len(members), len(members), len(listed), body.tell(), 0)
    return body.getvalue() + listed + b"PK\5\6" + end


@lru_cache(maxsize=1)  # many members may be the same object
def _deflate(content: bytes) -> tuple[bytes, int]:
    """The content packed, and its checksum."""
    packer = zlib.compressobj(1, zlib.DEFLATED, -15)
    return packer.compress(content) + packer.flush(), zlib.crc32(content)


def rezipped(**tricks: Any) -> Make:
    def make(forgery: Forgery) -> bytes:
        members = forgery.members()
        return zip_bytes([("digest", digest_of(members).encode()), *members.items()], **tricks)

    return make


def zeros(count: int) -> bytes:
    return bytes(count)


def bomb(path: str, mebibytes: int, kind: str = "int8", padding: int = 0) -> Make:
    """An array of so many MiB of zeros, which deflate a thousandfold; `padding` MiB that do not."""

    def make(forgery: Forgery) -> bytes:
        width = {"int8": 1, "int64": 8, "float64": 8, "bool": 1}[kind]
        forgery[path] = Stored([kind, "plain", [mebibytes * MIB // width]], zeros(mebibytes * MIB))
        if padding:
            noise = random.Random(1).randbytes(padding * MIB)
            forgery["values.0.upper"] = Stored(["float64", "plain", [padding * MIB // 8]], noise)
        return archive_bytes(forgery.members())

    return make


def quoted_overlap(forgery: Forgery) -> bytes:
    """Ten thousand directory entries of one compressed body: small file, endless members."""
    packer = zlib.compressobj(1, zlib.DEFLATED, -15)
    content = zeros(64 * MIB)
    packed = packer.compress(content) + packer.flush()
    directory, count, check = io.BytesIO(), 10_000, zlib.crc32(content)
    first = b"0".rjust(5, b"0")
    body = (
        b"PK\3\4"
        + struct.pack("<HHHHHIIIHH", 20, 0, 8, 0, 33, check, len(packed), len(content), 5, 0)
        + first
    )
    for number in range(count):
        common = struct.pack("<HHHHHIIIHH", 20, 0, 8, 0, 33, check, len(packed), len(content), 5, 0)
        directory.write(b"PK\1\2" + struct.pack("<H", 20) + common + struct.pack("<HHHII", 0, 0, 0, 0, 0))
        directory.write(str(number).rjust(5, "0").encode())
    listed = directory.getvalue()
    end = struct.pack("<HHHHIIH", 0, 0, count, count, len(listed), len(body) + len(packed), 0)
    return body + packed + listed + b"PK\5\6" + end


def nested(forgery: Forgery) -> bytes:
    return zip_bytes([("inner.cert", archive_bytes(forgery.members()))])


def npz(forgery: Forgery) -> bytes:
    """A file of the format before this one, with a pickled array in it."""
    buffer = io.BytesIO()
    head = {"format": 3, "kind": "value", "header": {}, "about": {}, "digest": ""}
    np.savez(
        buffer,
        header=np.frombuffer(json.dumps(head).encode(), dtype=np.uint8),
        pickled=np.array([{"a": 1}], dtype=object),
    )
    return buffer.getvalue()


def pickled_member(forgery: Forgery) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.array([print], dtype=object), allow_pickle=True)
    forgery["values.0.lower"] = Stored(["float64", "plain", [6]], buffer.getvalue())
    return archive_bytes(forgery.members())


def wrong_digest(forgery: Forgery) -> bytes:
    members = forgery.members()
    return zip_bytes([("digest", b"0" * 64), *members.items()])


def big_endian(forgery: Forgery) -> bytes:
    for path in ("values.0.lower", "values.0.upper"):
        array = forgery[path]
        forgery[path] = Stored(["float64", "plain", list(array.shape)], array.astype(">f8").tobytes())
    return archive_bytes(forgery.members())


MALFORMED: dict[str, Make] = {
    "empty": lambda f: b"",
    "text": lambda f: b"this is not a certificate",
    "pickle": lambda f: pickle.dumps({"certificate": 4}),
    "gzip": lambda f: gzip.compress(archive_bytes(f.members())),
    "nested zip": nested,
    "earlier format with a pickle": npz,
    "pickled array": pickled_member,
    "truncated": lambda f: archive_bytes(f.members())[:-400],
    "last byte missing": lambda f: archive_bytes(f.members())[:-1],
    "first half": lambda f: archive_bytes(f.members())[: len(archive_bytes(f.members())) // 2],
    "another magic": lambda f: b"PQ" + archive_bytes(f.members())[2:],
    "directory only": lambda f: b"PK\5\6" + bytes(18),
    "no members": lambda f: zip_bytes([]),
    "no digest": lambda f: zip_bytes(list(f.members().items())),
    "wrong digest": wrong_digest,
    "digest in capitals": lambda f: zip_bytes([("digest", digest_of(f.members()).upper().encode()), *f.members().items()]),
    "digest twice": lambda f: zip_bytes([("digest", digest_of(f.members()).encode())] * 2 + [*f.members().items()]),
    "header twice": with_members(("header.json", b"{}")),
    "array twice": with_members(("values.0.lower", bytes(48))),
    "a member nobody declared": lambda f: archive_bytes({**f.members(), "more": b"1"}),
    "a path as a name": lambda f: archive_bytes({**f.members(), "../../etc/passwd": b"1"}),
    "a folder": with_members(("folder/", b"")),
    "a name that is no text": lambda f: zip_bytes([(b"\xff\xfe\xfa", b"1")], flags=0x800),
    "a name with a zero byte": with_members(("more\0", b"1")),
    "a name with colours": with_members(("\x1b[31mred\x1b[0m", b"1")),
    "a hundred thousand members": lambda f: zip_bytes([(f"m{i}", b"") for i in range(60_000)]),
    "encrypted": rezipped(flags=1),
    "method 99": rezipped(method=99),
    "method 12": rezipped(method=12),
    "method 14": rezipped(method=14),
    "wrong checksums": rezipped(crc=1),
    "lengths too small": rezipped(size=3),
    "lengths too large": rezipped(size=100_000),
    "lengths of 4 GiB": rezipped(size=2**32 - 2),
    "bomb in the header": lambda f: zip_bytes([("digest", b"0" * 64), ("header.json", zeros(260 * MIB))]),
    "bomb in an array": bomb("values.0.lower", 264, "float64"),
    "bomb of small integers": bomb("problem.graph.successor", 250, "int8", padding=6),
    "bomb of truth values": bomb("problem.objective.target", 60, "bool"),
    "one body, ten thousand names": quoted_overlap,
    "many bombs": lambda f: zip_bytes([(f"m{i}", content) for content in (zeros(8 * MIB),) for i in range(34)]),
    "sixty million rationals": lambda f: archive_bytes({**f.members(), "problem.polynomial": b"0\n" * (30 * MIB)}),
    "thirty million rationals, counted": recipe(["text", "plain", [30 * MIB]], b"0\n" * (30 * MIB), "problem.polynomial"),
    "a polynomial of millions of terms": recipe(["text", "plain", [1]], b"1*0^1 " * (20 * MIB) + b"1\n", "problem.polynomial"),
    "a monomial of millions of factors": recipe(["text", "plain", [1]], b"1" + b"*0^1" * (20 * MIB) + b"\n", "problem.polynomial"),
    "header: empty": raw_header(""),
    "header: no JSON": raw_header("{'format': 5}"),
    "header: null": raw_header("null"),
    "header: a list": raw_header("[]"),
    "header: a number": raw_header("4"),
    "header: not UTF-8": raw_header(b"\xff\xfe{}"),
    "header: half a character": raw_header('"\\ud800"'),
    "header: deep lists": raw_header("[" * 200_000),
    "header: deep objects": raw_header('{"a":' * 150_000),
    "header: deep in about": replaced_header('"about": ', '"about": ' + "[" * 3000 + "]" * 3000 + ', "aboot": '),
    "header: long": raw_header(" " * (32 * MIB) + "{}"),
    "header: a number of a million digits": replaced_header('"format": 6', '"format": ' + "4" * 900_000),
    "header: NaN": edited(("claims.0.lower", float("nan"))),
    "header: Infinity": edited(("claims.0.lower", float("inf"))),
    "header: minus infinity": edited(("claims.0.lower", float("-inf"))),
    "header: 1e999": replaced_header('"format": 6', '"format": 1e999'),
    "header: -1e999 as a bound": lambda f: replaced_header(f'"lower": {f["claims.0.lower"]!r}', '"lower": -1e999')(f),
    "header: format 6.0": edited(head={"format": 6.0}),
    "header: format true": edited(head={"format": True}),
    "header: format in words": edited(head={"format": "5"}),
    "header: format 7": edited(head={"format": 7}),
    "header: format 5": edited(head={"format": 5}),
    "header: format missing": replaced_header('"format": 6, ', ""),
    "header: format an object": edited(head={"format": {}}),
    "header: a key twice": replaced_header('"format": 6', '"format": 6, "format": 6'),
    "header: one field more": edited(head={"more": 1}),
    "header: arrays null": edited(head={"arrays": None}),
    "header: arrays a list": edited(head={"arrays": []}),
    "header: arrays empty": edited(head={"arrays": {}}),
    "header: certificate null": edited(head={"certificate": None}),
    "header: certificate a list": edited(head={"certificate": [1]}),
    "header: claims an object": lambda f: (f.node.update(claims={"0": f.node["claims"][0]}), archive_bytes(f.members()))[1],
    "header: claims a number": lambda f: (f.node.update(claims=BIG), archive_bytes(f.members()))[1],
    "header: claims without end": lambda f: (f.node.update(claims=[None] * 100_000), archive_bytes(f.members()))[1],
    "header: problem null": lambda f: (f.node.update(problem=None), archive_bytes(f.members()))[1],
    "recipe: null": recipe(None),
    "recipe: a number": recipe(8),
    "recipe: short": recipe(["float64", "plain"]),
    "recipe: a list as type": recipe([["float64"], "plain", [6]]),
    "recipe: an object as type": recipe([{}, "plain", [6]]),
    "recipe: an object as coding": recipe(["float64", {}, [6]]),
    "recipe: single precision": recipe(["float32", "plain", [12]]),
    "recipe: objects": recipe(["object", "plain", [6]]),
    "recipe: times": recipe(["datetime64", "plain", [6]]),
    "recipe: unsigned": recipe(["uint64", "plain", [6]]),
    "recipe: complex": recipe(["complex128", "plain", [3]]),
    "recipe: differences of reals": recipe(["float64", "difference", [6]]),
    "recipe: no dimension": recipe(["float64", "plain", []]),
    "recipe: two dimensions": recipe(["float64", "plain", [6, 1]]),
    "recipe: many dimensions": recipe(["float64", "plain", [1] * 60 + [6]]),
    "recipe: negative": recipe(["float64", "plain", [-1]]),
    "recipe: negative twice": recipe(["float64", "plain", [-2, -3]]),
    "recipe: huge": recipe(["float64", "plain", [2**70]]),
    "recipe: huge times nothing": recipe(["float64", "plain", [2**39, 0]], b""),
    "recipe: true": recipe(["float64", "plain", [True, 6]]),
    "recipe: a fraction": recipe(["float64", "plain", [6.0]]),
    "recipe: text for numbers": recipe(["text", "plain", [6]], b"0\n0\n0\n0\n0\n0\n"),
    "recipe: numbers for text": recipe(["int8", "plain", [3]], b"\0\0\0", "problem.polynomial"),
    "recipe: integers for reals": recipe(["int64", "plain", [6]]),
    "recipe: too long": recipe(["float64", "plain", [6]], bytes(56)),
    "a truth value of 2": recipe(["bool", "plain", [6]], b"\0\0\0\2\0\0", "problem.objective.target"),
    "not a number": edited(("values.0.lower", np.full(6, np.nan))),
    "minus infinity": edited(("values.0.upper", np.full(6, -np.inf))),
    "rational: 1e-999999999": rational("1e-999999999"),
    "rational: 1e100000000": rational("1e100000000"),
    "rational: 0.5": rational("0.5"),
    "rational: 1/0": rational("1/0"),
    "rational: empty": rational("*0^1"),
    "rational: spaces": rational(" 1"),
    "rational: plus": rational("+1"),
    "rational: underscores": rational("1_0"),
    "rational: other digits": rational("١"),
    "rational: nan": rational("nan"),
    "rational: hexadecimal": rational("0x10"),
    "rational: a hundred thousand digits": rational("1" * 100_000),
    "rational: a line feed at the end": rational("1\n"),
    "exponent 10^8": rational("1*0^100000000"),
    "exponent 4097": rational("1*0^4097"),
    "exponent 0": rational("1*0^0"),
    "a parameter twice": rational("1*0^1*0^1"),
    "a monomial twice": rational("1/2 1/2"),
    "a coefficient of 0": rational("0"),
    "two spaces": rational("1/2  1/2*0^1"),
    "a billion parameters": rational(f"1*{BIG}^1"),
    "a parameter that is not there": rational("1*7^1"),
    "a billion steps": edited(("problem.objective.upper_steps", BIG)),
    "10^18 steps": edited(("problem.objective.upper_steps", 10**18)),
    "negative steps": edited(("problem.objective.upper_steps", -1)),
    "a billion steps at least": edited(("problem.objective.lower_steps", BIG)),
    "steps of a float": edited(("problem.objective.upper_steps", 3.0)),
    "steps of true": edited(("problem.objective.upper_steps", True)),
    "steps beyond int64": edited(("problem.objective.upper_steps", 2**64)),
    "initial beyond": edited(("problem.graph.initial", 6)),
    "initial negative": edited(("problem.graph.initial", -1)),
    "successor beyond": lambda f: edited(("problem.graph.successor", f["problem.graph.successor"] + 6))(f),
    "successor negative": lambda f: edited(("problem.graph.successor", f["problem.graph.successor"] - 6))(f),
    "successor huge": lambda f: edited(("problem.graph.successor", f["problem.graph.successor"] + 2**62))(f),
    "no states": edited(("problem.graph.choice_start", np.array([0]))),
    "empty offsets": edited(("problem.graph.choice_start", np.array([], dtype=np.int64))),
    "a state without choices": edited(("problem.graph.choice_start", np.array([0, 2, 2, 4, 5, 6, 8]))),
    "offsets that fall": edited(("problem.graph.choice_start", np.array([0, 4, 2, 5, 6, 7, 8]))),
    "offsets that wrap": edited(("problem.graph.choice_start", np.array([0, 2**62, 4, 5, 6, 7, 8]))),
    "about: not words": lambda f: (f.node.update(about={"model": 4}), archive_bytes(f.members()))[1],
    "about: a list": lambda f: (f.node.update(about=[]), archive_bytes(f.members()))[1],
    "about: without end": lambda f: (f.node.update(about={f"k{i}": "v" for i in range(50_000)}), archive_bytes(f.members()))[1],
}  # fmt: skip


def _near_the_rate(count: int, width: float) -> Make:
    """Counts without end, and intervals so narrow that a tail has millions of terms before it falls."""

    def make(forgery: Forgery) -> bytes:
        counts = forgery["problem.data.batch_count"]
        forgery["problem.data.batch_count"] = np.full_like(counts, count)
        forgery["learned.lower"], forgery["learned.upper"] = (
            np.array([0.5 - width]),
            np.array([0.5 + width]),
        )
        return archive_bytes(forgery.members())

    return make


def _power(degree: int) -> Make:
    """(p + q) to a power, through an equality of the domain: as many coordinates as terms."""

    def make(forgery: Forgery) -> bytes:
        forgery["problem.domain.coefficient"] = ["1", "1", "-1"]
        lines = forgery["problem.polynomial"]
        forgery["problem.polynomial"] = [line.replace("*2^1", f"*2^{degree}") for line in lines]
        return archive_bytes(forgery.members())

    return make


def _edited_text(path: str, line: str) -> Make:
    """Another first line of a text."""

    def make(forgery: Forgery) -> bytes:
        forgery[path] = [line, *forgery[path][1:]]
        return archive_bytes(forgery.members())

    return make


def _last_polynomial(line: str) -> Make:
    """Another last polynomial: the one that is earned, where rewards have parameters."""

    def make(forgery: Forgery) -> bytes:
        forgery["problem.polynomial"] = [*forgery["problem.polynomial"][:-1], line]
        return archive_bytes(forgery.members())

    return make


def _costs(**changes: Any) -> Make:
    """Costs that nobody has seen."""

    def make(forgery: Forgery) -> bytes:
        for name, change in changes.items():
            path = f"problem.data.costs.{name}"
            forgery[path] = change(forgery[path]) if callable(change) else change
        return archive_bytes(forgery.members())

    return make


def _equalities(size: int) -> Make:
    """Equations whose solution has numbers of thousands of digits."""

    def make(forgery: Forgery) -> bytes:
        digits = random.Random(1)
        forgery["problem.domain.lower"], forgery["problem.domain.upper"] = ["0"] * size, ["1"] * size
        rows = [f"{digits.randint(1, 99)}/{digits.randint(1, 99)}" for _ in range(size * (size - 2))]
        forgery["problem.domain.coefficient"], forgery["problem.domain.bound"] = rows, ["1"] * (size - 2)
        forgery["problem.domain.is_equality"] = np.ones(size - 2, dtype=np.bool_)
        return archive_bytes(forgery.members())

    return make


def _long_numbers(forgery: Forgery) -> bytes:
    """A domain whose ends have four thousand digits."""
    long = "1" + "0" * 3998
    forgery["problem.domain.lower"] = [f"{long}1/{long}0001"[:8000], *forgery["problem.domain.lower"][1:]]
    forgery["problem.domain.upper"] = [f"{long}/{long}", *forgery["problem.domain.upper"][1:]]
    return archive_bytes(forgery.members())


def _long_automaton(memories: int) -> Make:
    """A chain of memories, in which nothing is settled before its end."""

    def make(forgery: Forgery) -> bytes:
        width = forgery["problem.automaton.successor"].shape[1]
        following = np.minimum(np.arange(memories) + 1, memories - 1)
        forgery["problem.automaton.successor"] = np.repeat(following[:, None], width, axis=1)
        forgery["problem.automaton.avoided"] = np.zeros((1, memories, width), dtype=np.bool_)
        forgery["problem.automaton.pair"] = np.zeros(1, dtype=np.int64)
        forgery["problem.automaton.repeated"] = np.ones((1, memories, width), dtype=np.bool_)
        forgery["problem.automaton.repeated"][0, -1] = False
        size = 6 * memories
        for name in ("lower", "upper"):
            forgery[f"values.0.{name}"] = np.ones(size)
        for name in ("lower_ranking", "witness"):
            forgery[f"values.0.{name}"] = np.zeros(size, dtype=np.int64)
        return archive_bytes(forgery.members())

    return make


def _automaton(**changes: Callable[[np.ndarray], np.ndarray]) -> Make:
    """An automaton with other arrays."""

    def make(forgery: Forgery) -> bytes:
        for name, change in changes.items():
            path = f"problem.automaton.{name}"
            forgery[path] = change(forgery[path].copy())
        return archive_bytes(forgery.members())

    return make


AUTOMATA: dict[str, Make] = {
    "successor beyond": _automaton(successor=lambda a: a + 1000),
    "successor negative": _automaton(successor=lambda a: a - 1000),
    "successor flat": _automaton(successor=lambda a: a.reshape(-1)),
    "no memories": _automaton(successor=lambda a: a[:0], avoided=lambda a: a[:, :0], repeated=lambda a: a[:, :0]),
    "a letter too few": _automaton(successor=lambda a: a[:, :-1], avoided=lambda a: a[:, :, :-1], repeated=lambda a: a[:, :, :-1]),
    "atoms of other states": _automaton(atom=lambda a: a[:, :-1]),
    "all atoms one letter": _automaton(atom=np.zeros_like),
    "more atoms than bits": _automaton(atom=lambda a: np.repeat(a, 40, axis=0)),
    "a mark of no pair": _automaton(pair=lambda a: a + 100),
    "a pair below 0": _automaton(pair=lambda a: a - 100),
    "marks of other memories": _automaton(repeated=lambda a: a[:, :-1]),
    "pairs as truth values": _automaton(pair=lambda a: a.astype(np.bool_)),
    "missing": lambda f: (f.drop("problem.automaton.avoided"), archive_bytes(f.members()))[1],
    "believed by a word": edited(("problem.automaton.believed", "no")),
    "for another question": edited(("problem.objective.kind", "UNTIL")),
    "a target beside it": edited(("problem.objective.target", np.zeros(6, dtype=np.bool_))),
    "too many memories": _long_automaton(30_000),
}  # fmt: skip
"""Automata that are none, made from the certificate of a temporal formula."""

LONG = "1" + "0" * 3990

NEWEST: dict[str, tuple[str, Make]] = {
    "costs of no transition": ("newest/costs", _costs(transition=lambda a: a + 1000)),
    "costs in another order": ("newest/costs", _costs(transition=lambda a: a[::-1].copy())),
    "costs below none": ("newest/costs", _costs(count=lambda a: a * 0)),
    "costs without sums": ("newest/costs", _costs(total=lambda a: a[:-1])),
    "costs of both kinds": ("newest/costs", _costs(deviation=1.0)),
    "costs of no kind": ("newest/costs", _costs(lower=None, upper=None)),
    "costs of half a range": ("newest/costs", _costs(lower=None)),
    "costs of an empty range": ("newest/costs", _costs(lower=4.0, upper=0.0)),
    "costs in words": ("newest/costs", _costs(total=lambda a: ["much"] * len(a))),
    "costs divided by 0": ("newest/costs", _costs(square=lambda a: ["1/0"] * len(a))),
    "costs of a reward without parameters": ("newest/costs", lambda f: (f.drop("problem.objective.earned"), f.__setitem__("problem.objective.reward", np.ones(6)), archive_bytes(f.members()))[2]),
    "rewards earned beyond": ("newest/costs", lambda f: edited(("problem.objective.earned", f["problem.objective.earned"] + 99))(f)),
    "a denominator without its parameter": ("walk/polytope/quotients", lambda f: (f.drop("problem.denominator"), archive_bytes(f.members()))[1]),
    "a denominator that is no list": ("walk/polytope/quotients", edited(("problem.denominator", np.ones(1)))),
    "a basis near nothing": ("walk/polytope/quotients", lambda f: edited(("learned.region.bound_near", np.array([np.nan])))(f)),
    "shares that are no numbers": ("spread/slab/coupled", lambda f: edited(("learned.slab.0.share", f["learned.slab.0.share"] * -1))(f)),
    "a stage without its points": ("spread/slab/coupled", lambda f: (f.drop("learned.slab.0.point"), archive_bytes(f.members()))[1]),
    "nine stages": ("spread/slab/coupled", lambda f: (f["learned"].update(slab=f["learned"]["slab"] * 9), archive_bytes(f.members()))[1]),
}  # fmt: skip
"""Costs, quotients and stages that are none."""

HOSTILE: dict[str, tuple[str, Make]] = {
    "costs of 4000 digits": ("newest/costs", _costs(total=lambda a: [LONG] * len(a), square=lambda a: [LONG * 1] * len(a))),
    "a reward of degree 4000": ("newest/costs", _last_polynomial("1*1^4000")),
    "a reward of degree 250": ("newest/costs", _last_polynomial("1*1^250")),
    "a denominator of degree 4000": ("walk/polytope/quotients", _edited_text("problem.denominator", "1*0^4000 1")),
    "a denominator of no sign": ("walk/polytope/quotients", _edited_text("problem.denominator", "1*0^1 -1*1^1")),
    "a denominator that is 0": ("walk/polytope/quotients", _edited_text("problem.denominator", "")),
    "a probability of degree 400": ("walk/polytope/expression", lambda f: edited(("problem.polynomial", [line.replace("*0^1", "*0^400") for line in f["problem.polynomial"]]))(f)),
    "shares of 0": ("spread/slab/coupled", lambda f: edited(("learned.slab.0.share", f["learned.slab.0.share"] * 0))(f)),
    "eight stages again": ("spread/slab/coupled", lambda f: edited(("learned.slab.0.point", f["learned.slab.0.point"] * 1e308))(f)),
    "a chain of 4,000 memories": ("point/temporal", _long_automaton(4_000)),
    "2^50 trials": ("walk/events/tied", _near_the_rate(2**42, 1e-6)),
    "more counts than int64 holds": ("walk/events/tied", edited(("problem.data.batch_count", np.full(1, 2**62)))),
    "counts of 2^63 - 1": ("walk/likelihood/expression", lambda f: edited(("problem.data.batch_count", np.full_like(f["problem.data.batch_count"], 2**63 - 1)))(f)),
    "counts below 0": ("walk/likelihood/expression", lambda f: edited(("problem.data.batch_count", -f["problem.data.batch_count"]))(f)),
    "10^18 episodes": ("walk/likelihood/expression", edited(("problem.data.design", "trajectories"), ("problem.data.episodes", 10**18))),
    "a power of 900": ("domain/expression", _power(900)),
    "a power of 4096": ("domain/expression", _power(4096)),
    "a hundred equalities": ("domain/expression", _equalities(100)),
    "two hundred equalities": ("domain/expression", _equalities(200)),
    "numbers of 4000 digits": ("domain/coupled", _long_numbers),
}  # fmt: skip
"""Files of the right form that ask for more work than anyone should do, by the honest file they come from."""
