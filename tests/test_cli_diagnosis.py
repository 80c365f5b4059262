"""`faultbook diagnosis`: what it prints to programs, with which exit code, on a team's own incidents."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from faultbook.cli import main

TRUTH = """\
groups:
- {id: cart, kind: Deployment, namespace: shop, filter: ["cart-.*"], root_cause: true}
- {id: db, kind: StatefulSet, namespace: shop, name: db, root_cause: true}
- {id: front-pod-1, kind: Service, namespace: shop, filter: [front]}
alerts: [{id: high latency, group_id: front-pod-1}]
propagations: [{source: cart, target: front-pod-1, condition: x, effect: y}]
"""
MODEL_KEYS = (
    *("model", "score", "low", "high", "full_recall_rate", "precision_given_full_recall"),
    *("omission_loss", "over_diagnosis_loss", "n_incidents", "n_runs"),
)
RUN_KEYS = ("model", "incident_id", "repeat", "status", "tp", "fp", "score", "errors")

Run = Callable[..., Result]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run the command in a folder with one truth and two models' answers."""
    monkeypatch.chdir(tmp_path)
    for name in ("truths", "answers"):
        (tmp_path / name).mkdir()
    (tmp_path / "truths" / "INC-7.yaml").write_text(TRUTH, encoding="utf-8")
    named = ["shop/Deployment/cart", "shop/StatefulSet/db", "shop/Service/front"]
    answer = {"contributing_factors": [{"name": name} for name in named]}
    (tmp_path / "answers" / "good_INC-7_0.json").write_text(json.dumps(answer), encoding="utf-8")
    (tmp_path / "answers" / "prose_INC-7_0.json").write_text("I do not know.", encoding="utf-8")

    def running(*arguments: str) -> Result:
        result = CliRunner().invoke(main, ["diagnosis", *arguments])
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


SCORE = ("score", "--truth", "truths", "--submissions", "answers")


def test_scores_for_programs(run: Run) -> None:
    result = run(*SCORE, "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    found = _json(result)
    assert list(found) == ["policy", "models", "runs", "problems"]
    assert found["policy"] == "itbench-aa"
    assert all(tuple(model) == MODEL_KEYS for model in found["models"])
    assert {model["model"]: model["score"] for model in found["models"]} == {"good": pytest.approx(2 / 3), "prose": 0.0}
    good, prose = found["runs"]
    assert tuple(good) == tuple(prose) == RUN_KEYS
    assert (good["status"], good["tp"], good["fp"]) == ("scored", 2, 1)
    assert [(error["label"], error["entity"]) for error in good["errors"]] == [
        ("downstream symptom", "shop/Service/front")
    ]
    assert (prose["status"], prose["score"], prose["errors"]) == ("malformed", None, [])
    (problem,) = found["problems"]
    assert problem["file"].endswith("prose_INC-7_0.json")


def test_scores_as_text_say_the_same(run: Run) -> None:
    result = run(*SCORE, "--policy", "harbor-adapter")
    assert result.exit_code == 0
    assert [line.split(" ")[:2] for line in result.stdout.splitlines()] == [["good:", "0.667"], ["prose:", "0.000"]]
    assert "(harbor-adapter)" in result.stdout
    assert "prose_INC-7_0.json: not JSON that names causes" in result.stderr


@pytest.mark.parametrize(("bound", "code"), [("0", 0), ("0.01", 1)])
def test_a_score_below_the_bound_is_exit_code_1(run: Run, bound: str, code: int) -> None:
    assert run(*SCORE, "--fail-under", bound).exit_code == code
    assert run(*SCORE, "--fail-under", bound, "--json").exit_code == code


def test_unusable_input_is_one_line(run: Run, tmp_path: Path) -> None:
    assert "'absent' does not exist" in _refused(run("score", "--truth", "absent", "--submissions", "answers"))
    assert "'policy' must be one of" in _refused(run(*SCORE, "--policy", "kind"))
    (tmp_path / "truths" / "INC-7.yaml").write_text("groups: 5", encoding="utf-8")
    assert "nothing to score" in _refused(run(*SCORE))
    (tmp_path / "empty").mkdir()
    assert "no submissions here" in _refused(run("score", "--truth", "truths", "--submissions", "empty"))
    assert "go together" in _refused(run("leaks", "--truth", "truths"))
    assert "nothing to look at" in _refused(run("leaks"))


def test_hazards_for_programs(run: Run) -> None:
    found = _json(run("lint", "--truth", "truths", "--json"))
    assert list(found) == ["hazards", "problems"]
    assert {hazard["check"] for hazard in found["hazards"]} >= {"several causes", "name without filter"}
    assert run("lint", "--truth", "truths").exit_code == 0


def test_signs_of_a_leak_are_exit_code_1(run: Run, tmp_path: Path) -> None:
    given = ("leaks", "--truth", "truths", "--submissions", "answers")
    assert run(*given).exit_code == 0
    answer = {"contributing_factors": [{"name": "shop/Service/front-pod-1"}]}
    (tmp_path / "answers" / "cheat_INC-7_0.json").write_text(json.dumps(answer), encoding="utf-8")
    result = run(*given, "--json")
    assert result.exit_code == 1
    (leak,) = _json(result)["leaks"]
    assert leak["found"] == "front-pod-1"


def test_convert_writes_what_can_be_read_and_never_over_it(run: Run) -> None:
    assert run("convert", "truths", "tidy").exit_code == 0
    tidy = _json(run("score", "--truth", "tidy", "--submissions", "answers", "--json"))
    assert tidy["runs"] == _json(run(*SCORE, "--json"))["runs"]
    assert "already holds" in _refused(run("convert", "truths", "tidy"))
