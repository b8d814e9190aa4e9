"""The proved checker: what it accepts and refuses beside `verify --exact`, and the command that calls it.

    ADVERSARY_EXAMPLES=3000 pytest tests/certify/test_proved.py -k mutant

holds the two against each other on that many mutants.
"""

from __future__ import annotations

import json
import random
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adversary import test_attacks_arithmetic as arithmetic
from adversary.archive import Forgery
from adversary.attacks_learned import ATTACKS as ATTACKS_LEARNED
from adversary.attacks_learned import filled, tight
from adversary.attacks_newest import ATTACKS as ATTACKS_NEWEST
from adversary.attacks_values import ATTACKS, Attack, Forge, both, claim_values
from adversary.cell_models import with_own_models
from adversary.examples import EXAMPLES
from adversary.honest import ALL as KNOWN
from adversary.honest import (
    DRAWN_SPREAD,
    DRAWN_WALK,
    GIVEN,
    INTERVAL,
    ONE_CHOICE,
    POINT,
    REACH,
    SPREAD,
    SPREAD_DOMAIN,
    WALK,
    WALK_DOMAIN,
    Honest,
    quietly,
)
from adversary.hostile import AUTOMATA
from adversary.judge import Verdict, verify
from adversary.malformed import MALFORMED
from adversary.mutations import mutation
from adversary.proved import NOT_COVERED, asked, proved_program
from benchmark_script import run_benchmark
from checker.test_quotients import BOX as SHARES_BOX
from checker.test_quotients import TEXT as SHARES
from effort import EXPLORING
from places import TESTS
from tightrope.certify.certificate_file import as_file
from tightrope.certify.verification import PLACE, PROGRAM
from tightrope_check.evidence import METHODS
from tightrope_check.problem import Certificate, CertifiedProblem, Claim

ROOT = TESTS.parent

pytestmark = pytest.mark.ocaml


def believed_lines(text: str, mark: str = "BELIEVED") -> int:
    """Lines of code that are marked as believed: the file, or what stands between two comments."""
    whole = text.startswith(f"(* {mark}")
    marked = [text] if whole else re.findall(rf"(\(\* {mark}.*?)\(\* END \*\)", text, re.S)
    if text.startswith("// BELIEVED"):
        marked = [re.sub("^//.*", "", text, flags=re.M)]
    code = "\n".join(re.sub(r"\(\*.*?\*\)", "", part, flags=re.S) for part in marked)
    return sum(bool(line.strip()) for line in code.splitlines())


def test_what_is_trusted_is_listed_and_short() -> None:
    folder = ROOT / "proved"
    sources = [*folder.glob("theories/*.v"), *folder.glob("extracted/exact.ml"), *folder.glob("reader/*.*")]
    counted = {str(path.relative_to(folder)): believed_lines(path.read_text()) for path in sources}
    counted = {name: lines for name, lines in counted.items() if lines}
    readme = (folder / "README.md").read_text()
    listed = {name: int(lines) for name, lines in re.findall(r"^\| `(.*?)` \| (\d+) \|", readme, re.M)}
    assert listed == counted
    assert f"| together | {sum(counted.values())} | |" in readme and sum(counted.values()) <= 900
    stated = believed_lines((folder / "theories" / "Shield.v").read_text(), "STATED")
    assert (
        0 < stated <= 42
        and f"these {stated} lines as well: {sum(counted.values()) + stated} in all"
        in readme.replace("\n", " ")
    )


@pytest.fixture(scope="module")
def program() -> Path:
    built = proved_program()
    assert built is not None
    return built


OTHERS = re.compile(
    "temporal|rarely|follows|remembered|factors|l1|ellipsoid|hoeffding|/costs|steps"
    "|(domain|spread/.*)/coupled"  # domains with an equality
)
"""Names of certificates of kinds that it does not cover."""


def is_covered(name: str) -> bool:
    """Whether certificates of this name are of a kind that it covers."""
    return not OTHERS.search(name)


