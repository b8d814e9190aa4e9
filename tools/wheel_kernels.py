"""Wheels with compiled kernels, one per version of Python, beside the wheel that has none.

    python tools/wheel_kernels.py dist/tightrope-0.3-py3-none-any.whl [PYTHON …]

Every interpreter (this one, where none is named) gets the wheel into a clean environment, where
`tightrope warmup` compiles for the baseline of this architecture (`BASELINES` in `numerics/kernel_cache.py`)
with the newest numba. What it compiled goes to `tightrope/kernels` in a copy of the wheel, digests in
RECORD.
"""

from __future__ import annotations

import base64
import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ASK = """
import platform, sys
from tightrope.numerics.kernel_cache import BASELINES, PACKAGE
version = "cp%d%d" % sys.version_info[:2]
name, _ = BASELINES[platform.machine()]
print(version, platform.machine(), name, PACKAGE)
"""


def main(wheel: Path, interpreters: list[str]) -> None:
    for interpreter in interpreters:
        with tempfile.TemporaryDirectory() as folder:
            tag, site = compile_kernels(wheel, interpreter, Path(folder))
            made = add_files(wheel, tag, site.parent, sorted((site / "kernels").rglob("*.nbc")))
        sys.stdout.write(f"{made.name}: {made.stat().st_size / 1e6:.1f} MB\n")


def compile_kernels(wheel: Path, interpreter: str, folder: Path) -> tuple[str, Path]:
    """Install the wheel into a clean environment and compile there; the wheel's tag, and the package."""
    python = folder / "venv" / "bin" / "python"
    env = {name: text for name, text in os.environ.items() if name not in ("PYTHONPATH", "NUMBA_CACHE_DIR")}
    subprocess.run([interpreter, "-m", "venv", str(folder / "venv")], check=True, env=env)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, str(wheel.resolve())], check=True, env=env)
    answer = subprocess.run([str(python), "-c", ASK], check=True, env=env, capture_output=True, text=True)
    version, machine, baseline, place = answer.stdout.split(maxsplit=3)
    site = Path(place.strip())
    env |= {"NUMBA_CPU_NAME": baseline, "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": str(site)}
    subprocess.run([str(python), "-m", "tightrope", "warmup"], check=True, env=env, cwd=folder)
    return f"{version}-none-manylinux_2_28_{machine}", site


def add_files(wheel: Path, tag: str, root: Path, files: list[Path]) -> Path:
    """A copy of a wheel with another tag, and files more."""
    target = wheel.with_name(wheel.name.replace("py3-none-any", tag))
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        record = next(name for name in old.namelist() if name.endswith(".dist-info/RECORD"))
        contents = {name: old.read(name) for name in old.namelist() if name != record}
        contents |= {path.relative_to(root).as_posix(): path.read_bytes() for path in files}
        words = record.replace("RECORD", "WHEEL")
        contents[words] = (
            contents[words]
            .replace(b"Tag: py3-none-any", b"Tag: " + tag.encode())
            .replace(b"Root-Is-Purelib: true", b"Root-Is-Purelib: false")
        )
        lines = [f"{name},sha256={digest(content)},{len(content)}" for name, content in contents.items()]
        contents[record] = "\n".join([*lines, f"{record},,", ""]).encode()
        for name, content in contents.items():
            entry = zipfile.ZipInfo(name, (2020, 2, 2, 0, 0, 0))
            entry.external_attr = 0o644 << 16
            new.writestr(entry, content, zipfile.ZIP_DEFLATED)
    return target


def digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:] or [sys.executable])
