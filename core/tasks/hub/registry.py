"""Data sets of the Hugging Face Hub: the list of suggestions, and the request for any data set."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from core.config import ReadingConfig
from core.config.fields import FieldDisplay, Section, fields_of, setting
from core.errors import ConfigError
from core.messages import N_
from core.settings import settings
from core.tasks.rows import SPLIT_NAMES, Kind, SplitName

Language = Literal["en", "zh", "ko"]

# The Hub converts every public data set to Parquet under this revision, including those made by a script.
PARQUET_REVISION = "refs/convert/parquet"
MAX_NAME_CHARS = 80

# owner/name, or a bare name, in characters that the Hub allows.
REPOSITORY = re.compile(r"(?=.{1,96}\Z)[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?\Z", re.ASCII)
# Names of configurations, splits and revisions become part of a URL: no control characters, "..", or trailing "/".
PLAIN_NAME = re.compile(r"(?!.*\.\.)[^\x00-\x1f\x7f?#%*\[\]{}\\]{1,200}(?<!/)\Z")


@dataclass(frozen=True, slots=True)
class HubEntry:
    """A data set that the app suggests.

    Attributes:
        title: name of the data set, the same in every language.
        about: one sentence, translated for display.
        source: the paper.
        request: fields of its `HubRequest`.
    """

    name: str
    title: str
    about: str
    source: str
    request: Mapping[str, Any]
    language: Language = "en"


def _as_of_a_file(name: str, **bounds: int) -> Any:
    """Return the field of a column, with label and help as for a user's file."""
    field = fields_of(ReadingConfig)[name]
    return Field(title=field.label, description=field.help, **bounds)  # type: ignore[call-overload]


class HubRequest(Section):
    """Request for a data set: repository, columns and splits.

    Attributes:
        validation, test: name of the split; if None, it is taken from the training rows.
        max_rows: maximum number of rows of each split; SCL_MAX_ROWS is both the default and the limit.
        kind: "similarity" if the label is a number that says how similar two texts are.
        label_names: class names by the repository's codes.
        name: name of the data set in the app; the repository's name by default.
    """

    repository: Annotated[str, Field(title=N_("Repository"), description=N_("owner/name, as shown on the Hub."))]
    config: str | None = setting(
        None, N_("Configuration"), N_("Needed if the data set has several."), {None: N_("The only one")}
    )
    revision: str | None = setting(None, N_("Revision"), N_("A branch, tag or commit."), {None: "main"})
    text: Annotated[str, _as_of_a_file("text", min_length=1)]
    text_b: Annotated[str | None, _as_of_a_file("text_b", min_length=1), FieldDisplay({None: N_("None")})] = None
    label: Annotated[str, _as_of_a_file("label", min_length=1)]
    train: str = setting("train", N_("Training split"), N_("Its name on the Hub."))
    validation: str | None = setting(
        None, N_("Validation split"), N_("Its name on the Hub."), {None: N_("Split from training")}
    )
    test: str | None = setting(None, N_("Test split"), N_("Its name on the Hub."), {None: N_("Split from training")})
    max_rows: Annotated[
        int,
        Field(
            ge=10,
            default_factory=lambda: settings().max_rows,
            title=N_("Maximum rows per split"),
            description=N_(
                "Maximum number of rows read from each split, in shuffled order so that every class occurs."
            ),
        ),
        FieldDisplay(unit="rows"),
    ]
    kind: Annotated[Kind, _as_of_a_file("kind"), FieldDisplay(fields_of(ReadingConfig)["kind"].choices or {})] = (
        "classes"
    )
    label_names: dict[str, str] = Field(default_factory=dict)
    name: Annotated[str, Field(max_length=MAX_NAME_CHARS)] = ""

    @field_validator("repository")
    @classmethod
    def _is_a_repository(cls, repository: str) -> str:
        if not REPOSITORY.match(repository) or ".." in repository or "--" in repository:
            raise ConfigError("repository", repository, "give owner/name as shown on the Hub, e.g. stanfordnlp/imdb.")
        return repository

    @field_validator("config", "revision", "text_b", "validation", "test", mode="before")
    @classmethod
    def _nothing_is_none(cls, given: Any) -> Any:
        """Convert an empty field of a form to None."""
        return None if isinstance(given, str) and not given.strip() else given

    @field_validator("config", "revision", "train", "validation", "test")
    @classmethod
    def _is_a_name(cls, name: str | None, about: ValidationInfo) -> str | None:
        if name is not None and not PLAIN_NAME.match(name):
            raise ConfigError(about.field_name or "name", name, "give its name as shown on the Hub.")
        return name

    @field_validator("max_rows")
    @classmethod
    def _is_within_the_setting(cls, rows: int) -> int:
        most = settings().max_rows
        if rows > most:
            raise ConfigError("max_rows", rows, "give at most {most:,}, or raise SCL_MAX_ROWS.", most=most)
        return rows

    @model_validator(mode="after")
    def _fits_together(self) -> HubRequest:
        if doubled := [column for column in self.columns if self.columns.count(column) > 1]:
            raise ConfigError("column", doubled[0], "give different columns for text, text_b and label.")
        splits = [*self.wanted.values()]
        if doubled := [split for split in splits if splits.count(split) > 1]:
            raise ConfigError("split", doubled[0], "give different splits for train, validation and test.")
        if self.kind == "similarity" and self.text_b is None:
            raise ConfigError("text_b", self.text_b, "similarity needs two texts; give the second column.")
        return self

    @property
    def shown_name(self) -> str:
        """Return the name of the data set in the app."""
        given = " ".join(filter(None, (self.repository.rpartition("/")[2], self.config)))
        return self.name or given[:MAX_NAME_CHARS]

    @property
    def columns(self) -> list[str]:
        return [column for column in (self.text, self.text_b, self.label) if column is not None]

    @property
    def wanted(self) -> dict[SplitName, str]:
        """Return the splits to fetch, each with its name in the repository."""
        return {ours: theirs for ours in SPLIT_NAMES if (theirs := getattr(self, ours)) is not None}


