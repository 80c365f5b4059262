"""How scarce memory is: made-up trees of the kernel's files, each source missing or broken in turn; the real one."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faultbook.runtime.memory import Reading, Stall, pressure

# The form of the kernel's document on pressure stall information; the numbers are made up.
STALLS = "some avg10={a} avg60=1.50 avg300=0.25 total=123456\nfull avg10={b} avg60=0.50 avg300=0.05 total=2345\n"
MOUNT = "41 31 0:37 {root} {point} rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
OTHERS = "23 1 8:1 / / rw - ext4 /dev/vda rw\n31 23 0:28 / /sys rw - sysfs sysfs rw\n"


def write(root: Path, file: str, text: str) -> None:
    (root / file).parent.mkdir(parents=True, exist_ok=True)
    (root / file).write_text(text, encoding="utf-8")


def host(total: int = 8000, available: int = 5000) -> object:
    return lambda: SimpleNamespace(total=total, available=available)


def group(root: Path, path: str, *, mount_root: str = "/", point: str = "/sys/fs/cgroup") -> None:
    write(root, "proc/self/cgroup", f"0::{path}\n")
    write(root, "proc/self/mountinfo", OTHERS + MOUNT.format(root=mount_root, point=point))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A machine whose every source tells something."""
    write(tmp_path, "proc/pressure/memory", STALLS.format(a="3.00", b="1.00"))
    group(tmp_path, "/user/run")
    for name, text in {
        "current": "700",
        "max": "1000",
        "high": "max",
        "stat": "anon 5\ninactive_file 200\nfile 9",
    }.items():
        write(tmp_path, f"sys/fs/cgroup/user/run/memory.{name}", text + "\n")
    write(tmp_path, "sys/fs/cgroup/user/run/memory.pressure", STALLS.format(a="7.00", b="2.00"))
    return tmp_path


def test_every_number_has_its_source(root: Path) -> None:
    found = pressure(root, host=host())
    folder = "/sys/fs/cgroup/user/run"
    assert found == Reading(
        host_some=Stall(3.0, 1.5, 0.25, 123456),
        host_full=Stall(1.0, 0.5, 0.05, 2345),
        own_some=Stall(7.0, 1.5, 0.25, 123456),
        own_full=Stall(2.0, 0.5, 0.05, 2345),
        own_current=700,
        own_max=1000,
        own_high=None,
        own_room=500,  # 1000 − (700 − 200): file contents that are not in use can be dropped
        host_total=8000,
        host_available=5000,
        sources={
            "host_some": "/proc/pressure/memory",
            "host_full": "/proc/pressure/memory",
            "own_some": f"{folder}/memory.pressure",
            "own_full": f"{folder}/memory.pressure",
            "own_current": f"{folder}/memory.current",
            "own_max": f"{folder}/memory.max",
            "own_high": f"{folder}/memory.high",  # known, and there is none
            "own_room": folder,
            "host_total": "psutil.virtual_memory",
            "host_available": "psutil.virtual_memory",
        },
    )
    assert (found.room, found.some_avg10) == (500, 7.0)


def test_the_machine_counts_where_it_has_less(root: Path) -> None:
    write(root, "proc/pressure/memory", STALLS.format(a="30.00", b="1.00"))
    found = pressure(root, host=host(available=90))
    assert (found.room, found.some_avg10) == (90, 30.0)


def test_a_tighter_group_around_ours_counts(root: Path) -> None:
    for name, text in {"current": "900", "max": "max", "high": "1000", "stat": "inactive_file 0"}.items():
        write(root, f"sys/fs/cgroup/user/memory.{name}", text)
    found = pressure(root, host=host())
    assert (found.own_room, found.sources["own_room"], found.own_max) == (100, "/sys/fs/cgroup/user", 1000)


def test_a_group_above_its_limit_has_no_room(root: Path) -> None:
    write(root, "sys/fs/cgroup/user/run/memory.high", "400")
    assert pressure(root, host=host()).room == 0


def test_a_container_with_a_namespace_of_its_own(root: Path) -> None:
    group(root, "/")
    for name, text in {"current": "10", "max": "30"}.items():
        write(root, f"sys/fs/cgroup/memory.{name}", text)
    found = pressure(root, host=host())
    assert (found.own_current, found.own_room) == (10, 20)


def test_a_container_that_is_shown_its_part_of_the_tree(root: Path) -> None:
    group(root, "/docker/abc/in", mount_root="/docker/abc", point="/groups\\040here")
    write(root, "groups here/in/memory.current", "10")
    found = pressure(root, host=host())
    assert (found.own_current, found.sources["own_current"]) == (10, "/groups here/in/memory.current")


@pytest.mark.parametrize("path", ["/../other", "/user/../../x"])
def test_a_group_outside_of_what_is_shown(root: Path, path: str) -> None:
    group(root, path)
    found = pressure(root, host=host())
    assert (found.own_current, found.own_room, found.room) == (None, None, 5000)
    assert any("outside" in note for note in found.notes)


