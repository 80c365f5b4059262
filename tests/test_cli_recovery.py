"""`faultbook recovery`: what it prints to programs and to people, with which exit code, on a team's own episodes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result

from faultbook import recovery as rx
from faultbook.cli import main

HEADER = "task_id,condition,delay,action,success\n"
# (task, without, with) of each cell: two rescues and a harm; rescues only; nothing that changes
CELLS = {
    ("stale2", 0): [("a", 0, 1), ("b", 0, 1), ("c", 1, 0), ("d", 1, 1)],
    ("stale2", 1): [("a", 0, 1), ("b", 0, 1), ("c", 0, 1), ("d", 0, 1)],
    ("clean", 0): [("a", 1, 1), ("b", 1, 1), ("c", 1, 1), ("d", 0, 0)],
}
EPISODES = HEADER + "".join(
    f"{task},{condition},{delay},none,{without}\n{task},{condition},{delay},refresh,{with_}\n"
    for (condition, delay), tasks in CELLS.items()
    for task, without, with_ in tasks
)
EFFECT_KEYS = {
    *("condition", "delay", "action", "n_tasks", "rescues", "harms", "stable_successes", "stable_failures"),
    *("success_without", "success_with", "effect_pp", "low", "high", "mcnemar_exact"),
}
GATES = ["delay", "error", "failure", "utility"]
OUR_FAILURE = ("--failure-probability", "complement_of_p0")

Run = Callable[..., Result]


def invoke(*arguments: object) -> Result:
    result = CliRunner().invoke(main, ["recovery", *map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run the command in a folder with a file of episodes."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "episodes.csv").write_text(EPISODES, encoding="utf-8")
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


# ---- effects ------------------------------------------------------------------------------------------------------


def test_effects_of_the_five_columns_that_suffice(run: Run) -> None:
    found = _json(run("effects", "episodes.csv", "--json"))
    assert set(found) >= {"effects", "control", "unpaired", "problems"}
    rows = {(row["condition"], row["delay"]): row for row in found["effects"]}
    assert list(rows) == [("clean", 0), ("stale2", 0), ("stale2", 1)]  # never pooled
    assert all(set(row) >= EFFECT_KEYS and row["action"] == "refresh" and row["n_tasks"] == 4 for row in rows.values())
    stale = rows["stale2", 0]
    counts = [stale[name] for name in ("rescues", "harms", "stable_successes", "stable_failures")]
    assert counts == [2, 1, 1, 0]
    assert (stale["success_without"], stale["success_with"], stale["effect_pp"]) == (0.5, 0.75, 25)
    assert stale["low"] < 25 < stale["high"]
    assert stale["mcnemar_exact"] == 1.0  # two-sided, 2 against 1
    assert (found["control"], found["unpaired"], found["problems"]) == ([], [], [])


def test_what_is_undefined_is_null(run: Run) -> None:
    rows = {(row["condition"], row["delay"]): row for row in _json(run("effects", "episodes.csv", "--json"))["effects"]}
    clean, all_rescued = rows["clean", 0], rows["stale2", 1]
    assert (clean["mcnemar_exact"], clean["test"]) == (None, "no discordant pairs")
    assert (clean["low"], clean["high"], clean["effect_pp"]) == (None, None, 0)
    assert clean["harm_upper"] == pytest.approx(1 - 0.05 ** (1 / 4))  # exact: no harm in 4 tasks
    # every task was rescued: 2 × 0.5⁴, and no resample can differ
    assert (all_rescued["mcnemar_exact"], all_rescued["low"], all_rescued["high"]) == (0.125, None, None)


def test_parquet_is_read_alike(run: Run, tmp_path: Path) -> None:
    pd.read_csv(tmp_path / "episodes.csv").to_parquet(tmp_path / "episodes.parquet")
    csv, parquet = (_json(run("effects", f"episodes.{kind}", "--json")) for kind in ("csv", "parquet"))
    assert csv == parquet


def test_text_output_gives_counts_interval_and_test(run: Run) -> None:
    lines = run("effects", "episodes.csv").stdout.splitlines()
    assert len(lines) == 4
    assert lines[0] == "clean, delay 0, refresh: 0 rescues, 0 harms of 4 tasks, +0.0 pp; no discordant pairs"
    assert lines[1].startswith("stale2, delay 0, refresh: 2 rescues, 1 harms of 4 tasks, +25.0 pp [")
    assert lines[1].endswith("]; exact McNemar p 1")
    assert lines[3] == "no A/A control"


def test_the_control_is_named_with_its_flips(run: Run, tmp_path: Path) -> None:
    again = "".join(f"{task},stale2,0,none,{success},1\n" for task, success in (("a", 0), ("b", 1), ("c", 1)))
    rows = "".join(f"{line},0\n" for line in EPISODES.splitlines()[1:])
    (tmp_path / "again.csv").write_text(f"{HEADER.strip()},replicate\n{rows}{again}", encoding="utf-8")
    assert run("effects", "again.csv").stdout.splitlines()[-1] == "A/A control: 1 flips in 3 repeats"
    (control,) = _json(run("effects", "again.csv", "--json"))["control"]
    assert [control[name] for name in ("condition", "delay", "n", "flips", "to_success")] == ["stale2", 0, 3, 1, 1]
    assert control["rate"] == pytest.approx(1 / 3)
    (tmp_path / "calm.csv").write_text(f"{HEADER.strip()},replicate\n{rows}b,stale2,0,none,0,1\n", encoding="utf-8")
    assert run("effects", "calm.csv").stdout.splitlines()[-1] == "A/A control: 0 flips in 1 repeats"


def _with_column(name: str, values: Callable[[str], object]) -> str:
    head, *rows = EPISODES.splitlines()
    return "\n".join([f"{head},{name}", *(f"{row},{values(row)}" for row in rows), ""])


def test_cohorts_side_by_side(run: Run, tmp_path: Path) -> None:
    text = _with_column("factual_success", lambda row: int(not row.startswith("d,")))
    (tmp_path / "known.csv").write_text(text, encoding="utf-8")
    rows = _json(run("effects", "known.csv", "--by-cohort", "--json"))["effects"]
    clean = [(row["tasks"], row["n_tasks"]) for row in rows if row["condition"] == "clean"]
    assert clean == [("factual success only", 3), ("with failures", 4)]
    lines = run("effects", "known.csv", "--by-cohort").stdout.splitlines()
    assert lines[0].startswith("clean, delay 0, refresh, factual success only: 0 rescues, 0 harms of 3 tasks")
    assert lines[1].startswith("clean, delay 0, refresh, with failures: 0 rescues, 0 harms of 4 tasks")


def test_one_cohort_of_a_file(run: Run, tmp_path: Path) -> None:
    text = _with_column("cohort", lambda row: "fit" if row[0] in "ab" else "evaluation")
    (tmp_path / "cohorts.csv").write_text(text, encoding="utf-8")
    rows = _json(run("effects", "cohorts.csv", "--cohort", "fit", "--json"))["effects"]
    assert [(row["n_tasks"], row["rescues"], row["harms"]) for row in rows] == [(2, 0, 0), (2, 2, 0), (2, 2, 0)]
    refused = _refused(run("effects", "cohorts.csv", "--cohort", "training"))
    assert "no episode of cohort 'training'; cohorts here: evaluation, fit" in refused


def test_problems_are_located_and_do_not_stop_the_rest(run: Run, tmp_path: Path) -> None:
    (tmp_path / "some.csv").write_text(f"{EPISODES}e,clean,0,none,perhaps\ne,clean,0,refresh,1\n", encoding="utf-8")
    found = _json(run("effects", "some.csv", "--json"))
    assert found["effects"][0]["n_tasks"] == 4
    unread, alone = found["problems"]
    assert (unread["row"], unread["column"]) == (str(EPISODES.count("\n") + 1), "success")
    assert "perhaps" in unread["problem"]
    assert ("'e'" in alone["row"], alone["problem"]) == (True, "no 'none' branch to compare with")
    (gap,) = found["unpaired"]
    assert (gap["task_id"], gap["action"]) == ("e", "refresh")
    result = run("effects", "some.csv")
    assert (result.exit_code, len(result.stderr.splitlines())) == (0, 2)
    assert f"some.csv, row {unread['row']}, column 'success'" in result.stderr
    assert "task 'e', condition 'clean'" in result.stderr


PREFIXES = f"""\
{HEADER.strip()},prefix_hash
a,clean,0,none,1,one
a,clean,0,refresh,1,{{other}}
b,clean,0,none,1,three
b,clean,0,refresh,0,three
"""


def test_unequal_prefixes_are_left_out_and_named(run: Run, tmp_path: Path) -> None:
    (tmp_path / "forks.csv").write_text(PREFIXES.format(other="two"), encoding="utf-8")
    found = _json(run("effects", "forks.csv", "--json"))
    assert [(row["n_tasks"], row["harms"]) for row in found["effects"]] == [(1, 1)]
    (problem,) = found["problems"]
    assert (problem["column"], "task 'a'" in problem["row"]) == ("prefix_hash", True)
    assert "'two' with the action, 'one' without" in problem["problem"]


def test_names_from_a_file_cannot_write_to_the_terminal(run: Run, tmp_path: Path) -> None:
    hostile = EPISODES.replace("stale2", "st\x07ale\u202e2")
    (tmp_path / "hostile.csv").write_text(f"{hostile}z,st\x07ale\u202e2,0,refresh,1\n", encoding="utf-8")
    result = run("effects", "hostile.csv")
    assert result.exit_code == 0
    assert "stale2, delay 0, refresh" in result.stdout
    assert not set("\x07\u202e") & set(result.output)


NO_NONE = "\n".join(line for line in EPISODES.splitlines() if ",none," not in line)
NOTHING_ELSE = "\n".join(line for line in EPISODES.splitlines() if ",refresh," not in line)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (NO_NONE, "task 'a', condition 'stale2', delay 0"),
        (NO_NONE, "no 'none' branch to compare with"),
        (NOTHING_ELSE, "no pair in episodes.csv: an action needs a branch with the action 'none'"),
        (PREFIXES.format(other="two").replace("0,three", "0,four"), "the branches differ in the state"),
        (HEADER, "holds no episode"),
        ("", "episodes.csv: not a CSV table"),
        (EPISODES.replace("success", "won"), "row 1: columns missing: success"),
        ("\n".join(EPISODES.splitlines()[:3]).replace("refresh,1", "refresh,maybe"), "row 3, column 'success'"),
    ],
)
def test_a_file_without_a_pair_says_why(run: Run, tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "episodes.csv").write_text(text, encoding="utf-8")
    assert says in _refused(run("effects", "episodes.csv"))


def test_a_file_without_an_episode_is_not_said_to_lack_a_cohort(run: Run, tmp_path: Path) -> None:
    (tmp_path / "other.csv").write_text("task,outcome\na,1\n", encoding="utf-8")
    assert "other.csv, row 1: columns missing" in _refused(run("effects", "other.csv", "--cohort", "fit"))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("effects", "absent.csv"), "'absent.csv' does not exist"),
        (("effects",), "Missing argument"),
        (("effects", "episodes.csv", "--seed", "-1"), "--seed"),
        (("effects", "episodes.csv", "--by-cohort"), "give factual_success"),
        (("effects", "episodes.csv", "--cohort", "fit"), "no episode of cohort 'fit'; cohorts here: none"),
        (("fit", "absent.csv", "--out", "m.json"), "'absent.csv' does not exist"),
        (("fit", "episodes.csv"), "--out"),
        (("fit", "episodes.csv", "--out", "m.json", "--C", "0"), "--C"),
        (("fit", "episodes.csv", "--out", "m.json", "--penalty", "l1"), "--penalty"),
        (("fit", "episodes.csv", "--out", "m.json"), "at delay 2 (there are delays 0, 1)"),
        (("fit", "episodes.csv", "--out", "m.json", "--action", "reset"), "there are actions 'none', 'refresh'"),
        (("calibrate", "episodes.csv"), "Missing option '--failure-probability'"),
        (("calibrate", "episodes.csv", "--failure-probability", "p0"), "'p0' is not 'complement_of_p0'"),
        (("calibrate", "episodes.csv", *OUR_FAILURE, "--harm-limit", "1"), "--harm-limit"),
        (("calibrate", "episodes.csv", *OUR_FAILURE, "--harm-penalty", "-1"), "--harm-penalty"),
        (("evaluate", "episodes.csv"), "Missing option"),
        (("evaluate", "episodes.csv", "--model", "absent.json", "--rule", "absent.json"), "does not exist"),
    ],
)
def test_a_mistake_is_one_line_and_exit_2(run: Run, tmp_path: Path, arguments: tuple[str, ...], says: str) -> None:
    assert says in _refused(run(*arguments))
    assert [path.name for path in tmp_path.iterdir()] == ["episodes.csv"]


# ---- fit, calibrate, evaluate -------------------------------------------------------------------------------------


def made_up(n_fit: int = 20, n_evaluation: int = 10) -> pd.DataFrame:
    """Runs of which a disturbed one fails (x_gap is high) unless it is refreshed, which is in vain in every fifth task
    (x_hope is low). Undisturbed runs succeed; in every tenth task a refresh at delay 4 ruins them."""
    rng, rows = np.random.default_rng(0), []
    for task in range(n_fit + n_evaluation):
        hopeless = task % 5 == 0
        for condition in ("clean", "stale2"):
            disturbed = condition == "stale2"
            for delay in (1, 2, 4):
                x_gap, x_hope, x_noise = 3.0 * disturbed, -2.0 if hopeless else 2.0, rng.uniform(-1, 1)
                with_ = not hopeless if disturbed else not (task % 10 == 1 and delay == 4)
                fork = {"task_id": f"t{task:02}", "condition": condition, "delay": delay}
                fork |= {"x_gap": x_gap, "x_hope": x_hope, "x_noise": x_noise, "prefix_hash": f"{task}-{delay}"}
                fork |= {"cohort": "fit" if task < n_fit else "evaluation"}
                rows += [fork | {"action": "none", "success": not disturbed}]
                rows += [fork | {"action": "refresh", "success": with_}]
    return pd.DataFrame(rows)


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with episodes, models and a rule, and what the commands that made these printed."""
    folder = tmp_path_factory.mktemp("chain")
    file = folder / "episodes.parquet"
    made_up().to_parquet(file)
    fitted = invoke("fit", file, "--out", folder / "model.json", "--cohort", "fit", "--C", "1", "--json")
    limits = ("--harm-limit", "0.05", "--harm-penalty", "3", "--C", "1", "--cohort", "fit")
    chosen = invoke("calibrate", file, *OUR_FAILURE, *limits, "--out", folder / "rule.json", "--json")
    for name, result in (("fitted", fitted), ("chosen", chosen)):
        assert result.exit_code == 0, result.stderr
        (folder / name).write_text(json.dumps(_json(result)), encoding="utf-8")
    return folder


