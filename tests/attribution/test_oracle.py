"""Single-oracle scores: the numbers of Who&When's shipped labels, brute force on small tables, and what is refused."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from faultbook.attribution.guesses import (
    best_constant,
    most_frequent_speaker,
    random_accuracy,
    reported_random_row,
    substring_accuracy,
)
from faultbook.attribution.labels import LABEL_COLUMNS, oracle_labels
from faultbook.attribution.oracle import SCORE_COLUMNS, oracle_scores
from faultbook.attribution.read import read_logs
from faultbook.errors import FaultbookError
from faultbook.tables import Annotations, Attempts, Logs, Predictions, Steps, typed

ROOT = Path(__file__).resolve().parents[2]
PUBLIC = ROOT.parent / "shared" / "data" / "who-and-when" / "Who&When"
AUTOMATIC, MANUAL = "algorithm-generated", "hand-crafted"


# ---- the shipped labels -----------------------------------------------------------------------------------------


@functools.cache
def who_and_when() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Labels and steps of Who&When, commit f4d2b6d: 126 and 58 logs, as the repository ships them."""
    tables = read_logs(ROOT / "data" / "logs" / "who-and-when-labels.csv")
    return oracle_labels(tables.logs, tables.annotations), tables.steps


def test_the_shipped_labels_are_those_of_the_public_files() -> None:
    if not PUBLIC.is_dir():
        pytest.skip("the public logs of Who&When are not at hand")
    labels, steps = who_and_when()
    known = labels.set_index("log_id")
    turns = {log_id: list(part["role"]) for log_id, part in steps.groupby("log_id")}
    files = [file for folder in ("Algorithm-Generated", "Hand-Crafted") for file in (PUBLIC / folder).glob("*.json")]
    assert len(files) == len(labels)
    for file in files:
        document, log_id = json.loads(file.read_text(encoding="utf-8")), f"{file.parent.name.lower()}/{file.stem}"
        found = [document["mistake_agent"], int(document["mistake_step"]), len(document["history"])]
        assert known.loc[log_id, ["mistake_agent", "mistake_step", "n_steps"]].to_list() == found
        assert turns[log_id] == [turn.get("name") or turn["role"] for turn in document["history"]]


def test_the_labels_of_who_and_when() -> None:
    labels, _ = who_and_when()
    assert labels["split"].value_counts().to_dict() == {AUTOMATIC: 126, MANUAL: 58}
    assert labels["question_id"].nunique() == 142  # 42 questions stand in both splits
    assert list(labels.columns) == LABEL_COLUMNS


# The paper's random row recomputed from the data: AG agent 29.10, AG step 12.00, HC step 4.16, HC agent 42.21 with
# names as labels have them and 19.06 with the roles that the logs write (ag2ai/Agents_Failure_Attribution, issue 13);
# and the tolerances, counted from the same 184 files.
@pytest.mark.parametrize(
    ("split", "measure", "vocabulary", "per_cent"),
    [
        (AUTOMATIC, "agent", "agents", 29.10),
        (AUTOMATIC, "agent", "roles", 29.10),
        (AUTOMATIC, "step", "steps", 12.00),
        (AUTOMATIC, "step ±1", "steps", 33.81),
        (AUTOMATIC, "step ±2", "steps", 50.51),
        (AUTOMATIC, "step ±3", "steps", 65.67),
        (AUTOMATIC, "step ±5", "steps", 87.24),
        (MANUAL, "agent", "agents", 42.21),
        (MANUAL, "agent", "roles", 19.06),
        (MANUAL, "step", "steps", 4.16),
        (MANUAL, "step ±1", "steps", 11.22),
        (MANUAL, "step ±2", "steps", 17.85),
        (MANUAL, "step ±3", "steps", 24.21),
        (MANUAL, "step ±5", "steps", 34.11),
    ],
)
def test_random_accuracy_of_who_and_when(split: str, measure: str, vocabulary: str, per_cent: float) -> None:
    known = random_accuracy(*who_and_when()).set_index(["split", "measure", "vocabulary"])
    row = known.loc[(split, measure, vocabulary)]
    assert 100 * row["rate"] == pytest.approx(per_cent, abs=0.005)
    assert (row["n_logs"], row["note"]) == (126 if split == AUTOMATIC else 58, "")


