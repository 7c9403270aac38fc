"""The Data page, and the task section of the Fine-tune form, without a browser."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from core.catalogue.encoders import KOREAN, LISTED, MANY
from core.models import source
from core.models.source import BUNDLED
from core.store import LibraryTask, Status, TaskLibrary
from core.store.job_table import JobTable
from core.tasks import TASKS
from core.tasks.rows import Rows
from core.workers import Jobs
from core.workers import job_kinds as kinds
from tests.conftest import made_rows
from tests.core.tasks.test_bundled import read
from tests.hub_server import csv_file, parquet_file
from tests.pages.conftest import Pages, checked
from tests.pages.test_pages import button, widget, words

Row = tuple[str, str]


def task_select(app: AppTest) -> Any:
    """Return the select box of the task. Its key holds the label of the task."""
    return next(box for box in app.selectbox if box.label == "Task")


@pytest.fixture
def folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the same folder, without a Hub."""
    monkeypatch.setattr(source, "hub_answers", lambda: False)
    return folder


@pytest.fixture
def library(folder: Path) -> TaskLibrary:
    return TaskLibrary(folder)


@pytest.fixture
def upload(opened: Pages) -> Pages:
    """Return a function that opens the page and uploads a file, optionally with a test file."""

    def give(name: str, content: bytes, test: tuple[str, bytes] | None = None) -> AppTest:
        app = opened("data", view="file")
        if test is not None:
            app.file_uploader[1].set_value((*test, ""))
        return checked(app.file_uploader[0].set_value((name, content, "")).run())

    return give


def said(app: AppTest) -> str:
    """Return the text of the page, without backslashes that escape Markdown."""
    return "\n".join([words(app), *(s.value for s in app.get("success"))]).replace("\\", "")


def rows_shown(app: AppTest) -> pd.DataFrame:
    """Return the table of a task's rows."""
    return next(table.value for table in app.dataframe if "Row" in table.value)


def links(app: AppTest) -> dict[str, str]:
    """Return the links on the page, with their query."""
    return {link.proto.label: link.proto.query_string for link in app.get("page_link")}


def add_button(app: AppTest) -> Any:
    """Return the button that completes an upload."""
    return next(b for b in app.button if "add" in b.label.lower())


def part(app: AppTest, name: str) -> Any:
    """Return the select box for a column's role or for an option of the reader."""
    return next(w for w in app.selectbox if w.key.startswith("reading.") and w.key.endswith(f".{name}"))


def task_file(name: str, split: str) -> list[Row]:
    """Return the rows of a bundled task's file, read with the csv module only."""
    return [(row["text"], row["label"]) for row in read(name, split)]


def own(library: TaskLibrary, rows: Sequence[Row], name: str = "Mine", source: str = "mine.csv.") -> LibraryTask:
    texts, labels = zip(*rows, strict=True)
    return library.add(Rows(texts, labels), name=name, source=source)


# Browse


def test_film_reviews_are_shown_with_counts_card_and_rows(opened: Pages) -> None:
    app = opened("data")
    train, test = task_file("film_reviews", "train"), task_file("film_reviews", "test")
    text = said(app)
    assert f"{len(train) + len(test):,} texts: " in text
    assert f"{len(test):,} test; 2 classes." in text
    assert task_select(app).value == "film_reviews"
    assert app.query_params["task"] == "film_reviews"
    assert "Data card" in app.expander[0].label
    assert any(block.value.startswith("## ") and "### Licence" in block.value for block in app.expander[0].markdown)
    table = rows_shown(app)
    assert Counter(zip(table["Text"], table["Label"], strict=True)) == Counter(train + test)
    assert Counter(table["Split"])["Test"] == len(test)
    assert list(table["Row"]) == list(range(1, len(train) + len(test) + 1))
    assert links(app)["Fine-tune on it"] == "task=film_reviews"
    assert {b.label for b in app.button}.isdisjoint({"Delete", "Rename"})


@pytest.mark.parametrize("name", TASKS)
def test_every_bundled_task_opens(opened: Pages, name: str) -> None:
    app = opened("data", task=name)
    assert not app.error
    assert not app.warning
    assert task_select(app).value == name
    assert TASKS[name].summary.replace("\\", "") in said(app)
    assert not rows_shown(app).empty


