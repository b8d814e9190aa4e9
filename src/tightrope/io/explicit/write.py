"""Write PRISM's explicit files, in discrete and continuous time.

Doubles have the fewest digits that give the same double back. Rewards of a choice stand on each of its
transitions. As PRISM accepts no leading comment, `m.tightrope.json` records the written files:

    {"format": "tightrope explicit files", "version": 1, "files": {"m.tra": "9f2c…", "m.lab": "77ab…"}}

Existing files are replaced only if they match their SHA-256 in the record, are empty, or with `--overwrite`.
Recorded files that the new model lacks are removed, as they would be read as parts of it. Foreign ones of
that kind are refused, also with `--overwrite`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np

from tightrope.atomic import atomic_write, check_target
from tightrope.errors import InputError
from tightrope.io.explicit.read import explicit_base, reward_files
from tightrope.io.output import OTHERWISE, file_digest, foreign, refuse_results
from tightrope.io.rows import exit_rewards, labels_of
from tightrope.io.text import decimal_text, texts_of, with_numbers
from tightrope.model.continuous import CTMC, ParametricCTMC
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.structure import RewardStructure, Structure
from tightrope.numerics.arrays import FloatArray
from tightrope.provenance import origin_lines

_LINES_AT_ONCE = 1 << 14


def write_explicit(
    model: MDP | IntervalMDP | ParametricMDP | ParametricCTMC | CTMC,
    path: str | Path,
    *,
    check: Callable[[Iterable[Path]], None] | None = None,
    stale: Collection[Path] = (),
) -> list[Path]:
    """Writes `path.tra`, `.lab`, `.sta` and the reward files; returns what was written.

    Several reward structures are m1.srew, m1.trew, m2.srew, …, as in PRISM. `check` may refuse the names
    before anything is written; files among `stale` that would be read as parts of the model are removed.

    >>> import os, tempfile
    >>> import tightrope as tr
    >>> model = tr.build_from_rows([(0, "go", {0: 0.5, 1: 0.5}), (1, "stay", {1: 1})])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = model.save(os.path.join(folder, "m"))
    ...     tr.load(os.path.join(folder, "m.tra")).states
    2
    """
    plain = with_numbers(model, "PRISM's explicit files")
    base, structure = explicit_base(path), plain.structure
    if isinstance(plain, CTMC):
        structure = replace(structure, rewards=exit_rewards(plain))
    lines = _transition_lines(plain)
    _check_names(structure)
    files = {".tra": lines, ".lab": _label_lines(structure)}
    if structure.valuations:
        files[".sta"] = _valuation_lines(structure)
    for number, (name, reward) in enumerate(structure.rewards.items(), 1):
        infix = str(number) if len(structure.rewards) > 1 else ""
        if reward.state is not None or reward.choice is None:
            files[f"{infix}.srew"] = _state_reward_lines(name, reward, structure)
        if reward.choice is not None:
            files[f"{infix}.trew"] = _choice_reward_lines(name, reward.choice, structure)
    targets = {base.with_name(base.name + suffix): lines for suffix, lines in files.items()}
    if check is not None:
        check(targets)
    leftovers = _leftovers(base, set(targets))
    for file in (each for each in leftovers if each not in stale):
        raise InputError(
            f"{file} belongs to another model and would be read as a part of this one",
            hint="remove it or choose another name",
        )
    with ExitStack() as together:  # all take their places in the end, or none
        for target, content in targets.items():
            stream = together.enter_context(atomic_write(target))
            while chunk := list(islice(content, _LINES_AT_ONCE)):
                stream.write("\n".join(chunk) + "\n")
            stream.flush()
    for leftover in leftovers:
        leftover.unlink(missing_ok=True)
    return list(targets)


def _leftovers(base: Path, targets: set[Path]) -> list[Path]:
    """Files of an older model under the same name, which would be read as parts of this one."""
    rewards = reward_files(base, [target.name for target in targets])
    beside = [file for files in rewards.values() for file in files.values()]
    everything = [*beside, base.with_name(base.name + ".sta")]
    return [file for file in everything if file.exists() and file not in targets]


def _check_names(structure: Structure) -> None:
    for kind, names, forbidden in (
        ("label", structure.labels, '"\r\n'),
        ("reward structure", structure.rewards, '"\r\n'),
        ("action", structure.action_names, " \t\r\n"),
        ("variable", structure.valuations, "(),\r\n"),
    ):
        for name in names:
            if any(character in forbidden for character in name):
                raise InputError(f"explicit files cannot hold the {kind} name '{name}'")


def _transition_lines(model: MDP | IntervalMDP | CTMC) -> Iterator[str]:
    structure = model.structure
    if isinstance(model, CTMC):
        yield "# Transitions (CTMC)"
    yield from (f"# {line}" for line in origin_lines(structure))
    values = _value_texts(model)
    is_named = not isinstance(model, CTMC)
    names = [f" {name}" if name and is_named else "" for name in structure.action_names]
    suffix = [names[action] for action in structure.action_of_choice.tolist()]
    if structure.is_chain:
        yield f"{structure.states} {structure.transitions}"
    else:
        yield f"{structure.states} {structure.choices} {structure.transitions}"
    for head, choice, transition in _rows(structure):
        yield f"{head} {values[transition]}{suffix[choice]}"


def _rows(structure: Structure) -> Iterator[tuple[str, int, int]]:
    """(`from choice to` or `from to`, choice, transition) for every transition."""
    successor = structure.successor.tolist()
    choice_state = structure.choice_state.tolist()
    first_choice = structure.choice_start[structure.choice_state].tolist()
    starts = structure.transition_start.tolist()
    for choice, state in enumerate(choice_state):
        source = str(state) if structure.is_chain else f"{state} {choice - first_choice[choice]}"
        for transition in range(starts[choice], starts[choice + 1]):
            yield f"{source} {successor[transition]}", choice, transition


def _value_texts(model: MDP | IntervalMDP | CTMC) -> list[str]:
    if isinstance(model, MDP | CTMC):
        return texts_of(model.probability if isinstance(model, MDP) else model.rate)
    pairs = zip(texts_of(model.lower), texts_of(model.upper), strict=True)
    return [f"[{low},{high}]" for low, high in pairs]


def _label_lines(structure: Structure) -> Iterator[str]:
    """A model without the label "init" gets it, since the initial state is known by it."""
    labels = labels_of(structure)
    yield " ".join(f'{number}="{name}"' for number, name in enumerate(labels))
    members = np.stack(list(labels.values()), axis=1)
    for state in np.flatnonzero(members.any(axis=1)).tolist():
        yield f"{state}: {' '.join(str(number) for number in np.flatnonzero(members[state]))}"


def _valuation_lines(structure: Structure) -> Iterator[str]:
    yield f"({','.join(structure.valuations)})"
    columns: Iterable[list[int | bool]] = (column.tolist() for column in structure.valuations.values())
    for state, row in enumerate(zip(*columns, strict=True)):
        yield f"{state}:({','.join(str(value).lower() for value in row)})"


def _state_reward_lines(name: str, reward: RewardStructure, structure: Structure) -> Iterator[str]:
    rewards = np.zeros(structure.states) if reward.state is None else reward.state
    entries = np.flatnonzero(rewards).tolist()
    yield f'# Reward structure "{name}"'
    yield "# State rewards"
    yield f"{structure.states} {len(entries)}"
    for state in entries:
        yield f"{state} {decimal_text(float(rewards[state]))}"


def _choice_reward_lines(name: str, rewards: FloatArray, structure: Structure) -> Iterator[str]:
    texts = [decimal_text(value) for value in rewards.tolist()]
    entries = int(np.diff(structure.transition_start)[rewards != 0].sum())
    choices = "" if structure.is_chain else f" {structure.choices}"
    yield f'# Reward structure "{name}"'
    yield "# Transition rewards"
    yield f"{structure.states}{choices} {entries}"
    for head, choice, _ in _rows(structure):
        if rewards[choice] != 0:
            yield f"{head} {texts[choice]}"


FORMAT = "tightrope explicit files"
VERSION = 1
RECORD = ".tightrope.json"


@dataclass(frozen=True)
class ExplicitOutput:
    """The files of a base name, and whether foreign ones may be replaced."""

    base: Path
    overwrite: bool = False

    @property
    def record(self) -> Path:
        """The file that says which others are ours."""
        return self.base.with_name(self.base.name + RECORD)

    def check(self, targets: Iterable[Path] = ()) -> None:
        """Refuse if one of the files must not or cannot be written."""
        main = [self.base.with_name(self.base.name + suffix) for suffix in (".tra", ".lab", ".sta")]
        rewards = [file for files in reward_files(self.base).values() for file in files.values()]
        known = self._read_record()
        for file in dict.fromkeys((*main, *rewards, *targets)):
            check_target(file)
            if self.overwrite or not os.path.lexists(file):
                continue
            refuse_results(file, Path(os.path.realpath(file)))
            if not _is_known(file, known):
                raise foreign(file, "no file that tightrope is known to have written")

    def write(self, model: MDP | IntervalMDP | ParametricMDP | ParametricCTMC | CTMC) -> list[Path]:
        """Write the model; all files that were written, the record last."""
        known = self._read_record()
        own = {self.base.with_name(name) for name in known if _is_known(self.base.with_name(name), known)}
        written = write_explicit(model, self.base, check=self.check, stale=own)
        content = {
            "format": FORMAT,
            "version": VERSION,
            "files": {file.name: file_digest(file) for file in written},
        }
        with atomic_write(self.record) as file:
            file.write(json.dumps(content, indent=1) + "\n")
        return [*written, self.record]

    def _read_record(self) -> dict[str, str]:
        """{name: digest} of the files that were written before."""
        check_target(self.record)
        if not os.path.lexists(self.record):
            return {}
        try:
            content = json.loads(self.record.read_text(encoding="utf-8"))
            if content["format"] == FORMAT and content["version"] == VERSION:
                return {
                    str(name): str(digest)
                    for name, digest in content["files"].items()
                    if str(name).startswith(self.base.name) and "/" not in str(name)
                }
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            pass
        if self.overwrite:
            return {}
        raise foreign(self.record, "not a record of explicit files that tightrope wrote")


def claim_explicit(path: str | Path, overwrite: bool = False) -> ExplicitOutput:
    """Refuse files that must not be written, before anything is computed."""
    claimed = ExplicitOutput(explicit_base(path), overwrite)
    claimed.check()
    return claimed


def _is_known(file: Path, known: dict[str, str]) -> bool:
    try:
        return file.stat().st_size == 0 or (file.name in known and file_digest(file) == known[file.name])
    except FileNotFoundError:
        return False
    except OSError as error:
        raise InputError(
            f"{file} exists and cannot be read ({error.strerror or error}); it was not changed",
            hint=OTHERWISE,
        ) from error
