"""A file is written whole or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from tightrope.atomic import atomic_path, atomic_write, atomic_write_bytes
from tightrope.errors import InputError


def test_text_and_bytes_arrive(tmp_path: Path) -> None:
    with atomic_write(tmp_path / "a.txt") as text:
        text.write("θ\nend\n")
        assert not (tmp_path / "a.txt").exists()
    assert (tmp_path / "a.txt").read_bytes() == "θ\nend\n".encode()
    with atomic_write_bytes(str(tmp_path / "b")) as binary:
        binary.write(b"\x00\xff")
    assert (tmp_path / "b").read_bytes() == b"\x00\xff"
    with atomic_path(tmp_path / "c") as temporary:
        temporary.write_text("c")
    assert sorted(os.listdir(tmp_path)) == ["a.txt", "b", "c"]
    assert (tmp_path / "c").read_text() == "c"


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_the_old_file_stays_on_an_error(tmp_path: Path, error: type[BaseException]) -> None:
    target = tmp_path / "a.txt"
    target.write_text("old")
    with pytest.raises(error), atomic_write(target) as file:
        file.write("new")
        file.flush()
        raise error
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_permissions_are_those_of_the_old_file_or_of_a_new_one(tmp_path: Path) -> None:
    previous = os.umask(0o027)
    try:
        with atomic_write(tmp_path / "new"):
            pass
    finally:
        os.umask(previous)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640
    (tmp_path / "new").chmod(0o604)
    with atomic_write(tmp_path / "new"):
        pass
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o604


def test_a_link_is_followed_and_a_device_written_directly(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with atomic_write(tmp_path / "link") as file:
        file.write("new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"
    with atomic_write(os.devnull) as file:
        file.write("gone")
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_unwritable_targets_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="it is a directory"), atomic_write(tmp_path):
        pass
    with pytest.raises(InputError, match="there is no directory"), atomic_write(tmp_path / "no" / "a"):
        pass
    with pytest.raises(InputError, match="No space left"), atomic_write("/dev/full") as file:
        file.write("x")
        file.flush()