def test_the_terminal_is_an_agent() -> None:
    # 29.10 % is reached only with Computer_terminal among the agents; without it a guess would score 39.42 %.
    labels, steps = who_and_when()
    known = random_accuracy(labels, steps[steps["agent"] != "Computer_terminal"])
    rate = known[(known["split"] == AUTOMATIC) & (known["vocabulary"] == "agents")]["rate"].item()
    assert 100 * rate == pytest.approx(39.42, abs=0.005)


def test_the_printed_row_is_swapped() -> None:
    # arXiv 2505.00212, table 1: the printed AG step is our HC agent, the printed HC agent our AG step.
    row = reported_random_row(*who_and_when()).set_index(["split", "measure"])
    assert row["printed"].to_dict() == {
        (AUTOMATIC, "agent"): "29.10",
        (AUTOMATIC, "step"): "19.06",
        (MANUAL, "agent"): "12.00",
        (MANUAL, "step"): "4.16",
    }
    assert row["explanation"].to_dict() == {
        (AUTOMATIC, "agent"): "as recomputed",
        (AUTOMATIC, "step"): f"cells swapped: this is the agent of {MANUAL}",
        (MANUAL, "agent"): f"cells swapped: this is the step of {AUTOMATIC}",
        (MANUAL, "step"): "as recomputed",
    }
    assert row["reported"].to_list() == pytest.approx([0.2910, 0.1906, 0.12, 0.0416])
    assert (100 * row["recomputed"]).round(2).to_list() == [29.10, 12.00, 19.06, 4.16]
    assert (100 * row["recomputed_agents"]).round(2).dropna().to_list() == [29.10, 42.21]


def test_labels_of_another_release_do_not_give_the_printed_row() -> None:
    labels, steps = who_and_when()
    row = reported_random_row(labels[labels["log_id"] != f"{MANUAL}/1"], steps)
    assert "does not follow from these labels" in set(row["explanation"])


def test_best_constant_of_who_and_when() -> None:
    # Counted from the labels: step 1 is right in 34 of 126, steps 4 and 8 in 9 of 58 each; WebSurfer in 33 of 58.
    row = best_constant(who_and_when()[0]).set_index(["split", "measure"])
    assert row.loc[(AUTOMATIC, "step"), ["constant", "n_right", "n_logs"]].to_list() == ["1", 34, 126]
    assert row.loc[(MANUAL, "step"), ["constant", "n_right", "n_logs"]].to_list() == ["4, 8", 9, 58]
    assert row.loc[(MANUAL, "agent"), ["constant", "n_right", "n_logs"]].to_list() == ["WebSurfer", 33, 58]
    assert (100 * row["rate_in_sample"]).round(1).to_dict() == {
        (AUTOMATIC, "step"): 27.0,
        (AUTOMATIC, "agent"): 14.3,
        (MANUAL, "step"): 15.5,
        (MANUAL, "agent"): 56.9,
    }
    # Out of sample nothing is left of the tie: whichever of 4 and 8 a log bears, the others have the other one.
    assert row.loc[(MANUAL, "step"), "rate_leave_one_out"] == 0
    assert row.loc[(AUTOMATIC, "step"), "rate_leave_one_out"] == pytest.approx(34 / 126)


def test_most_frequent_speaker_of_who_and_when() -> None:
    # 42.9 % on AG is the rule "the first to speak among those who speak most"; 37 logs have such a tie.
    row = most_frequent_speaker(*who_and_when(), n_resamples=500).set_index("split")
    rates = ["rate", "rate_lowest", "rate_highest", "rate_expected"]
    assert (100 * row.loc[AUTOMATIC, rates].astype(float)).round(1).to_list() == [42.9, 29.4, 50.8, 38.5]
    assert row.loc[AUTOMATIC, ["n_tied", "n_logs", "n_questions"]].to_list() == [37, 126, 126]
    assert (100 * row.loc[MANUAL, rates].astype(float)).round(1).to_list() == [31.0] * 4
    assert row.loc[AUTOMATIC, "low"] < 54 / 126 < row.loc[AUTOMATIC, "high"]


