"""How scarce memory is here: what the kernel says of stalls, of our own control group and of the machine.

Every source may be absent or closed to us (an old kernel, a container, another system), so each number is missing on
its own, and a reading names the source of each. Two pitfalls are looked after: in a container `psutil` shows the whole
machine, so the limit of the control group counts as well; and the memory of a control group includes file contents that
the kernel drops when it needs room, so the inactive part of them counts as free.

Sources: the Linux kernel's documents on pressure stall information and on control group v2 (memory controller),
proc_pid_mountinfo(5), cgroups(7). Control groups of version 1 are not read; there the machine's numbers remain.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Protocol

import psutil


class HostMemory(Protocol):
    """What is used of `psutil.virtual_memory()`; both in bytes."""

    @property
    def total(self) -> int: ...  # noqa: D102
    @property
    def available(self) -> int: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class Stall:
    """Share of time, in percent of the last 10, 60 and 300 seconds, that tasks waited for memory; `total` in µs."""

    avg10: float
    avg60: float
    avg300: float
    total: int


@dataclass(frozen=True, slots=True)
class Reading:
    """What is known of memory at one moment; all sizes in bytes.

    Parameters
    ----------
    host_some, host_full : Stall or None
        Of the machine: at least one task, or all that had work, waited for memory.
    own_some, own_full : Stall or None
        The same within our control group.
    own_current, own_max, own_high : int or None
        Memory of our control group, its hard limit and the one from which it is slowed down. A limit is None both if
        there is none and if it is not known: `sources` names it only in the first case.
    own_room : int or None
        What the tightest limit among our control group and those around it leaves, file contents that can be dropped
        included.
    host_total, host_available : int or None
        Of the machine.
    sources : dict
        By field: the file or function that its number comes from.
    notes : tuple of str
        What could not be read, and why.
    """

    host_some: Stall | None = None
    host_full: Stall | None = None
    own_some: Stall | None = None
    own_full: Stall | None = None
    own_current: int | None = None
    own_max: int | None = None
    own_high: int | None = None
    own_room: int | None = None
    host_total: int | None = None
    host_available: int | None = None
    sources: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def room(self) -> int | None:
        """Bytes that can still be taken: the lesser of the machine's and our control group's; None if neither tells."""
        return min((found for found in (self.host_available, self.own_room) if found is not None), default=None)

    @property
    def some_avg10(self) -> float | None:
        """Percent of the last ten seconds with a task waiting for memory: the greater of the machine's and our own."""
        return max((stall.avg10 for stall in (self.host_some, self.own_some) if stall is not None), default=None)

    def record(self) -> dict[str, Any]:
        """The same as plain values, without what is missing."""
        found = {name: value for name, value in asdict(self).items() if value not in (None, (), {})}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}


def pressure(root: str | Path = "/", *, host: Callable[[], HostMemory] | None = psutil.virtual_memory) -> Reading:
    """Read how scarce memory is.

    Parameters
    ----------
    root : path
        The folder that holds `proc` and `sys`.
    host : callable or None
        Says how much memory the machine has; None for a system that does not.

    Returns
    -------
    Reading
        Whatever could be read; never an exception.
    """
    reader = _Reader(Path(root))
    reader.stalls("host", PurePosixPath("/proc/pressure/memory"))
    group = reader.own_group()
    if group is not None:
        reader.group(*group)
    if host is not None:
        reader.host(host)
    return Reading(**reader.found, sources=reader.sources, notes=tuple(reader.notes))


