"""What is missing from a log is never passed over: gaps, lost outcomes, dropped rows and aborted episodes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tightrope.cli.app import run
from tightrope.data.design import SamplingDesign, SamplingKind
from tightrope.data.reading import Reading, read_data
from tightrope.errors import InputError
from tightrope.model.builder import build_from_function
from tightrope.model.parameters import Parameters
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.regions.ellipsoid import ELLIPSOID
from tightrope.regions.likelihood import LIKELIHOOD
from tightrope.regions.region import RegionTask
from tightrope.statistics.estimates import event_intervals, transition_intervals
from tightrope.verdict import AssumptionStatus

COIN = """mdp
const double p;
module coin
  s : [0..2] init 0;
  [toss] s=0 -> p:(s'=1) + 1-p:(s'=2);
  [stay] s>0 -> true;
endmodule
label "heads" = s=1;
"""
PROP = 'P=? [ F "heads" ]'


def walk() -> ParametricMDP:
    """0 … 6; both ends are left by nothing, and what is done at 3 is certain."""
    parameters = Parameters.box(p=("0.2", "0.8"))
    (p,) = parameters.symbols()

    def successors(x: int) -> dict[str, dict[int, object]]:
        if x in (0, 6):
            return {"stay": {x: 1}}
        if x == 3:
            return {"walk": {4: p, 2: 1 - p}, "rest": {3: 1}}
        return {"walk": {x + 1: p, x - 1: 1 - p}}

    model = build_from_function(3, successors, parameters)  # type: ignore[arg-type]
    assert isinstance(model, ParametricMDP)
    return model


@pytest.fixture(scope="module")
def model() -> ParametricMDP:
    return walk()


def read(tmp_path: Path, model: ParametricMDP, text: str, **words: object) -> Reading:
    path = tmp_path / "log.csv"
    path.write_text(text)
    return read_data(path, model, **words)  # type: ignore[arg-type]


def tossed(path: Path, seed: int, rows: int = 400) -> None:
    """A fair coin, half of whose tails cannot be read."""
    random = np.random.default_rng(seed)
    heads, lost = random.random(rows) < 0.5, random.random(rows) < 0.5
    lines = [
        "0,toss,1" if h else "0,toss,2" if not gone else "0,toss,?"
        for h, gone in zip(heads, lost, strict=True)
    ]
    path.write_text("s,action,s_next\n" + "\n".join(lines) + "\n")


def test_half_of_the_tails_unreadable_claims_no_coverage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The interval misses the truth, and everything that shows it says that it may."""
    (tmp_path / "coin.prism").write_text(COIN)
    tossed(tmp_path / "log.csv", 1)
    words = [
        str(tmp_path / "coin.prism"),
        "--data",
        str(tmp_path / "log.csv"),
        "--prop",
        PROP,
        "--delta",
        "0.05",
    ]
    assert run(["learn", *words, "--json"]) == 2
    assert "column 's_next' holds '?', which is not a number" in capsys.readouterr().err
    for region in ("likelihood", "polytope", "ellipsoid"):
        assert run(["learn", *words, "--skip-invalid", "--json", "--region", region]) == 1
        result = json.loads(capsys.readouterr().out)
        assert result["ledger"]["holds"] is False and result["verdict"] == "nominal"
        assert result["ledger"]["censored"] == result["data"]["censored"] != []
        assert (
            "the confidence level is nominal"
            in result["ledger"]["lines"][-2:][0] + result["ledger"]["lines"][-1]
        )
    assert result["robust_policy"]["lower"] > 0.5
    proof = tmp_path / "proof.npz"
    assert run(["learn", *words, "--skip-invalid", "--certificate", str(proof)]) == 2
    assert "there is nothing to certify, because outcomes are missing" in capsys.readouterr().err
    assert not proof.exists()
    assert run(["learn", *words, "--skip-invalid"]) == 1
    shown = capsys.readouterr()
    assert shown.out.startswith("NOMINAL: ") and "confidence" not in shown.out
    assert "were dropped" in shown.out and shown.err == ""


