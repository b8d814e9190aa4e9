"""Questions that touch little of a very large model: `tightrope check` beside Storm.

    python benchmarks/large_models.py             dining philosophers with 10 and 20 seats, Rabin's mutual
                                                  exclusion with 5 and 10 processes
    python benchmarks/large_models.py --smoke     with 3 and 4 of them, Storm's explicit engine alone
    python benchmarks/large_models.py --no-storm  tightrope alone

Every answer is a process of its own. `CPU s` is all of it, start included, `MB` the most memory that it held,
`states` how many were built. Storm runs with its explicit engine (`sparse`) and with decision diagrams
(`dd`), each with at most a minute of CPU time and 8 GB of address space: what needs more is `-`.

The models are written after their publications: Lehmann and Rabin, "On the advantages of free choice" (1981);
Rabin, "N-process mutual exclusion with bounded waiting by 4 log N-valued shared variable" (1982). Prints a
table and writes the rows as JSON (default: bench-results/large_models.json). Leaves with status 1 where the
tools disagree, or where tightrope takes more than 10 CPU seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

SECONDS, BYTES = 60, 8 << 30
MOST_SECONDS = 10.0
TICKETS = 6

Row = dict[str, object]


def philosophers(seats: int) -> str:
    """Whoever is hungry draws which fork to take first, and puts it down if the other is not free.

    0 thinks, 1 draws, 2/3 wants left/right, 4/5 has one, 6/7 puts it down, 8 has both, 9 eats, 10/11 has put
    one down. The fork between two is theirs to hold: each reads the other's place.
    """
    left, right = "p2<=4 | p2=6 | p2=10", f"p{seats}<=3 | p{seats}=5 | p{seats}=7 | p{seats}=11"
    moves = [
        "p1=0 -> true",
        "p1=0 -> (p1'=1)",
        "p1=1 -> 1/2 : (p1'=2) + 1/2 : (p1'=3)",
        *(f"p1={at} & ({free}) -> (p1'={to})" for at, free, to in _grabs(left, right)),
        *(f"p1={at} & !({free}) -> (p1'={to})" for at, free, to in _fails(left, right)),
        *(
            f"p1={at} -> (p1'={to})"
            for at, to in ((6, 1), (7, 1), (8, 9), (9, 10), (9, 11), (10, 0), (11, 0))
        ),
    ]
    first = ["module seat1", "  p1 : [0..11] init 0;", *(f"  [] {move};" for move in moves), "endmodule"]
    others = [
        f"module seat{i} = seat1 [p1=p{i}, p2=p{i % seats + 1}, p{seats}=p{i - 1}] endmodule"
        for i in range(2, seats + 1)
    ]
    eats = " | ".join(f"(p{i}=8 | p{i}=9)" for i in range(1, seats + 1))
    rewards = 'rewards "moves"\n  true : 1;\nendrewards\n'
    return "\n".join(["mdp", *first, *others, f'label "done" = {eats};', rewards])


def _grabs(left: str, right: str) -> tuple[tuple[int, str, int], ...]:
    return (2, left, 4), (3, right, 5), (4, right, 8), (5, left, 8)


def _fails(left: str, right: str) -> tuple[tuple[int, str, int], ...]:
    return (2, left, 2), (3, right, 3), (4, right, 6), (5, left, 7)


def exclusion(processes: int) -> str:
    """Whoever tries draws a ticket, once a round, in two steps in which nobody else moves; the best one
    enters when nobody is inside, and draws the number of the next round."""
    quiet = " & ".join(f"d{i}=0" for i in range(2, processes + 1))
    tickets = " + ".join(
        f"1/{2 ** min(k, TICKETS - 1)} : (best'=max(best,{k})) & (t1'={k}) & (r1'=round) & (d1'=0)"
        for k in range(1, TICKETS + 1)
    )
    enters = "(inside'=true) & (best'=0) & (s1'=2) & (t1'=0) & (r1'=0)"
    moves = [
        f"{quiet} & s1=0 -> true",
        f"{quiet} & s1=0 -> (s1'=1)",
        f"{quiet} & s1=1 & (best<t1 | round!=r1) & d1=0 -> (d1'=1)",
        f"d1=1 -> {tickets}",
        f"{quiet} & s1=1 & best=t1 & round=r1 & !inside -> "
        f"1/2 : {enters} & (round'=1) + 1/2 : {enters} & (round'=2)",
        f"{quiet} & s1=1 & round=r1 & (best>t1 | best=t1 & inside) -> true",
        f"{quiet} & s1=2 -> (s1'=0) & (inside'=false)",
    ]
    shared = "global inside : bool init false;\nglobal round : [1..2] init 1;\n"
    shared += f"global best : [0..{TICKETS}] init 0;"
    places = (
        f"  s1 : [0..2] init 0;\n  t1 : [0..{TICKETS}] init 0;\n  r1 : [0..2] init 0;\n  d1 : [0..1] init 0;"
    )
    first = ["module process1", places, *(f"  [] {move};" for move in moves), "endmodule"]
    others = [
        f"module process{i} = process1 [s1=s{i}, t1=t{i}, r1=r{i}, d1=d{i}, d{i}=d1] endmodule"
        for i in range(2, processes + 1)
    ]
    inside = " | ".join(f"s{i}=2" for i in range(1, processes + 1))
    rewards = 'rewards "moves"\n  true : 1;\nendrewards\n'
    return "\n".join(["mdp", shared, *first, *others, f'label "done" = {inside};', rewards])


MODELS = {"philosophers": philosophers, "exclusion": exclusion}
SIZES = {"philosophers": (10, 20), "exclusion": (5, 10)}
SMALL = {"philosophers": (3, 4), "exclusion": (3, 4)}
QUESTIONS = (
    'Pmax=? [ F "done" ]',
    'Pmin=? [ F "done" ]',
    'Pmax=? [ F<=4 "done" ]',
    'R{"moves"}min=? [ F "done" ]',
)

STORM = """
import sys, stormpy
file, asked, engine = sys.argv[1:]
program = stormpy.parse_prism_program(file)
properties = stormpy.parse_properties(asked, program)
build = stormpy.build_symbolic_model if engine == "dd" else stormpy.build_model
model = build(program, properties)
found = stormpy.model_checking(model, properties[0], only_initial_states=True)
value = found.min if engine == "dd" else found.get_value(model.initial_states[0])
print(model.nr_states, float(value))
"""


def measured(command: list[str]) -> tuple[str, float, float]:
    """What a process printed, its CPU seconds and its megabytes; nothing where it exceeded a limit."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))

    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL, preexec_fn=limit)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        text = out.read() if process.returncode == 0 else ""
    return text, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def answers(path: Path, asked: str, engines: tuple[str, ...]) -> list[Row]:
    """A row per tool."""
    command = [sys.executable, "-m", "tightrope", "check", str(path), "--prop", asked, "--json"]
    text, seconds, megabytes = measured(command)
    found = json.loads(text) if text else None
    rows: list[Row] = [{"tool": "tightrope", "seconds": seconds, "megabytes": megabytes}]
    if found is not None:
        rows[0] |= {"states": found["built"]["states"], "value": [found["lower"], found["upper"]]}
    for engine in engines:
        text, seconds, megabytes = measured([sys.executable, "-c", STORM, str(path), asked, engine])
        row: Row = {"tool": f"storm {engine}", "seconds": seconds, "megabytes": megabytes}
        if text:
            states, value = text.split()
            row |= {"states": int(states), "value": [float(value)]}
        rows.append(row)
    return rows


