from __future__ import annotations

import errno
import os
from unittest.mock import Mock

import pytest

from core.workers import processes


@pytest.mark.skipif(not hasattr(os, "getsid"), reason="no sessions here")
@pytest.mark.parametrize(("refusals", "lowered"), [(0, True), (2, True), (1_000, False)])
def test_a_session_is_lowered_also_when_others_were_just_before(
    refusals: int, lowered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel's file accepts a change only after several attempts."""
    file = Mock()
    file.write_text.side_effect = [OSError(errno.EAGAIN, "try again")] * refusals + [None]
    monkeypatch.setattr(processes, "AUTOGROUP", file)
    monkeypatch.setattr(processes, "AUTOGROUP_WAIT_S", 0.0)
    monkeypatch.setattr(os, "getsid", lambda _: os.getpid())
    monkeypatch.setattr(os, "nice", lambda _: None)
    processes.lower_priority()
    file.write_text.assert_called_with("19")
    assert (file.write_text.call_count == refusals + 1) is lowered
