"""The file of a ledger: an SQLite database with its schema, opened for writing or reading, in WAL mode where possible.

Events are only added: triggers refuse every change of what is on record, whoever asks for it.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

from faultbook.errors import DataError, one_of
from faultbook.runtime.ledger_events import COUNTS, FIELDS

SCHEMA_VERSION = 1
DURABILITIES = ("full", "normal")

_APPLICATION_ID = 0x46424C47  # "FBLG", in the header of the file
_RETRY = 0.01  # seconds between attempts at what SQLite itself does not wait for
# Mounts whose memory is not shared between machines, or that do not lock: WAL needs both (sqlite.org/wal.html).
_SHARED_MOUNTS = ("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "fuse.sshfs", "ceph", "fuse.glusterfs", "afs", "lustre")

_SCHEMA = f"""
CREATE TABLE events (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id TEXT NOT NULL, trial_id TEXT NOT NULL, attempt INTEGER NOT NULL, request_id TEXT NOT NULL,
    event TEXT NOT NULL CHECK (event IN ('started', 'completed', 'denied', 'unsettled')),
    at TEXT NOT NULL, monotonic REAL NOT NULL, boot TEXT,
    model TEXT, operation TEXT, provider TEXT, conversation_id TEXT,
    omitted_tool_images INTEGER CHECK (omitted_tool_images >= 0),
    {", ".join(f"{name} INTEGER CHECK ({name} >= 0)" for name in COUNTS)},
    cache_included INTEGER CHECK (cache_included IN (0, 1)), cost_usd REAL CHECK (cost_usd >= 0),
    usage_status TEXT CHECK (usage_status IN ('reported', 'absent', 'zero_suspect', 'partial')),
    finish_reasons TEXT, response_model TEXT, response_id TEXT, error_type TEXT, denial TEXT, reason TEXT, detail TEXT,
    CHECK ((usage_status IS NOT NULL) = (event = 'completed')),
    UNIQUE (run_id, trial_id, attempt, request_id, event)
);
CREATE TABLE gaps (seq INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL, at TEXT NOT NULL, reason TEXT NOT NULL);
CREATE TRIGGER events_stay BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER events_are_kept BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER gaps_stay BEFORE UPDATE ON gaps BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER gaps_are_kept BEFORE DELETE ON gaps BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER one_end BEFORE INSERT ON events WHEN NEW.event <> 'started' AND EXISTS (
    SELECT 1 FROM events WHERE run_id = NEW.run_id AND trial_id = NEW.trial_id AND attempt = NEW.attempt
    AND request_id = NEW.request_id AND event IN ('completed', 'denied')
) BEGIN SELECT RAISE(ABORT, 'the request has ended'); END;
CREATE VIEW requests AS SELECT
    MIN(seq) AS seq, run_id, trial_id, attempt, request_id,
    CASE WHEN MAX(event = 'completed') THEN 'completed' WHEN MAX(event = 'denied') THEN 'denied'
        WHEN MAX(event = 'unsettled') THEN 'unsettled' ELSE 'started' END AS state,
    MAX(event = 'completed') AND MAX(event = 'unsettled') AS settled_late,
    MAX(event = 'started') AS has_start,
    MAX(CASE WHEN event = 'started' THEN at END) AS started_at,
    MAX(CASE WHEN event IN ('completed', 'denied') THEN at END) AS ended_at,
    CASE WHEN COUNT(DISTINCT boot) = 1 THEN MAX(CASE WHEN event IN ('completed', 'denied') THEN monotonic END)
        - MAX(CASE WHEN event = 'started' THEN monotonic END) END AS seconds,
    {", ".join(f"MAX({name}) AS {name}" for name in FIELDS)}
