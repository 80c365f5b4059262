"""`faultbook harness`: what it prints to programs and to people, with which exit code, on a team's own trials."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from faultbook import harness as hx
from faultbook.cli import main

HEADER = "arm,task_id,attempt,state,resolved"
KEYS = {
    *("pairs", "complete_pairs", "table", "difference", "low", "high", "mcnemar_exact", "bounds"),
    *("attrition", "usage", "timing", "problems"),
}
TABLE = ["both", "only_a", "only_b", "neither"]

# 24 tasks in two arms, 5 trials without an end: 7 against 10 of 21 pairs, of which 2 and 5 are solved by one arm alone.
SPLIT = ["11"] * 5 + ["10"] * 2 + ["01"] * 5 + ["00"] * 9
PLAN = "arm,task_id,attempt\n" + "".join(f"{arm},t{task:02},1\n" for arm in "ab" for task in range(24))

Run = Callable[..., Result]


def trials(arm: str, side: int) -> list[str]:
    rows = [f"{arm},t{task:02},1,finished,{outcome[side]}" for task, outcome in enumerate(SPLIT)]
    return [*rows, f"{arm},t21,1,unfinished,"] + ([f"{arm},t22,1,finished,1"] if arm == "b" else [])


def csv(rows: Iterable[str], header: str = HEADER) -> str:
    return "\n".join([header, *rows, ""])


def invoke(*arguments: object) -> Result:
    result = CliRunner().invoke(main, ["harness", *map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run the command in a folder with one file of two arms, two files of one arm each, and a plan."""
    monkeypatch.chdir(tmp_path)
    files = {
        "both.csv": csv(trials("a", 0) + trials("b", 1)),
        "a.csv": csv(trials("a", 0)),
        "b.csv": csv(trials("b", 1)),
    }
    for name, text in (files | {"plan.csv": PLAN}).items():
        Path(name).write_text(text, encoding="utf-8")
    return invoke


def _json(result: Result) -> dict[str, Any]:
    assert (result.exit_code, result.stderr) == (0, "")
    found: dict[str, Any] = json.loads(result.stdout, parse_constant=lambda name: pytest.fail(f"not JSON: {name}"))
    return found


def _refused(result: Result) -> str:
    assert (result.exit_code, result.stdout) == (2, "")
    assert len(result.stderr.splitlines()) == 1, result.stderr
    assert result.stderr.startswith("faultbook: ")
    return result.stderr


# ---- compare ------------------------------------------------------------------------------------------------------


def test_the_object_that_programs_read(run: Run) -> None:
    found = _json(run("compare", "both.csv", "--plan", "plan.csv", "--json"))
    assert set(found) >= KEYS
    assert (found["pairs"], found["complete_pairs"]) == (24, 21)
    assert type(found["complete_pairs"]) is int
    assert list(found["table"]) == TABLE
    assert all(type(found["table"][name]) is int for name in TABLE)
    for name in ("rate_a", "rate_b", "difference", "low", "high", "mcnemar_exact", "level"):
        assert isinstance(found[name], float)
        assert math.isfinite(found[name])
    assert isinstance(found["attrition"]["p"], float)
    assert [found["table"][name] for name in TABLE] == [5, 2, 5, 9]
    # measured with evalstats 0.3.3 (Bonett-Price) and statsmodels (exact) on the same split
    assert found["difference"] == pytest.approx(-100 * 3 / 21)
    assert [found["low"], found["high"]] == pytest.approx([-38.0, 12.0], abs=0.05)
    assert found["mcnemar_exact"] == pytest.approx(0.453, abs=5e-4)
    assert found["mcnemar_mid_p"] == pytest.approx(0.289, abs=5e-4)
    # by hand: −3 of 21 pairs; of t21 and t23 both ends are open, of t22 that of a
    assert (found["bounds"]["low"], found["bounds"]["high"]) == pytest.approx((100 * -6 / 24, 100 * -1 / 24))
    assert found["bounds"]["could_turn"] == "no"
    assert [row["why"] for row in found["incomplete"]] == [
        "a: unfinished; b: unfinished",
        "a: not started",
        "a: not started; b: not started",
    ]
    assert found["plan_source"] == "file"
    assert found["problems"] == []
    arms = {row["arm"]: row for row in found["attrition"]["arms"]}
    assert (arms["a"]["observed"], arms["b"]["observed"], arms["a"]["not_started"]) == (21, 22, 2)
    assert set(found["usage"]) == {"arms", "paired", "suspected"}
    assert all(row["ratio"] is None and row["metered_pairs"] == 0 for row in found["usage"]["paired"])
    assert all(row["seconds"] is None and row["timed"] == 0 for row in found["timing"])


