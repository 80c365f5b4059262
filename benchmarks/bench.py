"""Our statistics and runner against peers, in one process and one run: what counts is the ratio, not the seconds.

make bench

At the end: what the records of a run cost, on a simulation of 1,000 episodes with and without them. The fast engine is
the tiny world of the tests, whose episode of 0.1 ms no real engine comes near: its percentages are a worst case. Where
the extra [alfworld] is installed (the environment of `make test-full`), ALFWorld's are measured as well.
"""

from __future__ import annotations

import importlib.util
import itertools
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pandas as pd
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar

from faultbook import harness
from faultbook.recovery.simulate.run import simulate
from faultbook.reports.execute import NotebookRun
from faultbook.reports.page import render
from faultbook.runtime import ledger
from faultbook.runtime.journal import Journal
from faultbook.runtime.ledger import Ledger
from faultbook.runtime.run import LEDGER, RUNS, Run
from faultbook.stats.bootstrap import cluster_bootstrap
from faultbook.stats.paired import mcnemar_exact
from faultbook.stats.paired_difference import bonett_price
from faultbook.stats.resampling import resampled_sum

EFFECTS = np.array([1] * 17 + [-1] * 10 + [0] * 66)  # 17 rescues and 10 harms of 93 tasks


def best_of(function: Callable[[], object], times: int) -> float:
    """Shortest time in seconds."""
    seconds = []
    for _ in range(times):
        begun = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - begun)
    return min(seconds)


def ours_bootstrap() -> object:
    return cluster_bootstrap(EFFECTS, np.arange(93), seed=1)


def scipy_bootstrap() -> object:
    return stats.bootstrap((EFFECTS,), np.mean, n_resamples=10_000, method="percentile", rng=np.random.default_rng(1))


def ours_exact() -> object:
    found = resampled_sum({1: 17, -1: 10}, 93)
    return found.quantile(0.025), found.quantile(0.975)


def small_notebook() -> nbformat.NotebookNode:
    metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    cells = [nbformat.v4.new_code_cell("a: int = 1", metadata={"tags": ["parameters"]}), nbformat.v4.new_code_cell("a")]
    return nbformat.v4.new_notebook(cells=cells, metadata=metadata)


def ours_report() -> None:
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        run = NotebookRun(small_notebook(), folder=here, building=here, environment={}, limit=60)
        render(run.execute({"a": 2}).notebook, "bench")


def command_line_report() -> None:
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder, "in.ipynb"), Path(folder, "out.ipynb")
        nbformat.write(small_notebook(), source)
        for tool, arguments in (
            ("papermill", ["--no-progress-bar", "-p", "a", "2", str(source), str(out)]),
            ("jupyter-nbconvert", ["--to", "html", str(out)]),
        ):
            command = [str(Path(sys.executable).with_name(tool)), *arguments]
            subprocess.run(command, check=True, capture_output=True, stdin=subprocess.DEVNULL)  # noqa: S603