def test_a_search_leaves_the_rows_that_fit_and_stands_in_the_address(opened: Pages) -> None:
    everything = task_file("film_reviews", "train") + task_file("film_reviews", "test")
    expected = {text for text, _ in everything if "the film" in " ".join(text.casefold().split())}
    assert 0 < len(expected) < len(everything)
    app = opened("data", q='"the film"')
    assert widget(app, "data.search").value == '"the film"'
    assert set(rows_shown(app)["Text"]) == expected
    assert f"{len(expected):,} of {len(everything):,} rows" in said(app)
    widget(app, "data.search").set_value("zzyzx qqq").run()
    assert checked(app).query_params["q"] == "zzyzx qqq"
    assert "No row matches." in said(app)
    assert not [table for table in app.dataframe if "Row" in table.value]
    widget(app, "data.search").set_value("").run()
    assert "q" not in app.query_params
    assert f"All {len(everything):,} rows." in said(app)


def test_rows_are_filtered_by_split_and_label_together(opened: Pages) -> None:
    test = task_file("film_reviews", "test")
    app = opened("data")
    widget(app, "data.splits").set_value(["test"]).run()
    table = rows_shown(app)
    assert Counter(zip(table["Text"], table["Label"], strict=True)) == Counter(test)
    widget(app, "data.labels.film_reviews").set_value(["negative"]).run()
    table = rows_shown(checked(app))
    assert Counter(table["Text"]) == Counter(text for text, label in test if label == "negative")
    assert set(table["Split"]) == {"Test"}


def test_another_task_is_picked_and_kept_in_the_address(opened: Pages) -> None:
    app = opened("data", task="news_topics")
    task_select(app).set_value("paraphrase").run()
    assert checked(app).query_params["task"] == "paraphrase"
    assert task_select(app).value == "paraphrase"
    assert "Second text" in rows_shown(app)
    assert " pairs: " in said(app)


def test_inference_has_triplets(opened: Pages) -> None:
    app = opened("data", task="nli")
    widget(app, "data.as").set_value("triplets").run()
    table = checked(app).dataframe[0].value
    assert not table.empty
    assert table.columns[0].casefold() == "premise"
    known = {cell for row in read("nli", "train") for cell in row.values()}
    assert all(cell in known for cell in table.to_numpy().ravel())


def test_texts_that_stand_twice_are_counted_and_shown_alone(opened: Pages, library: TaskLibrary) -> None:
    rows = [*made_rows(40), ("the same words", "good"), ("The  same WORDS", "good"), ("both", "good"), ("both", "bad")]
    task = own(library, rows)
    app = opened("data", task=task.id)
    repeated = Counter(" ".join(text.casefold().split()) for text, _ in rows)
    twice = {text for text, count in repeated.items() if count > 1}
    assert f"{len(twice)} texts appear more than once, 1 of them with different labels" in said(app)
    widget(app, "data.repeated").set_value(True).run()
    shown_texts = [" ".join(text.casefold().split()) for text in rows_shown(checked(app))["Text"]]
    assert Counter(shown_texts) == Counter({text: repeated[text] for text in twice})


def test_a_task_of_ones_own_is_renamed_deleted_and_brought_back(opened: Pages, library: TaskLibrary) -> None:
    task = own(library, made_rows(40), "Mine", "from *somewhere*.")
    app = opened("data", task=task.id)
    assert "from *somewhere*. 40 texts" in said(app)
    assert "from *somewhere*" not in words(app)  # text from outside is not parsed as Markdown
    assert task_select(app).options[-1] == "Mine (added)"

    app.text_input(key=next(w.key for w in app.text_input if w.label == "Name")).set_value("  Ours ")
    next(b for b in app.get("form_submit_button") if b.label == "Rename").click().run()
    assert library.task(task.id).name == "Ours"
    assert task_select(checked(app)).options[-1] == "Ours (added)"
    assert task_select(app).value == task.id

    button(app, "Delete").click().run()
    assert "Deleted “Ours”." in said(checked(app))
    assert library.tasks() == []
    assert task_select(app).value == next(iter(TASKS))
    assert "Ours (added)" not in task_select(app).options

    app = opened("data")  # stored, so a reload offers it as well
    button(app, "Undo").click().run()
    assert [found.id for found in library.tasks()] == [task.id]
    assert task_select(checked(app)).value == task.id
    assert "Deleted" not in said(app)
    assert len(rows_shown(app)) == 40

    button(app, "Delete").click().run()
    library.purge_discarded(0.0)
    button(app, "Undo").click().run()
    assert "was deleted permanently" in said(app)


