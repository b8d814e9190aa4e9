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
from effort import WHOLE

Make = Callable[[Forgery], bytes]

SMALLER = 1 if WHOLE else 8
MIB = (1 << 20) // SMALLER
"""Bombs are as much smaller as the room that the reader has for them."""
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
    "a name that is not a text": lambda f: zip_bytes([(b"\xff\xfe\xfa", b"1")], flags=0x800),
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
    "offsets that wrap": edited(("problem.graph.choice_start", np.array([0, 2**62 - 1, 4, 5, 6, 7, 8]))),
    "about: not words": lambda f: (f.node.update(about={"model": 4}), archive_bytes(f.members()))[1],
    "about: a list": lambda f: (f.node.update(about=[]), archive_bytes(f.members()))[1],
    "about: without end": lambda f: (f.node.update(about={f"k{i}": "v" for i in range(50_000)}), archive_bytes(f.members()))[1],
}  # fmt: skip
