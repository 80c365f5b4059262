"""Inspect logs: what is read of them, and what never becomes a verdict or a number."""

from __future__ import annotations

import ast
import asyncio
import hashlib
import json
import math
import os
import socket
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from faultbook.errors import FaultbookError
from faultbook.harness.files import Files
from faultbook.harness.formats import inspect_log
from faultbook.harness.formats._inspect_fields import score_number
from faultbook.harness.read import read_trials
from faultbook.taxonomy import named
from faultbook.values import part

WHERE = "the extra [inspect] is not installed"
FUZZ = settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

# A real run, offline: six samples, of which one ends in an error, one is not scored, one hits a limit.
RUN = """
import os, signal, sys
import anyio
from inspect_ai import Task, eval as evaluate
from inspect_ai.dataset import Sample
from inspect_ai.log import read_eval_log, write_eval_log
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import Score, accuracy, scorer
from inspect_ai.solver import solver

def answer(*_):
    output = ModelOutput.from_content("mockllm/model", "x")
    output.usage = ModelUsage(
        input_tokens=10, output_tokens=2, total_tokens=20, input_tokens_cache_read=5, input_tokens_cache_write=3
    )
    return output

@solver
def agent(interrupted):
    async def solve(state, generate):
        if state.sample_id == 2:
            raise RuntimeError("Error code: 429 - rate limit reached")
        if state.sample_id == 4 and interrupted:
            await anyio.sleep(0.2)
            os.kill(os.getpid(), signal.SIGINT)
            await anyio.sleep(30)
        for _ in range(4 if state.sample_id == 5 else 1):
            state = await generate(state)
        return state
    return solve

@scorer(metrics=[accuracy()])
def judge():
    async def score(state, target):
        if state.sample_id == 3:
            return Score.unscored(reason="scoring_failed")
        return Score(value="P" if state.sample_id == 6 else "C")
    return score

def run(folder, interrupted, **options):
    samples = [Sample(id=number, input=f"q{number}", target="x") for number in range(1, 8)]
    task = Task(dataset=samples, solver=agent(interrupted), scorer=judge(), name="tiny", token_limit=50)
    model = get_model("mockllm/model", custom_outputs=answer)
    try:
        evaluate(
            task, model=model, log_dir=folder, display="none", fail_on_error=False, limit=6, max_samples=12,
            log_realtime=False, **options,
        )
    except KeyboardInterrupt:
        pass

signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs these tests may ignore it
run("whole", False, epochs=2)
run("cancelled", True)
(name,) = os.listdir("whole")
write_eval_log(read_eval_log("whole/" + name), "whole.json")
"""


@pytest.fixture(scope="module")
def log_module() -> Any:
    return pytest.importorskip("inspect_ai.log", reason=WHERE)


@pytest.fixture(scope="module")
def real(log_module: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("inspect")
    home = {"HOME": str(folder / "home"), "XDG_DATA_HOME": str(folder / "home"), "XDG_CACHE_HOME": str(folder / "home")}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(RUN)],
        cwd=folder,
        env={**os.environ, **home},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (whole,), (cancelled,) = (list((folder / name).iterdir()) for name in ("whole", "cancelled"))
    return {"eval": whole, "json": folder / "whole.json", "cancelled": cancelled}


def spec(**fields: Any) -> dict[str, Any]:
    """What Inspect writes of a run, as far as it is required or read."""
    return {
        "created": "2026-03-01T10:00:00+00:00",
        "run_id": "run",
        "task": "arith",
        "dataset": {"samples": 2, "sample_ids": ["a", "b"]},
        "model": "openai/gpt-5",
        "config": {"epochs": 1},
        "packages": {"inspect_ai": "0.3.285"},
        "scorers": [{"name": "match"}],
        **fields,
    }


