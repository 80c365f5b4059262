"""The `faultbook` command: report, audit, lab. A user's mistake is one line on stderr and exit code 2."""

from __future__ import annotations

import json
import math
import os
import signal
import sys
import time
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from faultbook import __version__
from faultbook.errors import FaultbookError
from faultbook.paths import data_folder, project_folder

Function = TypeVar("Function", bound=Callable[..., Any])
DIRECTORY = click.Path(file_okay=False, path_type=Path)
FILE = click.Path(dir_okay=False, exists=True, path_type=Path)


def _one_line_errors(function: Function) -> Function:
    """Turn a FaultbookError into one line and exit code 2, and an interrupt into exit code 130."""

    @wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except FaultbookError as error:
            click.echo(f"faultbook: {error}", err=True)
            sys.exit(2)
        except KeyboardInterrupt:
            click.echo("faultbook: interrupted; finished reports are kept, the others stay as they were", err=True)
            sys.exit(130)

    return wrapped  # type: ignore[return-value]  # same signature


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="faultbook")
def main() -> None:
    """What does a failure score of an AI agent really say?"""


@main.command()
@click.argument("names", nargs=-1, metavar="[NAMES]...")
@click.option("--data", type=DIRECTORY, help="Folder to read instead of the project's data/.")
@click.option("--out", type=DIRECTORY, help="Folder to write to instead of the project's reports/.")
@click.option("-p", "--parameter", "assignments", multiple=True, metavar="NAME=VALUE", help="Set a parameter.")
@click.option("--params", type=FILE, help="YAML file of parameters; -p wins over it.")
@click.option("--jobs", type=click.IntRange(1, 64), default=2, show_default=True, help="Notebooks at a time.")
@click.option("--force", is_flag=True, help="Run also what is unchanged.")
@click.option("--limit", type=click.FloatRange(1), default=1800, show_default=True, help="Seconds a notebook may take.")
@click.option("--notebooks", type=DIRECTORY, help="Folder of notebooks instead of the project's notebooks/.")
@click.option("--list", "listing", is_flag=True, help="List reports with their parameters; run nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
@click.option("--quiet", is_flag=True, help="No progress; for schedulers.")
@_one_line_errors
def report(
    names: tuple[str, ...],
    data: Path | None,
    out: Path | None,
    assignments: tuple[str, ...],
    params: Path | None,
    jobs: int,
    force: bool,
    limit: float,
    notebooks: Path | None,
    listing: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Run notebooks as reports.

    NAMES are notebooks (1_reported_numbers, or just 1); without any, all are run. Exits with 0 if every report asked
    for is there and current, 1 if one failed, 2 if nothing could be started.
    """
    from faultbook.reports import catalog, parameters, run

    project = project_folder(notebooks)
    every = catalog.catalog(notebooks or project / "notebooks")
    chosen = catalog.select(every, names)
    if listing:
        _print_catalog(chosen, as_json)
        return
    prepared = run.make_jobs(
        chosen,
        data=_data(data),
        lock=project / "requirements.lock",
        given=parameters.read_parameters(params) if params else {},
        texts=dict(parameters.split_assignment(text) for text in assignments),
    )
    signal.signal(signal.SIGTERM, _interrupt)
    progress = _Quiet() if quiet or as_json else _Progress()
    target = out or project / "reports"
    results = run.run_reports(prepared, every, target, workers=jobs, force=force, limit=limit, progress=progress)
    if as_json:
        click.echo(json.dumps(run.as_json(results), ensure_ascii=False))
    else:
        _print_results(results, target)
    sys.exit(run.verdict(results))


@main.command()
@click.option("--data", type=DIRECTORY, help="Folder of printed numbers (*.csv) and their relations.yaml.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
@_one_line_errors
def audit(data: Path | None, as_json: bool) -> None:
    """Hold every printed number against arithmetic."""
    from faultbook import audit as auditing

    folder = _reported_folder(data)
    reported = auditing.read_reported(folder)
    relations_file = folder / "relations.yaml"
    relations = auditing.read_relations(relations_file) if relations_file.is_file() else []
    auditing.check_relations(reported, relations, relations_file)
    audited = auditing.audit(reported, relations)
    if as_json:
        click.echo(json.dumps(auditing.as_json(audited), ensure_ascii=False))
        return
    for document, rows in audited.groupby("document", sort=False):
        counts = rows["status"].value_counts()
        listed = ", ".join(f"{counts[status]} {status}" for status in auditing.STATUSES if status in counts)
        click.echo(f"{document}: {len(rows)} printed numbers: {listed}")
        for row in rows[rows["status"] == "inconsistent"].to_dict("records"):
            click.echo(f"  inconsistent  {row['id']}  {row['printed']}\n    {row['reason']}")


@main.command()
@click.option("--port", type=click.IntRange(1, 65535), default=8888, show_default=True)
@click.option("--no-browser", is_flag=True, help="Do not open a browser.")
@_one_line_errors
def lab(port: int, no_browser: bool) -> None:
    """Open JupyterLab at notebooks/, on 127.0.0.1 and with a token."""
    project = project_folder()
    command = [
        *(sys.executable, "-m", "jupyterlab", "--ServerApp.ip=127.0.0.1", f"--port={port}"),
        *(f"--ServerApp.root_dir={project}", "--LabApp.default_url=/lab/tree/notebooks"),
        *(["--no-browser"] if no_browser else []),
        # Jupyter refuses root unless told; on a loopback address with a token it is the container user's own Lab.
        *(["--allow-root"] if os.geteuid() == 0 else []),
    ]
    os.execv(sys.executable, command)  # noqa: S606  # our own interpreter, a fixed command


def _data(data: Path | None) -> Path:
    if data is not None and not data.is_dir():
        raise FaultbookError(f"--data {data}: no such folder")
    return data.resolve() if data else data_folder().resolve()


def _reported_folder(data: Path | None) -> Path:
    """A folder of printed numbers, or the `reported` folder in a data folder."""
    if data is None:
        return data_folder("reported")
    return data / "reported" if (data / "reported").is_dir() else data


def _print_catalog(reports: list[Any], as_json: bool) -> None:
    if as_json:
        fields = ("name", "type", "default", "help")
        listed = [
            {"name": r.name, "title": r.title, "parameters": [{f: getattr(p, f) for f in fields} for p in r.parameters]}
            for r in reports
        ]
        click.echo(json.dumps({"reports": listed}, ensure_ascii=False))
        return
    for item in reports:
        click.echo(f"{item.name}  {item.title}")
        for p in item.parameters:
            click.echo(f"    {p.name}: {p.type} = {p.default!r}" + (f"  # {p.help}" if p.help else ""))


def _print_results(results: list[Any], out: Path) -> None:
    for result in results:
        seconds = f"{result.seconds:.1f} s" if result.status != "unchanged" else ""
        where = result.error if result.status == "failed" else str(out / result.html)
        click.echo(f"{result.status:<10} {result.name:<28} {seconds:>8}  {where}")
    click.echo(f"index      {out / 'index.html'}")


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


class _Quiet:
    """Tells nothing."""

    def cell(self, name: str, index: int, total: int) -> None:
        """Nothing."""

    def done(self, result: Any) -> None:
        """Nothing."""

    def waiting(self, out: Path) -> None:
        """Nothing."""


class _Progress:
    """One line on stderr: in a terminal it is rewritten, elsewhere a new one every few seconds."""

    def __init__(self) -> None:
        self._cells: dict[str, str] = {}
        self._terminal = sys.stderr.isatty()
        self._last = -math.inf

    def cell(self, name: str, index: int, total: int) -> None:
        """Show which notebook is at which cell."""
        self._cells[name] = f"{name} cell {index}/{total}"
        if self._terminal or time.monotonic() - self._last > 2:
            self._last = time.monotonic()
            self._show("running  " + "   ".join(self._cells.values()))

    def done(self, result: Any) -> None:
        """Take a finished notebook off the line."""
        self._cells.pop(result.name, None)
        if self._terminal:
            self._show("running  " + "   ".join(self._cells.values()) if self._cells else "")

    def waiting(self, out: Path) -> None:
        """Say why nothing happens yet."""
        click.echo(f"waiting for another run that holds {out}", err=True)

    def _show(self, line: str) -> None:
        click.echo(f"\r\x1b[2K{line}" if self._terminal else line, err=True, nl=not self._terminal)
