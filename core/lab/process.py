"""The server's side of the lab's process.

The server starts the process on the first visit, and again after it has exited. The process reads questions from a
pipe and exits when the pipe closes.
"""

from __future__ import annotations

import contextlib
import json
import queue
import subprocess
import sys
import threading
from typing import IO

from core.errors import EngineError
from core.messages import language
from core.workers.processes import DETACHED, ONE_THREAD, ROOT, child_environment

# Timeouts for importing torch on a busy machine, and for one answer.
BEGIN_S, ANSWER_S = 120.0, 20.0


class LabProcess:
    """One process for all visitors. It answers one question at a time; a batch of steps takes a tenth of a second."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._warm = threading.Event()

    def warm_up(self) -> None:
        """Start the process and return at once; a failure is reported by the next `ask`."""
        if not self._warm.is_set() and self._turn.acquire(blocking=False):
            try:
                with contextlib.suppress(EngineError):
                    self._begin()
            finally:
                self._turn.release()

    def ask(self, question: str) -> str:
        """Return the answer of `core.lab.answer.answer`, as JSON.

        Raises: EngineError, with a remedy, if the process cannot answer or the question is invalid.
        """
        with self._turn:
            for _attempt in range(2):
                self._begin()
                if (found := self._send_question(question)) is not None:
                    break
                self._end()  # it exited before it read the question, e.g. after being idle
            else:
                raise EngineError("The loss lab's process ended. Close programs that need memory, and try again.")
        if found.startswith('{"error":'):
            raise EngineError(str(json.loads(found)["error"]))
        return found

    def close(self) -> None:
        with self._turn:
            self._end()

    def _begin(self) -> None:
        """Start the process unless it is running. Raises: EngineError if it cannot be started."""
        if self._process is not None and self._process.poll() is None:
            return
        self._end()  # closes the pipe of one that has exited
        self._lines = queue.Queue()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "core.lab"],
                cwd=ROOT,
                env=child_environment(ONE_THREAD),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                encoding="utf-8",
                start_new_session=True,  # Ctrl-C must reach only the server, whose exit closes the pipe
                creationflags=DETACHED,
            )
        except OSError as error:
            raise EngineError(
                "The loss lab's process could not be started ({cause}). Close programs that need memory, and try "
                "again.",
                cause=error.strerror or error,
            ) from None
        assert self._process.stdout is not None
        reader = threading.Thread(target=self._read, args=(self._process.stdout, self._lines), daemon=True)
        reader.start()

    def _read(self, lines: IO[str], into: queue.Queue[str | None]) -> None:
        with lines:
            for line in lines:
                into.put(line)
        into.put(None)

    def _send_question(self, question: str) -> str | None:
        """Send a question and return the answer; None if the process has exited. Raises: EngineError on timeout."""
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            if not self._warm.is_set():
                if self._lines.get(timeout=BEGIN_S) is None:
                    return None
                self._warm.set()
            self._process.stdin.write(f"{language()} {question}".replace("\n", " ") + "\n")
            self._process.stdin.flush()
            return self._lines.get(timeout=ANSWER_S)
        except (BrokenPipeError, OSError):
            return None
        except queue.Empty:
            self._end()
            raise EngineError("The loss lab did not answer in time because the machine is busy. Try again.") from None

    def _end(self) -> None:
        process, self._process = self._process, None
        self._warm.clear()
        if process is None:
            return
        with contextlib.suppress(OSError):
            assert process.stdin is not None
            process.stdin.close()
        try:
            process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