def printed(folder: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / name).read_text(encoding="utf-8"))
    return found


def chained(folder: Path, *options: object) -> Result:
    """Evaluate on the cohort that nothing was chosen on; options given again win."""
    files = ("--model", folder / "model.json", "--rule", folder / "rule.json")
    return invoke("evaluate", folder / "episodes.parquet", "--cohort", "evaluation", *files, *options)


def test_fit_prints_how_well_the_models_do(chain: Path) -> None:
    found = printed(chain, "fitted")
    assert found["model"] == str(chain / "model.json")
    brier = {row["model"]: row for row in found["brier"]}
    assert list(brier) == ["p_err", "p0", "p1"]
    assert all(row["brier"] < row["brier_of_base_rate"] and row["n_tasks"] == 20 for row in brier.values())
    # a disturbed run is told by one feature; what is separated so is said, not fitted in silence
    assert [row["features"] for row in found["separation"] if row["model"] == "p_err"] == ["x_gap"]
    assert {row["model"] for row in found["calibration"]} == set(brier)
    loaded = rx.load_model(chain / "model.json")
    assert loaded.features == ("x_gap", "x_hope", "x_noise")
    assert loaded.n_rows == 20 * 2 * 3  # the evaluation cohort was not seen


def test_calibrate_saves_the_rule_that_it_prints(chain: Path) -> None:
    found = printed(chain, "chosen")
    (summary,) = found["summary"]
    rule = rx.load_rule(chain / "rule.json")
    for name in ("error_threshold", "failure_threshold", "utility_threshold", "harm_penalty", "min_delay"):
        assert summary[name] == getattr(rule, name)
    assert "20 tasks, clean harm at most 0.05" in rule.source
    assert rule.harm_penalty == 3
    # 16 of 20 tasks can be rescued, and every one is; ⌊.05 × 20⌋ = 1
    assert [summary[name] for name in ("gain", "harms", "clean_harms", "harms_allowed")] == [16, 0, 0, 1]
    assert not summary["certified"]
    assert found["frontier"][0]["gain"] == 16
    assert [row["gate"] for row in found["reachable"]] == [*GATES, "all"]


