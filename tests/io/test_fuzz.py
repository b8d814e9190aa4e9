"""Mutilated model files are read or refused; nothing but `InputError` ever comes out."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from cases.explicit_files import DOUBLES, DRN, DTMC_TRA, LAB, MDP_TRA, SREW, STA, TREW, put
from effort import FUZZED
from storm import MODELS
from tightrope.errors import InputError
from tightrope.io.drn.read import read_drn
from tightrope.io.drn.write import write_drn
from tightrope.io.explicit import read_explicit
from tightrope.prism.load import load_prism

INSERTIONS = [
    "", " ", "\n", "\t", ":", "[", "]", ",", "(", ")", "/", "^", "-", "+", "*", "$", "$0", "//", "//[",
    "//@tightrope ", '"', "'", "@", "@model", "@placeholders", "@nr_states", "state ", "state 0",
    "action ", "init", "0", "1", "-1", "2", "99999999999999999999", "1e400", "1e-400", "1e99999", "0.5",
    "1/0", "p^64", "((((", "nan", "inf", "true", "#", "=", '0="', "\x00", "é", "٣", "{}", "null",
]  # fmt: skip


def written(name: str) -> str:
    """What we write ourselves for one of the models, notes and valuations included."""
    with tempfile.TemporaryDirectory() as folder:
        write_drn(load_prism(MODELS / name), Path(folder) / "m.drn")
        return (Path(folder) / "m.drn").read_text(encoding="utf-8")


@cache
def drn_texts() -> list[str]:
    return [DRN, DOUBLES, *(written(f"{name}.prism") for name in ("merging", "interval_chain", "layout"))]


EXPLICIT_TEXTS = {"tra": MDP_TRA, "lab": LAB, "sta": STA, "srew": SREW, "trew": TREW}


@st.composite
def mutilated(draw: st.DrawFn, text: str) -> str:
    """One to four cuts, insertions, and moves of lines."""
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        length = draw(st.sampled_from([0, 0, 1, 1, 2, 5, 20, len(text)]))
        middle = draw(st.sampled_from(INSERTIONS))
        if draw(st.integers(0, 4)) == 0:
            lines = text.splitlines(keepends=True) or [""]
            source, target = (draw(st.integers(0, len(lines) - 1)) for _ in range(2))
            lines.insert(target, lines[source])
            text = "".join(lines)
        else:
            text = text[:start] + middle + text[start + length :]
    return text


@FUZZED
@given(st.data())
def test_drn(data: st.DataObject) -> None:
    text = data.draw(mutilated(data.draw(st.sampled_from(drn_texts()))))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "m.drn"
        file.write_text(text, encoding="utf-8")
        try:
            model = read_drn(file)
        except InputError as error:
            assert str(file) in str(error)
            return
        write_drn(model, Path(folder) / "n.drn")
        assert read_drn(Path(folder) / "n.drn").hash() == model.hash()


@FUZZED
@given(st.data())
def test_explicit(data: st.DataObject) -> None:
    texts = dict(EXPLICIT_TEXTS)
    if data.draw(st.booleans()):
        texts = {"tra": DTMC_TRA}
    which = data.draw(st.sampled_from(sorted(texts)))
    texts[which] = data.draw(mutilated(texts[which]))
    with tempfile.TemporaryDirectory() as folder:
        base = put(Path(folder), **texts)
        try:
            read_explicit(base)
        except InputError as error:
            assert str(base) in str(error)
