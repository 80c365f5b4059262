"""Digests of what a report was made from and holds; whether it would come out the same again."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from small_project import tree

import faultbook
from faultbook.reports.layout import MANIFEST
from faultbook.reports.manifest import (
    Inputs,
    data_digests,
    file_digest,
    listing_digest,
    read_manifest,
    source_digest,
    unchanged,
    versions,
    write_manifest,
)


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def inputs(tmp_path: Path) -> Inputs:
    data = tmp_path / "data"
    (data / "deep").mkdir(parents=True)
    (data / "a.csv").write_text("a")
    (data / "deep" / "b.csv").write_text("b")
    notebook, lock = tmp_path / "1_x.ipynb", tmp_path / "requirements.lock"
    notebook.write_text("{}")
    lock.write_text("numpy")
    return Inputs(notebook, data, lock, {"n": 1, "rate": 0.5, "names": ["a"], "none": None})


@pytest.fixture
def report(tmp_path: Path, inputs: Inputs) -> Path:
    folder = tmp_path / "report"
    (folder / "tables").mkdir(parents=True)
    (folder / "page.html").write_text("<p>é</p>", encoding="utf-8")
    (folder / "tables" / "t.csv").write_text("x\n1\n")
    reads = {
        "data": {"a.csv": sha256(b"a"), "absent.csv": None},
        "listings": {"deep": listing_digest(inputs.data / "deep"), "nowhere": None},
    }
    write_manifest(folder, {**inputs.fingerprint(), **reads, "name": "1_x"})
    return folder


def test_digest_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"\x00\xff\n")
    assert file_digest(file) == sha256(b"\x00\xff\n")
    assert file_digest(tmp_path / "absent") is None
    assert file_digest(tmp_path) is None
    assert file_digest(file / "below") is None


def test_digest_of_a_listing(tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / name).touch()
    known = listing_digest(tmp_path)
    assert known == sha256(b"a\0b")
    (tmp_path / "a").write_text("content does not count")
    assert listing_digest(tmp_path) == known
    (tmp_path / "c").touch()
    assert listing_digest(tmp_path) != known
    assert listing_digest(tmp_path / "absent") is None
    assert listing_digest(tmp_path / "a") is None


def test_digest_of_a_listing_with_a_name_that_is_not_utf8(tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff")).touch()
    assert listing_digest(tmp_path) == sha256(b"\xff")


def test_a_fingerprint_names_files_without_their_folders(inputs: Inputs, tmp_path: Path) -> None:
    fingerprint = inputs.fingerprint()
    assert fingerprint == {
        "notebook": {"name": "1_x.ipynb", "sha256": sha256(b"{}")},
        "source": {"package": "faultbook", "sha256": source_digest()},
        "lock": {"name": "requirements.lock", "sha256": sha256(b"numpy")},
        "parameters": {"n": 1, "rate": 0.5, "names": ["a"], "none": None},
    }
    assert str(tmp_path) not in json.dumps(fingerprint)


def test_a_project_without_a_lock(inputs: Inputs) -> None:
    inputs.lock.unlink()
    assert inputs.fingerprint()["lock"] == {"name": "requirements.lock", "sha256": None}


def test_the_manifest_holds_every_file_but_itself(report: Path) -> None:
    manifest = read_manifest(report)
    assert manifest is not None
    assert manifest["files"] == {name: sha256(content) for name, content in tree(report).items() if name != MANIFEST}
    assert manifest["name"] == "1_x"


def test_the_manifest_is_strict_json(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_manifest(tmp_path, {"parameters": {"x": float("nan")}})


@pytest.mark.parametrize("content", [None, "", "{", "[]", "null", "3", "\x00"])
def test_a_manifest_that_cannot_be_read_is_none(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / MANIFEST).write_text(content)
    assert read_manifest(tmp_path) is None


# ---- unchanged, or not ----------------------------------------------------------------------------------------------


def test_nothing_changed(report: Path, inputs: Inputs) -> None:
    assert unchanged(report, inputs)


CHANGES = {
    "a byte of the data": lambda inputs, report: (inputs.data / "a.csv").write_text("A"),
    "a data file gone": lambda inputs, report: (inputs.data / "a.csv").unlink(),
    "a data file that was missing": lambda inputs, report: (inputs.data / "absent.csv").touch(),
    "a new file in a listed folder": lambda inputs, report: (inputs.data / "deep" / "c.csv").touch(),
    "a file gone from a listed folder": lambda inputs, report: (inputs.data / "deep" / "b.csv").unlink(),
    "a folder that was missing": lambda inputs, report: (inputs.data / "nowhere").mkdir(),
    "the notebook": lambda inputs, report: inputs.notebook.write_text("{} "),
    "the notebook gone": lambda inputs, report: inputs.notebook.unlink(),
    "the lock": lambda inputs, report: inputs.lock.write_text("numpy "),
    "the lock gone": lambda inputs, report: inputs.lock.unlink(),
    "an altered page": lambda inputs, report: (report / "page.html").write_text("<p>e</p>"),
    "a deleted table": lambda inputs, report: (report / "tables" / "t.csv").unlink(),
    "a deleted folder": lambda inputs, report: shutil.rmtree(report / "tables"),
    "no manifest": lambda inputs, report: (report / MANIFEST).unlink(),
    "a broken manifest": lambda inputs, report: (report / MANIFEST).write_text("{"),
    "an empty manifest": lambda inputs, report: (report / MANIFEST).write_text("{}"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_one_thing_changed(report: Path, inputs: Inputs, change: str) -> None:
    CHANGES[change](inputs, report)
    assert not unchanged(report, inputs)


def test_what_was_not_read_does_not_count(report: Path, inputs: Inputs) -> None:
    (inputs.data / "deep" / "b.csv").write_text("its name was listed, its content not read")
    (inputs.data / "z.csv").touch()
    assert unchanged(report, inputs)


@pytest.mark.parametrize(
    "parameters",
    [
        {"n": 2, "rate": 0.5, "names": ["a"], "none": None},
        {"n": 1, "rate": 0.5, "names": ["a", "b"], "none": None},
        {"n": 1, "rate": 0.5, "names": ["a"], "none": 0},
        {"n": 1, "rate": 0.5, "names": ["a"]},
        {"n": 1, "rate": 0.5, "names": ["a"], "none": None, "more": 1},
        {},
    ],
)
def test_another_parameter(report: Path, inputs: Inputs, parameters: dict[str, Any]) -> None:
    assert not unchanged(report, replace(inputs, parameters=parameters))


@pytest.mark.parametrize("key", ["data", "listings", "files", "source", "lock", "notebook", "parameters"])
@pytest.mark.parametrize("value", [None, [], "x", 3])
def test_a_manifest_of_another_shape_is_not_trusted(report: Path, inputs: Inputs, key: str, value: Any) -> None:
    manifest = json.loads((report / MANIFEST).read_text())
    (report / MANIFEST).write_text(json.dumps({**manifest, key: value}))
    assert not unchanged(report, inputs)
    del manifest[key]
    (report / MANIFEST).write_text(json.dumps(manifest))
    assert not unchanged(report, inputs)


# ---- what was read --------------------------------------------------------------------------------------------------


def test_digests_of_what_a_log_names(tmp_path: Path, inputs: Inputs) -> None:
    log = tmp_path / "log"
    log.write_text("read\ta.csv\nlist\tdeep\nread\tdeep/b.csv\nread\ta.csv\nread\tabsent.csv\nlist\tnowhere\nlist\t.\n")
    assert data_digests(log, inputs.data) == {
        "data": {"a.csv": sha256(b"a"), "absent.csv": None, "deep/b.csv": sha256(b"b")},
        "listings": {".": sha256(b"a.csv\0deep"), "deep": sha256(b"b.csv"), "nowhere": None},
    }


def test_no_log_nothing_read(tmp_path: Path, inputs: Inputs) -> None:
    assert data_digests(tmp_path / "absent", inputs.data) == {"data": {}, "listings": {}}


# ---- the source -----------------------------------------------------------------------------------------------------


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the package."""
    copy = tmp_path / "path" / "faultbook"
    shutil.copytree(Path(faultbook.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


def digest_of(package: Path) -> str:
    program = "import faultbook, faultbook.reports.manifest as m; print(faultbook.__file__, m.source_digest())"
    environment = {**os.environ, "PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    ).stdout.split()
    assert done[0] == str(package / "__init__.py")
    return done[1]


def test_the_source_counts_to_the_last_line(package: Path) -> None:
    known = digest_of(package)
    seen = {known}
    shallow, deep, template = package / "text.py", package / "reports" / "run.py", package / "reports" / "template"
    for file in (shallow, deep, template / "report.css", template / "index.html.j2", package / "audit" / "judge.py"):
        content = file.read_text(encoding="utf-8")
        file.write_text(content + "\n", encoding="utf-8")
        seen.add(digest_of(package))
        file.write_text(content, encoding="utf-8")
    assert len(seen) == 6
    assert digest_of(package) == known


def test_a_new_and_a_renamed_source_file_count(package: Path) -> None:
    known = digest_of(package)
    (package / "new.py").touch()
    added = digest_of(package)
    (package / "new.py").rename(package / "other.py")
    renamed = digest_of(package)
    (package / "other.py").unlink()
    assert len({known, added, renamed}) == 3
    cache = package / "__pycache__"
    cache.mkdir(exist_ok=True)
    (cache / "x.pyc").write_bytes(b"compiled")
    assert digest_of(package) == known, "compiled files are not source"


def test_versions_name_what_the_numbers_depend_on() -> None:
    known = versions()
    assert {"python", "faultbook", "numpy", "pandas", "scipy", "statsmodels", "scikit-learn", "papermill"} <= set(known)
    assert all(number[0].isdigit() for number in known.values())