def test_a_comparison_of_censored_data_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "coin.prism").write_text(COIN)
    tossed(tmp_path / "log.csv", 2)
    words = [str(tmp_path / "coin.prism"), "--data", str(tmp_path / "log.csv"), "--prop", PROP]
    assert run(["learn", *words, "--skip-invalid", "--sets", "all"]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert said.startswith("NOMINAL: ") and "reason " in said and "dropped" in said


def test_no_method_holds_for_censored_data(tmp_path: Path, model: ParametricMDP) -> None:
    text = "episode,step,state,action,next_state\n0,0,3,walk,4\n0,1,4,walk,5\n0,2,5,walk,?\n1,0,3,walk,2\n"
    counts = read(tmp_path, model, text, skip_invalid=True, design="generative").counts
    assert counts.design.kind is SamplingKind.GENERATIVE_FIXED
    assert counts.design.censored == ("1 row was dropped (1 not a number)",)
    for ledger in (
        event_intervals(model, counts, 0.1).ledger,
        transition_intervals(model, counts, 0.1).ledger,
        ELLIPSOID.build(RegionTask(model, counts, 0.1)).ledger,
        LIKELIHOOD.build(RegionTask(model, counts, 0.1)).ledger,
    ):
        assert not ledger.holds
        assert "1 row was dropped" in " ".join(ledger.lines)


HEAD = "episode,step,state,action,next_state\n"


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        (HEAD + "0,0,3,walk,4\n0,1,4,walk,5\n", ()),
        (HEAD + "0,0,3,walk,4\n0,3,4,walk,5\n1,0,3,walk,4\n", ("2 steps are missing within episodes",)),
        (HEAD + "0,0,3,walk,4\n1,1,4,walk,5\n2,0,3,walk,2\n", ("1 episode begins late",)),
        (
            "episode,step,state,action\n0,0,3,walk\n0,1,4,walk\n1,0,3,rest\n1,1,3,rest\n2,0,3,walk\n2,1,4,\n",
            ("1 action has no outcome in the log",),
        ),
        (
            "episode,step,state,action,next_state,done\n0,0,3,walk,4,0\n1,0,3,walk,2,0\n1,1,2,walk,1,0\n"
            "2,0,3,walk,2,0\n2,1,2,walk,1,0\n2,2,1,walk,0,1\n",
            (),
        ),
        (
            "episode,step,state,action,next_state,done\n0,0,3,walk,4,0\n0,1,4,walk,5,0\n1,0,3,walk,2,0\n"
            "1,1,2,walk,1,0\n2,0,3,walk,2,0\n2,1,2,walk,1,0\n",
            (),
        ),
        (
            "episode,state,action,next_state,terminated,truncated\n0,3,walk,4,0,1\n1,3,walk,2,0,0\n1,2,walk,1,0,1\n"
            "2,3,walk,2,0,0\n",
            (),
        ),
        (
            "episode,state,action,next_state,done\n0,3,walk,2,0\n0,2,walk,1,0\n0,1,walk,0,0\n1,3,walk,4,1\n",
            (),
        ),
    ],
    ids=[
        "complete",
        "gap",
        "late start",
        "no outcome, unless it is certain or nothing was done",
        "no word of the end",
        "a cap",
        "truncated",
        "stops where nothing leaves",
    ],
)
def test_what_is_missing_and_what_is_not(
    tmp_path: Path, model: ParametricMDP, text: str, missing: tuple[str, ...]
) -> None:
    assert read(tmp_path, model, text).counts.design.censored == missing


def test_no_transition_leads_across_a_gap(tmp_path: Path, model: ParametricMDP) -> None:
    reading = read(
        tmp_path, model, "episode,step,state,action\n0,0,3,walk\n0,1,4,walk\n0,3,4,walk\n0,4,5,walk\n0,5,6,\n"
    )
    assert reading.counts.steps == 3
    assert reading.counts.design.censored == (
        "1 step is missing within episodes",
        "1 action has no outcome in the log",
    )


def test_nothing_left_is_an_error(
    tmp_path: Path, model: ParametricMDP, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "coin.prism").write_text(COIN)
    (tmp_path / "log.csv").write_text("s,action,s_next\n0,toss,7\n0,flip,1\n")
    words = [str(tmp_path / "coin.prism"), "--data", str(tmp_path / "log.csv"), "--prop", PROP]
    assert run(["learn", *words, "--skip-invalid"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "not one of the 2 rows can be counted (1 unknown next state, 1 disabled action)" in said.err


def test_planned_episodes_are_kept_and_missed(tmp_path: Path, model: ParametricMDP) -> None:
    text = HEAD + "0,0,3,walk,4\n1,0,3,walk,2\n"
    design = read(tmp_path, model, text, design="fixed", planned_episodes=2).counts.design
    assert (design.kind, design.episodes, design.planned) == (SamplingKind.TRAJECTORIES, 2, 2)
    assert design.by_episodes and design.ends.kept is AssumptionStatus.UNKNOWN and not design.order.holds
    assert SamplingDesign.from_json(design.to_json()) == design
    design = read(tmp_path, model, text, planned_episodes=5).counts.design
    assert design.censored == ("5 episodes were planned, the log has 2",)
    assert SamplingDesign.from_json(design.to_json()) == design
    design = read(tmp_path, model, text, planned_episodes=1).counts.design
    assert (design.planned, design.censored) == (1, ())  # going on past a plan leaves nothing out
    design = read(tmp_path, model, text, design="fixed", planned_episodes=1).counts.design
    assert design.censored == ("1 episodes were planned, the log has 2",)
    with pytest.raises(InputError, match="'clever' is not a sampling design"):
        read(tmp_path, model, text, design="clever")
