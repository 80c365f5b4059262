"""`faultbook diagnosis`: score root-cause lists, check truths, look for leaks, convert truths to tidy CSV."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from faultbook.cli.errors import one_line_errors
from faultbook.cli.records import joined, records
from faultbook.errors import FaultbookError

if TYPE_CHECKING:
    import pandas as pd

PATH = click.Path(exists=True, path_type=Path)


@click.group()
def diagnosis() -> None:
    """Root causes of incidents: precision, but only at full recall."""


@diagnosis.command()
@click.option("--truth", type=PATH, required=True, help="Ground truth: a file or a folder.")
@click.option("--submissions", type=PATH, required=True, help="Submissions: a file or a folder.")
@click.option("--policy", default="itbench-aa", show_default=True, help="How entities are matched and counted.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
@click.option("--fail-under", type=click.FloatRange(0, 1), help="Exit with 1 if a model scores below this.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the intervals.")
@one_line_errors
def score(truth: Path, submissions: Path, policy: str, as_json: bool, fail_under: float | None, seed: int) -> None:
    """Score submissions. Exits with 0 when done, 1 below --fail-under, 2 if the input cannot be used."""
    from faultbook import diagnosis as dx
    from faultbook.diagnosis.policy import get_policy

    chosen = get_policy(policy)
    known, problems = dx.read_truth(truth, strict=False)
    tables, more = dx.read_submissions(submissions, strict=False)
    if known.incidents.empty or tables.runs.empty:
        found = [*problems["problem"], *more["problem"]]
        raise FaultbookError(f"nothing to score: {'; '.join(found[:3]) or 'no incident or no run'}")
    scores = dx.score(tables.submissions, tables.runs, known, chosen)
    summary = dx.summarize(scores, seed=seed)
    errors = dx.error_types(tables.submissions, tables.runs, known, chosen)
    located = records(joined(problems, more))
    if as_json:
        click.echo(json.dumps(_result(chosen.name, scores, summary, errors, located), ensure_ascii=False))
    else:
        _print_summary(summary)
        for problem in located:
            click.echo(f"  {problem['file']}: {problem['problem']}", err=True)
    worst = summary["score"].fillna(0.0).min()
    sys.exit(1 if fail_under is not None and worst < fail_under else 0)


@diagnosis.command()
@click.option("--truth", type=PATH, required=True, help="Ground truth: a file or a folder.")
@click.option("--against", type=PATH, help="Another version of the same truth.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
@one_line_errors
def lint(truth: Path, against: Path | None, as_json: bool) -> None:
    """List what is wrong or doubtful in a ground truth."""
    from faultbook import diagnosis as dx

    known, problems = dx.read_truth(truth, strict=False)
    other = dx.read_truth(against, strict=False)[0] if against else None
    found = dx.lint(known, other)
    if as_json:
        click.echo(json.dumps({"hazards": records(found), "problems": records(problems)}, ensure_ascii=False))
        return
    for row in found.to_dict("records"):
        place = f"{row['found']} ({row['place']})"
        click.echo(f"{row['severity']:<8} {row['incident_id']}  {row['check']}: {place}; {row['repair']}")
    for problem in problems.to_dict("records"):
        click.echo(f"unread   {problem['file']}: {problem['problem']}")


@diagnosis.command()
@click.option("--truth", type=PATH, help="Ground truth, to know its own ids.")
@click.option("--submissions", type=PATH, help="Submissions that may carry such ids.")
@click.option("--evidence", type=PATH, help="A folder given to agents.")
@click.option("--transcripts", type=PATH, help="A transcript, or a folder of them.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
@one_line_errors
def leaks(
    truth: Path | None, submissions: Path | None, evidence: Path | None, transcripts: Path | None, as_json: bool
) -> None:
    """Look for answers that reached an agent. Exits with 1 if there are signs."""
    from faultbook import diagnosis as dx

    if (truth is None) != (submissions is None):
        raise FaultbookError("--truth and --submissions go together")
    if truth is None and evidence is None and transcripts is None:
        raise FaultbookError("nothing to look at; give --truth and --submissions, --evidence, or --transcripts")
    known = dx.read_truth(truth, strict=False)[0] if truth else None
    named = dx.read_submissions(submissions, strict=False)[0].submissions if submissions else None
    found = dx.leaks(named, known, evidence=evidence, transcripts=transcripts)
    if as_json:
        click.echo(json.dumps({"leaks": records(found)}, ensure_ascii=False))
    else:
        for row in found.to_dict("records"):
            click.echo(f"{row['kind']}: {row['found']} ({row['place']}); {row['advice']}")
    sys.exit(1 if len(found) else 0)


@diagnosis.command()
@click.argument("source", type=PATH)
@click.argument("destination", type=click.Path(path_type=Path))
@one_line_errors
def convert(source: Path, destination: Path) -> None:
    """Write the ground truths of SOURCE as tidy CSV into the folder DESTINATION."""
    from faultbook import diagnosis as dx

    truth = dx.read_truth(source)
    for path in dx.write_truth(truth, destination):
        click.echo(str(path))


def _result(
    policy: str, scores: pd.DataFrame, summary: pd.DataFrame, errors: pd.DataFrame, problems: list[dict[str, Any]]
) -> dict[str, Any]:
    names = [
        *("model", "score", "low", "high", "full_recall_rate", "precision_given_full_recall"),
        *("omission_loss", "over_diagnosis_loss", "n_incidents", "n_runs"),
    ]
    runs = records(scores[["model", "incident_id", "repeat", "status", "tp", "fp", "score"]])
    by_run: dict[tuple[str, str, int], list[dict[str, Any]]] = {}
    for error in records(errors):
        key = (error["model"], error["incident_id"], error["repeat"])
        by_run.setdefault(key, []).append({name: error[name] for name in ("error", "label", "entity", "cause_set")})
    for run in runs:
        run["errors"] = by_run.get((run["model"], run["incident_id"], run["repeat"]), [])
    return {"policy": policy, "models": records(summary[names]), "runs": runs, "problems": problems}


def _print_summary(summary: pd.DataFrame) -> None:
    for row in summary.to_dict("records"):
        interval = "" if row["low"] != row["low"] else f" [{row['low']:.3f}, {row['high']:.3f}]"  # NaN is not itself
        losses = f"lost to omission {row['omission_loss']:.3f}, to over-diagnosis {row['over_diagnosis_loss']:.3f}"
        counts = f"{row['n_incidents']} incidents, {row['n_runs']} runs, {row['n_unscored']} unscored"
        click.echo(f"{row['model']}: {row['score']:.3f}{interval} ({row['policy']}); {losses}; {counts}")