def test_a_name_that_another_task_has_is_refused(opened: Pages, library: TaskLibrary) -> None:
    own(library, made_rows(40), "First")
    task = own(library, made_rows(41), "Second")
    app = opened("data", task=task.id)
    next(w for w in app.text_input if w.label == "Name").set_value("First")
    next(b for b in app.get("form_submit_button") if b.label == "Rename").click().run()
    assert "name = 'First' cannot be used" in said(checked(app))
    assert library.task(task.id).name == "Second"


def test_similarity_scores_are_shown_and_can_be_learned(opened: Pages, library: TaskLibrary) -> None:
    texts, scores, seconds = zip(*((f"first {i}", str(i / 2), f"second {i}") for i in range(12)), strict=True)
    task = library.add(Rows(texts, scores, seconds=seconds, kind="similarity"), name="Alike", source="alike.tsv.")
    app = opened("data", task=task.id)
    assert "12 pairs: 12 all; similarity scores." in said(app)
    table = rows_shown(app)
    assert list(table["Score"]) == [i / 2 for i in range(12)]
    assert list(table["Second text"]) == [f"second {i}" for i in range(12)]
    assert "Fine-tune on it" in links(app)
    form = opened("fine_tune", task=task.id)
    assert widget(form, "form.task").value == task.id
    assert "has similarity scores instead of classes; choose CoSENT" in said(form)


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ({"task": "own-0123456789abcdef"}, "there is no such task"),
        ({"task": "<b>x</b>"}, "there is no such task"),
        ({"view": "nothing"}, "this page has no such section"),
    ],
)
def test_an_address_that_names_nothing_shows_the_default_and_says_so(
    opened: Pages, query: dict[str, str], sentence: str
) -> None:
    app = opened("data", **query)
    assert [warning for warning in app.warning if sentence in warning.value]
    assert task_select(app).value == next(iter(TASKS))
    assert app.query_params["task"] == next(iter(TASKS))
    assert "view" not in app.query_params


def test_a_damaged_task_is_a_sentence_and_the_others_open(opened: Pages, library: TaskLibrary) -> None:
    task = own(library, made_rows(40))
    library.rows_folder.joinpath(f"{task.id}.parquet").write_bytes(b"no rows")
    app = opened("data", task=task.id)
    assert len(app.error) == 1
    task_select(app).set_value("film_reviews").run()
    assert not checked(app).error


# Add a file

TEXTS = [f"Das Café Nº {i} war {('öde', 'schön')[i % 2]}" for i in range(40)]
VERDICTS = [("schlecht", "gut")[i % 2] for i in range(40)]
REVIEWS = list(zip(TEXTS, VERDICTS, strict=True))


@pytest.mark.parametrize(
    ("name", "content", "columns", "described"),
    [
        (
            "cafés.csv",
            csv_file(("text", "label"), *REVIEWS, delimiter=";").decode().encode("cp1252"),
            ("text", "label"),
            ("CSV", "CP1252", "semicolon"),
        ),
        ("cafés.parquet", parquet_file({"text": TEXTS, "sentiment": VERDICTS}), ("text", "sentiment"), ("Parquet",)),
        ("bare.csv", csv_file(*REVIEWS), ("column 1", "column 2"), ("CSV", "no header line")),
    ],
)
def test_a_file_is_understood_and_added_as_it_is(
    upload: Pages,
    library: TaskLibrary,
    name: str,
    content: bytes,
    columns: tuple[str, str],
    described: Sequence[str],
) -> None:
    app = upload(name, content)
    assert (part(app, "text").value, part(app, "label").value) == columns
    assert (part(app, "text_b").value, part(app, "split").value) == ("", "")
    assert all(word in said(app) for word in described)
    assert "Every row can be used." in said(app)
    assert library.tasks() == []

    assert add_button(app).label == "Add 40 rows"
    add_button(app).click().run()
    [task] = library.tasks()
    assert task.name == name.partition(".")[0]
    rows = library.rows(task.id)
    assert list(zip(rows.texts, rows.labels, strict=True)) == REVIEWS
    assert f"**{task.name}** was added, with 40 rows." in said(checked(app))
    assert links(app) == {
        "Fine-tune on it": f"task={task.id}",
        "Sweep λ and τ on it": f"surface={task.id}",
    }
    assert app.file_uploader[0].value is None
    button(app, "Browse it").click().run()
    assert checked(app).query_params == {"task": task.id}
    assert task_select(app).value == task.id


