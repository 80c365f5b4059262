"""A small project to make reports in, and the real command in real processes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # the test modules share small_project.py
from small_project import Command, Done, Project, Running, Server, Start  # after its folder is known


@pytest.fixture(scope="session", autouse=True)
def _own_jupyter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep kernels away from the settings, profiles and history of whoever runs the tests."""
    place = tmp_path_factory.mktemp("jupyter")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IPYTHONDIR", str(place / "ipython"))
        for name in ("CONFIG", "DATA", "RUNTIME"):
            patch.setenv(f"JUPYTER_{name}_DIR", str(place / name.lower()))
        yield


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory, _own_jupyter: None) -> Iterator[Server]:
    serving = Server(tmp_path_factory.mktemp("commands"))
    yield serving
    serving.close()


@pytest.fixture
def start(server: Server, project: Project) -> Start:
    """Start the real command in the project's folder."""

    def starting(*arguments: str | Path, cwd: Path | None = None, **environment: str) -> Running:
        return server.start(arguments, cwd or project.folder, environment)

    return starting


@pytest.fixture
def command(start: Start) -> Command:
    """Run the real command in the project's folder to its end."""

    def running(*arguments: str | Path, cwd: Path | None = None, **environment: str) -> Done:
        return start(*arguments, cwd=cwd, **environment).wait()

    return running