# ag2ai/Agents_Failure_Attribution, issues 8 and 14; measured on the labels: the constant "10" scores 42.9 % on AG by
# containment and 0 % by equality, the ten digits 100 %.
@pytest.mark.parametrize(
    ("text", "fault", "exact"), [("10", 42.86, 0.0), ("0123456789", 100.0, 0.0), ("1", 26.98, 26.98)]
)
def test_the_substring_fault_of_who_and_when(text: str, fault: float, exact: float) -> None:
    row = substring_accuracy(who_and_when()[0], text).set_index("split").loc[AUTOMATIC]
    assert 100 * row["rate_substring_fault"] == pytest.approx(fault, abs=0.005)
    assert 100 * row["rate_exact"] == pytest.approx(exact, abs=0.005)
    assert (row["n_logs"], row["n_unanswered"]) == (126, 0)


def test_a_constant_as_a_model() -> None:
    labels, steps = who_and_when()
    answers = {("always 1", log_id, 0): (1, "WebSurfer") for log_id in labels["log_id"]}
    row = scored(answers, labels, steps=steps).set_index(["split", "measure"])
    assert row.loc[(AUTOMATIC, "step"), "rate"] == pytest.approx(34 / 126)
    assert row.loc[(MANUAL, "agent"), "rate"] == pytest.approx(33 / 58)
    assert row.loc[(MANUAL, "agent"), "chance"] == pytest.approx(0.4221, abs=5e-5)
    assert row.loc[(AUTOMATIC, "step ±5"), "chance"] == pytest.approx(0.8724, abs=5e-5)
    assert pd.isna(row.loc[(AUTOMATIC, "agent"), "low"])  # no WebSurfer there: every log is wrong, so no spread


# ---- small tables -----------------------------------------------------------------------------------------------

Answer = tuple[int, str | None] | str  # step and agent, or the status of an attempt without an answer


def labelled(*rows: tuple[str, int, str | None], n_steps: int | None = 10, split: str = "s") -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=["log_id", "mistake_step", "mistake_agent"])
    frame = frame.assign(split=split, question_id=pd.array([pd.NA] * len(frame), dtype="string"), n_steps=n_steps)
    return frame[LABEL_COLUMNS].astype({"mistake_agent": "string", "n_steps": "Int64"})


def tables(answers: dict[tuple[str, str, int], Answer]) -> tuple[pd.DataFrame, pd.DataFrame]:
    predictions, attempts = [], []
    for (model, log_id, sample), answer in answers.items():
        status = answer if isinstance(answer, str) else "ok"
        attempts.append((log_id, model, sample, status, False, 0))
        if not isinstance(answer, str):
            predictions.append((log_id, model, sample, 0, answer[0], answer[1], None, None))
    return typed(predictions, Predictions), typed(attempts, Attempts)


def scored(answers: dict[tuple[str, str, int], Answer], labels: pd.DataFrame, **options: Any) -> pd.DataFrame:
    return oracle_scores(*tables(answers), labels, **{"n_resamples": 100, **options})


THREE = labelled(("a", 1, "A"), ("b", 5, "B"), ("c", 9, "C"))


def test_integers_and_whole_names_are_compared() -> None:
    # The published scorer would take 10 for 1, and "AB" for "A".
    answers: dict[tuple[str, str, int], Answer] = {
        ("m", "a", 0): (10, "AB"),
        ("m", "b", 0): (5, "B"),
        ("m", "c", 0): (8, "c"),
    }
    row = scored(answers, THREE).set_index("measure")
    assert row["rate"].to_dict() == pytest.approx(
        {"step": 1 / 3, "step ±1": 2 / 3, "step ±2": 2 / 3, "step ±3": 2 / 3, "step ±5": 2 / 3, "agent": 1 / 3}
    )
    assert list(row.reset_index()[SCORE_COLUMNS].columns) == SCORE_COLUMNS


