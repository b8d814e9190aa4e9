"""Time-bounded questions of continuous-time chains: our seconds beside Storm's, alternating, in one process.

Two models of the PRISM benchmark suite, written anew: a tandem queue and a workstation cluster. Both programs
are given the same explored chain; what is timed is answering alone, in seconds of the processor. Storm
answers for all states with its default precision (1e-6), and so do we, with certified bounds.

    python benchmarks/uniformisation_speed.py            # chains of 10^5 to 10^6 transitions
    python benchmarks/uniformisation_speed.py --smoke    # small ones
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import stormpy

import tightrope as tr

TANDEM = """
ctmc
const int c = {size};
module first
  x : [0..c]; ph : [1..2];
  [] x<c -> 4*c : (x'=x+1);
  [route] x>0 & ph=1 -> 1.8 : (x'=x-1);
  [] x>0 & ph=1 -> 0.2 : (ph'=2);
  [route] x>0 & ph=2 -> 2 : (ph'=1) & (x'=x-1);
endmodule
module second
  y : [0..c];
  [route] y<c -> 1 : (y'=y+1);
  [] y>0 -> 4 : (y'=y-1);
endmodule
label "goal" = x=c & y=c & ph=2;
rewards "customers" true : x+y; endrewards
"""
CLUSTER = """
ctmc
const int N = {size};
module left
  a : [0..N] init N; la : bool init true;
  [fail_a] a>0 -> a/500 : (a'=a-1);
  [fix_a] a<N -> 1 : (a'=a+1);
  [break_a] la -> 1/4000 : (la'=false);
  [mend_a] !la -> 1 : (la'=true);
endmodule
module right
  b : [0..N] init N; lb : bool init true;
  [fail_b] b>0 -> b/500 : (b'=b-1);
  [fix_b] b<N -> 1 : (b'=b+1);
  [break_b] lb -> 1/4000 : (lb'=false);
  [mend_b] !lb -> 1 : (lb'=true);
endmodule
module backbone
  up : bool init true;
  [break] up -> 1/5000 : (up'=false);
  [mend] !up -> 0.125 : (up'=true);
endmodule
module repairman
  busy : [0..5];
  [fix_a] busy=1 -> 2 : (busy'=0);
  [fix_b] busy=2 -> 2 : (busy'=0);
  [mend_a] busy=3 -> 0.25 : (busy'=0);
  [mend_b] busy=4 -> 0.25 : (busy'=0);
  [mend] busy=5 -> 1 : (busy'=0);
  [] busy=0 & a<N -> 10 : (busy'=1);
  [] busy=0 & b<N -> 10 : (busy'=2);
  [] busy=0 & !la -> 10 : (busy'=3);
  [] busy=0 & !lb -> 10 : (busy'=4);
  [] busy=0 & !up -> 10 : (busy'=5);
endmodule
label "goal" = (a<floor(3*N/4) | !la) & (b<floor(3*N/4) | !lb);
rewards "customers" true : a+b; endrewards
"""
CASES = (
    ("tandem", TANDEM, 255, "P=? [ F<=0.5 x=c ]"),
    ("tandem", TANDEM, 255, 'R{"customers"}=? [ C<=1 ]'),
    ("cluster", CLUSTER, 64, 'P=? [ F<=100 "goal" ]'),
    ("cluster", CLUSTER, 64, 'R{"customers"}=? [ I=100 ]'),
)


def measure(name: str, text: str, size: int, asked: str, rounds: int) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{name}.sm"
        file.write_text(text.format(size=size))
        program = stormpy.parse_prism_program(str(file), prism_compatibility=True)
        wanted = stormpy.parse_properties(asked, program)
        built = stormpy.build_model(program, wanted)
        chain = tr.load(str(file)).instantiate()
    ours: list[float] = []
    theirs: list[float] = []
    found, value = None, 0.0
    for _ in range(rounds):
        begin = time.process_time()
        value = float(stormpy.model_checking(built, wanted[0]).get_value(built.initial_states[0]))
        theirs.append(time.process_time() - begin)
        begin = time.process_time()
        found = tr.solve(chain, asked)
        ours.append(time.process_time() - begin)
    assert found is not None and found.bounds is not None
    return {
        "model": f"{name}({size})",
        "states": chain.states,
        "transitions": chain.transitions,
        "asked": asked,
        "steps": found.iterations,
        "lower": found.bounds[0],
        "upper": found.bounds[1],
        "status": found.status,
        "storm": value,
        "seconds": round(min(ours), 3),
        "storm_seconds": round(min(theirs), 3),
        "ratio": round(min(ours) / max(min(theirs), 1e-9), 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args()
    lines = []
    for name, text, size, asked in CASES:
        row = measure(name, text, 5 if given.smoke else size, asked, 2 if given.smoke else 3)
        lines.append(json.dumps(row))
        print(lines[-1], flush=True)
    if given.output is not None:
        given.output.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