ROUNDS = ("--episodes", "600", "--seed", "1")
SPREADING = (*SPREAD_DOMAIN, "--at", "p=0.3,q=0.4,r=0.15", *ROUNDS)
LATE = (*SPREAD_DOMAIN, "--prop", 'Pmin=? [ F>=2 "goal" ]')
ONWARD = SPREAD.replace("p:(s'=0)", "p:(s'=1)")
ONWARD_AT = ("--param", "p=0.1:0.4,q=0.1:0.5,r=0.1:0.2", *REACH)
EARNED = WALK.replace("s<3 : 1;", "s<3 : 1+2*p*p;")
RING = WALK.replace("[a] s>=3 -> true;", "[a] s>=3 -> 1:(s'=0);").replace("s<3 : 1;", "s<3 : 1;\n s=3 : 2.5;")
OWN_LOG = ("--states", "index", "--ends", "complete", "--order", "as-read")
EARNED_SHARES = f'{SHARES}rewards "cost" [a] true : 1+2*p; [r] true : q; endrewards'
SHARES_AT = ("--param", SHARES_BOX)
RATIOS = """mdp
const double p;
const double q;
const double w;
module m
 s : [0..4] init 0;
 [a] s=0 -> p/(p+q+w):(s'=1) + q/(p+q+w):(s'=2) + w/(p+q+w):(s'=3);
 [b] s=0 -> p/(p+w):(s'=2) + w/(p+w):(s'=3);
 [c] s=1 -> w/(1+q):(s'=4) + (1+q-w)/(1+q):(s'=0);
 [c] s=2 -> p*p/(p*p+w*q):(s'=4) + w*q/(p*p+w*q):(s'=3);
 [d] s>=3 -> true;
endmodule
label "goal" = s=4;
"""
POWERS = """mdp
const double p;
const double q;
module m
 s : [0..4] init 0;
 [a] s=0 -> 1/(1+p):(s'=1) + p/(1+p)/(1+q):(s'=2) + p*q/(1+p)/(1+q):(s'=3);
 [b] s=0 -> p/(1+p):(s'=2) + 1/(1+p)/(1+q):(s'=1) + q/(1+p)/(1+q):(s'=3);
 [c] s=1 -> q/(1+q):(s'=4) + 1/(1+q):(s'=0);
 [c] s=2 -> 1/(1+p*q):(s'=4) + p*q/(1+p*q):(s'=3);
 [d] s>=3 -> true;
endmodule
label "goal" = s=4;
"""
"""Outcomes of several denominators at one choice, and complements whose other outcomes have another one."""
POWERS_AT = ("--param", "p=0.1:0.8,q=0.1:0.8")
RATIOS_AT = ("--param", "p=0.1:0.8,q=0.1:0.8,w=0.1:0.8", "--domain", "p+q<=0.8")
MIXED_WALK = """{"format": "tightrope policy", "version": 1, "model": null, "policy": [
{"state": {"s": 0}, "choices": [{"choice": 0, "probability": 0.75}, {"choice": 1, "probability": 0.25}]}]}"""
AT_WALK, AT_SPREAD = ("--at", "p=0.55"), ("--at", "p=0.3,q=0.4,r=0.15")
MORE = [
    Honest(
        f"spread/joint/{sets}", "learn", "spread.prism", SPREAD, LATE,
        ("--delta", "0.05", "--region", "joint", "--sets", sets), drawn,
    )
    for sets, drawn in (("rectangular", SPREADING), ("expression", DRAWN_SPREAD))
] + [
    Honest(
        "walk/prior", "learn", "walk.prism", WALK, (*WALK_DOMAIN, *REACH),
        ("--delta", "0.05", "--prior", "p ~ beta(8,2)"), (*WALK_DOMAIN, "--at", "p=0.55", *ROUNDS),
    ),
    Honest(
        "onward/untied", "learn", "onward.prism", ONWARD, ONWARD_AT,
        ("--delta", "0.05", "--sets", "untied", "--interval", "clopper-pearson"),
        (*ONWARD_AT, "--at", "p=0.3,q=0.4,r=0.15", *ROUNDS),
    ),
    Honest(
        "earned/likelihood", "learn", "earned.prism", EARNED,
        (*WALK_DOMAIN, "--prop", 'R{"cost"}min=? [ F "done" ]'),
        ("--delta", "0.05", "--region", "likelihood", "--sets", "rectangular"), DRAWN_WALK,
    ),
    Honest(
        "earned/lost", "learn", "lost.prism", EARNED.replace("1+", "1-"),
        (*WALK_DOMAIN, "--prop", 'R{"cost"}max=? [ C<=4 ]'),
        ("--delta", "0.05", "--region", "polytope", "--sets", "expression"), DRAWN_WALK,
    ),
    Honest(
        "earned/domain", "check", "earned.prism", EARNED,
        (*WALK_DOMAIN, "--prop", 'R{"cost"}max=? [ F "done" ]'), ("--sets", "expression"),
    ),
    *(
        Honest(
            f"shares/quotients/{name}", "learn", "shares.prism", EARNED_SHARES,
            (*SHARES_AT, "--prop", question), ("--delta", "0.05", *method),
            (*SHARES_AT, "--at", "p=0.3,q=0.6", *drawn, "300", "--seed", "1"),
        )
        for name, question, method, drawn in (
            ("tied", 'Pmax=? [ F "won" ]', ("--sets", "tied"), ["--episodes"]),
            (
                "untied", 'Pmin=? [ F<=6 "won" ]',
                ("--sets", "untied", "--interval", "clopper-pearson"), ["--generative"],
            ),
            (
                "expression", 'R{"cost"}max=? [ C<=5 ]',
                ("--region", "polytope", "--sets", "expression"), ["--episodes"],
            ),
        )
    ),
    Honest(
        "powers/quotients", "learn", "powers.prism", POWERS, (*POWERS_AT, *REACH),
        ("--delta", "0.05", "--sets", "tied"), (*POWERS_AT, "--at", "p=0.3,q=0.3", *ROUNDS),
    ),
    Honest(
        "ratios/quotients/constrained", "learn", "ratios.prism", RATIOS, (*RATIOS_AT, *REACH),
        ("--delta", "0.05", "--region", "polytope", "--sets", "rectangular"),
        (*RATIOS_AT, "--at", "p=0.3,q=0.3,w=0.4", *ROUNDS),
    ),
    Honest(
        "ratios/quotients/domain", "check", "ratios.prism", RATIOS, (*RATIOS_AT, *REACH),
        ("--sets", "expression"),
    ),
    *(
        Honest(
            f"ring/{name}", "learn", "ring.prism", RING,
            (*WALK_DOMAIN, "--prop", f'R{{"cost"}}{name}=? [ S ]'),
            ("--delta", "0.05", "--region", region, "--sets", sets), DRAWN_WALK,
        )
        for name, region, sets in (("max", "polytope", "rectangular"), ("min", "likelihood", "expression"))
    ),
    *(
        Honest(
            f"{name}/bets/{sets}", "learn", f"{name}.prism", text, (*domain, *question),
            ("--delta", "0.05", "--region", "joint", "--sets", sets), (*drawn[:-4], *ROUNDS),
        )
        for name, text, domain, drawn, sets, question in (
            ("walk", WALK, WALK_DOMAIN, DRAWN_WALK, "expression", REACH),
            ("walk", WALK, WALK_DOMAIN, DRAWN_WALK, "rectangular", ("--prop", 'R{"cost"}min=? [ F "done" ]')),
            ("spread", SPREAD, SPREAD_DOMAIN, DRAWN_SPREAD, "rectangular", REACH),
        )
    ),
    *(
        Honest(
            f"{name}/bets/{what}", "learn", f"{name}.prism", text, (*domain, *REACH),
            ("--delta", "0.05", "--region", "joint", "--sets", sets), (*drawn[:-4], *ROUNDS), policy=policy,
        )
        for name, text, domain, drawn, sets, what, policy in (
            ("spread", SPREAD, SPREAD_DOMAIN, DRAWN_SPREAD, "rectangular", "given", ONE_CHOICE),
            ("walk", WALK, WALK_DOMAIN, DRAWN_WALK, "expression", "mixed", MIXED_WALK),
        )
    ),
    *(
        Honest(
            f"{name}/bets/own/{sets}", "learn", f"{name}.prism", text, (*domain, *REACH),
            ("--delta", "0.05", "--region", "joint", "--sets", sets, *OWN_LOG),
            (*drawn[:-4], *ROUNDS, "--raw"),
            policy=policy, is_own_log=True,
        )
        for name, text, domain, drawn, sets, policy in (
            ("spread", SPREAD, SPREAD_DOMAIN, DRAWN_SPREAD, "rectangular", ""),
            ("walk", WALK, WALK_DOMAIN, DRAWN_WALK, "expression", ""),
            ("walk", WALK, WALK_DOMAIN, DRAWN_WALK, "rectangular", MIXED_WALK),
        )
    ),
    *(
        Honest(
            f"walk/bets/{name}", "learn", "walk.prism", WALK, (*WALK_DOMAIN, *question),
            ("--delta", "0.05", "--region", "joint", "--sets", "rectangular"),
            (*WALK_DOMAIN, *AT_WALK, *ROUNDS, "--cap", "30"), policy=policy,
        )
        for name, question, policy in (
            ("bounded", ("--prop", 'Pmax=? [ F<=4 "goal" ]'), ""),
            ("window", ("--prop", 'Pmin=? [ F[2,5] "goal" ]'), MIXED_WALK),
            ("cumulative", ("--prop", 'R{"cost"}max=? [ C<=4 ]'), ""),
            ("discounted", ("--prop", 'R{"cost"}min=? [ C ]', "--discount", "0.9"), ""),
        )
    ),
    *(
        Honest(
            f"{name}/coupled/{region}", "learn", f"{name}.prism", text, (*domain, *question),
            ("--delta", "0.05", "--region", region, "--sets", "coupled"), (*domain, *drawn, *ROUNDS),
        )
        for name, text, domain, drawn, region, question in (
            ("walk", WALK, WALK_DOMAIN, AT_WALK, "likelihood", ("--prop", 'R{"cost"}min=? [ F "done" ]')),
            ("onward", ONWARD, ONWARD_AT[:2], AT_SPREAD, "polytope", REACH),
            ("onward", ONWARD, ONWARD_AT[:2], AT_SPREAD, "joint", ("--prop", 'Pmax=? [ s!=2 U "goal" ]')),
        )
    ),
    *(
        Honest(
            f"{name}/coupled/{what}", "learn", f"{name}.prism", text, (*domain, "--prop", question),
            ("--delta", "0.05", "--region", "polytope", "--sets", "coupled"), (*domain, *drawn, *ROUNDS),
            policy=policy,
        )
        for name, text, domain, drawn, what, question, policy in (
            ("onward", ONWARD, ONWARD_AT[:2], AT_SPREAD, "bounded", 'Pmax=? [ F<=4 "goal" ]', ""),
            ("onward", ONWARD, ONWARD_AT[:2], AT_SPREAD, "window", 'Pmin=? [ F[2,5] "goal" ]', ""),
            ("walk", WALK, WALK_DOMAIN, AT_WALK, "mixed", 'R{"cost"}max=? [ C<=4 ]', MIXED_WALK),
        )
    ),
    Honest(
        "walk/difference", "improve", "walk.prism", WALK,
        (*WALK_DOMAIN, "--prop", 'R{"cost"}min=? [ F "done" ]'),
        ("--delta", "0.05", "--baseline", "uniform"), (*WALK_DOMAIN, *AT_WALK, *ROUNDS), codes=(0, 1),
    ),
]  # fmt: skip
"""Slabs beside intervals; intervals and a likelihood together (beta-binomial; Clopper and Pearson), a prior,
Clopper and Pearson of trajectories that meet no choice twice, rewards with parameters, long-run averages,
coupled values, differences of policies, quotients."""

