"""One verdict on every surface: the first word of the terminal, the page, JSON, Python and the exit code.

Every case is a command, and where there is one the same question in Python. Whatever a surface says of a
result, it says what the others say.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tightrope as tr
from tightrope.cli.app import run
from tightrope.verdict import Assessment, Assumed, AssumptionStatus, Word

pytestmark = pytest.mark.usefixtures("built_once")

COIN = """mdp
const double p;
module coin
  s : [0..2] init 0;
  [toss] s=0 -> p : (s'=1) + 1-p : (s'=2);
  [half] s=0 -> p/2 : (s'=1) + 1-p/2 : (s'=2);
  [rest] s>0 -> true;
endmodule
label "won" = s=1;
"""
LOOP = """mdp
const double p;
module loop
  s : [0..2] init 0;
  [toss] s=0 -> p : (s'=1) + 1-p : (s'=2);
  [back] s>0 -> (s'=0);
endmodule
label "won" = s=1;
"""
PLAIN = """dtmc
module walk
  x : [0..400] init 1;
  [] x>0 & x<400 -> 1/2 : (x'=x+1) + 1/2 : (x'=x-1);
  [] x=0 | x=400 -> true;
endmodule
"""
RATES = """ctmc
const double lam;
module unit
  s : [0..1] init 0;
  [] s=0 -> lam : (s'=1);
  [] s=1 -> 2 : (s'=0);
endmodule
label "down" = s=1;
"""
RANGE = ["--param", "p=0.1:0.9"]
WON = ["--prop", 'Pmax=? [ F "won" ]']


def tosses(heads: int, tails: int, action: str = "toss", first: int = 0) -> list[str]:
    """Rows of episodes of one toss each, marked as over."""
    outcomes = [1] * heads + [2] * tails
    order = np.random.default_rng(5).permutation(len(outcomes))
    return [f"{first + n},{n + first},0,{action},{outcomes[i]},1" for n, i in enumerate(order.tolist())]


HEAD = "episode,time,s,action,s_next,done"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("verdicts")
    for name, text in (("coin", COIN), ("loop", LOOP), ("plain", PLAIN), ("rates", RATES)):
        (place / f"{name}.prism").write_text(text)
    good = [HEAD, *tosses(240, 160)]
    (place / "good.csv").write_text("\n".join(good) + "\n")
    bad = [*tosses(60, 140), *tosses(160, 40, "half", 200)]
    (place / "bad.csv").write_text("\n".join([HEAD, *bad]) + "\n")
    (place / "outside.csv").write_text("\n".join([*good, "900,900,1,rest,2,1"]) + "\n")
    blind = [",".join(row.split(",")[2:5]) for row in good]
    (place / "blind.csv").write_text("\n".join(blind) + "\n")
    walks = ["episode,step,s,action,s_next"]
    for episode in range(60):
        state = 0
        for step in range(4):
            after = int(np.random.default_rng([episode, step]).choice([1, 2])) if state == 0 else 0
            walks.append(f"{episode},{step},{state},{'toss' if state == 0 else 'back'},{after}")
            state = after
    (place / "loop.csv").write_text("\n".join(walks) + "\n")
    rows = "".join(f"{episode},{episode},0,toss\n" for episode in range(6))
    (place / "none.csv").write_text("episode,time,s,action\n" + rows)
    return place


@pytest.fixture(autouse=True)
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(folder)
    yield


def learn(
    *words: str, model: str = "coin.prism", data: str = "good.csv", prop: str = 'Pmax=? [ F "won" ]'
) -> list[str]:
    return ["learn", model, *RANGE, "--prop", prop, "--delta", "0.01", "--data", data, *words]


def problem() -> tr.Problem:
    model = tr.load("coin.prism", params={"p": (0.1, 0.9)})
    assert isinstance(model, tr.ParametricMDP)
    return model.problem(WON[1])


@dataclass(frozen=True)
class Case:
    """A command, the word that all surfaces must say, and how Python asks the same."""

    word: Word
    command: list[str]
    python: Callable[[], Assessment] | None = None
    doubted: tuple[str, ...] = ()
    """Names of assumptions that are not kept."""

    report: bool = False


P, N, C, L = Word.PROVED, Word.NOMINAL, Word.CONTRADICTED, Word.LIMIT
TIED = ["--sets", "tied", "--interval", "clopper-pearson"]
CASES = {
    "learn, proved": Case(
        P, learn(), lambda: tr.learn(problem(), "good.csv", delta=0.01).verdict, report=True
    ),
    "learn, fixed-design intervals of adaptive data": Case(
        N,
        learn(*TIED, "--design", "adaptive"),
        doubted=("sampling",),
        report=True,
    ),
    "learn, the published ellipsoid": Case(
        N, learn("--ellipsoid", "paper", "--sets", "expression"), doubted=("sampling",), report=True
    ),
    "learn, rows that were dropped": Case(
        N,
        learn("--skip-invalid", data="dropped.csv"),
        lambda: (
            tr.learn(
                problem(), tr.read_data("dropped.csv", problem().model, skip_invalid=True), delta=0.01
            ).verdict
        ),
        doubted=("complete data",),
        report=True,
    ),
    "learn, an empty region": Case(
        C,
        learn("--region", "polytope", data="bad.csv"),
        lambda: tr.learn(problem(), "bad.csv", delta=0.01, region="polytope").verdict,
        report=True,
    ),
    "learn, no fallback": Case(C, learn("--region", "polytope", "--no-fallback", data="bad.csv")),
    "learn, the test of the model": Case(C, learn("--region", "likelihood", data="bad.csv"), report=True),
    "learn, an impossible transition": Case(
        C, learn("--skip-invalid", data="outside.csv"), doubted=("complete data",), report=True
    ),
    "learn, a time limit": Case(
        L, ["learn", "bench:engagement(3)", "--data", "engaged.parquet", *TIED[:2], "--time-limit", "1e-9"]
    ),
    "learn, ends that nobody knows": Case(
        N,
        learn(model="loop.prism", data="loop.csv", prop='Pmax=? [ F<=3 "won" ]'),
        doubted=("ends of episodes",),
        report=True,
    ),
    "learn, ends that are stated": Case(
        P, learn("--ends", "complete", model="loop.prism", data="loop.csv", prop='Pmax=? [ F<=3 "won" ]')
    ),
    "learn, an order that nobody knows": Case(
        N,
        learn("--region", "likelihood", data="blind.csv"),
        lambda: tr.learn(problem(), "blind.csv", delta=0.01, region="likelihood").verdict,
        doubted=("order in time",),
        report=True,
    ),
    "learn, a region that needs no order": Case(P, learn(data="blind.csv")),
    "learn, a long-run average": Case(
        P, learn("--ends", "complete", model="loop.prism", data="loop.csv", prop='Smax=? [ "won" ]')
    ),
    "learn, a temporal formula": Case(P, learn(prop='Pmax=? [ F G "won" ]')),
    "check, a plain model": Case(
        P,
        ["check", "plain.prism", "--prop", "P=? [ F x=400 ]"],
        lambda: tr.solve(tr.load("plain.prism"), "P=? [ F x=400 ]").verdict,
    ),
    "check, a limit": Case(
        L,
        ["check", "plain.prism", "--prop", "P=? [ F x=400 ]", "--precision", "1e-17"],
        lambda: tr.solve(tr.load("plain.prism"), "P=? [ F x=400 ]", precision=1e-17).verdict,
    ),
    "check, a composed property": Case(
        P,
        ["check", "plain.prism", "--prop", 'P>=0.001 [ F x=400 ] & "init"'],
        lambda: tr.solve(tr.load("plain.prism"), 'P>=0.001 [ F x=400 ] & "init"').verdict,
    ),
    "check, a domain": Case(P, ["check", "coin.prism", *RANGE, *WON, "--sets", "rectangular"]),
    "online": Case(
        P, ["online", "coin.prism", *RANGE, *WON, "--at", "p=0.6", "--episodes", "30", "--sets", "tied"]
    ),
    "online, fixed-design intervals": Case(
        N,
        ["online", "coin.prism", *RANGE, *WON, "--at", "p=0.6", "--episodes", "30", *TIED],
        doubted=("sampling",),
    ),
    "plan": Case(
        P,
        [
            "plan",
            "coin.prism",
            *RANGE,
            *WON,
            "--delta",
            "0.01",
            "--data",
            "good.csv",
            "--gap",
            "0.05",
            "--sets",
            "rectangular",
        ],
        lambda: tr.plan(problem(), "good.csv", delta=0.01, gap=0.05, sets="rectangular").verdict,
    ),
    "plan, refuted": Case(
        C, ["plan", "coin.prism", "--param", "p=0.1:0.12", *WON, "--data", "good.csv", "--gap", "0.05"]
    ),
    "watch": Case(P, ["watch", "coin.prism", *RANGE, "--data", "good.csv"]),
    "watch, an alarm": Case(C, ["watch", "coin.prism", *RANGE, "--data", "bad.csv"]),
    "watch, an order that nobody knows": Case(
        N, ["watch", "coin.prism", *RANGE, "--data", "blind.csv"], doubted=("order in time",)
    ),
    "watch, nothing read": Case(
        L, ["watch", "coin.prism", *RANGE, "--data", "none.csv"], doubted=("ends of episodes",)
    ),
}


@pytest.fixture(scope="module", autouse=True)
def more_data(folder: Path) -> None:
    """A log with a row that cannot be read, and one of a larger model."""
    rows = (folder / "good.csv").read_text().splitlines()
    (folder / "dropped.csv").write_text("\n".join([*rows, "900,900,0,toss,?,1"]) + "\n")
    engaged = str(folder / "engaged.parquet")
    assert run(["sample", "bench:engagement(3)", "--episodes", "50", "--seed", "1", "-o", engaged]) == 0


@pytest.mark.thinned(13)
@pytest.mark.usefixtures("empty_pictures")
@pytest.mark.parametrize("name", CASES)
def test_every_surface_says_the_same(name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    case = CASES[name]
    code = 0 if case.word is Word.PROVED else 1
    assert run(case.command) == code, capsys.readouterr()
    said = capsys.readouterr()
    first = "NO ALARM" if case.command[0] == "watch" and case.word is Word.PROVED else case.word.name
    assert said.out.startswith(f"{first}: "), said.out[:200]
    assert run([*case.command, "--json"]) == code
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert found["verdict"] == case.word.value
    if case.command[0] == "check":
        assert (found["status"] == "certified") == (case.word is Word.PROVED)
    assert bool(found["why"]) == (case.word is not Word.PROVED)
    kept = {one["name"]: one["kept"] for one in found["assumptions"]}
    assert tuple(name for name, how in kept.items() if how in ("no", "unknown")) == case.doubted
    assert all(set(one) == {"name", "kept", "why"} and one["why"] for one in found["assumptions"])
    if case.doubted or case.word is Word.CONTRADICTED:
        assert "confidence" not in said.out.splitlines()[0]
    if case.python is not None:
        verdict = case.python()
        assert verdict.word is case.word and verdict.exit_code == code
    if case.word is Word.NOMINAL:
        assert run([*case.command, "--accept-nominal"]) == 0
        assert capsys.readouterr().out.startswith("NOMINAL: ")
    if case.report:
        out = tmp_path / "out"
        assert run([*case.command, "-o", str(out)]) == code
        saved = tr.load_result(out)
        assert saved.verdict.word is case.word and saved.headline() == said.out.splitlines()[0]
        assert tuple(one.name for one in saved.assumptions if not one.holds) == case.doubted
        page = unescape(saved.report(tmp_path / "page.html").read_text())
        assert_page(page, case)


def assert_page(page: str, case: Case) -> None:
    """Title and heading begin with the word, and no confidence is claimed where there is none."""
    title = re.search(r"<title>(.*?)</title>", page)
    heading, answer = re.search(r"<h1>(.*?)</h1>", page), re.search(r"<b>Answer. </b>(.*?)</p>", page, re.S)
    assert title is not None and heading is not None and answer is not None
    for text in (title[1], heading[1]):
        assert text.startswith(f"{case.word.name}: "), text
    for text in (title[1], heading[1], answer[1]):
        assert case.word is Word.PROVED or "with confidence" not in text.lower()
    assert ("Nothing is guaranteed" in answer[1]) == (case.word is Word.NOMINAL)


def test_rates_say_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    model = tr.load("rates.prism", params={"lam": (0.1, 9)})
    log = tr.simulate_times(model.instantiate(lam=2), 40, seed=1, time=50)
    result = tr.learn(tr.Problem(model, 'S=? [ "down" ]'), log, delta=0.05)
    assert result.verdict.word is Word.PROVED and result.headline().startswith(
        "PROVED: long-run probability in ["
    )
    (right,) = (one for one in result.verdict.assumptions if one.name == "model")
    assert right.kept is AssumptionStatus.STATED
    assert "; tested: not refuted: e-value 10^" in right.why and result.fit is not None
    narrow = tr.load("rates.prism", params={"lam": (8, 9)})
    refuted = tr.learn(tr.Problem(narrow, 'S=? [ "down" ]'), log, delta=0.05)
    assert refuted.verdict.word is Word.CONTRADICTED and refuted.value is None


def test_a_monitor_says_what_it_has_seen() -> None:
    model = problem().model
    assert isinstance(model, tr.ParametricMDP)
    monitor = tr.Monitor(model, alpha=0.01)
    assert monitor.verdict.word is Word.LIMIT and "nothing was tested" in monitor.verdict.why
    monitor.update([[((0,), "toss", (1,))], [((0,), "toss", (2,))]])
    assert monitor.verdict.word is Word.PROVED
    monitor.update([[((0,), "toss", (2,))], [((0,), "half", (1,))]] * 200)
    monitor.look()
    assert monitor.verdict.word is Word.CONTRADICTED


def test_the_worst_of_several_counts() -> None:
    ends = Assumed.unverified("ends", "nobody says")
    nominal, limit = Assessment.of([ends]), Assessment.of(limit="time is up")
    refuted = Assessment.of([ends], contradicted="no parameters fit")
    assert Assessment.worst([Assessment.of(), nominal]) == nominal
    assert Assessment.worst([nominal, limit]) == Assessment(Word.LIMIT, (ends,), "time is up")
    assert Assessment.worst([limit, refuted, nominal]).word is Word.CONTRADICTED
    assert limit.headline("at least 1", "confidence 0.9").startswith("LIMIT: at least 1, confidence 0.9")
    both = Assessment.of([ends], limit="time is up")
    assert "confidence" not in both.headline("at least 1", "confidence 0.9")
    assert both.reasons == ("time is up", "ends unverified: nobody says")


def test_a_file_is_not_trusted_further_than_its_assumptions(tmp_path: Path) -> None:
    result = tr.learn(problem(), "good.csv", delta=0.01)
    out = result.save(tmp_path / "out")
    content: dict[str, Any] = json.loads((out / "result.json").read_text())
    content["results"][0]["assumptions"][0]["kept"] = "no"
    (out / "result.json").write_text(json.dumps(content))
    saved = tr.load_result(out, model=problem().model)
    assert saved.verdict.word is Word.NOMINAL and saved.headline().startswith("NOMINAL: ")


def test_no_certificate_is_made_of_what_is_not_known(capsys: pytest.CaptureFixture[str]) -> None:
    asked = learn("--sets", "expression", model="loop.prism", data="loop.csv", prop='Pmax=? [ F<=3 "won" ]')
    assert run([*asked, "--certificate", "loop.cert"]) == 2
    assert "the result is nominal (ends of episodes: 60 of 60" in capsys.readouterr().err
    assert not Path("loop.cert").exists()
    assert run([*asked, "--certificate", "loop.cert", "--ends", "complete"]) == 0
    capsys.readouterr()
    assert run(["verify", "loop.cert", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["about"]["stated"].startswith("ends of episodes: ")
