"""Several prompts: none after one that failed, and one exit status, whatever is printed and whatever signal comes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from faultbook.runtime.prompts import ending_on_signals, run_prompts
from faultbook.runtime.settlement import Event, Verdict, settle
from faultbook.runtime.termination import Termination

DONE = Termination("completed", False, "observed", "none", run_id="p1")
NETWORK = Termination("provider_network", True, "observed", "none", run_id="p1")
DEADLINE = 30  # seconds; never reached unless something hangs


def terminal(termination: Termination = DONE) -> Event:
    return Event("terminal", termination=termination)


def test_no_prompt_is_started_after_one_that_failed() -> None:
    asked: list[str] = []

    def run_one(prompt: str) -> Verdict:
        asked.append(prompt)
        return settle([terminal(NETWORK if prompt == "second" else DONE)])

    found = run_prompts(["first", "second", "third"], run_one)
    assert asked == ["first", "second"]
    assert (found.exit_code, found.not_started) == (1, 1)
    assert [verdict.outcome for verdict in found.verdicts] == ["completed", "failed"]


def test_all_prompts_are_worked_on_while_they_complete() -> None:
    found = run_prompts(iter("abc"), lambda _: settle([terminal()]))
    assert (found.exit_code, len(found.verdicts), found.not_started) == (0, 3, 0)


@pytest.mark.parametrize("prompts", [[], ["", "  \n"]])
def test_no_prompt_at_all_has_a_status_of_its_own(prompts: list[str]) -> None:
    assert run_prompts(prompts, lambda _: settle([terminal()])) == (2, (), 0)


def test_handlers_are_put_back_and_ignored_signals_stay_ignored() -> None:
    former = {name: signal.getsignal(name) for name in (signal.SIGTERM, signal.SIGHUP)}
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with ending_on_signals():
            assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
            assert signal.getsignal(signal.SIGTERM) != former[signal.SIGTERM]
        assert signal.getsignal(signal.SIGTERM) == former[signal.SIGTERM]
    finally:
        signal.signal(signal.SIGHUP, former[signal.SIGHUP])


PROGRAM = textwrap.dedent(
    """
    import json, pathlib, sys, time
    from faultbook.runtime.settlement import Event, ending_on_signals, run_prompts, settle
    from faultbook.runtime.termination import Termination

    form, folder, *prompts = sys.argv[1:]
    folder = pathlib.Path(folder)

    def run_one(prompt):
        (folder / ("started-" + prompt)).touch()
        if prompt == "wait":
            try:
                while True:
                    time.sleep(0.02)
            finally:
                (folder / "cleaning").touch()
                while not (folder / "go-on").exists():  # a second signal must not break this off
                    time.sleep(0.02)
                (folder / "cleaned").touch()
        kind, retryable = ("provider_network", True) if prompt == "fail" else ("completed", False)
        end = Event("terminal", termination=Termination(kind, retryable, "observed", "none"))
        inner = [Event("attempt_started", "a"), Event("attempt_ended", "a", stop_reason="error"),
                 Event("attempt_started", "b"), Event("attempt_ended", "b", stop_reason="stop")]
        return settle([*inner, end])

    with ending_on_signals():
        done = run_prompts(prompts, run_one)
    if form == "json":
        print(json.dumps({"verdicts": [verdict.as_dict() for verdict in done.verdicts]}))
    else:
        for verdict in done.verdicts:
            print(verdict.outcome)
    sys.exit(done.exit_code)
    """
)


def program(form: str, folder: Path, *prompts: str) -> list[str]:
    return [sys.executable, "-c", PROGRAM, form, str(folder), *prompts]


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_program_ends_with_the_same_status_in_text_and_in_json(form: str, tmp_path: Path) -> None:
    done = subprocess.run(program(form, tmp_path, "one", "fail", "two"), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["started-fail", "started-one"]
    if form == "json":
        assert [each["outcome"] for each in json.loads(done.stdout)["verdicts"]] == ["completed", "failed"]
    else:
        assert done.stdout.split() == ["completed", "failed"]
    assert subprocess.run(program(form, tmp_path, "one"), capture_output=True, check=False).returncode == 0
    assert subprocess.run(program(form, tmp_path), capture_output=True, check=False).returncode == 2


def until(path: Path) -> None:
    end = time.monotonic() + DEADLINE
    while not path.exists():
        assert time.monotonic() < end, f"no {path.name}"
        time.sleep(0.02)


def hear_everything() -> None:
    """Whoever runs these tests may ignore a signal, as nohup does, and a child would inherit that."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_program_that_is_signalled_cleans_up_and_says_so_in_its_status(
    number: signal.Signals, status: int, tmp_path: Path
) -> None:
    command = program("json", tmp_path, "wait", "two")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=hear_everything) as running:
        try:
            until(tmp_path / "started-wait")
            running.send_signal(number)
            until(tmp_path / "cleaning")
            running.send_signal(signal.SIGTERM)
            (tmp_path / "go-on").touch()
            output, _ = running.communicate(timeout=DEADLINE)
        finally:
            running.kill()
    assert running.returncode == status
    assert (tmp_path / "cleaned").exists()
    assert not (tmp_path / "started-two").exists()
    (verdict,) = json.loads(output)["verdicts"]
    assert (verdict["termination"]["kind"], verdict["termination"]["signal"]) == ("process_signal", number.name)
