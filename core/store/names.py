"""What runs and jobs are called: ids that we draw, and the names and tags that people give."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from core.errors import ConfigError, shown
from core.language import _

# No l, o, 0 and 1, which are easily taken for each other.
ID_LETTERS, ID_CHARS = "abcdefghijkmnpqrstuvwxyz23456789", 12
NAME_CHARS, TAG_CHARS, TAGS_MAX = 80, 24, 8


def new_id() -> str:
    """An id for a run or a job that nothing else has."""
    return "".join(secrets.choice(ID_LETTERS) for _place in range(ID_CHARS))


def checked_name(text: str) -> str:
    """A run's name in one line; "" has it called by its number. Raises: ConfigError."""
    name = " ".join(text.split())
    if len(name) > NAME_CHARS:
        raise ConfigError("name", shown(name), _("give at most {most} characters.", most=NAME_CHARS))
    return name


def checked_tags(given: Sequence[str]) -> tuple[str, ...]:
    """Tags in one line each, without repetitions, in their order. Raises: ConfigError."""
    tags = tuple(dict.fromkeys(tag for text in given if (tag := " ".join(text.split()))))
    for tag in tags:
        if len(tag) > TAG_CHARS or "," in tag:
            remedy = _("a tag has at most {most} characters, and no comma.", most=TAG_CHARS)
            raise ConfigError("tags", shown(tag), remedy)
    if len(tags) > TAGS_MAX:
        raise ConfigError("tags", _("{count} tags", count=len(tags)), _("give at most {most}.", most=TAGS_MAX))
    return tags


def checked_task_name(text: str) -> str:
    """A task's name in one line. Raises: ConfigError when it is empty or too long."""
    name = " ".join(text.split())
    if not 0 < len(name) <= NAME_CHARS:
        raise ConfigError("name", name, _("give a name of 1 to {most} characters.", most=NAME_CHARS))
    return name
