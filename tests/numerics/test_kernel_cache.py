"""Compiled kernels are kept beside the source, in a directory of the user's own, or nowhere."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import platform
import runpy
import shutil
import stat
import subprocess
import sys
import time
import zipfile
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

import tightrope
from places import TESTS
from tightrope.data.simulator import seed_generator
from tightrope.numerics import kernel_cache
from tightrope.numerics.jit import inlined, kernel

RUN_A_KERNEL = """
import json, os, sys
import numba
from numba.core.registry import cpu_target
import numpy as np
from tightrope.data.simulator import seed_generator
cpu_target.typing_context.refresh()  # what all of them need is loaded once
for settings in json.loads(sys.argv[1]):
    sys.stdout.flush()
    if os.fork() == 0:
        os.environ.update(settings)
        numba.config.reload_config()
        from numba.core import event
        state = np.zeros(4, np.uint64)
        with event.install_recorder("numba:compile") as compiled:
            seed_generator(np.uint64(1), 2, state)
        assert state.any()
        print(sum(entry.is_start for _, entry in compiled.buffer), flush=True)
        os._exit(0)
    assert os.wait()[1] == 0
    print("==", file=sys.stderr, flush=True)
"""


@kernel
def _allocates(length: int) -> int:
    return len(np.empty(length, np.int32))


@inlined
def _merged(length: int) -> int:
    return _allocates(length)


@kernel
def _outermost(length: int) -> int:
    return _merged(length)


SAID = "compiled kernels cannot be stored"
NOWHERE = {"HOME": "/dev/null"}


@dataclass(frozen=True)
class Run:
    """A process that called a kernel: how many it compiled, and what it said."""

    compiled: int
    stderr: str


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("place")


@pytest.fixture(scope="module")
def runs(place: Path) -> dict[str, Run]:
    """Processes, one after the other, with a copy of the package that nothing can be written beside: its
    __pycache__ is a file, also for root.
    """
    source = Path(tightrope.__file__).parent
    target = place / "site" / "tightrope"
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "*.nb?"))
    for folder in [target, *(path for path in target.rglob("*") if path.is_dir())]:
        (folder / "__pycache__").write_text("")
    (place / "home").mkdir()
    machine = platform.machine().replace("arm64", "aarch64")
    baseline = {"NUMBA_CPU_NAME": kernel_cache.BASELINES[machine][0], "NUMBA_CPU_FEATURES": ""}
    cases = {
        "nowhere": NOWHERE,
        "home": {"HOME": str(place / "home")},
        "home again": {"HOME": str(place / "home")},
        "setting": {**NOWHERE, "NUMBA_CACHE_DIR": str(place / "mine")},
        "for a wheel": {**NOWHERE, "NUMBA_CACHE_DIR": str(target), **baseline},
        "wheel": NOWHERE,
        "wheel, other processor": {**NOWHERE, "NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": "+crc"},
    }
    kept = {k: v for k, v in os.environ.items() if k not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "HOME")}
    env = {**kept, "PYTHONPATH": str(place / "site"), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", RUN_A_KERNEL, json.dumps(list(cases.values()))],
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    results = zip(done.stdout.split(), done.stderr.split("==\n"), strict=False)
    return {name: Run(int(number), text) for name, (number, text) in zip(cases, results, strict=True)}


@pytest.mark.long
def test_without_any_place_kernels_are_compiled_anew_with_one_line(runs: dict[str, Run]) -> None:
    """It used to end in an internal error: 'no locator available'."""
    assert runs["nowhere"].stderr.count(SAID) == 1
    assert runs["nowhere"].compiled > 0


@pytest.mark.long
def test_kernels_are_kept_in_a_directory_of_the_user(runs: dict[str, Run], place: Path) -> None:
    assert (runs["home"].stderr, runs["home again"]) == ("", Run(0, ""))
    folder = place / "home" / ".cache" / "tightrope"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert len(list(folder.rglob("*.nbc"))) == runs["home"].compiled > 0
    assert not (place / "home" / ".cache" / "numba").exists()


@pytest.mark.long
def test_the_users_word_goes_first(runs: dict[str, Run], place: Path) -> None:
    assert runs["setting"].stderr == ""
    assert list((place / "mine").rglob("*.nbc"))


@pytest.mark.long
def test_kernels_in_the_installation_are_loaded_and_nothing_is_compiled(
    runs: dict[str, Run], place: Path
) -> None:
    """Compiled for the baseline into the package, as for a wheel, they serve where nothing can be written."""
    assert runs["wheel"] == Run(0, "")
    other = runs["wheel, other processor"]
    assert other.compiled > 0 and SAID in other.stderr
    kernels = list((place / "site" / "tightrope" / "kernels").rglob("*.nbc"))
    assert len(kernels) == runs["for a wheel"].compiled, "nothing more is written to an installation"


def test_threads_that_compile_at_once_all_use_the_folder_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The place was numba's one global, which one thread reset while another read it: machine code was
    written to the working directory, and would have been loaded from there.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    text: Any = seed_generator
    kernels: list[Any] = [kernel(text.__wrapped__) for _ in range(160)]
    with ThreadPoolExecutor(8) as pool:
        folders = {each._cache.cache_path for each in pool.map(lambda each: each._compile(), kernels)}
    assert not list(tmp_path.iterdir())
    assert folders == {str(kernel_cache.kernel_directory(Path(text.__wrapped__.__code__.co_filename)))}


@pytest.mark.parametrize("kind", ["open", "link", "stranger"])
def test_a_directory_that_others_can_write_to_is_not_trusted(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    if kind == "link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        (cache / "tightrope").symlink_to(tmp_path / "elsewhere")
    else:
        (cache / "tightrope").mkdir()
        (cache / "tightrope").chmod(0o777 if kind == "open" else 0o700)
        if kind == "stranger":
            try:
                os.chown(cache / "tightrope", 65534, 65534)
            except PermissionError:
                pytest.skip("only root can give a directory away")
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    assert kernel_cache.private_directory.__wrapped__() is None
    assert not list((cache / "tightrope").iterdir())


def test_a_processor_without_the_features_of_the_baseline(monkeypatch: pytest.MonkeyPatch) -> None:
    import llvmlite.binding

    target = ("x86_64-unknown-linux-gnu", "znver4", "+avx,+avx2")
    features = dict.fromkeys(kernel_cache.BASELINES["x86_64"][1].split(), True)
    for missing in (None, "avx2", "fma"):
        monkeypatch.setattr(
            llvmlite.binding, "get_host_cpu_features", lambda m=missing: {**features, m: False}
        )
        expected = (target[0], "x86-64-v3", "") if missing is None else None
        assert kernel_cache._find_baseline.__wrapped__(target) == expected
    assert kernel_cache._find_baseline.__wrapped__(("riscv64-linux", "x", "")) is None


def test_processes_that_compile_for_different_types_at_once_do_not_mix_them_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """numba numbers its files: both would write number 1, and one would load the other's machine code."""
    monkeypatch.setattr(kernel_cache, "kernel_directory", lambda source: tmp_path)
    text: Any = seed_generator
    one, other = (kernel_cache._KernelFiles(kernel(text.__wrapped__)) for _ in range(2))
    keys = [("float64", ("t", "c", "f"), "code"), ("int64", ("t", "c", "f"), "code")]
    assert one.load(keys[0]) is None and other.load(keys[1]) is None
    one.save(keys[0], "for floats")
    other.save(keys[1], "for integers")
    for files in (one, other):
        assert [files.load(key) for key in keys] == ["for floats", "for integers"]
    written = tmp_path / one._name(keys[0])
    written.replace(tmp_path / one._name(keys[1]))
    assert one.load(keys[1]) is None, "the file says what it is for"
    written.write_bytes(b"half")
    assert one.load(keys[0]) is None