RUNS = [
    Honest(f"{model}/runs/{name}", "check", "game.prism", text, ("--prop", question), policy=policy)
    for model, text, name, question, policy in (
        ("point", POINT, "twice", "Pmax=? [ F (s=1 & (F s=4)) ]", ""),
        ("point", POINT, "unless", 'Pmax=? [ s!=2 U (s=1 & (X ("goal" | s=2))) ]', ""),
        ("point", POINT, "given", 'Pmin=? [ (X s=2) | (F (s=1 & (X "goal"))) ]', GIVEN),
        ("interval", INTERVAL, "both", 'Pmaxmin=? [ (F s=1) & (F "goal") ]', ""),
        ("interval", INTERVAL, "soon", "Pminmax=? [ F<=5 (s=2 & (X s=4)) ]", ""),
        ("interval", INTERVAL, "given", "Pmaxmin=? [ G (s=2 => (X s!=4)) ]", GIVEN),
    )
] + [
    Honest(
        f"{model}/runs/{sets}", command, f"{model}.prism", text, (*domain, "--prop", question),
        (*method, "--sets", sets), drawn, policy=policy,
    )
    for model, text, domain, command, drawn, sets, method, question, policy in (
        (
            "walk", WALK, WALK_DOMAIN, "learn", DRAWN_WALK, "tied", ("--delta", "0.05"),
            'Pmax=? [ (F s=1) & (F "goal") ]', "",
        ),
        (
            "walk", WALK, WALK_DOMAIN, "learn", DRAWN_WALK, "rectangular",
            ("--delta", "0.05", "--region", "likelihood"), "Pmin=? [ G (s=2 => (X (X s!=1))) ]", "",
        ),
        (
            "spread", SPREAD, SPREAD_DOMAIN, "learn", DRAWN_SPREAD, "expression",
            ("--delta", "0.05", "--region", "polytope"), 'Pmax=? [ F (s=2 & (F "goal")) ]', "",
        ),
        (
            "domain", SPREAD, SPREAD_DOMAIN, "check", (), "rectangular", (),
            'Pmax=? [ (F s=2) & (F "goal") ]', "",
        ),
        (
            "domain", SPREAD, SPREAD_DOMAIN, "check", (), "expression", (),
            "Pmax=? [ F (s=2 & (F s=1)) ]", ONE_CHOICE,
        ),
    )
]  # fmt: skip
"""Temporal formulas that finite runs decide: policies with memory, given ones, complements, all players."""

