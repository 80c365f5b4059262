"""Where the project's folders are: found from the working folder, never written down as absolute paths."""

from __future__ import annotations

import os
from pathlib import Path

from faultbook.errors import DataError, FaultbookError

DATA_VARIABLE = "FAULTBOOK_DATA"  # the data folder; set for a notebook by `faultbook report --data`


def project_folder(start: Path | None = None) -> Path:
    """Find the project's folder.

    It is the nearest one at or above `start` that holds `notebooks/` and `pyproject.toml`, else the checkout that the
    package itself was installed from.

    Raises
    ------
    FaultbookError
        If neither exists.
    """
    start = (start or Path.cwd()).resolve()
    checkout = Path(__file__).resolve().parents[2]
    for folder in (start, *start.parents, checkout):
        if (folder / "notebooks").is_dir() and (folder / "pyproject.toml").is_file():
            return folder
    raise FaultbookError(f"no faultbook project at or above {start}; run this inside a checkout")


def data_folder(name: str = "") -> Path:
    """The data folder, or the folder `name` in it; `$FAULTBOOK_DATA` stands for the project's `data/`.

    Raises
    ------
    DataError
        If there is no such folder.
    """
    root = Path(os.environ[DATA_VARIABLE]) if os.environ.get(DATA_VARIABLE) else project_folder() / "data"
    folder = root / name
    if not folder.is_dir():
        raise DataError(
            f"no data folder '{name or root.name}'",
            file=folder,
            mend="name the data folder with --data DIR, and a folder in it by its parameter (. is DIR itself)",
        )
    return folder
