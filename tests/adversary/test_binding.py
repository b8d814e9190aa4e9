"""A certificate about something else is not accepted for one's own model, property, data or policy."""

from __future__ import annotations

import gzip
import json
import warnings
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import tightrope as tr
from adversary.archive import Forgery
from adversary.honest import ALL, MACHINES, TIMED, Honest, quietly
from adversary.judge import verify
from tightrope.certify.certificate_file import as_file
from tightrope.continuous.discrete import embed
from tightrope.errors import CannotCertify, InputError
from tightrope.model.mdp import JOINT_BOUNDS, IntervalMDP
from tightrope_check.archive import load
from tightrope_check.checker import check

STATEMENT = {
    "problem.data.delta",
    "problem.data.method",
    "problem.data.shared_by",
    "problem.assumed_support",
}
"""What the certificate itself decides, and the output says."""

NAMES = (
    "point/reach",
    "interval/reach",
    "plain/reach",
    "point/cost",
    "parameter/reach",
    "point/temporal",
    "interval/average",
    "walk/events/tied",
    "spread/likelihood/coupled",
    "domain/coupled",
    "remembered/tied",
    "newest/costs",
    "walk/polytope/quotients",
    "newest/jumps",
)


def changed(value: object) -> object:
    """Another value of the same kind, as close as it gets."""
    if isinstance(value, np.ndarray):
        other = value.copy()
        flat = other.reshape(-1)
        if len(flat) == 0:
            return np.append(other, np.zeros(1, dtype=other.dtype))
        place = len(flat) // 2
        flat[place] = (
            not flat[place]
            if flat.dtype == bool
            else np.nextafter(flat[place], 0.5)
            if flat.dtype.kind == "f"
            else flat[place] + 1
        )
        return other
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, list):
        return (
            [*value[:-1], f"{value[-1]}0000000001/10000000000" if "/" not in value[-1] else "1/3"]
            if value
            else ["0"]
        )
    other = {"MAX": "MIN", "MIN": "MAX", "ANY": "MAX", "UNTIL": "NEXT", "REACH_REWARD": "TOTAL"}
    return other.get(str(value), 1)


@pytest.mark.thinned(5)
@pytest.mark.parametrize("name", NAMES)
def test_every_field_of_the_problem_is_compared(name: str, tmp_path: Path) -> None:
    honest = ALL[name]
    fields = Forgery.of(honest.certificate).fields()
    paths = [path for path in fields if path.startswith("problem.") and path not in STATEMENT]
    assert paths
    for path in paths:
        forgery = Forgery.of(honest.certificate)
        forgery[path] = changed(forgery[path])
        verdict = verify(forgery.save(tmp_path / "other.cert"), *honest.binding())
        assert not verdict.accepted, path
        if "about another" in verdict.err:
            assert verdict.code == 1 and path.split(".")[-1] in verdict.err, path


def binding_of(honest: Honest, **other: str) -> list[str]:
    """The options of another problem: some replaced."""
    options = honest.binding()
    for name, value in other.items():
        options[options.index(f"--{name}") + 1] = value
    return options


@pytest.mark.parametrize(
    ("name", "option", "value"),
    [
        ("point/reach", "prop", 'Pmin=? [ F "goal" ]'),
        ("point/reach", "prop", 'Pmax=? [ F "done" ]'),
        ("point/reach", "prop", 'Pmax=? [ F<=100 "goal" ]'),
        ("point/reach", "prop", 'Pmax=? [ G "goal" ]'),
        ("parameter/reach", "at", "p=0.5500000001"),
        ("interval/reach", "prop", 'Pmaxmax=? [ F "goal" ]'),
        ("point/discounted", "discount", "0.95"),
        ("point/temporal", "prop", 'Pmax=? [ (G F s=5) | (F ("goal" & (X s=4))) ]'),
        ("point/temporal", "prop", 'Pmin=? [ (G F s=5) | (F ("goal" & (X s=3))) ]'),
        ("interval/temporal", "prop", 'Pmaxmin=? [ (F G s=5) | (F ("goal" & (X s=3))) ]'),
        ("point/settles", "prop", "Pmin=? [ F (s=2 & (F s=4)) ]"),
        ("point/average", "prop", 'R{"toll"}max=? [ S ]'),
        ("point/share", "prop", "Smax=? [ s=4 ]"),
        ("walk/events/tied", "param", "p=0.2:0.9"),
        ("domain/coupled", "domain", "p=2*r, 0.1<=p<=0.5, 0.1<=q<=0.5, r<=0.45"),
    ],
)
def test_another_question_is_refused(name: str, option: str, value: str) -> None:
    honest = ALL[name]
    verdict = verify(honest.certificate, *binding_of(honest, **{option: value}))
    assert verdict.code == 1 and "about another" in verdict.err


