"""Honest certificates of small problems, made by the command line as any user would make them."""

from __future__ import annotations

import atexit
import contextlib
import io
import shutil
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tightrope.cli.app import run

GAME = """mdp
module m
 s:[0..5] init 0;
 [a] s=0 -> {p}:(s'=1) + {q}:(s'=2);
 [b] s=0 -> 1/4:(s'=3) + 3/4:(s'=2);
 [a] s=1 -> {p}:(s'=3) + {q}:(s'=0);
 [b] s=1 -> 1:(s'=5);
 [a] s=2 -> {p}:(s'=0) + {q}:(s'=4);
 [a] s=3 | s=4 -> true;
 [a] s=5 -> 1:(s'=1);
endmodule
label "goal" = s=3;
label "lost" = s=4;
label "done" = s=3 | s=4;
rewards "cost"
 s<3 : 1;
 [b] true : 0.5;
endrewards
rewards "sparse"
 [a] s=0 : 2;
endrewards
rewards "prize"
 s=3 : 2.5;
endrewards
rewards "toll"
 s=0 | s=2 : 1;
endrewards
rewards "mean"
 s=1 : 1;
 s=3 : 2.5;
 s=4 : 0.25;
 s=5 : 2;
endrewards
"""
"""1 and 5 are an end component without a goal: every bound that holds there depends on a ranking."""

POINT = GAME.format(p="0.55", q="0.45")
INTERVAL = (
    GAME.format(p="[0.5,0.6]", q="[0.4,0.5]").replace("1/4:", "[0.25,0.25]:").replace("3/4:", "[0.75,0.75]:")
)
EXPLICIT = {
    "tra": "6 8 12\n0 0 1 0.55\n0 0 2 0.45\n0 1 2 0.75\n0 1 3 0.25\n1 0 0 0.45\n1 0 3 0.55\n1 1 5 1\n"
    "2 0 0 0.55\n2 0 4 0.45\n3 0 3 1\n4 0 4 1\n5 0 1 1\n",
    "lab": '0="init" 1="deadlock" 2="goal"\n0: 0\n3: 2\n',
}
"""The same game in doubles."""

WALK = """mdp
const double p;
module m
 s:[0..4] init 0;
 [a] s=0 -> p:(s'=1) + 1-p:(s'=2);
 [b] s=0 -> 1/4:(s'=3) + 3/4:(s'=2);
 [a] s=1 -> p:(s'=3) + 1-p:(s'=0);
 [a] s=2 -> p:(s'=0) + 1-p:(s'=4);
 [a] s>=3 -> true;
endmodule
label "goal" = s=3;
label "done" = s>=3;
rewards "cost"
 s<3 : 1;
endrewards
"""
"""One parameter: the value rises with it, so what nature can do is known."""

SPREAD = """mdp
const double p;
const double q;
const double r;
module m
 s:[0..4] init 0;
 [a] s=0 -> p:(s'=1) + q:(s'=2) + 1-p-q:(s'=3);
 [a] s=1 -> p*q:(s'=3) + 1-p*q:(s'=4);
 [b] s=1 -> r:(s'=3) + 1-r:(s'=4);
 [a] s=2 -> p:(s'=0) + 1-p:(s'=4);
 [a] s>=3 -> true;
endmodule
label "goal" = s=3;
"""
"""Three parameters, one of which follows from another, and a product."""

MACHINES = """mdp
module one
 x:[0..1] init 0;
 [go] x=0 -> [0.2,0.6]:(x'=1) + [0.4,0.8]:(x'=0);
 [go] x=1 -> [0.3,0.7]:(x'=0) + [0.3,0.7]:(x'=1);
endmodule
module two
 y:[0..2] init 0;
 [go] y=0 -> [0.2,0.6]:(y'=1) + [0.4,0.8]:(y'=2);
 [go] y>0 -> true;
endmodule
rewards "cost"
 x=1 : 1;
endrewards
"""
"""Commands with intervals that synchronise: nature draws for each of them within one step."""

