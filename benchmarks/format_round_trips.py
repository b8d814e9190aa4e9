"""Every format writes and reads the benchmark instances, and the model that comes back is the one that went.

    python benchmarks/format_round_trips.py [--smoke] [--most TRANSITIONS] [-o ROWS.jsonl] [INSTANCE …]

DRN and JANI hold the parametric model, and its hash must be the same; UMB and explicit files hold numbers, so
there it is the model at the true parameters. Rows are appended to the file; those in it are not done again.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import tightrope as tr
from tightrope.formats.jani import write_jani
from tightrope.prism.load import read_program
from tightrope.studies.instance import Instance
from tightrope.studies.suite import list_instances, load, parse_bench

SMOKE = ("betting(5)", "parallel(3)")


def through_drn(instance: Instance, model: tr.ParametricMDP, folder: Path) -> bool:
    file = folder / "m.drn"
    tr.write_drn(model, file)
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
    tr.write_umb(plain, folder / "m.umb")
    return same_numbers(plain, tr.load(folder / "m.umb"))


def through_explicit(instance: Instance, model: tr.ParametricMDP, folder: Path) -> bool:
    plain = model.instantiate(instance.truth)
    tr.write_explicit(plain, folder / "m.tra")
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
    for row in rows(instances, options.most, done):
        print(json.dumps(row), flush=True)
        wrong += row["same"] is False
        if options.output is not None:
            with options.output.open("a") as file:
                file.write(json.dumps(row) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
