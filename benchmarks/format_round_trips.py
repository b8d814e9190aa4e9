"""Every format writes and reads the benchmark instances, and the model that comes back is the one that went.

    python benchmarks/format_round_trips.py [--smoke] [--most TRANSITIONS] [-o ROWS.jsonl] [INSTANCE …]

DRN and JANI hold the parametric model, and its hash must be the same; UMB and explicit files hold numbers, so
there it is the model at the true parameters. Chains in continuous time (server farms) go through DRN, JANI
and explicit files, and their rates must come back. Rows are appended to the file; those in it are not done
again.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import time
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import tightrope as tr
from tightrope.benchmarks.instance import Instance
from tightrope.benchmarks.suite import list_instances, load, parse_bench
from tightrope.io.jani.write import write_jani
from tightrope.prism.load import read_program

SMOKE = ("betting(5)", "parallel(3)")


def through_drn(instance: Instance, model: tr.ParametricMDP, folder: Path) -> bool:
    file = folder / "m.drn"
    model.save(file)
    if model.hash() != tr.load(file).hash():
        return False
    packed = folder / "m.drn.gz"
    packed.write_bytes(gzip.compress(file.read_bytes(), 1))
    return model.hash() == tr.load(packed).hash()


def through_jani(instance: Instance, model: tr.ParametricMDP, folder: Path) -> bool:
    file = folder / "m.jani"
    constants = {name: str(value) for name, value in instance.constants.items()}
    write_jani(read_program(instance.path, constants), file)
    return model.hash() == tr.load(file, domain=instance.domain).hash()


def through_umb(instance: Instance, model: tr.ParametricMDP, folder: Path) -> bool:
    plain = model.instantiate(instance.truth)
    plain.save(folder / "m.umb")
    return same_numbers(plain, tr.load(folder / "m.umb"))


def through_explicit(instance: Instance, model: tr.ParametricMDP, folder: Path) -> bool:
    plain = model.instantiate(instance.truth)
    plain.save(folder / "m.tra")
    return same_numbers(plain, tr.load(folder / "m.tra"))


def same_numbers(ours: tr.MDP, read: tr.Model) -> bool:
    """Labels and action names may stand in another order, so hashes are not asked."""
    if not isinstance(read, tr.MDP) or ours.structure.initial_states != read.structure.initial_states:
        return False
    arrays = ("choice_start", "transition_start", "successor")
    same = all((getattr(ours, name) == getattr(read, name)).all() for name in arrays)
    same &= (ours.probability == read.probability).all()
    same &= names_of(ours) == names_of(read)
    same &= all((members == read.labels[name]).all() for name, members in ours.labels.items())
    for name, reward in ours.rewards.items():
        mine, theirs = (each.per_choice(ours.structure) for each in (reward, read.rewards[name]))
        same &= (mine == theirs).all()
    same &= all((column == read.valuations[name]).all() for name, column in ours.valuations.items())
    return bool(same)


def names_of(model: tr.MDP) -> list[str]:
    names = model.structure.action_names
    return [names[action] for action in model.structure.action_of_choice.tolist()]


FARM = """
ctmc
const int N = {size};
module farm
  up : [0..N] init N;
  [fail] up>0 -> 0.3*up : (up'=up-1);
  [repair] up<N -> 1/3 : (up'=up+1) + 0.1 : (up'=min(N,up+2));
endmodule
module weather
  storm : [0..N];
  [fail] true -> 1+storm/8 : true;
  [] storm<N -> 0.2 : (storm'=storm+1);
  [] storm>0 -> 2 : (storm'=0);
endmodule
label "down" = up=0;
rewards "lost" true : N-up; [repair] true : 5; endrewards
"""
CHAINS = {"farm(8)": 8, "farm(60)": 60, "farm(200)": 200}


def chain_rows(names: list[str], done: set[tuple[str, str]]) -> Iterator[dict[str, object]]:
    """Chains in continuous time: at every step from one format to another, all rates and rewards stay."""
    for name in names:
        left = [suffix for suffix in ("drn", "jani", "tra") if (name, f"ctmc {suffix}") not in done]
        with TemporaryDirectory() as folder:
            source = Path(folder) / "farm.sm"
            source.write_text(FARM.format(size=CHAINS[name]))
            ours = tr.load(source).instantiate() if left else None
            for suffix in left:
                begin = time.process_time()
                target = Path(folder) / f"m.{suffix}"
                if suffix == "jani":
                    write_jani(read_program(source, {}), target)
                elif suffix == "drn":
                    ours.save(target)
                else:
                    ours.save(target)
                same = same_rates(ours, tr.load(target).instantiate())
                spent = round(time.process_time() - begin, 3)
                row = {"instance": name, "format": f"ctmc {suffix}", "states": ours.states}
                yield {**row, "same": same, "cpu_seconds": spent}


def same_rates(ours: tr.CTMC, read: tr.CTMC) -> bool:
    """All formats keep the order of states."""
    same = (ours.successor == read.successor).all() and (ours.rate == read.rate).all()
    same &= all((members == read.labels[name]).all() for name, members in ours.labels.items())
    same &= all((column == read.valuations[name]).all() for name, column in ours.valuations.items())
    for name, earned in ours.earned.items():
        same &= bool((abs(earned - read.earned[name]) <= 1e-14 * abs(earned)).all())
    return bool(same)


FORMATS: dict[str, Callable[[Instance, tr.ParametricMDP, Path], bool]] = {
    "drn": through_drn,
    "jani": through_jani,
    "umb": through_umb,
    "explicit": through_explicit,
}


def rows(instances: list[Instance], most: int, done: set[tuple[str, str]]) -> Iterator[dict[str, object]]:
    for instance in instances:
        left = [each for each in FORMATS if (instance.name, each) not in done]
        if not left:
            continue
        model = load(instance)
        for each in left:
            row: dict[str, object] = {"instance": instance.name, "format": each, "states": model.states}
            if model.transitions > most:
                yield {**row, "same": None, "why": f"more than {most} transitions"}
                continue
            begin = time.process_time()
            with TemporaryDirectory() as folder:
                same = FORMATS[each](instance, model, Path(folder))
            yield {**row, "same": same, "cpu_seconds": round(time.process_time() - begin, 3)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("instances", nargs="*", help="such as rover(10,10); by default all of the tables")
    parser.add_argument("--smoke", action="store_true", help="two small instances")
    parser.add_argument("--most", type=int, default=10**9, help="transitions beyond which nothing is done")
    parser.add_argument("-o", "--output", type=Path, help="a file of rows, one JSON object each")
    options = parser.parse_args()
    names = options.instances or (SMOKE if options.smoke else ())
    instances = [parse_bench(f"bench:{name}") for name in names] or list(list_instances())
    done = set()
    if options.output is not None and options.output.exists():
        known = [json.loads(line) for line in options.output.read_text().splitlines()]
        done = {(row["instance"], row["format"]) for row in known}
    wrong = 0
    chains = ["farm(8)"] if options.smoke else [] if options.instances else list(CHAINS)
    for row in chain(chain_rows(chains, done), rows(instances, options.most, done)):
        print(json.dumps(row), flush=True)
        wrong += row["same"] is False
        if options.output is not None:
            with options.output.open("a") as file:
                file.write(json.dumps(row) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