DAMAGED_ROWS = (
    ("text", "label"),
    *REVIEWS,
    REVIEWS[0],  # repeated
    ("   ", "gut"),
    ("no label", ""),
    ("one", "two", "three"),
    ("=HYPERLINK(1)", "gut"),
    ("word " * 5_000, "gut"),
    (REVIEWS[1][0], "schlecht"),  # with another label
)


def test_problems_are_counted_and_what_to_drop_is_chosen(upload: Pages, library: TaskLibrary) -> None:
    app = upload("rows.csv", csv_file(*DAMAGED_ROWS))
    text = said(app)
    for sentence in (
        "Rows that do not fit the columns: 1.",
        "Rows without a text: 1.",
        "Rows without a label: 1.",
        "Rows with an over-long text: 1.",
        "Repeated rows: 1.",
        "Rows whose text has two labels: 2.",
        "Rows with a spreadsheet formula: 1.",
    ):
        assert sentence in text
    # The file has 47 rows. 4 of them are unusable, and the repeated one is dropped by default.
    assert add_button(app).label == "Drop 5 rows and add 42"
    listed = next(table.value for table in app.dataframe if "Problem" in table.value)
    lines = {row.Line: row.Problem for row in listed.itertuples()}
    assert "repeats line 2" in lines[42]
    assert "an empty 'label'" in lines[44]
    widget(app, "drop.duplicate").set_value(False).run()
    assert add_button(checked(app)).label == "Drop 4 rows and add 43"
    widget(app, "drop.duplicate").set_value(True).run()
    widget(app, "drop.two_labels").set_value(True).run()
    widget(app, "drop.formula").set_value(True).run()
    assert add_button(checked(app)).label == "Drop 8 rows and add 39"
    add_button(app).click().run()
    [task] = library.tasks()
    rows = library.rows(task.id)
    assert list(zip(rows.texts, rows.labels, strict=True)) == [row for row in REVIEWS if row != REVIEWS[1]]


def test_the_page_asks_for_columns_it_cannot_identify(upload: Pages, library: TaskLibrary) -> None:
    rows = [(str(i), f"sentence number {i} of many", f"v{i % 12}") for i in range(40)]
    app = upload("rows.csv", csv_file(("id", "text", "verdict"), *rows))
    assert "No label column was found" in said(app)
    assert "Choose the" in said(app)
    assert not [b for b in app.button if b.label.startswith(("Add", "Drop"))]
    if part(app, "text").value is None:
        part(app, "text").set_value("text").run()
    part(app, "label").set_value("verdict").run()
    assert add_button(checked(app)).label == "Add 40 rows"
    add_button(app).click().run()
    [task] = library.tasks()
    assert list(library.rows(task.id).labels) == [label for *_, label in rows]


def test_columns_can_be_changed(upload: Pages, library: TaskLibrary) -> None:
    rows = [(f"title {i}", f"a body of text {i}", "yes" if i % 2 else "no") for i in range(40)]
    app = upload("rows.csv", csv_file(("title", "text", "label"), *rows))
    assert part(app, "text").value == "text"
    part(app, "text").set_value("title").run()
    part(app, "text_b").set_value("text").run()
    assert widget(app, f"{part(app, 'text').key.removesuffix('.text')}.kind").value == "classes"
    add_button(checked(app)).click().run()
    [task] = library.tasks()
    kept = library.rows(task.id)
    assert list(zip(kept.texts, kept.seconds or (), kept.labels, strict=True)) == rows


def test_a_column_used_for_two_roles_is_an_error(upload: Pages, library: TaskLibrary) -> None:
    app = upload("rows.csv", csv_file(("text", "label"), *REVIEWS))
    part(app, "label").set_value("text").run()
    assert [error for error in checked(app).error if "cannot be used" in error.value]
    assert library.tasks() == []


