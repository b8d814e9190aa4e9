"""Files of certificates: nothing is lost in them, and nothing that was not declared gets through the door."""

from __future__ import annotations

import io
import json
import resource
import struct
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from cases.value_certificates import loop, walk_certificate
from tightrope.certify.certificate_file import as_file
from tightrope.certify.problem import first_difference
from tightrope.cli.app import run
from tightrope.errors import InputError
from tightrope_check import archive
from tightrope_check.archive import digest_of, load, read
from tightrope_check.checker import check
from tightrope_check.evidence import Data
from tightrope_check.fields import validate
from tightrope_check.problem import Certificate, Claim, ValueHints

Members = dict[str, bytes]


def members_of(certificate: Certificate) -> Members:
    with zipfile.ZipFile(io.BytesIO(as_file(certificate).content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(members: Members) -> bytes:
    """A file with these members, under their own digest."""
    rest = {name: content for name, content in members.items() if name != "digest"}
    result = io.BytesIO()
    with zipfile.ZipFile(result, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in {**rest, "digest": digest_of(rest).encode()}.items():
            archive.writestr(zipfile.ZipInfo(name), content, archive.compression)
    return result.getvalue()


def rewritten(change: Callable[[dict[str, Any], Members], None]) -> bytes:
    """The file of a walk whose header and members were changed, under a digest that fits."""
    members = members_of(walk_certificate())
    head = json.loads(members["header.json"])
    change(head, members)
    if "header.json" in members:
        members["header.json"] = json.dumps(head).encode()
    return zipped(members)


@given(arrays.arrays(np.int64, st.integers(1, 20), elements=st.integers(0, 2**62 - 1)))
def test_integers_come_back_as_they_were(array: np.ndarray) -> None:
    certificate = loop("UNTIL", [0.0, 1, 0], [1.0, 1, 1])
    ranking = np.resize(array, 3)
    hints = replace(certificate.values[0], lower_ranking=ranking)
    again = read(as_file(replace(certificate, values=(hints,))).content).certificate.values[0].lower_ranking
    assert again is not None and again.dtype == np.int64 and np.array_equal(again, ranking)


def test_steps_are_stored_where_they_are_narrower() -> None:
    head = json.loads(members_of(walk_certificate())["header.json"])
    assert head["arrays"]["problem.graph.transition_start"][:2] == ["int8", "difference"]
    assert head["arrays"]["values.0.lower"][:2] == ["float64", "plain"]
    assert head["arrays"]["problem.theta"][:2] == ["text", "plain"]


def test_a_file_that_would_inflate_too_much_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = replace(walk_certificate(), about={"model": "x" * 4000})
    small = as_file(certificate)
    monkeypatch.setattr("tightrope_check.archive.ROOM", 64)
    monkeypatch.setattr("tightrope_check.archive.INFLATION", 1)
    large = as_file(certificate)
    assert len(large.content) > len(small.content) and large.digest == small.digest
    with pytest.raises(InputError, match="memory"):
        read(small.content)
    assert first_difference(read(large.content).certificate.problem, certificate.problem) is None


def dropped(name: str) -> Callable[[dict[str, Any], Members], None]:
    def change(head: dict[str, Any], members: Members) -> None:
        members.pop(name)
        head["arrays"].pop(name, None)

    return change


def header(path: str, value: Any) -> Callable[[dict[str, Any], Members], None]:
    """Another value somewhere in the header."""

    def change(head: dict[str, Any], members: Members) -> None:
        *way, last = path.split("/")
        node: Any = head
        for step in way:
            node = node[int(step)] if step.isdigit() else node[step]
        node[last] = value

    return change


def member(name: str, recipe: list[Any], content: bytes) -> Callable[[dict[str, Any], Members], None]:
    def change(head: dict[str, Any], members: Members) -> None:
        head["arrays"][name] = recipe
        members[name] = content

    return change


MALFORMED = [
    ("an array is missing", dropped("problem.graph.successor")),
    ("the header is missing", lambda head, members: members.pop("header.json")),
    ("a member too many", member("problem.graph.extra", ["int8", "plain", [1]], b"\0")),
    ("a member that is not listed", lambda head, members: members.update(extra=b"")),
    ("a field too many", header("certificate/problem/graph/extra", 1)),
    ("a field is missing", lambda head, members: head["certificate"]["problem"]["objective"].pop("kind")),
    ("a part is missing", header("certificate/problem/graph", None)),
    ("a part that is a list", header("certificate/problem", [])),
    ("an unknown kind", header("certificate/problem/objective/kind", "GLOBALLY")),
    ("a kind that is a list", header("certificate/problem/objective/kind", ["UNTIL"])),
    ("an initial state as text", header("certificate/problem/graph/initial", "0")),
    ("an initial state that is true", header("certificate/problem/graph/initial", True)),
    ("an initial state below 0", header("certificate/problem/graph/initial", -1)),
    ("a step bound of a billion", header("certificate/problem/objective/upper_steps", 10**9)),
    ("a step bound of hundred digits", header("certificate/problem/objective/upper_steps", 10**100)),
    ("a claim that is a whole number", header("certificate/claims/0/lower", 0)),
    ("a billion claims", header("certificate/claims", 10**9)),
    ("no claims", header("certificate/claims", [])),
    ("words about it that are a list", header("certificate/about", ["model"])),
    ("words about it that are numbers", header("certificate/about", {"model": 1})),
    ("a type that is a list", header("arrays/values.0.lower", [["float64"], "plain", [5]])),
    ("a type with another byte order", header("arrays/values.0.lower", [">f8", "plain", [5]])),
    ("an object array", header("arrays/values.0.lower", ["object", "plain", [5]])),
    ("unsigned numbers", header("arrays/problem.graph.successor", ["uint8", "plain", [10]])),
    ("a shape below 0", header("arrays/values.0.lower", ["float64", "plain", [-5]])),
    ("a shape that is too large", header("arrays/values.0.lower", ["float64", "plain", [2**39]])),
    ("differences of doubles", header("arrays/values.0.lower", ["float64", "difference", [5]])),
    ("a vector that is a table", header("arrays/values.0.lower", ["float64", "plain", [5, 1]])),
    ("integers for doubles", header("arrays/values.0.lower", ["int64", "plain", [5]])),
    ("a truth value of 2", member("problem.objective.target", ["bool", "plain", [5]], b"\0\0\0\0\2")),
    ("no number", member("values.0.lower", ["float64", "plain", [5]], struct.pack("<5d", *[np.nan] * 5))),
    ("a point with an exponent", member("problem.theta", ["text", "plain", [1]], b"1e-999999999")),
    ("a point with many digits", member("problem.theta", ["text", "plain", [1]], b"9" * 5000 + b"\n")),
    ("a point that divides by 0", member("problem.theta", ["text", "plain", [1]], b"1/0\n")),
    ("a point in other digits", member("problem.theta", ["text", "plain", [1]], "٣\n".encode())),
    (
        "two million numbers",
        member("problem.theta", ["text", "plain", [2_000_000]], b"0\n" * 2_000_000),
    ),
    (
        "an exponent of 10^8",
        member("problem.polynomial", ["text", "plain", [1]], b"1*0^100000000\n"),
    ),
    (
        "offsets that wrap around",
        member("problem.graph.choice_start", ["int8", "plain", [6]], bytes([0, 1, 3, 2, 7, 8])),
    ),
]


@pytest.mark.parametrize(("words", "change"), MALFORMED, ids=[words for words, _ in MALFORMED])
def test_what_was_not_declared_does_not_get_through_the_door(words, change, tmp_path, capsys) -> None:
    path = tmp_path / "malformed.cert"
    path.write_bytes(rewritten(change))
    assert run(["verify", str(path)]) == 2, words
    captured = capsys.readouterr()
    assert "malformed.cert" in captured.err and "Traceback" not in captured.err and captured.out == ""


HEADERS = [
    b"",
    b"[]",
    b"nonsense",
    b"[" * 500_000,
    b'{"format": 4, "format": 4}',
    b'{"format": 4, "arrays": {}, "certificate": NaN}',
    b'{"format": 4.0, "arrays": {}, "certificate": {}}',
    b'{"format": ' + b"9" * 5000 + b"}",
    b"\xff\xfe",
    b" " * (1 << 20) + b"{}",
]


@pytest.mark.parametrize("content", HEADERS, ids=range(len(HEADERS)))
def test_headers_of_unknown_origin_are_refused(content: bytes) -> None:
    members = members_of(walk_certificate())
    with pytest.raises(InputError, match=r"not a certificate|format"):
        read(zipped({**members, "header.json": content}))


@pytest.mark.costly("adversary/test_malformed.py::test_malformed_files_are_refused_quickly")
def test_a_zip_bomb_takes_no_memory() -> None:
    members = members_of(walk_certificate())
    head = json.loads(members["header.json"])
    head["arrays"]["problem.expression"] = ["int8", "plain", [2**28]]
    members["header.json"] = json.dumps(head).encode()
    rest = {
        name: content for name, content in members.items() if name not in ("digest", "problem.expression")
    }
    result = io.BytesIO()
    with zipfile.ZipFile(result, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in rest.items():
            archive.writestr(zipfile.ZipInfo(name), content, archive.compression)
        with archive.open("problem.expression", "w", force_zip64=True) as entry:
            for _ in range(2**28 >> 24):
                entry.write(bytes(1 << 24))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(InputError, match="times its own size"):
        read(result.getvalue())
    lying = result.getvalue().replace(struct.pack("<I", 2**28), struct.pack("<I", 1000))
    with pytest.raises(InputError, match="not a certificate"):
        read(lying)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000


def test_files_of_an_earlier_format_are_refused_with_a_way_out(tmp_path: Path) -> None:
    path = tmp_path / "old.cert"
    members = {"header.json": json.dumps({"format": 5, "arrays": {}, "certificate": {}}).encode()}
    with zipfile.ZipFile(path, "w") as file:
        for name, content in (*members.items(), ("digest", digest_of(members).encode())):
            file.writestr(zipfile.ZipInfo(name), content)
    with pytest.raises(InputError, match="another format") as caught:
        load(path)
    assert "again" in (caught.value.hint or "")


def test_no_pipe_and_no_device_is_read(tmp_path: Path) -> None:
    for place in (tmp_path, Path("/dev/zero")):
        with pytest.raises(InputError):
            load(place)


def test_every_byte_that_is_shown_is_under_the_digest() -> None:
    certificate = replace(walk_certificate(), about={"model": "walk"})
    members = members_of(certificate)
    relabelled = {**members, "header.json": members["header.json"].replace(b'"walk"', b'"talk"')}
    result = io.BytesIO()
    with zipfile.ZipFile(result, "w") as archive:
        for name, content in relabelled.items():
            archive.writestr(zipfile.ZipInfo(name), content, archive.compression)
    with pytest.raises(InputError, match="do not match its digest"):
        read(result.getvalue())


def test_arrays_without_signs_are_refused_in_memory_too() -> None:
    certificate = walk_certificate()
    graph = certificate.problem.graph
    for name in ("choice_start", "transition_start", "successor"):
        for kind in (np.uint8, np.uint64, np.int32):
            wrong = replace(graph, **{name: getattr(graph, name).astype(kind)})
            with pytest.raises(InputError, match="is not of the kind"):
                check(replace(certificate, problem=replace(certificate.problem, graph=wrong)))
    falling = np.array([1, 0, 3, 5, 7, 8])
    with pytest.raises(InputError, match="do not fit"):
        check(
            replace(
                certificate, problem=replace(certificate.problem, graph=replace(graph, choice_start=falling))
            )
        )


def test_a_point_whose_probabilities_do_not_sum_to_one_is_none() -> None:
    certificate = walk_certificate()
    assert certificate.problem.polynomial is not None
    first, *others = certificate.problem.polynomial
    tiny = {name: c + Fraction(1, 10**40) for name, c in first.items()}
    wrong = replace(certificate, problem=replace(certificate.problem, polynomial=(tiny, *others)))
    assert not check(wrong).valid


def test_texts_are_as_long_as_the_largest_instance_needs() -> None:
    """parallel(20): 185,209 expressions with 862,786 terms, 1,893,269 lines, terms and factors."""
    assert archive.MOST_LINES >= 185_209 and archive.MOST_PARTS >= 1_893_269


def test_texts_beyond_the_caps_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MOST_LINES", 3)
    monkeypatch.setattr(archive, "MOST_PARTS", 8)
    expected = ({((0, 1), (1, 2)): Fraction(1, 3), (): Fraction(-2)}, {}, {(): Fraction(7)})
    assert archive._lines(b"1/3*0^1*1^2 -2\n\n7\n", [3], "polynomials", "x") == expected
    for text in (b"1\n1\n1\n1\n", b"1*0^1*1^1*2^1 1*0^1*1^1 1*0^1\n"):
        with pytest.raises(ValueError, match="'x' has more than 3 lines, or 8 lines, terms and factors"):
            archive._lines(text, [text.count(b"\n")], "polynomials", "x")


def test_no_byte_of_a_file_is_outside_its_digest(tmp_path: Path) -> None:
    honest = as_file(walk_certificate()).content
    assert read(honest).digest
    names = sorted(members_of(walk_certificate()))

    def zipped(change: Callable[[zipfile.ZipInfo], None], comment: bytes = b"") -> bytes:
        result = io.BytesIO()
        with zipfile.ZipFile(result, "w") as archive:
            archive.comment = comment
            for name in names:
                about = zipfile.ZipInfo(name)
                change(about)
                archive.writestr(about, members_of(walk_certificate())[name])
        return result.getvalue()

    def changed(**fields: object) -> bytes:
        return zipped(lambda about: [setattr(about, name, value) for name, value in fields.items()] and None)

    assert read(zipped(lambda about: None)).digest == read(honest).digest
    packed = zlib.compressobj(1, zlib.DEFLATED, -15)
    content = members_of(walk_certificate())["digest"]
    stream = packed.compress(content) + packed.flush() + b"more"
    place = honest.index(b"digest")  # its name in its header
    assert place >= 30
    begin, (old,) = place - 30, struct.unpack_from("<18xL", honest, place - 30)
    longer = honest[: begin + 18] + struct.pack("<L", len(stream)) + honest[begin + 22 : begin + 36] + stream
    longer += honest[begin + 36 + old :]
    for hidden in (
        zipped(lambda about: None, comment=b"VALID"),
        b"#!/bin/sh\n" + honest,
        honest + b"\n",
        honest[:begin] + b"gap" + honest[begin:],
        changed(extra=b"\x99\x99\x04\x00more"),
        changed(comment=b"VALID"),
        changed(date_time=(2026, 1, 1, 0, 0, 0)),
        changed(external_attr=0o777 << 16),
        longer,
    ):
        with pytest.raises(InputError, match="not a certificate"):
            read(hidden)
    for place in range(0, len(honest), 7):
        flipped = bytearray(honest)
        flipped[place] ^= 1
        with pytest.raises(InputError):
            read(bytes(flipped))


@pytest.mark.parametrize("length", [0, 1, 3])
def test_lengths_that_a_field_must_have_are_asked_at_the_door(length: int) -> None:
    """Shares of δ without one, and a difference of other than two policies."""
    proof = walk_certificate()
    pair = Claim("difference", "pair", -1.0, 1.0, pair=np.zeros(length, dtype=np.int64))
    with pytest.raises(InputError, match="this is not a certificate: 'claims"):
        validate(replace(proof, claims=(*proof.claims, pair), values=(*proof.values, ValueHints())))
    nothing = np.zeros(0, dtype=np.int64)
    fixed = ("clopper-pearson", "events", "trajectories", False, False, False)
    data = Data(
        0.1,
        *fixed,
        np.zeros(1, dtype=np.int64),
        nothing,
        nothing,
        episodes=5,
        seen=np.array([1, 5, 2, 3]),
        seen_delta=np.full(length, 0.01),
    )
    wrong = {0: "with a part of δ", 1: None, 3: "returns of episodes that are counted"}[length]
    assert (data.trouble() is None) == (wrong is None) and (wrong is None or wrong in str(data.trouble()))
