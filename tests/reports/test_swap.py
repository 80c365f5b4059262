"""A finished folder takes the place of another; a kill leaves the old or the new one, never neither and never half."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from small_project import eventually, tree

from faultbook.reports import swap
from faultbook.reports.swap import recover, swap_in


def filled(folder: Path, word: str) -> Path:
    folder.mkdir()
    for number in range(5):
        (folder / f"{number}.txt").write_text(f"{word} {number}")
    (folder / "deep").mkdir()
    (folder / "deep" / "a.txt").write_text(word)
    return folder


def words(folder: Path) -> set[str]:
    return {content.split()[0].decode() for content in tree(folder).values()}


@pytest.fixture(params=["exchange", "two renames"])
def either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "two renames":
        monkeypatch.setattr(swap, "_exchange", lambda first, second: False)
    return str(request.param)


@pytest.mark.usefixtures("either_way")
def test_nothing_stood_there(tmp_path: Path) -> None:
    swap_in(filled(tmp_path / "built", "new"), tmp_path / "target")
    assert words(tmp_path / "target") == {"new"}
    assert [path.name for path in tmp_path.iterdir()] == ["target"]


@pytest.mark.usefixtures("either_way")
def test_the_old_one_is_replaced_whole(tmp_path: Path) -> None:
    old = filled(tmp_path / "target", "old")
    (old / "only-old.txt").write_text("old")
    swap_in(filled(tmp_path / "built", "new"), old)
    assert words(old) == {"new"}
    assert not (old / "only-old.txt").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["target"]


@pytest.mark.usefixtures("either_way")
def test_a_leftover_of_a_killed_swap_is_no_obstacle(tmp_path: Path) -> None:
    filled(tmp_path / ".target.old", "older")
    filled(tmp_path / "target", "old")
    recover(tmp_path)
    assert words(tmp_path / "target") == {"old"}
    swap_in(filled(tmp_path / "built", "new"), tmp_path / "target")
    assert words(tmp_path / "target") == {"new"}
    assert [path.name for path in tmp_path.iterdir()] == ["target"]


@pytest.mark.usefixtures("either_way")
def test_odd_names(tmp_path: Path) -> None:
    for name in ("with space", "길", "{braces}", "1_x.old", "-f"):
        filled(tmp_path / name, "old")
        swap_in(filled(tmp_path / "built", "new"), tmp_path / name)
        assert words(tmp_path / name) == {"new"}
    recover(tmp_path)
    assert len(list(tmp_path.iterdir())) == 5


def test_this_system_can_exchange(tmp_path: Path) -> None:
    """Else the tests above and below would test one way only."""
    assert swap._exchange(filled(tmp_path / "a", "a"), filled(tmp_path / "b", "b")) is True
    assert words(tmp_path / "a") == {"b"}
    assert words(tmp_path / "b") == {"a"}


def test_an_error_of_the_exchange_is_told(tmp_path: Path) -> None:
    filled(tmp_path / "target", "old")
    with pytest.raises(OSError, match=r"target"):
        swap_in(tmp_path / "absent", tmp_path / "target")
    assert words(tmp_path / "target") == {"old"}


def test_recover_puts_back_only_what_is_missing(tmp_path: Path) -> None:
    filled(tmp_path / ".a.old", "a")
    filled(tmp_path / ".b.old", "older")
    filled(tmp_path / "b", "b")
    recover(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]
    assert words(tmp_path / "a") == {"a"}
    assert words(tmp_path / "b") == {"b"}
    recover(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


# ---- kills ----------------------------------------------------------------------------------------------------------

_SWAPPING = """
import sys
from pathlib import Path
from faultbook.reports import swap

place = Path(sys.argv[1])
if sys.argv[2] == "two renames":
    swap._exchange = lambda first, second: False
number = 0
while True:
    number += 1
    built = place / f"built-{number}"
    built.mkdir()
    for file in range(5):
        (built / f"{file}.txt").write_text(f"{number} ")
    swap.swap_in(built, place / "target")
    if number == 3:
        print("going", flush=True)
"""


@pytest.mark.parametrize("way", ["exchange", "two renames"])
def test_a_kill_in_a_loop_of_swaps(tmp_path: Path, way: str) -> None:
    chance = random.Random(way)
    for attempt in range(8):
        place = tmp_path / str(attempt)
        place.mkdir()
        child = subprocess.Popen([sys.executable, "-c", _SWAPPING, str(place), way], stdout=subprocess.PIPE, text=True)
        assert child.stdout
        assert child.stdout.readline() == "going\n"
        for _ in range(chance.randrange(3000)):
            os.stat(place)  # noqa: PTH116  # a delay of another length each time, without a clock
        child.kill()
        child.wait()
        child.stdout.close()
        if way == "exchange":
            assert (place / "target").exists(), "neither the old nor the new one"
        recover(place)
        assert sorted(tree(place / "target")) == [f"{file}.txt" for file in range(5)]
        assert len(words(place / "target")) == 1, "half old, half new"


_STOPPING = """
import os, signal, sys
from pathlib import Path
from faultbook.reports import swap

swap._exchange = lambda first, second: False
place, moment = Path(sys.argv[1]), int(sys.argv[2])
rename, count = Path.rename, 0

def counted(self, target):
    global count
    if count == moment:
        os.kill(os.getpid(), signal.SIGKILL)
    count += 1
    return rename(self, target)

Path.rename = counted
if moment == 2:
    swap.shutil.rmtree = lambda path, **options: path.exists() and os.kill(os.getpid(), signal.SIGKILL)
swap.swap_in(place / "built", place / "target")
"""


@pytest.mark.parametrize(("moment", "left"), [(0, "old"), (1, "old"), (2, "new")])
def test_a_kill_between_the_two_renames_is_mended(tmp_path: Path, moment: int, left: str) -> None:
    """Killed before the first rename, between the two, and after both before the old one is gone."""
    filled(tmp_path / "target", "old")
    filled(tmp_path / "built", "new")
    child = subprocess.run([sys.executable, "-c", _STOPPING, str(tmp_path), str(moment)], check=False)
    assert child.returncode == -signal.SIGKILL
    assert (tmp_path / "target").exists() == (moment != 1)
    recover(tmp_path)
    assert words(tmp_path / "target") == {left}
    assert not list(tmp_path.glob(".*.old"))


def test_a_reader_never_finds_nothing(tmp_path: Path) -> None:
    """While swaps go on, every look finds a whole folder at the target."""
    child = subprocess.Popen(
        [sys.executable, "-c", _SWAPPING, str(tmp_path), "exchange"], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout
    try:
        assert child.stdout.readline() == "going\n"
        eventually((tmp_path / "target").exists)
        for _ in range(3000):
            names = os.listdir(tmp_path / "target")  # noqa: PTH208  # one system call's worth of looking
            assert names or (tmp_path / "target").exists()
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