def many_trials(folder: Path) -> Path:
    """50,000 trials, one attempt of two arms at each of 25,000 tasks; one in twenty has no end."""
    random, tasks = np.random.default_rng(1), [f"task-{number:05}" for number in range(25_000)]
    parts = []
    for arm, rate in (("a", 0.45), ("b", 0.5)):
        ended, tokens = random.random(len(tasks)) < 0.95, random.integers(1000, 10**6, len(tasks))
        part = pd.DataFrame(
            {"arm": arm, "task_id": tasks, "attempt": 1, "state": np.where(ended, "finished", "unfinished")}
        )
        solved = np.where(random.random(len(tasks)) < rate, "true", "false")
        parts.append(part.assign(resolved=np.where(ended, solved, ""), input_tokens=tokens, output_tokens=tokens // 40))
    file = folder / "trials.csv"
    pd.concat(parts).to_csv(file, index=False)
    return file


def ours_harness(file: Path) -> object:
    return harness.compare(harness.read_trials(file))


def by_hand_harness(file: Path) -> object:
    """What a script would do: complete pairs and a test, no plan, no check, no interval, no bounds, no attrition."""
    trials = pd.read_csv(file)
    ended = trials[trials["state"] == "finished"].set_index("task_id")
    sides = pd.concat({arm: ended.loc[ended["arm"] == arm, "resolved"] for arm in "ab"}, axis=1, join="inner")
    return mcnemar(pd.crosstab(sides["a"], sides["b"]), exact=True)


def ours_paired() -> object:
    return bonett_price(both=5, only_a=2, only_b=5, neither=9), mcnemar_exact(2, 5)


def statsmodels_paired() -> object:
    return mcnemar([[5, 2], [5, 9]], exact=True)


TASKS, EPISODES = 13, 80  # tasks, and episodes of each: 1,040


def plain_simulation(engine: Any, here: Path) -> None:
    simulate(engine, TASKS, 0, here / "a.parquet")


def recorded_simulation(engine: Any, here: Path, record: Callable[[Ledger, list[ledger.Event]], None] | None) -> None:
    """As `faultbook recovery simulate` does it; with `record` also a request for each episode in the ledger."""
    with Run.start(here, "simulate") as run, run.trial("scripted", "a.parquet") as trial:
        requests = Ledger(here / RUNS / LEDGER) if record is not None else None

        def note(index: int, feasible: bool) -> None:
            run.event("task_done", index=index, feasible=feasible)
            if record is not None and requests is not None:
                ids = [(run.run_id, trial.trial_id, 1, f"{index}-{number}") for number in range(EPISODES)]
                begun = (ledger.started(*one, model="scripted", operation="chat") for one in ids)
                ended = (ledger.completed(*one, usage=ledger.Usage(900, 50)) for one in ids)
                record(requests, list(itertools.chain.from_iterable(zip(begun, ended, strict=True))))

        simulate(engine, TASKS, 0, here / "a.parquet", on_task=note)
        run.artifact(here / "a.parquet")
        if requests is not None:
            requests.close()


def one_by_one(requests: Ledger, events: list[ledger.Event]) -> None:
    for event in events:
        requests.many([event])


KINDS_OF_RECORDS: dict[str, Callable[[Any, Path], None]] = {
    "without records": plain_simulation,
    "journal": partial(recorded_simulation, record=None),
    "journal; ledger, a transaction a task": partial(recorded_simulation, record=Ledger.many),
    "journal; ledger, a transaction an event": partial(recorded_simulation, record=one_by_one),
}


def seconds_in_a_folder(function: Callable[[Path], object]) -> float:
    with tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        function(Path(folder))
        return time.perf_counter() - begun


def overhead(engine: Any, name: str, times: int) -> None:
    """Each kind of records in turn, several times: what disturbs one disturbs all."""
    seconds: dict[str, list[float]] = {kind: [] for kind in KINDS_OF_RECORDS}
    seconds_in_a_folder(partial(plain_simulation, engine))  # what is loaded once is loaded now
    for _ in range(times):
        for kind, function in KINDS_OF_RECORDS.items():
            seconds[kind].append(seconds_in_a_folder(partial(function, engine)))
    without = min(seconds["without records"])
    print(f"\n{f'{TASKS * EPISODES:,} episodes, {name}':<52}{'seconds':>10}{'overhead':>11}")
    for kind, measured in seconds.items():
        print(f"  {kind:<50}{min(measured):>10.4f}{100 * (min(measured) / without - 1):>9.1f} %")


def costs() -> None:
    """Where the time goes: what is paid once a run, and what each record costs, the disk's part (fsync) included."""

    def run_of_nothing(here: Path) -> None:
        with Run.start(here, "nothing"):
            pass

    def thousand_records(here: Path) -> None:
        journal = Journal(here, "bench")
        for number in range(1000):
            journal.append("event", number=number)

    def thousand_events(here: Path) -> None:
        with Ledger(here / LEDGER) as requests:
            one_by_one(
                requests, [ledger.started("r", "t", 1, str(n), model="m", operation="chat") for n in range(1000)]
            )

    print(f"\n{'what records cost':<52}{'ms':>10}")
    parts = {"a run's start and end": (run_of_nothing, 1), "a record of the journal": (thousand_records, 1000)}
    parts["an event of the ledger, a transaction of its own"] = (thousand_events, 1000)
    for name, (function, number) in parts.items():
        print(f"  {name:<50}{1000 * min(seconds_in_a_folder(function) for _ in range(3)) / number:>10.3f}")


def fast_engine() -> Any:
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "recovery" / "simulate"))
    from tiny_world import TinyEngine

    return TinyEngine(noise=0.2)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        compare(many_trials(Path(folder)))
    overhead(fast_engine(), "tiny world (worst case)", 7)
    if all(importlib.util.find_spec(name) for name in ("alfworld", "fast_downward")):
        overhead("alfworld", "ALFWorld", 2)
    costs()


def compare(trials: Path) -> None:
    rows = [
        ("percentile bootstrap, 93 tasks × 10,000", ours_bootstrap, "scipy.stats.bootstrap", scipy_bootstrap, 5),
        ("exact bounds, 93 tasks", ours_exact, "scipy.stats.bootstrap (simulated)", scipy_bootstrap, 5),
        ("report of a small notebook", ours_report, "papermill and nbconvert commands", command_line_report, 3),
        (
            "harness: 50,000 trials read, compared",
            partial(ours_harness, trials),
            "pandas and statsmodels by hand",
            partial(by_hand_harness, trials),
            3,
        ),
        ("Bonett-Price and exact McNemar, 21 pairs", ours_paired, "statsmodels mcnemar alone", statsmodels_paired, 5),
    ]
    print(f"{'what':<42}{'ours':>10}   {'peer':<36}{'seconds':>10}{'ratio':>9}")
    for name, ours, peer, theirs, times in rows:
        ours_seconds, peer_seconds = best_of(ours, times), best_of(theirs, times)
        ratio = peer_seconds / ours_seconds
        print(f"{name:<42}{ours_seconds:>10.5f}   {peer:<36}{peer_seconds:>10.5f}{ratio:>8.3g}×")


if __name__ == "__main__":
    main()