def test_evaluate_judges_on_other_tasks(chain: Path) -> None:
    found = _json(chained(chain, "--json"))
    assert set(found) == {"table", "differences", "flip_penalty", "reachable"}
    rows = {row["policy"]: row for row in found["table"] if row["condition"] == "all"}
    always = [f"always at delay {delay}" for delay in (1, 2, 4)]
    assert list(rows) == ["never", *always, "CIR rule", "oracle (uses outcomes)"]
    counts = {name: [row[key] for key in ("rescues", "harms", "clean_harms")] for name, row in rows.items()}
    assert counts["never"] == [0, 0, 0]
    assert counts["always at delay 4"] == [8, 1, 1]
    assert counts["CIR rule"] == counts["oracle (uses outcomes)"] == [8, 0, 0]
    rule = rows["CIR rule"]
    assert (rule["n_trajectories"], rule["policy_effect_pp"]) == (20, pytest.approx(40))
    assert rule["low_pp"] < 40 < rule["high_pp"]
    assert rows["never"]["low_pp"] is None
    assert [row["gate"] for row in found["reachable"] if row["reachable"]] == [*GATES, "all"]
    assert 8 <= rule["interventions"] <= 10


def test_text_output_of_the_chain(chain: Path) -> None:
    lines = {line.partition(":")[0]: line for line in chained(chain).stdout.splitlines()}
    assert lines["never"] == "never: +0.00 pp, 0 rescues, 0 harms (0 clean), 0 interventions in 20 runs"
    assert lines["CIR rule"].startswith("CIR rule: +40.00 pp [+")
    assert "1 harms (1 clean), 20 interventions in 20 runs" in lines["always at delay 4"]
    file = chain / "episodes.parquet"
    fitted = invoke("fit", file, "--out", chain / "again.json", "--cohort", "fit", "--C", "1").stdout.splitlines()
    assert [line.split(":")[0] for line in fitted[:3]] == ["p_err", "p0", "p1"]
    assert "of the base rate 0.250" in fitted[0]
    assert fitted[-1] == str(chain / "again.json")
    assert (chain / "again.json").read_bytes() == (chain / "model.json").read_bytes()  # one seed, one model
    chosen = invoke("calibrate", file, *OUR_FAILURE, "--cohort", "fit", "--C", "1").stdout.splitlines()
    assert chosen[0].startswith("error ≥ ")
    assert chosen[0].endswith(", delay ≥ 1")
    assert "not certified: that takes 149 harm-free tasks (183 for a two-sided interval)" in chosen[1]
    assert len(chosen) == 2  # without --out nothing is written


