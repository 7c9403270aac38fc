"""The encoders that a form offers."""

from __future__ import annotations

from core.catalogue.encoders import CHINESE, ENGLISH, KOREAN, LISTED, MANY, knowing
from core.models.source import BUNDLED


def test_the_one_that_needs_no_network_comes_first() -> None:
    assert next(iter(LISTED)) == BUNDLED
    assert LISTED[BUNDLED].language == ENGLISH


def test_encoders_of_a_language_come_before_those_of_many() -> None:
    for language in (ENGLISH, CHINESE, KOREAN):
        languages = [LISTED[name].language for name in knowing(language)]
        assert set(languages) == {language, MANY}
        assert languages == sorted(languages, key=lambda found: found == MANY)
