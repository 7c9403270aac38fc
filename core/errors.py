"""Exceptions, one class for each kind of error.

Every message is one sentence that names the field, its value and a remedy, so that a page or the command line can show
it unchanged.
"""

from __future__ import annotations

from core.messages import N_, Message, Text

SHOWN_CHARS = 60


def quote_value(value: object) -> str:
    """Format a value for a message: quoted if it is text, and cut to SHOWN_CHARS characters."""
    text = " ".join((repr(value) if isinstance(value, str) else str(value)).split())
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}…"


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message; the name of its class if it has none."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


class PlaygroundError(Exception):
    """An error that the user can fix; the message says how.

    The arguments are those of `Message`, or a single message.
    """

    def __init__(self, message: Text, plural: str = "", /, **values: object) -> None:
        self.message = message if isinstance(message, Message) else Message(message, plural, **values)

    def __str__(self) -> str:
        return str(self.message)


class ConfigError(PlaygroundError, ValueError):
    """A field of a run's configuration cannot be used."""

    def __init__(self, field: Text, value: object, remedy: Text, /, **values: object) -> None:
        """Create the error.

        Args:
            remedy: end of the sentence, which says what to give instead.
            values: values of the placeholders in `remedy`.
        """
        self.field, self.value = str(field), value
        self.remedy = remedy if isinstance(remedy, Message) else Message(remedy, **values)
        super().__init__(
            N_("{field} = {value} cannot be used: {remedy}"),
            field=field,
            value=value if isinstance(value, Message) else quote_value(value),
            remedy=self.remedy,
        )


class TaskError(PlaygroundError):
    """A task's texts or labels cannot be read or used."""


class EncoderError(PlaygroundError):
    """An encoder cannot be found, verified or loaded."""


class TrainingError(PlaygroundError):
    """A run cannot continue: a non-finite loss, or no memory left."""


class StoreError(PlaygroundError):
    """The store cannot be read or written."""


class DiskFullError(StoreError):
    """The store cannot grow, because its disk is full."""


class RunNotFoundError(StoreError):
    """There is no run with that id."""


class StaleAttemptError(StoreError):
    """An attempt that is no longer the current one of its run tried to write."""


class EngineError(PlaygroundError):
    """A run cannot be started, stopped or resumed."""
