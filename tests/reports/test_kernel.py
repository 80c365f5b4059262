"""The audit hook of a report's kernel: every data file that is read, every folder that is listed, nothing else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faultbook.reports.layout import escape_name, unescape_name
from faultbook.reports.manifest import data_digests

_PROGRAM = """
import sys
from pathlib import Path
from faultbook.reports.kernel import watch_reads
sys.addaudithook(watch_reads(Path(sys.argv[1]), Path(sys.argv[2])))
data = Path(sys.argv[1])
"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    (folder / "deep" / "deeper").mkdir(parents=True)
    (folder / "empty").mkdir()
    for name in ("a.csv", "b.csv", "deep/c.csv", "deep/deeper/d.csv"):
        (folder / name).write_text("x,y\n1,2\n")
    (tmp_path / "data-other").mkdir()
    (tmp_path / "data-other" / "e.csv").write_text("x\n")
    return folder


def seen(data: Path, program: str, *, root: Path | None = None) -> set[str]:
    """What the hook writes down while a program runs in a process of its own (a hook cannot be taken out again)."""
    log = data.parent / "log"
    arguments = [sys.executable, "-c", _PROGRAM + program, str(root or data), str(log)]
    subprocess.run(arguments, check=True, cwd=data.parent)
    lines = log.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    assert len(lines) == len(set(lines)), "written twice"
    return set(lines)


READS = {
    "open": "open(data / 'a.csv').read()",
    "open of a text": "open(str(data / 'a.csv')).read()",
    "open in binary": "open(data / 'a.csv', 'rb').read()",
    "open of bytes": "import os\nopen(os.fsencode(data / 'a.csv')).read()",
    "os.open": "import os\nos.open(data / 'a.csv', os.O_RDONLY)",
    "io": "import io\nio.open(data / 'a.csv').read()",
    "read_text": "(data / 'a.csv').read_text()",
    "read_bytes": "(data / 'a.csv').read_bytes()",
    "relative": "import os\nos.chdir(data / 'deep')\nopen('../a.csv').read()",
    "roundabout": "open(data / 'deep' / '..' / 'a.csv').read()",
    "twice": "for _ in range(3): open(data / 'a.csv').read()",
    "pandas": "import pandas\npandas.read_csv(data / 'a.csv')",
    "pandas, Python engine": "import pandas\npandas.read_csv(str(data / 'a.csv'), engine='python')",
    "numpy": "import numpy\nnumpy.loadtxt(data / 'a.csv', delimiter=',', skiprows=1)",
    "reading and writing": "open(data / 'a.csv', 'r+').read()",
    "a thread": "import threading\nt = threading.Thread(target=(data / 'a.csv').read_text)\nt.start()\nt.join()",
}


@pytest.mark.parametrize("way", READS)
def test_reading(data: Path, way: str) -> None:
    assert seen(data, READS[way]) == {"read\ta.csv"}


LISTINGS = {
    "iterdir": ("list((data / 'deep').iterdir())", {"deep"}),
    "listdir": ("import os\nos.listdir(data / 'deep')", {"deep"}),
    "scandir": ("import os\nlist(os.scandir(data / 'deep'))", {"deep"}),
    "listdir of bytes": ("import os\nos.listdir(os.fsencode(data / 'deep'))", {"deep"}),
    "pathlib glob": ("sorted((data / 'deep').glob('*.csv'))", {"deep"}),
    "pathlib rglob": ("sorted((data / 'deep').rglob('*.csv'))", {"deep", "deep/deeper"}),
    "glob": ("import glob\nglob.glob(f'{data}/deep/*.csv')", {"deep"}),
    "walk": ("import os\nlist(os.walk(data / 'deep'))", {"deep", "deep/deeper"}),
    "the data folder itself": ("sorted(data.iterdir())", {"."}),
    "the working folder": ("import os\nos.chdir(data / 'empty')\nos.listdir()", {"empty"}),
}


@pytest.mark.parametrize("way", LISTINGS)
def test_listing(data: Path, way: str) -> None:
    program, folders = LISTINGS[way]
    assert seen(data, program) == {f"list\t{folder}" for folder in folders}


