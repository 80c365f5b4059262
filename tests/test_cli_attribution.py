"""`faultbook attribution`: what it prints to programs, with which exit code, on a team's own annotations."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner, Result

from faultbook.cli import main

LOGS = "log_id,split,n_steps\nours/1,ours,4\nours/2,ours,6\nours/3,ours,5\n"
REVIEWS = "log_id,annotator\n" + "".join(f"ours/{log},{name}\n" for log in (1, 2, 3) for name in ("ann", "bob", "cy"))
ANNOTATIONS = """\
log_id,step,annotator,is_failure
ours/1,2,ann,true
ours/1,2,bob,true
ours/1,3,cy,true
ours/2,0,ann,true
ours/2,5,bob,true
"""
PREDICTIONS = """\
log_id,model,sample,step
ours/1,good,0,2
ours/1,good,0,3
ours/2,good,0,0
ours/3,good,0,1
ours/1,poor,0,0
"""
MODEL_KEYS = {"model", "ndcg_at_5", "ndcg_full", "low", "high", "chance", "adjusted", "n_logs"}

Run = Callable[..., Result]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run the command in a folder with annotations and, beside it, one with predictions."""
    monkeypatch.chdir(tmp_path)
    files = {
        "judged/logs.csv": LOGS,
        "judged/reviews.csv": REVIEWS,
        "judged/annotations.csv": ANNOTATIONS,
        "named/predictions.csv": PREDICTIONS,
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")

    def running(*arguments: str) -> Result:
        result = CliRunner().invoke(main, ["attribution", *arguments])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result

    return running


def _json(result: Result) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(result.stdout, parse_constant=lambda name: pytest.fail(f"not JSON: {name}"))
    return found


def _refused(result: Result) -> str:
    assert (result.exit_code, result.stdout) == (2, "")
    assert len(result.stderr.splitlines()) == 1, result.stderr
    return result.stderr


def test_score_prints_one_json_object(run: Run) -> None:
    result = run("score", "judged", "named", "--json", "--no-baselines")
    assert result.exit_code == 0
    found = _json(result)
    assert set(found) >= {"models", "ceiling", "agreement", "problems"}
    assert [set(model) >= MODEL_KEYS for model in found["models"]] == [True, True]
    good, poor = found["models"]
    assert (good["model"], good["n_logs"], poor["model"]) == ("good", 2, "poor")
    # ours/1: votes 2 and 1, ranked right: 1. ours/2: one of two tied steps, the earlier first:
    # gains 3 and 1, so 3 / (3 + 1 / log2(3)) = 0.8262
    assert good["ndcg_at_5"] == pytest.approx((1 + 0.8262) / 2, abs=1e-4)
    assert poor["ndcg_at_5"] == 0
    assert poor["n_missing"] == 1
    assert good["n_false_alarms"] == 1
    assert [row["who"] for row in found["ceiling"]] == ["one annotator", "good", "poor"]


def test_baselines_stand_beside_the_models(run: Run) -> None:
    names = [model["model"] for model in _json(run("score", "judged", "named", "--json"))["models"]]
    assert names[:2] == ["good", "poor"]
    assert [name for name in names if name.startswith("baseline:")]


@pytest.mark.parametrize(("least", "code"), [("0", 0), ("0.5", 1)])
def test_a_model_below_the_limit_exits_with_1_and_no_baseline_does(run: Run, least: str, code: int) -> None:
    assert run("score", "judged", "named", "--fail-under", least).exit_code == code


def test_the_measure_is_chosen_and_named(run: Run) -> None:
    options = ("--k", "1", "--relevance", "votes", "--gain", "linear", "--ties", "expected")
    found = _json(run("score", "judged", "named", "--json", "--no-baselines", *options))
    assert found["measures"][0] == "nDCG@1, relevance votes, gain linear, ties expected"
    # ours/1: the two named steps tie, so the first is worth 2/2 or 1/2; ours/2: both flagged steps are equally good
    assert found["models"][0]["ndcg_at_1"] == pytest.approx((0.75 + 1) / 2)


def test_text_output_names_measure_chance_and_the_human_ceiling(run: Run) -> None:
    text = run("score", "judged", "named", "--no-baselines").stdout
    assert text.splitlines()[0].startswith("nDCG@5")
    assert "good: 0.913" in text
    assert "chance" in text
    assert "1 missing" in text
    assert "one annotator, one sample" in text


def test_agreement_prints_pooled_values_and_shares(run: Run) -> None:
    found = _json(run("agreement", "judged", "--json"))
    pooled = {row["statistic"]: row for row in found["agreement"] if not row["pair"]}
    assert set(pooled) >= {"raw_agreement", "positive_agreement", "jaccard", "fleiss_kappa", "krippendorff_alpha"}
    assert {row["flagged_by"]: row["share"] for row in found["shares"]} == {"all": 0, "two": 0.25, "one": 0.75}
    assert found["problems"] == []
    assert "krippendorff_alpha: " in run("agreement", "judged").stdout


def test_agreement_of_one_annotator_is_undefined_and_says_so(run: Run, tmp_path: Path) -> None:
    alone = tmp_path / "alone.csv"
    alone.write_text("log_id,step,annotator,is_failure\nx/1,0,ann,true\nx/1,1,ann,false\n", encoding="utf-8")
    result = run("agreement", str(alone))
    assert result.exit_code == 0
    assert "fleiss_kappa: undefined (one annotator)" in result.stdout
    assert all(row["value"] is None for row in _json(run("agreement", str(alone), "--json"))["agreement"])


def test_convert_writes_what_score_reads_back(run: Run, tmp_path: Path) -> None:
    assert run("convert", "judged", "tidy").exit_code == 0
    assert {path.name for path in (tmp_path / "tidy").iterdir()} >= {"logs.csv", "annotations.csv"}
    before, after = (_json(run("score", folder, "named", "--json"))["models"] for folder in ("judged", "tidy"))
    assert before == after
    assert "already" in _refused(run("convert", "judged", "tidy"))


def test_problems_are_located_and_do_not_stop_a_score(run: Run, tmp_path: Path) -> None:
    (tmp_path / "named" / "predictions.csv").write_text(f"{PREDICTIONS}ours/2,poor,0,three\n", encoding="utf-8")
    result = run("score", "judged", "named", "--json")
    assert result.exit_code == 0
    (problem,) = _json(result)["problems"]
    assert (problem["row"], problem["column"]) == ("7", "step")
    assert "three" in problem["problem"]
    assert "predictions.csv" in run("score", "judged", "named").stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("score", "judged"), "no prediction"),
        (("score", "named"), "no annotation"),
        (("agreement", "named"), "no annotation"),
        (("score", "absent"), "does not exist"),
        (("score",), "Missing argument"),
        (("score", "judged", "named", "--format", "tarot"), "'format' must be one of"),
        (("score", "judged", "named", "--k", "0"), "--k"),
        (("score", "judged", "named", "--sources", "absent"), "does not exist"),
    ],
)
def test_a_mistake_is_one_line_and_exit_2(run: Run, arguments: tuple[str, ...], says: str) -> None:
    assert says in _refused(run(*arguments))


def test_anomalies_can_stop_a_score(run: Run, tmp_path: Path) -> None:
    (tmp_path / "judged" / "logs.csv").write_text(LOGS.replace("ours/1,ours,4", "ours/1,ours,3"), encoding="utf-8")
    assert "out of range" in _refused(run("score", "judged", "named", "--anomalies", "fail"))
    kept = _json(run("score", "judged", "named", "--json", "--anomalies", "drop"))
    assert kept["models"][0]["n_logs"] == 1


def test_the_shipped_synthetic_set_is_scored(run: Run) -> None:
    folder = Path(__file__).resolve().parents[1] / "data" / "logs" / "synthetic-three-annotators"
    found = _json(run("score", str(folder), "--json"))
    assert all(row["model"].startswith(("synthetic", "baseline")) for row in found["models"])
    assert found["problems"] == []
    assert pd.DataFrame(found["ceiling"])["n_targets"].nunique() == 1  # all are held to the same targets
