"""The lab's process: read one question per line, write one answer per line, exit when idle or when the pipe closes.

A line is the visitor's language, a space and the question; errors are written in that language.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import traceback

from core.errors import PlaygroundError
from core.lab.answer import answer
from core.lab.choices import Question
from core.messages import _, in_language

# Exit when idle to free the server's memory; the server starts a new process on the next visit.
IDLE_S = 900.0


def main() -> int:
    # Redirect stdout, so that library output does not mix with answers.
    lines = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    sys.stdout = sys.stderr
    answer(Question(steps=2, anchor=0).model_dump_json())  # warm-up: the first answer is the slowest
    print("ready", file=lines, flush=True)
    idle = _timer()
    for line in sys.stdin:
        idle.cancel()
        print(_answer_line(line), file=lines, flush=True)
        idle = _timer()
    return 0


def _answer_line(line: str) -> str:
    language, _space, question = line.partition(" ")
    with in_language(language):
        try:
            return answer(question)
        except PlaygroundError as error:
            return json.dumps({"error": str(error)})
        except Exception:
            traceback.print_exc()
            failed = _("The lab failed; the server's log has the details. Reset the lab, or choose another start.")
            return json.dumps({"error": failed})


def _timer() -> threading.Timer:
    timer = threading.Timer(IDLE_S, os._exit, (0,))
    timer.daemon = True
    timer.start()
    return timer


if __name__ == "__main__":
    sys.exit(main())