def test_a_name_that_no_file_can_have(root: Path) -> None:
    group(root, "/a\0b")
    found = pressure(root, host=host())
    assert (found.own_current, found.room) == (None, 5000)


def test_only_the_old_control_groups(root: Path) -> None:
    write(root, "proc/self/cgroup", "4:memory:/a\n1:cpu:/\n0::/\n")
    write(root, "proc/self/mountinfo", OTHERS)
    found = pressure(root, host=host())
    assert (found.own_current, found.room) == (None, 5000)
    assert "no control group of version 2" in found.notes


def test_pressure_of_the_machine_without_any_control_group(root: Path) -> None:
    """The one may be present while the other is absent."""
    (root / "proc" / "self" / "cgroup").unlink()
    found = pressure(root, host=host())
    assert (found.some_avg10, found.own_some, found.own_room) == (3.0, None, None)
    assert any(note.startswith("/proc/self/cgroup: No such file") for note in found.notes)


def test_only_the_machine(tmp_path: Path) -> None:
    found = pressure(tmp_path, host=host())
    assert (found.room, found.some_avg10, set(found.sources)) == (5000, None, {"host_total", "host_available"})


def test_nothing_at_all(tmp_path: Path) -> None:
    found = pressure(tmp_path, host=None)
    assert (found.room, found.some_avg10, found.sources) == (None, None, {})
    assert found.notes


@pytest.mark.parametrize("error", [OSError(13, "Permission denied"), psutil.AccessDenied(), RuntimeError("no meminfo")])
def test_a_machine_that_does_not_tell(root: Path, error: Exception) -> None:
    def refuse() -> None:
        raise error

    found = pressure(root, host=refuse)
    assert (found.host_total, found.host_available, found.room) == (None, None, 500)
    assert found.notes[-1].startswith(f"memory of the machine: {type(error).__name__}")


def test_a_file_that_cannot_be_read(root: Path) -> None:
    (root / "proc/pressure/memory").unlink()
    (root / "proc/pressure/memory").mkdir()  # an error that even the superuser gets
    found = pressure(root, host=host())
    assert found.host_some is None
    assert "/proc/pressure/memory: Is a directory" in found.notes


@pytest.mark.parametrize(
    "text",
    [
        "some avg10=x avg60=0 avg300=0 total=0",
        "some avg10=1 total=0",
        "some avg10=nan avg60=0 avg300=0 total=0",
        "some avg10=101 avg60=0 avg300=0 total=0",
        "some avg10 avg60 avg300 total",
        "\0\0\0",
    ],
)
def test_lines_of_another_form_are_missing_not_zero(root: Path, text: str) -> None:
    write(root, "proc/pressure/memory", text)
    found = pressure(root, host=host())
    assert (found.host_some, found.host_full) == (None, None)
    assert "/proc/pressure/memory: not of the known form" in found.notes


@pytest.mark.parametrize("text", ["", "-1", "1.5", "many", "²"])
def test_a_size_of_another_form_is_missing(root: Path, text: str) -> None:
    write(root, "sys/fs/cgroup/user/run/memory.max", text)
    found = pressure(root, host=host())
    assert (found.own_max, found.own_room) == (None, None)
    assert "own_max" not in found.sources


def test_the_record_is_plain_and_leaves_out_what_is_missing(root: Path) -> None:
    record = pressure(root, host=host()).record()
    assert json.loads(json.dumps(record)) == record
    assert record["host_some"] == {"avg10": 3.0, "avg60": 1.5, "avg300": 0.25, "total": 123456}
    assert "own_high" not in record
    assert record["sources"]["own_room"] == "/sys/fs/cgroup/user/run"
    assert Reading().record() == {}


def test_a_zero_is_not_missing(root: Path) -> None:
    write(root, "proc/pressure/memory", STALLS.format(a="0.00", b="0.00"))
    write(root, "sys/fs/cgroup/user/run/memory.current", "0")
    record = pressure(root, host=host()).record()
    assert record["host_some"]["avg10"] == 0.0
    assert record["own_current"] == 0


def test_this_machine() -> None:
    found = pressure()
    assert found.host_total == psutil.virtual_memory().total
    assert found.room is not None
    assert 0 <= found.room <= found.host_total
    for name in ("host_some", "own_some"):
        assert (getattr(found, name) is None) == (name not in found.sources)
    json.dumps(found.record())


@given(st.binary(max_size=60), st.sampled_from(["proc/pressure/memory", "proc/self/cgroup", "proc/self/mountinfo"]))
def test_any_bytes_are_survived(tmp_path_factory: pytest.TempPathFactory, content: bytes, file: str) -> None:
    folder = tmp_path_factory.mktemp("root")
    group(folder, "/run")
    (folder / file).parent.mkdir(parents=True, exist_ok=True)
    (folder / file).write_bytes(content)
    found = pressure(folder, host=host())
    assert found.room == 5000
    json.dumps(found.record())