def test_scores_of_pairs_are_added_and_offered_to_learn(upload: Pages, library: TaskLibrary) -> None:
    rows = [(f"a {i} b", f"c {i} d", f"{i * 0.25:.2f}") for i in range(20)]
    app = upload("sts.tsv", csv_file(("sentence1", "sentence2", "score"), *rows, delimiter="\t"))
    add_button(app).click().run()
    [task] = library.tasks()
    assert task.kind == "similarity"
    assert "Fine-tune on it" in links(checked(app))
    assert button(app, "Browse it")


def test_another_delimiter_can_be_said_and_cancel_creates_nothing(upload: Pages, library: TaskLibrary) -> None:
    app = upload("rows.csv", csv_file(("text", "label"), *REVIEWS))
    part(app, "delimiter").set_value("|").run()
    assert checked(app)
    assert not [b for b in app.button if b.label.startswith("Add")]
    part(app, "delimiter").set_value(None).run()
    assert add_button(checked(app)).label == "Add 40 rows"
    button(app, "Cancel").click().run()
    assert checked(app).file_uploader[0].value is None
    assert "The file needs a column of texts" in said(app)
    assert library.tasks() == []


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("rows.csv", b"text,label\n,a\n,b\n", "has no usable row"),
        ("rows.parquet", b"text,label\nx,1\n", "is damaged or not a Parquet file"),
        ("<b>$x$.csv", b"", "'<b>$x$.csv' is empty"),
    ],
)
def test_a_file_that_cannot_be_read_is_one_sentence_and_nothing_is_created(
    upload: Pages, library: TaskLibrary, name: str, content: bytes, sentence: str
) -> None:
    app = upload(name, content)
    [error] = app.error
    assert sentence in error.value.replace("\\", "")
    assert not [b for b in app.button if "add" in b.label.lower()]
    assert library.tasks() == []
    button(app, "Choose another file").click().run()
    assert not checked(app).error
    assert app.file_uploader[0].value is None


def test_one_label_alone_cannot_be_added(upload: Pages, library: TaskLibrary) -> None:
    app = upload("rows.csv", csv_file(("text", "label"), *((text, "gut") for text, _ in REVIEWS)))
    assert any("only the label" in error.value.replace("\\", "") for error in app.error)
    assert add_button(app).disabled
    assert library.tasks() == []


def test_a_test_file_beside_is_scored_once_at_the_end(upload: Pages, library: TaskLibrary) -> None:
    test = made_rows(10, seed=1)
    app = upload(
        "train.csv",
        csv_file(("text", "label"), *made_rows(50)),
        test=("test.csv", csv_file(("text", "label"), *test)),
    )
    assert "10 test rows (as in the file)" in said(app)
    add_button(app).click().run()
    [task] = library.tasks()
    rows = library.rows(task.id)
    assert rows.splits is not None
    places = [i for i, split in enumerate(rows.splits) if split == "test"]
    assert [(rows.texts[i], rows.labels[i]) for i in places] == test


def test_an_empty_name_is_a_sentence(upload: Pages, library: TaskLibrary) -> None:
    app = upload("rows.csv", csv_file(("text", "label"), *REVIEWS))
    widget(app, "upload.name.rows.csv").set_value("   ").run()
    add_button(app).click().run()
    assert "give a name" in said(checked(app))
    assert library.tasks() == []


# Hugging Face Hub


@pytest.mark.parametrize(("field", "text"), [("repository", "../../etc"), ("text", ""), ("label", "")])
def test_a_field_that_cannot_be_used_is_named_and_starts_nothing(
    opened: Pages, folder: Path, field: str, text: str
) -> None:
    app = opened("data", view="hub")
    for name, value in ({"repository": "acme/tiny", "text": "text", "label": "label"} | {field: text}).items():
        widget(app, f"hub.{name}").set_value(value)
    next(b for b in app.get("form_submit_button") if b.label == "Fetch").click().run()
    assert f"{field} = '{text}' cannot be used" in said(checked(app))
    assert Jobs(folder).jobs() == []