def test_what_is_not_answered_is_wrong_and_counted() -> None:
    answers: dict[tuple[str, str, int], Answer] = {("m", "a", 0): (1, "A"), ("m", "b", 0): "truncated"}
    row = scored(answers, THREE, tolerance=(0,)).set_index("measure").loc["step"]  # and no attempt on c
    assert (row["rate"], row["rate_of_answered"]) == pytest.approx((1 / 3, 1.0))
    assert (row["n_logs"], row["n_questions"], row["n_samples"], row["n_unanswered"]) == (3, 3, 1, 2)


@pytest.mark.parametrize("status", ["abstained", "unparsable", "truncated", "missing"])
def test_a_right_answer_of_a_failed_attempt_does_not_count(status: str) -> None:
    predictions, attempts = tables({("m", "a", 0): (1, "A"), ("m", "b", 0): (5, "B")})
    attempts.loc[0, "status"] = status
    row = oracle_scores(predictions, attempts, THREE, tolerance=(0,), n_resamples=50).set_index("measure")
    assert row["rate"].to_list() == pytest.approx([1 / 3, 1 / 3])
    assert row["n_unanswered"].to_list() == [2, 2]


def test_the_first_item_is_the_answer_whatever_the_order_of_rows() -> None:
    predictions, attempts = tables({("m", "a", 0): (1, "A")})
    more = predictions.assign(position=1, step=7)
    row = oracle_scores(pd.concat([more, predictions]), attempts, THREE, tolerance=(0,), n_resamples=50)
    assert row["rate"].to_list() == pytest.approx([1 / 3, 1 / 3])


def test_each_log_is_the_mean_of_its_samples() -> None:
    answers: dict[tuple[str, str, int], Answer] = {
        ("m", "a", 0): (1, "A"),
        ("m", "a", 1): (2, "A"),
        ("m", "b", 0): (5, "B"),
        ("m", "b", 1): "abstained",
        ("m", "c", 0): (9, "C"),  # and sample 1 is owed
    }
    row = scored(answers, THREE, tolerance=(0,)).set_index("measure").loc["step"]
    assert row["rate"] == pytest.approx((1 / 2 + 1 / 2 + 1 / 2) / 3)
    assert row["rate_of_answered"] == pytest.approx((1 / 2 + 1 + 1) / 3)
    assert (row["n_samples"], row["n_unanswered"]) == (2, 2)


def test_an_agent_that_was_never_asked_for_is_missing_and_not_wrong() -> None:
    row = scored({("m", log, 0): (1, None) for log in "abc"}, THREE).set_index("measure")
    assert row.loc["step", "rate"] == pytest.approx(1 / 3)
    assert row.loc["agent", ["rate", "low", "high", "rate_of_answered"]].isna().all()
    assert row.loc["agent", "n_unanswered"] == 3


def test_a_label_without_an_agent_is_left_out_of_the_agent() -> None:
    labels = labelled(("a", 1, "A"), ("b", 5, None))
    row = scored({("m", "a", 0): (1, "A"), ("m", "b", 0): (1, "A")}, labels).set_index("measure")
    assert (row.loc["agent", "n_logs"], row.loc["agent", "rate"]) == (1, 1.0)
    assert row.loc["step", "n_logs"] == 2


def test_a_model_owes_every_split() -> None:
    labels = pd.concat([THREE, labelled(("d", 1, "A"), split="t")], ignore_index=True)
    row = scored({("m", "a", 0): (1, "A")}, labels, tolerance=(0,)).set_index(["split", "measure"])
    assert row.loc[("t", "step"), ["rate", "n_unanswered"]].to_list() == [0, 1]
    assert pd.isna(row.loc[("t", "step"), "rate_of_answered"])


def test_questions_are_the_clusters() -> None:
    # Four logs of two questions, all or nothing a question: a resample of 2 has the mean 0, 1/2 or 1.
    labels = labelled(*((name, 1, "A") for name in "abcd")).assign(question_id=["q", "q", "r", "r"])
    answers: dict[tuple[str, str, int], Answer] = {("m", name, 0): (1 if name in "ab" else 2, "A") for name in "abcd"}
    row = scored(answers, labels, n_resamples=1000).set_index("measure").loc["step"]
    assert (row["rate"], row["low"], row["high"], row["n_logs"], row["n_questions"]) == (0.5, 0, 1, 4, 2)


