"""The project's folders, found from where the command is run."""

from __future__ import annotations

from pathlib import Path

import pytest

from faultbook import paths
from faultbook.errors import DataError, FaultbookError
from faultbook.paths import DATA_VARIABLE, data_folder, project_folder

CHECKOUT = Path(__file__).resolve().parents[1]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv(DATA_VARIABLE, raising=False)
    place = tmp_path / "project"
    for name in ("notebooks/explore", "data/logs"):
        (place / name).mkdir(parents=True)
    (place / "pyproject.toml").touch()
    return place


@pytest.mark.parametrize("start", ["", "notebooks", "notebooks/explore", "data/logs", "not/there"])
def test_the_project_is_found_from_anywhere_in_it(project: Path, start: str) -> None:
    assert project_folder(project / start) == project


def test_the_project_is_found_from_the_working_folder(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project / "data")
    assert project_folder() == project
    assert project_folder(Path("logs")) == project


def test_the_nearest_project_counts(project: Path) -> None:
    inner = project / "data" / "logs" / "inner"
    (inner / "notebooks").mkdir(parents=True)
    assert project_folder(inner) == project, "a folder without pyproject.toml is no project"
    (inner / "pyproject.toml").touch()
    assert project_folder(inner / "notebooks") == inner


def test_outside_a_project_the_checkout_of_the_package_stands_in(tmp_path: Path) -> None:
    assert project_folder(tmp_path) == CHECKOUT


def test_without_any_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "__file__", str(tmp_path / "site-packages" / "faultbook" / "paths.py"))
    with pytest.raises(FaultbookError, match=r"no faultbook project at or above .*; run this inside a checkout"):
        project_folder(tmp_path)


def test_data_of_the_project(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    assert data_folder() == project / "data"
    assert data_folder("logs") == project / "data" / "logs"
    assert data_folder(".") == project / "data"


def test_the_variable_stands_for_the_data_folder(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DATA_VARIABLE, str(project / "data" / "logs"))
    assert data_folder() == project / "data" / "logs"
    assert data_folder(".") == project / "data" / "logs"
    monkeypatch.setenv(DATA_VARIABLE, "")
    monkeypatch.chdir(project)
    assert data_folder() == project / "data"


def test_a_data_folder_that_is_not_there(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    with pytest.raises(DataError, match=r"data/absent: no data folder 'absent'; name the data folder with --data DIR"):
        data_folder("absent")
    (project / "data" / "file").touch()
    with pytest.raises(DataError, match="no data folder 'file'"):
        data_folder("file")
    monkeypatch.setenv(DATA_VARIABLE, str(project / "nowhere"))
    with pytest.raises(DataError, match="no data folder 'nowhere'"):
        data_folder()
