"""What is read at once from UMB archives is what umbi reads number by number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("umbi")

import umbi.binary
import umbi.umb
from umbi.binary import SizedType, StructType
from umbi.datatypes import IntervalType, NumericPrimitiveType, PrimitiveType

import tightrope as tr
from tightrope.io.umb import _decode_structs, _decode_vector, decode_archive

INT, UINT, DOUBLE = NumericPrimitiveType.INT, NumericPrimitiveType.UINT, NumericPrimitiveType.DOUBLE


def test_a_file_that_cannot_be_read_is_called_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    (path := tmp_path / "m.umb").touch()
    monkeypatch.setattr("tightrope.io.umb.tarfile.open", denied)
    with pytest.raises(tr.InputError, match=r"m\.umb: cannot be read: Permission denied"):
        tr.load(path)


@pytest.mark.parametrize(
    ("kind", "bits", "values"),
    [
        (UINT, 64, [0, 7, 2**63]),
        (UINT, 32, [0, 7, 2**32 - 1]),
        (INT, 32, [-5, 0, 2**31 - 1]),
        (DOUBLE, 64, [0.1, -2.5, 1e300]),
        (PrimitiveType.BOOL, 1, [True, False, True, True, False, False, True, False]),
        (IntervalType(DOUBLE), 128, [umbi.datatypes.Interval(0.25, 0.5), umbi.datatypes.Interval(0.0, 1.0)]),
    ],
)
def test_vectors(kind: Any, bits: int, values: list[Any]) -> None:
    sized = SizedType(kind, bits)
    read = _decode_vector(umbi.binary.vector_to_bytes(values, sized), sized)
    assert read is not None
    if bits == 128:
        assert [(v.left, v.right) for v in read] == [(v.left, v.right) for v in values]
    else:
        assert read == values


def test_valuations_that_begin_at_any_bit() -> None:
    struct = StructType()
    for name, kind, bits in (("on", PrimitiveType.BOOL, 1), ("x", INT, 5), ("y", UINT, 11), ("z", INT, 32)):
        struct.add_attribute(name, SizedType(kind, bits))
    struct.add_padding(7)
    struct.add_attribute("w", SizedType(DOUBLE, 64))
    rng = np.random.default_rng(1)
    rows: list[Any] = [
        {
            "on": bool(rng.integers(2)),
            "x": int(rng.integers(-16, 16)),
            "y": int(rng.integers(2**11)),
            "z": int(rng.integers(-(2**31), 2**31)),
            "w": float(rng.random()),
        }
        for _ in range(50)
    ]
    columns = _decode_structs(umbi.binary.vector_to_bytes(rows, struct), struct)
    assert columns is not None
    assert [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)] == rows


def test_an_archive_is_read_as_umbi_reads_it(tmp_path: Path) -> None:
    model = tr.load("bench:betting(3)").instantiate(p=0.55, q=0.0004)
    model.save(tmp_path / "m.umb")
    ours, theirs = decode_archive(tmp_path / "m.umb"), umbi.umb.read(tmp_path / "m.umb")
    for name in ("state_is_initial", "state_to_choices", "choice_to_branches", "branch_to_target"):
        assert getattr(ours, name) == getattr(theirs, name)
    assert (
        ours.branch_to_probability == theirs.branch_to_probability and ours.annotations == theirs.annotations
    )
    rows = theirs.valuations["states"]
    assert {k: v.tolist() for k, v in ours.valuations["states"].items()} == {
        name: [row[name] for row in rows] for name in rows[0]
    }
