"""Inspect logs opened: the header, and the samples one at a time, through inspect-ai's own readers and models.

A `.eval` log is a zip archive: Inspect's reader gives the summaries of its samples, which hold scores, usage, times and
ends, so that no trajectory is read. What no summary holds (a sample that has none, whether one is invalidated, the
samples of a log whose summaries Inspect refuses) comes from the sample's own document, one at a time and without its
messages and events. A `.json` log is one document and is read whole.

Inspect's functions that are not asynchronous patch the event loop of a notebook for good (`nest_asyncio2`), so the
asynchronous one runs in a thread with a loop of its own.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import math
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

from faultbook.errors import DataError, FaultbookError
from faultbook.harness.files import Files
from faultbook.harness.formats._rows import known_digest
from faultbook.values import count, part, text

# Results, statistics and the plan of solvers say nothing of a trial, so that what is wrong with them costs none.
_HEADER = ("version", "status", "eval", "error", "invalidated")
_HEAVY = frozenset(
    (
        *("messages", "output", "store", "events", "events_data", "transcript", "timelines", "attachments"),
        *("metadata", "choices", "files", "setup", "sandbox"),
    )
)
_SAMPLES = "samples/"
_REASONS = 200


@dataclass(frozen=True, slots=True)
class Sample:
    """A sample: Inspect's summary of it, and why it is invalidated, if it is ("" without a reason)."""

    summary: Any
    invalidated: str | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """A log or sample that cannot be read, and why; what is known of which it is, and of a log the digest."""

    why: str
    sample_id: str | None = None
    epoch: int | None = None
    sha256: str | None = None


@dataclass(frozen=True, slots=True)
class Log:
    """A log: its header (Inspect's `EvalLog` without results and samples), scorers, digest and samples.

    `wholly_invalidated`: the log is marked as invalidated, and none of its samples in particular.
    """

    header: Any
    scorers: tuple[str, ...]
    sha256: str
    samples: Iterator[Sample | Refused]
    wholly_invalidated: bool


def inspect_log_module() -> Any:
    """The module `inspect_ai.log`.

    Raises
    ------
    FaultbookError
        If inspect-ai is not installed: which extra to install.
    """
    try:
        return importlib.import_module("inspect_ai.log")
    except ModuleNotFoundError as error:
        if error.name not in ("inspect_ai", "inspect_ai.log"):
            raise FaultbookError(f"inspect-ai needs the package '{error.name}', which is not installed") from None
        problem = "reading Inspect logs needs inspect-ai; install it with: pip install 'faultbook[inspect]'"
        raise FaultbookError(problem) from None


def open_log(path: Path, files: Files) -> Log | Refused:
    """Open a log and read its header.

    Raises
    ------
    FaultbookError
        If inspect-ai is not installed.
    """
    module = inspect_log_module()
    try:
        return _from_json(path, files, module) if path.suffix.casefold() == ".json" else _from_zip(path, files, module)
    except DataError as error:
        return Refused(error.problem, sha256=known_digest(path, files))
    except Exception as error:  # whatever zipfile, a decompressor or a model raises on a file that is broken
        return Refused(_reason(error), sha256=known_digest(path, files))


def _from_json(path: Path, files: Files, module: Any) -> Log:
    document = files.read_json(path)
    header = _header(document, path, module)
    listed = part(document, "samples")
    rows = listed if isinstance(listed, list) else []
    wholly = header.invalidated and not any(part(row, "invalidation") for row in rows)
    scorers, sha256 = _scorers(header, document), files.sha256(path)
    del document
    return Log(header, scorers, sha256, _listed(rows, listed is None or rows is listed, module), wholly)


def _listed(rows: list[Any], is_list: bool, module: Any) -> Iterator[Sample | Refused]:
    if not is_list:
        yield Refused("its samples are no list")
    for place, row in enumerate(rows):
        rows[place] = None  # its messages need not stay in memory until the last sample is read
        yield _whole(row, module)


def _from_zip(path: Path, files: Files, module: Any) -> Log:
    sha256 = files.digest(path)
    if not path.stat().st_size:
        raise DataError("empty file", file=path)
    with ZipFile(path) as archive:
        names = archive.namelist()
        finished = "header.json" in names
        # Of members of one name, which an edit of the header can leave, zipfile reads the last one, as Inspect does.
        document = json.loads(archive.read("header.json" if finished else "_journal/start.json"))
        header = _header(document, path, module)
        wholly = header.invalidated and not any(part(_document(archive, name), "invalidation") for name in _own(names))
    return Log(header, _scorers(header, document), sha256, _archived(path, header.invalidated, module), wholly)


