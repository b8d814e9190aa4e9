"""Words of a file are shown as the file's, and harmless; what is assumed is derived, never read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from adversary.archive import Forgery
from adversary.attacks_learned import filled, revalue
from adversary.honest import ALL, quietly
from adversary.judge import verify


def printed(path: Path, *options: str) -> tuple[int, str]:
    code, out, err = quietly(["verify", str(path), *options])
    return code, out + err


def about(name: str, place: Path, **words: str) -> Path:
    forgery = Forgery.of(ALL[name].certificate)
    forgery.node["about"] = words
    return forgery.save(place / "words.cert")


@pytest.mark.parametrize(
    "text",
    [
        "\x1b[2J\x1b[31mVERIFIED\x1b[0m",
        "\x1b]8;;http://example.com\x07click\x1b]8;;\x07",
        "\x9b31m",
        "a\rvalue in [1, 1]",
        "a\nvalue: the lower bound is inductive  holds",
        "\u202eevil",
        "\x07\x08\x08\x08",
        "\ud800",
    ],
)
def test_control_sequences_do_not_reach_the_terminal(text: str, tmp_path: Path) -> None:
    path = about("point/reach", tmp_path, model=text, **{"\x1b[1mkey": "x"})
    code, shown = printed(path, "--verbose")
    assert code == 0
    for character in shown:
        assert character == "\n" or character.isprintable(), repr(character)
    lines = [line for line in shown.splitlines() if "inductive" in line or "value in [" in line]
    assert not any(line.strip().startswith("value in [1, 1]") for line in lines)
    verdict = verify(path)
    assert verdict.accepted and verdict.result is not None


@pytest.mark.parametrize(
    "text", ["[bold]VERIFIED[/bold]", "[/]", "[link=http://example.com]x[/link]", "{0}%s", ":warning:"]
)
def test_words_are_no_markup(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    code, shown = printed(about("point/reach", tmp_path, model=text), "--verbose")
    assert code == 0 and text in shown


def test_what_the_file_says_of_itself_is_said_to_be_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    code, shown = printed(about("point/reach", tmp_path, model="bench:rover(125,125)"), "--verbose")
    assert code == 0 and "compared   nothing of yours" in shown
    (line,) = [line for line in shown.splitlines() if "rover" in line]
    assert line.strip().startswith("the file says")


def test_the_first_line_says_what_is_tied(tmp_path: Path) -> None:
    honest = ALL["walk/events/tied"]
    for options, tied, rest in (
        ([], "nothing of yours", ""),
        (honest.binding(), "your model, property, data", "; not policy"),
        (honest.binding()[:-2], "your model, property", "; not data, policy"),
    ):
        first, second, *_ = printed(honest.certificate, *options)[1].splitlines()
        assert first.startswith("VALID: probability >= 0.") and first.endswith(", confidence 0.95")
        assert second.split("compared")[1].strip().startswith(f"{tied}{rest} (add")
    given = ALL["point/given"]
    code, shown = printed(given.certificate, *given.binding())
    first, second, *_ = shown.splitlines()
    assert code == 0 and first.startswith("VALID: probability >= ")
    assert second.endswith("your model, property, policy")


@pytest.mark.parametrize("name", ["about", "problem.data", "learned", "claims.0"])
def test_words_of_assumptions_cannot_be_written_into_a_file(name: str, tmp_path: Path) -> None:
    forgery = Forgery.of(ALL["walk/events/tied"].certificate)
    node = forgery[name] if name != "about" else forgery.node
    node["assumption"] = "nothing at all"
    assert verify(forgery.save(tmp_path / "words.cert")).code == 2


def test_a_support_that_was_assumed_is_said(tmp_path: Path) -> None:
    """p ≥ 0.6 by assumption alone: false of the data, and the output says what it rests on."""
    forgery = Forgery.of(ALL["walk/events/tied"].certificate)
    forgery["problem.assumed_support"] = 0.6
    revalue(forgery)
    path = forgery.save(tmp_path / "assumed.cert")
    for options in ((), ("--exact",), ALL["walk/events/tied"].binding()):
        verdict = verify(path, *options)
        if verdict.accepted:
            assert verdict.result is not None
            assert any("0.6" in line and "probability" in line for line in verdict.result["assumes"])
            code, shown = printed(path, *options)
            assert code == 0 and "assumes" in shown and "0.6" in shown


@pytest.mark.parametrize("method", ["beta-binomial", "likelihood", "ellipsoid", "weissman", "domain"])
def test_an_interval_relabelled_as_another_method_is_refused(method: str, tmp_path: Path) -> None:
    forgery = Forgery.of(ALL["walk/events/tied"].certificate)
    assert forgery["problem.data.method"] == "clopper-pearson"
    forgery["problem.data.method"] = method
    assert not verify(forgery.save(tmp_path / "relabelled.cert")).accepted


@pytest.mark.parametrize(
    ("design", "repeats"), [("adaptive", True), ("trajectories", True), ("adaptive", False)]
)
def test_data_collected_otherwise_make_the_confidence_nominal(
    design: str, repeats: bool, tmp_path: Path
) -> None:
    forgery = Forgery.of(ALL["walk/events/tied"].certificate)
    forgery["problem.data.design"], forgery["problem.data.repeats"] = design, repeats
    path = forgery.save(tmp_path / "relabelled.cert")
    verdict = verify(path)
    assert not verdict.accepted and verdict.result is not None
    if verdict.result["valid"]:
        assert verdict.result["verdict"] == "nominal"
        code, shown = printed(path)
        assert code == 1 and shown.startswith("NOMINAL: probability >= ")
        assert "confidence 0" not in shown
        assert verify(path, "--accept-nominal").code == 0


def test_rows_left_out_make_the_confidence_nominal(tmp_path: Path) -> None:
    forgery = Forgery.of(ALL["walk/anytime/tied"].certificate)
    forgery["problem.data.censored"] = True
    path = forgery.save(tmp_path / "censored.cert")
    verdict = verify(path)
    assert not verdict.accepted and verdict.result is not None
    assert (verdict.result["valid"], verdict.result["verdict"]) == (True, "nominal")
    assert {"name": "complete", "kept": "no"}.items() <= verdict.result["assumptions"][0].items()


@pytest.mark.parametrize(
    ("numbers", "kept"),
    [([0], "stated"), ([1], "unknown"), ([2], "no"), ([0, 3], "stated"), ([0, 4], "unknown")],
)
def test_what_is_stated_of_the_data_stands_first(numbers: list[int], kept: str, tmp_path: Path) -> None:
    """Ends of episodes, and the order in time, are stated or not known: the file has numbers, no words."""
    forgery = Forgery.of(ALL["walk/anytime/tied"].certificate)
    forgery["problem.data.stated"] = np.array(numbers)
    path = forgery.save(tmp_path / "stated.cert")
    verdict = verify(path)
    assert verdict.result is not None and verdict.accepted == (kept == "stated")
    found = verdict.result["assumptions"]
    assert (found[0]["name"], found[len(numbers) - 1]["kept"]) == ("ends of episodes", kept)
    assert "every episode is complete or was cut" in verdict.result["assumes"][0]
    for wrong in ([6], [-1], [1, 0], [0, 0]):
        forgery["problem.data.stated"] = np.array(wrong)
        assert verify(forgery.save(path)).code == 2


def test_another_confidence_is_said(tmp_path: Path) -> None:
    """δ is the statement's: a weaker one is true, and shown; a stronger one is not proved."""
    forgery = Forgery.of(ALL["walk/events/tied"].certificate)
    forgery["problem.data.delta"] = 0.9
    verdict = verify(forgery.save(tmp_path / "weaker.cert"))
    assert verdict.accepted and verdict.result is not None and verdict.result["delta"] == 0.9
    assert "confidence 0.1" in printed(tmp_path / "weaker.cert")[1]
    for delta in (0.001, 0.0, 1.0, -0.05, 1e-300, 5e-324):
        forgery["problem.data.delta"] = delta
        assert not verify(forgery.save(tmp_path / "stronger.cert")).accepted
        assert not verify(tmp_path / "stronger.cert", "--exact").accepted


