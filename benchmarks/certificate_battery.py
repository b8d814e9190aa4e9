"""Certificates of the benchmark instances, by every region and kind of sets: written, read, verified.

    python benchmarks/certificate_battery.py                    all listed instances
    python benchmarks/certificate_battery.py --smoke            one small instance
    python benchmarks/certificate_battery.py --most 20000       those of at most so many transitions
    python benchmarks/certificate_battery.py 'glider(9,9)'      some by name

Counts come from `--episodes` simulated trajectories under the uniform policy. Each result is learned, its
certificate written to a file, read again and verified as `tightrope verify` does; models of at most `--exact`
transitions are verified in rationals as well. Columns: seconds to learn, to write and to verify, megabytes of
the file, by how much the certified interval of the robust policy is wider than the result's (relatively).
Prints a line for each, and leaves with status 1 where a certificate does not prove what it claims. A
combination that learning itself refuses or cannot finish within `--seconds` is shown as such and is no
failure.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from tightrope.certificate.checker import check
from tightrope.certificate.format.archive import load as load_certificate
from tightrope.certificate.numbers import LONGDOUBLE, RATIONAL
from tightrope.data.counts import Counts
from tightrope.data.simulator import Simulator
from tightrope.data.stopping import decided_states
from tightrope.errors import TightropeError
from tightrope.learning.domain import over_domain
from tightrope.learning.learn import learn
from tightrope.learning.options import LearnOptions
from tightrope.learning.result import LearningResult
from tightrope.model.objective import Objective
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.proof.certificate_file import save_certificate
from tightrope.proof.learned import certificate_of, domain_certificate
from tightrope.statistics.estimates import IntervalMethod
from tightrope.studies.instance import Instance
from tightrope.studies.suite import listed, load, parse_bench, question

DELTA = 0.01
REGIONS = ("polytope", "l1", "likelihood", "ellipsoid")
SETS = ("parameter", "expression", "rectangular", "coupled")
SMOKE = ("aircraft(8,4)",)


@dataclass(frozen=True)
class Row:
    """One certificate; `valid` is None where nothing was certified, and `words` say why."""

    instance: str
    region: str
    sets: str
    valid: bool | None
    learn: float = 0.0
    write: float = 0.0
    verify: float = 0.0
    exact: float | None = None
    megabytes: float = 0.0
    wider: float = 0.0
    words: str = ""

    def line(self) -> str:
        verdict = {True: "valid", False: "FAILS", None: "-"}[self.valid]
        exact = "" if self.exact is None else f"exact {self.exact:7.2f}"
        return (
            f"{self.instance:18} {self.region:22} {self.sets:12} {verdict:6} learn {self.learn:7.2f} "
            f"write {self.write:7.2f} verify {self.verify:7.2f} {exact:13} {self.megabytes:6.2f} MB "
            f"wider {self.wider:.1e} {self.words}"
        )


def combinations(smoke: bool) -> Iterator[tuple[str, str, str | None]]:
    """(region, sets, interval method): every interval method once, untied and tied."""
    for method in IntervalMethod:
        yield "-", "untied", method.value
        yield "-", "tied", method.value
    for region in REGIONS:
        for sets in SETS:
            if (region, sets) != ("ellipsoid", "coupled"):
                yield region, sets, None
    for sets in () if smoke else ("expression", "rectangular", "coupled"):
        yield "domain", sets, None


def main() -> int:
    asked = _asked()
    instances = [parse_bench(name) for name in asked.instances or (SMOKE if asked.smoke else ())] or listed()
    rows: list[Row] = []
    for instance in instances:
        model = load(instance)
        if asked.most is not None and model.transitions > asked.most:
            print(f"{instance.name:18} {model.transitions} transitions: left out", flush=True)
            continue
        objective = question(instance, model.structure).objective
        counts = _counts(instance, model, objective, asked.episodes)
        for region, sets, method in combinations(asked.smoke):
            row = _certified(instance.name, model, counts, objective, (region, sets, method), asked)
            rows.append(row)
            print(row.line(), flush=True)
    if asked.json is not None:
        asked.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n", encoding="utf-8")
    failed = [row for row in rows if row.valid is False]
    done = sum(row.valid is True for row in rows)
    print(f"{done} certificates valid, {len(failed)} failed, {len(rows) - done - len(failed)} not made")
    return 1 if failed else 0


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("instances", nargs="*")
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--episodes", type=int, default=3000)
    parser.add_argument("--most", type=int, help="leave out models of more transitions")
    parser.add_argument(
        "--exact", type=int, default=3000, help="verify in rationals up to so many transitions"
    )
    parser.add_argument("--seconds", type=float, default=60.0, help="for learning, each")
    parser.add_argument("--json", type=Path, help="write the rows there")
    return parser.parse_args()


def _counts(instance: Instance, model: ParametricMDP, objective: Objective, episodes: int) -> Counts:
    stop = decided_states(objective, model.states)
    truth = model.instantiate(instance.truth)
    return Simulator(truth, None, stop, instance.episode_cap, model.hash(), threads=1).episodes(episodes, 1)


def _certified(
    name: str,
    model: ParametricMDP,
    counts: Counts,
    objective: Objective,
    what: tuple[str, str, str | None],
    asked: argparse.Namespace,
) -> Row:
    region, sets, method = what
    shown = region if method is None else f"{region} {method}"
    begin = time.perf_counter()
    try:
        result = _learned(model, counts, objective, what, asked.seconds)
        learned = time.perf_counter()
        made = domain_certificate(result) if region == "domain" else certificate_of(result, counts)
    except TightropeError as error:
        return Row(name, shown, sets, None, words=str(error).splitlines()[0][:60])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "battery.cert"
        save_certificate(made, path)
        written = time.perf_counter()
        verdict = check(load_certificate(path).certificate, LONGDOUBLE)
        verified = time.perf_counter()
        size = path.stat().st_size / 1e6
    exact, words = None, "; ".join(f"{one.name}: {one.detail}" for one in verdict.checks if not one.passed)
    valid = verdict.valid
    if valid and model.transitions <= asked.exact:
        again = check(made, RATIONAL)
        exact = time.perf_counter() - verified
        valid = again.valid
        words = "; ".join(f"exact {one.name}: {one.detail}" for one in again.checks if not one.passed)
    low, high = verdict.values["robust policy"]
    interval = result.robust.interval
    more = max(interval.lower - low, high - interval.upper, 0.0) if high < float("inf") else 0.0
    wider = more / max(abs(interval.upper), 1e-300) if more > 0 else 0.0
    return Row(
        name,
        shown,
        result.sets.kind.value if result.fallback else sets,
        valid,
        learned - begin,
        written - learned,
        verified - written,
        exact,
        size,
        wider,
        words,
    )


def _learned(
    model: ParametricMDP,
    counts: Counts,
    objective: Objective,
    what: tuple[str, str, str | None],
    seconds: float,
) -> LearningResult:
    region, sets, method = what
    options = LearnOptions(seconds=seconds, interval=None if method is None else IntervalMethod(method))
    if region == "domain":
        return over_domain(model, objective, sets=sets, options=options)
    named = None if region == "-" else region
    return learn(model, counts, DELTA, objective, region=named, sets=sets, options=options)


if __name__ == "__main__":
    sys.exit(main())