GIVEN = """{"format": "tightrope policy", "version": 1, "model": null, "policy": [
{"state": {"s": 0}, "choice": 0}, {"state": {"s": 1}, "choice": 1}]}"""
"""A bad policy: state 1 stays in the loop."""

MIXED = """{"format": "tightrope policy", "version": 1, "model": null, "policy": [
{"state": {"s": 0}, "choices": [{"choice": 0, "probability": 0.5}, {"choice": 1, "probability": 0.5}]},
{"state": {"s": 1}, "choices": [{"choice": 0, "probability": 0.25}, {"choice": 1, "probability": 0.75}]}]}"""

ONE_CHOICE = """{"format": "tightrope policy", "version": 1, "model": null, "policy": [
{"state": {"s": 1}, "choice": 1}]}"""

WALK_DOMAIN = ("--param", "p=0.1:0.9")
SPREAD_DOMAIN = ("--domain", "p=2*r, 0.1<=p<=0.5, 0.1<=q<=0.5, r<=0.4")


@dataclass(frozen=True)
class Honest:
    """A problem, and the command line that certifies it. `files` are written beside the certificate."""

    name: str
    command: str
    model: str
    text: str
    options: tuple[str, ...]
    """What says which problem it is: `verify` takes the same."""
    method: tuple[str, ...] = ()
    """The statement that is made, and how: the certificate's own, and said in the output."""
    data: tuple[str, ...] = ()
    """The command line of `sample` that draws the data."""
    policy: str = ""
    """The text of the policy that is given, as a file."""
    is_own_log: bool = False
    """Whether the log's head is dropped, as users' logs have none: no plan is stated."""
    codes: tuple[int, ...] = (0,)
    """1 where bounds are verified but wider than was asked for."""

    def folder(self) -> Path:
        return _made(self)

    @property
    def certificate(self) -> Path:
        return self.folder() / "honest.cert"

    def binding(self) -> list[str]:
        """The options of `verify` that tie a certificate to this problem."""
        bound = ["--model", str(self.folder() / self.model), *self.options, *self.given()]
        return [*bound, "--data", str(self.folder() / "data.csv")] if self.data else bound

    def given(self) -> list[str]:
        return ["--policy", str(self.folder() / "policy.json")] if self.policy else []