def test_a_wheel_lists_its_kernels_with_their_digests(tmp_path: Path) -> None:
    wheel = tmp_path / "tightrope-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tightrope/__init__.py", "x = 1\n")
        archive.writestr("tightrope-1.dist-info/WHEEL", "Root-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr("tightrope-1.dist-info/RECORD", "tightrope/__init__.py,sha256=…,6\n")
    (tmp_path / "tightrope" / "kernels").mkdir(parents=True)
    (tmp_path / "tightrope" / "kernels" / "f.nbc").write_bytes(b"machine code")
    tool = runpy.run_path(str(TESTS.parent / "tools" / "wheel_kernels.py"))
    tag = "cp311-none-manylinux_2_28_x86_64"
    made = tool["add_files"](wheel, tag, tmp_path, [tmp_path / "tightrope" / "kernels" / "f.nbc"])
    assert made.name == f"tightrope-1-{tag}.whl"
    with zipfile.ZipFile(made) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    assert f"Tag: {tag}".encode() in contents["tightrope-1.dist-info/WHEEL"]
    rows = [line.split(",") for line in contents["tightrope-1.dist-info/RECORD"].decode().splitlines()]
    assert sorted(row[0] for row in rows) == sorted(contents)
    for name, digest, size in rows[:-1]:
        expected = base64.urlsafe_b64encode(hashlib.sha256(contents[name]).digest()).rstrip(b"=").decode()
        assert (digest, size) == (f"sha256={expected}", str(len(contents[name])))


INNER = """
from tightrope.numerics.jit import inlined, kernel

@kernel
def inner(x: float) -> float:
    return x + {}
"""
OUTER = """
from tightrope.numerics.jit import inlined, kernel
from tightrope.numerics.inner_kernel import inner

@kernel
def outer(x: float) -> float:
    return inner(x)
"""
CALL_WITH_EACH = """
import os, sys
from pathlib import Path
import numba
numba.njit(lambda x: x)(1)  # what compiling itself needs is loaded once
for text in sys.argv[2:]:
    Path(sys.argv[1]).write_text(text)
    if os.fork() == 0:
        from tightrope.numerics.outer_kernel import outer
        print(outer(0.5), flush=True)
        os._exit(0)
    assert os.wait()[1] == 0
"""


@pytest.mark.long
def test_a_change_in_another_file_is_noticed(tmp_path: Path) -> None:
    """numba alone looks at the caller's file, and went on running what was compiled before."""
    source = Path(tightrope.__file__).parent
    shutil.copytree(source, tmp_path / "tightrope", ignore=shutil.ignore_patterns("__pycache__", "*.nb?"))
    numerics = tmp_path / "tightrope" / "numerics"
    (numerics / "outer_kernel.py").write_text(OUTER)
    env = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    env["NUMBA_CACHE_DIR"] = str(tmp_path)
    words = [str(numerics / "inner_kernel.py"), *(INNER.format(added) for added in (1, 2))]
    done = subprocess.run(
        [sys.executable, "-c", CALL_WITH_EACH, *words], env=env, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    found = [float(line) for line in done.stdout.splitlines()]
    assert found == [1.5, 2.5]
    assert len(list((tmp_path / "kernels" / "numerics.outer_kernel").glob("outer-*.nbc"))) == 2


KERNELS = """
from collections import namedtuple
import math
import numpy as np
from tightrope.numerics.jit import inlined, kernel
Pair = namedtuple("Pair", ["first", "second"])
SCALE = 2.0
LIMITS = np.array([1.0, 3.0])
WAYS = ("up", 5)

@inlined
def innermost(x):
    return math.sqrt(x) * SCALE

@kernel
def inner(x, times=3):
    return innermost(x) + LIMITS[1] * times

def beside():
    return 1

@kernel
def outer(x):
    \"\"\"What it does.\"\"\"
    ways = WAYS[1]
    total = sum([inner(x + k) for k in range(ways)])
    return Pair(total, x).first if total > 7.5 else outer(x + 1.0)
"""


def digest(text: str) -> str:
    known: dict[str, Any] = {"__name__": "kernels"}
    exec(text, known)
    return kernel_cache.kernel_digest(known["outer"])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("SCALE = 2.0", "SCALE = 2.5"),
        ("[1.0, 3.0]", "[1.0, 3.5]"),
        ('("up", 5)', '("up", 6)'),
        ('"first", "second"', '"second", "first"'),
        ("* SCALE", "/ SCALE"),
        ("@inlined", "@kernel"),
        ("times=3", "times=4"),
        ("x + k", "x + 2 * k"),
        ("7.5", "7.25"),
        ("math.sqrt", "np.sqrt"),
        (").first", ").second"),
    ],
)
def test_whatever_a_kernel_is_compiled_from_names_its_file(old: str, new: str) -> None:
    assert old in KERNELS
    assert digest(KERNELS.replace(old, new)) != digest(KERNELS)


