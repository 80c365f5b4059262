"""Artifacts: what was put in comes back byte for byte, or an error does.

A full disk is a limit on the size of files (RLIMIT_FSIZE) in a process of its own, and a write that fails at one point.
"""

from __future__ import annotations

import base64
import errno
import hashlib
import io
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faultbook.runtime.artifacts import (
    FINDINGS,
    PERMISSIONS,
    AlteredArtifactError,
    ArtifactError,
    ArtifactStore,
    MissingArtifactError,
    Reference,
)

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return ArtifactStore(tmp_path / "artifacts", run_id="run", fsync=False)


def place(store: ArtifactStore, reference: Reference) -> Path:
    return store.folder / "objects" / reference.sha256[:2] / reference.sha256[2:]


def findings(store: ArtifactStore) -> list[tuple[str, str]]:
    found = store.verify()
    assert {finding["finding"] for finding in found} <= set(FINDINGS)
    return [(finding["finding"], finding["artifact"]) for finding in found]


def files(store: ArtifactStore) -> list[str]:
    return sorted(str(path.relative_to(store.folder)) for path in store.folder.rglob("*") if not path.is_dir())


# ---- putting in and reading back -----------------------------------------------------------------------------------


def test_bytes_a_file_and_a_stream_are_the_same_artifact(store: ArtifactStore, tmp_path: Path) -> None:
    file = tmp_path / "shot.png"
    file.write_bytes(PNG)
    references = [store.put(source, name="shot.png") for source in (PNG, file, io.BytesIO(PNG))]
    assert len(set(references)) == 1
    (reference,) = set(references)
    assert reference == Reference(hashlib.sha256(PNG).hexdigest(), len(PNG), "image/png", "shot.png", "run", "owner")
    assert store.get(reference) == PNG
    with store.open(reference) as opened:
        assert opened.read() == PNG
    assert findings(store) == []
    again = ArtifactStore(store.folder)
    assert again.get(Reference.from_dict(json.loads(json.dumps(reference.as_dict())))) == PNG


def test_what_is_larger_than_a_piece_and_what_is_empty(store: ArtifactStore) -> None:
    for content in (os.urandom(3 << 20), b""):
        reference = store.put(io.BytesIO(content))
        assert (reference.size, store.get(reference)) == (len(content), content)


def test_the_index_says_what_was_put_in_for_how_long_and_for_whom(store: ArtifactStore) -> None:
    reference = store.put(b"x", name="a.txt", lifetime="keep", permission="all")
    (line,) = [json.loads(line) for line in (store.folder / "index.jsonl").read_text().splitlines()]
    assert line.pop("at").endswith("+00:00")
    assert line == {"event": "put", "run_id": "run", **reference.as_dict()}


@pytest.mark.parametrize("permission", PERMISSIONS)
def test_the_permission_is_the_mode_of_the_file_whatever_the_umask(store: ArtifactStore, permission: str) -> None:
    before = os.umask(0o077)
    try:
        reference = store.put(b"x", permission=permission)
    finally:
        os.umask(before)
    assert (
        stat.S_IMODE(place(store, reference).stat().st_mode)
        == {"owner": 0o600, "group": 0o640, "all": 0o644}[permission]
    )


def test_of_two_permissions_the_narrower_holds(store: ArtifactStore) -> None:
    reference = store.put(b"x", permission="all")
    store.put(b"x", permission="owner")
    assert stat.S_IMODE(place(store, reference).stat().st_mode) == 0o600
    store.put(b"x", permission="all")
    assert stat.S_IMODE(place(store, reference).stat().st_mode) == 0o600
    place(store, reference).chmod(0o644)
    assert findings(store) == [("permission", reference.sha256)]


def test_a_name_is_a_word_and_never_a_path_or_a_secret(store: ArtifactStore) -> None:
    assert store.put(b"x", name="../../etc/passwd").name == "passwd"
    assert store.put(b"x", name="C:\\a\\b.txt").name == "b.txt"
    assert store.put(b"x", name="a\x1b[2J\nb\u202e").name == "a b"
    assert store.put(b"x", name="/").name is None
    assert "aB3dE6gH9jK2mN5pQ8sT" not in str(store.put(b"x", name="sk-ant-api03-aB3dE6gH9jK2mN5pQ8sT").name)
    with pytest.raises(ArtifactError, match="secret"):
        store.put(b"x", mime="text/ghp_a1B2c3D4e5F6g7H8i9J0k1L2")
    other = ArtifactStore(store.folder, run_id="Bearer aB3dE6gH9jK2mN5pQ8sT")
    other.put(b"x")
    assert "aB3dE6gH9jK2mN5pQ8sT" not in (store.folder / "index.jsonl").read_text()


