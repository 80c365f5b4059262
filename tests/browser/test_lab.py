"""JupyterLab as `faultbook lab` starts it: for this machine alone, at the notebooks, and gone when told."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import pty
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat
import psutil
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

if TYPE_CHECKING:
    from conftest import Watch

PROJECT = Path(__file__).resolve().parents[2]
FAULTBOOK = str(Path(sys.executable).with_name("faultbook"))  # the command of this environment
NAME = "1_reported_numbers.ipynb"
TOKEN = "a-token-that-only-this-test-knows"  # noqa: S105  # of a server that lives as long as a test
DEADLINE = 180  # seconds for whatever must happen
CONFIG = """
c.LabApp.expose_app_in_browser = True  # gives the page window.jupyterapp, through which the test asks about the kernel
c.LabApp.news_url = None
c.LabApp.check_for_updates_class = "jupyterlab.NeverCheckForUpdate"
"""
SETTINGS = {
    "@jupyterlab/apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    "@jupyterlab/docmanager-extension/plugin": {"autosave": False},
}
NOTEBOOK = "window.jupyterapp?.shell?.currentWidget"
# A visible cell is not enough: before the session is connected, Run asks for a kernel instead.
READY = f"() => {NOTEBOOK}?.sessionContext?.session?.kernel?.status === 'idle'"
CELLS = f"{NOTEBOOK}.content.widgets.map(cell => cell.model.toJSON()).filter(cell => cell.cell_type === 'code')"
FINISHED = f"""() => {{
    const cells = {CELLS};
    const failed = cells.some(cell => cell.outputs.some(output => output.output_type === 'error'));
    const idle = {NOTEBOOK}.sessionContext.session.kernel.status === 'idle';
    return idle && (failed || cells.every(cell => cell.execution_count));
}}"""


@dataclass
class Lab:
    process: psutil.Popen
    folder: Path  # the copy of the project
    port: int
    log: Path

    def address(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def ask(self, path: str, *, token: str | None = TOKEN, **headers: str) -> tuple[int, str]:
        """Status of an answer, and where it leads; redirections are not followed."""
        if token:
            headers["Authorization"] = f"token {token}"
        opener = urllib.request.build_opener(_Stay)
        try:
            with opener.open(urllib.request.Request(self.address(path), headers=headers), timeout=30) as answer:
                return answer.status, ""
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.headers.get("Location") or ""

    def family(self) -> list[psutil.Process]:
        return [self.process, *self.process.children(recursive=True)]


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


@pytest.fixture
def lab(tmp_path: Path, chromium: Path) -> Iterator[Lab]:
    """The real command in a copy of the project, with every Jupyter folder inside `tmp_path`."""
    folder = tmp_path / "project"
    for name in ("notebooks", "data"):
        shutil.copytree(PROJECT / name, folder / name, ignore=shutil.ignore_patterns(".ipynb_checkpoints"))
    for name in ("pyproject.toml", "requirements.lock"):
        shutil.copy(PROJECT / name, folder / name)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("JUPYTER", "FAULTBOOK"))}
    kinds = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "JUPYTERLAB_SETTINGS_DIR")
    for kind in (*kinds, "JUPYTERLAB_WORKSPACES_DIR", "IPYTHONDIR"):
        environment[kind] = str(tmp_path / kind.lower())
        Path(environment[kind]).mkdir()
    (Path(environment["JUPYTER_CONFIG_DIR"]) / "jupyter_lab_config.py").write_text(CONFIG, encoding="utf-8")
    for name, values in SETTINGS.items():
        file = Path(environment["JUPYTERLAB_SETTINGS_DIR"]) / f"{name}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(values), encoding="utf-8")
    port, log = _free_port(), tmp_path / "lab.log"
    terminal, inside = pty.openpty()  # only in a terminal does Jupyter ask before it stops; here nobody answers
    with log.open("wb") as output:
        process = psutil.Popen(
            [FAULTBOOK, "lab", "--no-browser", "--port", str(port)],
            cwd=folder,
            env={**environment, "JUPYTER_TOKEN": TOKEN},
            stdin=inside,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    started = Lab(process, folder, port, log)
    try:
        _wait(lambda: process.poll() is not None or _answers(started), "an answer of the server", log)
        assert process.poll() is None, log.read_text(errors="replace")
        yield started
    finally:
        for member in started.family() if process.poll() is None else []:
            with contextlib.suppress(psutil.NoSuchProcess):
                member.kill()
        process.wait(DEADLINE)
        os.close(terminal)
        os.close(inside)


def test_lab_is_for_this_machine_and_who_has_the_token(lab: Lab) -> None:
    listening = [
        connection.laddr
        for member in lab.family()
        for connection in member.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    ]
    assert lab.port in {address.port for address in listening}
    assert {address.ip for address in listening} == {"127.0.0.1"}

    assert lab.ask("/api/contents/notebooks")[0] == 200
    for token in (None, "another"):
        assert lab.ask("/api/contents/notebooks", token=token)[0] == 403
        assert lab.ask("/api/kernels", token=token)[0] == 403
        status, location = lab.ask("/lab", token=token)
        assert status == 302
        assert "/login" in location
    assert lab.ask("/api/contents/notebooks", Host="outside.invalid")[0] == 403  # a name that leads here by rebinding
    assert TOKEN not in " ".join(lab.process.cmdline())


@pytest.mark.slow
def test_lab_opens_at_the_notebooks_and_runs_the_first(
    lab: Lab, browser: Browser, watch: Watch, real_reports: Path, tmp_path: Path
) -> None:
    digests = {path: _digest(path) for path in (PROJECT / "notebooks" / NAME, lab.folder / "notebooks" / NAME)}
    context = browser.new_context(viewport={"width": 1400, "height": 1000})
    context.set_default_timeout(DEADLINE * 1000)
    try:
        page = context.new_page()
        seen = watch(page, "", allowed=(lab.address("/"), "data:"))
        page.goto(lab.address(f"/?token={TOKEN}"))
        page.wait_for_url("**/lab/tree/notebooks*")
        entry = page.locator(".jp-DirListing-item", has_text=NAME)
        expect(entry).to_be_visible(timeout=DEADLINE * 1000)
        page.screenshot(path=tmp_path / "lab-opened.png")
        entry.dblclick()
        page.locator(".jp-NotebookPanel .jp-Cell").first.wait_for()
        page.wait_for_function(READY)
        page.get_by_role("menuitem", name="Run", exact=True).click()
        page.locator('[data-command="runmenu:run-all"]').click()
        page.wait_for_function(FINISHED)
        page.screenshot(path=tmp_path / "lab-ran.png")
        _check_outputs(page, nbformat.read(real_reports / Path(NAME).stem / NAME, as_version=4), tmp_path)
        assert page.locator(".jp-Dialog, .jp-toast-message, .Toastify__toast").all_text_contents() == []
        assert seen.page_errors == []
        assert seen.dialogs == []
        assert [url for url in seen.requests if not url.startswith((lab.address("/"), "data:", "blob:"))] == []
    finally:
        context.close()
    assert {path: _digest(path) for path in digests} == digests
    assert sorted(path.name for path in lab.folder.iterdir()) == [
        "data",
        "notebooks",
        "pyproject.toml",
        "requirements.lock",
    ]
    _end(lab)


@pytest.mark.slow
def test_every_other_notebook_runs_there_without_an_error(
    lab: Lab, browser: Browser, watch: Watch, tmp_path: Path
) -> None:
    names = sorted(path.name for path in (PROJECT / "notebooks").glob("[2-9]_*.ipynb"))
    assert len(names) >= 5
    context = browser.new_context(viewport={"width": 1400, "height": 1000})
    context.set_default_timeout(4 * DEADLINE * 1000)  # with seven notebooks' kernels, one after the other
    try:
        for name in names:
            page = context.new_page()
            watch(page, "", allowed=(lab.address("/"), "data:"))
            page.goto(lab.address(f"/lab/tree/notebooks/{name}?token={TOKEN}&reset"))
            page.locator(".jp-NotebookPanel .jp-Cell").first.wait_for()
            page.wait_for_function(READY)
            page.get_by_role("menuitem", name="Run", exact=True).click()
            page.locator('[data-command="runmenu:run-all"]').click()
            page.wait_for_function(FINISHED)
            page.screenshot(path=tmp_path / f"{name}.png")
            outputs = [output for cell in page.evaluate(f"() => {CELLS}") for output in cell["outputs"]]
            assert [output["evalue"] for output in outputs if output["output_type"] == "error"] == [], name
            assert sum("image/png" in output.get("data", {}) for output in outputs) >= 2, name
            page.close()
    finally:
        context.close()


@pytest.mark.slow
def test_two_interrupts_end_it(lab: Lab) -> None:
    request = urllib.request.Request(
        lab.address("/api/kernels"), data=b"{}", headers={"Authorization": f"token {TOKEN}"}, method="POST"
    )
    with urllib.request.urlopen(request, timeout=DEADLINE) as answer:
        assert answer.status == 201
    _wait(lambda: len(lab.family()) > 1, "a kernel", lab.log)
    _end(lab)


def _check_outputs(page: Page, report: nbformat.NotebookNode, tmp_path: Path) -> None:
    """No cell failed or grumbled; the tables and figures are those of the report, and can be seen."""
    cells = page.evaluate(f"() => {CELLS}")
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert [output["evalue"] for output in outputs if output["output_type"] == "error"] == []
    assert [output["text"] for output in outputs if output["output_type"] == "stream"] == []
    assert all(cell["execution_count"] for cell in cells)
    reported = [output for cell in report.cells for output in cell.get("outputs", [])]
    for kind in ("text/html", "image/png"):
        shown = [_text(output["data"][kind]) for output in outputs if kind in output.get("data", {})]
        assert shown == [_text(output.data[kind]) for output in reported if kind in output.get("data", {})]
        assert len(shown) > 3
    figure = page.locator(".jp-OutputArea-output img").first
    _show(figure)
    page.wait_for_function(
        "() => [...document.querySelectorAll('.jp-OutputArea-output img')].some(image => image.naturalWidth > 400)"
    )
    page.screenshot(path=tmp_path / "lab-figure.png")
    table = page.locator(".jp-OutputArea-output table", has_text="inconsistent").first
    _show(table)
    expect(table.locator("th").first).to_be_visible()
    page.screenshot(path=tmp_path / "lab-table.png")


def _show(output: Locator) -> None:
    """Scroll until an output is in the window; Lab moves things as it draws what comes into view."""
    for _ in range(50):
        output.evaluate("element => element.scrollIntoView({block: 'center'})")
        output.page.wait_for_timeout(200)
        box, window = output.bounding_box(), output.page.viewport_size
        if box and window and 0 < box["y"] < window["height"] / 2:
            break
    expect(output).to_be_in_viewport(ratio=0.5)


def _text(lines: str | list[str]) -> str:
    return "".join(lines).strip()


def _end(lab: Lab) -> None:
    """Interrupt twice, as Ctrl-C twice does; the server and its kernels must be gone, and the port free."""
    family = lab.family()
    lab.process.send_signal(signal.SIGINT)
    # Two signals of a kind that come at once count as one: wait until the first has been answered.
    _wait(lambda: "Shut down this Jupyter server" in lab.log.read_text(errors="replace"), "the question", lab.log)
    lab.process.send_signal(signal.SIGINT)
    assert lab.process.wait(DEADLINE) == 0, lab.log.read_text(errors="replace")
    _wait(lambda: not any(map(_lives, family)), "the end of all kernels", lab.log)
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", lab.port)) != 0


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE  # PID 1 may not collect the dead
    except psutil.NoSuchProcess:
        return False


def _answers(lab: Lab) -> bool:
    try:
        return lab.ask("/api")[0] == 200
    except OSError:
        return False


def _wait(condition: Callable[[], bool], what: str, log: Path) -> None:
    end = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < end, f"no sign of {what}:\n{log.read_text(errors='replace')}"
        time.sleep(0.1)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
