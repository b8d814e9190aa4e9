"""Certificates of the benchmark instances, by every region and kind of sets: written, read, verified.

    python benchmarks/certificate_battery.py                          all listed instances, by size
    python benchmarks/certificate_battery.py --results rows.jsonl     resumable: rows that are there are kept
    python benchmarks/certificate_battery.py --smoke                  one small instance
    python benchmarks/certificate_battery.py --most 20000             those of at most so many transitions
    python benchmarks/certificate_battery.py 'glider(11,9)' --only l1/coupled polytope/rectangular
    python benchmarks/certificate_battery.py --table rows.jsonl       the table of a run, in Markdown

Counts come from `--episodes` simulated trajectories under the uniform policy. Each result is learned, its
certificate written to a file, read again and verified as `tightrope verify` does; models of at most `--exact`
transitions are verified in rationals as well. Columns: CPU seconds to learn, to write and to verify,
megabytes of the file, by how much the certified interval of the robust policy is wider than the result's
(relatively).

Every combination runs in a process of its own, within `--limit` seconds and `--gigabytes` of memory; what it
had done until then is in its row. (With `--limit 0` it runs in this process, without limits.) Prints a line
for each, and leaves with status 1 where a certificate does not prove what it claims. A combination that
learning itself refuses, or that does not finish, is shown as such and is no failure.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TypeVar

from tightrope.ambiguity.sets import SetsKind
from tightrope.benchmarks.instance import Instance
from tightrope.benchmarks.suite import list_instances, load, parse_bench, question
from tightrope.certify.certificate_file import as_file
from tightrope.certify.learned import certificate_of
from tightrope.data.counts import Counts
from tightrope.data.design import find_decided_states
from tightrope.data.simulator import Simulator
from tightrope.errors import TightropeError
from tightrope.learning.learn import learn
from tightrope.learning.options import LearnOptions
from tightrope.learning.result import LearningResult
from tightrope.learning.solve import solve_over_domain
from tightrope.model.objective import Objective
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.problem import Problem
from tightrope.statistics.estimates import IntervalMethod
from tightrope_check.archive import load as load_certificate
from tightrope_check.checker import check
from tightrope_check.numbers import FLOAT64, RATIONAL
from tightrope_check.problem import Certificate

DELTA = 0.01
REGIONS = ("polytope", "l1", "likelihood", "slab", "ellipsoid")
SETS = ("parameter", "expression", "rectangular", "coupled")
SMOKE = ("aircraft(8,4)",)

T = TypeVar("T")

What = tuple[str, str, str | None]
"""Region, sets, interval method."""


@dataclass(frozen=True)
class Named:
    """What is known of one combination of an instance."""

    instance: str
    transitions: int
    region: str
    sets: str

    @property
    def name(self) -> tuple[str, str, str]:
        return self.instance, self.region, self.sets


R = TypeVar("R", bound=Named)


@dataclass(frozen=True)
class Row(Named):
    """One certificate; `valid` is None where nothing was certified, and `words` say why.

    `sets` are those asked for, and `certified` those of the result, where learning fell back to others.
    """

    certified: str = ""
    valid: bool | None = None
    learn: float | None = None
    write: float | None = None
    verify: float | None = None
    exact: float | None = None
    megabytes: float = 0.0
    gigabytes: float = 0.0
    wider: float = 0.0
    words: str = ""

    def line(self) -> str:
        verdict = {True: "valid", False: "FAILS", None: "-"}[self.valid]
        seconds = " ".join(
            f"{name} {'-' if spent is None else format(spent, '.2f'):>7}"
            for name, spent in (("learn", self.learn), ("write", self.write), ("verify", self.verify))
        )
        exact = "" if self.exact is None else f"exact {self.exact:7.2f}"
        return (
            f"{self.instance:18} {self.region:22} {self.sets:12} {verdict:6} {seconds} {exact:13} "
            f"{self.megabytes:6.2f} MB {self.gigabytes:5.2f} GB wider {self.wider:.1e} {self.words}"
        )


@dataclass(frozen=True)
class Case:
    """An instance with its question and its data."""

    name: str
    model: ParametricMDP
    objective: Objective
    counts: Counts

    @staticmethod
    def of(instance: Instance, model: ParametricMDP, episodes: int) -> Case:
        objective = question(instance, model.structure).objective
        stop, truth = find_decided_states(objective, model.states), model.instantiate(instance.truth)
        simulator = Simulator(truth, None, stop, instance.episode_cap, model.hash(), threads=1)
        return Case(instance.name, model, objective, simulator.episodes(episodes, 1))


def combinations(smoke: bool) -> Iterator[What]:
    """Every interval method once, untied and tied; every region with every kind of sets; the domain."""
    for method in IntervalMethod:
        yield "-", "untied", method.value
        yield "-", "tied", method.value
    for region in REGIONS:
        for sets in SETS:
            if (region, sets) not in (("ellipsoid", "coupled"), ("slab", "parameter")):
                yield region, sets, None
    for sets in () if smoke else ("expression", "rectangular", "coupled"):
        yield "domain", sets, None


def main() -> int:
    asked = parser(__doc__, "seconds for a combination; 0: none", 900.0).parse_args()
    if asked.table is not None:
        print(table(list(read(asked.table, Row).values())))
        return 0
    rows: list[Row] = []
    for row in each(
        asked, Row, list(combinations(asked.smoke)), lambda _, case, what: certify(case, what, asked)
    ):
        rows.append(row)
        print(row.line(), flush=True)
    failed = sum(row.valid is False for row in rows)
    done = sum(row.valid is True for row in rows)
    print(f"{done} certificates valid, {failed} failed, {len(rows) - done - failed} not made")
    return 1 if failed else 0


def parser(words: str, limited: str, limit: float, most: int | None = None) -> argparse.ArgumentParser:
    """What batteries of certificates can be asked for."""
    parser = argparse.ArgumentParser(description=words.split("\n")[0])
    parser.add_argument("instances", nargs="*")
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--only", nargs="+", metavar="REGION/SETS", help="these combinations alone")
    parser.add_argument("--episodes", type=int, default=3000)
    parser.add_argument("--most", type=int, default=most, help="leave out models of more transitions")
    parser.add_argument(
        "--exact", type=int, default=3000, help="verify in rationals up to so many transitions"
    )
    parser.add_argument("--seconds", type=float, default=60.0, help="for learning, each")
    parser.add_argument("--limit", type=float, default=limit, help=limited)
    parser.add_argument("--gigabytes", type=float, default=16.0, help="memory for a combination")
    parser.add_argument("--results", type=Path, help="append rows there, and keep those that are there")
    parser.add_argument("--table", type=Path, help="print the table of these results, and do nothing else")
    return parser


def each(
    asked: argparse.Namespace, kind: type[R], whats: list[What], make: Callable[[Instance, Case, What], R]
) -> Iterator[R]:
    """The rows of all that is asked for; those that are among the results are kept, others added."""
    known = {} if asked.results is None else read(asked.results, kind)
    for instance in _instances(asked):
        case: Case | None = None
        for what in whats:
            name = instance.name, _region_name(what), what[1]
            if asked.only and f"{name[1]}/{name[2]}" not in asked.only:
                continue
            if name in known:
                yield known[name]
                continue
            if case is None:
                size = instance.sizes.transitions if instance.sizes else load(instance).transitions
                if asked.most is not None and size > asked.most:
                    print(f"{instance.name:18} {size} transitions: left out", flush=True)
                    break
                case = Case.of(instance, load(instance), asked.episodes)
            row = make(instance, case, what)
            if asked.results is not None:
                with asked.results.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(asdict(row)) + "\n")
            yield row


def _instances(asked: argparse.Namespace) -> list[Instance]:
    """Those named, or all listed ones, the smaller ones first."""
    if asked.instances or asked.smoke:
        return [parse_bench(name) for name in asked.instances or SMOKE]
    return sorted(list_instances(), key=lambda instance: instance.sizes.transitions if instance.sizes else 0)


def _region_name(what: What) -> str:
    region, _, method = what
    return region if method is None else f"{region} {method}"


def read(path: Path, kind: type[R]) -> dict[tuple[str, str, str], R]:
    """The rows of a run by their names."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    rows = [kind(**json.loads(line)) for line in lines]
    return {row.name: row for row in rows}


