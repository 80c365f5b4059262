"""The file of a ledger: what is none is left alone, and where WAL is not to be had the ledger says so."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path

import pytest

from faultbook.errors import DataError
from faultbook.runtime import ledger_file as module
from faultbook.runtime.ledger import Ledger, started
from faultbook.runtime.ledger_file import LedgerFile

IDS = ("run-1", "task__1", 1, "request-1")
ASKED = {"model": "m-1", "operation": "chat"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite"


def states(ledger: Ledger, run: str | None = None) -> dict[str, str]:
    return {row["request_id"]: row["state"] for row in ledger.requests(run)}


def test_files_that_are_no_ledger(tmp_path: Path) -> None:
    text, other, later, folder = (tmp_path / name for name in ("a.txt", "other.db", "later.db", "folder"))
    text.write_text("no database at all, but long enough for a header" * 50)
    folder.mkdir()
    with contextlib.closing(sqlite3.connect(other)) as db:
        db.execute("CREATE TABLE cookies (x)")
    Ledger(later).close()
    with contextlib.closing(sqlite3.connect(later)) as db:
        db.execute("PRAGMA user_version = 9")
    for file, said in (
        (text, "cannot be used as a ledger"),
        (other, "no ledger of faultbook"),
        (later, "schema 9"),
        (folder, "cannot be used as a ledger"),
        (tmp_path / "no" / "such.db", "cannot be used as a ledger"),
    ):
        with pytest.raises(DataError, match=said) as caught:
            Ledger(file)
        assert "\n" not in str(caught.value)
    with pytest.raises(DataError, match="no such ledger"):
        Ledger(tmp_path / "absent.db", read_only=True)
    assert not (tmp_path / "absent.db").exists()
    with contextlib.closing(sqlite3.connect(other)) as db:
        assert db.execute("PRAGMA journal_mode").fetchone() == ("delete",)  # it was looked at and left alone


def test_a_file_that_is_cut_short_or_overwritten(path: Path) -> None:
    with Ledger(path) as ledger:
        ledger.many(started("run", "t", 1, f"q{number}", **ASKED) for number in range(2000))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match="malformed"), Ledger(path) as ledger:
        [*ledger.requests()]
    path.write_bytes(whole[:20_000] + os.urandom(40_000) + whole[60_000:])
    with Ledger(path, read_only=True) as ledger:
        assert ledger.verify()
        with pytest.raises(DataError, match="cannot be read as a ledger"):
            [*ledger.requests()]
    path.write_bytes(b"")
    with Ledger(path) as ledger:
        assert states(ledger) == {}


def test_reading_only_makes_nothing_and_adds_nothing(path: Path) -> None:
    Ledger(path).close()
    path.with_name("ledger.sqlite.reserve").unlink()
    with Ledger(path, read_only=True) as ledger:
        with pytest.raises(ValueError, match="opened for reading only"):
            ledger.start(*IDS, **ASKED)
        assert ledger.evidence("run-1").complete
    assert not path.with_name("ledger.sqlite.reserve").exists()


def test_an_unknown_durability_is_refused(path: Path) -> None:
    with pytest.raises(ValueError, match="durability"):
        Ledger(path, durability="off")


@pytest.mark.parametrize(("durability", "level"), [("full", 2), ("normal", 1)])
def test_what_is_waited_for_is_what_was_asked_for(path: Path, durability: str, level: int) -> None:
    with Ledger(path, durability=durability) as ledger:
        assert ledger._db.execute("PRAGMA synchronous").fetchone() == (level,)
        assert (ledger.journal_mode, ledger.notes) == ("wal", [])


def test_where_wal_is_not_to_be_had_the_ledger_says_so(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def without_shared_memory(self: LedgerFile, mode: str) -> sqlite3.Connection:
        # SQLite's own layer for file systems without locks: it has no shared memory, and so no WAL.
        address = f"{self.path.absolute().as_uri()}?mode={mode}&vfs=unix-dotfile"
        return sqlite3.connect(address, timeout=1, isolation_level=None, check_same_thread=False, uri=True)

    monkeypatch.setattr(LedgerFile, "_connection", without_shared_memory)
    with Ledger(path) as ledger:
        assert ledger.journal_mode == "delete"
        assert "WAL is not to be had" in ledger.notes[0]
        ledger.start(*IDS, **ASKED)
        ledger.complete(*IDS)
        assert states(ledger) == {"request-1": "completed"}


def test_network_mounts_are_told_by_the_mount_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = tmp_path / "mountinfo"  # lines as in proc(5)
    mounts.write_text(
        "22 1 0:21 / / rw - ext4 /dev/sda rw\n"
        f"30 22 0:40 / {tmp_path} rw,relatime shared:1 - nfs4 server:/x rw\n"
        f"31 22 0:41 / {tmp_path}/with\\040blank rw - tmpfs none rw\n"
        "half a line\n"
    )
    assert module.mount_type(tmp_path / "a.db", mounts=mounts) == "nfs4"
    assert module.mount_type(tmp_path / "with blank" / "a.db", mounts=mounts) == "tmpfs"
    assert module.mount_type(Path("/a.db"), mounts=mounts) == "ext4"
    assert module.mount_type(tmp_path / "a.db", mounts=tmp_path / "absent") is None
    monkeypatch.setattr(module, "mount_type", lambda path: "nfs4")
    with Ledger(tmp_path / "a.db") as ledger:
        assert ledger.journal_mode == "delete"
        assert "'nfs4'" in ledger.notes[0]
