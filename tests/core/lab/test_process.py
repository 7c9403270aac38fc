"""The lab's process: one for all users, started on demand, ended when idle."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from core.errors import ConfigError, EngineError
from core.lab import __main__ as main
from core.lab import process as module
from core.lab.__main__ import _answer_line
from core.lab.answer import answer
from core.lab.process import LabProcess
from core.messages import in_language, language

ROOT = Path(__file__).resolve().parents[3]
QUESTION = json.dumps({"steps": 3, "anchor": 1})


@pytest.fixture(scope="module")
def lab() -> Iterator[LabProcess]:
    made = LabProcess()
    yield made
    made.close()


def pid(lab: LabProcess) -> int:
    return lab._process.pid


def test_warm_up_does_not_wait_for_torch(lab: LabProcess) -> None:
    """Run first: this test starts the process that the other tests share."""
    lab.close()
    lab.warm_up()
    assert pid(lab)
    assert not lab._warm.is_set()  # the answer came before torch was imported
    assert lab.ask(QUESTION)


def test_several_who_ask_at_once_get_their_own_answers(lab: LabProcess) -> None:
    found: dict[int, int] = {}

    def ask(points: int) -> None:
        found[points] = len(json.loads(lab.ask(json.dumps({"stage": {"points": points}})))["labels"])

    threads = [threading.Thread(target=ask, args=(points,)) for points in range(6, 18)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {points: points for points in range(6, 18)}


def test_a_question_that_makes_no_sense_is_refused_and_the_next_is_answered(lab: LabProcess) -> None:
    lab.ask(QUESTION)
    before = pid(lab)
    for question in ('{"steps": -3}', "no JSON", "two\nlines"):
        with pytest.raises(EngineError, match="cannot be used"):
            lab.ask(question)
    assert lab.ask(QUESTION)
    assert pid(lab) == before


@pytest.mark.parametrize("code", ["en", "zh"])
def test_it_answers_in_the_language_of_who_asks(code: str, lab: LabProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    with in_language(code):
        with pytest.raises(ConfigError) as here:
            answer('{"steps": -3}')
        with pytest.raises(EngineError) as there:
            lab.ask('{"steps": -3}')
        assert str(there.value) == str(here.value)
        assert ("cannot be used" in str(here.value)) == (code == "en")
    monkeypatch.setattr(main, "answer", lambda question: f"{language()}: {question}")
    assert _answer_line(f"{code} two words") == f"{code}: two words"


def test_another_process_is_begun_after_one_was_killed(lab: LabProcess) -> None:
    lab.ask(QUESTION)
    before, process = pid(lab), lab._process
    psutil.Process(before).kill()
    process.wait()
    assert json.loads(lab.ask(QUESTION)) == json.loads(answer(QUESTION))
    assert pid(lab) != before
    assert process.stdin.closed


def test_a_failure_is_reported_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(question: str) -> str:
        raise RuntimeError("out of memory")

    monkeypatch.setattr(main, "answer", fail)
    assert json.loads(_answer_line("en {}"))["error"].startswith("The lab failed; the server's log has the")
    assert "out of memory" in capsys.readouterr().err


def test_it_ends_when_nobody_has_asked_for_long() -> None:
    code = "from core.lab import __main__ as main; main.IDLE_S = 0.2; main.main()"
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "ready\n"
        assert process.wait(timeout=60) == 0


def test_one_that_does_not_answer_is_ended(lab: LabProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.ask(QUESTION)
    process = psutil.Process(pid(lab))
    process.suspend()
    monkeypatch.setattr(module, "ANSWER_S", 0.2)
    with pytest.raises(EngineError, match="did not answer in time"):
        lab.ask(QUESTION)
    assert not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def test_one_that_ends_at_once_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    failing = tmp_path / "python"
    failing.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    failing.chmod(0o700)
    monkeypatch.setattr(module.sys, "executable", str(failing))
    with pytest.raises(EngineError, match="process ended"):
        LabProcess().ask(QUESTION)


def test_one_that_cannot_be_started_is_reported_to_whoever_asks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(module.sys, "executable", str(tmp_path / "nowhere"))
    lab = LabProcess()
    lab.warm_up()
    with pytest.raises(EngineError, match=r"^The loss lab's process could not be started \(No such file"):
        lab.ask(QUESTION)


@pytest.mark.slow
def test_it_ends_with_whoever_asks_it() -> None:
    """A killed parent ends the process too, because its pipe is closed."""
    code = (
        "import time; from core.lab.process import LabProcess; lab = LabProcess(); lab.ask('{}'); "
        "print(lab._process.pid, flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        child = psutil.Process(int(server.stdout.readline()))
        assert child.is_running()
        server.kill()
    psutil.wait_procs([child], timeout=20)
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE
