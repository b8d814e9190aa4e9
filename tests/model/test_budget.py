"""Small files and formulas that stand for work without end: refused by name, at once, before it is spent."""

from __future__ import annotations

import contextlib
import io
import json
import tarfile
from pathlib import Path

import pytest

import tightrope as tr
from tightrope.cli.app import run
from tightrope.errors import InputError
from tightrope.model import numbers as door
from tightrope.prism.load import load_prism_text
from tightrope.prism.parse.parser import parse_properties

pytestmark = pytest.mark.usefixtures("in_python")

MODEL = 'mdp module m s : [0..3]; [a] s=0 -> {0} : (s\'=1); [] s>0 -> true; endmodule label "goal" = s=1; {1}'
DEEP = 100_000


def answer(*arguments: object) -> tuple[int, str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run([str(argument) for argument in arguments])
    return code, err.getvalue()


def doubling(first: str, step: str, last: str) -> str:
    definitions = "".join(f" formula f{i + 1} = {step.format(f'f{i}')};" for i in range(60))
    return MODEL.format(last, f"formula f0 = {first};{definitions}")


def modules(count: int, commands: str) -> str:
    written = "".join(f"module m{i} x{i} : [0..1]; {commands.format(i)} endmodule\n" for i in range(count))
    return f"mdp\n{written}"


TEXTS = [
    ("literal", MODEL.format("1e-999999999", ""), "this number has more than 400 digits"),
    ("power", MODEL.format("pow(2,1000000000)", ""), "this power has more than 20000 bits"),
    ("small power", MODEL.format("pow(0.5,1000000000)", ""), "this power has more than 20000 bits"),
    ("negative power", MODEL.format("pow(-0.5,1000000001)", ""), "this power has more than 20000 bits"),
    ("degree", MODEL.format("pow(p,1000000)", "const double p;"), "a polynomial of degree 1000000 is beyond"),
    ("sums", doubling("s+1", "{0}+{0}", "f60>0 ? 1 : 1"), "more than 200000 parts"),
    ("squares", doubling("s+2", "{0}*{0}", "f60>0 ? 1 : 1"), "more than 200000 parts"),
    ("range", MODEL.format("1", "global t : [0..1000000000000000000];"), "beyond 32-bit integers"),
    ("unary", MODEL.format("-" * 6000 + "1", ""), "nested more than 250 deep"),
    ("condition", MODEL.format("s=0 ? 1 : " * 3000 + "1", ""), "nested more than 250 deep"),
    ("hiding", MODEL.format("1", "system m" + " / {a}" * 3000 + " endsystem"), "nested more than 250 deep"),
    (
        "choices",
        modules(40, "[a] true -> (x{0}'=0); [a] true -> (x{0}'=1);"),
        "the 40 modules that move together have 1,099,511,627,776 choices with 1,099,511,627,776 outcomes",
    ),
    (
        "outcomes",
        modules(40, "[a] true -> 0.5 : (x{0}'=0) + 0.5 : (x{0}'=1);"),
        "have 1 choices with 1,099,511,627,776 outcomes",
    ),
    (
        "intervals",
        modules(40, "[a] true -> [0.1,0.9] : (x{0}'=0) + [0.1,0.9] : (x{0}'=1);"),
        "have 1 choices with 1,099,511,627,776 outcomes",
    ),
]


@pytest.mark.parametrize(("text", "words"), [case[1:] for case in TEXTS], ids=[case[0] for case in TEXTS])
def test_programs(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        load_prism_text(text)
    assert caught.value.location is not None and caught.value.location.line is not None


def test_the_limit_of_outcomes_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five modules have 32 choices; frames that are too wide are cut."""
    text = modules(5, "[a] true -> (x{0}'=0); [a] true -> (x{0}'=1);")
    whole = load_prism_text(text)
    monkeypatch.setenv("TIGHTROPE_MOST_OUTCOMES", "100")
    cut = load_prism_text(text)
    assert whole.choices == 32 * 32 and cut.hash() == whole.hash()
    monkeypatch.setenv("TIGHTROPE_MOST_OUTCOMES", "30")
    with pytest.raises(InputError, match=r"32 outcomes in state .*, more than 30"):
        load_prism_text(text)


def test_states_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "most_bytes", lambda: 2.0**16)
    with pytest.raises(InputError, match="more than this machine's memory holds"):
        load_prism_text(modules(30, "[] x{0}=0 -> (x{0}'=1);"))


FORMULAS = [
    "Pmax=? [ " + "X " * 2000 + '"goal" ]',
    "Pmax=? [ " + "G F " * 1000 + '"goal" ]',
    "Pmax=? [ " + "X (" * 20_000 + '"goal"' + ")" * 20_000 + " ]",
    "Pmax=? [ " + "s=0 U (" * 500 + '"goal"' + ")" * 500 + " ]",
    "Pmax>=0.5 [ F " * 2000 + "s=1" + " ]" * 2000,
    "!(" * 1000 + "Pmax>=0.5 [ F s=1 ]" + ")" * 1000,
    "Pmax=? [ " + "(F s=1) & (" * 1000 + "F s=1" + ")" * 1000 + " ]",
]


@pytest.mark.thinned(3)
@pytest.mark.parametrize("text", FORMULAS, ids=range(len(FORMULAS)))
def test_deep_formulas(text: str) -> None:
    with pytest.raises(InputError, match=r"--prop:1:\d+: this formula is nested more than \d+ deep"):
        parse_properties(text, "--prop")


def test_deep_formulas_that_are_read(tmp_path: Path) -> None:
    path = tmp_path / "m.prism"
    path.write_text(MODEL.format("1", ""))
    code, message = answer("check", path, "--prop", "Pmax=? [ " + "X " * 140 + '"goal" ]', "--json")
    assert code == 0, message
    code, message = answer("check", path, "--prop", "Pmax>=0.5 [ F " * 29 + "s=1" + " ]" * 29, "--json")
    assert code == 0, message
    code, message = answer("check", path, "--prop", "R{" + "9" * 5000 + "}max=? [ F s=1 ]", "--json")
    assert code == 2 and "reward" in message


POLICIES = [
    "[" * DEEP + "]" * DEEP,
    '{"a":' * DEEP + "1" + "}" * DEEP,
    '{"format": "tightrope policy", "policy": ' + "[" * 5000 + "]" * 5000 + "}",
    '{"format": "tightrope policy", "version": ' + "9" * 10_000 + "}",
]


@pytest.mark.parametrize("text", POLICIES, ids=range(len(POLICIES)))
def test_policies(tmp_path: Path, text: str) -> None:
    path, policy = tmp_path / "m.prism", tmp_path / "p.json"
    path.write_text(MODEL.format("1", ""))
    policy.write_text(text)
    code, message = answer("check", path, "--prop", 'Pmax=? [ F "goal" ]', "--policy", policy, "--json")
    assert code == 2 and "p.json: no policy file: " in message


def test_jani_that_is_nested_deeply(tmp_path: Path) -> None:
    path = tmp_path / "m.jani"
    path.write_text('{"type": "mdp", "variables": ' + "[" * DEEP + "]" * DEEP + "}")
    with pytest.raises(InputError, match="nested too deeply"):
        tr.load(str(path))


def test_explicit_files_of_states_without_rows(tmp_path: Path) -> None:
    for text in ("999999999 999999999 1\n0 0 0 1\n", "999999999 1\n0 0 1\n"):
        (tmp_path / "m.tra").write_text(text)
        with pytest.raises(InputError, match="state 1 has no transition"):
            tr.load(str(tmp_path / "m.tra"))


def test_arrays_of_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names of a few bytes stand for arrays as long as the model."""
    monkeypatch.setattr(door, "most_bytes", lambda: 2.0**16)
    names = " ".join(f"r{i}" for i in range(5000)) + "\n@nr_states\n100\n@model\n"
    loops = "".join(f"state {i}\naction a\n0 : 1\n" for i in range(1, 100))
    path = tmp_path / "m.drn"
    path.write_text(f"@type: MDP\n@reward_models\n{names}state 0 init\naction a\n0 : 1\n{loops}")
    with pytest.raises(InputError, match="5,000 reward models would take"):
        tr.load(str(path))
    (tmp_path / "m.tra").write_text("100 100\n" + "".join(f"{i} 0 1\n" for i in range(100)))
    (tmp_path / "m.lab").write_text(" ".join(f'{i}="l{i}"' for i in range(1000)) + "\n")
    with pytest.raises(InputError, match=r"m\.lab:1:1: 1,000 labels would take"):
        tr.load(str(tmp_path / "m.tra"))
    with pytest.raises(InputError, match="3,001 labels and 0 reward structures would take"):
        load_prism_text(
            MODEL.format("1", "".join(f'label "l{i}" = s=1;' for i in range(3000))).replace("3]", "200]")
            + "init true endinit"
        )


def test_umb_archives_that_declare_too_much(tmp_path: Path) -> None:
    model = tr.build_from_rows([(0, "a", {0: 0.5, 1: 0.5}), (1, "a", {1: 1})]).instantiate()
    path, bomb = tmp_path / "m.umb", tmp_path / "bomb.umb"
    model.save(path)
    for key in ("num-states", "num-choices", "num-branches"):
        with tarfile.open(path) as source, tarfile.open(bomb, "w:gz") as target:
            for member in source:
                content = source.extractfile(member)
                assert content is not None
                raw = content.read()
                if member.name == "index.json":
                    index = json.loads(raw)
                    index["transition-system"]["#" + key[4:]] = 10**12
                    raw = json.dumps(index).encode()
                member.size = len(raw)
                target.addfile(member, io.BytesIO(raw))
        with pytest.raises(InputError, match=r"its index says|no UMB file"):
            tr.load(str(bomb))
    with bomb.open("wb") as file:
        member = tarfile.TarInfo("branch-to-target.bin")
        member.size = 2**45
        file.write(member.tobuf())
    with pytest.raises(InputError, match="what the archive holds would take"):
        tr.load(str(bomb))