ALL = {**KNOWN, **{one.name: one for one in (*MORE, *RUNS)}}
COVERED = [name for name in ALL if is_covered(name)]
CELLS = [name for name in COVERED if "coupled" in name or "difference" in name]
"""Their cells are found anew: others in the file need not be refused."""
KINDS = {
    "all": [name for name in COVERED if name not in CELLS],
    "runs": [name for name in COVERED if re.search("runs|settles", name)],
    "newest": [*CELLS, *(name for name in COVERED if "bets" in name)],
    "quotients": [name for name in COVERED if "quotients" in name],
}
"""Kinds that mutants are made of."""


@pytest.mark.thinned(5)
@pytest.mark.parametrize("name", ALL)
def test_honest_certificates_are_accepted_where_their_kind_is_covered(program: Path, name: str) -> None:
    code, words = asked(program, ALL[name].certificate)
    assert code == (0 if is_covered(name) else NOT_COVERED), words


def attack_cases() -> list[object]:
    """Every attack on one of the kinds that are covered; which one changes with its number."""
    made = []
    for number, attack in enumerate([*ATTACKS, *ATTACKS_LEARNED, *ATTACKS_NEWEST]):
        kinds = [name for name in attack.on if is_covered(name)]
        chosen = kinds if EXPLORING else [kinds[number % len(kinds)]] if kinds else ()
        made += [pytest.param(attack, on, id=f"{attack.name}-{on}") for on in sorted(chosen)]
    return made


@pytest.mark.thinned(3)
@pytest.mark.parametrize(("attack", "on"), attack_cases())
def test_forgeries_are_refused(program: Path, tmp_path: Path, attack: Attack, on: str) -> None:
    forgery = Forgery.of(ALL[on].certificate)
    attack.forge(forgery)
    code, words = asked(program, forgery.save(tmp_path / "forged.cert"))
    assert code != 0, words


def test_forgeries_of_the_arithmetic_are_refused(program: Path, tmp_path: Path) -> None:
    path, refused = tmp_path / "forged.cert", 0
    for attack in arithmetic.ATTACKS:
        try:
            as_file(attack.certificate).save(path)
        except ValueError:  # numbers with more digits than a file may have
            continue
        code, words = asked(program, path)
        assert code in (1, 2), (attack.name, words)
        refused += code == 1
    assert refused >= 30


def test_the_forgery_by_underflow_is_refused(program: Path, tmp_path: Path) -> None:
    """pow(q, 115) at q = 2⁻¹⁴³ drips away: below all doubles, and not 0."""
    one, graph = arithmetic.ONE, arithmetic.graph_of(arithmetic.drips(Fraction(1, 2), 1))[0]
    for into, low, high, truth in ((1, 0.4998, 1.0, 0.0), (2, 0.0, 0.0002, 1.0)):
        problem = CertifiedProblem(
            replace(graph, successor=np.array([0, into, 1, 2])),
            arithmetic.objective("UNTIL", target=arithmetic.GOAL),
            expression=np.array([1, 0, 2, 2]),
            polynomial=({((0, 115),): one}, {(): one, ((0, 115),): -one}, {(): one}),
            theta=(Fraction(1, 2**143),),
        )
        for lower, upper, accepted in ((low, high, False), (truth, truth, True)):
            hints = arithmetic.vectors([lower, 0, 1], [upper, 0 if into == 2 or accepted else 1, 1])
            made = Certificate(problem, (Claim("value", "free", lower, upper),), (hints,))
            as_file(made).save(tmp_path / "drip.cert")
            assert (asked(program, tmp_path / "drip.cert")[0] == 0) == accepted


@pytest.mark.parametrize("kinds", KINDS)
@settings(max_examples=EXAMPLES if EXAMPLES > 1000 or EXPLORING else 10)
@given(data=st.data())
def test_mutants_are_judged_as_by_exact_verification(
    program: Path, tmp_path_factory: pytest.TempPathFactory, kinds: str, data: st.DataObject
) -> None:
    """What one checker accepts the other one accepts, too. The exception are hints: of coupled values, as the
    program finds cells of its own, and bases with quotients, which it solves in rationals. What it accepts
    there is well-formed, and `verify` accepts the problem and the claims (or wider ones, by a millionth) with
    the honest file's hints, or hulls and models made anew."""
    honest = ALL[data.draw(st.sampled_from(KINDS[kinds]))]
    forgery = Forgery.of(honest.certificate)
    paths = [path for path in forgery.fields() if not path.startswith("about")]
    changes = [data.draw(mutation(forgery, paths)) for _ in range(data.draw(st.integers(1, 3)))]
    if data.draw(st.booleans()):
        with suppress(KeyError, TypeError, ValueError, IndexError, AttributeError, Warning):
            claim_values(forgery)
    path = forgery.save(tmp_path_factory.getbasetemp() / "mutant.cert")
    code, words = asked(program, path)
    verdict = verify(path, "--exact")
    if code == 0 and verdict.code == 1 and (honest.name in CELLS or "quotients" in honest.name):
        verdict = with_other_hints(forgery, honest, path)
    assert code == NOT_COVERED or (code == 0) == verdict.accepted, (honest.name, changes, words, verdict)


def with_other_hints(forgery: Forgery, honest: Honest, path: Path) -> Verdict:
    """The honest hints in place of those of a mutant; claims that are wider by a millionth, as both checkers
    prove nearly the same of a problem, but not to the last digit; models of cells for this problem."""
    own, changed = Forgery.of(honest.certificate), forgery.copy()
    for part in ("values", "learned"):
        changed.node[part] = own.node[part]
        kept = {name: array for name, array in changed.arrays.items() if not name.startswith(f"{part}.")}
        changed.arrays = kept | {name: own[name] for name in own.arrays if name.startswith(f"{part}.")}
    if (verdict := verify(changed.save(path), "--exact")).accepted:
        return verdict
    for claim in changed["claims"]:
        for end, margin in (("lower", -1e-6), ("upper", 1e-6)):
            if isinstance(claim[end], float):
                claim[end] += margin
    if (verdict := verify(changed.save(path), "--exact")).accepted:
        return verdict
    return verify(with_own_models(changed, path).save(path), "--exact")


