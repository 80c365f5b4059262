from __future__ import annotations

import importlib.metadata
import subprocess
from pathlib import Path

import pytest

from faultbook import revision
from faultbook.revision import Revision, parse_revision, running_revision

ROOT = Path(__file__).parents[1]


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="this copy of the project is no checkout")
def test_a_checkout_has_a_commit_and_says_whether_it_has_changes() -> None:
    found = running_revision()
    head = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
    assert found.commit == head.stdout.strip()
    assert found.dirty is not None


def test_without_git_it_is_the_version_of_the_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    found = running_revision()
    assert (found.commit, found.dirty) == (None, None)
    assert found.text == found.version == importlib.metadata.version("faultbook")


def test_a_package_inside_somebody_elses_checkout_is_not_of_that_commit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    subprocess.run(["git", "-C", str(tmp_path), "init", "-q"], check=True)
    package = tmp_path / "site-packages" / "faultbook"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    monkeypatch.setattr(revision, "__file__", str(package / "revision.py"))
    assert running_revision().commit is None


@pytest.mark.parametrize("dirty", [True, False, None])
def test_the_text_is_read_back(dirty: bool | None) -> None:
    assert parse_revision(Revision("3abb8e17", dirty, "0.1.0").text) == ("3abb8e17", dirty)