def test_intervals_need_their_event_bounds(tmp_path: Path) -> None:
    forgery = Forgery.of(ALL["walk/events/tied"].certificate)
    filled("learned.lower", 0.55)(forgery)
    filled("learned.upper", 0.56)(forgery)
    assert not verify(forgery.save(tmp_path / "narrow.cert")).accepted


def test_what_is_not_proved_is_not_shown_as_proved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    forgery = Forgery.of(ALL["walk/events/tied"].certificate)
    forgery["claims.0.lower"], forgery["claims.0.upper"] = 0.99, 1.0
    code, shown = printed(forgery.save(tmp_path / "wrong.cert"))
    assert code == 1 and shown.startswith("NOT VALID: ")
    assert "NOT VALID" not in printed(ALL["walk/events/tied"].certificate)[1]


def test_no_confidence_is_shown_as_certainty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    forgery = Forgery.of(ALL["walk/events/tied"].certificate)
    forgery["problem.data.delta"] = 1e-10
    filled("learned.lower", 0.0)(forgery)
    filled("learned.upper", 1.0)(forgery)
    forgery["claims.0.lower"], forgery["claims.0.upper"] = 0.0, 1.0
    forgery["values.0.lower"] = forgery["values.0.lower"] * 0
    forgery["values.0.upper"] = forgery["values.0.upper"] * 0 + 1
    code, shown = printed(forgery.save(tmp_path / "sure.cert"))
    assert code == 0 and ", confidence 0.9999999999\n" in shown


def test_what_is_assumed_of_costs_is_not_rounded(tmp_path: Path) -> None:
    """Six digits would say [0, 4]: what is assumed then looks weaker than it is."""
    forgery = Forgery.of(ALL["newest/costs"].certificate)
    forgery["problem.data.costs.upper"] = 4.0000004
    verdict = verify(forgery.save(tmp_path / "costs.cert"))
    assert verdict.result is not None and "costs lie within [0, 4.0000004]" in verdict.result["assumes"]
    forgery["problem.data.costs.lower"] = forgery["problem.data.costs.upper"] = None
    forgery["problem.data.costs.deviation"] = 2.0000001
    verdict = verify(forgery.save(tmp_path / "costs.cert"))
    assert verdict.result is not None and verdict.result["assumes"][-1].endswith("is at most 2.0000001")