def changed(name: str, change: Callable[[np.ndarray], np.ndarray]) -> Callable[[Forgery], None]:
    """An array of the automaton, changed."""

    def forge(forgery: Forgery) -> None:
        path = f"problem.automaton.{name}"
        forgery[path] = change(forgery[path].copy())

    return forge


def left(array: np.ndarray) -> np.ndarray:
    """A last memory that one letter leaves."""
    array[-1, 0] = 0
    return array


def both_of(*forges: Callable[[Forgery], None]) -> Callable[[Forgery], None]:
    return lambda forgery: [forge(forgery) for forge in forges] and None


OTHER_AUTOMATA = {
    "letters of other states": (changed("atom", lambda a: np.roll(a, 1, axis=1)), (1, 2)),
    "atoms in another order": (changed("atom", lambda a: a[::-1]), (0, 1, 2)),
    "a won memory that is left": (changed("successor", left), (NOT_COVERED,)),
    "won at once": (changed("repeated", np.ones_like), (1, NOT_COVERED)),
    "never won": (changed("repeated", np.zeros_like), (1, NOT_COVERED)),
    "avoided for ever": (
        both_of(changed("avoided", np.ones_like), changed("repeated", np.zeros_like)), (1, NOT_COVERED),
    ),
    "won infinitely often": (changed("repeated", lambda a: ~a), (NOT_COVERED,)),
    "a mark that is nowhere beside it": (
        both_of(
            changed("repeated", lambda a: np.concatenate([a, np.zeros_like(a)])),
            changed("pair", lambda a: np.concatenate([a, a])),
        ), (1,),
    ),
    "bounds on the steps": (lambda f: f.__setitem__("problem.objective.upper_steps", 3), (2,)),
    "rewards": (lambda f: f.__setitem__("problem.objective.reward", np.ones(8)), (2,)),
    "a policy by steps": (lambda f: f.__setitem__("claims.0.earlier", np.zeros((1, 3), np.int64)), (2,)),
    "the model's vectors": (lambda f: f.__setitem__("values.0.lower", f["values.0.lower"][:6]), (2,)),
    "the other side": (
        lambda f: f.__setitem__("problem.objective.complement", not f["problem.objective.complement"]), (1,),
    ),
}  # fmt: skip
"""What becomes of an honest certificate about another automaton: code of the proved checker."""


@pytest.mark.thinned(4)
@pytest.mark.parametrize("name", ["point/runs/unless", "interval/runs/given", "walk/runs/tied"])
@pytest.mark.parametrize("what", [*OTHER_AUTOMATA, *AUTOMATA])
def test_runs_are_accepted_by_the_automaton_of_the_file(
    program: Path, tmp_path: Path, name: str, what: str
) -> None:
    path, forgery = tmp_path / "forged.cert", Forgery.of(ALL[name].certificate)
    if what in OTHER_AUTOMATA:
        forge, codes = OTHER_AUTOMATA[what]
        forge(forgery)
        forgery.save(path)
    else:
        codes = (2,)
        path.write_bytes(AUTOMATA[what](forgery))
    code, words = asked(program, path)
    assert code in codes and (code == NOT_COVERED or (code == 0) == verify(path, "--exact").accepted), words


@pytest.mark.parametrize("name", ["walk/runs/tied", "walk/runs/rectangular"])
def test_a_policy_with_memory_is_the_one_of_the_file(program: Path, tmp_path: Path, name: str) -> None:
    """Choices of the product's states, in their order: those of another memory are another policy."""
    forgery = Forgery.of(ALL[name].certificate)
    choice = forgery["claims.0.choice"]
    verdicts = set()
    for state in range(len(choice)):
        for step in (-1, 1):
            moved = forgery.copy()
            moved["claims.0.choice"] = np.where(np.arange(len(choice)) == state, choice + step, choice)
            path = moved.save(tmp_path / "moved.cert")
            code, words = asked(program, path)
            assert (code == 0) == verify(path, "--exact").accepted, words
            verdicts.add(code)
    assert {1, 2} <= verdicts


def test_bets_follow_the_plan_that_the_data_state(program: Path, tmp_path: Path) -> None:
    """Fewer episodes were planned than came: `learn` bets by this plan. Bets by another plan prove something
    else. The program asked for the number of episodes that came, which refused honest certificates."""
    honest = ALL["spread/bets/rectangular"]
    stated = (honest.certificate.parent / "data.csv").read_text()
    model, data, path = tmp_path / honest.model, tmp_path / "data.csv", tmp_path / "planned.cert"
    model.write_text(honest.text)
    data.write_text(stated.replace('"planned": 600', '"planned": 100'))
    asks = ["learn", str(model), *honest.options, *honest.method, "--data", str(data)]
    assert quietly([*asks, "--certificate", str(path)])[0] == 0
    (code, words), verdict = asked(program, path), verify(path)
    assert code == 0 and ", if 100 episodes were planned in advance\n" in words
    assert verdict.accepted and "100 episodes were planned in advance" in str(verdict.result)
    for name, planned, code in (("spread/bets/rectangular", 600, 0), ("walk/bets/expression", 1, 1)):
        forgery = Forgery.of(ALL[name].certificate)
        forgery["problem.data.planned"] = planned
        assert asked(program, forgery.save(path))[0] == verify(path, "--exact").code == code