def test_a_gate_that_these_models_never_pass_is_named(chain: Path, tmp_path: Path) -> None:
    rule = json.loads((chain / "rule.json").read_text(encoding="utf-8")) | {"error_threshold": 1.0}
    (tmp_path / "strict.json").write_text(json.dumps(rule), encoding="utf-8")
    result = chained(chain, "--rule", tmp_path / "strict.json")
    assert result.exit_code == 0
    assert "CIR rule: +0.00 pp, 0 rescues, 0 harms (0 clean), 0 interventions" in result.stdout
    assert "gate error: p_err ≥ 1 is never reached: the highest attainable value is 0." in result.stderr


NOT_MODELS = {
    "rule.json": "column 'schema'.*'faultbook.recovery.estimators'",
    "episodes.parquet": "not UTF-8 text",
    "list.json": "not a model file",
    "deep.json": "nested too deeply",
}
NOT_RULES = {
    "model.json": "column 'schema'.*'faultbook.recovery.rule'",
    "episodes.parquet": "not JSON",
    "list.json": "not a rule file",
    "deep.json": "not JSON",
}


@pytest.mark.parametrize(
    ("option", "name", "says"),
    [("--model", *item) for item in NOT_MODELS.items()] + [("--rule", *item) for item in NOT_RULES.items()],
)
def test_a_file_of_another_kind_is_refused(chain: Path, option: str, name: str, says: str) -> None:
    (chain / "list.json").write_text("[]", encoding="utf-8")
    (chain / "deep.json").write_text("[" * 100_000, encoding="utf-8")
    message = _refused(chained(chain, option, chain / name))
    assert name in message
    assert pd.Series([message]).str.contains(says).all(), message