def test_one_click_asks_for_a_known_data_set(opened: Pages, folder: Path) -> None:
    app = opened("data", view="hub")
    widget(app, "hub.rows").set_value(1_000)
    widget(app, "hub.sst2").click().run()
    [job] = Jobs(folder).jobs()
    assert job.request["repository"] == "nyu-mll/glue"
    assert job.request["max_rows"] == 1_000
    assert job.label == "SST-2"
    assert "**SST-2**" in said(checked(app))


def test_a_task_s_texts_are_measured_under_small_changes(opened: Pages, folder: Path) -> None:
    app = opened("data", task="film_reviews")
    widget(app, "data.moves").click().run()
    [job] = Jobs(folder).jobs()
    assert (job.kind, job.request["encoder"], len(job.request["texts"])) == ("distances", BUNDLED, 200)
    changes = [["typos", 0.1, 0.9, 0.912], ["delete", 0.4, 0.0, None], ["dropout", None, 1.0, 0.985]]
    JobTable(folder).end(job.id, Status.FINISHED, "", {"changes": changes})
    table = next(
        frame.value for frame in checked(opened("data", task="film_reviews")).dataframe if "Change" in frame.value
    )
    assert table.values.tolist() == [
        ["Misspelt words, rate 0.1", "90.0%", "0.912"],
        ["Delete, rate 0.4", "0.0%", "–"],
        ["Second dropout pass", "100.0%", "0.985"],
    ]


def ended_job(folder: Path, status: Status, log: str, result: dict[str, Any] | None = None) -> str:
    """Make a job with this end. Returns: its id."""
    job_id, table = Jobs(folder).start("hub", {"repository": "acme/tiny"}, "Tiny"), JobTable(folder)
    table.end(job_id, status, "It failed: its log says more.", result)
    table.log_path(job_id).write_text(log)
    return job_id


def test_the_log_of_a_failed_fetch_can_be_read(opened: Pages, folder: Path) -> None:
    log = "Traceback <b>of</b> *something*\nKeyError: 'shoe'"
    job_id = ended_job(folder, Status.FAILED, "x" * 20_000 + log)
    app = opened("data", view="hub")
    assert "It failed: its log says more." in said(app)
    [code] = app.code
    assert code.value.endswith(log)
    assert len(code.value) < 10_000
    assert not widget(app, f"again.{job_id}").disabled
    widget(app, f"dismiss.{job_id}").click().run()
    assert not checked(app).code
    assert Jobs(folder).jobs() == []


@pytest.mark.parametrize(
    ("status", "log"), [(Status.FAILED, " \n"), (Status.STOPPED, "much"), (Status.FINISHED, "much")]
)
def test_there_is_no_empty_log_and_none_without_failure(opened: Pages, folder: Path, status: Status, log: str) -> None:
    ended_job(folder, status, log, result={"task": "own-0123456789abcdef"})
    app = opened("data", view="hub")
    assert "**Tiny**" in said(app)
    assert not app.code


def test_rows_that_were_here_already_are_said_to_be(opened: Pages, folder: Path) -> None:
    result = {"task": "own-0123456789abcdef", "name": "Mine *own*", "was_here": True}
    ended_job(folder, Status.FINISHED, "", result=result)
    assert "was already downloaded as Mine *own*, just now" in said(opened("data", view="hub"))


def test_too_many_fetches_at_once_are_a_sentence(opened: Pages, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kinds, "MAX_ACTIVE", 0)
    app = opened("data", view="hub")
    widget(app, "hub.sst2").click().run()
    assert [error for error in checked(app).error if "such jobs are running or queued" in error.value]
    assert Jobs(folder).jobs() == []


def test_a_translation_that_was_forgotten_has_the_page_drawn_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def page() -> None:
        from pages.ui.waiting import follow_job

        follow_job("a" * 12)

    reruns: list[str] = []
    monkeypatch.setattr("pages.ui.waiting.st.rerun", lambda: (reruns.append("app"), st.stop()))
    assert not AppTest.from_function(page, default_timeout=60).run().exception
    assert reruns == ["app"]


# Fine-tune: the task


def draft_of(app: AppTest) -> Any:
    return app.session_state["remembered.draft"]


