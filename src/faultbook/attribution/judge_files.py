"""Read what judges say: scores of reasons (CSV, or files of MP-Bench's judge) and verdicts. Nothing is guessed.

What is a score: a number from 1 to 10. Text such as "8" is none, nor is 0 (what the published code writes for a key
that the judge left out), a number outside the scale, NaN, or true. Each of these is reported, and the score is missing.
null, an empty cell and an absent key are scores that were not given: missing, and counted where scores are summarised.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pandas as pd

from faultbook.attribution.formats.documents import json_values, read_text, shown
from faultbook.attribution.steps import parse_step
from faultbook.csvfile import located, read_text_table
from faultbook.errors import DataError, one_of, short_repr
from faultbook.problems import Problems
from faultbook.tables import REASONING_PARTS
from faultbook.text import is_unicode

LOWEST, HIGHEST = 1, 10
# faithfulness_score is written by the published code but never asked of the judge, so it is 0 throughout.
JUDGE_KEYS = {"fail_reason_score": "failure_reason", "ideal_action_score": "ideal_action", "overall_score": "overall"}
CSV_COLUMNS = ("log_id", "model", "step", "part", "score")
_ONLY = ("annotator_only_steps", "gpt_only_steps")
_NUMBER = re.compile(r"[+-]?[0-9]{1,12}(?:\.[0-9]{1,12})?")
_UNIFIED = "unified_"
_VERDICTS: dict[str, bool | None] = {"true": True, "1": True, "false": False, "0": False, "": None}


def parse_score(value: object) -> float | None:
    """Read a score of the scale 1 to 10; None stays None.

    Parameters
    ----------
    value : object
        As JSON gives it: an int or a float.

    Returns
    -------
    float or None

    Raises
    ------
    ValueError
        If it is anything else, in one sentence that names it.
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        shown = f"the text {short_repr(value)}" if isinstance(value, str) else short_repr(value)
        raise ValueError(f"score is {shown}, not a number")
    if isinstance(value, float) and math.isnan(value):
        raise ValueError("score is NaN, not a number")
    if not LOWEST <= value <= HIGHEST:
        reason = ", which the published code writes for a missing score" if value == 0 else ""
        raise ValueError(f"score is {short_repr(value)}{reason}; the scale is {LOWEST} to {HIGHEST}")
    return float(value)


def read_verdicts(file: str | Path) -> pd.DataFrame:
    """Read verdicts on single votes, for `filter_singletons`.

    Parameters
    ----------
    file : path
        A CSV file with log_id, step, legitimate (true, false, 1, 0, or empty: no verdict), and perhaps judge.

    Returns
    -------
    DataFrame
        log_id, step, legitimate (nullable boolean), judge (missing where the file has none).

    Raises
    ------
    DataError
        If the file cannot be read, or a cell is none of these.
    """
    rows = []
    for line, row in located(read_text_table(file, required=("log_id", "step", "legitimate"))):
        if not row["log_id"]:
            raise DataError("no log_id", file=file, row=line, column="log_id", mend="name the log")
        verdict = _VERDICTS.get(row["legitimate"].casefold(), row["legitimate"])
        if isinstance(verdict, str):
            found = f"legitimate is '{verdict[:80]}'"
            mend = "write true, false, or nothing"
            raise DataError(found, file=file, row=line, column="legitimate", mend=mend)
        try:
            rows.append((row["log_id"], parse_step(row["step"]), verdict, row.get("judge") or None))
        except ValueError as error:
            raise DataError(str(error), file=file, row=line, column="step") from None
    frame = pd.DataFrame(rows, columns=["log_id", "step", "legitimate", "judge"])
    return frame.astype({"log_id": "str", "step": "int64", "legitimate": "boolean", "judge": "str"})


