"""The synthetic set: the published shares, its shape, its files, and that it says what it is."""

from __future__ import annotations

import dataclasses
import itertools
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from faultbook.attribution.agreement import agreement
from faultbook.attribution.consensus import consensus
from faultbook.attribution.judge_files import read_verdicts
from faultbook.attribution.noise_filter import filter_singletons
from faultbook.attribution.read import LogTables, read_logs
from faultbook.attribution.reasoning import read_reasoning, reasoning_coverage, summarize_reasoning
from faultbook.attribution.synthetic import (
    synthetic,
    synthetic_reasoning,
    synthetic_verdicts,
    write_mp_bench,
    write_set,
)
from faultbook.attribution.synthetic_files import JUDGES
from faultbook.attribution.synthetic_logs import ANNOTATORS, PUBLISHED_SHARES, expected_shares
from faultbook.attribution.synthetic_models import MODELS
from faultbook.errors import FaultbookError
from faultbook.tables import Annotations, Attempts, Logs, Predictions, Reasoning, Steps

SHIPPED = Path(__file__).resolve().parents[2] / "data" / "logs" / "synthetic-three-annotators"
FRAMES = ("logs", "steps", "annotations", "predictions", "attempts", "anomalies")


@pytest.fixture(scope="module")
def tables() -> LogTables:
    return synthetic(0)


def same(one: LogTables, other: LogTables) -> bool:
    return all(getattr(one, name).equals(getattr(other, name)) for name in FRAMES)


# ---- annotators ---------------------------------------------------------------------------------------------------


def test_the_model_has_the_published_shares() -> None:
    # MP-Bench, section 4.3: 19.6 % flagged by all three, 33.5 % by two, 46.9 % by one
    assert expected_shares() == pytest.approx(PUBLISHED_SHARES, abs=1e-4)
    assert expected_shares().sum() == pytest.approx(1)


def test_expected_shares_of_independent_annotators() -> None:
    # without spread, votes are binomial: at p = 1/2, 1/8, 3/8 and 3/8 of all steps
    assert expected_shares(0.0, 0.0, (0.0, 0.0, 0.0)) == pytest.approx([1 / 7, 3 / 7, 3 / 7])


def test_a_large_draw_has_the_published_shares() -> None:
    shares = consensus(synthetic(7, 300, 0, 0).annotations, level=0.999, n_resamples=2_000).shares
    assert shares["n_steps"].iloc[0] > 1_200
    for low, high, published in zip(shares["low"], shares["high"], PUBLISHED_SHARES, strict=True):
        assert low < published < high
        assert high - low < 0.12


def test_the_shipped_draw_is_within_sampling_error_of_the_published_shares(tables: LogTables) -> None:
    shares = consensus(tables.annotations, level=0.99).shares
    for low, high, published in zip(shares["low"], shares["high"], PUBLISHED_SHARES, strict=True):
        assert low < published < high


def test_who_is_severe_is_drawn() -> None:
    orders = set()
    for seed in range(8):
        flags = synthetic(seed, 40, 0, 0).annotations.groupby("annotator")["is_failure"].sum()
        orders.add(tuple(flags.sort_values().index))
    assert len(orders) > 2


def test_flags_of_a_log_stand_together() -> None:
    # agreement within salience: far above chance, far from full, as in the published shares
    alpha = agreement(synthetic(3, 80, 80, 0).annotations, n_resamples=50).pooled.set_index("statistic")
    value = alpha.loc["krippendorff_alpha", "value"]
    assert 0.3 < value < 0.6


# ---- logs ---------------------------------------------------------------------------------------------------------


