"""The directory of a learning run: it appears whole or not at all.

    result.json               everything a report needs (`tightrope.learning.document`)
    robust-policy.json        the policy with the best guarantee
    optimistic-policy.json    the policy that is best if nature is kind
    learned.drn               the learned interval model, for Storm and for tightrope
    learned.tra .lab .sta …   the same as PRISM's explicit files
    learned.umb               the same as UMB, where the package umbi is installed

With several kinds of sets, the files of each lie in a directory of its name. Rectangular sets are more than
intervals: their model is the hull, as in expression sets. Coupled sets are no interval model at all, and have
policies alone.

All is written beside the target first and renamed in the end, so that Ctrl-C leaves nothing behind. An
existing directory is replaced only if it is empty or holds an earlier result.
"""

from __future__ import annotations

import json
import math
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from tightrope.errors import InputError
from tightrope.formats.atomic import atomic_write
from tightrope.formats.drn import write_drn
from tightrope.formats.explicit import write_explicit
from tightrope.formats.policy import Policy, write_policy
from tightrope.formats.umb import umb_is_available, write_umb
from tightrope.learning.result import LearningResult
from tightrope.uncertainty.sets import SetsKind

RESULT = "result.json"
LEARNED = "learned"


def check_directory(path: Path) -> None:
    """Refuse a place that cannot be written, before anything is computed."""
    path = Path(os.path.realpath(path))
    if path == Path.cwd() or path in Path.cwd().parents:
        raise InputError(f"cannot replace {path}: it is where the program runs", hint="name a new directory")
    if not path.parent.is_dir():
        raise InputError(f"cannot write {path}: there is no directory {path.parent}")
    if path.exists() and not path.is_dir():
        raise InputError(f"cannot write {path}: it is a file, but results go into a directory")
    if path.is_dir() and any(path.iterdir()) and not (path / RESULT).is_file():
        raise InputError(
            f"{path} holds other files than results, and is left alone",
            hint="name a new directory, or an earlier result to replace",
        )


def write_results(
    path: Path,
    results: Sequence[LearningResult],
    content: dict[str, object],
    *,
    models: bool = True,
    progress: Callable[[str], None] | None = None,
) -> list[Path]:
    """Write the directory; the paths of its files. `content` is the document, which lists them as well."""
    check_directory(path)
    say = progress or (lambda what: None)
    with _new_directory(path) as folder:
        several = len(results) > 1
        names: list[list[str]] = []
        for result in results:
            inner = folder / result.decisions.sets.value if several else folder
            inner.mkdir(exist_ok=True)
            write_policies(result, inner)
            if models and result.kind is not SetsKind.COUPLED:
                say(f"write: the learned model ({result.sets.kind.value})")
                _write_models(result, inner)
            names.append(sorted(str(file.relative_to(folder)) for file in inner.iterdir()))
        entries = content["results"]
        assert isinstance(entries, list)
        for entry, files in zip(entries, names, strict=True):
            entry["files"] = files
        text = json.dumps(plain(content), allow_nan=False)
        (folder / RESULT).write_text(text + "\n", encoding="utf-8")
    return [path / RESULT, *(path / name for files in names for name in files)]


def plain(value: object) -> object:
    """Numbers that JSON does not know as the strings that `float()` reads."""
    match value:
        case float():
            return value if math.isfinite(value) else str(value)
        case dict():
            return {str(key): plain(entry) for key, entry in value.items()}
        case list() | tuple():
            return [plain(entry) for entry in value]
    return value


def write_policies(result: LearningResult, folder: Path) -> list[str]:
    """The robust and the optimistic policy; the names of their files."""
    names = []
    model = result.model
    for name, choice in (("robust", result.robust.policy), ("optimistic", result.optimistic.policy)):
        taken = np.asarray(choice, dtype=np.int64)
        names.append(f"{name}-policy.json")
        with atomic_write(folder / names[-1]) as file:
            write_policy(Policy.deterministic(model.structure, taken), file, model.hash())
    return names


def _write_models(result: LearningResult, folder: Path) -> None:
    model = result.sets.interval_model()
    write_drn(model, folder / f"{LEARNED}.drn")
    write_explicit(model, folder / LEARNED)
    if umb_is_available():
        write_umb(model, folder / f"{LEARNED}.umb")


@contextmanager
def _new_directory(path: Path) -> Iterator[Path]:
    """A directory to fill, which takes the place of `path` when the block ends without an error."""
    path = Path(os.path.realpath(path))
    token = secrets.token_hex(8)
    folder = path.with_name(f".{path.name}.{token}.part")
    old = path.with_name(f".{path.name}.{token}.old")
    try:
        folder.mkdir()
        yield folder
        if path.exists():
            os.replace(path, old)
        try:
            os.replace(folder, path)
        except BaseException:
            if old.exists():
                os.replace(old, path)
            raise
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)