def header(status: str = "success", *, run: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    return {"version": 2, "status": status, "eval": run or spec(), **fields}


def usage(**tokens: Any) -> dict[str, Any]:
    return {"input_tokens": 100, "output_tokens": 20, "total_tokens": 120, **tokens}


def sample(name: str | int = "a", epoch: int = 1, value: Any = "C", **fields: Any) -> dict[str, Any]:
    """A sample or a summary of one: what both of them hold."""
    return {
        "id": name,
        "epoch": epoch,
        "input": "q",
        "target": "x",
        "scores": {"match": {"value": value}},
        "model_usage": {"openai/gpt-5": usage()},
        "started_at": "2026-03-01T10:00:00+00:00",
        "completed_at": "2026-03-01T10:00:30+00:00",
        "total_time": 30.0,
        "uuid": f"uuid-{name}-{epoch}",
        **fields,
    }


def write_eval(
    path: Path,
    summaries: Any = (),
    *,
    head: dict[str, Any] | None = None,
    samples: Any = (),
    more: dict[str, Any] | None = None,
) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        head = head or header()
        archive.writestr(
            "_journal/start.json",
            json.dumps({key: head[key] for key in ("version", "eval") if key in head} | {"plan": {}}),
        )
        for one in samples:
            archive.writestr(f"samples/{one['id']}_epoch_{one['epoch']}.json", json.dumps(one))
        if "status" in head:
            archive.writestr("summaries.json", json.dumps(list(summaries)))
            archive.writestr("header.json", json.dumps(head))
        else:
            for number, one in enumerate(summaries, start=1):
                archive.writestr(f"_journal/summaries/{number}.json", json.dumps([one]))
        for name, document in (more or {}).items():
            archive.writestr(name, document if isinstance(document, str) else json.dumps(document))
    return path


def write_json(path: Path, samples: Any = (), *, head: dict[str, Any] | None = None) -> Path:
    path.write_text(json.dumps({**(head or header()), "samples": list(samples)}), encoding="utf-8")
    return path


def rows_of(path: Path, **options: Any) -> list[dict[str, Any]]:
    return list(inspect_log.read(path, Files(), **options))


def only(path: Path, **options: Any) -> dict[str, Any]:
    (row,) = rows_of(path, **options)
    return row


def no_verdict(row: dict[str, Any]) -> bool:
    return row.get("reward") is None and row.get("resolved") is None and row.get("reward_valid") is None


class TestWithoutThePackage:
    def test_logs_are_recognised_by_name_and_by_how_they_begin(self, tmp_path: Path) -> None:
        (tmp_path / "cut.eval").write_bytes(b"")
        write_json(tmp_path / "log.json")
        (tmp_path / "other.json").write_text('{"status": "success", "stats": {}}', encoding="utf-8")
        (tmp_path / "bytes.json").write_bytes(b"\xff\xfe\x00")
        (tmp_path / "log.txt").write_text((tmp_path / "log.json").read_text(encoding="utf-8"), encoding="utf-8")
        found = [path.name for path in sorted(tmp_path.iterdir()) if inspect_log.recognises(path)]
        assert found == ["cut.eval", "log.json"]

    def test_a_folder_is_recognised_by_a_log_at_its_top(self, tmp_path: Path) -> None:
        assert not inspect_log.recognises(tmp_path)
        (tmp_path / "nested").mkdir()
        (tmp_path / "nested" / "a.eval").touch()
        assert not inspect_log.recognises(tmp_path)
        (tmp_path / "a.eval").touch()
        assert inspect_log.recognises(tmp_path)

    def test_what_is_not_there_or_not_to_be_read_is_not_recognised(self, tmp_path: Path) -> None:
        (tmp_path / "dangling.eval").symlink_to(tmp_path / "nowhere")
        (tmp_path / "folder.eval").mkdir()
        for name in ("none.eval", "none.json", "dangling.eval", "folder.eval"):
            assert not inspect_log.recognises(tmp_path / name)

    @pytest.mark.parametrize("action", ["read", "planned"])
    def test_without_the_package_one_line_says_what_to_install(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, action: str
    ) -> None:
        for name in ("inspect_ai", "inspect_ai.log"):
            monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(FaultbookError) as raised:
            list(getattr(inspect_log, action)(tmp_path / "log.eval", Files()))
        assert str(raised.value) == (
            "reading Inspect logs needs inspect-ai; install it with: pip install 'faultbook[inspect]'"
        )

    def test_no_module_imports_it_at_its_top(self) -> None:
        for path in Path(inspect_log.__file__).parent.glob("*inspect*.py"):
            nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
            imported = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
            imported += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
            assert imported
            assert not any(name.startswith("inspect_ai") for name in imported)

    @pytest.mark.parametrize(
        ("value", "expected"),
        [("C", 1), ("P", 0.5), ("I", 0), ("N", 0), ("yes", 1), ("False", 0), ("0.25", 0.25), (True, 1), (3, 3)],
    )
    def test_values_of_scores(self, value: Any, expected: float) -> None:
        assert score_number(value) == expected

    @pytest.mark.parametrize("value", ["c", "correct", "nan", "inf", "", [1.0], None, math.inf, math.nan, 10**400])
    def test_values_that_are_no_number_are_missing(self, value: Any) -> None:
        assert score_number(value) is None


class TestRealLogs:
    def test_every_sample_is_a_trial(self, real: dict[str, Path]) -> None:
        rows = rows_of(real["eval"])
        assert sorted((row["task_id"], row["attempt"]) for row in rows) == [
            (f"tiny/{number}", epoch) for number in range(1, 7) for epoch in (1, 2)
        ]
        assert {row["arm"] for row in rows} == {"mockllm/model"}
        assert {row["state"] for row in rows} == {"finished"}
        assert len({row["trial_id"] for row in rows}) == 12
        assert all(row["total_seconds"] > 0 and row["started_at"].endswith("+00:00") for row in rows)

    def test_verdicts_are_those_inspect_computed(self, real: dict[str, Path], log_module: Any) -> None:
        results = log_module.read_eval_log(str(real["eval"]), header_only=True).results.scores[0]
        rewards: dict[str, list[float]] = {}
        for row in rows_of(real["eval"]):
            if row["reward"] is not None:
                rewards.setdefault(row["task_id"], []).append(row["reward"])
        means = [sum(values) / len(values) for values in rewards.values()]
        assert sum(means) / len(means) == pytest.approx(results.metrics["accuracy"].value)

    def test_usage_is_what_the_model_said_with_what_was_written_to_the_cache(self, real: dict[str, Path]) -> None:
        row = next(row for row in rows_of(real["eval"]) if row["task_id"] == "tiny/1")
        tokens = {name: row[name] for name in ("input_tokens", "cache_tokens", "output_tokens", "cache_included")}
        assert tokens == {"input_tokens": 13, "cache_tokens": 5, "output_tokens": 2, "cache_included": False}
        assert row["usage_status"] == "reported"

    def test_an_errored_sample_is_a_row_though_inspects_metrics_drop_it(self, real: dict[str, Path]) -> None:
        row = next(row for row in rows_of(real["eval"]) if row["task_id"] == "tiny/2")
        assert (row["state"], row["cause"], row["cause_source"]) == ("finished", "provider_rate_limit", "inferred")
        assert no_verdict(row)
        assert row["exception_type"] == "RuntimeError"
        assert (row["input_tokens"], row["usage_status"]) == (None, "absent")

    def test_a_limit_is_the_cause_and_the_verdict_stands(self, real: dict[str, Path]) -> None:
        row = next(row for row in rows_of(real["eval"]) if row["task_id"] == "tiny/5")
        assert (row["cause"], row["cause_source"]) == ("agent_budget_exhausted", "observed")
        assert (row["resolved"], row["reward_valid"], row["exception_type"]) == (True, True, "limit token")
        assert "Token limit exceeded" in row["note"]

    def test_a_json_log_says_the_same(self, real: dict[str, Path]) -> None:
        rows = [
            sorted(
                (
                    {key: row[key] for key in row if key not in ("source_path", "source_sha256")}
                    for row in rows_of(path)
                ),
                key=lambda row: (row["task_id"], row["attempt"]),
            )
            for path in (real["eval"], real["json"])
        ]
        assert rows[0] == rows[1]

    def test_a_cancelled_run_keeps_what_it_has_and_its_plan(self, real: dict[str, Path]) -> None:
        rows = {row["task_id"]: row for row in rows_of(real["cancelled"])}
        assert rows["tiny/1"]["resolved"] is True
        assert (rows["tiny/4"]["cause"], rows["tiny/4"]["exception_type"]) == ("cancelled", "CancelledError")
        assert no_verdict(rows["tiny/4"])
        assert all("its run ended as 'cancelled'" in row["note"] for row in rows.values())
        planned = inspect_log.planned(real["cancelled"], Files())
        assert planned == [
            {"arm": "mockllm/model", "task_id": f"tiny/{number}", "attempt": 1} for number in range(1, 7)
        ]

    def test_the_table_of_trials_takes_them(self, real: dict[str, Path]) -> None:
        trials = read_trials([real["eval"], real["cancelled"]])
        assert len(trials) == 12 + len(rows_of(real["cancelled"]))
        assert set(trials["source_format"]) == {"inspect"}

    def test_nothing_is_written_printed_or_sent(
        self,
        real: dict[str, Path],
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capfd: pytest.CaptureFixture[str],
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        def refuse(*_: Any) -> None:
            raise AssertionError("a connection was opened")

        monkeypatch.setattr(socket.socket, "connect", refuse)
        for name in ("HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"):
            monkeypatch.setenv(name, str(tmp_path))
        monkeypatch.chdir(tmp_path)
        before = {path: path.read_bytes() for path in real.values()}
        for path in real.values():
            rows_of(path)
            inspect_log.planned(path, Files())
        assert list(tmp_path.iterdir()) == []
        assert {path: path.read_bytes() for path in real.values()} == before
        assert capfd.readouterr() == ("", "")
        assert caplog.records == []

    def test_a_running_event_loop_is_left_as_it_is(self, real: dict[str, Path]) -> None:
        async def inside() -> tuple[int, bool]:
            before = asyncio.run, type(asyncio.get_running_loop()).run_until_complete
            rows = len(rows_of(real["eval"]))
            return rows, before == (asyncio.run, type(asyncio.get_running_loop()).run_until_complete)

        assert asyncio.run(inside()) == (12, True)

    @pytest.mark.parametrize("value", ["C", "P", "I", "N", "yes", "No", "TRUE", "1e-1", " 2 ", True, False, 0, 1, 0.3])
    def test_values_are_taken_as_inspect_takes_them(self, log_module: Any, value: Any) -> None:
        from inspect_ai.scorer import value_to_float  # only where the package is

        assert score_number(value) == value_to_float()(value)


@pytest.mark.usefixtures("log_module")
class TestOddities:
    def test_a_log_that_was_never_closed_gives_the_samples_it_has(self, tmp_path: Path) -> None:
        head = {"version": 2, "eval": spec()}
        path = write_eval(tmp_path / "a.eval", [sample("a")], head=head, samples=[sample("a")])
        row = only(path)
        assert (row["state"], row["resolved"]) == ("finished", True)
        assert row["note"] == "its log was not closed: the run broke off or still runs"
        planned = inspect_log.planned(path, Files()) or []
        assert [plan["task_id"] for plan in planned] == ["arith/a", "arith/b"]

    @pytest.mark.parametrize("kept", [0, 10, 0.5, 0.9])
    def test_a_log_cut_off_by_a_full_disk_is_one_unreadable_row_and_the_others_are_read(
        self, tmp_path: Path, kept: float
    ) -> None:
        whole = write_eval(tmp_path / "b.eval", [sample("a"), sample("b")])
        content = whole.read_bytes()
        end = int(kept * len(content)) if isinstance(kept, float) else kept
        (tmp_path / "a.eval").write_bytes(content[:end])
        files = Files()
        cut, *others = inspect_log.read(tmp_path, files)
        assert (cut["state"], cut["arm"], cut.get("task_id")) == ("unreadable", "unknown", None)
        assert cut["note"] == ("empty file" if end == 0 else "BadZipFile: File is not a zip file")
        assert cut["source_path"] == str(tmp_path / "a.eval")
        assert cut["source_sha256"] == hashlib.sha256(content[:end]).hexdigest()
        assert [row["task_id"] for row in others] == ["arith/a", "arith/b"]
        assert inspect_log.planned(tmp_path / "a.eval", Files()) is None

    def test_a_half_written_json_log_is_unreadable(self, tmp_path: Path) -> None:
        whole = write_json(tmp_path / "a.json", [sample()])
        whole.write_text(whole.read_text(encoding="utf-8")[:-30], encoding="utf-8")
        row = only(whole)
        assert row["state"] == "unreadable"
        assert "not a JSON document" in row["note"]

    def test_of_two_headers_the_last_one_wins(self, tmp_path: Path) -> None:
        path = write_eval(tmp_path / "a.eval", [sample()], head=header(run=spec(model="old/model")))
        with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("header.json", json.dumps(header(run=spec(model="new/model"))))
        assert only(path)["arm"] == "new/model"
        assert {row["arm"] for row in inspect_log.planned(path, Files()) or []} == {"new/model"}

    def test_of_two_records_of_a_sample_the_last_one_wins(self, tmp_path: Path) -> None:
        path = write_eval(tmp_path / "a.eval", [sample(value="I"), sample(value="C")])
        assert only(path)["resolved"] is True

    def test_of_two_documents_of_a_sample_the_last_one_wins(self, tmp_path: Path) -> None:
        path = write_eval(tmp_path / "a.eval", [], samples=[sample(value="I")])
        with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("samples/a_epoch_1.json", json.dumps(sample(value="C")))
        assert only(path)["resolved"] is True

    @pytest.mark.parametrize("write", [write_eval, write_json])
    def test_bare_nan_and_infinity_are_read_and_are_no_verdict(self, tmp_path: Path, write: Any) -> None:
        name = "a.eval" if write is write_eval else "a.json"
        samples = [sample("a", value=math.nan), sample("b", value=math.inf), sample("c", value=0.25)]
        path = write(tmp_path / name, samples, head=header(results={"scores": [], "metadata": {"x": math.nan}}))
        assert "NaN" in path.read_text(encoding="latin-1") or write is write_eval
        unscored, infinite, scored = rows_of(path)
        assert no_verdict(unscored)
        assert (unscored["reward_key"], unscored["note"]) == ("match", "not scored by 'match'")
        assert no_verdict(infinite)
        assert infinite["note"].endswith("is no number: inf")
        assert (scored["reward"], scored["resolved"]) == (0.25, False)

    @pytest.mark.parametrize("write", [write_eval, write_json])
    def test_a_null_that_old_logs_wrote_for_nan_is_unscored_not_0(self, tmp_path: Path, write: Any) -> None:
        rows = [sample("a", value=None), sample("b", value={"x": None}), sample("c", value="C")]
        path = tmp_path / ("a.eval" if write is write_eval else "a.json")
        write(path, rows, samples=rows) if write is write_eval else write(path, rows)
        first, second, third = rows_of(path)
        assert no_verdict(first)
        assert no_verdict(second)
        assert second["reward_key"] == "match.x"
        assert third["resolved"] is True

    def test_a_metric_that_old_logs_wrote_as_null_costs_nothing(self, tmp_path: Path) -> None:
        broken = {"scores": [{"name": "match", "scorer": "match", "metrics": {"m": {"name": "m", "value": None}}}]}
        assert only(write_eval(tmp_path / "a.eval", [sample()], head=header(results=broken)))["resolved"] is True

    def test_one_sample_that_inspect_refuses_costs_no_other(self, tmp_path: Path) -> None:
        rows = [sample("a"), sample("b", 2, total_time="long")]
        for path in (
            write_eval(tmp_path / "a.eval", rows, samples=rows),
            write_json(tmp_path / "a.json", rows),
        ):
            good, bad = rows_of(path)
            assert good["resolved"] is True
            assert (bad["state"], bad["task_id"], bad["attempt"]) == ("unreadable", "arith/b", 2)
            assert "total_time" in bad["note"]
            assert bad["arm"] == "openai/gpt-5"

    def test_summaries_that_inspect_refuses_and_no_samples_are_named(self, tmp_path: Path) -> None:
        row = only(write_eval(tmp_path / "a.eval", [sample(), sample(total_time="long")]))
        assert (row["state"], row["arm"], row.get("task_id")) == ("unreadable", "openai/gpt-5", None)
        assert "total_time" in row["note"]

    def test_a_sample_that_is_in_no_summary_is_not_lost(self, tmp_path: Path) -> None:
        path = write_eval(tmp_path / "a.eval", [sample("a")], samples=[sample("a"), sample("b", 3, "I")])
        assert [(row["task_id"], row["attempt"], row["resolved"]) for row in rows_of(path)] == [
            ("arith/a", 1, True),
            ("arith/b", 3, False),
        ]

    def test_trajectories_are_not_read_where_summaries_are(self, tmp_path: Path) -> None:
        path = write_eval(tmp_path / "a.eval", [sample("a")], more={"samples/a_epoch_1.json": "{ half"})
        assert only(path)["resolved"] is True

    def test_an_invalidated_sample_has_no_verdict_that_stands(self, tmp_path: Path) -> None:
        invalidation = {"timestamp": "2026-03-02T00:00:00+00:00", "author": "me", "reason": "wrong prompt"}
        rows = [sample("a"), sample("b", invalidation=invalidation), sample("c", error=None)]
        for path in (
            write_eval(tmp_path / "a.eval", rows[:2], head=header(invalidated=True), samples=[*rows[:2], rows[2]]),
            write_json(tmp_path / "a.json", rows, head=header(invalidated=True)),
        ):
            valid, invalid, other = rows_of(path)
            assert (valid["reward_valid"], valid["note"]) == (True, None)
            assert (invalid["resolved"], invalid["reward_valid"]) == (True, False)
            assert invalid["note"] == "invalidated: wrong prompt"
            assert other["reward_valid"] is True

    def test_a_log_that_is_invalidated_as_a_whole(self, tmp_path: Path) -> None:
        rows = [sample("a"), sample("b", value=math.nan)]
        path = write_eval(tmp_path / "a.eval", rows, head=header(invalidated=True))
        scored, unscored = rows_of(path)
        assert (scored["reward_valid"], scored["note"]) == (False, "its whole log is marked as invalidated")
        assert unscored["reward_valid"] is None

    def test_a_newer_log_is_named_as_one(self, tmp_path: Path) -> None:
        row = only(write_eval(tmp_path / "a.eval", [sample()], head={**header(), "version": 99}))
        assert row["state"] == "unreadable"
        assert "version 99" in row["note"]

    def test_unknown_keys_are_ignored(self, tmp_path: Path) -> None:
        row = only(write_eval(tmp_path / "a.eval", [sample(new=[1])], head=header(run=spec(new={"a": 1}), new=2)))
        assert row["resolved"] is True

    def test_old_samples_with_one_score_without_a_name(self, tmp_path: Path) -> None:
        old = {key: value for key, value in sample().items() if key != "scores"} | {"score": {"value": "C"}}
        run = {key: value for key, value in spec().items() if key != "scorers"}
        head = {**header(run=run, results={"scorer": {"name": "match"}, "scores": [{"name": "exact"}]}), "version": 1}
        row = only(write_json(tmp_path / "a.json", [old], head=head))
        assert (row["reward_key"], row["resolved"]) == ("exact", True)

    def test_an_error_that_is_scored_all_the_same_keeps_its_verdict(self, tmp_path: Path) -> None:
        row = only(write_eval(tmp_path / "a.eval", [sample(error="ReadTimeout('connection reset')")]))
        assert (row["resolved"], row["cause"], row["reward_valid"]) == (True, "provider_network", False)

    def test_an_error_that_tells_nothing_is_unclassified(self, tmp_path: Path) -> None:
        row = only(write_eval(tmp_path / "a.eval", [sample(scores=None, error="oh (no)")]))
        assert (row["cause"], row["exception_type"]) == ("unclassified", None)
        assert no_verdict(row)

    @pytest.mark.parametrize(
        ("limit", "cause"),
        [
            *[(kind, "agent_budget_exhausted") for kind in ("time", "working", "message", "token", "turn", "cost")],
            ("custom", "agent_budget_exhausted"),
            ("context", "context_overflow"),
            ("operator", "user_abort"),
        ],
    )
    def test_limits(self, tmp_path: Path, limit: str, cause: str) -> None:
        row = only(write_eval(tmp_path / "a.eval", [sample(limit=limit)]))
        assert (row["cause"], row["cause_source"], row["exception_type"]) == (cause, "observed", f"limit {limit}")
        assert row["reward_valid"] is (cause != "user_abort")

    def test_an_instrument_that_failed_is_the_cause_where_the_taxonomy_knows_it(self, tmp_path: Path) -> None:
        scores = {"match": {"value": math.nan, "reason": "scoring_failed"}}
        row = only(write_eval(tmp_path / "a.eval", [sample(scores=scores)]))
        assert row["note"] == "not scored by 'match': scoring_failed"
        assert row["cause"] == (named("inspect", "reason scoring_failed") or "completed")

    def test_retries_and_the_end_of_the_run_are_noted(self, tmp_path: Path) -> None:
        error = {"message": "boom", "traceback": "", "traceback_ansi": ""}
        row = only(write_eval(tmp_path / "a.eval", [sample(retries=2)], head=header("error", error=error)))
        assert row["note"] == "earlier tries that ended in an error: 2; its run ended as 'error': boom"
        tries = [{"message": "m", "traceback": "t", "traceback_ansi": "t", "events": [{"unknown": 1}]}]
        row = only(write_json(tmp_path / "a.json", [sample(error_retries=tries)]))
        assert row["note"] == "earlier tries that ended in an error: 1"

    def test_without_a_total_time_it_is_that_between_start_and_end(self, tmp_path: Path) -> None:
        row = only(write_eval(tmp_path / "a.eval", [sample(total_time=None)]))
        assert row["total_seconds"] == 30
        row = only(write_eval(tmp_path / "b.eval", [sample(total_time=None, completed_at=None)]))
        assert row["total_seconds"] is None


@pytest.mark.usefixtures("log_module")
class TestScores:
    def read(self, tmp_path: Path, scores: Any, metric: str | None = None, scorers: Any = ()) -> dict[str, Any]:
        head = header(run=spec(scorers=[{"name": name} for name in scorers]))
        return only(write_eval(tmp_path / "a.eval", [sample(scores=scores)], head=head), metric=metric)

    def test_several_scores_are_none_until_one_is_named(self, tmp_path: Path) -> None:
        scores = {"a": {"value": 1}, "b": {"value": 0}}
        row = self.read(tmp_path, scores)
        assert no_verdict(row)
        assert row["note"] == "several rewards (a, b): name one with metric"
        assert self.read(tmp_path, scores, "b")["resolved"] is False
        assert self.read(tmp_path, scores, "c")["note"] == "no score called 'c' among a, b"
        assert self.read(tmp_path, {**scores, "reward": {"value": 1}})["reward_key"] == "reward"

    def test_a_sample_that_has_but_one_of_several_scores_has_no_sole_one(self, tmp_path: Path) -> None:
        assert no_verdict(self.read(tmp_path, {"a": {"value": 1}}, scorers=["a", "b"]))
        assert self.read(tmp_path, {"a": {"value": 1}}, "a", scorers=["a", "b"])["resolved"] is True

    def test_a_scorer_that_gives_several_values(self, tmp_path: Path) -> None:
        scores = {"judge": {"value": {"right": "C", "short": 0.5}}}
        assert self.read(tmp_path, scores)["note"] == "several rewards (judge.right, judge.short): name one with metric"
        assert no_verdict(self.read(tmp_path, scores, "judge"))
        assert self.read(tmp_path, scores, "judge.short")["reward"] == 0.5
        assert self.read(tmp_path, {"judge": {"value": {"right": "C"}}}, "judge")["reward_key"] == "judge.right"

    @pytest.mark.parametrize("value", [[1.0, 0.0], "B+"])
    def test_what_inspect_would_count_as_0_with_a_warning_is_missing(self, tmp_path: Path, value: Any) -> None:
        row = self.read(tmp_path, {"a": {"value": value}})
        assert no_verdict(row)
        assert "is no number" in row["note"]

    @pytest.mark.parametrize("value", [7, -0.5])
    def test_a_score_outside_0_to_1_is_no_verdict(self, tmp_path: Path, value: float) -> None:
        row = self.read(tmp_path, {"a": {"value": value}})
        assert (row["reward"], row["resolved"], row["note"]) == (value, None, "the score 'a' is outside [0, 1]")

    @pytest.mark.parametrize("order", [(math.nan, 1), (1, math.nan)])
    def test_epochs_that_are_not_scored_are_missing_in_whatever_order(self, tmp_path: Path, order: Any) -> None:
        rows = [sample(epoch=epoch, value=value) for epoch, value in enumerate(order, start=1)]
        found = {row["attempt"]: row["reward"] for row in rows_of(write_eval(tmp_path / "a.eval", rows))}
        assert found == {epoch: None if math.isnan(value) else 1 for epoch, value in enumerate(order, start=1)}

    @pytest.mark.parametrize("scores", [None, {}])
    def test_no_score_is_no_verdict_and_no_note(self, tmp_path: Path, scores: Any) -> None:
        row = self.read(tmp_path, scores, "a")
        assert no_verdict(row)
        assert (row["reward_key"], row["note"]) == (None, None)


@pytest.mark.usefixtures("log_module")
class TestUsage:
    def read(self, tmp_path: Path, models: Any, version: str = "0.3.285") -> dict[str, Any]:
        head = header(run=spec(packages={"inspect_ai": version}))
        return only(write_eval(tmp_path / "a.eval", [sample(model_usage=models)], head=head))

    def test_no_model_used_is_absent_not_0(self, tmp_path: Path) -> None:
        row = self.read(tmp_path, {})
        assert [row[name] for name in ("input_tokens", "cache_tokens", "output_tokens", "cost", "cache_included")] == [
            None
        ] * 5
        assert row["usage_status"] == "absent"
        assert row.get("requests") is None

    def test_a_number_that_is_not_in_the_log_is_not_the_models_default_of_0(self, tmp_path: Path) -> None:
        row = self.read(tmp_path, {"m": {"output_tokens": 7}})
        assert (row["input_tokens"], row["output_tokens"], row["usage_status"]) == (None, 7, "partial")

    @pytest.mark.parametrize(
        ("tokens", "status"),
        [
            ({"input_tokens": 0, "output_tokens": 0}, "zero_suspect"),
            ({"input_tokens": 0, "output_tokens": 9}, "zero_suspect"),
            ({"input_tokens": 0, "output_tokens": 9, "input_tokens_cache_read": 50}, "reported"),
        ],
    )
    def test_zeros_are_suspect_unless_everything_came_from_a_cache(
        self, tmp_path: Path, tokens: dict[str, int], status: str
    ) -> None:
        assert self.read(tmp_path, {"m": usage(**tokens)})["usage_status"] == status

    @pytest.mark.parametrize(
        ("model", "version", "included"),
        [
            ("openai/gpt-5", "0.3.183", None),
            ("openai/gpt-5", "0.3.184", False),
            ("openai/gpt-5", "0.3.184.dev3+g12ab", None),
            ("openai/gpt-5", "0.3.190.dev3+g12ab", False),
            ("google/gemini-3-pro", "0.3.207", None),
            ("google/gemini-3-pro", "0.3.208", False),
            ("openai/gpt-5", "unknown", None),
        ],
    )
    def test_input_is_without_the_cache_since_a_version_of_inspect(
        self, tmp_path: Path, model: str, version: str, included: bool | None
    ) -> None:
        row = self.read(tmp_path, {model: usage(input_tokens_cache_read=5)}, version)
        assert (row["cache_included"], row["cache_tokens"], row["source_version"]) == (included, 5, version)

    def test_models_are_summed_and_half_a_sum_is_missing(self, tmp_path: Path) -> None:
        both = {
            "a": usage(input_tokens_cache_read=5, input_tokens_cache_write=2, total_cost=0.5),
            "b": usage(output_tokens=1, total_cost=0.25),
        }
        row = self.read(tmp_path, both)
        assert (row["input_tokens"], row["output_tokens"], row["cost"]) == (202, 21, 0.75)
        assert row["cache_tokens"] is None
        del both["b"]["total_cost"]
        assert self.read(tmp_path, both)["cost"] is None


@pytest.mark.usefixtures("log_module")
class TestPlacesAndNames:
    @pytest.mark.parametrize(
        ("fields", "arm"),
        [
            ({}, "openai/gpt-5"),
            ({"solver": "react"}, "react (openai/gpt-5)"),
            ({"solver": "react", "model": "none/none"}, "react"),
            ({"model": "none/none"}, "arith"),
        ],
    )
    def test_the_arm(self, tmp_path: Path, fields: dict[str, Any], arm: str) -> None:
        path = write_eval(tmp_path / "a.eval", [sample()], head=header(run=spec(**fields)))
        assert only(path)["arm"] == arm
        assert only(path, arm="mine")["arm"] == "mine"
        assert {row["arm"] for row in inspect_log.planned(path, Files(), arm="mine") or []} == {"mine"}

    def test_names_that_are_numbers_are_texts(self, tmp_path: Path) -> None:
        row = only(write_eval(tmp_path / "a.eval", [sample(7)]))
        assert (row["task_id"], row["attempt"], row["run_id"], row["trial_id"]) == ("arith/7", 1, "run", "uuid-7-1")

    def test_the_plan_is_samples_by_epochs_each_once(self, tmp_path: Path) -> None:
        run = spec(dataset={"sample_ids": [1, "b"]}, config={"epochs": 2})
        for name in ("a.eval", "b.eval"):  # a run and its retry
            write_eval(tmp_path / name, head=header(run=run))
        planned = inspect_log.planned(tmp_path, Files()) or []
        assert [(row["task_id"], row["attempt"]) for row in planned] == [
            ("arith/1", 1),
            ("arith/1", 2),
            ("arith/b", 1),
            ("arith/b", 2),
        ]

    def test_without_sample_ids_there_is_no_plan(self, tmp_path: Path) -> None:
        head = header(run=spec(dataset={"samples": 2}))
        assert inspect_log.planned(write_eval(tmp_path / "a.eval", [sample()], head=head), Files()) is None

    def test_the_digest_is_of_the_file(self, tmp_path: Path) -> None:
        files = Files()
        for path in (write_eval(tmp_path / "a.eval", [sample()]), write_json(tmp_path / "b.json", [sample()])):
            (row,) = inspect_log.read(path, files)
            assert row["source_sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
        assert list(files.manifest()["path"]) == [str(tmp_path / "a.eval"), str(tmp_path / "b.json")]

    def test_a_folder_is_read_with_what_is_below_it(self, tmp_path: Path) -> None:
        (tmp_path / "deep").mkdir()
        write_eval(tmp_path / "deep" / "b.eval", [sample("b")])
        write_json(tmp_path / "a.json", [sample("a")])
        (tmp_path / "2026-03-01T10-00-00-00-00_arith_x.json").touch()
        (tmp_path / "eval-set.json").write_text("{}", encoding="utf-8")
        assert [(row["state"], row.get("task_id")) for row in rows_of(tmp_path)] == [
            ("unreadable", None),
            ("finished", "arith/a"),
            ("finished", "arith/b"),
        ]

    def test_links_inside_a_folder_are_named_and_not_followed(self, tmp_path: Path) -> None:
        folder, elsewhere = tmp_path / "logs", tmp_path / "elsewhere"
        folder.mkdir()
        elsewhere.mkdir()
        log = write_eval(elsewhere / "a.eval", [sample()])
        (folder / "a.eval").symlink_to(log)
        (folder / "sub").symlink_to(elsewhere)
        rows = rows_of(folder)
        assert [row["state"] for row in rows] == ["unreadable"] * 2
        assert all("symbolic link" in row["note"] for row in rows)
        assert inspect_log.planned(folder, Files()) is None
        (tmp_path / "link").symlink_to(elsewhere)
        assert only(tmp_path / "link")["resolved"] is True
        assert only(folder / "a.eval")["resolved"] is True

    def test_a_path_that_looks_like_a_remote_one_is_a_file(self, tmp_path: Path, monkeypatch: Any) -> None:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "s3:" / "bucket").mkdir(parents=True)
        for path in (Path("s3://bucket/a.eval"), Path("a::b.eval"), Path("~.eval"), Path("a*[b].eval")):
            write_eval(path, [sample()], samples=[sample()])
            assert only(path)["resolved"] is True


JSON = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**20), 10**20), st.floats(), st.text(max_size=5), st.just([]), st.just({})
)
KEYS = ("id", "epoch", "scores", "model_usage", "total_time", "started_at", "error", "limit", "uuid", "retries")


