"""The lesson file format: Markdown in parts, each beside a page, with predictions, experiments and checks.

A file begins with YAML front matter between two `---` lines. Each part begins with a heading `## …`. Blocks fenced by
three backticks and named `page`, `try`, `predict` and `check` hold YAML. The rest is Markdown, in which `{{ name }}` is
a number from a run (`core.lessons.numbers`). Content after a `predict` or a `check` is shown once it is answered.

A translation is a file of the same name in a folder named after its language, such as `zh/temperature.md`. It has the
same numbers, parts, blocks and right answers in the same order; only the wording differs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from jinja2 import StrictUndefined, TemplateError, meta
from jinja2.sandbox import SandboxedEnvironment
from pydantic import Field, model_validator

from core.config.fields import Section, build
from core.errors import ConfigError, PlaygroundError, StoreError
from core.lessons.numbers import Number
from core.messages import language

FOLDER = Path(__file__).resolve().parents[2] / "assets" / "lessons"
Page = Literal["fine_tune", "runs", "explore", "tokens", "compare", "experiments", "data", "loss_lab"]
Text = Annotated[str, Field(min_length=1, max_length=400)]
# Query parameters of a page: strings, numbers, switches, and lists of strings.
Address = dict[str, str | int | float | bool | list[str]]

HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
BLOCK = re.compile(r"^```(page|try|predict|check)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Sandboxed, because an untrusted file must not run code; lessons use placeholders only.
TEMPLATES = SandboxedEnvironment(undefined=StrictUndefined, autoescape=False)


class LessonPage(Section):
    """The page beside a part.

    Attributes:
        page: name of the page.
        address: query parameters of the page. `run` and each of `runs` name a replay of the project, `experiment` an
            experiment of the project.
        points_at: a control to highlight, by its query parameter, or another element by its key.
        hides: elements to hide, named in the same way.
        conceals: elements that show the answer to a prediction of the part; their content is hidden until it is given.
    """

    page: Page
    address: Address = Field(default_factory=dict)
    points_at: str | None = None
    hides: tuple[str, ...] = ()
    conceals: tuple[str, ...] = ()


class TryButtons(Section):
    """Buttons that change the page: by label, the query parameters that each button sets."""

    label: Text
    choices: dict[str, Address]


class Prediction(Section):
    """A question to answer before the result is shown; it is not graded."""

    question: Text
    choices: Annotated[tuple[Text, ...], Field(min_length=2, max_length=5)]


class Check(Section):
    """A question graded against numbers from the runs.

    Attributes:
        number: name of the number to enter; an answer within `within` of it is right.
        choices: by label, the name of a number; or, if `right` is the name of a word, the value of that word for
            which the choice is right.
        right: "highest" or "lowest", to compare the numbers of the choices; or the name of a word among the numbers.
        hint: shown after a wrong answer.
    """

    question: Text
    hint: Text
    number: str | None = None
    within: Annotated[float, Field(gt=0)] | None = None
    choices: dict[str, str] = Field(default_factory=dict)
    right: str = ""

    @property
    def by_number(self) -> bool:
        """True if the numbers of the choices are compared."""
        return self.right in ("highest", "lowest")

    @model_validator(mode="after")
    def _check_kind(self) -> Check:
        if (self.number is None) == (not self.choices):
            raise ConfigError("check", self.question, "give number and within, or choices and right.")
        if self.number is not None and self.within is None:
            raise ConfigError("within", self.question, "say how far an answer may be off.")
        if self.choices and not self.right:
            raise ConfigError("right", self.question, "say highest, lowest, or the name of a word.")
        return self


KINDS: Mapping[str, type[Section]] = {"try": TryButtons, "predict": Prediction, "check": Check}


class Part(Section):
    """A part of a lesson.

    Attributes:
        blocks: in order; blocks after a prediction or a check are shown once it is answered.
    """

    title: Text
    shown: LessonPage
    blocks: Annotated[tuple[str | TryButtons | Prediction | Check, ...], Field(min_length=1)]

    @property
    def texts(self) -> list[str]:
        return [block for block in self.blocks if isinstance(block, str)]

    @property
    def checks(self) -> list[Check]:
        return [block for block in self.blocks if isinstance(block, Check)]


class Lesson(Section):
    """A lesson.

    Attributes:
        name: stem of its file.
        about: the question it answers.
        place: its position in the list.
        minutes: time it takes.
        hides: elements hidden in all parts, see `LessonPage`.
        numbers: numbers in its texts and checks, by name.
    """

    name: str
    title: Text
    about: Text
    place: int
    minutes: Annotated[int, Field(ge=3, le=6)]
    hides: tuple[str, ...] = ()
    numbers: dict[str, Number] = Field(default_factory=dict)
    parts: Annotated[tuple[Part, ...], Field(min_length=2)]

    @model_validator(mode="after")
    def _check_names(self) -> Lesson:
        checks = [check for part in self.parts for check in part.checks]
        named = {check.number for check in checks if check.number is not None}
        for check in checks:
            named |= set(check.choices.values()) if check.by_number else {check.right} - {""}
        for part in self.parts:
            named = named.union(*map(placeholders, part.texts))
        for name in sorted(named - set(self.numbers)):
            raise ConfigError("numbers", name, f"the lesson has only {', '.join(self.numbers) or 'none'}.")
        for name in sorted(set(self.numbers) - named):
            raise ConfigError("numbers", name, "no text uses it; leave it out.")
        if not checks:
            raise ConfigError("check", self.title, "a lesson must end with a check.")
        return self


def placeholders(text: str) -> set[str]:
    """Return the names in double braces. Raises: ConfigError for a malformed placeholder."""
    try:
        return set(meta.find_undeclared_variables(TEMPLATES.parse(text)))
    except TemplateError as error:
        raise ConfigError("text", text[:60], f"{error}.") from error


def fill_placeholders(text: str, numbers: Mapping[str, str]) -> str:
    """Fill the placeholders of a text with numbers."""
    return TEMPLATES.from_string(text).render(numbers)


def lessons(folder: Path = FOLDER) -> Mapping[str, Lesson]:
    """Load the lessons of a folder, by name, in order and in the user's language.

    A lesson without a translation is in English. Raises: StoreError for an invalid file.
    """
    return _lessons(folder, language())


@lru_cache
def _lessons(folder: Path, code: str) -> Mapping[str, Lesson]:
    translated = {path.name: path for path in (folder / code).glob("*.md")}
    found = [read_lesson(translated.get(path.name, path)) for path in folder.glob("*.md")]
    return {lesson.name: lesson for lesson in sorted(found, key=lambda lesson: (lesson.place, lesson.name))}


def read_lesson(path: Path) -> Lesson:
    """Parse a lesson file. Raises: StoreError naming the file and the problem."""
    try:
        start, about, body = path.read_text(encoding="utf-8").split("---\n", 2)
        if start.strip():
            raise ConfigError("lesson", start.strip()[:40], "begin with a line of three dashes.")
        before, *rest = HEADING.split(body)
        if before.strip():
            raise ConfigError("lesson", before.strip()[:40], "begin each part with a heading of two hashes.")
        parts: list[dict[str, Any]] = []
        for title, content in zip(rest[::2], rest[1::2], strict=True):
            part = _part(title.strip(), content)
            # A part without a page keeps that of the previous part.
            parts.append(part if "shown" in part or not parts else {**part, "shown": parts[-1]["shown"]})
        return build(Lesson, {**yaml.safe_load(about), "name": path.stem, "parts": parts})
    except (OSError, ValueError, yaml.YAMLError, PlaygroundError) as error:
        why = " ".join(str(error).split())[:300]
        raise StoreError(f"{path.name} is no lesson: {why}") from error


def _part(title: str, content: str) -> dict[str, Any]:
    part: dict[str, Any] = {"title": title, "blocks": []}
    place = 0
    for block in [*BLOCK.finditer(content), None]:
        text = content[place : block.start() if block else len(content)].strip()
        part["blocks"] += [text] if text else []
        if block is None:
            break
        place, given = block.end(), yaml.safe_load(block[2])
        if block[1] == "page":
            part["shown"] = given
        else:
            part["blocks"].append(build(KINDS[block[1]], given))
    return part
