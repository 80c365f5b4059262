"""Our statistics and runner against peers, in one process and one run: what counts is the ratio, not the seconds.

make bench
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import nbformat
import numpy as np
import pandas as pd
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar

from faultbook import harness
from faultbook.reports.execute import NotebookRun
from faultbook.reports.page import render
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


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        compare(many_trials(Path(folder)))


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
