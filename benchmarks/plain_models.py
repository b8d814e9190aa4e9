"""Ordinary Markov chains and decision processes: built and checked by tightrope beside Storm's sound mode.

    python benchmarks/plain_models.py             13 questions at full size, 10^5 to 10^7 transitions
    python benchmarks/plain_models.py --large     and three more about models of 10^7 transitions each
    python benchmarks/plain_models.py crowds …    some of them
    python benchmarks/plain_models.py --smoke     all models at a small size, in seconds
    python benchmarks/plain_models.py --document docs/results
                                                  part of docs/results/solving.md, from rows recorded last;
                                                  with --before FILE beside rows of an earlier version

The PRISM files in `benchmarks/plain` are written after published descriptions, which each one names. Both
tools read the same file and answer the same question at relative precision 1e-6 with one thread; Storm with
`force_soundness`. Every run is a process of its own and the tools take turns, three each, of which the best
counts: a shared machine is fast in one minute and slow in the next. `build` is from the text to the model,
`check` from the model to the value, in CPU seconds, after small instances have been through both, so that
loading code counts as start-up; `MB` is the most memory that the whole process held. `start-up` is the CPU
time of a process that does nothing but answer a question about the tiny model.

Prints a table and writes the rows as JSON (default: bench-results/plain_models.json). Leaves with status 1
where the tools disagree.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "plain"
PRECISION = 1e-6
TURNS = 3
TOOLS = ("tightrope", "storm")
BEGIN, END = "<!-- plain models: begin -->", "<!-- plain models: end -->"

Row = dict[str, object]


@dataclass(frozen=True)
class Case:
    """A question about a file of `benchmarks/plain`, at full size and at a small one."""

    name: str
    property: str
    file: str
    constants: str = ""
    small_file: str = ""
    small_constants: str = ""

    def at(self, small: bool) -> tuple[Path, str, str]:
        """File, constants and property."""
        file = (self.small_file or self.file) if small else self.file
        return FOLDER / f"{file}.prism", self.small_constants if small else self.constants, self.property


CASES = (
    Case("leader", 'P=? [ F "elected" ]', "leader_6_8", "", "leader_4_3"),
    Case("leader-rounds", 'R{"rounds"}=? [ F "elected" ]', "leader_6_8", "", "leader_4_3"),
    Case("crowds", 'P=? [ F "observed" ]', "crowds_10", "R=20", "", "R=3"),
    Case("consensus", 'Pmin=? [ F "all_heads" ]', "consensus_6", "K=2", "consensus_2", "K=2"),
    Case("philosophers", 'Pmax=? [ F "eat" ]', "philosophers_6", "", "philosophers_3"),
    Case("herman", 'R=? [ F "stable" ]', "herman_13", "", "herman_7"),
    Case("tokens", 'Rmax=? [ F "stable" ]', "tokens_18", "", "tokens_6"),
    Case("csma", 'Rmin=? [ F "all_sent" ]', "csma_4_3", "T=8", "csma_2_2", "T=3"),
    Case("retransmission", "P=? [ F s=5 ]", "retransmission", "N=1000,M=100", "", "N=16,M=2"),
    Case("tandem", 'P=? [ F "overflow" ]', "tandem", "N=60", "", "N=6"),
    Case("zeroconf", 'Pmax=? [ F "wrong" ]', "zeroconf", "K=100,T=200", "", "K=2,T=3"),
    Case("exclusion", 'Pmax=? [ !"critical" U "all_lost" ]', "mutual_exclusion_6", "", "mutual_exclusion_3"),
    Case("nand", 'P=? [ F "reliable" ]', "nand", "N=30,K=2", "", "N=5,K=1"),
)
LARGE = (
    Case("coupons", 'R{"days"}=? [ F "all" ]', "coupons_20", "", "coupons_5"),
    Case("pig", 'Pmax=? [ F "won" ]', "pig", "goal=157", "", "goal=20"),
    Case("epidemic", 'P=? [ F "large" ]', "epidemic", "N=3200", "", "N=40"),
)
"""About 10^7 transitions each."""
TINY = CASES[3]
"""What warms a process up, and what start-up is measured on."""


def with_tightrope(path: Path, constants: str, asked: str) -> Row:
    from tightrope.cli.options import SubjectOptions
    from tightrope.cli.sources import Question
    from tightrope.model.parametric_mdp import ParametricMDP
    from tightrope.solver.solve import solve

    begin = time.process_time()
    question = Question.of(
        SubjectOptions(model=str(path), const=[constants] if constants else None, prop=asked)
    )
    loaded = question.load(question.boundary)
    built = loaded.model
    assert isinstance(built, ParametricMDP)
    model = built.instantiate(())
    query = question.queries(loaded)[0]
    build = time.process_time() - begin
    begin = time.process_time()
    solution = solve(model, query.objective, precision=PRECISION, threads=1)
    check = time.process_time() - begin
    assert solution.is_certified, solution.status
    return {
        "states": model.structure.states,
        "transitions": model.transitions,
        "build": build,
        "check": check,
        "lower": float(solution.lower[model.initial]),
        "upper": float(solution.upper[model.initial]),
    }


def with_storm(path: Path, constants: str, asked: str) -> Row:
    import stormpy

    begin = time.process_time()
    program = stormpy.parse_prism_program(str(path))
    if constants:
        program, _ = stormpy.instantiate_constants(program, constants)
    properties = stormpy.parse_properties(asked, program)
    model = stormpy.build_model(program, properties)
    build = time.process_time() - begin
    begin = time.process_time()
    environment = stormpy.Environment()
    environment.solver().force_soundness = True
    found = stormpy.model_checking(model, properties[0], environment=environment)
    check = time.process_time() - begin
    return {
        "states": model.nr_states,
        "transitions": model.nr_transitions,
        "build": build,
        "check": check,
        "value": found.get_value(model.initial_states[0]),
    }


RUN = {"tightrope": with_tightrope, "storm": with_storm}


def measure(tool: str, name: str, small: bool) -> Row:
    """One run in this process, after small ones; the memory is that of the whole process."""
    run = RUN[tool]
    run(*TINY.at(True))
    if not small:
        run(*case(name).at(True))
    row = run(*case(name).at(small))
    return row | {"memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def apart(*arguments: str) -> tuple[Row, float]:
    """What this file prints when called so, and the CPU seconds of that process."""
    before = os.times()
    finished = subprocess.run(
        [sys.executable, __file__, *arguments], capture_output=True, text=True, check=False
    )
    after = os.times()
    if finished.returncode != 0:
        sys.exit(f"{' '.join(arguments)} failed:\n{finished.stderr}")
    seconds = after.children_user + after.children_system - before.children_user - before.children_system
    lines = finished.stdout.splitlines()
    return (json.loads(lines[-1]) if lines else {}), seconds


def compare(names: Sequence[str], small: bool, turns: int) -> list[Row]:
    """A row per case and tool: the best of their turns, column by column.

    At the small size only the first case has processes of its own."""
    rows: list[Row] = []
    for name in names:
        runs: dict[str, list[Row]] = {tool: [] for tool in TOOLS}
        for _ in range(turns):
            for tool in TOOLS:
                if small and name != names[0]:
                    runs[tool].append(measure(tool, name, small))
                else:
                    runs[tool].append(apart("--here", tool, name, "small" if small else "full")[0])
        for tool in TOOLS:
            best = runs[tool][0] | {
                column: min(number(run, column) for run in runs[tool])
                for column in ("build", "check", "memory")
            }
            rows.append({"model": name, "tool": tool} | best)
        add_ratios(*rows[-2:])
        show(rows[-2:])
    return rows


def add_ratios(ours: Row, storm: Row) -> None:
    """How many times as fast tightrope is, and how many times Storm's memory it takes. What takes less than
    the clock shows took a microsecond."""
    for name, parts in {"build": ["build"], "check": ["check"], "both": ["build", "check"]}.items():
        theirs, own = (max(sum(number(row, part) for part in parts), 1e-6) for row in (storm, ours))
        ours[f"{name}_ratio"] = theirs / own
    ours["memory_ratio"] = number(ours, "memory") / number(storm, "memory")


def start_up(turns: int) -> Row:
    """CPU seconds of a process that checks the tiny model and nothing else, per tool."""
    best = {tool: min(apart("--start", tool)[1] for _ in range(turns)) for tool in TOOLS}
    return {"model": "start-up", "turns": turns, **best}


def start(tool: str) -> None:
    path, constants, asked = TINY.at(True)
    if tool == "storm":
        with_storm(path, constants, asked)
        return
    from tightrope.cli.app import main as command

    sys.argv = ["tightrope", "check", str(path), "--prop", asked, "--const", constants, "--json"]
    command()


def disagreements(rows: Sequence[Row]) -> list[str]:
    """Cases in which Storm's value lies outside the certified bounds by more than the precision of both."""
    found = []
    for ours, storm in zip(rows[::2], rows[1::2], strict=True):
        value, lower, upper = number(storm, "value"), number(ours, "lower"), number(ours, "upper")
        if not lower * (1 - 2 * PRECISION) <= value <= upper * (1 + 2 * PRECISION):
            found.append(f"{ours['model']}: Storm says {value}, the bounds are [{lower}, {upper}]")
    return found


