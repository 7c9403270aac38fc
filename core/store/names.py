"""What people call their runs: a name, and tags to find them by."""

from __future__ import annotations

from collections.abc import Sequence

from core.errors import ConfigError, shown

NAME_CHARS, TAG_CHARS, TAGS_MAX = 80, 24, 8


def checked_name(text: str) -> str:
    """A run's name in one line; "" has it called by its number. Raises: ConfigError."""
    name = " ".join(text.split())
    if len(name) > NAME_CHARS:
        raise ConfigError("name", shown(name), f"give at most {NAME_CHARS} characters.")
    return name


def checked_tags(given: Sequence[str]) -> tuple[str, ...]:
    """Tags in one line each, without repetitions, in their order. Raises: ConfigError."""
    tags = tuple(dict.fromkeys(tag for text in given if (tag := " ".join(text.split()))))
    for tag in tags:
        if len(tag) > TAG_CHARS or "," in tag:
            raise ConfigError("tags", shown(tag), f"a tag has at most {TAG_CHARS} characters, and no comma.")
    if len(tags) > TAGS_MAX:
        raise ConfigError("tags", f"{len(tags)} tags", f"give at most {TAGS_MAX}.")
    return tags
