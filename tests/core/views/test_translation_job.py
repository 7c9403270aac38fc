"""Round-trip translation as a job of the preview: the same text as the view gives, cached for runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.errors import EncoderError
from core.views.back_translation import MemoryTranslationCache, RoundTrip, job
from tests.core.views.test_back_translation import TEXTS, make_marian


def test_it_gives_what_the_view_gives_and_keeps_it(tmp_path: Path) -> None:
    there, back = make_marian(tmp_path / "there", 1), make_marian(tmp_path / "back", 2)
    request: dict[str, Any] = {"forward": str(there), "backward": str(back), "temperature": 0.7, "seed": 3}
    reported: list[tuple[int, int | None, str]] = []
    result = job(request | {"texts": TEXTS[:2]}, tmp_path, lambda *now: reported.append(now))
    trip = RoundTrip(str(there), str(back), temperature=0.7, seed=3, cache=MemoryTranslationCache())
    assert result == {"texts": [trip.translate([text])[0] for text in TEXTS[:2]]}
    assert reported
    assert (tmp_path / "cache" / "translations.db").is_file()


def test_a_model_that_is_not_there_is_said(tmp_path: Path) -> None:
    request = {"forward": str(tmp_path / "none"), "backward": "x", "temperature": 0.7, "seed": 0, "texts": ["a text"]}
    with pytest.raises(EncoderError, match="is not a folder"):
        job(request, tmp_path, lambda *now: None)
