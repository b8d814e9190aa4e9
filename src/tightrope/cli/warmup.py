"""`tightrope warmup`: compile all kernels ahead, on all cores.

It runs small examples of every command, each in its own process, so every kernel is compiled for the types
of arrays that it meets later. Examples that need the same kernel wait for the first.
"""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated

import typer

from tightrope.cli.options import option
from tightrope.cli.output import common, print_json, say
from tightrope.errors import CannotCertify
from tightrope.numerics.machine import cores

ACYCLIC, CYCLIC = "bench:rover(4,4)", "bench:aircraft(4,4)"
JOINT, CAPPED = "bench:parallel(2)", "bench:glider(3,3)"
FILES = {
    "walk.prism": """mdp
module walk
  s : [0..3] init 0;
  [go] s=0 -> [0.2,0.6] : (s'=1) + [0.3,0.7] : (s'=0) + [0.05,0.2] : (s'=2);
  [go] s=1 -> [0.5,0.8] : (s'=3) + [0.2,0.5] : (s'=0);
  [no] s<2 -> 0.5 : (s'=0) + 0.5 : (s'=2);
endmodule
rewards "cost" [go] true : 1; [no] true : 2; endrewards
label "goal" = s=3;
""",
    "deep.prism": """mdp
module line
  x : [0..900] init 0;
  [go] x<900 -> 0.5 : (x'=x+1) + 0.5 : (x'=x);
  [on] x<900 -> (x'=x+1);
endmodule
module beside
  y : [0..1] init 0;
  [go] true -> 0.9 : (y'=1-y) + 0.1 : (y'=y);
endmodule
label "goal" = x=900;
""",
    "courier.prism": """mdp
const double open;
module courier
  attempt : [0..2] init 0;
  where : [0..1] init 0;
  [bridge] where=0 & attempt<2 -> open : (where'=1) + 1-open : (attempt'=attempt+1);
  [stay] where=1 | attempt=2 -> true;
endmodule
label "across" = where=1;
""",
    "counts.csv": """attempt,where,action,attempt_next,where_next,count
0,0,bridge,0,1,131
0,0,bridge,1,0,49
1,0,bridge,1,1,22
1,0,bridge,2,0,8
""",
    "dark.prism": """pomdp
observables seen endobservables
module line
  x : [0..5] init 0; seen : [0..2] init 0;
  [] seen=0 -> 1/3 : (x'=1)&(seen'=1) + 1/3 : (x'=2)&(seen'=1) + 1/3 : (x'=4)&(seen'=1);
  [up] seen=1 -> 0.8 : (x'=min(x+1,5))&(seen'=x>=4?2:1) + 0.2 : true;
  [down] seen=1 -> 0.9 : (x'=max(x-1,0)) + 0.1 : (x'=3);
  [stay] seen=2 -> true;
endmodule
rewards "steps" seen=1 : 1; endrewards
label "goal" = seen=2;
""",
    "rates.prism": """ctmc
const double r;
module machine
  s : [0..2] init 0;
  [] s=0 -> 2 : (s'=1);
  [] s=1 -> 1 : (s'=0) + r : (s'=2);
endmodule
label "goal" = s=2;
""",
}
"""Models with cycles under intervals, deep and narrow, with data in columns, seen in part, with rates."""