@pytest.mark.thinned(2)
@pytest.mark.parametrize("episodes", [150, 600])
@pytest.mark.parametrize("name", ["spread/bets/given", "walk/bets/mixed"])
def test_bets_on_a_policy_that_collected_the_data_are_on_both_ends(
    program: Path, tmp_path: Path, name: str, episodes: int
) -> None:
    """The program refused them. Files from before have other shares: they are judged as by `verify`."""
    honest = ALL[name]
    model, policy, data, path = (
        tmp_path / one for one in (honest.model, "policy.json", "data.csv", "c.cert")
    )
    model.write_text(honest.text)
    policy.write_text(honest.policy)
    chosen = ["--policy", str(policy)]
    at = AT_WALK if name.startswith("walk") else AT_SPREAD
    drawn = ["sample", str(model), *honest.options, *at, "--episodes", str(episodes), "--seed", "1", *chosen]
    assert quietly([*drawn, "-o", str(data)])[0] == 0
    asks = ["learn", str(model), *honest.options, *honest.method, "--data", str(data), *chosen]
    assert quietly([*asks, "--certificate", str(path)])[0] == 0
    assert Forgery.of(path)["problem.data.method"] == "beta-binomial+9/10 value slab"
    code, words = asked(program, path)
    assert code == 0 and words.count(", if the given policy was chosen without these data\n") == 2
    codes = []
    for field, value in (
        *(
            ("problem.data.method", f"beta-binomial+value slab{other}")
            for other in ("", " of few data", " of the best")
        ),
        ("learned.slab.0.side", 2 + 0 * Forgery.of(path)["learned.slab.0.side"]),
    ):
        forgery = Forgery.of(path)
        forgery[field] = value
        for claim in forgery["claims"]:
            claim["lower"], claim["upper"] = claim["lower"] - 0.05, claim["upper"] + 0.05
        code, words = asked(program, forgery.save(tmp_path / "former.cert"))
        assert code == verify(tmp_path / "former.cert", "--exact").code, (field, value, words)
        codes.append(code)
    few = name.startswith("spread") and episodes == 150
    assert codes[0] == 0 and codes[1] == (not few) and codes[3] != 0


@pytest.mark.parametrize("name", CELLS)
def test_coupled_claims_are_no_tighter_than_what_holds(program: Path, tmp_path: Path, name: str) -> None:
    """Ends moved inwards by a fifth of the interval, another pair, another policy, values of a pair: what is
    not so is not accepted, whatever the file says of its cells."""
    honest = Forgery.of(ALL[name].certificate)
    number = max(i for i in range(3) if f"claims.{i}.lower" in honest.fields())
    lower, upper = (float(honest[f"claims.{number}.{end}"]) for end in ("lower", "upper"))

    def judged(**changes: object) -> tuple[int, str]:
        forgery = Forgery.of(ALL[name].certificate)
        for field, value in changes.items():
            forgery[f"claims.{number}.{field}"] = value
        return asked(program, forgery.save(tmp_path / "forged.cert"))

    assert judged()[0] == 0
    for end, moved in (("lower", lower + 0.2 * (upper - lower)), ("upper", upper - 0.2 * (upper - lower))):
        code, words = judged(**{end: moved})
        assert code == 1, words
    if "difference" in name:
        code, words = judged(pair=np.array([1, 0]))
        assert code == 1, words
        code, words = judged(lower=-upper, upper=-lower, pair=np.array([1, 0]))
        assert code in (0, 2), words


def test_coupled_policies_may_change_with_the_step(program: Path, tmp_path: Path) -> None:
    """State 1 takes another choice up to and including step 2: another value, whatever the cells are."""
    forgery = Forgery.of(ALL["onward/coupled/bounded"].certificate)
    assert list(forgery["claims.0.choice"][:2]) == [0, 2]
    forgery["claims.0.earlier"] = np.array([[2, 1, 1]])
    codes = []
    for lower, upper in ((0.28, 0.47), (0.3, 0.43), (0.34, 0.43), (0.3, 0.37)):
        forgery["claims.0.lower"], forgery["claims.0.upper"] = lower, upper
        path = forgery.save(tmp_path / "forged.cert")
        codes.append(asked(program, path)[0])
        assert (codes[-1] == 0) == verify(path, "--exact").accepted
    assert codes == [0, 0, 1, 1]


def test_what_is_assumed_stands_beside_what_is_proved(program: Path, tmp_path: Path) -> None:
    """An assumed support proves more; a plan and a prior must not be chosen afterwards."""
    support = ", if every possible transition has at least probability 0.125\n"
    for name, field, value, words in (
        ("walk/anytime/tied", "assumed_support", 0.125, f" 1 - 0.050000000000000003{support}"),
        ("interval/reach", "assumed_support", 0.125, f"]{support}"),
        ("walk/prior", "data.anytime", False, ", if the prior does not depend on the data\n"),
        (
            "spread/bets/rectangular",
            "data.design",
            "adaptive",
            ", if 600 episodes were planned in advance\n",
        ),
        ("spread/bets/rectangular", "data.anytime", False, " 1 - 0.050000000000000003\n"),
    ):
        forgery = Forgery.of(ALL[name].certificate)
        forgery[f"problem.{field}"] = value
        code, said = asked(program, forgery.save(tmp_path / "assumed.cert"))
        assert code == 0 and words in said, said


LARGE = re.compile("million|bomb")
"""Files that take seconds to make: what refuses them is met by smaller ones, too."""


@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", [name for name in MALFORMED if EXPLORING or not LARGE.search(name)])
def test_malformed_files_are_refused_with_words(program: Path, tmp_path: Path, name: str) -> None:
    path = tmp_path / "malformed.cert"
    path.write_bytes(MALFORMED[name](Forgery.of(ALL["point/reach"].certificate)))
    code, words = asked(program, path)
    assert code in (1, 2, NOT_COVERED), words


def test_changed_bytes_are_refused(program: Path, tmp_path: Path) -> None:
    """Whatever byte is another one: the digest, the directory or the stream does not fit any more."""
    content, path, draw = (
        ALL["point/reach"].certificate.read_bytes(),
        tmp_path / "changed.cert",
        random.Random(1),
    )
    for _ in range(200 if EXPLORING else 60):
        changed = bytearray(content)
        for _ in range(draw.randint(1, 3)):
            changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
        if draw.random() < 0.2:
            changed = changed[: draw.randrange(len(changed))]
        path.write_bytes(bytes(changed))
        code, words = asked(program, path)
        assert code == 2, words


def test_what_it_does_not_know_is_not_passed_over(program: Path, tmp_path: Path) -> None:
    """A weaker assumption, of which the theorems do not know, written as a field that they do not read."""
    forgery = Forgery.of(ALL["walk/anytime/tied"].certificate)
    forgery["problem.misfit"] = np.full(len(forgery["problem.graph.transition_start"]) - 1, 0.1)
    code, words = asked(program, forgery.save(tmp_path / "misfit.cert"))
    assert code == NOT_COVERED and "misfit" in words


