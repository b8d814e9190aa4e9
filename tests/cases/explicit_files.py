"""Small models as texts of PRISM's explicit format and of DRN."""

from __future__ import annotations

from pathlib import Path


def put(folder: Path, **files: str) -> Path:
    """Writes m.tra from tra="…", m1.srew from srew1="…"; returns the base name."""
    for key, text in files.items():
        suffix, number = key.rstrip("0123456789"), key.removeprefix(key.rstrip("0123456789"))
        (folder / f"m{number}.{suffix}").write_text(text, encoding="utf-8")
    return folder / "m"


MDP_TRA = "3 4 6\n0 0 1 0.5 a\n0 0 2 0.5 a\n0 1 0 1 b\n1 0 0 0.25\n1 0 2 0.75\n2 0 2 1\n"


DTMC_TRA = "2 3\n0 0 0.1\n0 1 0.9\n1 1 1\n"


LAB = '0="init" 1="deadlock" 2="goal"\n1: 0\n2: 1 2\n'


DRN = """// a comment
@type: MDP
@value_type: parametric
@parameters
p q
@placeholders
$0 : 1/2*p + 3/10
$1 : 7/10 - p/2
@reward_models
steps
@nr_states
2
@nr_choices
3
@model
state 0 [0] init
\taction go [1.5]
\t\t0 : $0
\t\t1 : $1
\taction stay [0]
\t\t0 : q
\t\t1 : 1-q
state 1 [1/4] goal
\taction __NOLABEL__ [0]
\t\t1 : 1
"""


DOUBLES = DRN.replace("parametric", "double").replace("p q\n", "\n").replace("$0 : 1/2*p + 3/10", "$0 : 0.25")


DOUBLES = DOUBLES.replace("$1 : 7/10 - p/2", "$1 : 0.75").replace(": q", ": 0.5").replace("1-q", "0.5")


STA = "(x,b)\n0:(0,true)\n1:(1,true)\n2:(2,false)\n"


SREW = "3 2\n0 1\n2 0.5\n"


TREW = "3 4 2\n0 0 1 1\n0 0 2 1\n"
