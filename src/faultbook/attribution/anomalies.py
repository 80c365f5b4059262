"""Oddities of published logs that no file shows by itself, found in the tables, and what to do about them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

import pandas as pd

from faultbook.errors import DataError

Policy = Literal["flag", "drop", "fail"]
POLICIES = ("flag", "drop", "fail")
ANOMALY_COLUMNS = ["check", "log_id", "found", "repair"]
# An annotator whose rows are a selection from another's by definition of the format is no suspicious copy.
DERIVED_ANNOTATORS = ("root cause",)
_JUDGED_BY = ("log_id", "annotator")
_SAID = ("step", "is_failure", "agent", "category")
_TEXTS = ("reason", "ideal_action")
_REPAIRS = {
    "identical history": "count one of them, or neither: their labels contradict each other or their question differs",
    "label agent is not the speaker": "trust the step, or drop the log from agent accuracies",
    "question in several splits": "cluster by question_id: these logs are not independent",
    "label out of range": "read the later release of the data",
    "identical judgements": "one of the two is a copy: ask who annotated",
}
CHECKS = tuple(_REPAIRS)

Frames = Mapping[str, pd.DataFrame]
Found = Iterator[tuple[str, str]]


def find_anomalies(tables: Frames) -> pd.DataFrame:
    """Look for oddities in the tables of logs.

    Parameters
    ----------
    tables : mapping of str to DataFrame
        `logs`, `steps` and `annotations`, as `tables` defines them.

    Returns
    -------
    DataFrame
        One row for each log and oddity: check, log_id, found, repair. The checks are

        * "identical history": speakers and texts are those of another log, under another question or other labels;
        * "label agent is not the speaker": the agent that a label blames does not speak at its step (compared without
          regard to case: older releases of Who&When write "Websurfer");
        * "question in several splits": a log of another split has the same question;
        * "label out of range": a label names a step beyond the log's last;
        * "identical judgements": two annotators of a log agree in every step and, to the letter, in every text. Only
          judgements with a text count: two who flag the same steps without a word may well agree.

    Notes
    -----
    Who&When at f4d2b6d has 2 pairs of identical histories, 6 labels whose agent does not speak and 42 questions in both
    subsets; its releases before July 2025 have 3 labels out of range. Copied annotation blocks are known from MAST-Data
    (multi-agent-systems-failure-taxonomy/MAST, issue 16).
    """
    checks: dict[str, Callable[[Frames], Found]] = {
        "identical history": _identical_histories,
        "label agent is not the speaker": _agents_that_do_not_speak,
        "question in several splits": _shared_questions,
        "label out of range": _out_of_range,
        "identical judgements": _identical_judgements,
    }
    rows = [(name, *found, _REPAIRS[name]) for name, check in checks.items() for found in check(tables)]
    return pd.DataFrame(rows, columns=ANOMALY_COLUMNS, dtype="string")


def handle_anomalies(tables: Frames, policy: Policy) -> dict[str, pd.DataFrame]:
    """Find the oddities and apply a policy to them.

    Parameters
    ----------
    tables : mapping of str to DataFrame
        The tables by name, each with a `log_id`.
    policy : {"flag", "drop", "fail"}
        "flag" reports and changes nothing. "drop" takes every log with any oddity out of every table, both logs of a
        pair too; mind that this takes out 84 of the 184 logs of Who&When for questions that both subsets share, and
        half of each subset is not a random half. "fail" raises.

    Returns
    -------
    dict of DataFrame
        The tables, and `anomalies`, which also tells of dropped logs.

    Raises
    ------
    DataError
        Under "fail", if there is any oddity.
    """
    anomalies = find_anomalies(tables)
    if policy == "fail" and len(anomalies):
        first = anomalies.iloc[0]
        text = f"{len(anomalies)} anomalies, the first: log '{first['log_id']}', {first['check']}: {first['found']}"
        raise DataError(text, mend="read with anomalies='flag' or 'drop'")
    kept = dict(tables)
    if policy == "drop":
        odd = set(anomalies["log_id"])
        kept = {name: table[~table["log_id"].isin(odd)].reset_index(drop=True) for name, table in tables.items()}
        anomalies["repair"] = pd.Series("left out", index=anomalies.index, dtype="string")
    return {**kept, "anomalies": anomalies}


def _identical_histories(tables: Frames) -> Found:
    logs = tables["logs"].dropna(subset="content_sha256")
    again = logs[logs.duplicated("content_sha256", keep=False)]
    labels = _labels(tables["annotations"], set(again["log_id"]))
    for _, group in again.groupby("content_sha256", sort=False):
        said = {log_id: labels.get(log_id, frozenset()) for log_id in group["log_id"]}
        differs = [
            what
            for what, n in (
                ("another question", group["question_id"].nunique()),
                ("other labels", len(set(said.values()))),
            )
            if n > 1
        ]
        for log_id in group["log_id"] if differs else ():
            others = ", ".join(other for other in group["log_id"] if other != log_id)
            yield log_id, f"the steps of {others}, with {' and '.join(differs)}"


def _labels(annotations: pd.DataFrame, log_ids: set[str]) -> dict[str, frozenset[tuple[Any, ...]]]:
    flagged = annotations[annotations["is_failure"] & annotations["log_id"].isin(log_ids)]
    named = flagged.assign(agent=flagged["agent"].fillna(""))
    return {
        str(log_id): frozenset(part[["annotator", "step", "agent"]].itertuples(index=False, name=None))
        for log_id, part in named.groupby("log_id")
    }


def _agents_that_do_not_speak(tables: Frames) -> Found:
    flagged = tables["annotations"].loc[lambda t: t["is_failure"] & t["agent"].notna()]
    both = flagged.merge(tables["steps"], "inner", ["log_id", "step"], suffixes=("", "_speaking"))
    both = both[both["agent_speaking"].notna()]
    blamed = both["agent"].str.casefold()
    other = (blamed != both["agent_speaking"].str.casefold()) & (blamed != both["role"].str.casefold())
    for log_id, part in both[other].groupby("log_id", sort=False):
        yield (
            str(log_id),
            "; ".join(
                f"step {row.step} blames '{row.agent}', and '{row.agent_speaking}' speaks" for row in part.itertuples()
            ),
        )


def _shared_questions(tables: Frames) -> Found:
    logs = tables["logs"].dropna(subset="question_id")
    n_splits = logs.groupby("question_id")["split"].transform("nunique")
    for _, group in logs[n_splits > 1].groupby("question_id", sort=False):
        for log_id, split in zip(group["log_id"], group["split"], strict=True):
            others = ", ".join(group.loc[group["split"] != split, "log_id"])
            yield log_id, f"the question of {others}"


def _out_of_range(tables: Frames) -> Found:
    sized = tables["annotations"].merge(tables["logs"][["log_id", "n_steps"]], "left", "log_id")
    beyond = (sized["step"] >= sized["n_steps"]).fillna(False)
    for log_id, part in sized[beyond].groupby("log_id", sort=False):
        steps = ", ".join(map(str, sorted(set(part["step"]))))
        yield str(log_id), f"step {steps} of {part['n_steps'].iloc[0]} steps"


def _identical_judgements(tables: Frames) -> Found:
    annotations = tables["annotations"]
    own = annotations[~annotations["annotator"].isin(DERIVED_ANNOTATORS)]
    several = own.loc[own.groupby("log_id")["annotator"].transform("nunique") > 1, [*_JUDGED_BY, *_SAID, *_TEXTS]]
    plain = several.astype(object).where(several.notna(), None)
    blocks: dict[str, dict[str, list[tuple[Any, ...]]]] = {}
    wordy = set()
    for log_id, annotator, *said in plain.itertuples(index=False, name=None):
        blocks.setdefault(log_id, {}).setdefault(annotator, []).append(tuple(said))
        if any(text is not None for text in said[-len(_TEXTS) :]):
            wordy.add((log_id, annotator))
    for log_id, by_annotator in blocks.items():
        copies: dict[tuple[Any, ...], list[str]] = {}
        for annotator, block in by_annotator.items():
            if (log_id, annotator) in wordy:
                copies.setdefault(tuple(block), []).append(annotator)
        for annotators in copies.values():
            if len(annotators) > 1:
                yield log_id, f"annotators {', '.join(annotators)} say the same, to the letter"
