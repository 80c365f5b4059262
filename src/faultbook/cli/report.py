"""`faultbook report`: run notebooks, publish them, say what became of each."""

from __future__ import annotations

import json
import math
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from faultbook.cli.errors import one_line_errors
from faultbook.errors import FaultbookError
from faultbook.paths import data_folder, project_folder
from faultbook.text import plain

# Whether it is there, and what it is, is checked below: in one line, as every other mistake.
PATH = click.Path(path_type=Path)
_LONGEST_LINE = 300  # characters of an error in the text; --json has all of it


@click.command()
@click.argument("names", nargs=-1, metavar="[NAMES]...")
@click.option("--data", type=PATH, help="Folder to read instead of the project's data/.")
@click.option("--out", type=PATH, help="Folder to write to instead of the project's reports/.")
@click.option("-p", "--parameter", "assignments", multiple=True, metavar="NAME=VALUE", help="Set a parameter.")
@click.option("--params", type=PATH, help="YAML file of parameters; -p wins over it.")
@click.option("--jobs", type=click.IntRange(1, 64), default=2, show_default=True, help="Notebooks at a time.")
@click.option("--force", is_flag=True, help="Run also what is unchanged.")
@click.option(
    "--time-limit",
    "--limit",
    "limit",
    type=click.FloatRange(1),
    default=1800,
    show_default=True,
    help="Seconds a notebook may take, waiting for memory included.",
)
@click.option("--notebooks", type=PATH, help="Folder of notebooks instead of the project's notebooks/.")
@click.option("--list", "listing", is_flag=True, help="List reports with their parameters; run nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
@click.option("--quiet", is_flag=True, help="No progress; for schedulers.")
@one_line_errors
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
    place = (notebooks or project / "notebooks").resolve()
    every = catalog.catalog(place)
    chosen = catalog.select(every, names)
    if listing:
        _print_catalog(chosen, as_json)
        return
    source = _data(data)
    prepared = run.make_jobs(
        chosen,
        data=source,
        lock=project / "requirements.lock",
        given=parameters.read_parameters(params) if params else {},
        texts=dict(parameters.split_assignment(text) for text in assignments),
    )
    signal.signal(signal.SIGTERM, _interrupt)
    progress = _Quiet() if quiet or as_json else _Progress()
    target = out or project / "reports"
    results = run.run_reports(
        prepared,
        every,
        target,
        workers=jobs,
        force=force,
        limit=limit,
        progress=progress,
        command=_command(
            names,
            {"--data": source, "--out": target, "--params": params, "--notebooks": place},
            assignments,
            jobs=jobs,
            force=force,
            limit=limit,
        ),
        resumes=(click.get_current_context().find_root().obj or {}).get("resumes"),
    )
    untold = progress.left if isinstance(progress, _Quiet) else []
    if as_json:
        click.echo(json.dumps(run.as_json(results) | {"interrupted": untold}, ensure_ascii=False))
    else:
        for left in untold:
            _tell(left)
        _print_results(results, target)
    sys.exit(run.verdict(results))


def _command(
    names: tuple[str, ...],
    paths: Mapping[str, Path | None],
    assignments: tuple[str, ...],
    *,
    jobs: int,
    force: bool,
    limit: float,
) -> list[str]:
    """The arguments that start the same again from any folder: places are written out also where they were usual."""
    given = [part for name, path in paths.items() if path is not None for part in (name, str(path.resolve()))]
    values = [part for text in assignments for part in ("--parameter", text)]
    rest = ["--jobs", str(jobs), "--time-limit", f"{limit:g}", *(["--force"] if force else [])]
    return ["report", *given, *values, *rest, "--", *names]


def _data(data: Path | None) -> Path:
    if data is not None and not data.is_dir():
        raise FaultbookError(f"--data {data}: no such folder")
    return data.resolve() if data else data_folder().resolve()


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
        where = _one_line(result.error) if result.status == "failed" else str(out / result.html)
        click.echo(f"{result.status:<10} {result.name:<28} {seconds:>8}  {where}")
    click.echo(f"index      {out / 'index.html'}")


def _one_line(error: str) -> str:
    line = " ".join(error.split())
    return line if len(line) <= _LONGEST_LINE else line[:_LONGEST_LINE] + " …"


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


class _Quiet:
    """Tells nothing of what goes on; what was cut off before is told at the end."""

    def __init__(self) -> None:
        self.left: list[dict[str, Any]] = []

    def cell(self, name: str, index: int, total: int) -> None:
        """Nothing."""

    def done(self, result: Any) -> None:
        """Nothing."""

    def waiting(self, out: Path) -> None:
        """Nothing."""

    def interrupted(self, left: Mapping[str, Any]) -> None:
        """Keep it for the end."""
        self.left.append(_left(left))


def _left(found: Mapping[str, Any]) -> dict[str, Any]:
    """What a run that was cut off left: its id, how many reports it finished, and which it did not."""
    trials = found["trials"]
    return {"run_id": found["run_id"], "finished": trials["finished"], "unfinished": trials["unfinished"]}


def _tell(left: Mapping[str, Any]) -> None:
    lost = ", ".join(plain(name) for name in left["unfinished"]) or "nothing"
    click.echo(
        f"interrupted: run {plain(left['run_id'])} was cut off; {left['finished']} finished reports are kept, "
        f"unfinished: {lost}",
        err=True,
    )


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

    def interrupted(self, left: Mapping[str, Any]) -> None:
        """Say what was cut off, and what of it was kept."""
        _tell(_left(left))

    def _show(self, line: str) -> None:
        click.echo(f"\r\x1b[2K{line}" if self._terminal else line, err=True, nl=not self._terminal)
