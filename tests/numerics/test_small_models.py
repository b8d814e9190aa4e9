"""Small models on the command line: no numba, no waiting, and the bounds that compiled kernels verify."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from effort import repeats
from tightrope.cli.app import run
from tightrope.numerics import jit

PROPERTIES = (
    'Pmax=? [ F "goal" ]',
    'Pmin=? [ F "goal" ]',
    'Pmax=? [ !"bad" U "goal" ]',
    'Pmin=? [ G !"bad" ]',
    'Rmax=? [ F "end" ]',
    'Rmin=? [ F "end" ]',
    "Rmax=? [ C<=7 ]",
    "Rmin=? [ C ]",
)

SCRIPT = """
import sys
from tightrope.cli.app import run
for line in open(sys.argv[1]):
    arguments = line.rstrip("\\n").split("\\t")
    code = run(arguments)
    heavy = {"numba", "scipy"} & set(sys.modules)
    assert code == 0 and not heavy, (arguments, heavy)
"""
LIGHT = """
heavy = {"pyarrow", "pydantic", "matplotlib", "tightrope.regions", "tightrope.data"}
heavy |= {"lark", "rich", "importlib.metadata", "tarfile", "concurrent.futures"}  # 4 to 60 ms each
sys.stdout = open(sys.argv[1] + ".txt", "w")
assert run(arguments[:-1]) == 0  # the table in place of --json
heavy &= set(sys.modules)
assert not heavy, heavy
"""


def random_model(draw: random.Random, states: int) -> str:
    """Some choices per state, some loops and end components, two absorbing states at the end."""
    kind = draw.choice(["mdp", "mdp", "dtmc"])
    lines = [kind, "module m", f"  s : [0..{states + 1}] init 0;"]
    for state in range(states):
        for choice in range(draw.randint(1, 3) if kind == "mdp" else 1):
            targets = draw.sample(range(states + 2), k=draw.randint(1, 3))
            if draw.random() < 0.3:
                targets = [*targets[:-1], state]
            weights = [draw.randint(1, 4) for _ in targets]
            parts = (f"{w}/{sum(weights)} : (s'={t})" for w, t in zip(weights, targets, strict=True))
            lines.append(f"  [a{choice}] s={state} -> {' + '.join(parts)};")
    lines += [f"  [] s>={states} -> true;", "endmodule"]
    lines += [f'label "goal" = s={states};', f'label "bad" = s={states // 2};', f'label "end" = s>={states};']
    rewards = "".join(f"  s={state} : {draw.choice([0, 0, 1, 2.5])};\n" for state in range(states))
    return "\n".join([*lines, f"rewards\n{rewards}endrewards", ""])


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[list[str], dict[str, object]]]:
    """What a process without numba answers to many questions."""
    folder, draw = tmp_path_factory.mktemp("small"), random.Random(3)
    questions = []
    for number in range(repeats(6)):
        path = folder / f"{number}.prism"
        path.write_text(random_model(draw, draw.randint(2, 12)), encoding="utf-8")
        questions += [["check", str(path), "--prop", each, "--json"] for each in PROPERTIES]
    asked = folder / "questions.txt"
    asked.write_text("".join("\t".join(each) + "\n" for each in questions), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT + LIGHT, str(asked)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return list(zip(questions, found, strict=True))


def test_bounds_are_those_of_compiled_kernels(
    answers: list[tuple[list[str], dict[str, object]]],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(jit, "ALLOWANCE", 0)
    finite = 0
    for question, found in answers:
        assert run(question) == 0
        expected = json.loads(capsys.readouterr().out)
        assert found["status"] == expected["status"] == "certified"
        low, high = (float(str(found[side])) for side in ("lower", "upper"))
        other_low, other_high = (float(str(expected[side])) for side in ("lower", "upper"))
        assert low <= other_high and other_low <= high, (question, found, expected)
        if high < float("inf"):
            finite += 1
            assert high - low <= 1e-6 * max(abs(high), 1e-300) or high == low
    assert finite > 5 * repeats(6)


def random_observed(draw: random.Random) -> str:
    """Some states that look alike, loops that earn nothing, one goal."""
    states, looks = draw.randint(3, 5), draw.randint(1, 2)
    seen = [0, *(draw.randrange(looks) for _ in range(states - 1)), looks]
    lines = ["pomdp", "observables o endobservables", "module m"]
    lines.append(f"  s : [0..{states}] init 0; o : [0..{looks}] init 0;")
    choices = [draw.randint(1, 2) for _ in range(looks)]
    for state in range(states):
        for choice in range(choices[seen[state]]):
            targets = list(dict.fromkeys([*draw.sample(range(states + 1), k=2), state]))
            weights = [draw.randint(1, 5) for _ in targets]
            parts = (
                f"{w}/{sum(weights)} : (s'={t}) & (o'={seen[t]})"
                for w, t in zip(weights, targets, strict=True)
            )
            lines.append(f"  [a{choice}] s={state} -> {' + '.join(parts)};")
    rewards = "".join(f"  s={state} : {draw.choice([0, 0, 1, 2.5])};\n" for state in range(states))
    lines += [f"  [e] s={states} -> true;", "endmodule", f'label "goal" = s={states};', "rewards", rewards]
    return "\n".join([*lines, "endrewards", ""])


@pytest.mark.parametrize("seed", range(4))
def test_kernels_and_their_text_give_the_same_answer(
    seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compiled or interpreted: bounds, verdict and certificates, whether or not the state is seen."""
    draw, model = random.Random(seed), tmp_path / "m.prism"
    whole = [random_model(draw, draw.randint(2, 8)), 'Rmin=? [ F "end" ]']
    for text, property in (
        whole,
        [random_observed(draw), ('Rmin=? [ F "goal" ]', 'Pmax=? [ F<=3 "goal" ]')[seed % 2]],
    ):
        model.write_text(text, encoding="utf-8")
        answers = []
        for number, is_compiled in enumerate((True, False)):
            monkeypatch.setattr(jit, "ALLOWANCE", 0)
            if not is_compiled:
                monkeypatch.setattr(jit.Kernel, "__call__", _interpret)
            proof = str(tmp_path / f"{number}.cert")
            asked = ["check", str(model), "--prop", property, "--precision", "1e-2", "--json", "--overwrite"]
            code = run([*asked, "--certificate", proof])
            answers.append((code, json.loads(capsys.readouterr().out)))
            monkeypatch.undo()
            assert code != 0 or run(["verify", proof]) == 0
            capsys.readouterr()
        (code, first), (again, second) = answers
        assert code == again and first["verdict"] == second["verdict"]
        for end in ("lower", "upper"):
            assert float(first[end]) == pytest.approx(float(second[end]), rel=1e-12, abs=1e-14)


def _interpret(kernel: jit.Kernel, *arguments: object) -> object:
    with np.errstate(all="ignore"):
        return kernel.function(*arguments)


def test_certificates_of_small_models_stand(tmp_path: Path) -> None:
    model = tmp_path / "m.prism"
    model.write_text(random_model(random.Random(8), 10), encoding="utf-8")
    proofs = {property: str(tmp_path / f"{number}.cert") for number, property in enumerate(PROPERTIES[:6])}
    asked = tmp_path / "questions.txt"
    questions = (["check", str(model), "--prop", each, "--certificate", at] for each, at in proofs.items())
    asked.write_text("".join("\t".join(each) + "\n" for each in questions), encoding="utf-8")
    subprocess.run([sys.executable, "-c", SCRIPT, str(asked)], timeout=300, check=True)
    for property, proof in proofs.items():
        assert run(["verify", proof, "--model", str(model), "--prop", property]) == 0