def number(row: Row, column: str) -> float:
    return float(str(row[column]))


def case(name: str) -> Case:
    return next(case for case in (*CASES, *LARGE) if case.name == name)


HEAD = (
    "model",
    "tool",
    "transitions",
    "build s",
    "check s",
    "MB",
    "build",
    "check",
    "both",
    "memory",
    "value",
)


def cells(row: Row) -> list[str]:
    value = f"{row['value']:.9g}" if "value" in row else f"[{row['lower']:.9g}, {row['upper']:.9g}]"
    ratios = [
        f"{number(row, name):.2g}×" if name in row else ""
        for name in ("build_ratio", "check_ratio", "both_ratio", "memory_ratio")
    ]
    return [
        str(row["model"]),
        str(row["tool"]),
        f"{row['transitions']:,}",
        f"{number(row, 'build'):.2f}",
        f"{number(row, 'check'):.3f}",
        f"{number(row, 'memory'):.0f}",
        *ratios,
        value,
    ]


def show(rows: Sequence[Row]) -> None:
    for row in rows:
        name, tool, *middle, value = cells(row)
        print(f"{name:<15} {tool:<10}", *(f"{cell:>10}" for cell in middle), value, flush=True)


def document(rows: Sequence[Row], start_row: Row, folder: Path, before: Sequence[Row] = ()) -> None:
    """The part of docs/results/solving.md about plain models, between its marks; `before` are rows of an
    earlier version."""
    lines = [
        BEGIN,
        "## Plain models",
        "",
        "`python benchmarks/plain_models.py --document docs/results` wrote this part from recorded rows. The",
        "models are ordinary Markov chains and decision processes from the literature (`benchmarks/plain`),",
        "built and checked at relative precision 1e-6. Storm runs in its sound mode. CPU seconds count after",
        "a small instance has been built and checked in the same process; memory is the peak of the process.",
        f"The tools ran in turn, {start_row['turns']} time(s) each, and the best run counts. `build`,",
        "`check` and `both` state how many times as fast as Storm tightrope is; `memory` is in multiples of",
        "Storm's.",
        "The numbers of transitions differ where the tools stop exploring at different states.",
        *([str(start_row["note"])] if "note" in start_row else []),
        "",
        f"| {' | '.join(HEAD)} |",
        "|" + "---|" * len(HEAD),
        *(f"| {' | '.join(cells(row))} |" for row in rows),
        "",
        f"A `check` of a tiny model as a process takes {number(start_row, 'tightrope'):.2f} CPU seconds, "
        f"the same with stormpy {number(start_row, 'storm'):.2f}.",
        *changes(rows, start_row, before),
        END,
    ]
    page = folder / "solving.md"
    text = page.read_text(encoding="utf-8")
    head, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    page.write_text(head.rstrip("\n") + "\n\n" + "\n".join(lines) + (after or "\n"), encoding="utf-8")