def test_chance_is_missing_where_the_length_or_the_speakers_are_unknown() -> None:
    row = scored({("m", "a", 0): (1, "A")}, labelled(("a", 1, "A"), n_steps=None)).set_index("measure")
    assert row["chance"].isna().all()
    steps = typed([("a", 0, None, None)], Steps)
    known = random_accuracy(labelled(("a", 1, "A"), ("b", 2, "B"), n_steps=None), steps)
    assert known["rate"].isna().all()
    assert set(known["note"]) == {
        "undefined (number of steps of 2 logs unknown)",
        "undefined (speakers of 2 logs unknown)",
    }


def test_the_human_is_no_agent_and_is_a_role() -> None:
    turns = ["human", "Orchestrator (thought)", "Orchestrator (-> B)", "B"]
    steps = typed([("a", step, role, role.split(" (")[0]) for step, role in enumerate(turns)], Steps)
    known = random_accuracy(labelled(("a", 1, "Orchestrator"), n_steps=4), steps, tolerance=(0, 1))
    assert known.set_index(["measure", "vocabulary"])["rate"].to_dict() == pytest.approx(
        {("step", "steps"): 1 / 4, ("step ±1", "steps"): 3 / 4, ("agent", "agents"): 1 / 2, ("agent", "roles"): 1 / 4}
    )


def test_a_label_beyond_its_log_cannot_be_guessed() -> None:
    # Releases of Who&When before July 2025 have the label 8 of a log of 5 steps.
    steps = typed([("a", step, "A", "A") for step in range(5)], Steps)
    known = random_accuracy(labelled(("a", 8, "Z"), n_steps=5), steps, tolerance=(0, 3, 4, 5))
    assert known["rate"].to_list() == pytest.approx([0, 0, 1 / 5, 2 / 5, 0, 0])


# ---- against brute force ----------------------------------------------------------------------------------------

LABELS = st.lists(st.tuples(st.integers(0, 12), st.sampled_from("ABC")), min_size=1, max_size=8)


@settings(max_examples=13, deadline=None)
@given(LABELS, st.data())
def test_rates_against_plain_loops(given_labels: list[tuple[int, str]], data: st.DataObject) -> None:
    names = [f"log {number}" for number in range(len(given_labels))]
    labels = labelled(*((name, *label) for name, label in zip(names, given_labels, strict=True)))
    answer = st.tuples(st.integers(0, 12), st.sampled_from(["A", "B", "C", None])) | st.sampled_from(["truncated"])
    keys = st.tuples(st.just("m"), st.sampled_from(names), st.integers(0, 2))
    answers: dict[tuple[str, str, int], Answer] = data.draw(st.dictionaries(keys, answer, min_size=1, max_size=15))
    most = data.draw(st.integers(0, 4))
    row = scored(answers, labels, tolerance=(most,), n_resamples=20).set_index("measure")
    n_samples = len({sample for _, _, sample in answers})
    for measure in row.index:
        total, n_answered = 0.0, 0
        for name, (step, agent) in zip(names, given_labels, strict=True):
            mine = [found for (_, log, _), found in answers.items() if log == name and not isinstance(found, str)]
            mine = mine if measure != "agent" else [found for found in mine if found[1] is not None]
            n_answered += len(mine)
            right = [f[1] == agent if measure == "agent" else abs(f[0] - step) <= most for f in mine]
            total += sum(right) / n_samples
        assert row.loc[measure, "n_unanswered"] == len(names) * n_samples - n_answered
        if measure == "agent" and not n_answered:
            continue
        assert row.loc[measure, "rate"] == pytest.approx(total / len(names))


@settings(max_examples=13, deadline=None)
@given(st.lists(st.integers(0, 6), min_size=1, max_size=12))
def test_the_constant_against_every_choice(steps: list[int]) -> None:
    labels = labelled(*((f"log {number}", step, "A") for number, step in enumerate(steps)))
    row = best_constant(labels).set_index("measure").loc["step"]
    assert row["rate_in_sample"] == max(steps.count(step) for step in steps) / len(steps)
    if len(steps) == 1:
        assert pd.isna(row["rate_leave_one_out"])
        return
    total = 0.0
    for number, step in enumerate(steps):
        others = steps[:number] + steps[number + 1 :]
        modes = {other for other in others if others.count(other) == max(map(others.count, others))}
        total += (step in modes) / len(modes)
    assert row["rate_leave_one_out"] == pytest.approx(total / len(steps))