IGNORED = {
    "writing": "open(data / 'new.csv', 'w').write('x')",
    "appending": "open(data / 'a.csv', 'a').write('x')",
    "making": "open(data / 'new.csv', 'x')",
    "pandas writing": "import pandas\npandas.DataFrame({'x': [1]}).to_csv(data / 'new.csv')",
    "os.open for writing": "import os\nos.open(data / 'a.csv', os.O_WRONLY)",
    "temporary files": "import tempfile\nf = tempfile.TemporaryFile()\nf.write(b'x')\nf.seek(0)\nf.read()",
    "a neighbour with the same beginning": "open(f'{data}-other/e.csv').read()",
    "above": "open('/etc/hostname')\nlist(data.parent.iterdir())",
    "a file number": "import os\nos.fdopen(os.dup(0))\nos.listdir(os.open('/', os.O_RDONLY))",
    "asking": "(data / 'a.csv').exists()\n(data / 'a.csv').stat()",
    "nothing": "",
}


@pytest.mark.parametrize("what", IGNORED)
def test_what_is_no_reading_of_data(data: Path, what: str) -> None:
    assert seen(data, IGNORED[what]) == set()


def test_a_file_that_is_missing_is_noted(data: Path) -> None:
    """Should it appear one day, the report is another one."""
    assert seen(data, "try:\n    open(data / 'absent.csv')\nexcept OSError:\n    pass") == {"read\tabsent.csv"}


def test_a_data_folder_behind_a_link(data: Path) -> None:
    link = data.parent / "link"
    link.symlink_to(data)
    assert seen(data, "open(data / 'a.csv').read()", root=link) == {"read\ta.csv"}
    assert seen(data, "open(data.parent / 'data' / 'b.csv').read()", root=link) >= {"read\tb.csv"}


def test_a_data_file_behind_a_link_is_noted(data: Path) -> None:
    """As git-annex and DVC lay them out: the content lies elsewhere, and is read all the same."""
    elsewhere = data.parent / "store" / "0123abcd"
    elsewhere.parent.mkdir()
    elsewhere.write_text("x\n")
    (data / "linked.csv").symlink_to(elsewhere)
    (data / "linked").symlink_to(elsewhere.parent)
    assert seen(data, "open(data / 'linked.csv').read()") == {"read\tlinked.csv"}
    assert "list\tlinked" in seen(data, "list((data / 'linked').iterdir())")


@pytest.mark.parametrize(
    "name",
    [
        "with space.csv",
        "길.csv",
        "tab\t.csv",
        "{x}.csv",
        "-",
        "two\nlines.csv",
        "a\rb\r\nc",
        "back\\slash\\n.csv",
        "a\x85b\u2028c",
        "\udcff",
    ],
)
def test_odd_names_reach_the_manifest(data: Path, name: str) -> None:
    (data / name).write_text("odd")
    log = data.parent / "log"
    arguments = [sys.executable, "-c", f"{_PROGRAM}\nopen(data / {name!r}).read()", str(data), str(log)]
    subprocess.run(arguments, check=True)
    digests = data_digests(log, data)
    assert list(digests["data"]) == [name]
    assert digests["data"][name] is not None
    assert digests["listings"] == {}


@given(st.text(st.characters(exclude_characters="\0")))
def test_any_name_is_one_line_of_the_log_and_comes_back(name: str) -> None:
    assert "\n" not in escape_name(name)
    assert unescape_name(escape_name(name)) == name


def test_a_child_process_is_not_seen(data: Path) -> None:
    """A limit that the module states; a change of it should be noticed."""
    assert seen(data, f"import subprocess\nsubprocess.run(['cat', {str(data / 'a.csv')!r}])") == set()


def test_two_processes_may_share_a_log(data: Path) -> None:
    log = data.parent / "log"
    for name in ("a.csv", "b.csv"):
        program = f"{_PROGRAM}\nopen(data / '{name}').read()"
        subprocess.run([sys.executable, "-c", program, str(data), str(log)], check=True)
    assert set(log.read_text().splitlines()) == {"read\ta.csv", "read\tb.csv"}


def test_the_log_is_for_its_owner_only(data: Path) -> None:
    seen(data, "")
    assert (data.parent / "log").stat().st_mode & 0o777 == 0o600
