"""The kernel process of a report: an ordinary Python kernel that notes which data files it read.

`python -m faultbook.reports.kernel -f CONNECTION_FILE`. An audit hook sees every file that Python opens, so a report
knows its inputs whatever the notebook used to read them. Files that compiled code opens by itself, or a child
process, are not seen: open them in Python and hand the file object on.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from faultbook.paths import DATA_VARIABLE
from faultbook.reports.layout import READ_LOG_VARIABLE, escape_name


def watch_reads(root: Path, log: Path) -> Callable[[str, tuple[Any, ...]], None]:
    """Make an audit hook that writes each file read and each folder listed below `root` to `log`, once.

    A line is "read" or "list", a tab, and the path relative to `root`, a backslash before each backslash and line
    break in it. A link below `root` counts as what it is called there, wherever it leads.
    """
    bases = list(dict.fromkeys((str(root.absolute()), os.path.realpath(root))))
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    seen: set[str] = set()

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event not in ("open", "os.listdir", "os.scandir") or not arguments:
            return
        path = "." if arguments[0] is None and event != "open" else arguments[0]
        if not isinstance(path, (str, bytes, os.PathLike)) or (event == "open" and _writes(arguments)):
            return
        name = _below(os.fsdecode(path), bases)
        if name is None:
            return
        kind = "read" if event == "open" else "list"
        line = f"{kind}\t{escape_name(name)}\n"
        if line not in seen:
            seen.add(line)
            os.write(descriptor, line.encode("utf-8", "surrogateescape"))

    return hook


def _below(path: str, bases: list[str]) -> str | None:
    """The path relative to the first base that holds it; as it is written, or else where its links lead."""
    written = [] if ".." in Path(path).parts else [str(Path(path).absolute())]
    for full in (*written, os.path.realpath(path)):
        for base in bases:
            if full == base or full.startswith(base + os.sep):
                return os.path.relpath(full, base)
    return None


def _writes(arguments: tuple[Any, ...]) -> bool:
    """Whether a file is opened for writing only, or made; what is opened for both is read, too."""
    mode, flags = arguments[1], arguments[2]
    if isinstance(mode, str):
        return any(letter in mode for letter in "wax")
    return isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_TRUNC | os.O_CREAT))


def main() -> None:
    """Install the hook, then run the kernel."""
    if os.environ.get(READ_LOG_VARIABLE) and os.environ.get(DATA_VARIABLE):
        sys.addaudithook(watch_reads(Path(os.environ[DATA_VARIABLE]), Path(os.environ[READ_LOG_VARIABLE])))
    from ipykernel.kernelapp import launch_new_instance

    launch_new_instance()


if __name__ == "__main__":
    main()
