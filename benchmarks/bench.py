"""Our statistics and runner against peers, in one process and one run: what counts is the ratio, not the seconds.

make bench
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import nbformat
import numpy as np
from scipy import stats

from faultbook.reports.execute import NotebookRun
from faultbook.reports.page import render
from faultbook.stats.bootstrap import cluster_bootstrap
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


def main() -> None:
    rows = [
        ("percentile bootstrap, 93 tasks × 10,000", ours_bootstrap, "scipy.stats.bootstrap", scipy_bootstrap, 5),
        ("exact bounds, 93 tasks", ours_exact, "scipy.stats.bootstrap (simulated)", scipy_bootstrap, 5),
        ("report of a small notebook", ours_report, "papermill and nbconvert commands", command_line_report, 3),
    ]
    print(f"{'what':<42}{'ours':>10}   {'peer':<36}{'seconds':>10}{'ratio':>9}")
    for name, ours, peer, theirs, times in rows:
        ours_seconds, peer_seconds = best_of(ours, times), best_of(theirs, times)
        ratio = peer_seconds / ours_seconds
        print(f"{name:<42}{ours_seconds:>10.4f}   {peer:<36}{peer_seconds:>10.4f}{ratio:>8.1f}×")


if __name__ == "__main__":
    main()