class _Reader:
    """Collects numbers with their sources; a file that is missing or strange becomes a note."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.found: dict[str, Any] = {}
        self.sources: dict[str, str] = {}
        self.notes: list[str] = []

    def stalls(self, whose: str, file: PurePosixPath) -> None:
        """Read lines such as "some avg10=0.00 avg60=0.00 avg300=0.00 total=0"."""
        for line in self._lines(file):
            kind, *pairs = line.split()
            try:
                values = dict(pair.split("=", 1) for pair in pairs)
                ten, sixty, longest = (_percent(values[name]) for name in ("avg10", "avg60", "avg300"))
                stall = Stall(ten, sixty, longest, int(values["total"]))
            except (ValueError, KeyError):
                self.notes.append(f"{file}: not of the known form")
                continue
            if kind in ("some", "full"):
                self._take(f"{whose}_{kind}", stall, file)

    def own_group(self) -> tuple[PurePosixPath, PurePosixPath] | None:
        """Our control group's folder, and the topmost one that can be seen."""
        own = next(
            (line[3:] for line in self._lines(PurePosixPath("/proc/self/cgroup")) if line.startswith("0::/")), None
        )
        mounts = _group_mounts(self._lines(PurePosixPath("/proc/self/mountinfo")))
        mount = next(mounts, None)
        if own is None or mount is None:
            self.notes.append("no control group of version 2")
            return None
        shown, top = mount
        path = PurePosixPath(own)
        if ".." in path.parts:
            self.notes.append(f"control group {own} lies outside of what is shown here")
            return None
        # Where a mount shows only a part of the tree, that part is cut off the path; in a namespace it already is.
        inner = path.relative_to(shown) if path.is_relative_to(shown) else path.relative_to("/")
        return top / inner, top

    def group(self, own: PurePosixPath, top: PurePosixPath) -> None:
        """Read the numbers of our group, and the room that it and those around it leave."""
        self.stalls("own", own / "memory.pressure")
        for name in ("current", "max", "high"):
            known, size = self._size(own / f"memory.{name}")
            if known:
                self._take(f"own_{name}", size, own / f"memory.{name}")
        rooms = [(room, str(folder)) for folder in _upwards(own, top) if (room := self._room(folder)) is not None]
        if rooms:
            room, folder = min(rooms)
            self._take("own_room", room, PurePosixPath(folder))

    def host(self, host: Callable[[], HostMemory]) -> None:
        try:
            memory = host()
            total, available = int(memory.total), int(memory.available)
        except (OSError, psutil.Error, ValueError, AttributeError, RuntimeError) as error:
            self.notes.append(f"memory of the machine: {type(error).__name__}: {error}")
            return
        for name, size in (("host_total", total), ("host_available", available)):
            self.found[name], self.sources[name] = size, "psutil.virtual_memory"

    def _room(self, folder: PurePosixPath) -> int | None:
        limits = [
            size
            for name in ("max", "high")
            if (size := self._size(folder / f"memory.{name}", quiet=True)[1]) is not None
        ]
        current = self._size(folder / "memory.current", quiet=True)[1]
        if not limits or current is None:
            return None
        kept = (line.split() for line in self._lines(folder / "memory.stat", quiet=True))
        droppable = next((int(pair[1]) for pair in kept if _is_count(pair, "inactive_file")), 0)
        return max(0, min(limits) - max(0, current - droppable))

    def _size(self, file: PurePosixPath, *, quiet: bool = False) -> tuple[bool, int | None]:
        """Whether a file tells a size, and the size; "max" is none."""
        lines = self._lines(file, quiet=quiet)
        text = lines[0].strip() if lines else ""
        if re.fullmatch("[0-9]{1,20}", text):
            return True, int(text)
        if text and text != "max" and not quiet:
            self.notes.append(f"{file}: not of the known form")
        return text == "max", None

    def _take(self, name: str, value: object, file: PurePosixPath) -> None:
        self.found[name], self.sources[name] = value, str(file)

    def _lines(self, file: PurePosixPath, *, quiet: bool = False) -> list[str]:
        try:
            text = (self._root / file.relative_to("/")).read_text("utf-8", "replace")
        except (OSError, ValueError) as error:  # ValueError: a name that no file can have
            if not quiet:
                self.notes.append(f"{file}: {getattr(error, 'strerror', error)}")
            return []
        return [line for line in text.splitlines() if line.strip()]


def _group_mounts(lines: list[str]) -> Iterator[tuple[PurePosixPath, PurePosixPath]]:
    """Of each mount of control groups v2: the part of the tree that it shows, and where."""
    for line in lines:
        before, _, after = line.partition(" - ")
        fields = before.split(" ")
        if len(fields) > 5 and after.split(" ")[0] == "cgroup2" and fields[3].startswith("/") and fields[4][:1] == "/":
            yield PurePosixPath(_unescaped(fields[3])), PurePosixPath(_unescaped(fields[4]))


def _unescaped(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), text)


def _percent(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 100:
        raise ValueError(text)
    return value


def _is_count(pair: list[str], name: str) -> bool:
    return len(pair) == 2 and pair[0] == name and re.fullmatch("[0-9]{1,20}", pair[1]) is not None


def _upwards(own: PurePosixPath, top: PurePosixPath) -> Iterator[PurePosixPath]:
    for folder in (own, *own.parents):
        if not folder.is_relative_to(top):
            return
        yield folder
