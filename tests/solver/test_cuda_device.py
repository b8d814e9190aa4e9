"""Devices that are not there, memory that runs out, and how bounds become rows of a table."""

from __future__ import annotations

import stat
import sys
import tempfile
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from cases.slow_models import cost_grid
from cuda_cases import DEVICE, device
from tightrope.cli.app import main
from tightrope.errors import CannotCertify, InputError
from tightrope.solver.cuda import device as cuda_device
from tightrope.solver.cuda import model as layout_module
from tightrope.solver.cuda.device import SOURCE, CupyDevice, explain_failures, kernel_names, open_device
from tightrope.solver.cuda.model import distinct_rows, lay_out

pytestmark = pytest.mark.compiler


class _Failure(Exception):
    pass


class _Full(_Failure):
    pass


def fake_cupy(devices: int) -> ModuleType:
    """CuPy on a machine with so many GPUs, as far as it is asked before anything runs."""
    cupy = ModuleType("cupy")

    def count() -> int:
        if devices < 0:
            raise _Failure("cudaErrorInsufficientDriver: CUDA driver version is insufficient")
        return devices

    properties = {"name": b"Test GPU", "multiProcessorCount": 2}
    cupy.cuda = SimpleNamespace(  # type: ignore[attr-defined]
        runtime=SimpleNamespace(
            CUDARuntimeError=_Failure,
            getDeviceCount=count,
            getDeviceProperties=lambda _: properties,
            memGetInfo=lambda: (2**30, 2**33),
        ),
        Device=lambda: SimpleNamespace(id=0),
        driver=SimpleNamespace(CUDADriverError=_Failure),
        compiler=SimpleNamespace(CompileException=_Failure),
        memory=SimpleNamespace(OutOfMemoryError=_Full),
    )
    return cupy


def test_a_missing_cupy_is_named_with_a_way_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tightrope.solver.cuda.device._opened", {})
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(SystemExit) as left:
        main(["check", "bench:betting(3)", "--device", "cuda"])
    assert left.value.code == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "CuPy" in shown.err and "tightrope[gpu]" in shown.err and "Traceback" not in shown.err
    with pytest.raises(SystemExit) as left:
        main(["check", "bench:betting(3)", "--device", "tpu"])
    assert left.value.code == 2


@pytest.mark.parametrize(("devices", "words"), [(0, "no CUDA device"), (-1, "insufficient")])
def test_no_gpu_and_a_wrong_driver_are_refused(
    monkeypatch: pytest.MonkeyPatch, devices: int, words: str
) -> None:
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy(devices))
    with pytest.raises(InputError, match=words):
        CupyDevice()


def test_a_full_memory_and_a_failed_launch_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy(1))
    gpu = CupyDevice()
    with pytest.raises(CannotCertify, match=r"memory of the GPU.*Try `device=.cpu.`"), explain_failures(gpu):
        raise _Full("out of memory")
    with pytest.raises(CannotCertify, match="failed: illegal address"), explain_failures(gpu):
        raise _Failure("illegal address")
    with explain_failures(gpu):
        pass


def test_other_names_are_no_devices() -> None:
    with pytest.raises(InputError, match="not one of cpu, cuda"):
        open_device("tpu")


def test_every_kernel_of_the_source_is_compiled_and_named() -> None:
    import re

    declared = set(re.findall(r"__global__ void (?:__launch_bounds__\(.*?\) )?(\w+)\(", SOURCE.read_text()))
    named = {name.partition("<")[0] for name in kernel_names(3)}
    assert declared == named


@pytest.mark.parametrize("is_private", [True, False])
def test_compiled_kernels_lie_where_other_users_cannot_write(
    is_private: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the user's own directory, or for this process alone; never under a name that can be guessed in the
    common directory for temporary files, where another user could have put a library."""
    common, own = tmp_path / "tmp", tmp_path / "own"
    common.mkdir()
    own.mkdir(mode=0o700)
    loaded: list[Path] = []

    def load(file: str) -> SimpleNamespace:
        loaded.append(Path(file))
        assert (
            Path(file).read_text() == "compiled" and stat.S_IMODE(Path(file).parent.stat().st_mode) == 0o700
        )
        return SimpleNamespace(entry0="one")

    def compile_(command: list[str], **words: object) -> SimpleNamespace:
        Path(command[-1]).write_text("compiled")
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr(tempfile, "tempdir", str(common))
    monkeypatch.setattr(cuda_device, "private_directory", lambda: own if is_private else None)
    monkeypatch.setattr(cuda_device.subprocess, "run", compile_)
    monkeypatch.setattr(cuda_device.ctypes, "CDLL", load)
    for _ in range(2):
        assert cuda_device._compile([], ["one"]) == {"one": "one"}
    assert (loaded[0] == loaded[1] and loaded[0].parent == own) == is_private
    assert not list(common.iterdir()) and len(list(own.iterdir())) == is_private


def test_few_distinct_bounds_become_small_numbers() -> None:
    xp = device().xp
    rng = np.random.default_rng(2)
    lower = rng.integers(0, 20, 4000) / 64
    upper = lower + rng.integers(0, 20, 4000) / 64
    columns = [xp.asarray(lower), xp.asarray(upper)]
    number, table = distinct_rows(xp, columns)
    assert number.dtype == np.uint16 and len(table) == len(np.unique(lower + 1000 * upper))
    found = device().download(table)[device().download(number)]
    assert np.array_equal(found[:, 0], lower) and np.array_equal(found[:, 1], upper)
    assert distinct_rows(xp, [xp.asarray(rng.random(4000)), xp.asarray(upper)]) == (None, None)


def test_rows_of_one_hash_are_distinguished(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a hash that sees nothing, the comparison with the table still does."""
    monkeypatch.setattr(layout_module, "_MIX", (0, 0, 0))
    xp = device().xp
    assert distinct_rows(xp, [xp.asarray(np.repeat([0.25, 0.5], 50))]) == (None, None)
    number, table = distinct_rows(xp, [xp.asarray(np.full(100, 0.25))])
    assert len(table) == 1 and int(number.max()) == 0


def test_slots_hold_each_transition_once() -> None:
    model, _ = cost_grid(5, 5)
    place = device()
    made = lay_out(model.structure, [model.lower, model.upper], place)
    (rows,) = made.segments
    assert (rows.k, rows.choices, rows.count, rows.states) == (3, 4, 25, None)
    successor = place.download(rows.successor).T.reshape(-1)
    assert np.array_equal(successor, model.structure.successor)
    bounds = place.download(rows.table)[place.download(rows.ids)].transpose(1, 0, 2).reshape(-1, 2)
    assert np.array_equal(bounds[:, 0], model.lower) and np.array_equal(bounds[:, 1], model.upper)
    assert DEVICE != "cpu"