@settings(max_examples=13, deadline=None)
@given(st.lists(st.integers(1, 15), min_size=1, max_size=6), st.integers(0, 6), st.data())
def test_random_steps_against_every_guess(lengths: list[int], most: int, data: st.DataObject) -> None:
    at = [data.draw(st.integers(0, length + 2)) for length in lengths]
    labels = labelled(*((f"log {number}", step, "A") for number, step in enumerate(at))).assign(n_steps=lengths)
    rate = random_accuracy(labels, typed([], Steps), tolerance=(most,))["rate"][0]
    shares = [np.mean([abs(g - step) <= most for g in range(n)]) for n, step in zip(lengths, at, strict=True)]
    assert rate == pytest.approx(np.mean(shares))


@settings(max_examples=8, deadline=None)
@given(LABELS, st.lists(st.sampled_from("ABCDE"), min_size=1, max_size=9), st.data())
def test_names_and_order_do_not_count(labels: list[tuple[int, str]], turns: list[str], data: st.DataObject) -> None:
    frame = labelled(*((f"log {number}", *label) for number, label in enumerate(labels)))
    steps = typed([(log, step, turn, turn) for log in frame["log_id"] for step, turn in enumerate(turns)], Steps)
    order = data.draw(st.permutations(range(len(frame))))
    renamed = dict(zip("ABCDE", data.draw(st.permutations(["Blu-Ray_Expert", "B", "Agent 7", "x", "A"])), strict=True))
    other = frame.iloc[order].reset_index(drop=True)
    other["mistake_agent"] = other["mistake_agent"].map(renamed).astype("string")
    moved = steps.iloc[::-1].assign(role=steps["role"].map(renamed), agent=steps["agent"].map(renamed))
    for measure in (random_accuracy, functools.partial(most_frequent_speaker, n_resamples=20)):
        one, two = measure(frame, steps), measure(other, moved)
        numbers = one.select_dtypes("number").columns
        np.testing.assert_allclose(two[numbers].to_numpy(float), one[numbers].to_numpy(float), atol=1e-12)


@settings(max_examples=8, deadline=None)
@given(LABELS, st.text(alphabet="0123456789 ", max_size=6))
def test_equality_never_scores_more_than_containment(labels: list[tuple[int, str]], text: str) -> None:
    frame = labelled(*((f"log {number}", *label) for number, label in enumerate(labels)))
    row = substring_accuracy(frame, text).iloc[0]
    assume(not text.strip().startswith("0") or text.strip() == "0")  # "01" is 1, and holds it
    assert row["rate_exact"] <= row["rate_substring_fault"]
    assert row["rate_exact"] == np.mean([text.strip() == str(step) for step, _ in labels])


def test_answers_of_each_log_and_logs_without_one() -> None:
    row = substring_accuracy(THREE, {"a": " 01\n", "b": "step 5"}).iloc[0]
    assert row["rate_exact"] == pytest.approx(1 / 3)
    assert row["rate_substring_fault"] == pytest.approx(2 / 3)
    assert row["n_unanswered"] == 1
    assert substring_accuracy(THREE, "9" * 10_000)["rate_exact"].item() == 0  # longer than Python turns into a number


# ---- what is refused --------------------------------------------------------------------------------------------


def annotated(*rows: tuple[str, int, str, bool]) -> tuple[pd.DataFrame, pd.DataFrame]:
    logs = [(log, "s", 9, None, "made up", None, None) for log in ("a", "b")]
    return typed(logs, Logs), typed([(*row, "A", None, None, None) for row in rows], Annotations)