def test_what_no_kernel_is_compiled_from_does_not() -> None:
    """Documents, lines, and what stands beside it."""
    text = KERNELS.replace("What it does.", "What it was.").replace("return 1\n", "return 2\nOTHER = 3\n\n")
    assert text != KERNELS and digest(text) == digest(KERNELS)


def test_what_cannot_be_identified_by_content_is_refused() -> None:
    with pytest.raises(TypeError, match="inner names"):
        digest(KERNELS.replace("LIMITS = ", "LIMITS = {}, "))


def test_fields_of_records_are_part_of_a_kernels_types(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two versions of a record whose fields changed places: numba calls both types the same."""
    monkeypatch.setattr(kernel_cache, "kernel_directory", lambda source: tmp_path)
    text: Any = seed_generator
    files = kernel_cache._KernelFiles(kernel(text.__wrapped__))
    types = [numba.typeof(namedtuple("Pair", names)(1, 2)) for names in (("a", "b"), ("b", "a"))]
    assert repr(types[0]) == repr(types[1])
    for within in (lambda each: each, lambda each: numba.types.Tuple((each, numba.int64))):
        one, other = (files._name(((within(each),), "target", "code")) for each in types)
        assert one != other


def test_who_needs_what_another_process_compiles_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_cache, "kernel_directory", lambda source: tmp_path)
    text: Any = seed_generator
    one, other = (kernel_cache._KernelFiles(kernel(text.__wrapped__)) for _ in range(2))
    key = ("float64", ("t", "c", "f"), "code")
    looks: list[int] = []
    monkeypatch.setattr(kernel_cache.time, "sleep", lambda seconds: looks.append(1) or one.save(key, "done"))
    assert one.load(key) is None
    assert other.load(key) == "done" and len(looks) == 1
    assert [path.suffix for path in tmp_path.iterdir()] == [".nbc"]
    monkeypatch.setattr(kernel_cache.time, "sleep", lambda seconds: looks.append(1))
    late = ("int64", ("t", "c", "f"), "code")
    assert one.load(late) is None and one.load(late) is None and len(looks) == 1
    assert other.load(late) is None and len(looks) == 1 + kernel_cache.LOOKS


def test_of_old_versions_only_the_newest_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_cache, "kernel_directory", lambda source: tmp_path)
    monkeypatch.setattr(kernel_cache, "VERSIONS", 3)
    text: Any = seed_generator
    files = kernel_cache._KernelFiles(kernel(text.__wrapped__))
    foreign = tmp_path / f"{text.__name__}_twice-{'0' * 16}.nbc"
    foreign.write_bytes(b"")
    for number in range(5):
        files.save((number, "target", "code"), number)
        for path in tmp_path.glob("*.nbc"):  # clocks of files are coarse
            os.utime(path, ns=(0, path.stat().st_mtime_ns - 10**9))
    assert [files.load((number, "target", "code")) for number in range(5)] == [None, None, 2, 3, 4]
    assert foreign.exists()


def test_what_was_not_loaded_for_long_is_dropped(tmp_path: Path) -> None:
    """Old entries, and folders of versions that had the digest of all sources in their names."""
    ages = {
        f"a.b-{'0' * 16}/old.nbi": 8,
        f"a.b-{'0' * 16}/old.1.py311.nbc": 9,
        f"a.b-{'1' * 16}/old.nbi": 100,
        f"a.b-{'1' * 16}/used.nbc": 6,
        f"a.b-{'2' * 16}/old.nbc": 8,
        f"a.b-{'2' * 16}/mine.txt": 500,
        "a.b/dropped-1.nbc": 91,
        "a.b/left.lock": 91,
        "a.b/stays-1.nbc": 89,
        "a.b/mine.txt": 500,
        "empty/dropped-1.nbc": 91,
    }

    def name_files(root: Path) -> None:
        for name, days in ages.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
            os.utime(path, (time.time() - days * kernel_cache.DAY,) * 2)

    name_files(tmp_path / "kernels")
    name_files(tmp_path / "elsewhere")
    (tmp_path / "kernels" / "link").symlink_to(tmp_path / "elsewhere" / "a.b")
    kernel_cache.drop_unused.__wrapped__(tmp_path / "kernels")
    left = {str(path.relative_to(tmp_path / "kernels")) for path in (tmp_path / "kernels").rglob("*")}
    assert left == {
        "swept", "link", f"a.b-{'1' * 16}", f"a.b-{'1' * 16}/used.nbc", f"a.b-{'2' * 16}",
        f"a.b-{'2' * 16}/mine.txt", "a.b", "a.b/stays-1.nbc", "a.b/mine.txt", "empty",
    }  # fmt: skip
    assert len([path for path in (tmp_path / "elsewhere").rglob("*") if path.is_file()]) == len(ages)
    name_files(tmp_path / "kernels")
    kernel_cache.drop_unused.__wrapped__(tmp_path / "kernels")
    assert (tmp_path / "kernels" / "a.b" / "dropped-1.nbc").exists(), "once a day"


def test_what_is_loaded_counts_as_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_cache, "kernel_directory", lambda source: tmp_path)
    text: Any = seed_generator
    files = kernel_cache._KernelFiles(kernel(text.__wrapped__))
    key = ("float64", "target", "code")
    files.save(key, "machine code")
    path = tmp_path / files._name(key)
    os.utime(path, (0, 0))
    assert files.load(key) == "machine code"
    assert time.time() - path.stat().st_mtime < kernel_cache.DAY


def test_what_kernels_call_is_kept_apart_from_what_python_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has no face for Python: loaded for a call from there it would end the process."""
    monkeypatch.setattr(kernel_cache, "kernel_directory", lambda source: tmp_path)
    text: Any = seed_generator
    own = kernel(text.__wrapped__)
    called, calling = (kernel_cache._KernelFiles(own, inside) for inside in (True, False))
    key = ("float64", ("t", "c", "f"), "code")
    called.save(key, "for kernels")
    assert calling.load(key) is None
    calling.save(key, "for Python")
    assert (called.load(key), calling.load(key)) == ("for kernels", "for Python")


def test_a_kernel_that_is_compiled_for_an_inlined_one_may_make_arrays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It inherited that inlined kernels count no references, if no other kernel had called it before."""
    monkeypatch.setattr(kernel_cache, "keep_compiled", lambda *_: None)
    assert _outermost(3) == 3