def changes(rows: Sequence[Row], start_row: Row, before: Sequence[Row]) -> list[str]:
    """A table of what tightrope took before and now, for the models in both."""
    earlier = {row["model"]: row for row in before if row.get("tool") == "tightrope"}
    start_before = next((row for row in before if row["model"] == "start-up"), None)
    both = [
        (earlier[row["model"]], row) for row in rows if row["tool"] == "tightrope" and row["model"] in earlier
    ]
    if not both:
        return []
    lines = ["", "What tightrope took before this version and takes now:", ""]
    lines += ["| model | build s | check s | MB |", "|---|---|---|---|"]
    for old, new in both:
        parts = (("build", ".2f"), ("check", ".3f"), ("memory", ".0f"))
        cells = [f"{number(old, name):{shape}} → {number(new, name):{shape}}" for name, shape in parts]
        lines.append(f"| {new['model']} | {' | '.join(cells)} |")
    if start_before is not None:
        lines += [
            "",
            f"Start-up: {number(start_before, 'tightrope'):.2f} → {number(start_row, 'tightrope'):.2f}",
        ]
        lines[-1] += " CPU seconds."
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("models", nargs="*", help="names; all without")
    parser.add_argument("--smoke", action="store_true", help="small sizes, one turn")
    parser.add_argument("--large", action="store_true", help="models of 10^7 transitions as well")
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--json", type=Path, default=Path("bench-results/plain_models.json"))
    parser.add_argument("--document", type=Path, metavar="DOCS", help="write the page, run nothing")
    parser.add_argument(
        "--before", type=Path, metavar="FILE", help="rows of an earlier version, for the page"
    )
    parser.add_argument("--here", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--start", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        tool, name, size = options.here
        print(json.dumps(measure(tool, name, size == "small")))
        return
    if options.start:
        start(options.start)
        return
    if options.document:
        recorded = json.loads(options.json.read_text(encoding="utf-8"))
        before = json.loads(options.before.read_text(encoding="utf-8")) if options.before else []
        document(recorded[:-1], recorded[-1], options.document, before)
        return
    print(f"{HEAD[0]:<15} {HEAD[1]:<10}", *(f"{name:>10}" for name in HEAD[2:-1]), HEAD[-1])
    turns = 1 if options.smoke else options.turns
    chosen = (*CASES, *LARGE) if options.large else CASES
    rows = compare(options.models or [case.name for case in chosen], options.smoke, turns)
    begin = start_up(turns)
    print(f"start-up: tightrope {begin['tightrope']:.2f} CPU s, stormpy {begin['storm']:.2f}")
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps([*rows, begin], indent=1) + "\n", encoding="utf-8")
    if faults := disagreements(rows):
        sys.exit("\n".join(faults))


if __name__ == "__main__":
    main()