def test_methods_that_it_does_not_cover_are_said_to_be_so(program: Path, tmp_path: Path) -> None:
    """No method of ours is taken for a broken file; wide intervals hold by Clopper and Pearson, too."""
    forgery = Forgery.of(ALL["walk/anytime/tied"].certificate)
    for method in METHODS:
        forgery["problem.data.method"] = method
        code, words = asked(program, forgery.save(tmp_path / "method.cert"))
        assert code in (0, 1, NOT_COVERED), (method, words)
        assert code != 0 or method.startswith(("beta-binomial", "clopper-pearson")), (method, words)


@pytest.mark.parametrize("name", ["walk/events/tied", "onward/untied", "spread/joint/expression"])
def test_data_that_were_looked_at_while_they_came_fix_no_visits(
    program: Path, tmp_path: Path, name: str
) -> None:
    """Whoever stops when the interval suits him does not keep to Clopper and Pearson's level."""
    forgery = Forgery.of(ALL[name].certificate)
    forgery["problem.data.anytime"] = True
    path = forgery.save(tmp_path / "watched.cert")
    code, words = asked(program, path)
    assert code == 1 and "looked at" in words
    assert not verify(path, "--exact").accepted


SAID: dict[str, list[object]] = {
    "stated": [np.array(said) for said in ([0], [1], [2], [3], [4], [5], [0, 3], [0, 4], [0, 5])],
    "censored": [False, True],
    "anytime": [False, True],
    "repeats": [False, True],
    "design": ["generative-fixed", "trajectories", "adaptive"],
}
"""Every condition on the data that `verify` weighs, with every value."""
DATA = ["walk/anytime/tied", "walk/events/tied", "onward/untied", "walk/likelihood/expression", "walk/prior"]


@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("condition", SAID)
def test_all_checkers_weigh_the_same_conditions(
    program: Path, tmp_path: Path, name: str, condition: str
) -> None:
    """What is nominal for one is so for all: exit code 1 of each, and 0 where it holds."""
    forgery, codes = Forgery.of(ALL[name].certificate), []
    for said in SAID[condition]:
        forgery[f"problem.data.{condition}"] = said
        path = forgery.save(tmp_path / "said.cert")
        codes.append(verify(path).code)
        assert asked(program, path)[0] == codes[-1], said
    known = {"stated": [0, 1, 1, 0, 1, 1, 0, 1, 1], "censored": [0, 1]}
    assert codes == known.get(condition, codes) and set(codes) <= {0, 1}


@pytest.mark.parametrize("name", ["earned/likelihood", "earned/lost", "earned/domain"])
def test_rewards_are_those_of_the_problem(program: Path, tmp_path: Path, name: str) -> None:
    """Other rewards than those that bounds were proved of; both kinds; parameters where there are none."""

    def judged(forgery: Forgery) -> int:
        path = forgery.save(tmp_path / "forged.cert")
        code, words = asked(program, path)
        assert code in (1, 2), words
        assert not verify(path, "--exact").accepted
        return code

    forgery = Forgery.of(ALL[name].certificate)
    earned, polynomial = forgery["problem.objective.earned"], forgery["problem.polynomial"]
    rewarding, constant = int(earned.max()), polynomial.index("1")
    assert "*0^2" in polynomial[rewarding]
    forgery["problem.objective.earned"] = np.where(earned == rewarding, constant, earned)
    assert judged(forgery) == 1
    forgery = Forgery.of(ALL[name].certificate)
    forgery["problem.objective.reward"] = np.zeros(len(earned))
    assert judged(forgery) == 2
    forgery = Forgery.of(ALL[name].certificate)
    for end, sign in (("lower", 1), ("upper", -1)):
        forgery[f"claims.0.{end}"] += sign * 0.01
        assert judged(forgery) == 1
        forgery[f"claims.0.{end}"] -= sign * 0.01
    plain = Forgery.of(ALL["point/cost"].certificate)
    plain.drop("problem.objective.reward")
    plain["problem.objective.earned"] = np.zeros(8, dtype=np.int8)
    assert judged(plain) == 2


def lines(field: str, *values: str) -> Forge:
    """Other lines of a text array of the problem."""

    def forge(forgery: Forgery) -> None:
        forgery[f"problem.{field}"] = [*values]

    return forge


def replaced(old: str, new: str) -> Forge:
    """Another polynomial in the place of one."""

    def forge(forgery: Forgery) -> None:
        polynomials = list(forgery["problem.polynomial"])
        assert old in polynomials
        forgery["problem.polynomial"] = [new if one == old else one for one in polynomials]

    return forge


RECIPROCALS: dict[str, tuple[int, Forge]] = {
    "vanishes": (1, lines("domain.lower", "-9/10", "1/10")),
    "negative": (1, both(lines("domain.lower", "-9/10", "-9/10"), lines("domain.upper", "-1/10", "-1/10"))),
    "zero": (1, lines("denominator", "")),
    "another": (1, lines("denominator", "1*0^1 2*1^1")),
    "larger": (1, lines("denominator", "2*0^1 2*1^1")),
    "in a circle": (2, lines("denominator", "1*0^1 1*2^1")),
    "beside one that vanishes": (1, lines("denominator", "1*0^1 1*1^1", "-1/2 1*0^1")),
    "missing": (2, lambda forgery: forgery.drop("problem.denominator")),
    "squared": (NOT_COVERED, replaced("1*0^1*2^1", "1*0^1*2^2")),
    "beside a polynomial": (NOT_COVERED, replaced("1*0^1*2^1", "1 -1*1^1*2^1")),
    "a parameter": (
        NOT_COVERED,
        both(
            lines("domain.lower", "1/10", "1/10", "10"),
            lines("domain.upper", "9/10", "9/10", "10"),
            lambda forgery: forgery.drop("problem.denominator"),
        ),
    ),
    "a parameter beside itself": (
        1, both(lines("domain.lower", "1/10", "1/10", "10"), lines("domain.upper", "9/10", "9/10", "10")),
    ),
    "in a constraint": (
        2,
        both(
            lines("domain.coefficient", "0", "0", "1"),
            lines("domain.bound", "1"),
            lambda forgery: forgery.arrays.update({"problem.domain.is_equality": np.array([False])}),
        ),
    ),
    "claims more": (1, tight(0.1)),
    "intervals": (1, both(filled("learned.lower", 0.4), filled("learned.upper", 0.45), tight(0.1))),
}  # fmt: skip
"""Of p/(p+q), q/(p+q): what a file may say of r = 1/(p+q), which is parameter 2, with the exit code."""