def test_one_file_two_files_and_a_file_twice_say_the_same(run: Run) -> None:
    both = _json(run("compare", "both.csv", "--plan", "plan.csv", "--json"))
    for paths in (("a.csv", "b.csv"), ("a.csv", "b.csv", "a.csv"), ("both.csv", "./both.csv")):
        assert _json(run("compare", *paths, "--plan", "plan.csv", "--json")) == both


def test_without_a_plan_what_no_arm_started_is_unknown(run: Run) -> None:
    found = _json(run("compare", "both.csv", "--json"))
    assert (found["pairs"], found["complete_pairs"], found["plan_source"]) == (23, 21, "inferred")
    assert "tasks that no arm started are not in it" in run("compare", "both.csv").stdout


def test_the_order_of_the_arms_is_the_callers(run: Run) -> None:
    one = _json(run("compare", "a.csv", "b.csv", "--json"))
    other = _json(run("compare", "b.csv", "a.csv", "--json"))
    assert (one["arm_a"], other["arm_a"]) == ("a", "b")
    assert one["difference"] == -other["difference"]
    assert [one["low"], one["high"]] == pytest.approx([-other["high"], -other["low"]])
    swapped = _json(run("compare", "both.csv", "--arm", "b", "--arm", "a", "--json"))
    assert swapped["difference"] == other["difference"]
    assert [other["table"][name] for name in TABLE] == [5, 5, 2, 9]


def test_two_runs_of_one_arm_are_called_after_their_paths(run: Run, tmp_path: Path) -> None:
    Path("second.csv").write_text(csv(trials("a", 1)), encoding="utf-8")
    found = _json(run("compare", "a.csv", "second.csv", "--json"))
    assert (found["arm_a"], found["arm_b"]) == ("a", "second")
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        Path(name, "run.csv").write_text(csv(trials("x", 0)), encoding="utf-8")
    found = _json(run("compare", "one/run.csv", "two/run.csv", "--json"))
    assert (found["arm_a"], found["arm_b"], found["difference"]) == ("one/run.csv", "two/run.csv", 0)


def test_two_of_three_arms(run: Run) -> None:
    Path("three.csv").write_text(csv(trials("a", 0) + trials("b", 1) + trials("c", 1)), encoding="utf-8")
    assert "3 arms ('a', 'b', 'c'); name the two" in _refused(run("compare", "three.csv"))
    found = _json(run("compare", "three.csv", "--arm", "c", "--arm", "a", "--json"))
    assert (found["arm_a"], found["arm_b"]) == ("c", "a")
    assert found["difference"] == pytest.approx(100 * 3 / 21)
    assert [row["arm"] for row in found["attrition"]["arms"]] == ["c", "a"]
    assert {row["arm"] for row in found["usage"]["arms"]} == {row["arm"] for row in found["timing"]} == {"a", "c"}


def test_several_attempts_have_no_paired_table(run: Run) -> None:
    rows = [f"{arm},t{task},{attempt},finished,{int((task + attempt) % 3 == 0 or arm == 'a')}"
            for arm in "ab" for task in range(6) for attempt in (1, 2, 3)]  # fmt: skip
    Path("repeats.csv").write_text(csv(rows), encoding="utf-8")
    found = _json(run("compare", "repeats.csv", "--json"))
    assert (found["mcnemar_exact"], found["mcnemar_mid_p"]) == (None, None)
    assert found["table"] == dict.fromkeys(TABLE)
    assert (found["pairs"], found["complete_pairs"]) == (6, 6)
    assert found["sign_flip"] == pytest.approx(2 * 0.5**6)
    assert "sign flip" in run("compare", "repeats.csv").stdout
    assert "only a" not in run("compare", "repeats.csv").stdout


