"""The real clients, `datasets` and `huggingface_hub`, against a Hub on the loopback address."""

from __future__ import annotations

import json
import os
import random
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from core.tasks.hub.registry import HUB_SETS, HubRequest, request_of
from tests.hub_server import OPINIONS, HubServer, add_tiny_sets, card, csv_file, opinions, parquet_file

ROOT = Path(__file__).resolve().parents[4]


def asked(name: str, **more: Any) -> dict[str, Any]:
    return {"repository": f"acme/{name}", "text": "text", "label": "label"} | more


TINY = asked("tiny", validation="validation", test="test")
TWO = {"repository": "acme/two", "text": "sentence", "label": "topic"}

# Reads a request per line, downloads them one after the other, and prints a line with the result of each.
CLIENT = """
import json, os, sys, time
import datasets  # some seconds on a busy machine, which are not those of an answer
from core.errors import PlaygroundError
from core.tasks.hub import fetch as hub_fetch
from core.tasks.hub.registry import HubRequest
from core.config.fields import build

def answer(request):
    reported, started = [], time.monotonic()
    try:
        fetched = hub_fetch.fetch(build(HubRequest, request), progress=lambda *a: reported.append((*a[:2], str(a[2]))))
        rows = fetched.rows
        found = dict(texts=rows.texts, labels=rows.labels, seconds=rows.seconds, splits=rows.splits, kind=rows.kind,
                     source=fetched.source, note=fetched.note)
    except PlaygroundError as error:
        found = dict(error=str(error), kind=type(error).__name__)
    return found | dict(reported=reported, elapsed_s=time.monotonic() - started)

for line in sys.stdin:
    asked = json.loads(line)
    hub_fetch.WHOLE_BYTES = asked["whole_bytes"]
    os.environ.update(asked["settings"])
    print("ANSWERS" + json.dumps([answer(request) for request in asked["requests"]]), flush=True)
    for name in asked["settings"]:
        del os.environ[name]
"""