class JudgeFiles:
    """Collects scores and, where files tell them, counts of steps that only one side names."""

    def __init__(self, root: Path, model: str | None, problems: Problems) -> None:
        self._root, self._model, self._problems = root, model, problems
        self.scores: list[tuple[Any, ...]] = []
        self.coverage: list[tuple[Any, ...]] = []
        self._seen: dict[tuple[Any, ...], str] = {}

    def csv(self, file: Path) -> None:
        """One score a row."""
        for line, row in located(read_text_table(file, required=CSV_COLUMNS)):
            empty = [name for name in ("log_id", "model") if not row[name]]
            if empty:
                self._problem(f"no {' and no '.join(empty)}", file, line, empty[0], "give both")
                continue
            if row["part"] not in REASONING_PARTS:
                self._problem(one_of("part", row["part"][:80], REASONING_PARTS), file, line, "part")
                continue
            step = self._step(row["step"], file, line, "step")
            key = (row["log_id"], row["model"], step, row["part"])
            if step is not None and self._is_new(key, file, line):
                self.scores.append((*key, self._score(_number(row["score"]), file, line, "score")))

    def json(self, file: Path) -> None:
        """One log of one model."""
        try:
            ((fields, _),) = json_values(read_text(file), file)
            if not isinstance(fields, dict) or not isinstance(fields.get("comparisons"), list):
                problem, mend = "no list of comparisons", "give a file that the judge of MP-Bench wrote"
                raise DataError(problem, file=file, column="comparisons", mend=mend)
            log_id, model = self._place(file)
        except DataError as error:
            self._problems.add(error)
            return
        if not self._is_new((log_id, model), file, None):
            return
        steps = [self._comparison(c, n, (log_id, model), file) for n, c in enumerate(fields["comparisons"])]
        n_matched = len({step for step in steps if step is not None})
        missed, spurious = (self._only(fields, key, file) for key in _ONLY)
        self.coverage.append((log_id, model, n_matched, missed, spurious))

    def _place(self, file: Path) -> tuple[str, str]:
        """Log and model of a file by its folders: …/model/method/unified_…/split/id.json, or model/…/split/id.json."""
        below, whole = file.relative_to(self._root).parts, file.absolute().parts
        unified = [place for place, part in enumerate(whole[:-1]) if part.startswith(_UNIFIED) and place >= 2]
        model = self._model or (whole[unified[-1] - 2] if unified else below[0] if len(below) > 2 else None)
        if model is None:
            mend = "name the folder that holds a folder for each model, or give the model"
            raise DataError("its folders name no model", file=file, mend=mend)
        log_id = f"{whole[-2]}/{file.stem}"
        if not is_unicode(log_id + model):
            raise DataError("its path is not Unicode text", file=shown(file), mend="rename it")
        return log_id, model

    def _comparison(self, comparison: Any, place: int, key: tuple[str, str], file: Path) -> int | None:
        """Take the scores of one step; the step, if it can be read."""
        where = f"comparisons[{place}]"
        if not isinstance(comparison, dict):
            self._problem(f"a comparison is {short_repr(comparison)}, not an object", file, None, where)
            return None
        step = self._step(comparison.get("step"), file, None, f"{where}.step")
        if step is None or not self._is_new((*key, step), file, None):
            return None
        for name, part in JUDGE_KEYS.items():
            score = self._score(comparison.get(name), file, None, f"{where}.{name}")
            self.scores.append((*key, step, part, score))
        return step

    def _only(self, fields: dict[str, Any], key: str, file: Path) -> int | None:
        """How many steps only one side names; None if the file does not tell."""
        listed = fields.get(key)
        if not isinstance(listed, list):
            found = "missing" if listed is None else f"{short_repr(listed)}, not a list"
            self._problem(f"{key} is {found}", file, None, key, "without it, scores cannot be charged")
            return None
        steps = [self._step(step, file, None, key) for step in listed]
        return len({step for step in steps if step is not None})

    def _score(self, value: object, file: Path, row: int | None, column: str) -> float | None:
        try:
            return parse_score(value)
        except ValueError as error:
            self._problem(str(error), file, row, column, "it is left missing; give a number from 1 to 10, or null")
            return None

    def _step(self, value: object, file: Path, row: int | None, column: str) -> int | None:
        try:
            return parse_step(value)
        except ValueError as error:
            self._problem(str(error), file, row, column, "give a whole number, counted from 0")
            return None

    def _is_new(self, key: tuple[Any, ...], file: Path, row: int | None) -> bool:
        """Whether this is the first of its key; what stands twice is reported."""
        here = f"{file}" + (f", row {row}" if row is not None else "")
        if key not in self._seen:
            self._seen[key] = here
            return True
        names = ", ".join(f"{name} {value}" for name, value in zip(CSV_COLUMNS, key, strict=False))
        self._problem(f"{names}: scored here and in {self._seen[key]}", file, row, None, "keep one of them")
        return False

    def _problem(
        self, text: str, file: Path, row: int | None, column: str | None = None, mend: str | None = None
    ) -> None:
        self._problems.add(DataError(text, file=file, row=row, column=column, mend=mend))


def _number(cell: str) -> object:
    """A CSV cell as JSON would have it: a number, nothing, or text."""
    if not cell:
        return None
    return float(cell) if _NUMBER.fullmatch(cell) else cell