def test_labels_of_small_tables() -> None:
    labels = oracle_labels(*annotated(("b", 3, "label", True), ("a", 1, "label", True), ("a", 2, "label", False)))
    assert labels[["log_id", "mistake_step", "mistake_agent"]].to_numpy().tolist() == [["a", 1, "A"], ["b", 3, "A"]]
    assert labels["question_id"].isna().all()


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("a", 1, "label", True), ("a", 2, "label", True), ("b", 1, "label", True)], "1 logs have several flagged"),
        ([("a", 1, "1", True), ("a", 1, "2", False), ("b", 1, "1", True)], "1 logs have several annotators"),
        ([("a", 1, "label", True), ("b", 1, "label", False)], r"1 logs have no flagged step \(first: b\)"),
        ([("a", 1, "label", True), ("z", 1, "label", True)], "1 logs are annotated and not listed"),
    ],
)
def test_one_label_a_log(rows: list[tuple[str, int, str, bool]], message: str) -> None:
    with pytest.raises(FaultbookError, match=message) as caught:
        oracle_labels(*annotated(*rows))
    assert "\n" not in str(caught.value)
    if "listed" not in message:
        assert "single-oracle scores need one label a log" in str(caught.value)


GOOD: dict[tuple[str, str, int], Answer] = {("m", "a", 0): (1, "A")}


def test_faults_of_the_tables_are_one_clear_line() -> None:
    predictions, attempts = tables(GOOD)
    cases: list[tuple[tuple[Any, ...], str]] = [
        ((predictions.drop(columns="step"), attempts, THREE), "predictions: columns missing: step"),
        ((predictions, attempts.drop(columns="status"), THREE), "attempts: columns missing: status"),
        ((predictions, attempts, THREE.drop(columns="split")), "labels: columns missing: split"),
        ((predictions.assign(model="x"), attempts, THREE), r"1 samples have predictions and no attempt \(first: x, a"),
        ((predictions, pd.concat([attempts, attempts]), THREE), r"attempts: 1 stand twice \(first: m, a, sample 0\)"),
        ((predictions, attempts, pd.concat([THREE, THREE])), r"3 logs stand twice \(first: a\); keep one label a log"),
        ((predictions, attempts, THREE.iloc[:0]), "labels: no log"),
        ((predictions, attempts, labelled(("z", 1, "A"))), "no attempt on a labelled log"),
        ((predictions, attempts, THREE.assign(mistake_step=np.nan)), "3 logs have no labelled step"),
    ]
    for given_tables, message in cases:
        with pytest.raises(FaultbookError, match=message) as caught:
            oracle_scores(*given_tables)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("tolerance", [(-1,), (0.5,), (True,), ("1",)])
def test_a_tolerance_is_a_number_of_steps(tolerance: Any) -> None:
    with pytest.raises(FaultbookError, match="tolerance holds"):
        scored(GOOD, THREE, tolerance=tolerance)


def test_the_printed_row_needs_both_splits() -> None:
    with pytest.raises(FaultbookError, match="no labels of split 'algorithm-generated'"):
        reported_random_row(THREE, typed([], Steps))
    with pytest.raises(FaultbookError, match="steps: columns missing: agent"):
        random_accuracy(THREE, typed([], Steps).drop(columns="agent"))


def test_no_prediction_at_all() -> None:
    row = scored({("m", log, 0): "unparsable" for log in "abc"}, THREE).set_index("measure")
    assert (row["rate"] == 0).all()
    assert row["rate_of_answered"].isna().all()
    assert (row["n_unanswered"] == 3).all()


def test_many_logs() -> None:
    n = 100_000
    draw = np.random.default_rng(0)
    ids = pd.Series(range(n)).astype("string")
    labels = pd.DataFrame({"log_id": ids, "split": "s", "question_id": ids, "n_steps": 20})
    labels = labels.assign(mistake_step=draw.integers(0, 20, n), mistake_agent="A")
    attempts = pd.concat([pd.DataFrame({"log_id": ids, "model": m, "sample": 0, "status": "ok"}) for m in "xyz"])
    predictions = attempts.assign(position=0, step=draw.integers(0, 20, 3 * n), agent="A")
    result = oracle_scores(predictions, attempts, labels, tolerance=(0, 1))
    step = result[result["measure"] == "step"]
    assert step["rate"].to_list() == pytest.approx([1 / 20] * 3, abs=0.003)
    assert (step["low"] < step["rate"]).all()
    assert ((step["high"] - step["low"]) < 0.004).all()