def test_another_model_is_refused(tmp_path: Path) -> None:
    honest = ALL["point/reach"]
    other = tmp_path / "game.prism"
    other.write_text(honest.text.replace("3/4", "7/8").replace("1/4", "1/8"))
    verdict = verify(honest.certificate, *binding_of(honest, model=str(other)))
    assert verdict.code == 1 and "another model" in verdict.err


def test_other_data_are_refused(tmp_path: Path) -> None:
    honest = ALL["walk/likelihood/expression"]
    lines = (honest.folder() / "data.csv").read_text().splitlines()
    rows = [line.split(",") for line in lines[2:]]
    pair = next(
        i for i, (a, b) in enumerate(pairwise(rows)) if a[:3] == b[:3] and min(int(a[5]), int(b[5])) > 1
    )
    for row, more in ((rows[pair], 1), (rows[pair + 1], -1)):
        row[5] = str(int(row[5]) + more)
    lines[2:] = [",".join(row) for row in rows]
    other = tmp_path / "data.csv"
    other.write_text("\n".join(lines) + "\n")
    verdict = verify(honest.certificate, *binding_of(honest, data=str(other)))
    assert verdict.code == 1 and "other data" in verdict.err


def test_batches_in_another_order_are_other_data(tmp_path: Path) -> None:
    honest = ALL["walk/likelihood/expression"]
    forgery = Forgery.of(honest.certificate)
    start, arrays = forgery["problem.data.batch_start"], ("batch_transition", "batch_count")
    parts = [[forgery[f"problem.data.{name}"][a:b] for a, b in pairwise(start)] for name in arrays]
    for name, part in zip(arrays, parts, strict=True):
        forgery[f"problem.data.{name}"] = np.concatenate(part[::-1])
    sizes = [len(one) for one in parts[0][::-1]]
    forgery["problem.data.batch_start"] = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    verdict = verify(forgery.save(tmp_path / "other.cert"), *honest.binding())
    assert verdict.code == 1 and "other data" in verdict.err


def test_another_policy_is_refused() -> None:
    given = ALL["point/given"]
    verdict = verify(given.certificate, *given.binding())
    assert verdict.accepted and verdict.result is not None and verdict.result["bound"]["policy"] is True
    mixed = ALL["point/mixed"]
    verdict = verify(given.certificate, *binding_of(given, policy=str(mixed.folder() / "policy.json")))
    assert verdict.code == 1 and "polic" in verdict.err


def test_a_policy_is_tied_to_the_claim_that_is_called_given(tmp_path: Path) -> None:
    """The user's policy stands in the file, as its robust one; what is called given is a better one."""
    honest = ALL["point/given"]
    certificate, other = (load(one.certificate).certificate for one in (honest, ALL["point/reach"]))
    (given,), (hints,) = certificate.claims, certificate.values
    (asked,), (best,) = other.claims, other.values
    better = replace(asked, name="given policy", policy="fixed", choice=best.witness)
    forged = replace(
        certificate,
        claims=(replace(given, name="robust policy"), better),
        values=(hints, replace(best, witness=None)),
    )
    assert check(forged).valid and better.lower > given.upper
    as_file(forged).save(tmp_path / "forged.cert")
    verdict = verify(tmp_path / "forged.cert", *honest.binding())
    assert verdict.code == 1 and "its given policy is another one" in verdict.err


LOOP = """ctmc
module m
 s:[0..1] init 0;
 [] s=0 -> 1:(s'=1);
 [] s=1 -> 9:(s'=0);
endmodule
rewards
 s=0 : 1;
endrewards
"""
"""Nine tenths of the time are spent in 0, and half of the jumps begin there."""