def test_shape(tables: LogTables) -> None:
    for name, model in zip(FRAMES, (Logs, Steps, Annotations, Predictions, Attempts), strict=False):
        model.validate(getattr(tables, name))
    assert tables.logs["split"].value_counts().to_dict() == {"manual": 58, "automatic": 42}
    n_steps = tables.logs.set_index("log_id")["n_steps"]
    assert tables.steps.groupby("log_id").size().reindex(n_steps.index).tolist() == n_steps.tolist()
    judged = tables.annotations.pivot_table(index="log_id", columns="annotator", values="step", aggfunc="size")
    assert list(judged.columns) == list(ANNOTATORS)
    for annotator in ANNOTATORS:
        assert judged[annotator].reindex(n_steps.index).tolist() == n_steps.tolist()
    assert tables.attempts.groupby(["log_id", "model"]).size().eq(6).all()
    assert len(tables.attempts) == 100 * 4 * 6


def test_lengths() -> None:
    logs = synthetic(1, 150, 150, 0).logs
    of = {split: part["n_steps"] for split, part in logs.groupby("split")}
    assert (of["manual"].min(), of["manual"].max()) == (5, 130)
    assert 27 < of["manual"].mean() < 39  # 33 and three standard errors
    assert of["manual"].median() < of["manual"].mean()  # skewed
    assert (of["automatic"].min(), of["automatic"].max()) == (5, 10)
    assert 7.5 < of["automatic"].mean() < 8.5


def test_some_logs_have_no_flagged_step(tables: LogTables) -> None:
    flagged = tables.annotations.groupby("log_id")["is_failure"].any()
    assert 1 <= (~flagged).sum() <= 12


def test_flags_stand_early_and_never_on_the_task(tables: LogTables) -> None:
    flagged = tables.annotations[tables.annotations["is_failure"]].merge(tables.logs, on="log_id")
    place = (flagged["step"] / (flagged["n_steps"] - 1)).astype(float)
    assert place.mean() < 0.45
    manual = flagged[flagged["split"] == "manual"]
    assert (manual["step"] > 0).all()


def test_annotators_blame_who_speaks(tables: LogTables) -> None:
    flagged = tables.annotations[tables.annotations["is_failure"]]
    both = flagged.merge(tables.steps, on=["log_id", "step"], suffixes=("", "_speaking"))
    assert len(both) == len(flagged)
    assert (both["agent"] == both["agent_speaking"]).all()
    assert {"Orchestrator (thought)", "human", "Navigator"} <= set(tables.steps["role"])


def test_some_questions_are_in_both_splits(tables: LogTables) -> None:
    splits = tables.logs.groupby("question_id")["split"].nunique()
    assert (splits == 2).sum() == 14
    assert set(tables.anomalies["check"]) == {"question in several splits"}


# ---- models -------------------------------------------------------------------------------------------------------


def test_one_model_is_weak_and_one_strong() -> None:
    large = synthetic(5, 60, 60, 2)
    votes = large.annotations.groupby(["log_id", "step"])["is_failure"].sum().rename("votes").reset_index()
    named = large.predictions.merge(votes, on=["log_id", "step"])
    mean = named.groupby("model")["votes"].mean()
    weak, one, other, strong = (mean[model.name] for model in MODELS)
    assert weak < min(one, other) - 0.1
    assert strong > max(one, other) + 0.1
    assert abs(one - other) < 0.3
    anywhere = votes["votes"].mean()
    assert weak > anywhere  # weak, yet better than chance


def test_models_differ_more_from_one_another_than_from_themselves() -> None:
    large = synthetic(6, 50, 0, 4)
    lists = large.predictions.groupby(["model", "sample", "log_id"])["step"].agg(frozenset)

    def distance(one: tuple[str, int], other: tuple[str, int]) -> float:
        both = pd.concat([lists[one], lists[other]], axis=1, join="inner")
        return float(np.mean([1 - len(a & b) / len(a | b) for a, b in both.itertuples(index=False, name=None)]))

    within = [distance((m.name, s), (m.name, t)) for m in MODELS[1:3] for s, t in itertools.combinations(range(4), 2)]
    between = [distance((MODELS[1].name, s), (MODELS[2].name, t)) for s in range(4) for t in range(4)]
    assert max(within) < min(between)