def test_what_is_undefined_is_null(run: Run) -> None:
    Path("none.csv").write_text(csv(["a,t,1,unfinished,", "b,t,1,unfinished,"]), encoding="utf-8")
    found = _json(run("compare", "none.csv", "--json"))
    assert found["table"] == dict.fromkeys(TABLE, 0)
    assert [found[name] for name in ("complete_pairs", "difference", "low", "high", "mcnemar_exact")] == [0] + [
        None
    ] * 4
    assert (found["bounds"]["low"], found["bounds"]["high"]) == (-100, 100)
    text = run("compare", "none.csv").stdout
    assert "nothing can be compared" in text
    assert "over every completion of the plan: -100.0 to +100.0 pp\n" in text
    assert "nan" not in text
    Path("alike.csv").write_text(csv(["a,t,1,finished,1", "b,t,1,finished,1"]), encoding="utf-8")
    found = _json(run("compare", "alike.csv", "--json"))
    assert (found["mcnemar_exact"], found["test"], found["difference"]) == (None, "no discordant pairs", 0)
    assert "nan" not in run("compare", "alike.csv").stdout


def test_arms_without_a_task_in_common(run: Run) -> None:
    Path("apart.csv").write_text("arm,task_id,attempt\na,t01,1\nb,t02,1\n", encoding="utf-8")
    found = _json_with_problems(run("compare", "both.csv", "--plan", "apart.csv", "--json"))
    assert (found["pairs"], found["complete_pairs"], found["bounds"]["low"], found["difference"]) == (0, 0, None, None)
    text = run("compare", "both.csv", "--plan", "apart.csv").stdout
    assert "no task is planned in both arms" in text
    assert "nan" not in text


def _json_with_problems(result: Result) -> dict[str, Any]:
    assert result.exit_code == 0
    found: dict[str, Any] = json.loads(result.stdout, parse_constant=lambda name: pytest.fail(f"not JSON: {name}"))
    return found


def test_text_output(run: Run) -> None:
    lines = run("compare", "both.csv", "--plan", "plan.csv").stdout.splitlines()
    assert lines[:6] == [
        "a: 21 of 24 planned outcomes observed, 3 not",
        "b: 22 of 24 planned outcomes observed, 2 not",
        "plan: file; 21 of 24 pairs are complete",
        "both 5, only a 2, only b 5, neither 9",
        "a 33.3%, b 47.6%: difference -14.3 pp [-38.0, +12.0] (95%, Bonett-Price adjusted Wald)",
        "McNemar, exact binomial: p 0.453; mid-p 0.289",
    ]
    assert "outcome: known on both sides of 21 of 24 pairs" in lines
    assert "usage: known on both sides of 0 of 24 pairs" in lines
    assert not any("cost" in line for line in lines)  # nothing metered: no ratio, and no warning of one


def test_the_level_is_that_of_the_interval(run: Run) -> None:
    wide, narrow = (_json(run("compare", "both.csv", "--level", level, "--json")) for level in (0.99, 0.5))
    assert wide["low"] < narrow["low"] < narrow["high"] < wide["high"]
    assert "(50%, " in run("compare", "both.csv", "--level", 0.5).stdout


METERED = f"{HEADER},cause,input_tokens,output_tokens,cache_included,total_seconds,agent_seconds"