FROM events GROUP BY run_id, trial_id, attempt, request_id;
PRAGMA application_id = {_APPLICATION_ID};
PRAGMA user_version = {SCHEMA_VERSION}
"""  # noqa: S608  # names of this module


class LedgerFile:
    """Where a ledger is kept, and how connections to it are made.

    Parameters
    ----------
    path : path
    patience : float
        Seconds that a connection waits for others.
    durability : str
        "full" or "normal"; see `faultbook.runtime.ledger`.
    read_only : bool
        Whether nothing is to be made or changed.

    Attributes
    ----------
    notes : list of str
        What a reader of the evidence should know, such as that WAL is not to be had here.
    """

    def __init__(self, path: Path, *, patience: float, durability: str, read_only: bool) -> None:
        if durability not in DURABILITIES:
            raise ValueError(one_of("durability", durability, DURABILITIES))
        self.path, self.read_only = path, read_only
        self.notes: list[str] = []
        self._patience, self._durability = patience, durability

    def identity(self) -> tuple[int, int] | None:
        """Device and number of the file that is there now; None if there is none."""
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def connect(self) -> sqlite3.Connection:
        """A connection for what this ledger is opened for, not yet prepared."""
        return self.reader() if self.read_only else self._connection("rwc")

    def prepare(self, db: sqlite3.Connection) -> None:
        """Make sure that the file is a ledger of this version; it is made one if it is empty and may be.

        Raises
        ------
        DataError
            If it is no ledger, or one of another version.
        sqlite3.Error
            If it is corrupt or not to be opened.
        """
        if not self._is_ledger(db) and not self.read_only:
            db.execute("BEGIN IMMEDIATE")
            if not self._is_ledger(db):  # another process may have been first
                for statement in _statements():
                    db.execute(statement)
            db.execute("COMMIT")
        if not self.read_only:
            self._into_wal(db)
            db.execute(f"PRAGMA synchronous = {self._durability}")

    def reader(self) -> sqlite3.Connection:
        """A connection of its own: a reader sees one moment, and never holds up who writes."""
        if not self.path.is_file():
            raise DataError("no such ledger", file=self.path)
        db = self._connection("ro")
        try:
            db.execute("PRAGMA schema_version")
        except sqlite3.OperationalError:
            # A folder that cannot be written: no WAL can be laid beside the file, and none is needed if none is there.
            db.close()
            wal = self.path.with_name(f"{self.path.name}-wal")
            if wal.exists() and wal.stat().st_size:
                raise
            db = self._connection("ro&immutable=1")
        return db

    @contextlib.contextmanager
    def readable(self) -> Iterator[None]:
        """Say an error of SQLite's in words of this file."""
        try:
            yield
        except sqlite3.Error as error:
            use = "read" if self.read_only else "used"
            mend = "if it is a copy, copy the file that ends in -wal with it; if it must not be written, only read it"
            raise DataError(f"cannot be {use} as a ledger ({error})", file=self.path, mend=mend) from None

    def _connection(self, mode: str) -> sqlite3.Connection:
        return sqlite3.connect(
            f"{self.path.absolute().as_uri()}?mode={mode}",
            timeout=self._patience,
            isolation_level=None,
            check_same_thread=False,
            uri=True,
        )

    def _is_ledger(self, db: sqlite3.Connection) -> bool:
        """Whether the file is a ledger of this version, and not empty."""
        # One statement, so that it sees one moment: another process may be making the tables.
        application, version, tables = db.execute(
            "SELECT application_id, user_version, (SELECT COUNT(*) FROM sqlite_master)"
            " FROM pragma_application_id, pragma_user_version"
        ).fetchone()
        if application == 0 and tables == 0 and not self.read_only:
            return False
        if application != _APPLICATION_ID:
            raise DataError("is an SQLite file, but no ledger of faultbook", file=self.path, mend="name another file")
        if version != SCHEMA_VERSION:
            problem = f"is a ledger of schema {version}; this version of faultbook knows {SCHEMA_VERSION}"
            raise DataError(problem, file=self.path, mend="use the version that wrote it, or name another file")
        return True

    def _into_wal(self, db: sqlite3.Connection) -> None:
        kind = mount_type(self.path)
        wanted = "delete" if kind in _SHARED_MOUNTS else "wal"
        end = time.monotonic() + self._patience
        found = str(db.execute("PRAGMA journal_mode").fetchone()[0])
        while found != wanted:  # this one change of mode is not waited for by SQLite itself
            try:
                found = str(db.execute(f"PRAGMA journal_mode = {wanted}").fetchone()[0])
                break
            except sqlite3.OperationalError as error:
                if time.monotonic() > end or "locked" not in str(error):
                    self.notes.append(f"the journal mode of the ledger stays '{found}': {error}")
                    return
                time.sleep(_RETRY)
        if found != "wal":
            where = f"a file system of type '{kind}'" if kind else "its file system"
            self.notes.append(f"the ledger is kept with a journal of mode '{found}': WAL is not to be had on {where}")


def _statements() -> list[str]:
    """The statements of the schema; those of a trigger hold semicolons of their own."""
    statements, part = [], ""
    for piece in _SCHEMA.split(";"):
        part += piece
        if sqlite3.complete_statement(f"{part};"):
            statements.append(part)
            part = ""
        else:
            part += ";"
    return [statement for statement in [*statements, part.rstrip(";")] if statement.strip()]


def mount_type(path: Path, *, mounts: Path = Path("/proc/self/mountinfo")) -> str | None:
    """The type of the file system that a path is on; None where that is not told (proc(5), mountinfo)."""
    try:
        lines = mounts.read_text("utf-8", "replace").splitlines()
        place = path.absolute().resolve()
    except OSError:
        return None
    best, kind = -1, None
    for line in lines:
        before, _, after = line.partition(" - ")
        mounted = before.split()[4:5]
        if not mounted or not after:
            continue
        point = Path(mounted[0].encode().decode("unicode_escape"))
        if place.is_relative_to(point) and len(point.parts) >= best:
            best, kind = len(point.parts), after.split()[0]
    return kind
