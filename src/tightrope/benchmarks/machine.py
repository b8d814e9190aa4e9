"""What a measurement was made on and with: cores, memory, CPU model, versions. Never a name of a machine."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("numpy", "scipy", "numba", "highspy", "clarabel")


def machine() -> dict[str, object]:
    """Cores we may use, memory in bytes, and the model of the CPU."""
    return {"cores": len(os.sched_getaffinity(0)), "memory": _memory(), "cpu": _cpu()}


def versions() -> dict[str, str]:
    """Versions of Python, of tightrope and of what its numbers depend on."""
    import tightrope

    found = {"python": platform.python_version(), "tightrope": tightrope.__version__}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def describe(facts: Mapping[str, Any]) -> str:
    """A record's `machine` and `versions` in one line."""
    machine, versions = facts["machine"], facts["versions"]
    return (
        f"{machine.get('cores')} cores, {int(machine.get('memory', 0)) / (1 << 30):.0f} GiB, "
        f"{machine.get('cpu')}; " + ", ".join(f"{name} {number}" for name, number in versions.items())
    )


def peak_memory(process: str = "self") -> int | None:
    """The most bytes of memory a process has held at once; None where it has gone."""
    return _status_bytes(process, "VmHWM:")


def resident_memory(process: str) -> int | None:
    """The bytes of memory a process holds now; None where it has gone."""
    return _status_bytes(process, "VmRSS:")


def _status_bytes(process: str, field: str) -> int | None:
    try:
        text = Path(f"/proc/{process}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    for line in text.splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    return None


def _memory() -> int:
    """The machine's memory, or less where a control group limits us."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii").strip()
    except OSError:
        return total
    return min(total, int(limit)) if limit.isdigit() else total


def _cpu() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name")]
    return names[0] if names else platform.machine()