def test_usage_and_time_have_denominators_of_their_own(run: Run) -> None:
    rows = [
        "a,t1,1,finished,1,,1000,100,true,100,80",
        "b,t1,1,finished,1,,500,100,true,50,45",
        "a,t2,1,finished,0,,0,0,true,10,",
        "b,t2,1,finished,0,,700,70,true,,",
        "a,t3,1,finished,0,,,,,,",
        "b,t3,1,finished,1,,300,30,true,30,20",
    ]
    Path("metered.csv").write_text(csv(rows, METERED), encoding="utf-8")
    found = _json(run("compare", "metered.csv", "--json"))
    axes = {row["axis"]: row["both"] for row in found["denominators"]}
    assert axes == {"outcome": 3, "usage": 1, "time": 1}
    ratio = next(row for row in found["usage"]["paired"] if row["quantity"] == "input_tokens")
    assert (ratio["metered_pairs"], ratio["ratio"]) == (1, 2)
    assert [row["task_id"] for row in found["usage"]["suspected"]] == ["t2"]
    totals = {row["arm"]: row["total"] for row in found["usage"]["arms"] if row["quantity"] == "input_tokens"}
    assert totals == {"a": 1000, "b": 1500}  # the zero is none
    rest = {row["arm"]: row["seconds"] for row in found["timing"] if row["phase"] == "unexplained"}
    assert rest == {"a": 20, "b": 15}
    text = run("compare", "metered.csv").stdout
    assert "input tokens: ratio 2.00 over 1 metered pairs" in text or "input tokens: ratio 2.00 [" in text
    assert text.index("input tokens: ratio") < text.index("tokens are not a cost")
    assert "1 trials record zero tokens" in text


def test_what_is_missing_from_one_arm_only_is_flagged_before_anything_is_compared(run: Run) -> None:
    lost = [f"a,t{task},1,finished,0,provider_quota,,,,," for task in range(8)]
    kept = [f"b,t{task},1,finished,1,completed,,,,," for task in range(8)]
    both = [f"{arm},u{task},1,finished,{task % 2},completed,,,,," for arm in "ab" for task in range(4)]
    Path("quota.csv").write_text(csv([*lost, *kept, *both], METERED), encoding="utf-8")
    found = _json(run("compare", "quota.csv", "--json"))
    assert found["attrition"]["flags"] == [
        "failures of the infrastructure in 'a' only: 8 (provider_quota 8)",
        "outcomes are missing more often in 'a' (p 0.0078): the pairs left are not a fair sample",
    ]
    assert (found["complete_pairs"], found["attrition"]["lost_in_a"], found["attrition"]["lost_in_b"]) == (4, 8, 0)
    lines = run("compare", "quota.csv").stdout.splitlines()
    assert [line.startswith("FLAG: ") for line in lines[:3]] == [True, True, False]
    assert lines[0] == f"FLAG: {found['attrition']['flags'][0]}"


def test_trials_outside_the_plan_and_twice_are_named_and_do_not_enter(run: Run) -> None:
    before = _json(run("compare", "both.csv", "--plan", "plan.csv", "--json"))
    more = ["a,extra,1,finished,1", "c,t00,1,finished,1", "a,t00,2,finished,1", "a,t01,1,finished,1"]
    Path("more.csv").write_text(csv([*trials("a", 0), *trials("b", 1), *more]), encoding="utf-8")
    result = run("compare", "more.csv", "--plan", "plan.csv", "--json")
    found = _json(result)
    assert {name: value for name, value in found.items() if name != "problems"} == {
        name: value for name, value in before.items() if name != "problems"
    }
    assert [row["problem"] for row in found["problems"]] == [
        "attempt 1 of 'a' at 'extra' does not enter: the task is not planned for this arm",
        "attempt 1 of 'c' at 't00' does not enter: the arm is not planned",
        "attempt 2 of 'a' at 't00' does not enter: the attempt is not planned",
        "attempt 1 of 'a' at 't01' does not enter: the same trial again",
    ]
    text = run("compare", "more.csv", "--plan", "plan.csv")
    assert (text.exit_code, len(text.stderr.splitlines())) == (0, 4)


def test_a_wrong_word_is_located_and_does_not_stop_the_rest(run: Run) -> None:
    Path("word.csv").write_text(csv([*trials("a", 0), *trials("b", 1), "a,t23,1,done,1"]), encoding="utf-8")
    found = _json(run("compare", "word.csv", "--plan", "plan.csv", "--json"))
    (problem,) = found["problems"]
    assert (problem["file"], problem["row"], problem["column"]) == ("word.csv", "47", "state")
    assert "'done'" in problem["problem"]
    assert found["complete_pairs"] == 21


