"""The intervention rule: act now or hold, and which gate held."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from decimal import Decimal
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from faultbook.errors import DataError, FaultbookError, one_of, short_repr

GATES = ("delay", "error", "failure", "utility", "tie", "not evaluable")
TRAJECTORY = ["task_id", "condition", "replicate"]
DECISION_COLUMNS = ["action", "gate", "rescue_score", "harm_score", "utility_score", "tie"]

_ARGUMENTS = ("delay", "p_err", "p0", "p1")
_ROUNDING = 1e-12  # utilities that differ by less, relative to the largest weight in them, differ by rounding only
_WHY_NO_DEFAULT = (
    "failure_probability is not given, and has no default: the rule asks for a probability of failure, but its "
    "description does not say how that follows from p0 (success without recovery); "
    "give 'complement_of_p0' (1 - p0, as the authors' code does) or a function of p0"
)

FailureProbability = Literal["complement_of_p0"] | Callable[[float], float]
Floats = npt.NDArray[np.float64]


class _NotGiven:
    def __repr__(self) -> str:
        return "(not given)"


_NOT_GIVEN: Any = _NotGiven()


@dataclass(frozen=True, slots=True)
class PaperSettings:
    """Settings of one experiment, with their source. They describe that experiment, and are no advice for another."""

    min_delay: int = 1
    error_threshold: float = 0.876
    failure_threshold: float = 0.052
    utility_threshold: float = 0.0
    harm_penalty: float = 2.0
    harm_limit: float = 0.02
    delays: tuple[int, ...] = (1, 2, 4)
    source: str = (
        "arXiv 2610.00372: chosen there on out-of-fold predictions of 93 tasks of one agent (Qwen3-14B, ALFWorld), for "
        "features that are not public; thresholds depend on features, their scale and C, so calibrate on your own data"
    )

    def rule(self, *, failure_probability: FailureProbability) -> InterventionRule:
        """The experiment's rule; how its probability of failure follows from p0 must be said."""
        return InterventionRule(
            min_delay=self.min_delay,
            error_threshold=self.error_threshold,
            failure_threshold=self.failure_threshold,
            utility_threshold=self.utility_threshold,
            harm_penalty=self.harm_penalty,
            failure_probability=failure_probability,
            source=self.source,
        )


PAPER_SETTINGS = PaperSettings()


@dataclass(frozen=True, slots=True)
class Decision:
    """What the rule does at one candidate, and why.

    The three scores rank candidates. They are not probabilities of rescue or harm, which two success rates do not
    determine; they are NaN where the candidate is not evaluable.
    """

    action: Literal["refresh", "hold"]
    gate: str | None  # the gate that held, one of GATES; None for a refresh
    rescue_score: float  # (1 - p0) p1
    harm_score: float  # p0 (1 - p1)
    utility_score: float  # rescue_score - harm_penalty * harm_score
    tie: bool  # whether utility_score equals the threshold, whichever gate held