def test_attempts_are_lost_in_every_way(tables: LogTables) -> None:
    counts = tables.attempts["status"].value_counts()
    assert set(counts.index) == {"ok", "abstained", "unparsable", "truncated", "missing"}
    assert counts["ok"] / len(tables.attempts) > 0.85
    listed = tables.predictions[["log_id", "model", "sample"]].drop_duplicates()
    ok = tables.attempts[tables.attempts["status"] == "ok"]
    assert len(listed) == len(ok) == len(listed.merge(ok, on=["log_id", "model", "sample"]))
    assert not tables.predictions.duplicated(["log_id", "model", "sample", "step"]).any()
    inside = tables.predictions.merge(tables.logs, on="log_id")
    assert (inside["step"] < inside["n_steps"]).all()


# ---- one seed -----------------------------------------------------------------------------------------------------


def test_the_seed_decides(tables: LogTables) -> None:
    assert same(synthetic(0), tables)
    assert not synthetic(1).annotations.equals(tables.annotations)


def test_adding_logs_leaves_the_others_as_they_are() -> None:
    few, many = synthetic(4, 5, 3, 1), synthetic(4, 9, 8, 1)
    kept = many.steps["log_id"].isin(few.logs["log_id"])
    pd.testing.assert_frame_equal(many.steps[kept].reset_index(drop=True), few.steps)


def test_everything_is_called_synthetic(tables: LogTables) -> None:
    assert set(tables.logs["source"]) == {"synthetic"}
    for texts in (
        tables.attempts["model"],
        tables.annotations["reason"].dropna(),
        tables.annotations["ideal_action"].dropna(),
        synthetic_verdicts(tables).verdicts["judge"],
        synthetic_verdicts(tables).people["judge"],
    ):
        assert texts.str.startswith("synthetic").all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seed": -1}, "seed is -1"),
        ({"n_samples": -2}, "n_samples is -2"),
        ({"n_manual": 0, "n_automatic": 0}, "at least one log"),
    ],
)
def test_what_is_refused(arguments: dict[str, int], message: str) -> None:
    with pytest.raises(FaultbookError, match=message):
        synthetic(**arguments)


# ---- judges -------------------------------------------------------------------------------------------------------


def test_verdicts_like_the_published_ones() -> None:
    # MP-Bench, section 4.1.4: 31.6 % removed; of 200, 65.5 % legitimate, 92.5 % agreement, κ .84
    large = synthetic(9, 150, 0, 0)
    given = synthetic_verdicts(large, 2, n_people=10_000)
    summary = filter_singletons(large.annotations, given.verdicts, given.people, level=0.999).summary.iloc[0]
    for name, published in (("share_removed", 0.316), ("people_legitimate", 0.655), ("agreement", 0.925)):
        low, high = ("low", "high") if name == "share_removed" else (f"{name}_low", f"{name}_high")
        assert summary[low] < published < summary[high]
    assert 0.75 < summary["kappa"] < 0.9
    assert 0 < summary["n_singletons"] - summary["n_judged"] < 0.1 * summary["n_singletons"]


def test_people_judge_a_sample(tables: LogTables) -> None:
    given = synthetic_verdicts(tables, 0)
    assert len(given.people) == 100 < len(given.verdicts)
    again = synthetic_verdicts(tables, 0)
    pd.testing.assert_frame_equal(again.verdicts, given.verdicts)
    pd.testing.assert_frame_equal(again.people, given.people)
    assert given.people["legitimate"].notna().all()


def test_reasoning_scores(tables: LogTables) -> None:
    found = synthetic_reasoning(tables)
    Reasoning.validate(found.scores)
    named = tables.predictions[tables.predictions["sample"] < 3]
    pd.testing.assert_frame_equal(found.coverage, reasoning_coverage(tables.annotations, named))
    summary = summarize_reasoning(found.scores, found.coverage, n_resamples=100)
    overall = summary[summary["part"] == "overall"].set_index("model")
    weak, one, other, strong = overall["by_step"]
    assert weak < min(one, other) <= max(one, other) < strong
    assert overall["by_step"].between(5.5, 9).all()  # the range of the published judge, section 1.4
    assert (overall["charged_by_step"] < overall["by_step"]).all()
    assert (overall["n_missing"].sum(), overall["n_unjudged"].sum()) > (0, -1)
    wide = found.scores.pivot_table(index=["log_id", "model", "step"], columns="part", values="score")
    assert (wide.sub(wide["overall"], axis=0).abs() <= 1).all(axis=None)