@pytest.mark.parametrize(
    "asked", ["S=? [ s=0 ]", "P=? [ F<=3 s=1 ]", "P=? [ X s=1 ]", "R=? [ C<=3 ]", "R=? [ S ]"]
)
def test_what_refers_to_time_is_not_tied_to_jumps(asked: str, tmp_path: Path) -> None:
    """A certificate about the jumps alone, offered for the chain in continuous time whose jumps they are."""
    (tmp_path / "loop.prism").write_text(LOOP)
    chain, path = tr.load(tmp_path / "loop.prism").instantiate(), tmp_path / "jumps.cert"
    jumps = embed(chain)
    tr.certify(jumps.problem(asked), path)
    assert tr.verify(path, model=jumps, property=asked).valid
    with pytest.raises(
        InputError, match="of a chain in continuous time, with certificates, only what does not"
    ):
        tr.verify(path, model=chain, property=asked)
    code, _, err = quietly(["verify", str(path), "--model", str(tmp_path / "loop.prism"), "--prop", asked])
    assert code == 2 and "only what does not refer to time" in err
    if "S" not in asked:
        with pytest.raises(
            InputError, match="the objective counts steps; a chain in continuous time has jumps"
        ):
            tr.verify(path, model=chain, property=jumps.problem(asked).objective)


def test_discounts_are_not_tied_to_jumps() -> None:
    honest = TIMED[1]
    for option in (("--discount", "0.9"), ("--terminal-reward", "spent")):
        verdict = verify(honest.certificate, *honest.binding(), *option)
        assert verdict.code == 2 and "cannot be used with continuous time" in verdict.err


def test_rates_elsewhere_are_another_chain() -> None:
    honest = TIMED[0]
    verdict = verify(honest.certificate, *binding_of(honest, at="k=1.2500001"))
    assert verdict.code == 1 and "another model" in verdict.err


@pytest.mark.parametrize("choice", [0, 1])
def test_a_policy_without_memory_is_not_one_of_the_product(choice: int, tmp_path: Path) -> None:
    """Choices of the product have other numbers than those of the model, and there are more of them."""
    policy = tmp_path / "policy.json"
    row = {"state": {"s": 0}, "choice": choice}
    policy.write_text(
        json.dumps({"format": "tightrope policy", "version": 1, "model": None, "policy": [row]})
    )
    honest = ALL["remembered/tied"]
    verdict = verify(honest.certificate, *honest.binding(), "--policy", str(policy))
    assert verdict.code == 1 and "policies with the memory of its automaton" in verdict.err


def test_a_log_is_not_counted_twice_by_another_name(tmp_path: Path) -> None:
    """A link is the same file: twice the data that there are would prove twice as much."""
    honest = ALL["walk/likelihood/expression"]
    data, model = honest.folder() / "data.csv", str(honest.folder() / honest.model)
    (tmp_path / "symbolic.csv").symlink_to(data)
    (tmp_path / "hard.csv").hardlink_to(data)
    for other in ("symbolic.csv", "hard.csv"):
        both = ("--data", str(data), "--data", str(tmp_path / other))
        code, _, err = quietly(["learn", model, *honest.options, *honest.method, *both])
        assert code == 2 and "its rows would count twice" in err
        verdict = verify(honest.certificate, "--model", model, *honest.options, *both)
        assert verdict.code == 2 and "its rows would count twice" in verdict.err


@pytest.mark.parametrize("name", ["walk/likelihood/expression", "walk/events/tied"])
def test_data_are_tied_by_what_they_say_not_by_their_bytes(name: str, tmp_path: Path) -> None:
    honest = ALL[name]
    whole = (honest.folder() / "data.csv").read_bytes()
    (tmp_path / "dos.csv").write_bytes(whole.replace(b"\n", b"\r\n"))
    (tmp_path / "packed.csv.gz").write_bytes(gzip.compress(whole))
    (tmp_path / "linked.csv").symlink_to(honest.folder() / "data.csv")
    for same in ("dos.csv", "packed.csv.gz", "linked.csv"):
        verdict = verify(honest.certificate, *binding_of(honest, data=str(tmp_path / same)))
        assert verdict.accepted and verdict.result is not None and verdict.result["bound"]["data"] is True, (
            same
        )


def test_data_that_came_in_another_order_are_others(tmp_path: Path) -> None:
    """The same counts, the second batch told as the first one: predictions are others."""
    honest = ALL["walk/likelihood/expression"]
    first, names, *lines = (honest.folder() / "data.csv").read_text().splitlines()
    place = names.split(",").index("batch")
    rows, turned = [line.split(",") for line in lines], {"0": "1", "1": "0"}
    for row in rows:
        row[place] = turned.get(row[place], row[place])
    rows.sort(key=lambda row: int(row[place]))
    other = tmp_path / "data.csv"
    other.write_text("\n".join([first, names, *(",".join(row) for row in rows)]) + "\n")
    verdict = verify(honest.certificate, *binding_of(honest, data=str(other)))
    assert verdict.code == 1 and "other data: 'batch_" in verdict.err
    unordered = ALL["walk/events/tied"]
    assert verify(unordered.certificate, *binding_of(unordered, data=str(other))).accepted