def test_a_task_in_the_address_is_picked_and_a_picked_one_stands_there(opened: Pages, library: TaskLibrary) -> None:
    task = own(library, made_rows(100))
    for name in (task.id, "news_topics"):
        app = opened("fine_tune", task=name)
        assert widget(app, "form.task").value == name
        assert draft_of(app).task.id == name
        assert not app.error
        assert not button(app, "Launch").disabled
        assert links(app)["Browse its texts"] == f"task={name}"
    widget(app, "form.task").set_value("paraphrase").run()
    assert checked(app).query_params["task"] == "paraphrase"
    app.run()
    assert draft_of(app).task.id == "paraphrase"


def test_noise_and_imbalance_reach_the_draft_and_are_shown(opened: Pages) -> None:
    rows = task_file("film_reviews", "train")
    label_of = dict(rows)
    app = opened("fine_tune", task="film_reviews")
    table = next(table.value for table in app.dataframe if list(table.value) == ["Label", "Text"])
    assert set(zip(table["Text"], table["Label"], strict=True)) <= set(rows)
    sentence = next(c.value for c in app.caption if " test texts; " in c.value)
    train = int(sentence.partition(" ")[0].replace(",", ""))
    widget(app, "form.label_noise").set_value(0.2).run()
    assert draft_of(checked(app)).task.label_noise == 0.2
    assert f"Training rows: {train:,}, {train // 5} with a wrong label (20.0%)." in said(app)
    table = examples(app)
    assert all(row["Label"] != row["Label was"] == label_of[row["Text was"]] for row in table)

    widget(app, "form.text_noise").set_value(0.3).run()
    assert draft_of(checked(app)).task.text_noise == 0.3
    assert "with changed words (100.0%)" in said(app)
    table = examples(app)
    assert all(label_of[row["Text was"]] == row["Label was"] for row in table)
    assert all((row["Label"], row["Text"]) != (row["Label was"], row["Text was"]) for row in table)
    assert any(row["Label"] == row["Label was"] for row in table)

    widget(app, "form.imbalance").set_value(4.0).run()
    assert draft_of(checked(app)).task.imbalance == 4.0
    assert f"{train // 2 + train // 8} training, " in said(app)


def examples(app: AppTest) -> list[dict[str, str]]:
    """Return the training rows that noise has changed, with the original ones."""
    table = next(table.value for table in app.dataframe if "Label was" in table.value)
    assert not table.empty
    return table.to_dict("records")  # type: ignore[no-any-return]


def test_paraphrases_chosen_in_the_form_are_added_to_the_draft(opened: Pages) -> None:
    app = opened("fine_tune", task="nli")
    widget(app, "form.paraphrases").set_value("strong").run()
    assert draft_of(app).task.paraphrases == "strong"
    assert any("Paraphrases Strong" in one.label for one in app.expander)


def test_korean_texts_are_offered_an_encoder_that_reads_them(opened: Pages, library: TaskLibrary) -> None:
    rows = [(f"이 영화는 정말 {('지루했다', '재미있었다')[i % 2]} {i}번", ("나쁨", "좋음")[i % 2]) for i in range(100)]
    task = own(library, rows)
    assert not [b for b in opened("fine_tune").button if b.label in LISTED]  # for English texts
    app = opened("fine_tune", task=task.id)
    assert widget(app, "form.encoder").value == BUNDLED
    assert "These texts are Korean" in said(app)
    offered = [b.label for b in app.button if b.label in LISTED]
    assert offered
    assert all(LISTED[name] in (KOREAN, MANY) for name in offered)
    button(app, offered[0]).click().run()
    assert widget(checked(app), "form.encoder").value == offered[0]
    assert draft_of(app).encoder.id == offered[0]
    assert "These texts are Korean" not in said(app)
    assert "is not on this machine and the Hub cannot be reached" in said(app)


def test_long_texts_are_offered_more_tokens(opened: Pages, library: TaskLibrary) -> None:
    rows = [(" ".join(["word"] * 400 + [str(i)]), ("a", "b")[i % 2]) for i in range(100)]
    task = own(library, rows)
    app = opened("fine_tune", task=task.id)
    assert "have more than 128 tokens and are truncated" in said(app)
    button(app, "Read 256 tokens").click().run()
    assert widget(checked(app), "form.max_length").value == 256
    assert draft_of(app).encoder.max_length == 256
    assert "have more than 256 tokens and are truncated" in said(app)
