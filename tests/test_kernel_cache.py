"""Compiled kernels are kept beside the source, in a directory of the user's own, or nowhere."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numba
import pytest

import tightrope
from tightrope.data.simulator import seed_generator
from tightrope.numerics import kernel_cache
from tightrope.numerics.jit import kernel

RUN_A_KERNEL = """
import numpy as np
from tightrope.data.simulator import seed_generator
state = np.zeros(4, np.uint64)
seed_generator(np.uint64(1), 2, state)
print(state.any())
"""
SAID = "compiled kernels cannot be kept"


@pytest.fixture(scope="module")
def read_only(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package that nothing can be written beside: __pycache__ is a file, also for root."""
    source = Path(tightrope.__file__).parent
    site = tmp_path_factory.mktemp("site")
    target = site / "tightrope"
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "*.nb?"))
    for folder in [target, *(path for path in target.rglob("*") if path.is_dir())]:
        (folder / "__pycache__").write_text("")
    return site


def run_kernel(site: Path, home: str, **more: str) -> subprocess.CompletedProcess[str]:
    kept = {k: v for k, v in os.environ.items() if k not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "HOME")}
    env = {**kept, "PYTHONPATH": str(site), "HOME": home, "PYTHONDONTWRITEBYTECODE": "1", **more}
    done = subprocess.run(
        [sys.executable, "-c", RUN_A_KERNEL], env=env, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "True\n"
    return done


def test_without_any_place_kernels_are_compiled_anew_with_one_line(read_only: Path) -> None:
    """It used to end in an internal error: 'no locator available'."""
    done = run_kernel(read_only, "/dev/null")
    assert done.stderr.count(SAID) == 1


def test_a_read_only_installation_uses_a_directory_of_the_users_own(read_only: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    assert run_kernel(read_only, str(home)).stderr == ""
    folder = home / ".cache" / "tightrope"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    indices = {path: path.stat().st_mtime_ns for path in folder.rglob("*.nbi")}
    assert indices
    assert run_kernel(read_only, str(home)).stderr == ""
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*.nbi")} == indices, "compiled again"
    assert not (home / ".cache" / "numba").exists()


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
    kernel_cache._nowhere.cache_clear()
    with pytest.warns(UserWarning, match=SAID):
        assert kernel_cache.private_directory.__wrapped__() is None
    kernel_cache._nowhere.cache_clear()
    assert not list((cache / "tightrope").iterdir())


def test_the_users_word_goes_first(read_only: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    assert run_kernel(read_only, "/dev/null", NUMBA_CACHE_DIR=str(mine)).stderr == ""
    assert list(mine.rglob("*.nbi"))


INNER = """
from tightrope.numerics.jit import kernel

@kernel
def inner(x: float) -> float:
    return x + {}
"""
OUTER = """
from tightrope.numerics.jit import kernel
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


def test_a_change_in_another_file_is_noticed(tmp_path: Path) -> None:
    """numba alone looks at the caller's file, and went on running what was compiled before."""
    source = Path(tightrope.__file__).parent
    shutil.copytree(source, tmp_path / "tightrope", ignore=shutil.ignore_patterns("__pycache__", "*.nb?"))
    numerics = tmp_path / "tightrope" / "numerics"
    (numerics / "outer_kernel.py").write_text(OUTER)
    env = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    env.pop("NUMBA_CACHE_DIR", None)
    words = [str(numerics / "inner_kernel.py"), *(INNER.format(added) for added in (1, 2))]
    done = subprocess.run(
        [sys.executable, "-c", CALL_WITH_EACH, *words], env=env, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    found = [float(line) for line in done.stdout.splitlines()]
    assert found == [1.5, 2.5]
    folders = list((tmp_path / "tightrope" / "__pycache__" / "kernels").glob("numerics.outer_kernel-*"))
    assert len(folders) == 2 and all(list(folder.rglob("*.nbi")) for folder in folders)


@pytest.fixture
def small_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of five files: kernels, what they import by the way, and what has nothing to do with them."""
    (tmp_path / "parts").mkdir()
    texts = {
        "__init__.py": "from tightrope.apart import x\n",
        "kernels.py": "from tightrope.middle import (\n    f,\n)\n",
        "middle.py": "def late():\n    from tightrope.parts import g\n",
        "parts/__init__.py": "",
        "parts/inner.py": "import tightrope.kernels\nC = 1\n",
        "apart.py": "from tightrope.kernels import f\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(kernel_cache, "PACKAGE", tmp_path)
    return tmp_path


def digest(package: Path) -> str:
    kernel_cache._contents.cache_clear()
    kernel_cache._find_imported.cache_clear()
    return kernel_cache.source_digest(package / "kernels.py")


@pytest.mark.parametrize("name", ["kernels.py", "middle.py", "parts/__init__.py", "parts/inner.py"])
def test_whatever_a_kernel_could_be_compiled_from_names_its_folder(small_package: Path, name: str) -> None:
    before = digest(small_package)
    assert digest(small_package) == before
    with (small_package / name).open("a") as file:
        file.write("C = 2\n")
    assert digest(small_package) != before


def test_what_no_kernel_is_compiled_from_does_not(small_package: Path) -> None:
    before = digest(small_package)
    (small_package / "apart.py").write_text("C = 2\n")
    assert digest(small_package) == before
    (small_package / "middle.py").write_text("import tightrope\n")  # anything may come through this
    everything = digest(small_package)
    (small_package / "apart.py").write_text("C = 3\n")
    assert digest(small_package) != everything != before
