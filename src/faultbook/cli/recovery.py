"""`faultbook recovery`: simulate paired branches, measure effects, fit and calibrate the rule, judge policies."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from faultbook.cli.errors import one_line_errors
from faultbook.cli.records import errors_of, joined, print_problems, records
from faultbook.errors import FaultbookError
from faultbook.text import plain

if TYPE_CHECKING:
    import pandas as pd

    from faultbook.recovery.policies import Policy
    from faultbook.runtime.run import Run

FILE = click.Path(exists=True, path_type=Path)
OUT = click.Path(path_type=Path)
SEED = click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of draws and intervals.")
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
COHORT = click.option("--cohort", help="Only episodes of this cohort.")
ACTION = click.option("--action", default="refresh", show_default=True, help="The action that the rule may take.")


@click.group()
def recovery() -> None:
    """Recovery of agents: rescues and harms on paired branches, and when to intervene."""


@recovery.command()
@click.option("--engine", type=click.Choice(["alfworld", "textworld"]), required=True, help="Which engine's tasks.")
@click.option("--tasks", type=click.IntRange(1), default=168, show_default=True, help="Tasks that reach the fork.")
@click.option("--fit-tasks", type=click.IntRange(0), help="How many of them are for fitting; by default 93 of 168.")
@click.option("--noise", type=click.FloatRange(0, 1), default=0.0, show_default=True, help="Of the scripted agent.")
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="Tasks at a time.")
@click.option("--out", type=OUT, required=True, help="The parquet file; run again after an interrupt to go on.")
@SEED
@one_line_errors
def simulate(engine: str, tasks: int, fit_tasks: int | None, noise: float, jobs: int, out: Path, seed: int) -> None:
    """Run a scripted agent on a real engine, from every fork with and without recovery."""
    from faultbook.recovery.simulate.run import simulate as run
    from faultbook.runtime.prompts import ending_on_signals

    with (
        ending_on_signals(),
        click.progressbar(length=tasks, label=f"{engine}, scripted agent", file=sys.stderr) as bar,
    ):

        def show(done: int, wanted: int) -> None:
            bar.update(done - bar.pos)

        with _owned(out, engine, tasks, fit_tasks, noise, jobs, seed) as owned, owned.trial("scripted", out.name):

            def note(index: int, feasible: bool) -> None:
                owned.event("task_done", index=index, feasible=feasible)

            made = run(engine, tasks, seed, out, n_fit=fit_tasks, noise=noise, jobs=jobs, progress=show, on_task=note)
            owned.artifact(made.out)
    click.echo(str(made.out))


def _owned(out: Path, engine: str, tasks: int, fit_tasks: int | None, noise: float, jobs: int, seed: int) -> Run:
    """A run of its own for a simulation: killed, it is dead on record, and resumed it goes on with what is there."""
    from faultbook.runtime.run import Run

    command = ["recovery", "simulate", "--engine", engine, "--tasks", str(tasks), "--noise", repr(noise)]
    command += ["--jobs", str(jobs), "--seed", str(seed), "--out", str(out.resolve())]
    command += [] if fit_tasks is None else ["--fit-tasks", str(fit_tasks)]
    plan = [{"arm": "scripted", "task_id": out.name, "attempt": 1}]
    resumes = (click.get_current_context().find_root().obj or {}).get("resumes")
    return Run.start(out.resolve().parent, "simulate", plan=plan, command=command, resumes=resumes)


@recovery.command()
@click.option("--engine", type=click.Choice(["alfworld", "textworld"]), required=True, help="Which engine's tasks.")
@click.option("--tasks", type=click.IntRange(1), default=24, show_default=True, help="Tasks that reach the fork.")
@click.option("--condition", default="stale2", show_default=True, help="What the agent is shown at the fork.")
@click.option("--delay", type=click.IntRange(0), default=0, show_default=True, help="Actions from there to the arms'.")
@click.option("--arms", default="none,refresh", show_default=True, help="An action at the fork for each arm.")
@click.option("--noise", type=click.FloatRange(0, 1), default=0.0, show_default=True, help="Of the scripted agent.")
@click.option("--stop-after", type=click.IntRange(0), help="Stop after so many trials, in the middle of the next one.")
@click.option("--stop-after-seconds", type=click.FloatRange(0), help="Stop then, wherever that is.")
@click.option("--out", type=OUT, required=True, help="The folder for the two CSV files.")
@SEED
@one_line_errors
def trials(
    engine: str,
    tasks: int,
    condition: str,
    delay: int,
    arms: str,
    noise: float,
    stop_after: int | None,
    stop_after_seconds: float | None,
    out: Path,
    seed: int,
) -> None:
    """Record a run of the scripted agent with and without recovery, trial by trial, that may be cut short on purpose.

    Writes the plan and the trials, for `faultbook harness compare`.
    """
    from faultbook.recovery.simulate.trials import record_trials

    actions = tuple(arm.strip() for arm in arms.split(","))
    with click.progressbar(length=tasks * len(actions), label=f"{engine}, scripted agent", file=sys.stderr) as bar:
        made = record_trials(
            engine,
            tasks,
            seed,
            out,
            condition=condition,
            delay=delay,
            actions=actions,
            noise=noise,
            stop_after=stop_after,
            stop_after_seconds=stop_after_seconds,
            progress=lambda done, wanted: bar.update(done - bar.pos),
        )
    click.echo(str(made.trials))
    click.echo(str(made.plan))
    click.echo(f"{made.n_finished} of {made.n_planned} trials finished, {made.n_unfinished} unfinished", err=True)


@recovery.command()
@click.argument("file", type=FILE)
@click.option("--by-cohort", is_flag=True, help="Tasks that succeed undisturbed, and all tasks, side by side.")
@COHORT
@JSON
@SEED
@one_line_errors
def effects(file: Path, by_cohort: bool, cohort: str | None, as_json: bool, seed: int) -> None:
    """Count rescues and harms of FILE by condition, delay and action.

    Exits with 0 when done, 2 if the input cannot be used.
    """
    from faultbook import recovery as rx

    episodes, problems = _episodes(file, cohort)
    pairs, refused = rx.pair(episodes, strict=False)
    problems = joined(problems, refused)
    if pairs.empty:
        _raise_first(problems)
        raise FaultbookError(f"no pair in {file}: an action needs a branch with the action 'none' beside it")
    found = rx.by_cohort(pairs, seed=seed) if by_cohort else rx.effects(pairs, seed=seed)
    control = rx.flip_rate(episodes, seed=seed)
    if as_json:
        lost = rx.unpaired(episodes)
        parts = {"effects": found, "control": control, "unpaired": lost, "problems": problems}
        click.echo(json.dumps({name: records(part) for name, part in parts.items()}, ensure_ascii=False))
        return
    for row in records(found):
        interval = "" if row["low"] is None else f" [{row['low']:+.1f}, {row['high']:+.1f}]"
        tasks = f", {row['tasks']}" if by_cohort else ""
        p = row["test"] if row["mcnemar_exact"] is None else f"exact McNemar p {row['mcnemar_exact']:.2g}"
        cell = f"{plain(row['condition'])}, delay {row['delay']}, {plain(row['action'])}{tasks}"
        click.echo(
            f"{cell}: {row['rescues']} rescues, {row['harms']} harms of {row['n_tasks']} tasks, "
            f"{row['effect_pp']:+.1f} pp{interval}; {p}"
        )
    flips = int(control["flips"].sum()) if len(control) else None
    click.echo(
        "no A/A control" if flips is None else f"A/A control: {flips} flips in {int(control['n'].sum())} repeats"
    )
    print_problems(problems)


@recovery.command()
@click.argument("file", type=FILE)
@click.option("--out", type=OUT, required=True, help="The JSON file of the models.")
@click.option(
    "--C", "c", type=click.FloatRange(0, min_open=True), default=0.1, show_default=True, help="Of the penalty."
)
@click.option("--penalty", type=click.Choice(["l2", "firth"]), default="l2", show_default=True)
@ACTION
@COHORT
@JSON
@SEED
@one_line_errors
def fit(
    file: Path, out: Path, c: float, penalty: Any, action: str, cohort: str | None, as_json: bool, seed: int
) -> None:
    """Fit the models of error and success to the episodes of FILE, and save them."""
    from faultbook import recovery as rx

    moments = rx.candidates(_strictly(file, cohort), action)
    models = rx.fit(moments, C=c, penalty=penalty, seed=seed)
    rx.save_model(models, out)
    parts = {
        "brier": rx.brier(models, moments, seed=seed),
        "calibration": rx.calibration(models, moments),
        "separation": rx.separation(moments, models.features),
        "notes": models.notes,
    }
    if as_json:
        result: dict[str, Any] = {name: records(part) for name, part in parts.items()}
        click.echo(json.dumps({"model": str(out), **result}, ensure_ascii=False))
        return
    for row in records(parts["brier"]):
        click.echo(f"{row['model']}: Brier {row['brier']:.3f}, of the base rate {row['brier_of_base_rate']:.3f}")
    for row in records(models.notes):
        click.echo(f"  {row['model']}: {row['what']} ({row['reason']})")
    click.echo(str(out))


@recovery.command()
@click.argument("file", type=FILE)
@click.option("--failure-probability", type=click.Choice(["complement_of_p0"]), required=True, help="Of p0; say it.")
@click.option("--harm-limit", type=click.FloatRange(0, 1, max_open=True), default=0.02, show_default=True)
@click.option("--harm-penalty", type=click.FloatRange(0), default=2.0, show_default=True, help="Weight of a harm.")
@click.option("--penalty", type=click.Choice(["l2", "firth"]), default="l2", show_default=True)
@click.option(
    "--C", "c", type=click.FloatRange(0, min_open=True), default=0.1, show_default=True, help="Of the penalty."
)
@click.option("--out", type=OUT, help="The JSON file of the rule.")
@ACTION
@COHORT
@JSON
@SEED
@one_line_errors
def calibrate(
    file: Path,
    failure_probability: Any,
    harm_limit: float,
    harm_penalty: float,
    penalty: Any,
    c: float,
    out: Path | None,
    action: str,
    cohort: str | None,
    as_json: bool,
    seed: int,
) -> None:
    """Choose the rule's thresholds on out-of-fold predictions for the episodes of FILE."""
    from faultbook import recovery as rx

    moments = rx.candidates(_strictly(file, cohort), action)
    models = rx.fit(moments, C=c, penalty=penalty, seed=seed)
    chosen = rx.calibrate(
        moments,
        models.out_of_fold,
        harm_limit=harm_limit,
        harm_penalty=harm_penalty,
        failure_probability=failure_probability,
        seed=seed,
    )
    if out is not None:
        rx.save_rule(chosen.rule, out)
    if as_json:
        parts = {"summary": chosen.summary_frame(), "stability": chosen.stability, "frontier": chosen.frontier()}
        parts["reachable"] = rx.reachable(chosen.rule, models, moments)
        click.echo(json.dumps({name: records(part) for name, part in parts.items()}, ensure_ascii=False))
        return
    rule = chosen.rule
    click.echo(
        f"error ≥ {rule.error_threshold:.4g}, failure ≥ {rule.failure_threshold:.4g}, "
        f"utility > {rule.utility_threshold:.4g}, delay ≥ {rule.min_delay}"
    )
    click.echo(chosen.sentence)
    if out is not None:
        click.echo(str(out))


