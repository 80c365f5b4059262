"""Whether a run still goes on: who owns it (`faultbook.ownership`), as tables."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import pandas as pd

from faultbook.harness.read import Paths, runs
from faultbook.ownership import Ownership, ownership
from faultbook.processes import PROC

_TYPES = {
    **dict.fromkeys(("run", "state", "reason", "run_id", "heartbeat_at"), "string"),
    **dict.fromkeys(("ended", "same_boot", "same_namespace", "process_exists", "heartbeat_is_old"), "boolean"),
    **dict.fromkeys(("pid", "start_ticks", "found_start_ticks"), "Int64"),
    "heartbeat_age_seconds": "Float64",
}


@dataclass(frozen=True, slots=True)
class Liveness(Ownership):
    """Whether a process that runs a run is there, and what that rests on; the attributes of `Ownership`."""

    def summary_frame(self) -> pd.DataFrame:
        """One row with all of it."""
        return pd.DataFrame([asdict(self)]).astype(_TYPES)


def liveness(run: str | Path, *, proc: Path = PROC, monotonic: Callable[[], float] = time.monotonic) -> Liveness:
    """Find out whether a run still goes on.

    Parameters
    ----------
    run : path
        A run's folder, or a file of a run.
    proc : path
        Where the process file system is mounted.
    monotonic : callable
        The system's monotonic clock, in seconds.

    Returns
    -------
    Liveness
        "indeterminate, no owner record" for formats that hold none, whatever a state file says.

    Raises
    ------
    DataError
        If there is no such path.
    """
    return Liveness(**asdict(ownership(run, proc=proc, monotonic=monotonic)))


def liveness_of(path: Paths, format: str = "auto", *, proc: Path = PROC) -> pd.DataFrame:  # noqa: A002  # as there
    """Find out of each run at some paths whether it still goes on.

    Parameters
    ----------
    path : path or sequence of paths
        As for `faultbook.harness.read_trials`.
    format : str
        As there.
    proc : path
        Where the process file system is mounted.

    Returns
    -------
    DataFrame
        One row a run, with the attributes of `Liveness`.

    Raises
    ------
    DataError
        If nothing is there or its format is not known.
    """
    return pd.DataFrame([asdict(liveness(run, proc=proc)) for run, _ in runs(path, format)]).astype(_TYPES)
