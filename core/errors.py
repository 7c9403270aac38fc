"""One exception class per meaning.

Every message is one sentence that names the field, its value and what would work, so that a page or
the command line can show it as it is.
"""

from __future__ import annotations

from core.messages import N_, Message, Text

SHOWN_CHARS = 60


def shown(value: object) -> str:
    """A value as a message shows it: quoted when it is text, and never longer than a glance."""
    text = " ".join((repr(value) if isinstance(value, str) else str(value)).split())
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}…"


def first_line(error: BaseException) -> str:
    """The first line of what a library says of its error; the error's name where it says nothing."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


class PlaygroundError(Exception):
    """Anything a person can fix; the message says how.

    Args: as of Message, or one message.
    """

    def __init__(self, message: Text, plural: str = "", /, **values: object) -> None:
        self.message = message if isinstance(message, Message) else Message(message, plural, **values)

    def __str__(self) -> str:
        return str(self.message)


class ConfigError(PlaygroundError, ValueError):
    """A field of a run's configuration cannot be used."""

    def __init__(self, field: Text, value: object, remedy: Text, /, **values: object) -> None:
        """`values` fill the places of `remedy`, the end of a sentence that says what to give instead."""
        self.field, self.value = str(field), value
        self.remedy = remedy if isinstance(remedy, Message) else Message(remedy, **values)
        super().__init__(
            N_("{field} = {value} cannot be used: {remedy}"),
            field=field,
            value=value if isinstance(value, Message) else shown(value),
            remedy=self.remedy,
        )


class TaskError(PlaygroundError):
    """A task's texts or labels cannot be read or used."""


class EncoderError(PlaygroundError):
    """An encoder cannot be found, verified or loaded."""


class TrainingError(PlaygroundError):
    """A run could not go on: a non-finite loss, no memory left."""


class StoreError(PlaygroundError):
    """The store cannot be read or written."""


class RunNotFoundError(StoreError):
    """No run with that id."""


class StaleAttemptError(StoreError):
    """A write from an attempt that is no longer the current one of its run."""


class EngineError(PlaygroundError):
    """A run cannot be started, stopped or resumed."""
