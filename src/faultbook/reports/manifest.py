"""What a report was made from and what it holds, by digest; and whether it would come out the same again."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faultbook.reports.layout import MANIFEST, unescape_name

_VERSIONS = (
    "faultbook",
    "pandas",
    "numpy",
    "scipy",
    "statsmodels",
    "scikit-learn",
    "matplotlib",
    "papermill",
    "nbconvert",
)


@dataclass(frozen=True, slots=True)
class Inputs:
    """Everything a report depends on, apart from the data files that only a run can tell."""

    notebook: Path
    data: Path
    lock: Path
    parameters: Mapping[str, Any]

    def fingerprint(self) -> dict[str, Any]:
        """Digests of notebook, package source and lock, and the parameters."""
        return {
            "notebook": {"name": self.notebook.name, "sha256": file_digest(self.notebook)},
            "source": {"package": "faultbook", "sha256": source_digest()},
            "lock": {"name": self.lock.name, "sha256": file_digest(self.lock)},
            "parameters": dict(self.parameters),
        }


def file_digest(path: Path) -> str | None:
    """SHA-256 of a file in hexadecimal; None if there is no such file."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        return None


def listing_digest(folder: Path) -> str | None:
    """SHA-256 of the sorted names in a folder; None if there is no such folder."""
    try:
        names = sorted(entry.name for entry in folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return None
    return hashlib.sha256("\0".join(names).encode("utf-8", "surrogateescape")).hexdigest()


def source_digest() -> str:
    """SHA-256 over the names and contents of all files of the installed package."""
    package = Path(__file__).resolve().parents[1]
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            digest.update(f"{path.relative_to(package).as_posix()}\0{file_digest(path)}\n".encode())
    return digest.hexdigest()


def data_digests(read_log: Path, data: Path) -> dict[str, dict[str, str | None]]:
    """Digests of the data files that were read, and of the listings of the folders that were listed."""
    text = read_log.read_bytes().decode("utf-8", "surrogateescape") if read_log.exists() else ""
    entries = [line.partition("\t") for line in text.split("\n") if line]
    names = {
        kind: sorted({unescape_name(name) for what, _, name in entries if what == kind}) for kind in ("read", "list")
    }
    return {
        "data": {name: file_digest(data / name) for name in names["read"] if not (data / name).is_dir()},
        "listings": {name: listing_digest(data / name) for name in names["list"]},
    }


def write_manifest(folder: Path, content: Mapping[str, Any]) -> None:
    """Write the manifest, with the digests of all files of the report, as the last file of the report."""
    files = {
        path.relative_to(folder).as_posix(): file_digest(path) for path in sorted(folder.rglob("*")) if path.is_file()
    }
    text = json.dumps({**content, "files": files}, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
    (folder / MANIFEST).write_text(text + "\n", encoding="utf-8")


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """The manifest of a finished report; None if there is none or it cannot be read."""
    try:
        content = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None


def unchanged(folder: Path, inputs: Inputs) -> bool:
    """Whether the report in `folder` was made from exactly these inputs and is still whole."""
    manifest = read_manifest(folder)
    if manifest is None or any(manifest.get(key) != value for key, value in inputs.fingerprint().items()):
        return False
    checks: tuple[tuple[str, Callable[[str], str | None]], ...] = (
        ("data", lambda name: file_digest(inputs.data / name)),
        ("listings", lambda name: listing_digest(inputs.data / name)),
        ("files", lambda name: file_digest(folder / name)),
    )
    return all(
        isinstance(manifest.get(key), dict) and all(digest(name) == known for name, known in manifest[key].items())
        for key, digest in checks
    )


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that the numbers depend on."""
    return {"python": platform.python_version(), **{name: importlib.metadata.version(name) for name in _VERSIONS}}