def _entry(
    name: str, title: str, about: str, source: str, repository: str, *, language: Language = "en", **request: Any
) -> HubEntry:
    """Return a suggestion. `request` holds fields of its `HubRequest` that differ from those of most data sets."""
    usual = {"repository": repository, "text": "text", "label": "label", "test": "test"}
    return HubEntry(name, title, about, source, usual | request, language)


def _glue(name: str, title: str, about: str, source: str, text: str, text_b: str | None, **request: Any) -> HubEntry:
    """Return a task of GLUE. Its test labels are not public, so its validation rows are the test split."""
    source = f"{source}; GLUE, Wang et al. 2019"
    given = {"config": name, "text": text, "text_b": text_b, "test": "validation"} | request
    return _entry(name, title, about, source, "nyu-mll/glue", **given)


OPINIONS = {"0": "negative", "1": "positive"}
TREC_QUESTIONS = {
    "ABBR": "abbreviation",
    "ENTY": "entity",
    "DESC": "description",
    "HUM": "person",
    "LOC": "place",
    "NUM": "number",
}
TNEWS_TOPICS = {
    "100": "story",
    "101": "culture",
    "102": "entertainment",
    "103": "sports",
    "104": "finance",
    "106": "property",
    "107": "cars",
    "108": "education",
    "109": "technology",
    "110": "military",
    "112": "travel",
    "113": "world",
    "114": "stocks",
    "115": "agriculture",
    "116": "games",
}
ZHANG = "Zhang et al. 2015, arXiv:1509.01626"

