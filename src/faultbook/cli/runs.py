"""`faultbook runs`: our own runs, told by evidence: who owns them, what became of them, what is missing."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from faultbook.cli.errors import one_line_errors
from faultbook.errors import DataError, FaultbookError
from faultbook.paths import project_folder
from faultbook.text import plain
from faultbook.values import amount

PLACES = click.option(
    "--in",
    "places",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Folder of results whose runs are meant; may be given again. Default: the project's reports/ and this folder.",
)
RUN = click.argument("run", metavar="RUN")
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")


@click.group()
def runs() -> None:
    """Runs of reports and simulations: state by evidence, causes, time, requests, what is missing."""


@runs.command("list")
@PLACES
@JSON
@one_line_errors
def list_runs(places: tuple[Path, ...], as_json: bool) -> None:
    """List runs, the oldest first. A run whose owner is gone is dead, whatever it once said of itself."""
    found, problems = [], []
    for folder in _folders(places):
        try:
            found.append(_described(folder))
        except DataError as error:
            problems.append({"run_id": folder.name, "problem": str(error)})
    if as_json:
        _print_json({"runs": found, "problems": problems})
        return
    for run in found:
        click.echo(_line(run))
    for problem in problems:
        click.echo(f"{_shown(problem['run_id'])}: {_shown(problem['problem'])}", err=True)
    if not found and not problems:
        click.echo("no runs here")


@runs.command()
@RUN
@PLACES
@JSON
@one_line_errors
def show(run: str, places: tuple[Path, ...], as_json: bool) -> None:
    """Show all that is on record of RUN: an id, the beginning of one, or the folder of a run."""
    found = _described(_folder(run, places))
    if as_json:
        _print_json(found)
        return
    click.echo(_line(found))
    click.echo(f"  {_shown(found['reason'])}")
    trials = found["trials"]
    planned = "" if trials["planned"] is None else f" of {trials['planned']} planned"
    click.echo(f"  trials: {trials['started']} started{planned}, {trials['finished']} finished")
    for cause, number in trials["causes"].items():
        click.echo(f"    {_shown(cause)}: {number}")
    for task in trials["unfinished"]:
        click.echo(f"    unfinished: {_shown(task)}")
    _show_time(found["time"])
    requests = found["requests"]
    if requests is not None:
        click.echo(f"  requests: {requests['metered']} metered, {requests['unmetered']} not")
    artifacts = found["artifacts"]
    click.echo(f"  files recorded: {artifacts['recorded']}, missing or altered: {len(artifacts['missing'])}")
    for name in artifacts["missing"]:
        click.echo(f"    {_shown(name)}")
    evidence = found["evidence"]
    whole = "whole" if evidence["complete"] else f"incomplete ({_shown(evidence['reason'] or 'see verify')})"
    click.echo(f"  records: {whole}")


@runs.command()
@RUN
@PLACES
@JSON
@one_line_errors
def verify(run: str, places: tuple[Path, ...], as_json: bool) -> None:
    """Hold the records of RUN against themselves, and its files against their digests; exits with 1 on any fault."""
    from faultbook.runtime.runs import check

    folder = _folder(run, places)
    findings = check(folder)
    if as_json:
        _print_json({"run_id": folder.name, "findings": findings})
    for finding in () if as_json else findings:
        where = "" if finding["line"] is None else f"line {finding['line']}: "
        detail = f" ({_shown(finding['detail'])})" if finding["detail"] else ""
        click.echo(f"{where}{finding['meaning']}{detail}")
    if not findings and not as_json:
        click.echo("nothing is wrong with its records")
    sys.exit(1 if findings else 0)


@runs.command()
@RUN
@PLACES
@JSON
@click.pass_context
@one_line_errors
def resume(ctx: click.Context, run: str, places: tuple[Path, ...], as_json: bool) -> None:
    """Go on from RUN, whose owner is gone, with a run of its own: what it had started is a new attempt there.

    With --json the command that goes on prints its result so, if it can.
    """
    from faultbook.runtime.runs import close_abandoned, command_of

    folder = _folder(run, places)
    root = ctx.find_root()
    command = command_of(folder)
    if as_json:
        command = _with_json(root.command, command)
    close_abandoned(folder, to_go_on=True)
    click.echo(
        f"{_shown(folder.name)} is closed; going on: faultbook {' '.join(_shown(part) for part in command)}", err=True
    )
    root.command.main(command, prog_name="faultbook", obj={"resumes": folder})


def _with_json(command: click.Command, arguments: list[str]) -> list[str]:
    """Arguments that ask for JSON too, where the command that they are for can print it."""
    place = 0
    while isinstance(command, click.Group) and place < len(arguments) and arguments[place] in command.commands:
        command, place = command.commands[arguments[place]], place + 1
    if not any("--json" in option.opts for option in command.params):
        raise FaultbookError(f"'{' '.join(arguments[:place])}', which goes on, prints no JSON; leave --json out")
    return [*arguments[:place], "--json", *arguments[place:]]


def _shown(value: object) -> str:
    """Foreign text on a line: it cannot make a line of its own."""
    return " ".join(plain(value).split())


def _print_json(document: Any) -> None:
    """One object; half a surrogate pair, from the name of a folder, is escaped as JSON has it."""
    click.echo(json.dumps(document, ensure_ascii=False).encode("utf-8", "backslashreplace").decode())


def _folders(places: tuple[Path, ...]) -> list[Path]:
    from faultbook.runtime.runs import runs_in

    for place in places:
        if not place.is_dir():
            raise FaultbookError(f"--in {place}: no such folder")
    return runs_in(places or _usual())


def _folder(run: str, places: tuple[Path, ...]) -> Path:
    from faultbook.runtime.runs import find_run

    return find_run(run, places or _usual())


def _usual() -> tuple[Path, ...]:
    try:
        return project_folder() / "reports", Path()
    except FaultbookError:
        return (Path(),)


def _described(folder: Path) -> dict[str, Any]:
    from faultbook.runtime.runs import describe

    return describe(folder)


def _line(run: dict[str, Any]) -> str:
    seconds = "" if run["seconds"] is None else f"  {run['seconds']:.1f} s"
    cause = "" if run["cause"] is None else f"  {_shown(run['cause'])}"
    started = _shown(run["started"] or "no start on record")
    return f"{run['state']:<13} {_shown(run['run_id'])}  {_shown(run['kind'] or '?')}  {started}{seconds}{cause}"


def _show_time(time: Any) -> None:
    if not isinstance(time, dict) or not isinstance(time.get("seconds"), dict):
        return
    for name, seconds in {**time["seconds"], "unexplained": time.get("unexplained")}.items():
        if amount(seconds) is not None:
            click.echo(f"  {_shown(name)}: {seconds:.3f} s")
