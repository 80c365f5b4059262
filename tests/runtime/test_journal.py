"""The journal: what was written stays, what could not be written leaves no trace, what is broken is set aside whole.

A full disk is an error of one call, a limit on the size of files (RLIMIT_FSIZE), and the device that is always full; a
disk that is read-only is a folder without the right to write, as seen by a user who is not root.
"""

from __future__ import annotations

import base64
import errno
import json
import os
import random
import shutil
import stat
import subprocess
import sys
import tempfile
import textwrap
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from faultbook.errors import DataError
from faultbook.harness.files import Files
from faultbook.harness.formats import journal as reader
from faultbook.journal_chain import FINDINGS, GENESIS, JOURNAL, digest
from faultbook.runtime import journal as module
from faultbook.runtime.journal import TAIL_SET_ASIDE, Journal, is_started, records, verify

QUICK = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
END = {"termination": {"kind": "completed"}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    run = tmp_path / "run-1"
    run.mkdir()
    return run


def begun(folder: Path, *, run_id: str = "run-1") -> Journal:
    journal = Journal(folder, run_id)
    journal.append("run_started", kind="report", plan=None)
    return journal


def whole(folder: Path) -> bytes:
    journal = begun(folder)
    for number in range(3):
        names = {"trial_id": f"t{number}", "arm": "a", "task_id": f"t{number}", "attempt": 1}
        journal.append("trial_started", **names)
        journal.append("trial_finished", **names, termination={"kind": "completed", "source": "observed"})
    journal.append("run_finished", **END)
    return (folder / JOURNAL).read_bytes()


def findings(folder: Path) -> list[str]:
    """What is wrong with it; the reader of others and the writer's own agree."""
    found = [row["finding"] for row in verify(folder)]
    assert reader.verify(folder, Files())["finding"].tolist() == found or found == ["run_unclosed"]
    return found


def script(text: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", textwrap.dedent(text), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


# ---- what is written -----------------------------------------------------------------------------------------------


def test_a_journal_has_no_findings_for_either_reader(folder: Path) -> None:
    whole(folder)
    assert findings(folder) == []
    assert reader.verify(folder, Files()).empty
    assert reader.recognises(folder)


def test_a_record_is_what_the_format_says(folder: Path) -> None:
    moment = datetime(2026, 9, 8, 15, 12, 34, 5, tzinfo=UTC)
    journal = Journal(folder, "run-1", clock=lambda: 12.5, now=lambda: moment)
    first, second = journal.append("run_started", kind="présentation"), journal.append("note")
    assert first == {
        "seq": 1,
        "at": "2026-09-08T15:12:34.000005+00:00",
        "monotonic": 12.5,
        "run_id": "run-1",
        "event": "run_started",
        "data": {"kind": "présentation"},
        "previous_sha256": GENESIS,
        "sha256": digest(first),
    }
    assert (second["seq"], second["previous_sha256"], second["data"]) == (2, first["sha256"], {})
    assert [json.loads(line) for line in (folder / JOURNAL).read_bytes().splitlines()] == [first, second]


def test_a_journal_that_is_gone_on_with_is_one_chain(folder: Path) -> None:
    before = b""
    for number in range(4):
        journal = Journal(folder, "run-1")
        journal.append("run_started" if number == 0 else "note", number=number)
        after = (folder / JOURNAL).read_bytes()
        assert after.startswith(before)
        assert len(after) > len(before)
        before = after
    assert findings(folder) == ["run_unclosed"]
    assert is_started(records(folder))


def test_a_record_is_on_disk_before_it_is_acknowledged(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    write, fsync = os.write, os.fsync

    def seen_write(file: int, content: bytes) -> int:
        calls.append("write")
        return write(file, content[:100])  # in several parts, as a disk may take it

    def seen_fsync(file: int) -> None:
        is_folder = stat.S_ISDIR(os.fstat(file).st_mode)
        if not is_folder:
            assert os.fstat(file).st_size == (folder / JOURNAL).stat().st_size
            assert (folder / JOURNAL).read_bytes().endswith(b"\n")
        calls.append("fsync folder" if is_folder else "fsync")
        fsync(file)

    monkeypatch.setattr(module.os, "write", seen_write)
    monkeypatch.setattr(module.os, "fsync", seen_fsync)
    journal = Journal(folder, "run-1")
    assert calls == []
    journal.append("run_started")
    assert calls[-2:] == ["fsync", "fsync folder"]  # a new file's name has to be on disk too
    assert set(calls[:-2]) == {"write"}
    calls.clear()
    journal.append("note")
    assert calls[-1] == "fsync"
    assert calls.count("fsync") == 1
    assert findings(folder) == ["run_unclosed"]


def test_threads_share_it(folder: Path) -> None:
    journal = begun(folder)
    gate = threading.Barrier(4)

    def add(thread: int) -> None:
        gate.wait()
        for number in range(25):
            journal.append("note", thread=thread, number=number)

    threads = [threading.Thread(target=add, args=(thread,)) for thread in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    journal.append("run_finished", **END)
    assert findings(folder) == []
    told = [(line.data["thread"], line.data["number"]) for line in records(folder) if line.event == "note"]
    assert sorted(told) == [(thread, number) for thread in range(4) for number in range(25)]
    assert all([n for t, n in told if t == thread] == list(range(25)) for thread in range(4))


# ---- data ----------------------------------------------------------------------------------------------------------


def test_numbers_that_are_none_are_missing(folder: Path) -> None:
    nan, inf = float("nan"), float("inf")
    record = begun(folder).append("note", a=nan, b=[inf, {"c": -inf, "d": (1.5, nan)}], e="Infinity")
    assert record["data"] == {"a": None, "b": [None, {"c": None, "d": [1.5, None]}], "e": "Infinity"}
    assert findings(folder) == ["run_unclosed"]


class Hostile:
    def __str__(self) -> str:
        raise RuntimeError("no")


def test_any_object_becomes_plain(folder: Path) -> None:
    cycle: dict[str, Any] = {"name": "x"}
    cycle["self"] = [cycle]
    deep: Any = 1.0
    for _ in range(300):
        deep = [deep]
    journal = begun(folder)
    journal.append("note", cycle=cycle, deep=deep, bytes=b"\xff", path=Path("a"), set={1}, hostile=Hostile())
    journal.append("note", half="\ud800", whole=10**5000, keys={1: "a", None: "b", ("t",): "c"}, newline="a\nb\u2028c")
    assert findings(folder) == ["run_unclosed"]
    assert len((folder / JOURNAL).read_bytes().splitlines()) == 3


JSON_VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12) | st.binary(max_size=8)
DATA = st.dictionaries(
    st.text(max_size=6).filter(lambda name: name not in ("self", "event")),
    JSON_VALUES | st.lists(JSON_VALUES, max_size=3) | st.dictionaries(JSON_VALUES, JSON_VALUES, max_size=3),
    max_size=4,
)


@QUICK
@given(st.lists(DATA, max_size=4))
def test_any_data_is_written_and_verified(tmp_path: Path, told: list[dict[str, Any]]) -> None:
    folder = Path(tempfile.mkdtemp(dir=tmp_path))
    journal = begun(folder)
    written = [journal.append("note", **data) for data in told]
    assert findings(folder) == ["run_unclosed"]
    assert [line.record for line in records(folder)][1:] == written


SECRETS = {
    "API key": "sk-ant-api03-" + "Zk9" * 20,
    "bearer": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
    "password": "hunter2-correct-horse",
    "basic": base64.b64encode(b"user:open-sesame-77").decode(),
}


def test_secrets_are_in_no_field_of_the_file(folder: Path) -> None:
    key, bearer, password, basic = SECRETS.values()
    url = f"https://somebody:{password}@example.org/x"
    journal = Journal(folder, "run-1")
    journal.append(
        "run_started",
        kind=f"key {key}",
        plan=[{"arm": url, "task_id": f"Authorization: Bearer {bearer}", "attempt": 1}],
        command=["report", "--api-key", key, f"--url={url}"],
        settings={"password": password, "nested": [{"headers": {"Authorization": f"Basic {basic}"}}]},
        resumes=url,
        **{f"k {key}": 1},
    )
    journal.append(f"event {key}", text=f"curl -H 'Authorization: Bearer {bearer}' {url}")
    journal.append("trial_finished", termination={"message": f"401 for {key}"}, usage={"note": (url, {basic: bearer})})
    content = (folder / JOURNAL).read_bytes() + b"".join(f.read_bytes() for f in folder.iterdir())
    for name, secret in SECRETS.items():
        if name != "basic":  # bare, it is a word like any other; behind "Basic" it is none
            assert secret.encode() not in content, name
    assert f"Basic {basic}".encode() not in content
    assert b"[redacted: " in content
    assert "hash_mismatch" not in findings(folder)


# ---- what cannot be written ----------------------------------------------------------------------------------------


def full_after(monkeypatch: pytest.MonkeyPatch, *, parts: int, code: int = errno.ENOSPC) -> None:
    """The next record is taken in parts of 10 bytes, and then the disk is full; after that there is room again."""
    real, taken = os.write, [0]

    def write(file: int, content: bytes) -> int:
        taken[0] += 1
        if taken[0] > parts:
            monkeypatch.setattr(module.os, "write", real)
            raise OSError(code, os.strerror(code))
        return real(file, content[:10])

    monkeypatch.setattr(module.os, "write", write)


@pytest.mark.parametrize("parts", [0, 1, 5])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_a_full_disk_leaves_the_journal_as_it_was(
    folder: Path, monkeypatch: pytest.MonkeyPatch, parts: int, code: int
) -> None:
    journal = begun(folder)
    before = (folder / JOURNAL).read_bytes()
    full_after(monkeypatch, parts=parts, code=code)
    with pytest.raises(DataError, match="cannot be written") as caught:
        journal.append("note", lost=True)
    assert caught.value.mend
    assert (folder / JOURNAL).read_bytes() == before
    assert journal.append("note", lost=False)["seq"] == 2
    assert findings(folder) == ["run_unclosed"]


def test_a_first_record_that_cannot_be_written_leaves_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full_after(monkeypatch, parts=3)
    journal = Journal(folder, "run-1")
    with pytest.raises(DataError):
        journal.append("run_started")
    assert journal.append("run_started")["seq"] == 1
    assert findings(folder) == ["run_unclosed"]


def test_what_the_disk_does_not_confirm_is_not_written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = begun(folder)
    before = (folder / JOURNAL).read_bytes()

    def fails(file: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(module.os, "fsync", fails)
        with pytest.raises(DataError, match="Input/output error"):
            journal.append("note")
    assert (folder / JOURNAL).read_bytes() == before
    journal.append("note")
    assert findings(folder) == ["run_unclosed"]


def test_half_a_record_that_cannot_be_taken_back_is_set_aside_by_the_next(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = begun(folder)

    def refused(file: int, size: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        full_after(patch, parts=2)
        patch.setattr(module.os, "ftruncate", refused)
        with pytest.raises(DataError, match="cannot be written"):
            journal.append("note", lost=True)
    half = (folder / JOURNAL).read_bytes().splitlines()[1]
    assert half.startswith(b'{"seq":2,')
    journal.append("note", lost=False)
    assert [line.event for line in records(folder)] == ["run_started", TAIL_SET_ASIDE, "note"]
    assert (folder / f"{JOURNAL}.tail-1").read_bytes() == half
    assert findings(folder) == ["run_unclosed"]


def test_an_interrupt_at_any_moment_of_an_append_breaks_no_chain(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C can come within a write, and between the write and the note that is taken of it."""
    journal = begun(folder)
    real = {name: getattr(os, name) for name in ("write", "fsync", "close")}

    def interrupting(name: str) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            if name == "write":
                real["write"](arguments[0], arguments[1][:30])
            else:
                real[name](*arguments)
            raise KeyboardInterrupt

        return call

    for name in real:
        with monkeypatch.context() as patch:
            patch.setattr(module.os, name, interrupting(name))
            with pytest.raises(KeyboardInterrupt):
                journal.append("interrupted", at=name)
        journal.append("note", after=name)
    journal.append("run_finished", **END)
    assert findings(folder) == []
    assert [line.data["after"] for line in records(folder) if line.event == "note"] == [*real]
    # What was whole when the interrupt came is kept; what was not yet acknowledged by the disk is taken back.
    assert [line.data["at"] for line in records(folder) if line.event == "interrupted"] == ["close"]


def test_a_journal_that_somebody_cut_off_is_not_gone_on_with(folder: Path) -> None:
    journal = begun(folder)
    journal.append("note")
    (folder / JOURNAL).write_bytes(b"")
    with pytest.raises(DataError, match="has 0 bytes left of the"):
        journal.append("note")
    (folder / JOURNAL).unlink()
    with pytest.raises(DataError, match="has 0 bytes left of the"):
        journal.append("note")
    assert not (folder / JOURNAL).exists()


FULL = """
    import resource, signal, sys
    from pathlib import Path
    from faultbook.errors import DataError
    from faultbook.runtime.journal import Journal
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    journal = Journal(Path(sys.argv[1]), "run-1")
    journal.append("run_started")
    most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, most[1]))
    told = 0
    try:
        while True:
            journal.append("note", number=told)
            told += 1
    except DataError as error:
        print(error)
    resource.setrlimit(resource.RLIMIT_FSIZE, most)
    journal.append("note", number=told)
    print(told)
"""


def test_a_limit_on_the_size_of_files(folder: Path) -> None:
    done = script(FULL, folder)
    assert done.returncode == 0, done.stderr
    problem, told = done.stdout.splitlines()
    assert "cannot be written (File too large)" in problem
    assert findings(folder) == ["run_unclosed"]
    assert [line.data.get("number") for line in records(folder)] == [None, *range(int(told) + 1)]


def test_a_device_that_is_full(folder: Path) -> None:
    journal = Journal(folder, "run-1")
    try:
        os.mknod(folder / JOURNAL, stat.S_IFCHR | 0o666, os.makedev(1, 7))  # /dev/full
        os.close(os.open(folder / JOURNAL, os.O_WRONLY))
    except OSError:
        pytest.skip("no devices can be made here")
    with pytest.raises(DataError, match="No space left on device"):
        journal.append("run_started")
    with pytest.raises(DataError, match="no regular file"):
        records(folder)


@pytest.mark.parametrize("kind", ["link", "dangling link", "pipe", "folder"])
def test_what_is_no_file_is_refused_and_never_waited_for(folder: Path, tmp_path: Path, kind: str) -> None:
    other = tmp_path / "victim"
    if kind == "pipe":
        os.mkfifo(folder / JOURNAL)
    elif kind == "folder":
        (folder / JOURNAL).mkdir()
    else:
        if kind == "link":
            other.write_bytes(b"precious")
        (folder / JOURNAL).symlink_to(other)
    open_files = len([*Path("/proc/self/fd").iterdir()])
    for attempt in (lambda: Journal(folder, "run-1"), lambda: records(folder), lambda: verify(folder)):
        with pytest.raises(DataError):
            attempt()
    assert len([*Path("/proc/self/fd").iterdir()]) == open_files
    assert other.exists() == (kind == "link")
    assert kind != "link" or other.read_bytes() == b"precious"


def test_a_link_that_comes_later_is_not_followed(folder: Path, tmp_path: Path) -> None:
    journal = begun(folder)
    (folder / JOURNAL).rename(tmp_path / "moved")
    (folder / JOURNAL).symlink_to(tmp_path / "moved")
    before = (tmp_path / "moved").read_bytes()
    with pytest.raises(DataError):
        journal.append("note")
    assert (tmp_path / "moved").read_bytes() == before


READ_ONLY = """
    import os, sys
    from pathlib import Path
    from faultbook.errors import DataError
    from faultbook.runtime.journal import Journal, verify
    if os.geteuid() == 0:
        os.setegid(65534)
        os.seteuid(65534)
    print([found["finding"] for found in verify(Path(sys.argv[1]))])
    for folder in sys.argv[1:]:
        try:
            Journal(Path(folder), "run-1").append("note")
        except DataError as error:
            print(error)
"""


def test_a_folder_that_cannot_be_written() -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as made:
        top = Path(made)
        top.chmod(0o755)
        folders = [top / name for name in ("whole", "broken", "empty")]
        for folder in folders:
            folder.mkdir()
        for folder in folders[:2]:
            begun(folder)
        with (folders[1] / JOURNAL).open("ab") as file:
            file.write(b"half")
        contents = [(folder / JOURNAL).read_bytes() for folder in folders[:2]]
        for folder in folders[:2]:
            (folder / JOURNAL).chmod(0o444)
        for folder in folders:
            folder.chmod(0o555)
        done = script(READ_ONLY, *folders)
        assert [(folder / JOURNAL).read_bytes() for folder in folders[:2]] == contents
        assert [len([*folder.iterdir()]) for folder in folders] == [1, 1, 0]
        for folder in folders:
            folder.chmod(0o755)
    assert done.returncode == 0, done.stderr
    first, *problems = done.stdout.splitlines()
    assert first == "['run_unclosed']"
    assert len(problems) == 3
    assert all("cannot be written (Permission denied)" in problem for problem in problems)


# ---- what is broken ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cut", [1, 50, 200])
def test_a_half_written_last_line_is_set_aside_byte_by_byte(folder: Path, cut: int) -> None:
    content = whole(folder)
    last = content.splitlines(keepends=True)[-1]
    half = last[: min(cut, len(last) - 1)]
    kept = content[: -len(last)]
    (folder / JOURNAL).write_bytes(kept + half)
    journal = Journal(folder, "run-1")
    assert (folder / f"{JOURNAL}.tail-1").read_bytes() == half
    assert (folder / JOURNAL).read_bytes().startswith(kept)
    *_, said = records(folder)
    assert (said.event, said.data) == (TAIL_SET_ASIDE, {"bytes": len(half), "file": f"{JOURNAL}.tail-1"})
    journal.append("run_finished", **END)
    assert findings(folder) == []


def test_a_corrupt_middle_sets_aside_all_behind_it(folder: Path) -> None:
    content = whole(folder)
    pieces = content.splitlines(keepends=True)
    broken = [*pieces[:4], pieces[4].replace(b"completed", b"Completed"), *pieces[5:]]
    (folder / JOURNAL).write_bytes(b"".join(broken))
    assert "hash_mismatch" in findings(folder)
    Journal(folder, "run-1")
    assert (folder / f"{JOURNAL}.tail-1").read_bytes() == b"".join(broken[4:])
    assert (folder / JOURNAL).read_bytes().startswith(b"".join(pieces[:4]))
    assert findings(folder) == ["run_unclosed"]


def test_tails_do_not_write_over_each_other(folder: Path) -> None:
    begun(folder)
    for number in range(3):
        with (folder / JOURNAL).open("ab") as file:
            file.write(b"half %d" % number)
        Journal(folder, "run-1")
    assert [(folder / f"{JOURNAL}.tail-{n + 1}").read_bytes() for n in range(3)] == [b"half %d" % n for n in range(3)]
    assert findings(folder) == ["run_unclosed"]


def test_nothing_is_cut_off_before_it_is_safe_elsewhere(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun(folder)
    with (folder / JOURNAL).open("ab") as file:
        file.write(b"half")
    before = (folder / JOURNAL).read_bytes()

    def fails(file: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(module.os, "fsync", fails)
        with pytest.raises(DataError, match="tail-1: cannot be written"):
            Journal(folder, "run-1")
    assert (folder / JOURNAL).read_bytes() == before
    assert [file.name for file in folder.iterdir()] == [JOURNAL]  # and nothing that looks like a tail
    Journal(folder, "run-1")
    assert (folder / f"{JOURNAL}.tail-1").read_bytes() == b"half"


def test_an_empty_journal_is_begun(folder: Path) -> None:
    (folder / JOURNAL).touch()
    assert begun(folder).append("note")["seq"] == 2
    assert findings(folder) == ["run_unclosed"]


def test_the_journal_of_another_run_is_refused_untouched(folder: Path) -> None:
    content = whole(folder)
    with pytest.raises(DataError, match=r"the journal of another run \(run-1\)"):
        Journal(folder, "run-2")
    assert (folder / JOURNAL).read_bytes() == content
    assert [file.name for file in folder.iterdir()] == [JOURNAL]


# ---- fuzz ----------------------------------------------------------------------------------------------------------


def damaged(content: bytes, seed: int) -> bytes:
    """Cuts, flipped bits, lines that change places, come twice or get lost, and foreign bytes."""
    chance, pieces = random.Random(seed), content.splitlines(keepends=True)
    for _ in range(chance.randint(1, 3)):
        place, other = chance.randrange(len(pieces)), chance.randrange(len(pieces))
        line = pieces[place]
        match chance.randrange(6):
            case 0:
                pieces[place], pieces[other] = pieces[other], line
            case 1:
                pieces.insert(other, line)
            case 2 if len(pieces) > 1:
                del pieces[place]
            case 3:
                at = chance.randrange(len(line))
                pieces[place] = line[:at] + bytes([line[at] ^ (1 << chance.randrange(8))]) + line[at + 1 :]
            case 4:
                pieces[place] = line[: chance.randrange(len(line))] or b"\0"
            case _:
                pieces.insert(place, chance.randbytes(chance.randrange(1, 40)))
    made = b"".join(pieces)
    return made[: chance.randrange(len(made) + 1)] if chance.random() < 0.3 else made


@QUICK
@given(seed=st.integers(0, 2**32))
def test_any_damage_is_told_and_gone_on_behind(tmp_path: Path, seed: int) -> None:
    folder = Path(tempfile.mkdtemp(dir=tmp_path))
    content = damaged(whole(folder), seed)
    (folder / JOURNAL).write_bytes(content)
    assert {row["finding"] for row in verify(folder)} <= set(FINDINGS)
    assert len(records(folder)) == content.count(b"\n") + bool(content and not content.endswith(b"\n"))
    list(reader.read(folder, Files()))
    journal = Journal(folder, "run-1")
    tail = folder / f"{JOURNAL}.tail-1"
    kept = (folder / JOURNAL).read_bytes() if (folder / JOURNAL).exists() else b""
    if tail.exists():
        assert content.endswith(tail.read_bytes())
        assert kept.startswith(content[: len(content) - tail.stat().st_size])  # every byte is in one or the other
    else:
        assert kept == content
    journal.append("note")
    assert not {row["finding"] for row in verify(folder)} & {"hash_mismatch", "chain_broken", "malformed_json"}
    shutil.rmtree(folder)


@QUICK
@given(content=st.binary(max_size=300))
def test_any_bytes_are_told_of_and_kept(tmp_path: Path, content: bytes) -> None:
    folder = Path(tempfile.mkdtemp(dir=tmp_path))
    (folder / JOURNAL).write_bytes(content)
    verify(folder)
    records(folder)
    Journal(folder, "run-1").append("note")
    if content:
        assert (folder / f"{JOURNAL}.tail-1").read_bytes() == content
    shutil.rmtree(folder)