def check(path: Path, files: Files | None = None) -> list[dict[str, Any]]:
    """Read a path as the table of trials; what is unreadable has no verdict and says why."""
    rows = list(inspect_log.read(path, files or Files()))
    for row in rows:
        if row["state"] == "unreadable":
            assert no_verdict(row)
            assert row["note"]
        assert row.get("reward") is None or math.isfinite(row["reward"])
    inspect_log.planned(path, Files())
    read_trials(path, "inspect")
    return rows


@pytest.mark.usefixtures("log_module")
class TestHostile:
    @FUZZ
    @given(changes=st.dictionaries(st.sampled_from(KEYS), JSON, max_size=3), as_json=st.booleans())
    def test_any_value_in_a_sample(self, tmp_path: Path, changes: dict[str, Any], as_json: bool) -> None:
        rows = [sample() | changes, sample("b")]
        writer, name = (write_json, "a.json") if as_json else (write_eval, "a.eval")
        more = {} if as_json else {"samples": [sample("b")]}
        found = check(writer(tmp_path / name, rows, **more))
        assert any(row.get("task_id") == "arith/b" and row["state"] == "finished" for row in found)

    @FUZZ
    @given(
        place=st.sampled_from(["header.json", "summaries.json", "samples/a_epoch_1.json", "samples/x_epoch_.json"]),
        document=JSON
        | st.lists(JSON, max_size=2)
        | st.dictionaries(st.sampled_from([*KEYS, "eval"]), JSON, max_size=3),
    )
    def test_any_document_in_place_of_one(self, tmp_path: Path, place: str, document: Any) -> None:
        path = tmp_path / "a.eval"
        members = {"header.json": header(), "summaries.json": [sample("b")], place: document}
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in members.items():
                archive.writestr(name, json.dumps(content))
        check(path)

    @FUZZ
    @given(share=st.floats(0, 1), flip=st.binary(min_size=1, max_size=4), cut=st.booleans(), as_json=st.booleans())
    def test_any_damage(self, tmp_path: Path, share: float, flip: bytes, cut: bool, as_json: bool) -> None:
        writer, name = (write_json, "a.json") if as_json else (write_eval, "a.eval")
        path = writer(tmp_path / name, [sample("a"), sample("b")])
        content = path.read_bytes()
        place = int(share * len(content))
        path.write_bytes(content[:place] if cut else content[:place] + flip + content[place + len(flip) :])
        check(path)

    @FUZZ
    @given(content=st.binary(max_size=200), name=st.sampled_from(["a.eval", "a.json", "a"]))
    def test_any_bytes(self, tmp_path: Path, content: bytes, name: str) -> None:
        path = tmp_path / name
        path.write_bytes(content)
        (row,) = check(path)
        assert row["state"] == "unreadable"

    def test_a_file_that_is_gone_or_not_to_be_read(self, tmp_path: Path) -> None:
        assert only(tmp_path / "gone.eval")["note"] == "no such file"

    def test_a_log_that_changes_while_it_is_read_is_not_believed(self, tmp_path: Path) -> None:
        files = Files()
        path = write_eval(tmp_path / "a.eval", [sample()])
        assert part(next(inspect_log.read(path, files)), "resolved") is True
        write_eval(path, [sample(value="I")])
        row = next(inspect_log.read(path, files))
        assert row["state"] == "unreadable"
        assert "changed" in row["note"]
