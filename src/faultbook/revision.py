"""Which code runs: the commit of this package's checkout, and whether it has changes that no commit holds."""

from __future__ import annotations

import importlib.metadata
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

_DIRTY, _CLEAN = "+dirty", "+clean"


@dataclass(frozen=True, slots=True)
class Revision:
    """A commit, or the version of the package where there is no checkout; `dirty` is None where nobody knows."""

    commit: str | None
    dirty: bool | None
    version: str

    @property
    def text(self) -> str:
        """Commit and state in one word, such as "3abb8e1…+dirty"; else the version."""
        if self.commit is None:
            return self.version
        return self.commit + ("" if self.dirty is None else _DIRTY if self.dirty else _CLEAN)


def parse_revision(text: str) -> tuple[str, bool | None]:
    """The commit of a `Revision.text`, and whether its tree had changes; None where it does not say."""
    for ending, dirty in ((_DIRTY, True), (_CLEAN, False)):
        if text.endswith(ending):
            return text.removesuffix(ending), dirty
    return text, None


def running_revision() -> Revision:
    """The revision of this package, as git tells it; asking changes nothing in the checkout."""
    folder = Path(__file__).resolve().parent
    version = importlib.metadata.version("faultbook")
    commit = _git(folder, "rev-parse", "HEAD") if _git(folder, "ls-files", "__init__.py") else None
    if not commit:
        return Revision(None, None, version)
    changes = _git(folder, "status", "--porcelain", "--", ".")
    return Revision(commit, None if changes is None else bool(changes), version)


def _git(folder: Path, *arguments: str) -> str | None:
    """What git says of a folder, which it leaves alone; None if it says nothing."""
    program = shutil.which("git")
    if program is None:
        return None
    command = [program, "--no-optional-locks", "-C", str(folder), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  # our own arguments
    return done.stdout.strip() if done.returncode == 0 else None