_TEXTS = {
    "learning": f"""
        sample {ACYCLIC} --episodes 200 -o data.parquet
        learn {ACYCLIC} --data data.parquet -o out""",
    "deep models": """check deep.prism --prop 'Pmin=? [ F "goal" ]'""",
    "cyclic models": """
        check walk.prism --prop 'Pmaxmin=? [ F "goal" ]' --certificate c
        check walk.prism --prop 'Pminmax=? [ F "goal" ]'
        check walk.prism --prop 'R{"cost"}minmax=? [ F "goal" ]'
        check walk.prism --prop 'R{"cost"}maxmin=? [ C<=5 ]'
        verify c""",
    "plans": f"""
        sample {ACYCLIC} --episodes 200 -o data.parquet
        plan {ACYCLIC} --data data.parquet --gap 5%
        sample {ACYCLIC} --generative 2 -o draws.parquet
        sample {CAPPED} --episodes 50 -o capped.parquet
        plan {CAPPED} --data capped.parquet --budget 100""",
    "rectangular sets and certificates": f"""
        sample {JOINT} --episodes 200 -o data.parquet
        learn {JOINT} --data data.parquet --certificate c --sets rectangular
        verify c""",
    "other sets": f"""
        sample {CYCLIC} --episodes 200 --raw -o data.csv
        watch {CYCLIC} --data data.csv
        learn {CYCLIC} --data data.csv --region polytope --sets all --time-limit 60""",
    "formulas": """
        check walk.prism --prop 'Pmaxmin=? [ G F "goal" ]'
        check walk.prism --prop 'Pminmax=? [ G F "goal" ]'
        check walk.prism --prop 'Pmaxmin=? [ F P>0.1 [ X "goal" ] ]'""",
    "tables of counts": """
        learn courier.prism --prop 'Pmax=? [ F "across" ]' --data counts.csv --ends complete -o out""",
    "partial observation": """
        check dark.prism --prop 'R{"steps"}min=? [ F "goal" ]' --certificate c
        check dark.prism --prop 'Pmax=? [ F<=4 "goal" ]' --certificate d
        check dark.prism --prop 'Pmin=? [ F "goal" ]'
        verify c""",
    "continuous time": """
        check rates.prism --prop 'P=? [ F<=2 "goal" ]' --param r=0.2:0.9 --at r=0.5
        check rates.prism --prop 'P=? [ F[1,2] "goal" ]' --param r=0.2:0.9 --sets expression""",
    "online": f"""
        online {ACYCLIC} --episodes 20 --sets expression
        online {CYCLIC} --episodes 20 --sets tied --region polytope""",
}
"""Neighbours have few kernels in common, and what takes long comes first."""

EXAMPLES = {name: [shlex.split(line) for line in text.strip().splitlines()] for name, text in _TEXTS.items()}


def warm_up(jobs: int | None = None) -> Iterator[tuple[str, int, int, int]]:
    """Run all examples; after each its name, how many are done, how many there are, and kernels compiled."""
    workers = jobs or cores() + 1  # some wait
    with ProcessPoolExecutor(min(workers, len(EXAMPLES)), mp_context=get_context("spawn")) as pool:
        waiting = {pool.submit(run_example, name): name for name in EXAMPLES}
        for done, future in enumerate(as_completed(waiting), start=1):
            yield waiting[future], done, len(EXAMPLES), future.result()


def run_example(name: str) -> int:
    """Run one example in its own directory; the number of kernels that were compiled."""
    from numba.core import event

    from tightrope.cli.app import run
    from tightrope.numerics.kernel_cache import is_kept

    before = os.getcwd()
    words = io.StringIO()
    with event.install_recorder("numba:compile") as compiled, tempfile.TemporaryDirectory() as folder:
        try:
            os.chdir(folder)
            for file, text in FILES.items():
                Path(file).write_text(text, encoding="utf-8")
            for command in EXAMPLES[name]:
                with contextlib.redirect_stdout(words), contextlib.redirect_stderr(words):
                    code = run(command)
                if code not in (0, 1):
                    text = f"the example 'tightrope {' '.join(command)}' failed: {words.getvalue()}"
                    raise CannotCertify(text)
        finally:
            os.chdir(before)
    return sum(entry.is_start and is_kept(entry.data["dispatcher"]) for _, entry in compiled.buffer)


def warmup(
    jobs: Annotated[
        int | None, option("--jobs", "Number of processes; default: one more than cores.", "N", min=1)
    ] = None,
) -> None:
    """Compile all kernels in advance.

    By default a kernel is compiled when it is first needed, unless the installation contains it, and stored
    in your cache directory or beside the installation. This command compiles all of them on all cores, after
    an installation or in the build of an image.

    Example: tightrope warmup
    """
    begin = time.perf_counter()
    compiled = 0
    for name, done, total, kernels in warm_up(jobs):
        compiled += kernels
        if not common.json:
            say(f"[{done}/{total}] {name}: {kernels} kernels compiled")
    seconds = time.perf_counter() - begin
    if common.json:
        print_json({"kernels": compiled, "seconds": round(seconds, 6)})
    else:
        typer.echo(f"{compiled} kernels compiled in {seconds:.1f} s")
