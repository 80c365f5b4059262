"""A headless Chromium that sees everything a page does and lets nothing off this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from filelock import FileLock
from playwright.sync_api import Browser, BrowserContext, Error, Page, sync_playwright

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parents[1]
FAULTBOOK = str(Path(sys.executable).with_name("faultbook"))  # the command of this environment
REQUIRED = "FAULTBOOK_REQUIRE_BROWSER"
CHROMIUM = Path("/usr/bin/chromium")  # Debian's package
FLAGS = [
    *(["--no-sandbox"] if os.geteuid() == 0 else []),
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--disable-sync",
    "--no-first-run",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # what is not routed below finds no address either
]
WAIT = 60_000  # milliseconds that something expected may take; no test asks for speed
SETTLE = 250  # milliseconds given to something that must not happen


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session", autouse=True)
def chromium() -> Path:
    """Debian's Chromium; without it the tests are skipped, or fail where a browser is required."""
    if not CHROMIUM.exists():
        reason = f"no {CHROMIUM}; install it with: apt-get install chromium"
        if os.environ.get(REQUIRED) == "1":
            pytest.fail(f"{reason} ({REQUIRED}=1)", pytrace=False)
        pytest.skip(reason)
    return CHROMIUM


@pytest.fixture(scope="session")
def browser(chromium: Path) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=chromium, headless=True, args=FLAGS)
        yield launched
        launched.close()


@dataclass
class Visit:
    """A page, and everything that it asked for, said and did since it was opened."""

    page: Page
    address: str
    requests: list[str] = field(default_factory=list)  # all of them, also those that a policy stopped
    console_errors: list[str] = field(default_factory=list)
    page_errors: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)
    navigations: list[str] = field(default_factory=list)  # of the page itself, the first one included
    popups: list[str] = field(default_factory=list)
    interrupted: str | None = None  # why it did not load

    def asked(self) -> list[str]:
        """Every address asked for but the page's own and those that carry their data with them."""
        return [url for url in self.requests if url != self.address and urlsplit(url).scheme != "data"]

    def fired(self) -> list[str]:
        """The names of the payloads that ran."""
        return list(self.page.evaluate("window.__pwn ?? []"))

    def settle(self, milliseconds: int = SETTLE) -> Visit:
        self.page.wait_for_timeout(milliseconds)
        return self


Open = Callable[..., Visit]
Watch = Callable[..., Visit]


@pytest.fixture
def visit(browser: Browser) -> Iterator[Open]:
    """Open files in a window of their own; `visit(path, width=…, height=…)` returns once the page has loaded."""
    contexts: list[BrowserContext] = []

    def open_file(path: Path, *, width: int = 1200, height: int = 900) -> Visit:
        context = browser.new_context(viewport={"width": width, "height": height})
        contexts.append(context)
        context.set_default_timeout(WAIT)
        page = context.new_page()
        seen = _watch(page, path.resolve().as_uri())
        try:
            page.goto(seen.address, wait_until="load")
        except Error as error:  # a page that goes elsewhere at once interrupts this very call
            seen.interrupted = str(error)
        return seen

    yield open_file
    for context in contexts:
        context.close()


@pytest.fixture(scope="session")
def watch() -> Watch:
    return _watch


def _watch(page: Page, address: str, *, allowed: tuple[str, ...] = ("file:", "data:")) -> Visit:
    """Record what a page does from now on, and stop every request to an address that does not start as allowed."""
    seen = Visit(page, address)
    page.context.on("request", lambda request: seen.requests.append(request.url))
    page.context.route(
        lambda url: not url.startswith((*allowed, "blob:", "about:")), lambda route: route.abort("blockedbyclient")
    )
    page.on("console", lambda said: seen.console_errors.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: seen.page_errors.append(str(error)))
    page.on("framenavigated", lambda frame: seen.navigations.append(frame.url) if frame == page.main_frame else None)
    page.on("popup", lambda popup: seen.popups.append(popup.url))

    def dismiss(dialog: Any) -> None:
        seen.dialogs.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", dismiss)
    return seen


def _run_notebooks(notebooks: Path, out: Path, *names: str, parameters: Path | None = None) -> list[dict[str, Any]]:
    """Run notebooks as reports with the project's own command; what it says of each of them."""
    command = [FAULTBOOK, "report", *names, "--json", "--notebooks", str(notebooks)]
    command += [
        "--out",
        str(out),
        "--data",
        str(PROJECT / "data"),
        *(["--params", str(parameters)] if parameters else []),
    ]
    run = subprocess.run(command, capture_output=True, text=True, cwd=PROJECT)
    assert run.returncode in (0, 1), run.stderr
    return list(json.loads(run.stdout)["reports"])


Run = Callable[..., list[dict[str, Any]]]
Once = Callable[[str, Callable[[Path], None]], Path]


@pytest.fixture(scope="session")
def run_notebooks() -> Run:
    return _run_notebooks


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Once:
    """Make a folder once for all workers of a test run: `once(name, make)` calls `make(folder)` in one of them."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base

    def make_once(name: str, make: Callable[[Path], None]) -> Path:
        folder, finished = shared / name, shared / f"{name}.finished"
        with FileLock(shared / f"{name}.lock"):
            if not finished.exists():
                if folder.exists():
                    pytest.fail(f"{name} could not be made; the test that tried first says why", pytrace=False)
                folder.mkdir()
                make(folder)
                finished.touch()
        return folder

    return make_once


@pytest.fixture(scope="session")
def real_reports(once: Once, chromium: Path) -> Path:
    """A reports folder with notebook 1, run on the project's data."""

    def make(folder: Path) -> None:
        (result,) = _run_notebooks(PROJECT / "notebooks", folder, "1_reported_numbers")
        assert result["status"] == "ran", result["error"]

    return once("real-reports", make)
