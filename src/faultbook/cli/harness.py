"""`faultbook harness`: compare two harnesses on the same pairs, say why trials ended, and list the evidence."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from faultbook.cli.errors import one_line_errors
from faultbook.cli.records import errors_of, print_problems, records
from faultbook.errors import DataError, FaultbookError
from faultbook.text import plain

if TYPE_CHECKING:
    from faultbook.harness import Arms, Comparison, Usage

PATHS = click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="A B")
PLAN = click.option(
    "--plan", "planned", type=click.Path(path_type=Path), help="CSV with arm, task_id, attempt: what was to be run."
)
METRIC = click.option("--metric", help="Which of several rewards, scores or metrics is the verdict.")
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")


@click.group()
def harness() -> None:
    """Harnesses compared: the same pairs only, and nothing filled in."""


@harness.command()
@PATHS
@PLAN
@METRIC
@click.option("--arm", "arms", multiple=True, help="Of more than two arms, the ones to compare: give it twice.")
@click.option("--level", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.95, show_default=True)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the intervals of ratios.")
@JSON
@one_line_errors
def compare(
    paths: tuple[Path, ...],
    planned: Path | None,
    metric: str | None,
    arms: tuple[str, ...],
    level: float,
    seed: int,
    as_json: bool,
) -> None:
    """Compare the runs A and B, or the two arms of one file, on the pairs that are complete in both.

    Differences are those of the first arm less the second. What is missing is flagged before anything is compared.
    Exits with 0 when done, 2 if the input cannot be used or changed while it was read.
    """
    from faultbook import harness as hx

    if math.isnan(level):  # which no range keeps out
        raise FaultbookError("--level is nan; give a number between 0 and 1, such as 0.95")
    read = _read(paths, planned, metric)
    found = hx.compare(read.trials, read.plan, arms=arms or None, level=level)
    chosen = (found.arm_a, found.arm_b)
    used = hx.usage(read.trials, read.plan, arms=chosen, level=level, seed=seed)
    timed = hx.timing(read.trials, read.plan, arms=chosen)
    hx.check_files(read.files.manifest())
    problems = hx.problems_of(found, read.problems)
    if as_json:
        result = _as_json(found) | {
            "usage": {name: records(part) for name, part in _parts(used).items()},
            "timing": records(timed.arms),
            "problems": records(problems),
        }
        click.echo(json.dumps(_finite(result), ensure_ascii=False, allow_nan=False))
        return
    _print_comparison(found)
    _print_usage(used)
    print_problems(problems)


@harness.command()
@PATHS
@PLAN
@METRIC
@JSON
@one_line_errors
def causes(paths: tuple[Path, ...], planned: Path | None, metric: str | None, as_json: bool) -> None:
    """Count why the trials of A, B, … ended, by arm."""
    from faultbook import harness as hx

    read = _read(paths, planned, metric)
    table = hx.cause_table(read.trials, read.plan)
    hx.check_files(read.files.manifest())
    if as_json:
        result = {"causes": records(table), "problems": records(read.problems)}
        click.echo(json.dumps(result, ensure_ascii=False, allow_nan=False))
        return
    for row in records(table):
        state = row["state"].replace("_", " ")
        what = state if row["cause"] is None else f"{state}, {row['cause']} ({row['owner']})"
        resolved = f", of them resolved {row['resolved']}" if row["state"] == "finished" else ""
        inferred = f", {row['inferred']} inferred from texts" if row["inferred"] else ""
        click.echo(f"{_line(row['arm'])}: {what}: {row['trials']}{resolved}{inferred}")
    print_problems(read.problems)


@harness.command()
@PATHS
@JSON
@one_line_errors
def evidence(paths: tuple[Path, ...], as_json: bool) -> None:
    """List every file that is read for A, B, … with its SHA-256, what code ran, and whether a run still goes on."""
    from faultbook import harness as hx

    found = hx.evidence(paths)
    owners = hx.liveness_of(paths)
    found.check()
    if as_json:
        parts = {"files": found.files, "sources": found.sources, "liveness": owners}
        click.echo(
            json.dumps({name: records(part) for name, part in parts.items()}, ensure_ascii=False, allow_nan=False)
        )
        return
    for row in records(found.files):
        click.echo(f"{row['sha256']}  {row['bytes']:>12,}  {_line(row['path'], most=1000)}")
    for row in records(found.sources):
        click.echo(f"{_line(row['run'])}: {row['revision'] or 'no revision'}; {row['says']}")
    for row in records(owners):
        click.echo(f"{_line(row['run'])}: {row['state']}; {_line(row['reason'])}")


def _read(paths: tuple[Path, ...], planned: Path | None, metric: str | None) -> Arms:
    from faultbook.harness import read_arms

    read = read_arms(paths, planned=planned, metric=metric)
    named, there = (list(dict.fromkeys(table["arm"])) for table in (read.plan, read.trials))
    if planned is None or set(named) & set(there):
        return read
    unread = next(errors_of(read.problems), None)
    if unread is not None and not there:
        raise unread
    arms, others = (", ".join(f"'{arm}'" for arm in arms[:5]) or "no arm" for arms in (named, there))
    raise DataError(f"plans {arms}, but there are trials of {others}", file=planned, mend="name the arms alike")


def _line(value: object, *, most: int = 500) -> str:
    """A name as plain text in one line: a line break in it must not begin a line of ours."""
    return " ".join(plain(value, most=most).split())


def _parts(used: Usage) -> dict[str, Any]:
    return {"arms": used.arms, "paired": used.paired, "suspected": used.suspected}


def _as_json(found: Comparison) -> dict[str, Any]:
    names = ("arm_a", "arm_b", "pairs", "complete_pairs", "rate_a", "rate_b", "difference", "low", "high", "level")
    tests = ("method", "mcnemar_exact", "mcnemar_mid_p", "sign_flip", "test", "plan_source")
    lost = found.attrition
    nothing = dict.fromkeys(("both", "only_a", "only_b", "neither"))
    return {name: getattr(found, name) for name in (*names, *tests)} | {
        "table": found.table or nothing,
        "bounds": asdict(found.bounds),
        "attrition": {
            "arms": records(lost.arms),
            "lost_in_a": lost.lost_in_a,
            "lost_in_b": lost.lost_in_b,
            "p": lost.p,
            "test": lost.test,
            "flags": list(lost.flags),
        },
        "estimands": records(found.estimands),
        "denominators": records(found.denominators),
        "incomplete": records(found.pair_table.loc[~found.pair_table["complete"], ["task_id", "why"]]),
    }


def _finite(value: Any) -> Any:
    """NaN as null, since JSON has no other word for it."""
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _print_comparison(found: Comparison) -> None:
    a, b = _line(found.arm_a), _line(found.arm_b)
    for flag in found.attrition.flags:
        click.echo(f"FLAG: {_line(flag, most=1000)}")
    for row in records(found.attrition.arms):
        missing = row["planned"] - row["observed"]
        click.echo(
            f"{_line(row['arm'])}: {row['observed']} of {row['planned']} planned outcomes observed, {missing} not"
        )
    inferred = (
        " (inferred from the trials: tasks that no arm started are not in it)"
        if "inferred" in found.plan_source
        else ""
    )
    click.echo(f"plan: {found.plan_source}{inferred}; {found.complete_pairs} of {found.pairs} pairs are complete")
    if not found.complete_pairs:
        click.echo("nothing can be compared")
    else:
        if found.table:
            t = found.table
            click.echo(f"both {t['both']}, only {a} {t['only_a']}, only {b} {t['only_b']}, neither {t['neither']}")
        interval = "no interval" if math.isnan(found.low) else f"[{found.low:+.1f}, {found.high:+.1f}]"
        click.echo(
            f"{a} {found.rate_a:.1%}, {b} {found.rate_b:.1%}: difference {found.difference:+.1f} pp {interval} "
            f"({found.level:.0%}, {found.method})"
        )
        p = found.sign_flip if math.isnan(found.mcnemar_exact) else found.mcnemar_exact
        mid = "" if math.isnan(found.mcnemar_mid_p) else f"; mid-p {found.mcnemar_mid_p:.3g}"
        click.echo(f"{found.test}" if math.isnan(p) else f"{found.test}: p {p:.3g}{mid}")
    bounds = found.bounds
    turn = f"; could the rest turn it round? {bounds.could_turn}" if bounds.could_turn else ""
    if found.pairs:
        click.echo(f"over every completion of the plan: {bounds.low:+.1f} to {bounds.high:+.1f} pp{turn}")
    else:
        click.echo("no task is planned in both arms")
    for row in records(found.denominators):
        click.echo(f"{row['axis']}: known on both sides of {row['both']} of {row['pairs']} pairs")


def _print_usage(used: Usage) -> None:
    from faultbook.harness.usage import NO_COST_CLAIM

    shown = False
    for row in records(used.paired):
        if row["metered_pairs"] and row["ratio"] is not None:
            interval = "" if row["low"] is None else f" [{row['low']:.2f}, {row['high']:.2f}]"
            name = row["quantity"].replace("_", " ")
            click.echo(f"{name}: ratio {row['ratio']:.2f}{interval} over {row['metered_pairs']} metered pairs")
            shown = True
    if shown:
        click.echo(NO_COST_CLAIM)
    if len(used.suspected):
        click.echo(f"{len(used.suspected)} trials record zero tokens, which mostly means not metered; left out")