def test_episodes_without_a_feature_of_the_models(chain: Path, tmp_path: Path) -> None:
    made_up().drop(columns="x_gap").to_csv(tmp_path / "less.csv", index=False)
    files = ("--model", chain / "model.json", "--rule", chain / "rule.json")
    assert "x_gap" in _refused(invoke("evaluate", tmp_path / "less.csv", *files))


@pytest.mark.parametrize("command", ["fit", "calibrate"])
def test_a_pair_that_is_none_stops_what_learns_from_it(chain: Path, tmp_path: Path, command: str) -> None:
    frame = made_up()
    frame.loc[1, "prefix_hash"] = "another"
    frame.to_csv(tmp_path / "unequal.csv", index=False)
    options = ("--out", tmp_path / "m.json") if command == "fit" else OUR_FAILURE
    message = _refused(invoke(command, tmp_path / "unequal.csv", *options))
    assert "task 't00'" in message
    assert "the branches differ in the state that they start from: 'another' with the action" in message
    assert not (tmp_path / "m.json").exists()


@pytest.mark.parametrize(("command", "what"), [("fit", "model"), ("calibrate", "rule")])
def test_a_folder_that_is_not_there(chain: Path, command: str, what: str) -> None:
    options = OUR_FAILURE if command == "calibrate" else ()
    out = chain / "none" / f"{what}.json"
    refused = _refused(invoke(command, chain / "episodes.parquet", "--cohort", "fit", *options, "--out", out))
    assert f"{what}.json" in refused
    assert "cannot be written" in refused
    assert not out.parent.exists()


def test_nothing_to_gain_is_said(chain: Path, tmp_path: Path) -> None:
    frame = made_up()
    frame[frame["condition"] == "clean"].to_csv(tmp_path / "clean.csv", index=False)
    assert "nothing to gain" in _refused(invoke("calibrate", tmp_path / "clean.csv", *OUR_FAILURE))