@recovery.command()
@click.argument("file", type=FILE)
@click.option("--model", type=FILE, required=True, help="Models from `fit`.")
@click.option("--rule", type=FILE, required=True, help="A rule from `calibrate --out`.")
@ACTION
@COHORT
@JSON
@SEED
@one_line_errors
def evaluate(file: Path, model: Path, rule: Path, action: str, cohort: str | None, as_json: bool, seed: int) -> None:
    """Judge the rule on the episodes of FILE, beside never, always and the oracle."""
    from faultbook import recovery as rx

    moments = rx.candidates(_strictly(file, cohort), action)
    models, known = rx.load_model(model), rx.load_rule(rule)
    policies: list[Policy] = [rx.Never(), *(rx.AlwaysAt(int(delay)) for delay in sorted(moments["delay"].unique()))]
    policies += [rx.RulePolicy(known), rx.Oracle()]
    found = rx.evaluate(policies, moments, models.predict(moments), seed=seed)
    gates = rx.reachable(known, models, moments)
    if as_json:
        parts = {"table": found.table, "differences": found.differences, "flip_penalty": found.flip_penalty}
        parts["reachable"] = gates
        click.echo(json.dumps({name: records(part) for name, part in parts.items()}, ensure_ascii=False))
        return
    for row in records(found.summary_frame()):
        interval = "" if row["low_pp"] is None else f" [{row['low_pp']:+.2f}, {row['high_pp']:+.2f}]"
        click.echo(
            f"{row['policy']}: {row['policy_effect_pp']:+.2f} pp{interval}, {row['rescues']:g} rescues, "
            f"{row['harms']:g} harms ({row['clean_harms']:g} clean), {row['interventions']:g} interventions "
            f"in {row['n_trajectories']} runs"
        )
    for row in records(gates):
        if not row["reachable"]:
            click.echo(f"  gate {row['gate']}: {row['note']}", err=True)


def _episodes(file: Path, cohort: str | None) -> tuple[pd.DataFrame, pd.DataFrame]:
    """What can be read of a file, and its problems."""
    from faultbook import recovery as rx

    episodes, problems = rx.read_episodes(file, strict=False)
    if episodes.empty:
        _raise_first(problems)
    return _of_cohort(episodes, cohort), problems


def _raise_first(problems: pd.DataFrame) -> None:
    """Raise the first problem, if there is one."""
    if len(problems):
        raise next(errors_of(problems))


def _strictly(file: Path, cohort: str | None) -> pd.DataFrame:
    from faultbook import recovery as rx

    return _of_cohort(rx.read_episodes(file), cohort)


def _of_cohort(episodes: pd.DataFrame, cohort: str | None) -> pd.DataFrame:
    if cohort is None:
        return episodes
    kept = episodes[episodes["cohort"] == cohort]
    if kept.empty:
        known = ", ".join(sorted(episodes["cohort"].dropna().unique())) or "none"
        raise FaultbookError(f"no episode of cohort '{cohort}'; cohorts here: {known}")
    return kept.reset_index(drop=True)