# ---- mistakes -----------------------------------------------------------------------------------------------------

WRONG = {
    "empty.csv": "",
    "blank.csv": "\n\n",
    "header.csv": f"{HEADER}\n",
    "word.csv": csv(["a,t,1,done,1", "b,t,1,done,0"]),
    "columns.csv": "arm,task,ok\na,t,1\n",
    "one.csv": csv(["a,t,1,finished,1"]),
    "others.csv": "arm,task_id,attempt\nx,t00,1\ny,t00,1\n",
    "planned.csv": "arm,task_id,attempt\n",
}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "Missing argument"),
        (("absent.csv",), "absent.csv: no such file or folder"),
        (("both.csv", "absent.csv"), "absent.csv: no such file or folder"),
        (("both.csv", "--plan", "absent.csv"), "absent.csv: no such file"),
        (("empty.csv",), "empty.csv: not a CSV table"),
        (("blank.csv",), "blank.csv"),
        (("header.csv",), "there is no trial"),
        (("header.csv", "--plan", "plan.csv"), "plan.csv: plans 'a', 'b', but there are trials of no arm"),
        (("word.csv", "--plan", "plan.csv"), "word.csv, row 2, column 'state'"),
        (("word.csv",), "no trial"),
        (("columns.csv",), "columns missing: "),
        (("one.csv",), "the plan has 1 arms ('a')"),
        (("both.csv", "--plan", "one.csv"), "the plan has 1 arms"),
        (
            ("both.csv", "--plan", "others.csv"),
            "others.csv: plans 'x', 'y', but there are trials of 'a', 'b'; name the",
        ),
        (("both.csv", "--plan", "planned.csv"), "planned.csv"),
        (("both.csv", "--plan", "empty.csv"), "empty.csv: not a CSV table"),
        (("both.csv", "--arm", "a"), "two different arms are compared"),
        (("both.csv", "--arm", "a", "--arm", "a"), "two different arms are compared"),
        (("both.csv", "--arm", "a", "--arm", "b", "--arm", "a"), "two different arms are compared"),
        (("both.csv", "--arm", "a", "--arm", "[bold]"), "no arm '[bold]' in the plan; there are 'a', 'b'"),
        (("both.csv", "--level", "1"), "--level"),
        (("both.csv", "--level", "0"), "--level"),
        (("both.csv", "--level", "nan"), "--level is nan"),
        (("both.csv", "--seed", "-1"), "--seed"),
        (("folder",), "folder: no trials of a known format here"),
    ],
)
def test_a_mistake_is_one_line_and_exit_2(run: Run, tmp_path: Path, arguments: tuple[str, ...], says: str) -> None:
    for name, text in WRONG.items():
        Path(name).write_text(text, encoding="utf-8")
    (tmp_path / "folder").mkdir()
    assert says in _refused(run("compare", *arguments))


@pytest.mark.parametrize("command", ["causes", "evidence"])
@pytest.mark.parametrize("path", ["absent.csv", "folder"])
def test_mistakes_of_the_other_commands(run: Run, tmp_path: Path, command: str, path: str) -> None:
    (tmp_path / "folder").mkdir()
    assert path in _refused(run(command, path))
    assert "Missing argument" in _refused(run(command))


def test_a_file_that_may_not_be_read(run: Run) -> None:
    Path("a.csv").chmod(0)
    if os.access("a.csv", os.R_OK):
        pytest.skip("whoever runs this may read every file")
    assert "a.csv" in _refused(run("compare", "a.csv", "b.csv"))


def test_a_plan_that_one_arm_has_not_begun_is_no_mistake(run: Run) -> None:
    Path("a.csv").write_text(csv(trials("a", 0)), encoding="utf-8")
    found = _json(run("compare", "a.csv", "--plan", "plan.csv", "--json"))
    assert (found["complete_pairs"], found["arm_b"]) == (0, "b")
    assert found["attrition"]["flags"] != []


# ---- hostile names ------------------------------------------------------------------------------------------------