def _archived(path: Path, invalidated: bool, module: Any) -> Iterator[Sample | Refused]:
    try:
        with ZipFile(path) as archive:
            names = _own(archive.namelist())
            summaries, why = _summaries(path, module)
            if why and not names:
                yield Refused(f"its samples: {why}")
            for summary in summaries:
                name = f"{_SAMPLES}{summary.id}_epoch_{summary.epoch}.json"
                if name not in names or not invalidated:  # a summary does not tell whether its sample is
                    names.pop(name, None)
                    yield Sample(summary)
            for name in names:
                found = _whole(_document(archive, name), module)
                yield _named(name, found.why) if isinstance(found, Refused) else found
    except (OSError, ValueError, BadZipFile) as error:
        yield Refused(f"the rest of its samples: {_reason(error)}")


def _summaries(path: Path, module: Any) -> tuple[list[Any], str | None]:
    """Inspect's summaries, or none and why: one that it refuses costs all of them."""
    try:
        with ThreadPoolExecutor(1) as pool:
            reading = module.read_eval_log_sample_summaries_async(str(path.absolute()), format="eval")
            return list(pool.submit(asyncio.run, reading).result()), None
    except Exception as error:
        return [], _reason(error)


def _own(names: list[str]) -> dict[str, None]:
    return {name: None for name in names if name.startswith(_SAMPLES) and name.endswith(".json")}


def _document(archive: ZipFile, name: str) -> Any:
    try:
        return json.loads(archive.read(name))
    except Exception as error:
        return Refused(_reason(error))


def _named(name: str, why: str) -> Refused:
    sample, _, epoch = name.removeprefix(_SAMPLES).removesuffix(".json").rpartition("_epoch_")
    return Refused(why, text(sample), count(int(epoch)) if epoch.isascii() and epoch.isdigit() else None)


def _whole(document: Any, module: Any) -> Sample | Refused:
    """A sample from its own document, without what is large and says nothing of its end."""
    if isinstance(document, Refused):
        return document
    if not isinstance(document, Mapping):
        return Refused("not a sample")
    try:
        sample = module.EvalSample.model_validate(_light(document))
    except Exception as error:
        return Refused(_reason(error), text(document.get("id")), count(document.get("epoch")))
    reason = None if sample.invalidation is None else text(sample.invalidation.reason) or ""
    return Sample(sample.summary(), reason)


def _light(document: Mapping[str, Any]) -> dict[str, Any]:
    light = {key: value for key, value in document.items() if key not in _HEAVY} | {"input": "", "target": ""}
    light["error_retries"] = [
        {key: value for key, value in retry.items() if key != "events"} for retry in light.get("error_retries") or []
    ]
    scores = light.get("scores")
    if isinstance(scores, dict):  # old logs wrote NaN, the sign of a sample that was not scored, as null
        light["scores"] = {name: _not_null(score) for name, score in scores.items()}
    return light


def _not_null(score: Any) -> Any:
    null = isinstance(score, dict) and "value" in score and score["value"] is None
    return score | {"value": math.nan} if null else score


def _header(document: Any, path: Path, module: Any) -> Any:
    if not isinstance(document, Mapping):
        raise DataError("not an Inspect log", file=path)
    header = module.EvalLog.model_validate({key: document[key] for key in _HEADER if key in document})
    newest = module.EvalLog.model_fields["version"].default
    if header.version > newest:
        problem = f"a log of version {header.version}; the inspect-ai that is installed reads versions up to {newest}"
        raise DataError(problem, file=path)
    return header


def _scorers(header: Any, document: Any) -> tuple[str, ...]:
    """Names of the scorers: as planned, or as the results have them in a log of before that was recorded."""
    if header.eval.scorers:
        return tuple(scorer.name for scorer in header.eval.scorers)
    scores = part(document, "results", "scores")
    listed = scores if isinstance(scores, list) else []
    names = [text(part(score, "scorer") or part(score, "name")) for score in listed]
    return tuple(dict.fromkeys(name for name in names if name))


def _reason(error: Exception) -> str:
    """Why something cannot be read, on one line; of a model's many complaints, the first."""
    complaints = error.errors() if hasattr(error, "errors") else None
    if complaints:
        place = ".".join(str(step) for step in complaints[0]["loc"])
        return f"not as Inspect writes it ({place}: {complaints[0]['msg']})"[:_REASONS]
    return f"{type(error).__name__}: {text(str(error)) or 'no details'}"[:_REASONS]
