"""Files that are written as a whole: what breaks off their writing leaves what was there, and nothing beside it."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from faultbook.atomic import whole_file, write_whole


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def test_a_file_is_replaced_by_what_is_given(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    for content in (b"", b"one", b"\x00" * 100_000):
        write_whole(path, content)
        assert path.read_bytes() == content
    assert names(tmp_path) == ["a.json"]


@pytest.mark.parametrize("mode", [0o600, 0o644])
def test_permissions_are_those_asked_for_whatever_the_umask(tmp_path: Path, mode: int) -> None:
    before = os.umask(0o077)
    try:
        write_whole(tmp_path / "a", b"x", mode=mode)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == mode


@pytest.mark.parametrize("error", [ValueError("half way"), KeyboardInterrupt(), OSError(errno.ENOSPC, "no space")])
def test_what_breaks_off_leaves_the_file_that_was_there(tmp_path: Path, error: BaseException) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"before")
    with pytest.raises(type(error)), whole_file(path) as file:  # noqa: PT012  # it breaks off in the midst
        file.write(b"half of")
        raise error
    assert path.read_bytes() == b"before"
    assert names(tmp_path) == ["a"]


@pytest.mark.parametrize("call", ["fsync", "fchmod"])
def test_no_space_at_any_step_leaves_the_file_that_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"before")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space")

    with monkeypatch.context() as patch:
        patch.setattr(os, call, full)
        with pytest.raises(OSError, match="no space"):
            write_whole(path, b"after")
    assert path.read_bytes() == b"before"
    assert names(tmp_path) == ["a"]


def test_a_folder_in_its_place_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(IsADirectoryError):
        write_whole(tmp_path / "a", b"x")
    assert names(tmp_path) == ["a"]
    with pytest.raises(FileNotFoundError):
        write_whole(tmp_path / "no such folder" / "a", b"x")
