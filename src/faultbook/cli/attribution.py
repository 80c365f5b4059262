"""`faultbook attribution`: score models against annotators, measure how far annotators agree, convert logs to CSV."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import click

from faultbook.cli.errors import one_line_errors
from faultbook.cli.records import print_problems, records
from faultbook.errors import FaultbookError

if TYPE_CHECKING:
    import pandas as pd

    from faultbook.attribution import Ceiling, LogTables, Scores

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

PATH = click.Path(exists=True, path_type=Path)


def _reading(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """The options of every command that reads logs."""
    options = [
        click.argument("paths", type=PATH, nargs=-1, required=True),
        click.option("--format", "kind", default="auto", show_default=True, help="What the files are; see the README."),
        click.option("--sources", type=PATH, help="A folder with the logs that MP-Bench's files only refer to."),
        click.option(
            "--anomalies",
            type=click.Choice(["flag", "drop", "fail"]),
            default="flag",
            show_default=True,
            help="What becomes of doubtful logs.",
        ),
        click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text."),
        click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the intervals."),
    ]
    for option in reversed(options):
        function = option(function)
    return function


@click.group()
def attribution() -> None:
    """Failing steps of multi-agent logs, judged against several annotators."""


@attribution.command()
@_reading
@click.option("--k", type=click.IntRange(1), default=5, show_default=True, help="How many places of a list count.")
@click.option("--relevance", type=click.Choice(["reverse_rank", "votes"]), default="reverse_rank", show_default=True)
@click.option("--gain", type=click.Choice(["exp", "linear"]), default="exp", show_default=True)
@click.option("--ties", type=click.Choice(["by_step", "expected"]), default="by_step", show_default=True)
@click.option("--baselines/--no-baselines", default=True, show_default=True, help="Show baselines beside the models.")
@click.option("--fail-under", type=click.FloatRange(0, 1), help="Exit with 1 if a model scores below this.")
@one_line_errors
def score(
    paths: tuple[Path, ...],
    kind: str,
    sources: Path | None,
    anomalies: str,
    as_json: bool,
    seed: int,
    k: int,
    relevance: Any,
    gain: Any,
    ties: Any,
    baselines: bool,
    fail_under: float | None,
) -> None:
    """Score models on PATHS: annotations and predictions, files or folders.

    Exits with 0 when done, 1 below --fail-under, 2 if the input cannot be used.
    """
    from faultbook import attribution as at

    tables, problems = _read(paths, kind, sources, anomalies)
    if tables.attempts.empty:
        raise FaultbookError(f"nothing to score: no prediction{_first(problems)}")
    if tables.annotations.empty:
        raise FaultbookError(f"nothing to score against: no annotation{_first(problems)}")
    measure = {"k": k, "relevance": relevance, "gain": gain, "ties": ties}
    models = list(dict.fromkeys(tables.attempts["model"]))
    predictions, attempts = tables.predictions, tables.attempts
    if baselines:
        predictions, attempts = at.with_baselines(predictions, attempts, tables.annotations, tables.logs, tables.steps)
    scores = at.score(predictions, attempts, tables.annotations, tables.logs, **measure, seed=seed)
    ceiling = None
    if _several(tables.annotations):
        ceiling = at.human_ceiling(
            tables.annotations, tables.predictions, tables.attempts, tables.logs, **measure, seed=seed
        )
    if as_json:
        agreement = at.agreement(tables.annotations, seed=seed)
        result = _result(scores, ceiling, agreement.pooled, tables, problems)
        click.echo(json.dumps(result, ensure_ascii=False))
    else:
        _print_scores(scores, ceiling, k)
        print_problems(problems)
    own = scores.models[scores.models["model"].isin(models)]
    worst = own[f"ndcg_at_{k}"].fillna(0.0).min()
    sys.exit(1 if fail_under is not None and worst < fail_under else 0)


@attribution.command()
@_reading
@one_line_errors
def agreement(
    paths: tuple[Path, ...], kind: str, sources: Path | None, anomalies: str, as_json: bool, seed: int
) -> None:
    """Measure how far the annotators of PATHS agree."""
    from faultbook import attribution as at

    tables, problems = _read(paths, kind, sources, anomalies)
    if tables.annotations.empty:
        raise FaultbookError(f"nothing to compare: no annotation{_first(problems)}")
    found = at.agreement(tables.annotations, seed=seed)
    consensus = at.consensus(tables.annotations, seed=seed)
    if as_json:
        parts = {"agreement": found.pooled, "shares": consensus.shares, "pairs": consensus.pairs}
        parts |= {"per_log": found.per_log, "anomalies": tables.anomalies, "problems": problems}
        click.echo(json.dumps({name: records(part) for name, part in parts.items()}, ensure_ascii=False))
        return
    for row in records(found.pooled):
        value = [] if row["value"] is None else [f"{row['value']:.3f}{_interval(row)}"]
        said = "; ".join([*value, *([row["note"]] if row["note"] else [])])
        click.echo(f"{row['statistic']}{' of ' + row['pair'] if row['pair'] else ''}: {said}")
    for row in records(consensus.shares):
        click.echo(f"flagged by {row['flagged_by']}: {100 * row['share']:.1f} % of {row['n_steps']} flagged steps")
    print_problems(problems)


@attribution.command()
@click.argument("source", type=PATH)
@click.argument("destination", type=click.Path(path_type=Path))
@click.option("--format", "kind", default="auto", show_default=True, help="What the files are; see the README.")
@click.option("--sources", type=PATH, help="A folder with the logs that MP-Bench's files only refer to.")
@one_line_errors
def convert(source: Path, destination: Path, kind: str, sources: Path | None) -> None:
    """Write the logs of SOURCE as tidy CSV into the folder DESTINATION."""
    from faultbook import attribution as at

    for path in at.write_logs(at.read_logs(source, kind, sources=sources), destination):
        click.echo(str(path))


def _read(paths: tuple[Path, ...], kind: str, sources: Path | None, anomalies: Any) -> tuple[LogTables, pd.DataFrame]:
    from faultbook import attribution as at

    return at.read_logs(paths, kind, strict=False, anomalies=anomalies, sources=sources)


def _several(annotations: pd.DataFrame) -> bool:
    """Whether some log has two annotators."""
    return bool((annotations.groupby("log_id")["annotator"].nunique() > 1).any())


def _result(
    scores: Scores, ceiling: Ceiling | None, agreement: pd.DataFrame, tables: LogTables, problems: pd.DataFrame
) -> dict[str, Any]:
    tried = tables.attempts.groupby(["model", "status"], sort=False).size().rename("n").reset_index()
    return {
        "measures": list(scores.measures),
        "models": records(scores.models),
        "by_split": records(scores.by_split),
        "by_length": records(scores.by_length),
        "ceiling": records(ceiling.table) if ceiling else [],
        "agreement": records(agreement),
        "attempts": records(tried),
        "anomalies": records(tables.anomalies),
        "problems": records(problems),
    }


def _first(problems: pd.DataFrame) -> str:
    found = list(problems["problem"][:3])
    return f" ({'; '.join(found)})" if found else ""


def _interval(row: dict[str, Any]) -> str:
    return "" if row["low"] is None else f" [{row['low']:.3f}, {row['high']:.3f}]"


def _print_scores(scores: Scores, ceiling: Ceiling | None, k: int) -> None:
    click.echo(scores.measures[0])
    for row in records(scores.models):
        if row[f"ndcg_at_{k}"] is None:
            value = "undefined (no flagged step)"
        else:
            value = f"{row[f'ndcg_at_{k}']:.3f}{_interval(row)}"
            for name in ("chance", "adjusted"):
                value += f", {name} unknown" if row[name] is None else f", {name} {row[name]:.3f}"
        gaps = [f"{row[f'n_{name}']} {name}" for name in ("abstained", "truncated", "unparsable", "missing")]
        counts = ", ".join([f"{row['n_logs']} logs", *(gap for gap in gaps if not gap.startswith("0 "))])
        click.echo(f"{row['model']}: {value}; {counts}")
    if ceiling is not None:
        click.echo("against the votes of the other annotators:")
        for row in records(ceiling.table):
            value = row[f"ndcg_at_{k}"]
            shown = "undefined" if value is None else f"{value:.3f}{_interval(row)}"
            click.echo(f"  {row['who']}, {row['samples']} sample{'s' * (row['samples'] == 'all')}: {shown}")