def quietly(arguments: list[str]) -> tuple[int, str, str]:
    """(exit code, stdout, stderr) of a command."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(arguments)
    return code, out.getvalue(), err.getvalue()


@cache
def _root() -> Path:
    place = Path(tempfile.mkdtemp(prefix="honest-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return place


@cache
def _made(honest: Honest) -> Path:
    place = _root() / honest.name.replace("/", "-")
    place.mkdir(exist_ok=True)
    model = place / honest.model
    model.write_text(honest.text)
    if honest.model.endswith(".tra"):
        model.with_suffix(".lab").write_text(EXPLICIT["lab"])
    if honest.data:
        drawn = ["sample", str(model), *honest.data, "-o", str(place / "data.csv"), "--json"]
        code, _, err = quietly(drawn)
        assert code == 0, err
        if honest.is_own_log:
            lines = (place / "data.csv").read_text().splitlines(keepends=True)
            (place / "data.csv").write_text("".join(line for line in lines if not line.startswith("#")))
    given = ["--data", str(place / "data.csv")] if honest.data else []
    if honest.policy:
        (place / "policy.json").write_text(honest.policy)
        given += ["--policy", str(place / "policy.json")]
    arguments = [honest.command, str(model), *honest.options, *honest.method, *given]
    code, _, err = quietly([*arguments, "--certificate", str(place / "honest.cert"), "--json"])
    assert code in honest.codes, f"{honest.name}: {err}"
    return place


QUESTIONS: dict[str, tuple[str, ...]] = {
    "reach": ("--prop", '{P} [ F "goal" ]'),
    "least": ("--prop", '{Pmin} [ F "goal" ]'),
    "until": ("--prop", '{P} [ s!=2 U "goal" ]'),
    "bounded": ("--prop", '{P} [ F<=4 "goal" ]'),
    "late": ("--prop", '{P} [ F>=2 "goal" ]'),
    "window": ("--prop", '{P} [ F[2,5] "goal" ]'),
    "next": ("--prop", '{P} [ X "goal" ]'),
    "always": ("--prop", "{P} [ G s!=4 ]"),
    "cost": ("--prop", 'R{{"cost"}}{min} [ F "done" ]'),
    "most-cost": ("--prop", 'R{{"cost"}}{max} [ F "done" ]'),
    "toll": ("--prop", 'R{{"toll"}}{min} [ F "done" ]'),
    "prize": ("--prop", 'R{{"cost"}}{min} [ F "done" ]', "--terminal-reward", "prize"),
    "cumulative": ("--prop", 'R{{"cost"}}{max} [ C<=4 ]'),
    "total": ("--prop", 'R{{"sparse"}}{max} [ C ]'),
    "discounted": ("--prop", 'R{{"cost"}}{max} [ C ]', "--discount", "0.9"),
    "average": ("--prop", 'R{{"mean"}}{max} [ S ]'),
    "least-average": ("--prop", 'R{{"mean"}}{min} [ S ]'),
    "share": ("--prop", "{S} [ s=5 ]"),
    "temporal": ("--prop", '{P} [ (G F s=5) | (F ("goal" & (X s=3))) ]'),
    "rarely": ("--prop", "{Pmin} [ F G s!=5 ]"),
    "settles": ("--prop", "{Pmin} [ F (s=2 & (X s=4)) ]"),
}


def _asked(name: str, intervals: bool) -> tuple[str, ...]:
    words = {
        "P": "Pmaxmin=?" if intervals else "Pmax=?",
        "Pmin": "Pminmax=?" if intervals else "Pmin=?",
        "min": "minmax=?" if intervals else "min=?",
        "max": "maxmin=?" if intervals else "max=?",
        "S": "Smaxmin=?" if intervals else "Smax=?",
    }
    return tuple(part.format(**words) if part.startswith(("{", "R{{")) else part for part in QUESTIONS[name])


VALUES = (
    [Honest(f"point/{name}", "check", "game.prism", POINT, _asked(name, False)) for name in QUESTIONS]
    + [Honest(f"interval/{name}", "check", "game.prism", INTERVAL, _asked(name, True)) for name in QUESTIONS]
    + [
        Honest("interval/friend", "check", "game.prism", INTERVAL, ("--prop", 'Pmaxmax=? [ F "goal" ]')),
        *(
            Honest(
                f"interval/friend-{name}", "check", "game.prism", INTERVAL,
                ("--prop", f'R{{"{name}"}}minmin=? [ F "done" ]'),
            )
            for name in ("cost", "toll")
        ),
        Honest("point/given", "check", "game.prism", POINT, ("--prop", 'Pmax=? [ F "goal" ]'), policy=GIVEN),
        Honest(
            "interval/given", "check", "game.prism", INTERVAL,
            ("--prop", 'Pmaxmin=? [ F "goal" ]'), policy=GIVEN,
        ),
        Honest("point/mixed", "check", "game.prism", POINT, ("--prop", 'Pmax=? [ F "goal" ]'), policy=MIXED),
        *(
            Honest(f"factors/{name}", "check", "machines.prism", MACHINES, ("--prop", asked))
            for name, asked in (
                ("bounded", "Pmaxmax=? [ F<=2 x=1 & y=1 ]"),
                ("window", "Pmaxmin=? [ y<2 U[1,3] x=1 & y=1 ]"),
                ("late", "Pmaxmax=? [ F>=2 x=1 & y=1 ]"),
                ("cumulative", 'R{"cost"}maxmin=? [ C<=3 ]'),
            )
        ),
        Honest("plain/reach", "check", "game.tra", EXPLICIT["tra"], ("--prop", 'Pmax=? [ F "goal" ]')),
        Honest("plain/least", "check", "game.tra", EXPLICIT["tra"], ("--prop", 'Pmin=? [ F "goal" ]')),
        Honest(
            "parameter/reach", "check", "walk.prism", WALK,
            (*WALK_DOMAIN, "--at", "p=0.55", "--prop", 'Pmax=? [ F "goal" ]'),
        ),
    ]
)  # fmt: skip

DRAWN_WALK = (*WALK_DOMAIN, "--at", "p=0.55", "--generative", "40", "--seed", "1")
DRAWN_SPREAD = (*SPREAD_DOMAIN, "--at", "p=0.3,q=0.4,r=0.15", "--generative", "100", "--seed", "1")
REACH = ("--prop", 'Pmax=? [ F "goal" ]')


EPISODES = ("--episodes", "600", "--seed", "1")


def _learned(region: str, sets: str, *more: str, spread: bool = False, name: str = "") -> Honest:
    model, text, domain, drawn = (
        ("spread.prism", SPREAD, SPREAD_DOMAIN, DRAWN_SPREAD)
        if spread
        else ("walk.prism", WALK, WALK_DOMAIN, DRAWN_WALK)
    )
    if region == "slab":  # bets need batches
        drawn = (*drawn[:-4], *EPISODES)
    method = ("--region", region) if region else ()
    label = name or f"{'spread' if spread else 'walk'}/{region or 'events'}/{sets}"
    return Honest(
        label,
        "learn",
        model,
        text,
        (*domain, *REACH),
        ("--delta", "0.05", *method, "--sets", sets, *more),
        drawn,
    )


LEARNED = [
    *(_learned("", sets) for sets in ("untied", "tied")),
    *(
        _learned(region, sets)
        for region in ("polytope", "l1", "ellipsoid", "likelihood")
        for sets in ("parameter", "expression", "rectangular")
    ),
    *(
        _learned(region, "rectangular", spread=True)
        for region in ("polytope", "l1", "ellipsoid", "likelihood")
    ),
    _learned("", "tied", "--interval", "beta-binomial", name="walk/anytime/tied"),
    _learned("", "tied", "--interval", "hoeffding", name="walk/hoeffding/tied"),
    _learned("polytope", "coupled", spread=True),
    _learned("likelihood", "coupled", spread=True),
    _learned("slab", "expression"),
    _learned("slab", "rectangular", spread=True),
]

LEARNED.append(
    Honest(
        "spread/polytope/steps",
        "learn",
        "spread.prism",
        SPREAD,
        (*SPREAD_DOMAIN, "--prop", 'Pmax=? [ F<=8 "goal" ]'),
        ("--delta", "0.05", "--region", "polytope", "--sets", "coupled"),
        DRAWN_SPREAD,
        ONE_CHOICE,
    )
)
"""Coupled over steps: the robust policy depends on the step, the given one does not."""

ASKED = {
    "cost": (("--prop", 'R{"cost"}min=? [ F "done" ]'), ("polytope", "expression")),
    "most-cost": (("--prop", 'R{"cost"}max=? [ F "done" ]'), ("likelihood", "expression")),
    "discounted": (("--prop", 'R{"cost"}max=? [ C ]', "--discount", "0.9"), ("polytope", "rectangular")),
    "cumulative": (("--prop", 'R{"cost"}max=? [ C<=4 ]'), ("l1", "expression")),
    "bounded": (("--prop", 'Pmax=? [ F<=4 "goal" ]'), ("polytope", "expression")),
    "late": (("--prop", 'Pmin=? [ F>=2 "goal" ]'), ("ellipsoid", "expression")),
    "coupled-cost": (("--prop", 'R{"cost"}min=? [ F "done" ]'), ("polytope", "coupled")),
}
"""Learned results for other questions than reachability: what is asked, region and sets."""

OTHERWISE = [
    Honest(
        f"walk/{region}/{name}", "learn", "walk.prism", WALK, (*WALK_DOMAIN, *question),
        ("--delta", "0.05", "--region", region, "--sets", sets), DRAWN_WALK,
    )
    for name, (question, (region, sets)) in ASKED.items()
]  # fmt: skip
LEARNED += OTHERWISE

DOMAINS = [
    Honest(
        f"domain/{sets}", "check", "spread.prism", SPREAD,
        (*SPREAD_DOMAIN, *REACH), ("--sets", sets),
    )
    for sets in ("expression", "rectangular", "coupled")
]  # fmt: skip

REMEMBERED = [
    Honest(
        f"remembered/{sets}", "learn", "walk.prism", WALK,
        (*WALK_DOMAIN, "--prop", 'Pmax=? [ (F s=1) & (F (G "goal")) ]'),
        ("--delta", "0.05", *method, "--sets", sets), DRAWN_WALK,
    )
    for sets, method in (("tied", ()), ("rectangular", ("--region", "likelihood")))
]  # fmt: skip
"""Learned about a temporal formula: the policy has a memory."""

COSTLY = WALK.replace("const double p;", "const double p;\nconst double h;").replace("s<3 : 1;", "s<3 : h;")
COSTLY_DOMAIN = ("--param", "p=0.1:0.9,h=0:4", "--prop", 'R{"cost"}min=? [ F "done" ]')
COSTS = Honest(
    "newest/costs", "learn", "costly.prism", COSTLY, COSTLY_DOMAIN,
    ("--delta", "0.05", "--region", "polytope", "--sets", "expression", "--cost-range", "0,4"),
    (*COSTLY_DOMAIN, "--at", "p=0.55,h=1", "--episodes", "60", "--seed", "1",
     "--raw", "--states", "variables", "--costs", "two-point:0,4"),
)  # fmt: skip
RACE = WALK.replace("const double p;", "const double p;\nconst double q;")
RACE = RACE.replace("1-p:", "q/(p+q):").replace("-> p:", "-> p/(p+q):")
RACE_DOMAIN = ("--param", "p=0.1:0.9,q=0.1:0.9")
QUOTIENTS = Honest(
    "walk/polytope/quotients", "learn", "race.prism", RACE, (*RACE_DOMAIN, *REACH),
    ("--delta", "0.05", "--region", "polytope", "--sets", "expression"),
    (*RACE_DOMAIN, "--at", "p=0.3,q=0.4", "--generative", "40", "--seed", "1"),
)  # fmt: skip
SLAB_COUPLED = Honest(
    "spread/slab/coupled", "learn", "spread.prism", SPREAD, (*SPREAD_DOMAIN, *REACH),
    ("--delta", "0.05", "--region", "slab", "--sets", "coupled"), (*DRAWN_SPREAD[:-4], *EPISODES),
)  # fmt: skip
RATES = """ctmc
const double k;
module m
 s:[0..3] init 0;
 [] s=0 -> 2*k:(s'=1) + 1:(s'=2);
 [] s=1 -> 1:(s'=0) + k:(s'=3);
 [] s=2 -> 1:(s'=0) + 4:(s'=2) + 1/3:(s'=2);
 [] s=3 -> 1:(s'=3);
endmodule
label "goal" = s=3;
rewards "spent"
 s=0 : 1;
 s=1 : 2;
endrewards
"""
"""Rates, with a self-loop: jumps have other probabilities than time has shares."""
RATES_AT = ("--param", "k=0.5:2", "--at", "k=1.25")
TIMED = [
    Honest(f"newest/{name}", "check", "rates.prism", RATES, (*RATES_AT, "--prop", text))
    for name, text in (("jumps", 'P=? [ s!=2 U "goal" ]'), ("spent", 'R{"spent"}=? [ F "goal" ]'),
                       ("follows", 'P=? [ (F s=2) & (F G "goal") ]'))
]  # fmt: skip
NEWEST = [COSTS, QUOTIENTS, SLAB_COUPLED, *TIMED]

ALL = {honest.name: honest for honest in (*VALUES, *LEARNED, *DOMAINS, *REMEMBERED, *NEWEST)}
