"""Engines are optional: what to say where one is not installed."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
from pathlib import Path
from typing import Any

from faultbook.errors import FaultbookError


def engine_module(name: str, extra: str) -> Any:
    """Import a module of an optional engine.

    Raises
    ------
    FaultbookError
        If it is not installed: which extra to install.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise _not_installed(error.name or name, extra) from None


def engine_folder(name: str, extra: str) -> Path:
    """Where the package of an optional engine is installed, without importing it.

    Raises
    ------
    FaultbookError
        If it is not installed: which extra to install.
    """
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise _not_installed(name, extra)
    return Path(next(iter(spec.submodule_search_locations)))


def package_versions(*names: str) -> dict[str, str]:
    """The installed versions of packages, by name; "" where one is not installed."""
    versions = {}
    for name in names:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = ""
    return versions


def _not_installed(module: str, extra: str) -> FaultbookError:
    return FaultbookError(
        f"this engine needs the package '{module}', which is not installed; install it with: "
        f"pip install 'faultbook[{extra}]'"
    )
