"""Random changes of single fields: numbers moved, indices out of range, other types, shapes and orders."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from adversary.archive import Forgery

ODD_REALS = (
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    2.0,
    np.nan,
    np.inf,
    -np.inf,
    1.7e308,
    -1.7e308,
    5e-324,
    1e-310,
    1e-17,
    1e17,
)
ODD_WHOLES = (0, 1, -1, -2, 2, 7, 127, 128, 255, 2**31 - 1, 2**31, 2**62 - 1, 2**62, 2**63 - 1, -(2**63))
ODD_VALUES = (
    None,
    True,
    False,
    0,
    1,
    -1,
    1.0,
    0.5,
    10**9,
    2**64,
    1e308,
    "",
    "inf",
    "MAX",
    "MIN",
    "free",
    "domain",
    [],
    {},
    [0],
)
ODD_TYPES = (
    "uint8",
    "int8",
    "uint64",
    "int32",
    "float32",
    "float16",
    "complex128",
    ">f8",
    ">i8",
    "bool",
    "U3",
)
STEPS = (2.0**-52, 1e-12, 1e-9, 1e-6, 1e-3, 0.05, 0.3)


@st.composite
def mutation(draw: st.DrawFn, forgery: Forgery, paths: list[str]) -> str:
    """Change one field of the forgery in place, and say which and how. It leaves the list."""
    path = draw(st.sampled_from(paths))
    paths.remove(path)
    value = forgery[path]
    if isinstance(value, np.ndarray):
        with np.errstate(all="ignore"):
            name, changed = _array(draw, value)
        forgery[path] = changed
    elif path in forgery.arrays:
        name = draw(st.sampled_from(["drop", "swap", "odd"]))
        texts = list(value)
        if texts and name == "drop":
            texts.pop(draw(st.integers(0, len(texts) - 1)))
        elif texts and name == "swap":
            texts = texts[::-1]
        elif texts:
            texts[draw(st.integers(0, len(texts) - 1))] = draw(
                st.sampled_from(["0", "-1", "1/3", "2", "999999999999/1000000000000"])
            )
        forgery[path] = texts
    elif isinstance(value, float):
        moved = [value + sign * step for step in STEPS for sign in (1, -1)]
        name, forgery[path] = "scalar", draw(st.sampled_from([*moved, *ODD_VALUES]))
    else:
        name, forgery[path] = "scalar", draw(st.sampled_from(ODD_VALUES))
    return f"{path}: {name}"


def _array(draw: st.DrawFn, array: np.ndarray) -> tuple[str, Any]:
    ways = ["entry", "entry", "entry", "all", "order", "length", "type", "shape"]
    way = draw(st.sampled_from(ways))
    size = array.size
    if way in ("entry", "all", "order", "length") and size == 0:
        way = "shape"
    changed = array.copy()
    flat = changed.reshape(-1)
    if way == "entry":
        place = draw(st.integers(0, size - 1))
        flat[place] = _other(draw, array.dtype, flat[place])
    elif way == "all":
        if array.dtype.kind == "f":
            factor = draw(st.sampled_from([0.0, 0.5, 0.9, 0.999, 1.001, 1.1, 2.0, -1.0]))
            changed = changed * factor + draw(st.sampled_from([0.0, 1e-9, 0.01, -0.01]))
        elif array.dtype.kind == "b":
            changed = ~changed
        else:
            changed = changed * draw(st.sampled_from([0, 1, 1, -1])) + draw(st.sampled_from([0, 1, -1, 3]))
    elif way == "order":
        if draw(st.booleans()):
            changed = changed[::-1].copy()
        else:
            a, b = draw(st.integers(0, size - 1)), draw(st.integers(0, size - 1))
            flat[a], flat[b] = flat[b], flat[a]
    elif way == "length":
        if draw(st.booleans()):
            changed = changed[:-1]
        else:
            changed = np.concatenate([changed, changed[-1:]])
    elif way == "type":
        kind = draw(st.sampled_from(ODD_TYPES))
        real = np.nan_to_num(array) if array.dtype.kind == "f" and kind != ">f8" else array
        changed = real.astype(kind)
    else:
        shape = draw(st.sampled_from([(-1, 1), (1, -1), (-1,)]))
        changed = array.reshape(shape) if size else array.reshape(0, 1)
        if draw(st.booleans()):
            changed = changed[:1]
    return way, changed


def _other(draw: st.DrawFn, dtype: np.dtype[Any], value: Any) -> Any:
    if dtype.kind == "b":
        return not value
    if dtype.kind == "f":
        moved = [float(value) + sign * step for step in STEPS for sign in (1, -1)]
        return draw(st.sampled_from([*moved, *ODD_REALS]))
    near = [int(value) + 1, int(value) - 1] if abs(int(value)) < 2**62 else []
    return draw(st.sampled_from([*near, *ODD_WHOLES]))