@dataclass(frozen=True, slots=True, kw_only=True)
class InterventionRule:
    """Refresh if it is late enough, an error and a failure are likely enough, and the utility score is high enough.

    The gates are asked in this order: delay ≥ `min_delay`; p_err ≥ `error_threshold` (α); p_fail ≥
    `failure_threshold` (β); u > `utility_threshold` (γ), with u = (1 − p0) p1 − λ p0 (1 − p1).

    Parameters
    ----------
    min_delay : int
        Least number of actions since the observation in doubt.
    error_threshold, failure_threshold : float
        α and β, probabilities in [0, 1]. The defaults are those of one experiment (`PAPER_SETTINGS`), for its
        features, agent and penalty: `provenance` says so as long as no `source` is given, and
        `diagnostics.reachable` shows whether other models can reach them at all.
    utility_threshold, harm_penalty : float
        γ, and λ ≥ 0.
    failure_probability : "complement_of_p0" or callable
        How p_fail follows from p0. **There is no default**: the published description does not say it.
        "complement_of_p0" is 1 − p0, as in the authors' code; a callable gets p0 as a float.
    on_tie : {"hold", "refresh"}
        What to do at u = γ, up to rounding. A refresh that promises nothing is held by default, with the gate "tie":
        p0 = p1 = 0 has u = 0. The authors' code refreshes (it asks for u ≥ γ).
    source : str
        Where the thresholds come from, such as the data that they were calibrated on.

    Raises
    ------
    FaultbookError
        If `failure_probability` is left out, or a setting is out of its range.

    References
    ----------
    arXiv 2610.00372, decision rule; authors' code, cir.py. There a missing p_err or delay passes its gate, because
    no comparison with NaN is true; here a candidate with a missing or infinite value is held as "not evaluable".
    """

    min_delay: int = PAPER_SETTINGS.min_delay
    error_threshold: float = PAPER_SETTINGS.error_threshold
    failure_threshold: float = PAPER_SETTINGS.failure_threshold
    utility_threshold: float = PAPER_SETTINGS.utility_threshold
    harm_penalty: float = PAPER_SETTINGS.harm_penalty
    failure_probability: FailureProbability = _NOT_GIVEN
    on_tie: Literal["hold", "refresh"] = "hold"
    source: str = ""

    def __post_init__(self) -> None:
        if self.failure_probability is _NOT_GIVEN or self.failure_probability is None:
            raise FaultbookError(_WHY_NO_DEFAULT)
        if self.failure_probability != "complement_of_p0" and not callable(self.failure_probability):
            found = short_repr(self.failure_probability)
            raise FaultbookError(f"failure_probability is {found}; give 'complement_of_p0' or a function of p0")
        if self.on_tie not in ("hold", "refresh"):
            raise FaultbookError(one_of("on_tie", self.on_tie, ("hold", "refresh")))
        for name in ("min_delay", "error_threshold", "failure_threshold", "utility_threshold", "harm_penalty"):
            _check_setting(name, getattr(self, name))

    @property
    def provenance(self) -> str:
        """Where the thresholds come from, in a sentence."""
        if self.source:
            return self.source
        paper = (PAPER_SETTINGS.error_threshold, PAPER_SETTINGS.failure_threshold)
        given = (self.error_threshold, self.failure_threshold)
        theirs = any(mine == printed for mine, printed in zip(given, paper, strict=True))
        return PAPER_SETTINGS.source if theirs else "given by the caller"

    def decide(self, *, delay: Any, p_err: Any, p0: Any, p1: Any) -> Decision:
        """Decide on one candidate.

        Parameters
        ----------
        delay : int
            Actions since the observation in doubt, at least 0.
        p_err, p0, p1 : float
            Estimated probabilities, in [0, 1], of an error, of success without and of success with a refresh now.

        Returns
        -------
        Decision
            A missing (None, NaN, <NA>) or infinite value holds, with the gate "not evaluable".

        Raises
        ------
        FaultbookError
            If a value is no number, a probability not in [0, 1], or the delay not a whole number of at least 0.
        """
        values = dict(zip(_ARGUMENTS, (delay, p_err, p0, p1), strict=True))
        d, e, without, with_ = (_checked(name, _number(name, value)) for name, value in values.items())
        evaluable = not math.isnan(d + e + without + with_)
        p_fail = self.p_fail(without) if evaluable else math.nan
        if math.isnan(p_fail):
            return Decision("hold", "not evaluable", math.nan, math.nan, math.nan, False)
        rescue, harm = (1 - without) * with_, without * (1 - with_)
        utility = rescue - self.harm_penalty * harm
        tie = bool(self.is_tie(utility))
        gate = self._gate(d, e, p_fail, utility, tie)
        return Decision("refresh" if gate is None else "hold", gate, rescue, harm, utility, tie)

    def p_fail(self, p0: float) -> float:
        """The probability of failure at this p0, as `failure_probability` has it; NaN if that gives no number.

        Raises
        ------
        FaultbookError
            If the callable returns something else than a probability.
        """
        if self.failure_probability == "complement_of_p0":
            return 1 - p0
        name = f"failure_probability({p0:g})"
        return _checked(name, _number(name, self.failure_probability(p0)))

    def is_tie(self, utility: Any) -> Any:
        """Whether utility scores (one, or an array) equal the threshold up to rounding."""
        largest = max(1.0, self.harm_penalty, abs(self.utility_threshold))
        return abs(utility - self.utility_threshold) <= _ROUNDING * largest

    def summary_frame(self) -> pd.DataFrame:
        """One row with the settings as columns; a callable by its name."""
        row = {field.name: getattr(self, field.name) for field in fields(self)}
        if callable(self.failure_probability):
            row["failure_probability"] = getattr(self.failure_probability, "__name__", "a callable")
        return pd.DataFrame([row | {"source": self.provenance}])

    def _gate(self, delay: float, p_err: float, p_fail: float, utility: float, tie: bool) -> str | None:
        if delay < self.min_delay:
            return "delay"
        if p_err < self.error_threshold:
            return "error"
        if p_fail < self.failure_threshold:
            return "failure"
        if tie:
            return "tie" if self.on_tie == "hold" else None
        return None if utility > self.utility_threshold else "utility"