def faults(rows: list[Row]) -> list[str]:
    """Of the rows of one question: values apart, no answer, or one that took long."""
    ours, *others = rows
    if "value" not in ours or float(str(ours["seconds"])) > MOST_SECONDS:
        return [f"tightrope took {ours['seconds']:.1f} CPU s, more than {MOST_SECONDS:g}"]
    lower, upper = (float(end) for end in list(ours["value"]))  # type: ignore[call-overload]
    found = []
    for row in others:
        if "value" in row:
            (value,) = row["value"]  # type: ignore[attr-defined]
            if not lower * (1 - 2e-6) <= value <= upper * (1 + 2e-6):
                found.append(f"{row['tool']} says {value}, the bounds are [{lower}, {upper}]")
    return found


def show(name: str, asked: str, rows: list[Row]) -> None:
    for row in rows:
        states = f"{row['states']:,}" if "states" in row else "-"
        value = ", ".join(f"{end:.6g}" for end in row["value"]) if "value" in row else "-"  # type: ignore[attr-defined]
        print(
            f"{name:<17} {asked:<30} {row['tool']:<13} {row['seconds']:>7.2f} {row['megabytes']:>6.0f}"
            f" {states:>13}  {value}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--smoke", action="store_true", help="small sizes, Storm's explicit engine alone")
    parser.add_argument("--no-storm", action="store_true", help="tightrope alone")
    parser.add_argument("--json", type=Path, default=Path("bench-results/large_models.json"))
    options = parser.parse_args()
    engines = () if options.no_storm else ("sparse",) if options.smoke else ("sparse", "dd")
    print(f"{'model':<17} {'question':<30} {'tool':<13} {'CPU s':>7} {'MB':>6} {'states':>13}  value")
    recorded, wrong = [], []
    with tempfile.TemporaryDirectory() as folder:
        for model, sizes in (SMALL if options.smoke else SIZES).items():
            for size in sizes:
                name = f"{model}.{size}"
                path = Path(folder) / f"{name}.prism"
                path.write_text(MODELS[model](size), encoding="utf-8")
                for asked in QUESTIONS[: 1 if options.smoke else None]:
                    rows = answers(path, asked, engines)
                    show(name, asked, rows)
                    recorded += [{"model": name, "property": asked} | row for row in rows]
                    wrong += [f"{name}, {asked}: {fault}" for fault in faults(rows)]
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(recorded, indent=1) + "\n", encoding="utf-8")
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