def test_parameters_are_checked_before_anything_is_written(store: ArtifactStore) -> None:
    for wrong in ({"lifetime": "x"}, {"permission": "x"}, {"mime": "x"}):
        with pytest.raises(ArtifactError):
            store.put(b"x", **wrong)
    assert files(store) == []
    with pytest.raises(TypeError, match="binary stream"):
        store.put(io.StringIO("x"))
    assert files(store) == ["lock"]


# ---- missing and altered -------------------------------------------------------------------------------------------


def flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def lengthened(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"x")


def linked(path: Path) -> None:
    moved = path.with_name("elsewhere")
    path.rename(moved)
    path.symlink_to(moved)


def piped(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def foldered(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    ("harm", "error", "finding"),
    [
        (Path.unlink, MissingArtifactError, "missing"),
        (lambda path: shutil.rmtree(path.parent), MissingArtifactError, "missing"),
        (flipped, AlteredArtifactError, "altered"),
        (emptied, AlteredArtifactError, "altered"),
        (lengthened, AlteredArtifactError, "altered"),
        (linked, ArtifactError, "not_a_file"),
        (piped, ArtifactError, "not_a_file"),
        (foldered, ArtifactError, "not_a_file"),
    ],
)
def test_harm_is_an_error_and_a_finding_and_putting_it_in_again_mends_it(
    store: ArtifactStore, harm: Callable[[Path], Any], error: type[ArtifactError], finding: str
) -> None:
    reference = store.put(PNG)
    store.put(b"beside")
    harm(place(store, reference))
    with pytest.raises(error) as caught:
        store.get(reference)
    assert "\n" not in str(caught.value)
    with pytest.raises(error):
        store.open(reference)
    assert (finding, reference.sha256) in findings(store)
    if harm is foldered:  # a folder is nothing that a file could take the place of
        with pytest.raises(ArtifactError):
            store.put(PNG)
        return
    store.put(PNG)
    assert store.get(reference) == PNG
    assert [kind for kind, _ in findings(store)] == (["unknown_name"] if harm is linked else [])


def test_a_reference_with_another_size_is_not_that_artifact(store: ArtifactStore) -> None:
    reference = store.put(b"four")
    with pytest.raises(AlteredArtifactError, match="4 bytes where 5"):
        store.get(Reference(reference.sha256, 5))
    with pytest.raises(MissingArtifactError):
        store.get(Reference("0" * 64, 4))


def test_what_else_lies_about_is_found_and_left_alone(store: ArtifactStore) -> None:
    reference = store.put(b"x")
    stray = hashlib.sha256(b"stray").hexdigest()
    objects = store.folder / "objects"
    (objects / stray[:2]).mkdir(exist_ok=True)
    (objects / stray[:2] / stray[2:]).write_bytes(b"stray")
    (objects / "notes.txt").write_text("x")
    (objects / reference.sha256[:2] / "short").write_text("x")
    (store.folder / "tmp" / "1-abc").write_text("half")
    with (store.folder / "index.jsonl").open("a") as index:
        index.write('[1]\n{"event": "put", "sha256": "../x"}\n{"event": "other"}\n{"event": "pu')
    assert findings(store) == [
        ("index_line", "2"),
        ("index_line", "3"),
        ("index_line", "4"),
        ("index_line", "5"),
        ("left_over", "tmp/1-abc"),
        ("not_a_file", "objects/notes.txt"),
        ("not_indexed", stray),
        ("unknown_name", f"objects/{reference.sha256[:2]}/short"),
    ]
    before = files(store)
    with pytest.raises(ArtifactError, match="nothing is removed"):
        store.collect()
    assert files(store) == before
    store.put(b"y")  # a line of its own, behind the one that was cut off
    assert ("index_line", "6") not in findings(store)
    assert len([finding for finding, _ in findings(store) if finding == "index_line"]) == 4


def ten_thousand(store: ArtifactStore) -> list[Reference]:
    return [store.put(b"artifact %d" % number) for number in range(10_000)]


@pytest.mark.slow
def test_one_flipped_bit_among_ten_thousand_artifacts_is_found(store: ArtifactStore) -> None:
    references = ten_thousand(store)
    assert store.verify() == []
    flipped(place(store, references[7_777]))
    assert findings(store) == [("altered", references[7_777].sha256)]


# ---- links and folders ---------------------------------------------------------------------------------------------


def test_a_folder_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    with pytest.raises(ArtifactError, match="symbolic link"):
        ArtifactStore(tmp_path / "link")
    (tmp_path / "file").write_text("x")
    with pytest.raises(ArtifactError):
        ArtifactStore(tmp_path / "file")
    with pytest.raises(ArtifactError):
        ArtifactStore(tmp_path / "file" / "below")


def test_a_folder_that_is_swapped_is_noticed(store: ArtifactStore, tmp_path: Path) -> None:
    reference = store.put(b"x")
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(store.folder, elsewhere)
    store.folder.rename(tmp_path / "moved")
    for swap, said in (
        (lambda: None, "is gone"),
        (lambda: store.folder.symlink_to(elsewhere), "symbolic link"),
        (lambda: (store.folder.unlink(), elsewhere.rename(store.folder)), "replaced while it was in use"),
    ):
        swap()
        for use in (lambda: store.put(b"y"), lambda: store.get(reference), store.verify, store.collect):
            with pytest.raises(ArtifactError, match=said):
                use()


@pytest.mark.parametrize("inner", ["objects", "tmp", "shard"])
def test_links_within_the_store_are_not_followed(store: ArtifactStore, tmp_path: Path, inner: str) -> None:
    reference = store.put(b"x")
    name = f"objects/{reference.sha256[:2]}" if inner == "shard" else inner
    outside = tmp_path / "outside"
    shutil.move(store.folder / name, outside)
    (store.folder / name).symlink_to(outside)
    before = sorted(path.name for path in outside.rglob("*"))
    with pytest.raises(ArtifactError, match="symbolic link"):
        store.put(b"x")
    if inner != "tmp":
        with pytest.raises(ArtifactError, match="symbolic link"):
            store.get(reference)
    assert sorted(path.name for path in outside.rglob("*")) == before


@pytest.mark.parametrize("name", ["index.jsonl", "lock"])
def test_an_index_or_a_lock_that_is_a_link_is_not_written_through(
    store: ArtifactStore, tmp_path: Path, name: str
) -> None:
    target = tmp_path / "target"
    target.write_text("before")
    (store.folder / name).symlink_to(target)
    with pytest.raises(ArtifactError):
        store.put(b"x")
    assert target.read_text() == "before"
    assert not [name for name in files(store) if name.startswith("tmp/")]


def test_a_source_that_is_a_link_a_pipe_or_not_there(store: ArtifactStore, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to("file")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe", "absent", "."):
        with pytest.raises(ArtifactError):
            store.put(tmp_path / name)
    assert files(store) == ["lock"]


# ---- lifetimes -----------------------------------------------------------------------------------------------------


def test_what_no_run_holds_any_more_is_collected_and_the_rest_stays(store: ArtifactStore) -> None:
    other = ArtifactStore(store.folder, run_id="other", fsync=False)
    own, shared, kept = store.put(b"own"), store.put(b"shared"), store.put(b"kept")
    other.put(b"shared")
    other.put(b"kept", lifetime="keep")
    (store.folder / "tmp" / "1-abc").write_text("of a put that was killed")
    assert store.collect() == []
    assert findings(store) == []
    store.release("run")
    assert store.collect() == [own.sha256]
    assert store.get(shared) == b"shared"
    with pytest.raises(MissingArtifactError):
        store.get(own)
    store.release("other")
    assert store.collect() == [shared.sha256]
    assert store.get(kept) == b"kept"
    assert findings(store) == []
    assert store.get(store.put(b"own")) == b"own"  # put in anew, and held anew
    assert store.collect() == []


# ---- disk full and processes ---------------------------------------------------------------------------------------

FULL_DISK = """
    import resource, sys
    from pathlib import Path
    from faultbook.errors import DataError
    from faultbook.runtime.artifacts import ArtifactStore
    store = ArtifactStore(Path(sys.argv[1]))
    store.put(b"before")
    most = resource.getrlimit(resource.RLIMIT_FSIZE)
    for limit, content in ((50_000, bytes(100_000)), (300, b"no room for its line in the index")):
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, most[1]))
        try:
            store.put(content)
        except DataError as error:
            print(error)
    resource.setrlimit(resource.RLIMIT_FSIZE, most)
    print(store.verify())
"""


def test_a_full_disk_leaves_nothing_half_written(store: ArtifactStore) -> None:
    command = [sys.executable, "-c", textwrap.dedent(FULL_DISK), str(store.folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    first, second, found = done.stdout.splitlines()
    assert "File too large" in first
    assert "File too large" in second
    assert found == "[]"
    digest = hashlib.sha256(b"before").hexdigest()
    assert files(store) == ["index.jsonl", "lock", f"objects/{digest[:2]}/{digest[2:]}"]
    assert len((store.folder / "index.jsonl").read_text().splitlines()) == 1


@pytest.mark.parametrize("call", ["write", "pwrite", "fsync", "replace", "fchmod"])
def test_no_space_at_any_step_is_an_error_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    store = ArtifactStore(tmp_path / "artifacts")
    before = store.put(b"before")

    def fails(*_: Any, **__: Any) -> Any:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, call, fails)
        with pytest.raises(ArtifactError, match="No space left"):
            store.put(b"more")
    assert findings(store) == []
    assert files(store) == ["index.jsonl", "lock", str(place(store, before).relative_to(store.folder))]
    assert store.get(store.put(b"more")) == b"more"


def test_a_short_write_is_gone_on_with(store: ArtifactStore, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, content: write(file, bytes(content[:3])))
    assert store.get(store.put(PNG)) == PNG


def test_threads_put_in_the_same_and_others(store: ArtifactStore) -> None:
    def put(thread: int) -> None:
        for number in range(20):
            store.put(b"same %d" % number)
            store.put(b"own %d %d" % (thread, number))

    threads = [threading.Thread(target=put, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert findings(store) == []
    assert len([name for name in files(store) if name.startswith("objects/")]) == 20 + 4 * 20
    assert len((store.folder / "index.jsonl").read_text().splitlines()) == 4 * 40


PUT_AND_COLLECT = """
    import sys
    from pathlib import Path
    from faultbook.runtime.artifacts import ArtifactStore
    run = sys.argv[2]
    store = ArtifactStore(Path(sys.argv[1]), run_id=run, fsync=False)
    for round in range(15):
        references = [store.put(b"same %d" % number) for number in range(10)]
        assert [store.get(reference) for reference in references] == [b"same %d" % number for number in range(10)]
        store.release(run)
        store.collect()
"""


def test_processes_put_in_read_and_collect_the_same_at_once(store: ArtifactStore) -> None:
    command = [sys.executable, "-c", textwrap.dedent(PUT_AND_COLLECT), str(store.folder)]
    children = [subprocess.Popen([*command, f"run-{number}"]) for number in range(3)]
    assert [child.wait(60) for child in children] == [0] * 3
    assert findings(store) == []
    store.collect()
    assert not [name for name in files(store) if name.startswith("objects/")]


KILLED = """
    import sys
    from pathlib import Path
    from faultbook.runtime.artifacts import ArtifactStore
    class Endless:
        def read(self, size):
            print("reading", flush=True)
            return bytes(size)
    ArtifactStore(Path(sys.argv[1])).put(Endless())
"""


def test_a_put_that_is_killed_leaves_a_leftover_that_is_found_and_collected(store: ArtifactStore) -> None:
    command = [sys.executable, "-c", textwrap.dedent(KILLED), str(store.folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.readline()
        process.kill()
    assert [finding for finding, _ in findings(store)] == ["left_over"]
    assert store.collect() == []
    assert findings(store) == []


@settings(max_examples=50, deadline=None)
@given(st.lists(st.binary(max_size=200), max_size=5))
def test_any_bytes_come_back_as_they_were(contents: list[bytes]) -> None:
    with tempfile.TemporaryDirectory() as name:
        store = ArtifactStore(Path(name) / "artifacts", fsync=False)
        references = [store.put(content) for content in contents]
        assert [store.get(reference) for reference in references] == contents
        for reference, content in zip(references, contents, strict=True):
            with store.open(reference) as file:
                assert file.read() == content
        assert store.verify() == []