ARM = "<b>&[red]a[/red]\x1b[31m\u202e\nFLAG: forged"
TASK = "t\x07\x1b]0;title\x07$x_1$\r\nb: 24 of 24"


def quoted(value: str) -> str:
    return '"' + value.replace('"', '""') + '"'


def test_names_from_a_file_cannot_write_to_the_terminal(run: Run) -> None:
    rows = [f"{quoted(arm)},{quoted(TASK)},1,finished,{int(arm == 'b')},,,,,," for arm in (ARM, "b")]
    rows += [f"{quoted(ARM)},t2,1,finished,0,provider_quota,,,,,", f"{quoted(ARM)},t3,9,odd,0,,,,,,"]
    Path("hostile.csv").write_bytes(csv(rows, METERED).encode())
    shown = "<b>&[red]a[/red] FLAG: forged"
    results = {command: run(command, "hostile.csv") for command in ("compare", "causes", "evidence")}
    for command, result in results.items():
        assert result.exit_code == 0
        assert not set("\x07\x1b\u202e\r") & set(result.output)
        lines = result.stdout.splitlines()
        assert not any(line.startswith(("FLAG: forged", "b: 24 of 24")) for line in lines), lines
        assert command == "evidence" or any(line.startswith(shown) for line in lines)
    text = results["compare"]
    assert text.stdout.startswith("FLAG: failures of the infrastructure in '<b>&[red]a[/red]")
    assert len(text.stderr.splitlines()) == 1
    machine = run("compare", "hostile.csv", "--json")
    assert json.loads(machine.stdout)["arm_a"].startswith("<b>&[red]a[/red]")
    assert "\x1b" not in machine.stdout


@pytest.mark.parametrize("command", ["compare", "causes", "evidence"])
@pytest.mark.parametrize("flag", [(), ("--json",)])
def test_half_a_surrogate_pair_in_another_tools_file(run: Run, command: str, flag: tuple[str, ...]) -> None:
    for name, resolved in (("one", ["x\ud800", "y"]), ("two", ["y"])):
        ids = {"submitted_ids": ["x\ud800", "y"], "completed_ids": ["x\ud800", "y"]}
        lists = ids | {"resolved_ids": resolved, "unresolved_ids": [], "error_ids": [], "empty_patch_ids": []}
        Path(f"{name}.run.json").write_text(json.dumps(lists | {"schema_version": 2}), encoding="utf-8")
    result = run(command, "one.run.json", "two.run.json", *flag)
    assert result.exit_code in (0, 2)
    result.output.encode()
    if result.exit_code == 2:
        _refused(result)


def test_a_file_name_that_is_no_text(run: Run, tmp_path: Path) -> None:
    name = os.fsdecode(b"bad\xff.csv")
    try:
        (tmp_path / name).write_text(csv(trials("a", 0) + trials("b", 1)), encoding="utf-8")
    except OSError:
        pytest.skip("this file system takes only names in UTF-8")
    for command in ("compare", "causes", "evidence"):
        for flag in ((), ("--json",)):
            result = run(command, name, *flag)
            assert result.exit_code in (0, 2)
            if result.exit_code == 2:
                _refused(result)


def test_a_line_break_in_the_name_of_a_file(run: Run) -> None:
    Path("a\nFLAG: b.csv").write_text(csv(trials("a", 0) + trials("b", 1)), encoding="utf-8")
    for command in ("compare", "causes", "evidence"):
        assert not any(line.startswith("FLAG") for line in run(command, "a\nFLAG: b.csv").output.splitlines())


# ---- files that change --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("moment", "file"), [("compare", "a.csv"), ("usage", "plan.csv"), ("timing", "b.csv")])
def test_a_file_that_changes_before_the_report_stops_it(
    run: Run, monkeypatch: pytest.MonkeyPatch, moment: str, file: str
) -> None:
    really = getattr(hx, moment)

    def meanwhile(*arguments: Any, **options: Any) -> Any:
        Path(file).write_bytes(Path(file).read_bytes() + b"\n")
        return really(*arguments, **options)

    monkeypatch.setattr(hx, moment, meanwhile)
    refused = _refused(run("compare", "a.csv", "b.csv", "--plan", "plan.csv", "--json"))
    assert f"{file}: changed between reading and reporting" in refused


