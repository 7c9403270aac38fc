from __future__ import annotations

import errno
import os

import pytest

from core.workers import processes


class Refusing:
    """A stand-in for the kernel's file, which accepts a change only after several attempts."""

    def __init__(self, refusals: int) -> None:
        self.refusals = refusals
        self.written: list[str] = []

    def exists(self) -> bool:
        return True

    def write_text(self, text: str) -> None:
        if self.refusals:
            self.refusals -= 1
            raise OSError(errno.EAGAIN, "try again")
        self.written.append(text)


@pytest.mark.skipif(not hasattr(os, "getsid"), reason="no sessions here")
@pytest.mark.parametrize(("refusals", "written"), [(0, ["19"]), (2, ["19"]), (1_000, [])])
def test_a_session_is_lowered_also_when_others_were_just_before(
    refusals: int, written: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = Refusing(refusals)
    monkeypatch.setattr(processes, "AUTOGROUP", file)
    monkeypatch.setattr(processes, "AUTOGROUP_WAIT_S", 0.0)
    monkeypatch.setattr(os, "getsid", lambda _: os.getpid())
    monkeypatch.setattr(os, "nice", lambda _: None)
    processes.lower_priority()
    assert file.written == written