def test_a_certificate_about_joint_bounds_says_so(tmp_path: Path) -> None:
    """What nature may do is read in one of two ways, and the values differ: which one it is, is told."""
    (tmp_path / "machines.prism").write_text(MACHINES)
    with pytest.warns(UserWarning, match="P and R over paths use the factors"):
        model, asked = tr.load(tmp_path / "machines.prism"), "Pmaxmax=? [ F x=1 & y=1 ]"
    factors = tr.certify(model.problem(asked), tmp_path / "factors.cert")
    joint = tr.certify(model.without_factors.problem(asked), tmp_path / "joint.cert")
    assert factors["value"].upper < joint["value"].lower - 0.01
    binding = ("--model", str(tmp_path / "machines.prism"), "--prop", asked)
    for name, words in (("factors", []), ("joint", [JOINT_BOUNDS])):
        verdict = verify(tmp_path / f"{name}.cert", *binding)
        assert verdict.accepted and verdict.result is not None and verdict.result["assumes"] == words
        found = tr.verify(tmp_path / f"{name}.cert", model=model, property=asked)
        assert found.valid and list(found.assumes) == words


@pytest.mark.parametrize("asked", ["Pmaxmax=? [ F<=2 x=1 & y=1 ]", 'R{"cost"}maxmax=? [ Cdiscount=0.5 ]'])
def test_draws_within_a_step_are_no_steps_of_the_model(asked: str, tmp_path: Path) -> None:
    """A forger may count them, or discount each, in a game that is otherwise that of the factors."""
    honest = ALL["factors/bounded"]
    with pytest.warns(UserWarning, match="P and R over paths use the factors"):
        model = tr.load(honest.folder() / honest.model)
    rows = model.factored
    draws = IntervalMDP(rows.structure, rows.lower, rows.upper)
    objective = rows.lift(model.problem(asked).objective)
    counted = tr.certify(tr.Problem(draws, objective), tmp_path / "draws.cert")
    with warnings.catch_warnings(action="ignore"):
        right = tr.certify(model.problem(asked), tmp_path / "steps.cert")
    assert counted["value"].upper < right["value"].lower - 0.01
    assert tr.verify(tmp_path / "steps.cert", model=model).valid
    for more in ({}, {"property": asked}):
        with pytest.raises(CannotCertify, match="another model"):
            tr.verify(tmp_path / "draws.cert", model=model, **more)


def test_a_point_is_not_asked_of_a_whole_domain() -> None:
    honest = ALL["domain/coupled"]
    with pytest.raises(
        InputError, match="`at` requires a certificate about a point; this one is about no point"
    ):
        tr.verify(
            honest.certificate,
            model=tr.load(honest.folder() / honest.model, domain=honest.options[1]),
            at={"p": 0.2},
        )


@pytest.mark.parametrize("name", ["interval/reach", "interval/average", "interval/temporal"])
def test_a_property_with_one_direction_is_not_read_silently(name: str, tmp_path: Path) -> None:
    """One direction means a nature that helps: a forger may prove that, and the user hears what was read."""
    honest = ALL[name]
    asked = honest.options[-1].replace("maxmin=?", "max=?")
    model, path = str(honest.folder() / honest.model), str(tmp_path / "friendly.cert")
    assert quietly(["check", model, "--prop", asked, "--certificate", path])[0] == 0
    code, shown, told = quietly(["verify", path, "--model", model, "--prop", asked])
    assert code == 0 and "compared   your model, property" in shown
    assert (
        f"read as {asked.replace('max=?', 'maxmax=?')}; the value that is guaranteed whatever nature" in told
    )
    assert ("the path is read as" in told) == (name == "interval/temporal")
    with pytest.warns(
        tr.ReadingWarning, match="with one direction, nature helps the agent of an interval MDP"
    ):
        assert tr.verify(path, model=tr.load(model), property=asked).valid
    verdict = verify(honest.certificate, *binding_of(honest, prop=asked))
    assert verdict.code == 1 and "another property: 'nature' differs" in verdict.err
