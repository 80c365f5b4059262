"""Where the files of a SWE-bench evaluation lie, and whose instances they are of."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from faultbook import values
from faultbook.harness.formats._rows import LINK_TO_NAME, Skipped, head, subfolders, unopened

FORMAT = "swe-bench"
REPORT, LOG = "report.json", "run_instance.log"
_RUNS = ("run_evaluation", "evaluation")  # the folder of runs, which changed its name between versions
_DEPTH = 2  # from the folder of runs down to their models' folders
_PEEK = 1 << 12


@dataclass(frozen=True, slots=True)
class Run:
    """Whose instances they are, and of which run."""

    arm: str
    run_id: str | None


def run_of_report(path: Path, arm: str | None) -> Run:
    """What the name of a run report says."""
    model, _, run = path.stem.rpartition(".")  # a model's name may hold dots
    return Run(arm or values.text(model) or values.text(path.stem) or FORMAT, values.text(run if model else None))


def run_of_folder(model: Path, arm: str | None) -> Run:
    """What the name and the place of a model's folder say."""
    run = model.absolute().parent
    name = values.text(run.name) if run.parent.name in _RUNS else None
    return Run(arm or values.text(model.absolute().name) or FORMAT, name)


def stem(model: Path) -> str:
    """The name that the run report of a model's folder has, without its suffix."""
    return f"{model.absolute().name}.{model.absolute().parent.name}"


def run_reports(folder: Path) -> dict[str, Path]:
    """Run reports that lie in a folder, by their stems."""
    return {path.stem: path for path in sorted(folder.glob("*.json")) if is_run_report(path)}


def models(path: Path) -> Iterator[Path | Skipped]:
    """Models' folders below a folder, or in `logs` where that is beside the run reports."""
    bases = (base for base in (path / "logs", path) if not base.is_symlink() or base == path)
    roots = [base / runs for base in bases for runs in _RUNS if os.path.lexists(base / runs)]
    for root in roots or [path]:
        yield from (Skipped(root, LINK_TO_NAME),) if root.is_symlink() and root != path else _below(root, _DEPTH)


def _below(folder: Path, depth: int) -> Iterator[Path | Skipped]:
    """Folders that hold folders of instances; links and folders that do not open are skipped."""
    try:
        below = subfolders(folder)
        if any(not child.is_symlink() and is_instance(child) for child in below):
            yield folder
            return
    except OSError as error:
        yield unopened(folder, error)
        return
    for child in below if depth else ():
        if child.is_symlink():
            yield Skipped(child, LINK_TO_NAME)
        else:
            yield from _below(child, depth - 1)


def is_instance(folder: Path) -> bool:
    """Whether a folder is that of an instance."""
    return os.path.lexists(folder / REPORT) or (folder / LOG).is_file()


def is_run_report(path: Path) -> bool:
    """Whether a file begins as a run report does."""
    start = _start(path)
    return b'"resolved_ids"' in start or (b'"total_instances"' in start and b'"resolved_instances"' in start)


def is_instance_report(path: Path) -> bool:
    """Whether a file begins as an instance's report does."""
    start = _start(path)
    return any(key in start for key in (b'"patch_is_None"', b'"patch_exists"', b'"patch_successfully_applied"'))


def _start(path: Path) -> bytes:
    try:
        return head(path, _PEEK)
    except OSError:
        return b""