class Client:
    """A process with the real clients and a separate cache. Settings hold for one call."""

    def __init__(self, hub: HubServer, home: Path, **environment: str) -> None:
        self.hub = hub
        self._process = subprocess.Popen(
            [sys.executable, "-c", CLIENT],
            cwd=ROOT,
            env=os.environ | hub.environment(home) | environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def fetch(self, *requests: Mapping[str, Any], whole_bytes: int = 2**20, **settings: str) -> list[dict[str, Any]]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        asked = {"requests": requests, "whole_bytes": whole_bytes, "settings": settings}
        print(json.dumps(asked), file=self._process.stdin, flush=True)
        answers = next((line for line in self._process.stdout if line.startswith("ANSWERS")), None)
        assert answers is not None, "the process of the clients ended"
        return list(json.loads(answers.removeprefix("ANSWERS")))

    def add(self, name: str, columns: Mapping[str, list[Any]], group: int = 1000) -> dict[str, Any]:
        """Add a data set with a training file to the Hub, and return the request that fetches it."""
        data = parquet_file(columns, classes={"label": OPINIONS} if "label" in columns else None, group=group)
        self.hub.add("dataset", f"acme/{name}", {"train.parquet": data})
        return asked(name)

    def refusal(self, request: Mapping[str, Any]) -> str:
        [answer] = self.fetch(request)
        assert answer.get("kind") == "TaskError", answer
        return str(answer["error"])

    def close(self) -> None:
        with self._process:
            self._process.terminate()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with HubServer() as hub:
        add_tiny_sets(hub)
        with closing(Client(hub, tmp_path_factory.mktemp("home"))) as client:
            yield client


@pytest.fixture
def client(shared: Client) -> Client:
    """Return the shared process, because importing the clients takes seconds."""
    shared.hub.served.clear()
    return shared


@pytest.fixture
def new_client(shared: Client, tmp_path: Path) -> Iterator[Callable[..., Client]]:
    """Yield a function that starts a client with an empty cache and extra environment variables."""
    with ExitStack() as stack:

        def make(**environment: str) -> Client:
            shared.hub.served.clear()
            return stack.enter_context(closing(Client(shared.hub, tmp_path / "home", **environment)))

        yield make


def named(columns: Mapping[str, list[Any]]) -> list[tuple[str, str]]:
    return [(text, OPINIONS[label]) for text, label in zip(columns["text"], columns["label"], strict=True)]


def rows_of(answer: Mapping[str, Any], split: str) -> list[tuple[str, str]]:
    rows = zip(answer["texts"], answer["labels"], answer["splits"], strict=True)
    return [(text, label) for text, label, of in rows if of == split]


class TestFetching:
    def test_every_row_of_three_splits_arrives_with_the_name_of_its_label_and_the_source(self, client: Client) -> None:
        commit = client.hub.repos["dataset", "acme/tiny"].commits["main"]
        [answer] = client.fetch(TINY)
        assert rows_of(answer, "train") == named(opinions(60))
        assert rows_of(answer, "validation") == named(opinions(12, 60))
        assert rows_of(answer, "test") == named(opinions(20, 72))
        assert (answer["seconds"], answer["kind"], answer["note"]) == (None, "classes", "")
        assert answer["source"] == (
            f"acme/tiny from the Hugging Face Hub, revision {commit[:7]}; 60 train, 12 validation, 20 test"
        )

    def test_a_revision_is_read_as_it_was(self, client: Client) -> None:
        old = {"data/train-00000-of-00001.parquet": parquet_file(opinions(10, 500), classes={"label": OPINIONS})}
        client.hub.add("dataset", "acme/tiny", old, revision="v1")
        [answer] = client.fetch(TINY | {"revision": "v1", "validation": None, "test": None})
        assert rows_of(answer, "train") == named(opinions(10, 500))

    def test_a_first_time_progress_is_told_and_a_second_time_nothing_is_downloaded(
        self, new_client: Callable[..., Client]
    ) -> None:
        client = new_client()
        [first] = client.fetch(TINY)
        assert client.hub.bytes_of(".parquet") > 0
        done = [count for count, _, _ in first["reported"]]
        assert done == sorted(done)
        assert (done[0], done[-1]) == (0, 92)
        assert first["reported"][0][2] == "contacting the Hub"
        assert any("downloading train" in message for _, _, message in first["reported"])
        client = new_client()  # with the same cache
        [again] = client.fetch(TINY)
        assert client.hub.bytes_of(".parquet") == 0
        assert again["texts"] == first["texts"]

    def test_files_of_splits_that_are_not_asked_for_stay_where_they_are(self, client: Client) -> None:
        files = {
            f"data/{split}-00000-of-00001.parquet": parquet_file(opinions(12, start), classes={"label": OPINIONS})
            for split, start in (("train", 0), ("validation", 12))
        }
        client.hub.add("dataset", "acme/parts", files)
        client.fetch(asked("parts"))
        assert client.hub.bytes_of("train-00000") > 0
        assert client.hub.bytes_of("validation-00000") == 0

    def test_csv_files_and_one_of_several_configurations(self, client: Client) -> None:
        [answer] = client.fetch(TWO | {"config": "two", "test": "dev"})
        topics = ["sport", "music"]
        assert rows_of(answer, "train") == [(f"two/train.csv sentence {i}", topics[i % 2]) for i in range(40)]
        assert rows_of(answer, "test") == [(f"two/dev.csv sentence {i}", topics[i % 2]) for i in range(8)]
        assert answer["source"].startswith("acme/two, two from the Hugging Face Hub, revision ")

    def test_a_script_is_not_run_and_the_hubs_conversion_is_read(self, client: Client) -> None:
        [answer] = client.fetch(asked("script", test="test"))
        assert rows_of(answer, "train") == named(opinions(24))
        assert rows_of(answer, "test") == named(opinions(6, 24))
        assert "of its Parquet conversion; 24 train, 6 test" in answer["source"]
        assert not [request for request in client.hub.served if request.path.endswith("script.py")]

    def test_rows_that_cannot_be_used_are_left_out_and_counted(self, client: Client) -> None:
        texts = ["fine", "hidden", "  ", "missing", "x" * 21, " padded ", None]
        request = client.add("holes", {"text": texts, "label": [0, -1, 0, None, 1, 1, 1]})
        [answer] = client.fetch(request, SCL_MAX_TEXT_CHARS="20")
        assert rows_of(answer, "train") == [("fine", "negative"), ("padded", "positive")]
        assert answer["note"] == "left out: 2 with no label, 2 with an empty text, 1 with more than 20 characters"

    def test_the_total_is_told_where_the_repository_says_it(self, client: Client) -> None:
        described = b"---\ndataset_info:\n  splits:\n  - name: train\n    num_examples: 60\n---\n"
        data = parquet_file(opinions(60), classes={"label": OPINIONS})
        client.hub.add("dataset", "acme/counted", {"README.md": described, "data/train-0.parquet": data})
        [all_rows, some] = client.fetch(asked("counted", max_rows=100), asked("counted", max_rows=20))
        assert all_rows["reported"][-1][:2] == [60, 60]
        assert some["reported"][-1][:2] == [20, 20]


class TestLimit:
    def test_a_small_split_gives_the_same_sample_of_all_its_rows(self, client: Client) -> None:
        first, again = client.fetch(*[TINY | {"max_rows": 10}] * 2)
        rows = rows_of(first, "train")
        assert rows == rows_of(again, "train")
        assert len(rows) == 10
        assert set(rows) < set(named(opinions(60)))
        assert rows == sorted(rows, key=named(opinions(60)).index)
        assert max(int(text.split()[1]) for text, _ in rows) > 20  # not only the first ones
        assert "train is a seeded sample of 10 rows of 60" in first["note"]

    def test_a_large_split_is_downloaded_in_part(self, client: Client) -> None:
        files = wordy_files(count=6, rows=2000)
        client.hub.add("dataset", "acme/large", files)
        first, again = client.fetch(*[asked("large", max_rows=60)] * 2, whole_bytes=1000)
        size = sum(map(len, files.values()))
        read = rows_of(first, "train")
        assert len(read) == len(set(read)) == 60
        assert read == rows_of(again, "train")
        assert set(Counter(label for _, label in read)) == set(OPINIONS)
        assert first["note"] == "train is 60 rows, streamed in a seeded, shuffled order"
        assert client.hub.bytes_of("/resolve/") / 2 < size / 2

    def test_a_large_split_that_is_wanted_whole_is_whole(self, client: Client) -> None:
        client.hub.add("dataset", "acme/wanted", wordy_files(count=2, rows=40))
        [answer] = client.fetch(asked("wanted"), whole_bytes=1000)
        assert len(set(rows_of(answer, "train"))) == 80
        assert answer["note"] == ""

    def test_a_large_split_that_is_sorted_by_label_keeps_its_classes(self, client: Client) -> None:
        rng = random.Random(0)
        columns = {
            "text": [f"{i} {rng.random()} {rng.random()} {rng.random()}" for i in range(20_000)],
            "label": [int(i >= 10_000) for i in range(20_000)],
        }
        [answer] = client.fetch(client.add("sorted", columns, group=500) | {"max_rows": 200}, whole_bytes=1000)
        counts = Counter(label for _, label in rows_of(answer, "train"))
        assert counts.total() == 200
        assert min(counts[name] for name in OPINIONS) >= 20

    def test_a_large_file_that_shows_one_label_only_is_refused(self, client: Client) -> None:
        rows = [(f"text {i} {'x' * 200}", "ab"[i >= 3000]) for i in range(6000)]
        client.hub.add("dataset", "acme/lines", {"train.csv": csv_file(("text", "label"), *rows)})
        [answer] = client.fetch(asked("lines", max_rows=20), whole_bytes=1000)
        assert "The first 20 rows of the split 'train' all have the label 'a'" in answer["error"]

    def test_nothing_is_sampled_where_the_settings_refuse_it(self, client: Client) -> None:
        strict = {"SCL_MAX_ROWS": "50", "SCL_EXCESS_ROWS": "refuse"}
        [refused] = client.fetch(TINY, **strict)
        assert refused["error"].startswith("The split 'train' has 60 rows, but at most 50 are read: ask for fewer rows")
        [answer] = client.fetch(TINY | {"max_rows": 40}, **strict)
        assert len(rows_of(answer, "train")) == 40


def wordy_files(count: int, rows: int) -> dict[str, bytes]:
    """Return Parquet files of incompressible texts, so that the bytes sent show how many rows were read."""
    rng = random.Random(0)
    files = {}
    for k in range(count):
        texts = [f"{k}-{i} {rng.randbytes(500).hex()}" for i in range(rows)]
        columns = {"text": texts, "label": [i % 2 for i in range(rows)]}
        files[f"data/train-{k:05}-of-{count:05}.parquet"] = parquet_file(columns, classes={"label": OPINIONS}, group=20)
    return files


class TestRefusals:
    def test_each_is_one_sentence_that_says_what_exists(self, client: Client) -> None:
        refused = {
            "Data set 'acme/none' does not exist on the Hub, or is private: check the name, or set HF_TOKEN.": asked(
                "none"
            ),
            "Data set 'acme/tiny' has no revision 'v9': leave it empty, or give a branch, tag or commit.": asked(
                "tiny", revision="v9"
            ),
            "Data set 'acme/tiny' has no split 'dev': choose train, validation, test.": asked("tiny", validation="dev"),
            "Data set 'acme/tiny' has no column 'review': choose text, label.": asked("tiny", text="review"),
            "Data set 'acme/two' has no column 'text': choose sentence, topic.": asked("two", config="one"),
            "Data set 'acme/two' has several configurations: choose one of one, two.": TWO,
            "Data set 'acme/two' has no configuration 'three': choose one, two.": asked("two", config="three"),
            "Data set 'acme/script' has no configuration 'en': choose default.": asked("script", config="en"),
            "Data set 'acme/gated' requires an account: accept its terms on the Hub, then set HF_TOKEN.": asked(
                "gated"
            ),
            "Data set 'acme/old' holds a script or unsupported files, and the Hub has no Parquet files of it: "
            "choose another repository of the same data.": asked("old"),
        }
        answers = client.fetch(*refused.values())
        assert [answer.get("error") for answer in answers] == list(refused)
        assert {answer["kind"] for answer in answers} == {"TaskError"}

    def test_an_account_that_has_not_accepted_the_terms(self, new_client: Callable[..., Client]) -> None:
        message = new_client(HF_TOKEN="hf_nobody").refusal(TINY | {"repository": "acme/gated"})
        assert "requires an account" in message

    def test_a_split_without_labels(self, client: Client) -> None:
        assert client.refusal(client.add("blind", {"text": ["a", "b", "c"], "label": [-1, -1, -1]})) == (
            "None of the 3 rows of the split 'train' can be used; 3 of them have no label: choose another split or "
            "other columns."
        )

    def test_columns_that_hold_something_else(self, client: Client) -> None:
        request = client.add("kinds", {"text": ["a", "b"], "number": [1, 2], "tags": [["x"], ["y"]]})
        no_text, no_label = client.fetch(request | {"text": "number", "label": "text"}, request | {"label": "tags"})
        assert no_text["error"] == (
            "Column 'number' of 'acme/kinds' holds whole numbers, not text: choose another column."
        )
        assert no_label["error"] == "Column 'tags' of 'acme/kinds' holds lists: choose the column with the labels."

    def test_a_damaged_file(self, client: Client) -> None:
        client.hub.add("dataset", "acme/broken", {"train.parquet": b"PAR1 and nothing else PAR1"})
        message = client.refusal(asked("broken"))
        assert message.startswith("Data set 'acme/broken' cannot be read (")
        assert message.endswith("): choose another.")

    @pytest.mark.parametrize("how", ["nobody listens", "switched off"])
    def test_without_a_network_it_says_so_within_five_seconds(
        self, new_client: Callable[..., Client], how: str
    ) -> None:
        with socket.socket() as held:
            held.bind(("127.0.0.1", 0))  # bound, but not listening
            port = held.getsockname()[1]
            away = {"HF_ENDPOINT": f"http://127.0.0.1:{port}"} if how == "nobody listens" else {"HF_HUB_OFFLINE": "1"}
            [answer] = new_client(**away).fetch(TINY)
        assert answer["error"] == (
            "Data set 'acme/tiny' cannot be downloaded because the Hub cannot be reached: connect to the internet, "
            "or add a file."
        )
        assert answer["elapsed_s"] < 5

    def test_a_hub_that_is_out_of_order(self, client: Client) -> None:
        client.hub.broken = True
        try:
            [answer] = client.fetch(TINY)
        finally:
            client.hub.broken = False
        assert answer["error"] == (
            "Data set 'acme/tiny' cannot be downloaded because the Hub reports the error 500: try again later."
        )
        assert answer["elapsed_s"] < 30


class TestOneClick:
    def test_every_set_can_be_fetched_from_a_hub_that_has_it(self, client: Client) -> None:
        requests = [request_of(entry) for entry in HUB_SETS.values()]
        by_repository: dict[str, list[HubRequest]] = {}
        for request in requests:
            by_repository.setdefault(request.repository, []).append(request)
        for repository, of_repository in by_repository.items():
            files: dict[str, bytes] = {}
            configs: dict[str, dict[str, str]] = {}
            for request in of_repository:
                config = request.config or "default"
                for split in request.wanted.values():
                    files[f"{config}/{split}.parquet"] = parquet_file(columns_of(request))
                    configs.setdefault(config, {})[split] = f"{config}/{split}.parquet"
            client.hub.add("dataset", repository, {"README.md": card(configs)} | files)
        answers = client.fetch(*(request.model_dump(mode="json") for request in requests))
        for request, answer in zip(requests, answers, strict=True):
            assert "error" not in answer, answer["error"]
            assert Counter(answer["splits"]) == dict.fromkeys(request.wanted, 4)
            assert answer["texts"] == [f"text {i}" for i in range(4)] * len(request.wanted)
            assert answer["seconds"] == (request.text_b and [f"second {i}" for i in range(4)] * len(request.wanted))
            assert answer["kind"] == request.kind
            if request.label_names:
                assert set(answer["labels"]) == set(list(request.label_names.values())[:2])


def columns_of(request: HubRequest) -> dict[str, list[Any]]:
    """Return four rows with a request's columns, and an extra column."""
    codes: list[Any] = list(request.label_names)[:2] * 2 if request.label_names else [0, 1, 0, 1]
    columns: dict[str, list[Any]] = {request.text: [f"text {i}" for i in range(4)], "idx": [0, 1, 2, 3]}
    if request.text_b is not None:
        columns[request.text_b] = [f"second {i}" for i in range(4)]
    return columns | {request.label: [0.0, 0.5, 0.75, 1.0] if request.kind == "similarity" else codes}