def decide_many(rule: InterventionRule, delay: Any, p_err: Any, p0: Any, p1: Any) -> pd.DataFrame:
    """Decide on many candidates at once; every row is what `rule.decide` says of it.

    Parameters
    ----------
    rule : InterventionRule
        The rule.
    delay, p_err, p0, p1 : iterable, shape (n,), or one number
        As in `InterventionRule.decide`; one number stands for all rows.

    Returns
    -------
    DataFrame
        n rows: action, gate (<NA> for a refresh), rescue_score, harm_score, utility_score and tie, with the index of
        the inputs if they are Series.

    Raises
    ------
    FaultbookError
        As `decide`, with the row; or if lengths or indexes differ.
    """
    given = dict(zip(_ARGUMENTS, (delay, p_err, p0, p1), strict=True))
    index = _common_index(given)
    d, e, without, with_ = (_column(name, values, index) for name, values in given.items())
    evaluable = ~np.isnan(d + e + without + with_)
    p_fail = np.full(len(index), np.nan)
    p_fail[evaluable] = _p_fail_many(rule, without[evaluable])
    evaluable &= ~np.isnan(p_fail)
    with np.errstate(invalid="ignore"):
        rescue, harm = (1 - without) * with_, without * (1 - with_)
        utility = rescue - rule.harm_penalty * harm
        tie = rule.is_tie(utility)
    held = {
        "not evaluable": ~evaluable,
        "delay": d < rule.min_delay,
        "error": e < rule.error_threshold,
        "failure": p_fail < rule.failure_threshold,
        "utility": ~(tie | (utility > rule.utility_threshold)),
        "tie": tie & (rule.on_tie == "hold"),
    }
    order = (GATES[-1], *GATES[:-1])  # what cannot be evaluated is held before any gate is asked
    gate = np.select([held[name] for name in order], list(order), default="")
    scores = {
        name: np.where(evaluable, score, np.nan)
        for name, score in (("rescue_score", rescue), ("harm_score", harm), ("utility_score", utility))
    }
    frame = pd.DataFrame({"action": np.where(gate == "", "refresh", "hold"), "gate": gate, **scores}, index=index)
    frame["tie"] = tie & evaluable
    frame = frame.astype({"action": "string", "gate": "string"})
    return frame.assign(gate=frame["gate"].mask(frame["gate"] == ""))[DECISION_COLUMNS]


def first_pass(candidates: pd.DataFrame) -> pd.DataFrame:
    """Mark the candidate of each trajectory that the rule acts on: the first that passes, in order of delay.

    Parameters
    ----------
    candidates : DataFrame
        task_id, condition, replicate, delay and action ("refresh" or "hold"); further columns stay. A row with
        `reached` False or missing is never acted on: there the run was over.

    Returns
    -------
    DataFrame
        The same rows in the same order, with `refreshed`: True at most once a trajectory.

    Raises
    ------
    DataError
        If a column is missing, an action is another one, or a trajectory has a delay twice.
    """
    lacking = [name for name in (*TRAJECTORY, "delay", "action") if name not in candidates]
    if lacking:
        raise DataError(f"no column {', '.join(lacking)}", mend="join the candidates with their decisions")
    wrong = candidates.loc[~candidates["action"].isin(["refresh", "hold"]), "action"]
    if len(wrong):
        raise DataError(one_of("action", wrong.iloc[0], ("refresh", "hold")), row=str(wrong.index[0]), column="action")
    key = candidates[[*TRAJECTORY, "delay"]].reset_index(drop=True)
    if key.duplicated().any():
        task, condition, replicate, delay = key[key.duplicated()].iloc[0]
        where = f"task {task}, {condition}, replicate {replicate}, delay {delay}"
        raise DataError("a trajectory has this delay twice", row=where, mend="decide on one data set at a time")
    passes = (candidates["action"] == "refresh").to_numpy(dtype=bool)
    if "reached" in candidates:
        passes = passes & candidates["reached"].astype("boolean").fillna(False).to_numpy(dtype=bool)
    first = key[passes].sort_values("delay", kind="stable").drop_duplicates(TRAJECTORY).index
    return candidates.assign(refreshed=np.isin(np.arange(len(key)), first))


def _check_setting(name: str, value: object) -> None:
    number = _number(name, value)
    if math.isnan(number):
        raise FaultbookError(f"{name} is {short_repr(value)}; give a finite number")
    if name.endswith(("error_threshold", "failure_threshold")):
        _checked(name, number)
    elif name == "min_delay" and (number < 0 or not number.is_integer()):
        raise FaultbookError(f"{name} is {short_repr(value)}; give a whole number of at least 0")
    elif name == "harm_penalty" and number < 0:
        raise FaultbookError(f"{name} is {short_repr(value)}; a harm cannot count as a gain, give at least 0")


def _number(name: str, value: object) -> float:
    """A number as a float; NaN if it is missing or infinite."""
    if value is None or value is pd.NA or value is pd.NaT:
        return math.nan
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (numbers.Real, Decimal)):
        raise FaultbookError(f"{name} is {short_repr(value)}; give a number")
    try:
        number = float(value)
    except (OverflowError, ValueError):  # an integer beyond all floats; a signalling NaN
        return math.nan
    return number if math.isfinite(number) else math.nan


def _checked(name: str, number: float) -> float:
    """The number, if it is NaN or within the range of its name: a delay, or else a probability."""
    if name == "delay":
        if number < 0 or not (math.isnan(number) or number.is_integer()):
            raise FaultbookError(f"delay is {number:g}; give a whole number of at least 0")
    elif number < 0 or number > 1:
        raise FaultbookError(f"{name} is {number:g}; give a probability in [0, 1], per cent divided by 100")
    return number


def _common_index(given: dict[str, Any]) -> pd.Index[Any]:
    sizes = {name: len(values) for name, values in given.items() if not _is_one(values)}
    if len(set(sizes.values())) > 1:
        raise FaultbookError(f"columns differ in length ({sizes}); give one value for each candidate")
    indexes = {name: values.index for name, values in given.items() if isinstance(values, pd.Series)}
    for name, index in indexes.items():
        if not index.equals(next(iter(indexes.values()))):
            raise FaultbookError(f"{name} and {next(iter(indexes))} have different indexes; take both from one table")
    return next(iter(indexes.values()), pd.RangeIndex(next(iter(sizes.values()), 1)))


def _is_one(values: object) -> bool:
    return isinstance(values, str) or not isinstance(values, Iterable)


def _column(name: str, values: Any, index: pd.Index[Any]) -> Floats:
    """A column of numbers in their range; NaN where one is missing or infinite."""
    if _is_one(values):
        return np.full(len(index), _checked(name, _number(name, values)))
    column = values if isinstance(values, pd.Series) else pd.Series(list(values))
    kind = column.dtype
    plain = pd.api.types.is_integer_dtype(kind) or pd.api.types.is_float_dtype(kind)
    if plain:
        found = column.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        found = np.array([_located(name, value, row) for row, value in zip(index, column, strict=True)], dtype=float)
    found = np.where(np.isfinite(found), found, np.nan)
    wrong = (found < 0) | ((found % 1 > 0) if name == "delay" else (found > 1))
    if wrong.any():
        first = int(np.flatnonzero(wrong)[0])
        _located(name, float(found[first]), index[first])
    return found


def _located(name: str, value: object, row: object) -> float:
    try:
        return _checked(name, _number(name, value))
    except FaultbookError as error:
        raise DataError(str(error), row=str(row), column=name) from None


def _p_fail_many(rule: InterventionRule, p0: Floats) -> Floats:
    if rule.failure_probability == "complement_of_p0":
        return 1 - p0
    return np.array([rule.p_fail(float(value)) for value in p0], dtype=float)
