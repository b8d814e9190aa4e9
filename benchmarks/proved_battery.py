"""Certificates of the benchmark instances before the proved checker: which it covers, and its CPU seconds.

    python benchmarks/proved_battery.py                          instances of at most 120,000 transitions
    python benchmarks/proved_battery.py --results rows.jsonl     resumable: rows that are there are kept
    python benchmarks/proved_battery.py --smoke                  one small instance, three combinations
    python benchmarks/proved_battery.py 'glider(11,9)' --only polytope/rectangular value/free
    python benchmarks/proved_battery.py --only default/learn default/compare default/improve
    python benchmarks/proved_battery.py --table rows.jsonl       the table of a run, in Markdown

Rows `default` are of what `learn`, `compare` (the robust policy with the uniform one) and `improve` write
without options; their words name what the certificate rests on, and what the checker says of it. Data,
regions and sets are those of `certificate_battery.py`; `value/free` is the certificate of the optimal value
at the true parameters. Every certificate is given to the proved checker (built by `make proved`;
`docs/results/proved.md`), and where it is covered to `verify`, up to `--exact` transitions in rationals as
well. Leaves with status 1 where one accepts what the other refuses, or where a certificate that is covered is
refused.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import certificate_battery as battery
from tightrope.benchmarks.instance import Instance
from tightrope.certify.certificate_file import as_file
from tightrope.certify.certify import certificate_of_difference, certify
from tightrope.certify.learned import certificate_of
from tightrope.certify.verification import ask_proved_checker
from tightrope.errors import TightropeError
from tightrope.learning.compare import compare, improve
from tightrope.learning.learn import learn
from tightrope.learning.result import LearningResult
from tightrope.problem import Problem
from tightrope_check.archive import load as load_certificate
from tightrope_check.checker import check
from tightrope_check.numbers import FLOAT64, RATIONAL
from tightrope_check.problem import Certificate

VALUE = "value", "free", None
DEFAULTS = tuple(("default", command, None) for command in ("learn", "compare", "improve"))
SMOKE = VALUE, ("polytope", "rectangular", None), ("likelihood", "expression", None)
SIGNS = {"accepts": "", "refuses": "REFUSED", "does not cover": "not covered"}


@dataclass(frozen=True)
class Row(battery.Named):
    """`proved`: accepts, refuses or does not cover; `verify` and `exact`: whether Python's checker accepts,
    None where it was not asked; `words`: why there is no certificate, or why it is not accepted."""

    proved: str = ""
    seconds: float = 0.0
    verify: bool | None = None
    exact: bool | None = None
    words: str = ""

    @property
    def agrees(self) -> bool:
        """A kind that is not covered says nothing."""
        judged = self.verify if self.exact is None else self.exact
        return self.proved in ("", "does not cover") or judged == (self.proved == "accepts")

    def line(self) -> str:
        verdict = self.proved or "no certificate"
        same = "" if self.agrees else "DISAGREES"
        name = f"{self.instance:18} {self.region:20} {self.sets:12}"
        return f"{name} {verdict:15} {self.seconds:7.2f} s {same} {self.words}"


def main() -> int:
    asked = battery.parser(__doc__, "seconds for the proved checker, each", 600.0, 120_000).parse_args()
    if asked.table is not None:
        print(table(list(battery.read(asked.table, Row).values())))
        return 0
    rows: list[Row] = []
    whats = list(SMOKE if asked.smoke else (VALUE, *DEFAULTS, *battery.combinations(False)))
    for row in battery.each(asked, Row, whats, lambda *what: judge(*what, asked)):
        rows.append(row)
        print(row.line(), flush=True)
    covered = sum(row.proved in ("accepts", "refuses") for row in rows)
    bad = [row for row in rows if not row.agrees or row.proved == "refuses"]
    print(
        f"{len(rows)} combinations, {covered} covered, {len(bad)} refused or judged otherwise than by verify"
    )
    return 1 if bad else 0


def judge(instance: Instance, case: battery.Case, what: battery.What, asked: argparse.Namespace) -> Row:
    """One certificate, before all checkers."""
    named = case.name, case.model.transitions, battery._region_name(what), what[1]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "battery.cert"
        try:
            if what == VALUE:
                certify(Problem(case.model, case.objective), path, at=instance.truth)
            else:
                as_file(_certificate(case, what, asked.seconds)).save(path)
            read = load_certificate(path)
            begun = resource.getrusage(resource.RUSAGE_CHILDREN)
            answer = ask_proved_checker(path, read.digest, asked.limit)
            ended = resource.getrusage(resource.RUSAGE_CHILDREN)
            spent = ended.ru_utime + ended.ru_stime - begun.ru_utime - begun.ru_stime
        except TightropeError as error:
            return Row(*named, words=str(error).splitlines()[0][:80])
        verify = exact = None
        if answer.verdict != "does not cover":
            verify = check(read.certificate, FLOAT64).valid
            exact = check(read.certificate, RATIONAL).valid if case.model.transitions <= asked.exact else None
    words = f"{_rests_on(read.certificate)}: {answer.words}" if what in DEFAULTS else answer.words
    return Row(*named, proved=answer.verdict, seconds=spent, verify=verify, exact=exact, words=words)


def _certificate(case: battery.Case, what: battery.What, seconds: float) -> Certificate:
    """What a combination, or a command without options, proves."""
    if what not in DEFAULTS:
        return battery.certificate(battery._learned(case, what, seconds), case, what)
    problem, counts, delta = Problem(case.model, case.objective), case.counts, battery.DELTA
    if what[1] == "improve":
        return certificate_of_difference(improve(problem, counts, delta=delta, seconds=seconds))
    result = learn(problem, counts, delta=delta, seconds=seconds)
    assert isinstance(result, LearningResult)
    if what[1] == "learn":
        return certificate_of(result, counts)
    policy = result.robust.policy
    return certificate_of_difference(compare(problem, counts, policy, delta=delta, seconds=seconds))


def _rests_on(certificate: Certificate) -> str:
    """The method of the data, and what else there is to be proved."""
    data, hints = certificate.problem.data, certificate.learned
    assert data is not None
    parts = {
        "coupled values": hints is not None and bool(hints.coupled),
        "a difference": any(claim.policy == "pair" for claim in certificate.claims),
        "outcomes of episodes": data.seen is not None,
        "an automaton": certificate.problem.automaton is not None,
    }
    return ", ".join([data.method, *(name for name, there in parts.items() if there)])


def table(rows: list[Row]) -> str:
    """One line per instance; seconds of the proved checker in every combination that some instance covers."""
    covered = [row for row in rows if row.proved in ("accepts", "refuses")]
    columns = list(dict.fromkeys((row.region, row.sets) for row in covered))
    heads = [f"{region.removeprefix('- ')}, {sets}" for region, sets in columns]
    lines = [f"| instance | transitions | {' | '.join(heads)} |", "|---|---|" + "---|" * len(columns)]
    for instance, transitions in dict.fromkeys((row.instance, row.transitions) for row in rows):
        found = {(row.region, row.sets): row for row in rows if row.instance == instance}
        cells = [_cell(found[column]) if column in found else "" for column in columns]
        lines.append(f"| {instance} | {transitions:,} | {' | '.join(cells)} |")
    others = sorted(
        {f"{row.region}/{row.sets}" for row in rows} - {f"{row.region}/{row.sets}" for row in covered}
    )
    return "\n".join([*lines, "", f"Covered: {len(covered)} of {len(rows)}. Nowhere: {', '.join(others)}."])


def _cell(row: Row) -> str:
    if row.proved != "accepts":
        return SIGNS.get(row.proved, row.words)
    return f"{row.seconds:.2f}" if row.agrees else f"{row.seconds:.2f} DISAGREES"


if __name__ == "__main__":
    sys.exit(main())