def certificate(result: LearningResult, case: Case, what: What) -> Certificate:
    """That of a result of a combination."""
    return certificate_of(result) if what[0] == "domain" else certificate_of(result, case.counts)


def certify(case: Case, what: What, asked: argparse.Namespace) -> Row:
    """The row of one combination, from a process of its own that says after each step how far it got."""
    if asked.limit == 0:
        return list(_rows(case, what, asked))[-1]
    fork = multiprocessing.get_context("fork")
    receiver, sender = fork.Pipe(duplex=False)
    process = fork.Process(target=_work, args=(case, what, asked, sender))
    process.start()
    sender.close()
    row = Row(case.name, case.model.transitions, _region_name(what), what[1], words="it ended without a word")
    end = time.monotonic() + asked.limit
    try:
        while receiver.poll(max(end - time.monotonic(), 0.0)):
            row = receiver.recv()
        row = replace(row, words=f"{row.words} in {asked.limit:g} s")
    except EOFError:
        pass
    process.kill()
    process.join()
    return row


def _work(case: Case, what: What, asked: argparse.Namespace, sender: Connection) -> None:
    most = int(asked.gigabytes * 2**30)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    for row in _rows(case, what, asked):
        sender.send(row)


def _rows(case: Case, what: What, asked: argparse.Namespace) -> Iterator[Row]:
    """The row after every step, or with what kept it from being made."""
    row = Row(case.name, case.model.transitions, _region_name(what), what[1], words="did not learn")
    try:
        for done in _steps(case, what, asked, row):
            row = replace(done, gigabytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
            yield row
    except MemoryError:
        yield replace(row, words=f"{row.words} in {asked.gigabytes:g} GB")
    except TightropeError as error:
        yield replace(row, words=str(error).splitlines()[0][:80])


def _steps(case: Case, what: What, asked: argparse.Namespace, row: Row) -> Iterator[Row]:
    """The row after every step; `words` say what is missing."""
    yield row
    result, spent = _timed(lambda: _learned(case, what, asked.seconds))
    row = replace(row, learn=spent, certified=result.sets.kind.value, words="did not write")
    yield row
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "battery.cert"
        made, spent = _timed(lambda: certificate(result, case, what))
        _, saved = _timed(lambda: as_file(made).save(path))
        size = path.stat().st_size / 1e6
        row = replace(row, write=spent + saved, megabytes=size, words="did not verify")
        yield row
        verdict, spent = _timed(lambda: check(load_certificate(path).certificate, FLOAT64))
    words = "; ".join(f"{one.name}: {one.detail}" for one in verdict.checks if not one.passed)
    wider = _wider(verdict.values["robust policy"], result)
    exactly = verdict.valid and case.model.transitions <= asked.exact
    row = replace(row, valid=verdict.valid, verify=spent, wider=wider, words=words)
    yield replace(row, words="did not verify exactly") if exactly else row
    if exactly:
        again, spent = _timed(lambda: check(made, RATIONAL))
        words = "; ".join(f"exact {one.name}: {one.detail}" for one in again.checks if not one.passed)
        yield replace(row, exact=spent, valid=again.valid, words=words)


def _timed(step: Callable[[], T]) -> tuple[T, float]:
    begin = time.process_time()
    return step(), time.process_time() - begin


def _wider(certified: tuple[float, float], result: LearningResult) -> float:
    low, high = certified
    interval = result.robust.interval
    more = max(interval.lower - low, high - interval.upper if high < float("inf") else 0.0, 0.0)
    return more / max(abs(interval.upper), 1e-300) if more > 0 else 0.0


def _learned(case: Case, what: What, seconds: float) -> LearningResult:
    region, sets, method = what
    options = LearnOptions(seconds=seconds, interval=None if method is None else IntervalMethod(method))
    problem = Problem(case.model, case.objective)
    if region == "domain":
        return solve_over_domain(problem, replace(options, sets=SetsKind(sets)))
    named = None if region == "-" else region
    return learn(problem, case.counts, delta=DELTA, region=named, sets=sets, **options.words)


def table(rows: list[Row]) -> str:
    """One line per instance and region: CPU seconds to write and to verify under each kind of sets."""
    kinds = ("untied", "tied", "parameter", "expression", "rectangular", "coupled")
    lines = [
        f"| instance | transitions | from | {' | '.join(kinds)} |",
        "|---|---|---|" + "---|" * len(kinds),
    ]
    grouped: dict[tuple[str, int, str], dict[str, Row]] = {}
    for row in sorted(rows, key=lambda row: row.transitions):
        grouped.setdefault((row.instance, row.transitions, row.region), {})[row.sets] = row
    for (instance, transitions, region), found in grouped.items():
        cells = [_cell(found[kind]) if kind in found else "" for kind in kinds]
        lines.append(f"| {instance} | {transitions:,} | {region.removeprefix('- ')} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(row: Row) -> str:
    """Seconds to write / to verify / exactly, and by how much the certified interval is wider."""
    if row.valid is None:
        return row.words if row.write is None else f"{row.write:.1f} / {row.words}"
    verdict = f"{row.write:.1f} / {row.verify:.1f}" if row.valid else "REFUSED"
    exact = "" if row.exact is None else f" / {row.exact:.1f}"
    wider = "" if row.wider < 1e-8 else f", +{row.wider:.0e}"
    return f"{verdict}{exact}{wider}"


if __name__ == "__main__":
    sys.exit(main())