# If the test labels of a data set are not public, its validation rows are the test split.
_ENTRIES = (
    _glue("sst2", "SST-2", N_("Film reviews."), "Socher et al. 2013", "sentence", None),
    _glue("cola", "CoLA", N_("Is the sentence grammatical?"), "Warstadt et al. 2019", "sentence", None),
    _glue("mrpc", "MRPC", N_("Paraphrase pairs."), "Dolan and Brockett 2005", "sentence1", "sentence2"),
    _glue("qqp", "QQP", N_("Duplicate questions."), "Iyer et al. 2017", "question1", "question2"),
    _glue(
        "qnli", "QNLI", N_("Does the sentence answer the question?"), "Rajpurkar et al. 2016", "question", "sentence"
    ),
    _glue(
        "mnli",
        "MNLI",
        N_("Natural language inference."),
        "Williams et al. 2018",
        "premise",
        "hypothesis",
        test="validation_matched",
    ),
    _glue("rte", "RTE", N_("Natural language inference (small)."), "Dagan et al. 2006", "sentence1", "sentence2"),
    _entry("imdb", "IMDb", N_("Long film reviews."), "Maas et al. 2011", "stanfordnlp/imdb", config="plain_text"),
    _entry("ag_news", "AG News", N_("Four topics."), ZHANG, "fancyzhx/ag_news"),
    _entry(
        "trec",
        "TREC",
        N_("Question types."),
        "Li and Roth 2002",
        "CogComp/trec",
        label="coarse_label",
        label_names=TREC_QUESTIONS,
    ),
    _entry(
        "amazon_polarity",
        "Amazon polarity",
        N_("Product reviews."),
        ZHANG,
        "fancyzhx/amazon_polarity",
        config="amazon_polarity",
        text="content",
    ),
    _entry(
        "yelp_polarity",
        "Yelp polarity",
        N_("Venue reviews."),
        ZHANG,
        "fancyzhx/yelp_polarity",
        config="plain_text",
        label_names={"1": "negative", "2": "positive"},
    ),
    _entry(
        "snli",
        "SNLI",
        N_("Natural language inference on captions."),
        "Bowman et al. 2015, arXiv:1508.05326",
        "stanfordnlp/snli",
        config="plain_text",
        text="premise",
        text_b="hypothesis",
        validation="validation",
    ),
    _entry(
        "stsb",
        "STS-B",
        N_("Sentence similarity."),
        "Cer et al. 2017, arXiv:1708.00055",
        "sentence-transformers/stsb",
        text="sentence1",
        text_b="sentence2",
        label="score",
        validation="validation",
        kind="similarity",
    ),
    _entry(
        "tnews",
        "TNEWS",
        N_("News headlines of fifteen topics."),
        "CLUE, Xu et al. 2020, arXiv:2004.05986",
        "clue/clue",
        language="zh",
        config="tnews",
        text="sentence",
        test="validation",
        label_names=TNEWS_TOPICS,
    ),
    _entry(
        "chnsenticorp",
        "ChnSentiCorp",
        N_("Hotel, book and computer reviews."),
        "Tan and Zhang 2008",
        "lansinuote/ChnSentiCorp",
        language="zh",
        validation="validation",
        label_names=OPINIONS,
    ),
    _entry(
        "nsmc",
        "NSMC",
        N_("Film reviews."),
        "Naver sentiment movie corpus, Park 2015",
        "e9t/nsmc",
        language="ko",
        text="document",
        label_names=OPINIONS,
    ),
    _entry(
        "klue_nli",
        "KLUE-NLI",
        N_("Natural language inference."),
        "KLUE, Park et al. 2021, arXiv:2105.09680",
        "klue/klue",
        language="ko",
        config="nli",
        text="premise",
        text_b="hypothesis",
        test="validation",
    ),
)
HUB_SETS: Mapping[str, HubEntry] = {entry.name: entry for entry in _ENTRIES}


def request_of(entry: HubEntry) -> HubRequest:
    """Return the request that fetches an entry, with as many rows as the settings allow."""
    return HubRequest(**entry.request, name=entry.title)
