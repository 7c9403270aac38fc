from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from core.config.fields import build
from core.errors import ConfigError
from core.tasks.hub.registry import HUB_SETS, MAX_NAME_CHARS, HubRequest, request_of
from tests.cases import each

ASKED = {"repository": "acme/tiny", "text": "text", "label": "label"}
# The data sets that must be available by name.
PROMISED = {
    *("sst2", "cola", "mrpc", "qqp", "qnli", "mnli", "rte"),
    *("imdb", "ag_news", "trec", "amazon_polarity", "yelp_polarity", "snli", "stsb"),
    *("tnews", "chnsenticorp", "nsmc", "klue_nli"),
}
PAIRS = {"mrpc", "qqp", "qnli", "mnli", "rte", "snli", "stsb", "klue_nli"}


class TestRegistry:
    def test_it_offers_what_was_promised(self) -> None:
        assert set(HUB_SETS) == PROMISED

    @each("name", sorted(PROMISED))
    def test_an_entry_is_complete(self, name: str) -> None:
        entry = HUB_SETS[name]
        assert entry.name == name
        assert entry.title
        assert entry.about.endswith((".", "?"))
        assert entry.source
        assert entry.language == {"tnews": "zh", "chnsenticorp": "zh", "nsmc": "ko", "klue_nli": "ko"}.get(name, "en")

        request = request_of(entry)
        assert request == build(HubRequest, request.model_dump(mode="json"))
        assert (request.text_b is not None) == (name in PAIRS)
        assert (request.kind == "similarity") == (name == "stsb")
        assert request.wanted["train"] == "train"
        assert 0 < len(request.shown_name) <= MAX_NAME_CHARS

    def test_names_and_labels_are_told_apart(self) -> None:
        assert len({entry.title for entry in HUB_SETS.values()}) == len(HUB_SETS)
        assert len({request_of(entry).shown_name for entry in HUB_SETS.values()}) == len(HUB_SETS)

    def test_hidden_test_labels_are_not_asked_for(self) -> None:
        for name in ("sst2", "cola", "mrpc", "qqp", "qnli", "rte", "tnews", "klue_nli"):
            assert request_of(HUB_SETS[name]).wanted == {"train": "train", "test": "validation"}
        assert request_of(HUB_SETS["mnli"]).wanted == {"train": "train", "test": "validation_matched"}
        assert list(request_of(HUB_SETS["snli"]).wanted) == ["train", "validation", "test"]


class TestRequest:
    def test_a_minimal_request_gets_defaults(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SCL_MAX_ROWS", "1234")
        request = build(HubRequest, ASKED)
        assert request.max_rows == 1234
        assert request.wanted == {"train": "train"}
        assert request.shown_name == "tiny"
        assert build(HubRequest, ASKED | {"config": "en"}).shown_name == "tiny en"
        assert build(HubRequest, ASKED | {"name": "Mine"}).shown_name == "Mine"

    @each(
        ("given", "message"),
        [
            ({"repository": "acme/../secret"}, "repository = 'acme/../secret' cannot be used: give owner/name"),
            ({"repository": "a/b/c"}, "give owner/name"),
            ({"repository": "/etc/passwd"}, "give owner/name"),
            ({"repository": "https://huggingface.co/datasets/acme/tiny"}, "give owner/name"),
            ({"repository": ""}, "give owner/name"),
            ({"revision": "../main"}, "revision = '../main' cannot be used: give its name as shown on the Hub"),
            ({"train": "train[:10]"}, "train = 'train[:10]' cannot be used: give its name"),
            ({"config": "a\nb"}, "config = 'a\\nb' cannot be used: give its name"),
            ({"train": ""}, "train = '' cannot be used: give its name"),
            ({"text": ""}, "text = '' cannot be used"),
            ({"label": "text"}, "column = 'text' cannot be used: give different columns"),
            ({"test": "train"}, "split = 'train' cannot be used: give different splits"),
            ({"kind": "similarity"}, "text_b = None cannot be used: similarity needs two texts"),
            ({"kind": "regression"}, "kind = 'regression' cannot be used"),
            ({"max_rows": 9}, "max_rows = 9 cannot be used"),
            ({"max_rows": 200_001}, "max_rows = 200001 cannot be used: give at most 200,000, or raise SCL_MAX_ROWS"),
            ({"name": "x" * 81}, "name = "),
            ({"trust_remote_code": True}, "trust_remote_code is not a field"),
        ],
    )
    def test_what_cannot_be_asked_for_is_named(self, given: dict[str, Any], message: str) -> None:
        with pytest.raises(ConfigError) as refused:
            build(HubRequest, ASKED | given)
        assert message in str(refused.value)

    def test_fields_of_a_form_may_be_left_empty(self) -> None:
        empty = dict.fromkeys(("config", "revision", "text_b", "validation", "test"), " ")
        assert build(HubRequest, ASKED | empty) == build(HubRequest, ASKED)

    @each("repository", ["gpt2", "nyu-mll/glue", "fancyzhx/ag_news", "a/b.c-d_e"])
    def test_names_of_the_hub_are_taken(self, repository: str) -> None:
        assert build(HubRequest, ASKED | {"repository": repository}).repository == repository


def test_the_registry_and_the_fetching_import_no_client() -> None:
    clients = {"datasets", "huggingface_hub", "torch"}
    code = f"import sys, core.tasks.hub, core.tasks.hub.fetch; print(*{clients} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parents[4], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []
