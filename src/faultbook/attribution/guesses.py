"""What single-label scores are worth: guesses, constants and the two faults of Who&When's published numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from faultbook.attribution.compare import require_columns
from faultbook.attribution.labels import (
    TOLERANCES,
    check_labels,
    mean_or_missing,
    plain_names,
    question_codes,
    rate_estimate,
    tolerance_names,
)
from faultbook.errors import FaultbookError
from faultbook.stats.bootstrap import Floats

HUMAN = "human"  # the one who asks: a speaker of Who&When's logs, never a label

# The random row of the paper's table 1, in per cent as printed.
PRINTED_RANDOM = {
    ("algorithm-generated", "agent"): "29.10",
    ("algorithm-generated", "step"): "19.06",
    ("hand-crafted", "agent"): "12.00",
    ("hand-crafted", "step"): "4.16",
}


def random_accuracy(
    labels: pd.DataFrame, steps: pd.DataFrame, *, tolerance: Sequence[int] = TOLERANCES
) -> pd.DataFrame:
    """Work out what a uniform guess scores, exactly and with no draw.

    Parameters
    ----------
    labels : DataFrame
        From `oracle_labels`.
    steps : DataFrame
        Table `Steps`: who speaks.
    tolerance : sequence of int
        As in `oracle_scores`.

    Returns
    -------
    DataFrame
        One row a split, measure and vocabulary (what the guess is drawn from): split, measure, vocabulary, rate,
        n_logs, note. The rate is the mean over logs of the share of guesses that are right; it is missing, and the
        note says why, if a log's length or speakers are unknown. It is of the labels at hand, so it has no interval.

        - "steps": all steps of the log; right within the tolerance of the label.
        - "agents": the distinct speakers as labels name them, the human left out; right if it is the labelled agent.
          Whatever else speaks is an agent, `Computer_terminal` too.
        - "roles": the distinct speakers as the log writes them, the human included (so that the orchestrator of
          Magentic-One stands for several); right if it is the role that speaks at the labelled step.
    """
    check_labels(labels)
    rows: list[dict[str, Any]] = []
    for split in dict.fromkeys(labels["split"]):
        for measure, vocabulary, share, scored in _guesses(labels, steps, tolerance_names(tolerance)):
            kept = share[scored & (labels["split"] == split).to_numpy()]
            n_unknown = int(np.isnan(kept).sum())
            of_what = "number of steps" if vocabulary == "steps" else "speakers"
            note = f"undefined ({of_what} of {n_unknown} logs unknown)" if n_unknown else ""
            note = note if len(kept) else "undefined (no label names an agent)"
            row = {"split": split, "measure": measure, "vocabulary": vocabulary, "rate": mean_or_missing(kept)}
            rows.append(row | {"n_logs": len(kept), "note": note})
    return pd.DataFrame(rows, columns=["split", "measure", "vocabulary", "rate", "n_logs", "note"])


def best_constant(labels: pd.DataFrame) -> pd.DataFrame:
    """Find the constant answers that score best: what a position prior, or always one agent, is worth.

    Parameters
    ----------
    labels : DataFrame
        From `oracle_labels`.

    Returns
    -------
    DataFrame
        One row a split and measure ("step", "agent"): constant (all that tie, with commas), n_tied, n_right, n_logs,
        rate_in_sample (of the constant that is chosen on the logs it is scored on, so that it flatters),
        rate_leave_one_out (each log is answered with the most frequent label of all other logs of its split; a tie
        gives the share of the tied ones that are right; missing for a single log).
    """
    check_labels(labels)
    rows: list[dict[str, Any]] = []
    for split, part in labels.groupby("split", sort=False):
        for measure, column in (("step", "mistake_step"), ("agent", "mistake_agent")):
            counts = part[column].dropna().value_counts()
            top, n = int(counts.max()) if len(counts) else 0, int(counts.sum())
            tied = sorted(counts.index[counts == top])
            row = {"split": split, "measure": measure, "constant": ", ".join(map(str, tied)), "n_tied": len(tied)}
            row |= {"n_right": top, "n_logs": n, "rate_in_sample": top / n if n else np.nan}
            rows.append(row | {"rate_leave_one_out": _leave_one_out(counts.to_numpy())})
    columns = ["split", "measure", "constant", "n_tied", "n_right", "n_logs", "rate_in_sample", "rate_leave_one_out"]
    return pd.DataFrame(rows, columns=columns)


def most_frequent_speaker(
    labels: pd.DataFrame, steps: pd.DataFrame, *, level: float = 0.95, n_resamples: int = 10_000, seed: int = 0
) -> pd.DataFrame:
    """Score naming the agent that speaks most often in each log; for always the same agent see `best_constant`.

    Parameters
    ----------
    labels, steps : DataFrame
        As in `random_accuracy`; the human is no candidate.
    level, n_resamples, seed
        Of the interval of `rate`, as in `oracle_scores`.

    Returns
    -------
    DataFrame
        One row a split: rate, low, high (of several that speak equally often the first to speak is named),
        rate_lowest and rate_highest (each tie resolved against, or for, the label), rate_expected (ties drawn at
        random), n_tied, n_logs, n_questions. A log without a known speaker is answered wrongly.
    """
    check_labels(labels)
    spoken = _speakers(labels, steps, "agent")
    counts = spoken.groupby(["row", "name"], sort=False).agg(n=("step", "size"), first=("step", "min")).reset_index()
    top = counts[counts["n"] == counts.groupby("row")["n"].transform("max")]
    right = top["name"].to_numpy(dtype=object) == plain_names(labels["mistake_agent"])[top["row"]]
    first = (top["first"] == top.groupby("row")["first"].transform("min")).to_numpy()

    def per_log(weights: npt.NDArray[Any]) -> Floats:
        return np.bincount(top["row"], weights=weights, minlength=len(labels)).astype(np.float64)

    n_top, among, named = per_log(np.ones(len(top))), per_log(right), per_log(right & first)
    clusters, kept = question_codes(labels), labels["mistake_agent"].notna()
    rows: list[dict[str, Any]] = []
    for split in dict.fromkeys(labels["split"]):
        at = (kept & (labels["split"] == split)).to_numpy()
        row = {"split": split, **rate_estimate(named[at], clusters[at], level, n_resamples, seed)}
        row |= {"rate_lowest": mean_or_missing((among * (n_top == 1))[at]), "rate_highest": mean_or_missing(among[at])}
        row |= {
            "rate_expected": mean_or_missing((among / np.maximum(n_top, 1))[at]),
            "n_tied": int((n_top[at] > 1).sum()),
        }
        rows.append(row | {"n_logs": int(at.sum()), "n_questions": len(np.unique(clusters[at]))})
    columns = ["rate", "low", "high", "rate_lowest", "rate_highest", "rate_expected", "n_tied", "n_logs", "n_questions"]
    return pd.DataFrame(rows, columns=["split", *columns])


def substring_accuracy(labels: pd.DataFrame, text: str | Mapping[str, str]) -> pd.DataFrame:
    """Show a fault: step accuracy by containment of texts, as Who&When's published code has it, beside equality.

    Its `evaluate.py` asks whether the labelled step stands *in* the predicted text, so that "10" is right where the
    label is 1 or 0, and "0123456789" wherever the label has one digit. The number is for showing what the fault is
    worth, never for reporting.

    Parameters
    ----------
    labels : DataFrame
        From `oracle_labels`.
    text : str, or mapping of log_id to str
        The answer as text, one for all logs or one a log; a log that has none is answered wrongly.

    Returns
    -------
    DataFrame
        One row a split: split, rate_substring_fault, rate_exact (the whole text is the number), n_logs, n_unanswered.

    Notes
    -----
    ag2ai/Agents_Failure_Attribution, issues 8 and 14.
    """
    check_labels(labels)
    given = pd.Series([text] * len(labels) if isinstance(text, str) else [text.get(log) for log in labels["log_id"]])
    answer = ["" if pd.isna(one) else str(one) for one in given]
    label = labels["mistake_step"].astype(int).astype(str)
    frame = pd.DataFrame({"split": labels["split"].to_numpy(), "n_unanswered": given.isna()})
    frame["rate_substring_fault"] = [wanted in found for wanted, found in zip(label, answer, strict=True)]
    frame["rate_exact"] = [wanted == _whole(found) for wanted, found in zip(label, answer, strict=True)]
    frame["n_logs"] = 1
    how = {"rate_substring_fault": "mean", "rate_exact": "mean", "n_logs": "sum", "n_unanswered": "sum"}
    return frame.groupby("split", sort=False).agg(how).reset_index()


def reported_random_row(labels: pd.DataFrame, steps: pd.DataFrame) -> pd.DataFrame:
    """Set the random row that Who&When prints beside the one that its data give.

    Parameters
    ----------
    labels, steps : DataFrame
        Of both splits, "algorithm-generated" and "hand-crafted".

    Returns
    -------
    DataFrame
        One row a printed cell: split, measure, printed (per cent, as printed), reported (the same as a rate),
        recomputed (for agents: each role a log writes is an agent, which is what the paper's numbers come from),
        recomputed_agents (agents as labels name them), explanation.

    Raises
    ------
    FaultbookError
        If a split is not among the labels.

    Notes
    -----
    arXiv 2505.00212, table 1, row "Random"; ag2ai/Agents_Failure_Attribution, issue 13.
    """
    lacking = [split for split, _ in PRINTED_RANDOM if split not in set(labels["split"])]
    if lacking:
        raise FaultbookError(f"no labels of split '{lacking[0]}'; the printed row needs both splits of Who&When")
    known = random_accuracy(labels, steps, tolerance=(0,)).set_index(["split", "measure", "vocabulary"])["rate"]
    guess = {cell: float(known[(*cell, "roles" if cell[1] == "agent" else "steps")]) for cell in PRINTED_RANDOM}
    rows = []
    for cell, printed in PRINTED_RANDOM.items():
        collapsed = float(known[(*cell, "agents")]) if cell[1] == "agent" else np.nan
        rows.append((*cell, printed, float(printed) / 100, guess[cell], collapsed, _explained(cell, printed, guess)))
    columns = ["split", "measure", "printed", "reported", "recomputed", "recomputed_agents", "explanation"]
    return pd.DataFrame(rows, columns=columns)


def _explained(cell: tuple[str, str], printed: str, guess: Mapping[tuple[str, str], float]) -> str:
    """Which cell's value is printed here."""
    if f"{100 * guess[cell]:.2f}" == printed:
        return "as recomputed"
    owners = [other for other, value in guess.items() if f"{100 * value:.2f}" == printed]
    if not owners:
        return "does not follow from these labels"
    return f"cells swapped: this is the {owners[0][1]} of {owners[0][0]}"


def chances(
    labels: pd.DataFrame, steps: pd.DataFrame | None, tolerances: Mapping[int, str]
) -> dict[tuple[str, str], float]:
    """What a uniform guess scores, by split and measure."""
    splits = labels["split"].to_numpy(dtype=object)
    return {
        (split, measure): mean_or_missing(share[scored & (splits == split)])
        for measure, vocabulary, share, scored in _guesses(labels, steps, tolerances)
        if vocabulary != "roles"
        for split in dict.fromkeys(splits)
    }


def _guesses(
    labels: pd.DataFrame, steps: pd.DataFrame | None, tolerances: Mapping[int, str]
) -> Iterator[tuple[str, str, Floats, npt.NDArray[np.bool_]]]:
    """Measure, vocabulary, the share of guesses that are right per label (NaN if unknown), and which labels count."""
    n_steps = labels["n_steps"].astype("Float64").to_numpy(dtype=np.float64, na_value=np.nan)
    n_steps = np.where(n_steps >= 1, n_steps, np.nan)
    label = labels["mistake_step"].to_numpy(dtype=np.float64)
    for most, name in tolerances.items():
        near = np.minimum(n_steps - 1, label + most) - np.maximum(0, label - most) + 1
        yield name, "steps", np.maximum(near, 0) / n_steps, np.ones(len(labels), dtype=bool)
    for vocabulary, column in (("agents", "agent"), ("roles", "role")):
        share = np.full(len(labels), np.nan) if steps is None else _share(labels, steps, column)
        yield "agent", vocabulary, share, labels["mistake_agent"].notna().to_numpy()


def _share(labels: pd.DataFrame, steps: pd.DataFrame, column: str) -> Floats:
    """One over the number of distinct speakers where one of them is right, else 0; NaN without a speaker."""
    spoken = _speakers(labels, steps, column)
    if column == "agent":
        right = spoken["name"].to_numpy(dtype=object) == plain_names(labels["mistake_agent"])[spoken["row"]]
    else:
        right = spoken["step"].to_numpy() == labels["mistake_step"].to_numpy()[spoken["row"]]
    n_speakers = np.bincount(spoken.drop_duplicates(["row", "name"])["row"], minlength=len(labels))
    possible = np.bincount(spoken["row"], weights=right, minlength=len(labels)) > 0
    share: Floats = np.divide(possible, n_speakers, out=np.full(len(labels), np.nan), where=n_speakers > 0)
    return share


def _speakers(labels: pd.DataFrame, steps: pd.DataFrame, column: str) -> pd.DataFrame:
    """The steps of labelled logs whose speaker is known: row (of the label), step, name; of agents, no human."""
    require_columns(steps, ["log_id", "step", column], "steps")
    spoken = pd.DataFrame({"row": pd.Index(labels["log_id"]).get_indexer(steps["log_id"])})
    spoken["step"], spoken["name"] = steps["step"].to_numpy(), plain_names(steps[column])
    kept = (spoken["row"] >= 0) & spoken["name"].notna()
    return spoken[kept & (spoken["name"] != HUMAN) if column == "agent" else kept]


def _leave_one_out(counts: npt.NDArray[Any]) -> float:
    """How often the most frequent of all other labels is right, from the number of logs of each label.

    Taking a log away lowers the count of its own label alone, so only a label that leads by itself can still be found.
    """
    n, top = int(counts.sum()), int(counts.max(initial=0))
    if n < 2:
        return float("nan")
    if (counts == top).sum() > 1:
        return 0.0
    second = int(counts[counts < top].max(initial=0))
    share = 1.0 if top - 1 > second else 1 / (1 + int((counts == second).sum()))
    return top * share / n


def _whole(text: str) -> str:
    """The whole number that a text is, as digits without leading zeros; empty if it is none."""
    digits = text.strip().removeprefix("+")
    return (digits.lstrip("0") or "0") if digits.isascii() and digits.isdigit() else ""