# ---- files --------------------------------------------------------------------------------------------------------


def test_the_shipped_files_are_those_of_seed_0(tmp_path: Path) -> None:
    written = write_set(tmp_path, 0)
    shipped = {file.relative_to(SHIPPED): file.read_bytes() for file in SHIPPED.rglob("*.csv")}
    assert {file.relative_to(tmp_path): file.read_bytes() for file in written} == shipped
    assert sum(map(len, shipped.values())) < 500_000


def test_the_shipped_files_hold_the_whole_set(tables: LogTables) -> None:
    assert same(read_logs(SHIPPED), tables)
    scores = read_reasoning(SHIPPED / JUDGES / "reasoning.csv").scores
    pd.testing.assert_frame_equal(scores, synthetic_reasoning(tables).scores)
    given = synthetic_verdicts(tables)
    pd.testing.assert_frame_equal(read_verdicts(SHIPPED / JUDGES / "verdicts.csv"), given.verdicts, check_dtype=False)
    pd.testing.assert_frame_equal(
        read_verdicts(SHIPPED / JUDGES / "people-verdicts.csv"), given.people, check_dtype=False
    )


def test_annotations_in_the_shape_of_mp_bench(tmp_path: Path) -> None:
    small = synthetic(2, 4, 4, 1)
    files = write_mp_bench(small, tmp_path / "annotations", tmp_path / "logs")
    assert len(files) == 8 * 3 + 8
    payload = json.loads((tmp_path / "annotations" / "annotator 1" / "manual" / "1.json").read_text(encoding="utf-8"))
    assert set(payload) == {"log_source", "annotation"}
    cells = [value for step in payload["annotation"] for value in step.values()]
    assert all(isinstance(value, str) for value in cells)
    read = read_logs(tmp_path / "annotations", sources=tmp_path / "logs")
    keys = ["log_id", "annotator", "step"]
    columns = [*keys, "is_failure", "reason", "ideal_action"]
    expected, found = (t.annotations[columns].sort_values(keys, ignore_index=True) for t in (small, read))
    pd.testing.assert_frame_equal(found, expected)
    # the raw shape names no agent of a step; the logs it points to do
    steps = ["log_id", "step", "role", "agent"]
    pd.testing.assert_frame_equal(
        read.steps[steps].sort_values(steps[:2], ignore_index=True),
        small.steps[steps].sort_values(steps[:2], ignore_index=True),
    )
    one, two = (consensus(t.annotations, n_resamples=50).shares for t in (small, read))
    pd.testing.assert_frame_equal(one, two)


def test_files_are_not_overwritten(tmp_path: Path) -> None:
    small = synthetic(2, 1, 1, 1)
    write_mp_bench(small, tmp_path)
    with pytest.raises(FaultbookError, match="is there already"):
        write_mp_bench(small, tmp_path)
    (tmp_path / "logs.csv").write_text("", encoding="utf-8")
    with pytest.raises(FaultbookError, match=r"logs\.csv is there already"):
        write_set(tmp_path)
    assert not (tmp_path / "steps.csv").exists()


@pytest.mark.parametrize("log_id", ["../1", "/etc/1"])
def test_a_name_cannot_lead_out_of_the_folder(tmp_path: Path, log_id: str) -> None:
    small = synthetic(2, 1, 0, 0)
    evil = dataclasses.replace(small, annotations=small.annotations.assign(log_id=log_id))
    with pytest.raises(FaultbookError, match="cannot be the name of a file"):
        write_mp_bench(evil, tmp_path / "a")
    assert not (tmp_path / "a").exists()