@pytest.mark.parametrize("name", RECIPROCALS)
def test_reciprocals_are_those_of_the_denominators(program: Path, tmp_path: Path, name: str) -> None:
    """Denominators that vanish or are others, definitions in circles, reciprocals where none belong."""
    expected, forge = RECIPROCALS[name]
    forgery = Forgery.of(ALL["walk/polytope/quotients"].certificate)
    assert list(forgery["problem.denominator"]) == ["1*0^1 1*1^1"]
    forge(forgery)
    path = forgery.save(tmp_path / "forged.cert")
    code, words = asked(program, path)
    assert code == expected, words
    assert not verify(path, "--exact").accepted


@pytest.mark.parametrize("name", ["point/reach", "walk/difference"])
def test_denominators_are_not_passed_over(program: Path, tmp_path: Path, name: str) -> None:
    """Beside a point and cells; `verify` refuses cells even beside a list of no denominators."""
    for denominators in ([], ["1"], ["1 1*0^1"]):
        forgery = Forgery.of(ALL[name].certificate)
        forgery.arrays["problem.denominator"] = denominators
        code, words = asked(program, forgery.save(tmp_path / "forged.cert"))
        assert code in (2, NOT_COVERED), words


def test_rewards_have_no_reciprocals(program: Path, tmp_path: Path) -> None:
    """2·p·r in place of 2·p + 1; one more reciprocal that nothing has is harmless."""
    forgery = Forgery.of(ALL["shares/quotients/expression"].certificate)
    replaced("1 2*0^1", "2*0^1*2^1")(forgery)
    path = forgery.save(tmp_path / "forged.cert")
    code, words = asked(program, path)
    assert code == NOT_COVERED and "rewards" in words
    assert not verify(path, "--exact").accepted
    forgery = Forgery.of(ALL["shares/quotients/expression"].certificate)
    lines("denominator", *forgery["problem.denominator"], "1 1*0^1")(forgery)
    assert asked(program, forgery.save(path))[0] == 0
    assert verify(path, "--exact").accepted


def test_models_whose_probabilities_do_not_sum_to_one_are_refused(program: Path, tmp_path: Path) -> None:
    """Of such a model the theorems say nothing; found by a mutant."""
    forgery = Forgery.of(ALL["onward/untied"].certificate)
    graph = forgery["problem.graph.transition_start"]
    expression = forgery["problem.expression"].copy()
    expression[graph[0]] = expression[graph[0] + 1]
    forgery["problem.expression"] = expression
    path = forgery.save(tmp_path / "more.cert")
    code, words = asked(program, path)
    assert code == 1 and "sum to 1" in words
    assert not verify(path, "--exact").accepted


@pytest.mark.long
def test_the_battery_of_certificates(program: Path) -> None:
    """A smoke run of `benchmarks/proved_battery.py`, so that it cannot rot."""
    run = run_benchmark("proved_battery.py", "--smoke", "--episodes", "20", "--exact", "0")
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.splitlines()[-1].startswith("3 combinations, 3 covered, 0 refused")


def test_what_is_no_file_is_refused(program: Path, tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nowhere.cert"):
        assert asked(program, path)[0] == 2


@pytest.fixture
def installed(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PLACE, str(program))


@pytest.mark.usefixtures("installed")
def test_the_command_says_what_the_proved_checker_says(tmp_path: Path) -> None:
    path = str(ALL["point/reach"].certificate)
    code, out, _ = quietly(["verify", path, "--proved"])
    assert code == 0 and "proved checker: accepts, theorem value_sound" in out.splitlines()[1]
    code, out, _ = quietly(["verify", path, "--proved", "--json"])
    assert code == 0 and json.loads(out)["proved"] == {"verdict": "accepts", "theorems": ["value_sound"]}
    code, out, _ = quietly(["verify", str(ALL["walk/anytime/tied"].certificate), "--proved"])
    assert code == 0 and "proved checker: accepts, theorem learned_sound\n" in out
    code, out, err = quietly(["verify", str(ALL["point/temporal"].certificate), "--proved"])
    assert code == 1 and "proved checker: does not cover this kind: temporal formulas" in out + err
    forgery = Forgery.of(ALL["point/reach"].certificate)
    forgery["claims.0.lower"] = forgery["claims.0.upper"] = 0.9
    code, out, _ = quietly(["verify", str(forgery.save(tmp_path / "forged.cert")), "--proved", "--json"])
    assert code == 1 and json.loads(out)["proved"]["verdict"] == "refuses"


@pytest.mark.usefixtures("installed")
def test_a_program_that_is_another_one_is_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / PROGRAM
    other.write_text("#!/bin/sh\necho 'PROVED: everything'\n")
    other.chmod(0o755)
    monkeypatch.setenv(PLACE, str(other))
    code, _, err = quietly(["verify", str(ALL["point/reach"].certificate), "--proved"])
    assert code == 1 and "no answer that can be used" in err


def test_a_checker_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(ALL["point/reach"].certificate)
    monkeypatch.setenv(PLACE, str(tmp_path / "nowhere"))
    code, out, err = quietly(["verify", path, "--proved"])
    assert code == 2 and out == "" and PLACE in err and "make proved" in err
    monkeypatch.delenv(PLACE)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys.modules["tightrope.certify.verification"], "_BUILT", tmp_path / "nowhere")
    code, _, err = quietly(["verify", path, "--proved"])
    assert code == 2 and "not installed" in err and "make proved" in err
