"""Episodes on their way to one file: a part for each finished task, so that nothing is done twice.

Beside the file `OUT` to be written stands a folder `OUT.parts` with the settings, a part for each task that is
finished, and a lock that a run holds. Each file in it is written under another name and then renamed, so that it is
whole or not there, whenever the run is killed. At the end the parts are joined to `OUT` in the order of the tasks'
numbers, and the folder goes. `OUT` itself holds the settings too: a run that finds them there has nothing left to do.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from filelock import FileLock, Timeout

from faultbook.errors import DataError, FaultbookError, short_repr, unreadable
from faultbook.recovery.simulate.branches import COLUMNS, TaskEpisodes
from faultbook.recovery.simulate.features import FEATURES

SUFFIX = ".parts"
_SETTINGS, _LOCK = "settings.json", "lock"
_METADATA = b"faultbook.simulate"  # key in the parquet file
_TASKS_A_GROUP = 100  # rows of a hundred tasks are in memory at a time
_OTHER = "choose another output, or remove what is there"

Settings = dict[str, Any]

_TYPES = {"delay": pa.int64(), "replicate": pa.int64(), "n_actions": pa.int64()} | dict.fromkeys(
    ("success", "factual_success", "ended_before"), pa.bool_()
)
_SCHEMA = pa.schema([(name, _TYPES.get(name, pa.float64() if name in FEATURES else pa.string())) for name in COLUMNS])


class Parts:
    """The folder of parts for an output file.

    Parameters
    ----------
    out : path
        The parquet file to be written.
    settings : dict
        Everything that decides its content; JSON values.
    """

    def __init__(self, out: Path, settings: Settings) -> None:
        self.out, self.settings = out, settings
        self.folder = out.with_name(out.name + SUFFIX)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Make the folder and hold its lock, so that no other run writes there.

        Raises
        ------
        FaultbookError
            If another run holds it, or the parts there come from other settings.
        DataError
            If the folder cannot be written.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.folder / _LOCK, timeout=0)
            lock.acquire()
        except Timeout:
            raise FaultbookError(f"{self.folder}: another run is writing here; wait for it") from None
        except OSError as error:
            raise DataError(f"cannot be written ({error.strerror})", file=self.folder) from None
        with lock:
            self._agree(self._kept_settings(), self.folder)
            _write(self.folder / _SETTINGS, json.dumps(self.settings, indent=1, sort_keys=True))
            yield

    def is_complete(self) -> bool:
        """Whether the output is there already, made with these settings.

        Raises
        ------
        FaultbookError
            If the output is there, made with others or by something else.
        """
        if not self.out.exists():
            return False
        try:
            metadata = pq.read_schema(self.out).metadata or {}
            found = json.loads(metadata[_METADATA])
        except OSError as error:
            raise unreadable(error, self.out) from None
        except (pa.ArrowException, KeyError, ValueError):
            raise DataError("is there already and was not made by a simulation", file=self.out, mend=_OTHER) from None
        self._agree(found, self.out)
        return True

    def _kept_settings(self) -> Any:
        try:
            return json.loads((self.folder / _SETTINGS).read_text("utf-8"))
        except FileNotFoundError:
            return self.settings
        except ValueError:
            raise DataError("is not JSON", file=self.folder / _SETTINGS, mend=_OTHER) from None

    def _agree(self, found: Any, place: Path) -> None:
        found = found if isinstance(found, dict) else {}
        other = [name for name in sorted({*self.settings, *found}) if self.settings.get(name) != found.get(name)]
        if other:
            name = other[0]
            there, now = (short_repr(each.get(name)) for each in (found, self.settings))
            problem = f"comes from other settings ('{name}' is {there} there, {now} now)"
            raise DataError(problem, file=place, mend=_OTHER)

    def _file(self, index: int) -> Path:
        return self.folder / f"task-{index:06d}.json"

    def save(self, index: int, episodes: TaskEpisodes) -> None:
        """Write the part of a task: whole, or not at all."""
        _write(self._file(index), json.dumps(asdict(episodes)))

    def has(self, index: int) -> bool:
        """Whether the task with this number is finished."""
        return self._file(index).exists()

    def load(self, index: int) -> TaskEpisodes:
        """Read the part of a task.

        Raises
        ------
        DataError
            If it is damaged.
        """
        file = self._file(index)
        try:
            return TaskEpisodes(**json.loads(file.read_text("utf-8")))
        except (ValueError, TypeError):
            raise DataError("is damaged", file=file, mend="remove it, and run again") from None

    def join(self, indices: list[int], cohorts: list[str]) -> None:
        """Write the output from the parts of these tasks, in this order, and remove the parts."""
        schema = _SCHEMA.with_metadata({_METADATA: json.dumps(self.settings, sort_keys=True).encode()})
        unfinished = self.folder / "joined.unfinished"
        # Text repeats within a task and numbers are few: dictionaries for all, then zstd.
        with pq.ParquetWriter(unfinished, schema, compression="zstd", compression_level=19) as writer:
            for start in range(0, len(indices), _TASKS_A_GROUP):
                chosen = slice(start, start + _TASKS_A_GROUP)
                rows = [
                    {**row, "cohort": cohort}
                    for index, cohort in zip(indices[chosen], cohorts[chosen], strict=True)
                    for row in self.load(index).rows
                ]
                writer.write_table(pa.Table.from_pylist(rows, schema))
        unfinished.replace(self.out)

    def remove(self) -> None:
        """Remove the folder of parts, if it is there."""
        shutil.rmtree(self.folder, ignore_errors=True)


def _write(file: Path, text: str) -> None:
    unfinished = file.with_name(f"{file.name}.{os.getpid()}.unfinished")
    unfinished.write_text(text, "utf-8")
    unfinished.replace(file)