def test_a_file_that_is_gone_before_the_report_stops_it(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    really = hx.cause_table

    def meanwhile(*arguments: Any) -> Any:
        Path("b.csv").unlink(missing_ok=True)
        return really(*arguments)

    monkeypatch.setattr(hx, "cause_table", meanwhile)
    assert "b.csv: no such file" in _refused(run("causes", "a.csv", "b.csv"))


def test_evidence_of_a_file_that_changes_is_none(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    really = hx.liveness_of

    def meanwhile(paths: Any) -> Any:
        Path("a.csv").write_text("gone on", encoding="utf-8")
        return really(paths)

    monkeypatch.setattr(hx, "liveness_of", meanwhile)
    assert "a.csv: changed between reading and reporting" in _refused(run("evidence", "a.csv", "b.csv"))


# ---- causes and evidence ------------------------------------------------------------------------------------------


def test_causes_by_arm(run: Run) -> None:
    rows = [
        "a,t1,1,finished,1,completed,,,,,",
        "a,t2,1,finished,1,agent_budget_exhausted,,,,,",
        "a,t3,1,finished,,provider_quota,,,,,",
        "a,t4,1,unfinished,,,,,,,",
        "b,t1,1,finished,0,completed,,,,,",
        "b,t2,1,finished,0,,,,,,",
    ]
    Path("causes.csv").write_text(csv(rows, METERED), encoding="utf-8")
    found = _json(run("causes", "causes.csv", "--json"))
    assert set(found) == {"causes", "problems"}
    assert sum(row["trials"] for row in found["causes"]) == 8  # every planned trial once
    quota = next(row for row in found["causes"] if row["cause"] == "provider_quota")
    assert (quota["owner"], quota["retryable"], quota["verdict_stands"], quota["trials"]) == (
        "provider",
        False,
        False,
        1,
    )
    unknown = next(
        row for row in found["causes"] if row["arm"] == "b" and row["state"] == "finished" and not row["cause"]
    )
    assert (unknown["owner"], unknown["verdict_stands"], unknown["trials"]) == (None, None, 1)
    assert run("causes", "causes.csv").stdout.splitlines() == [
        "a: finished, completed (agent): 1, of them resolved 1",
        "a: finished, agent_budget_exhausted (agent): 1, of them resolved 1",
        "a: finished, provider_quota (provider): 1, of them resolved 0",
        "a: unfinished: 1",
        "b: finished: 1, of them resolved 0",
        "b: finished, completed (agent): 1, of them resolved 0",
        "b: not started: 2",
    ]


def test_causes_against_a_plan_of_other_arms(run: Run) -> None:
    Path("others.csv").write_text(WRONG["others.csv"], encoding="utf-8")
    assert "others.csv: plans 'x', 'y'" in _refused(run("causes", "both.csv", "--plan", "others.csv"))
    assert _json(run("causes", "a.csv", "--json"))["causes"][0]["arm"] == "a"  # one arm is enough here


def test_evidence_lists_what_was_read(run: Run) -> None:
    found = _json(run("evidence", "a.csv", "b.csv", "--json"))
    assert set(found) == {"files", "sources", "liveness"}
    rows = {row["path"]: row for row in found["files"]}
    assert list(rows) == ["a.csv", "b.csv"]
    for name, row in rows.items():
        content = Path(name).read_bytes()
        assert (row["bytes"], row["sha256"]) == (len(content), hashlib.sha256(content).hexdigest())
    assert [row["revision"] for row in found["sources"]] == [None, None]
    assert {row["state"] for row in found["liveness"]} == {"indeterminate"}
    lines = run("evidence", "a.csv").stdout.splitlines()
    assert lines[0] == f"{rows['a.csv']['sha256']}  {rows['a.csv']['bytes']:>12,}  a.csv"
    assert lines[1].startswith("a.csv: no revision; ")
    assert lines[2].startswith("a.csv: indeterminate; ")
