"""Markov automata and timed automata like those of QComp, written by hand at small sizes.

Markov automata stand beside Storm, within its tolerance. Storm does not read timed automata of PRISM's
language: beside each stands the MDP of its digital clocks, written by hand, which Storm reads.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import tightrope as tr

stormpy = pytest.importorskip("stormpy")

ERLANG = """ma
const int K = 3; const double R = 2;
module erlang
  s : [0..2]; k : [0..K];
  [slow] s=0 -> (s'=1);
  [fast] s=0 -> 0.5 : (s'=1)&(k'=1) + 0.5 : (s'=1)&(k'=0);
  <> s=1 & k<K -> R : (k'=k+1);
  <> s=1 & k=K -> 1 : (s'=2);
  <> s=2 -> 1 : true;
endmodule
label "goal" = s=2;
"""
POLLING = """ma
const int N = 2;
module server
  q1 : [0..N]; q2 : [0..N]; at : [0..2];
  [one] at=0 & q1>0 -> (at'=1);
  [two] at=0 & q2>0 -> (at'=2);
  <> at=0 & q1=0 & q2=0 -> 1.5 : (q1'=1) + 0.5 : (q2'=1);
  <> at=1 & q1<N & q2<N -> 1.5 : (q1'=q1+1) + 0.5 : (q2'=q2+1) + 3 : (q1'=q1-1)&(at'=0);
  <> at=1 & q1=N & q2<N -> 0.5 : (q2'=q2+1) + 3 : (q1'=q1-1)&(at'=0);
  <> at=1 & q1<N & q2=N -> 1.5 : (q1'=q1+1) + 3 : (q1'=q1-1)&(at'=0);
  <> at=1 & q1=N & q2=N -> 3 : (q1'=q1-1)&(at'=0);
  <> at=2 & q1<N & q2<N -> 1.5 : (q1'=q1+1) + 0.5 : (q2'=q2+1) + 2 : (q2'=q2-1)&(at'=0);
  <> at=2 & q1=N & q2<N -> 0.5 : (q2'=q2+1) + 2 : (q2'=q2-1)&(at'=0);
  <> at=2 & q1<N & q2=N -> 1.5 : (q1'=q1+1) + 2 : (q2'=q2-1)&(at'=0);
  <> at=2 & q1=N & q2=N -> 2 : (q2'=q2-1)&(at'=0);
endmodule
label "goal" = q1=N & q2=N;
"""
JOBS = """ma
module jobs
  a : [0..2]; b : [0..2]; c : [0..2]; // waits, runs, is done; two processors
  [a] a=0 & (b=1?1:0)+(c=1?1:0)<2 & !(b=1&c=1) -> (a'=1);
  [b] b=0 & !(a=1&c=1) -> (b'=1);
  [c] c=0 & !(a=1&b=1) -> (c'=1);
  <> a=1 & b=1 & c!=1 -> 1 : (a'=2) + 2 : (b'=2);
  <> a=1 & c=1 & b!=1 -> 1 : (a'=2) + 3 : (c'=2);
  <> b=1 & c=1 & a!=1 -> 2 : (b'=2) + 3 : (c'=2);
  <> a=1 & b=2 & c=2 -> 1 : (a'=2);
  <> b=1 & a=2 & c=2 -> 2 : (b'=2);
  <> c=1 & a=2 & b=2 -> 3 : (c'=2);
  <> a=2 & b=2 & c=2 -> 1 : true;
endmodule
label "goal" = a=2 & b=2 & c=2;
"""
STREAM = """ma
const int N = 3;
module stream
  left : [0..N] init N; stored : [0..N]; plays : bool; at : [0..1]; broke : bool;
  [wait] at=0 & !plays & left>0 -> (at'=1);
  [play] at=0 & !plays & stored>0 -> (at'=1)&(plays'=true);
  [on] at=0 & plays -> (at'=1);
  <> at=1 & left>0 & !plays -> 1 : (left'=left-1)&(stored'=stored+1)&(at'=0);
  <> at=1 & left>0 & plays & stored>0 -> 1 : (left'=left-1)&(stored'=stored+1) + 2 : (stored'=stored-1);
  <> at=1 & left>0 & plays & stored=0 -> 1 : (broke'=true)&(plays'=false)&(left'=left-1)&(stored'=1)&(at'=0);
  <> at=1 & left=0 & plays & stored>0 -> 2 : (stored'=stored-1);
  <> at=1 & left=0 & (stored=0 | !plays) -> 1 : true;
endmodule
label "goal" = broke;
label "end" = left=0 & stored=0;
"""
CLUSTER = """ma
const int N = 2;
module workstations // of a fault-tolerant cluster: one repair unit, whose turn it is is a choice
  l : [0..N] init N; r : [0..N] init N; fix : [0..2];
  [left] fix=0 & l<N -> (fix'=1);
  [right] fix=0 & r<N -> (fix'=2);
  <> fix=0 & l=N & r=N -> 0.2 : (l'=l-1) + 0.3 : (r'=r-1);
  <> fix=1 & l>0 & r>0 -> 0.1*l : (l'=l-1) + 0.15*r : (r'=r-1) + 2 : (l'=l+1)&(fix'=0);
  <> fix=1 & l=0 & r>0 -> 0.15*r : (r'=r-1) + 2 : (l'=l+1)&(fix'=0);
  <> fix=1 & l>0 & r=0 -> 0.1*l : (l'=l-1) + 2 : (l'=l+1)&(fix'=0);
  <> fix=1 & l=0 & r=0 -> 2 : (l'=l+1)&(fix'=0);
  <> fix=2 & l>0 & r>0 -> 0.1*l : (l'=l-1) + 0.15*r : (r'=r-1) + 1 : (r'=r+1)&(fix'=0);
  <> fix=2 & l=0 & r>0 -> 0.15*r : (r'=r-1) + 1 : (r'=r+1)&(fix'=0);
  <> fix=2 & l>0 & r=0 -> 0.1*l : (l'=l-1) + 1 : (r'=r+1)&(fix'=0);
  <> fix=2 & l=0 & r=0 -> 1 : (r'=r+1)&(fix'=0);
endmodule
label "goal" = l+r<=1;
"""
TIMED, TIMES = ["Pmax=? [ F<=2 goal ]", "Pmin=? [ F<=2 goal ]"], ["Tmax=? [ F goal ]", "Tmin=? [ F goal ]"]
AVERAGES = ["LRAmax=? [ goal ]", "LRAmin=? [ goal ]"]
AUTOMATA = {
    "erlang": (ERLANG, [*TIMED, *TIMES]),
    "polling": (POLLING, [*TIMED, *TIMES, *AVERAGES]),
    "jobs": (JOBS, [*TIMED, *TIMES]),
    "stream": (STREAM, [*TIMED, "Pmax=? [ F goal ]", "Pmin=? [ F goal ]"]),
    "ftwc": (CLUSTER, [*TIMED, *TIMES, *AVERAGES]),
}


BY_EQUATIONS = {
    ("polling", "Pmin"): 0.06009243985,  # Storm: 0.06003639131, further off than its tolerance
    ("stream", "Pmax"): 0.36971927162,  # Storm: "Cannot build empty submatrix"
    ("stream", "Pmin"): 0.0,  # the same; waiting until all has arrived never breaks off
}
"""Within a time: by the differential equation of `within_time` in `benchmarks/question_battery.py`."""


@pytest.mark.thinned(2)
@pytest.mark.parametrize("family", AUTOMATA)
def test_markov_automata_beside_storm(family: str, tmp_path: Path) -> None:
    text, asked = AUTOMATA[family]
    (tmp_path / "m.prism").write_text(text)
    automaton = tr.load(tmp_path / "m.prism")
    program = stormpy.parse_prism_program(str(tmp_path / "m.prism"))
    for question in (each.replace("goal", '"goal"') for each in asked):
        value = BY_EQUATIONS.get((family, question[:4])) if "<=" in question else None
        if value is None:
            (formula,) = stormpy.parse_properties(question, program)
            built = stormpy.build_model(program, [formula])
            value = stormpy.model_checking(built, formula).get_value(built.initial_states[0])
        low, high = tr.solve(automaton, question).bounds
        assert high - low <= 1e-5 * max(1, high), question
        assert low - 1e-5 * max(1, value) <= value <= high + 1e-5 * max(1, value), (
            question,
            value,
            low,
            high,
        )


ZEROCONF = (  # a host picks an address, which is in use with 1/4, and sends two probes; replies are lost
    """pta
module host
  s : [0..3]; probes : [0..2]; x : clock;
  invariant (s=0 => x<=0) & (s=1 => x<=2) & (s=2 => x<=1) endinvariant
  [pick] s=0 -> 0.25 : (s'=1) + 0.75 : (s'=3)&(probes'=0)&(x'=0);
  [probe] s=1 & x=2 & probes<2 -> 0.9 : (s'=2)&(x'=0) + 0.1 : (probes'=probes+1)&(x'=0);
  [take] s=1 & probes=2 -> (probes'=2)&(s'=3)&(x'=0);
  [again] s=2 & x>=1 -> (s'=0)&(probes'=0)&(x'=0);
endmodule
label "wrong" = s=3 & probes=2;
label "end" = s=3;
""",
    """mdp
module host
  s : [0..3]; probes : [0..2]; x : [0..3];
  [pick] s=0 -> 0.25 : (s'=1) + 0.75 : (s'=3)&(probes'=0)&(x'=0);
  [probe] s=1 & x=2 & probes<2 -> 0.9 : (s'=2)&(x'=0) + 0.1 : (probes'=probes+1)&(x'=0);
  [take] s=1 & probes=2 -> (s'=3)&(x'=0);
  [again] s=2 & x>=1 -> (s'=0)&(probes'=0)&(x'=0);
  [time] s=1 & x<2 -> (x'=x+1);
  [time] s=2 & x<1 -> (x'=x+1);
  [time] s=3 -> (x'=min(x+1,3));
endmodule
label "wrong" = s=3 & probes=2;
label "end" = s=3;
rewards "time" [time] true : 1; endrewards
""",
)
CSMA = (  # two stations back off for 1 or 2 slots after a collision; sending takes 2
    """pta
module one
  a : [0..2]; b : [0..2]; w : [1..2]; v : [1..2]; x : clock;
  invariant (a=0 & b=0 => x<=0) & (a=1 & b=1 => x<=2) & (a=2 & b=1 => x<=2) & (a=1 & b=2 => x<=2) endinvariant
  [toss] a=0 & b=0 -> 0.25 : (a'=1)&(b'=1)&(w'=1)&(v'=1) + 0.25 : (a'=1)&(b'=1)&(w'=1)&(v'=2)
    + 0.25 : (a'=1)&(b'=1)&(w'=2)&(v'=1) + 0.25 : (a'=1)&(b'=1)&(w'=2)&(v'=2);
  [collide] a=1 & b=1 & w=v & x>=1 -> (a'=0)&(b'=0)&(x'=0);
  [first] a=1 & b=1 & w<v & x>=1 -> (a'=2)&(x'=0);
  [second] a=1 & b=1 & w>v & x>=1 -> (b'=2)&(x'=0);
  [last] (a=2 & b=1 | a=1 & b=2) & x=2 -> (a'=2)&(b'=2)&(x'=0);
endmodule
label "end" = a=2 & b=2;
""",
    """mdp
module one
  a : [0..2]; b : [0..2]; w : [1..2]; v : [1..2]; x : [0..3];
  [toss] a=0 & b=0 -> 0.25 : (a'=1)&(b'=1)&(w'=1)&(v'=1) + 0.25 : (a'=1)&(b'=1)&(w'=1)&(v'=2)
    + 0.25 : (a'=1)&(b'=1)&(w'=2)&(v'=1) + 0.25 : (a'=1)&(b'=1)&(w'=2)&(v'=2);
  [collide] a=1 & b=1 & w=v & x>=1 -> (a'=0)&(b'=0)&(x'=0);
  [first] a=1 & b=1 & w<v & x>=1 -> (a'=2)&(x'=0);
  [second] a=1 & b=1 & w>v & x>=1 -> (b'=2)&(x'=0);
  [last] (a=2 & b=1 | a=1 & b=2) & x=2 -> (a'=2)&(b'=2)&(x'=0);
  [time] a+b>0 & a+b<4 & x<2 -> (x'=x+1);
  [time] a=2 & b=2 -> (x'=min(x+1,3));
endmodule
label "end" = a=2 & b=2;
rewards "time" [time] true : 1; endrewards
""",
)
FIREWIRE = (  # both ends toss: equal coins collide after 2 to 3, others decide after 1 to 2
    """pta
module root
  s : [0..2]; x : clock;
  invariant (s=0 => x<=2) & (s=1 => x<=3) endinvariant
  [toss] s=0 & x>=1 -> 0.5 : (s'=1)&(x'=0) + 0.5 : (s'=2)&(x'=0);
  [retry] s=1 & x>=2 -> (s'=0)&(x'=0);
endmodule
label "end" = s=2;
""",
    """mdp
module root
  s : [0..2]; x : [0..4];
  [toss] s=0 & x>=1 -> 0.5 : (s'=1)&(x'=0) + 0.5 : (s'=2)&(x'=0);
  [retry] s=1 & x>=2 -> (s'=0)&(x'=0);
  [time] s=0 & x<2 | s=1 & x<3 -> (x'=x+1);
  [time] s=2 -> (x'=min(x+1,4));
endmodule
label "end" = s=2;
rewards "time" [time] true : 1; endrewards
""",
)
ASKED = ['R{"time"}max=? [ F "end" ]', 'R{"time"}min=? [ F "end" ]']
CLOCKED = {
    "zeroconf": (ZEROCONF, ['Pmax=? [ F "wrong" ]', 'Pmin=? [ F "wrong" ]', *ASKED], [4]),
    "csma": (CSMA, ['Pmin=? [ F "end" ]', *ASKED], [5]),
    "firewire": (FIREWIRE, ['Pmin=? [ F "end" ]', *ASKED], [5]),
}


@pytest.mark.thinned(2)
@pytest.mark.parametrize("family", CLOCKED)
def test_timed_automata_beside_their_digital_clocks_in_storm(family: str, tmp_path: Path) -> None:
    (timed, digital), asked, deadlines = CLOCKED[family]
    (tmp_path / "m.prism").write_text(timed)
    (tmp_path / "digital.prism").write_text(digital)
    model = tr.load(tmp_path / "m.prism").instantiate()
    program = stormpy.parse_prism_program(str(tmp_path / "digital.prism"))
    pairs = [(each, each) for each in asked]
    for end in deadlines:
        for way in ("max", "min"):
            bounded = f'P{way}=? [ F{{"time"}}<={end} "end" ]'
            pairs.append((f'P{way}=? [ F<={end} "end" ]', bounded))
    for ours, theirs in pairs:
        (formula,) = stormpy.parse_properties(theirs, program)
        built = stormpy.build_model(program, [formula])
        checked = stormpy.model_checking(built, formula, only_initial_states=True)
        value = checked.get_value(built.initial_states[0])
        low, high = tr.solve(model, ours).bounds
        assert low - 1e-5 * max(1, value) <= value <= high + 1e-5 * max(1, value), (ours, value, low, high)
