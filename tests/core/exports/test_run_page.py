"""A run as one page: its script has the run's data, and it loads and sends nothing."""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import softmax

from core.artifacts.shipped import SHIPPED
from core.config import RunConfig
from core.errors import StoreError
from core.exports.entry import write_export
from core.exports.gallery import PAIRS, main
from core.exports.registry import EXPORTS
from core.exports.run_page import run_page
from core.figures.map_script import MAP
from core.messages import ENGLISH, in_language
from core.representation.attention import attention_over_layers, split_attention
from core.store import RunRecord, Status, Store
from tests.conftest import write_csv
from tests.core.artifacts.made import FRAMES, MORE, recorded
from tests.core.exports.test_model_folder import uneven_task
from tests.core.store.claims import claimed

HOSTILE = "</script><img src=x onerror=alert(1)> {{ 7 * 7 }}"


def known(page: str) -> dict[str, Any]:
    packed = re.search(r'id="run-data">\s*([A-Za-z0-9+/=]+)\s*</script>', page)
    found: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(packed.group(1))))
    return found


@pytest.mark.usefixtures("foreign")
def test_it_is_in_the_language_that_is_spoken(store: Store, run: RunRecord) -> None:
    spoken = run_page(store, [run])
    with in_language(ENGLISH):
        english = run_page(store, [run])
    assert '<html lang="zh">' in spoken
    assert '<html lang="en">' in english
    assert "«" not in english
    # Only the page's own words are translated, not those of settings, titles and texts.
    heads = re.findall(r"<(?:h2|label|th scope)[^>]*>([^<]+)<", spoken)
    assert [text for text in heads if not text.startswith("«") and text != run.title] == []
    assert known(spoken)["description"].startswith("«Map of")


def test_the_majority_rate_of_each_split_is_named_with_it(
    store: Store, draft: Callable[..., RunConfig], tmp_path: Path
) -> None:
    run = recorded(store, draft(task=uneven_task(tmp_path), more=MORE))
    noted = {name: rate for name, rate in run.facts.items() if name != "test_majority_rate"}
    of_earlier_version = replace(run, facts=noted)
    for page in (run_page(store, [run]), run_page(store, [of_earlier_version])):
        shares = re.findall(r"<tr><th scope=\"row\">(\w+), majority class</th><td>([^<]+)</td>", page)
        assert shares == [("Test", "90.0%"), ("Validation", "66.7%")]


class TestWhatItKnows:
    @pytest.mark.parametrize(
        ("most", "diverged", "steps"),
        [(100, None, FRAMES), (3, None, (FRAMES[0], FRAMES[2], FRAMES[-1])), (100, FRAMES[-1], FRAMES[:-1])],
        ids=["all frames", "some of many", "those with numbers"],
    )
    def test_predictions_and_steps_are_those_of_the_run(
        self,
        store: Store,
        run: RunRecord,
        monkeypatch: pytest.MonkeyPatch,
        most: int,
        diverged: int | None,
        steps: tuple[int, ...],
    ) -> None:
        read = store.logits
        monkeypatch.setattr(store, "logits", lambda i, step: read(i, step) * (np.nan if step == diverged else 1))
        monkeypatch.setattr("core.exports.run_page.FRAMES_MAX", most)
        page = known(run_page(store, [run]))
        (of_run,) = page["runs"]
        assert tuple(of_run["steps"]) == tuple(page["panels"][0]["steps"]) == steps
        assert of_run["texts"] == list(run.probe.texts)
        for place, step in enumerate(steps):
            logits = store.logits(run.id, step).astype(np.float64)
            assert of_run["predicted"][place] == logits.argmax(1).tolist()
            shares = softmax(logits, axis=1).max(1)
            np.testing.assert_allclose(np.array(of_run["confidence"][place]) / 1000, shares, atol=5e-4)

    def test_words_have_their_share_of_the_attention_of_the_last_block_if_it_was_recorded(
        self, store: Store, run: RunRecord, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        page = run_page(store, [run])
        assert "Darker words receive more [CLS] attention" in page
        (of_run,) = known(page)["runs"]
        tokens = store.tokens(run.id)
        shares = np.frombuffer(base64.b64decode(of_run["attention"]), np.uint8)
        for place, step in enumerate(FRAMES):
            attention = store.attention(run.id, step)
            per_text = split_attention(attention.astype(np.float32), [text.length for text in tokens.texts])
            for row, text, of_text in zip(tokens.rows, tokens.texts, per_text, strict=True):
                word = of_run["words"][str(row)]
                first = of_run["places"][str(row)] + place * len(word["spans"])
                found = shares[first : first + len(word["spans"])] / 255 * word["most"] / 1000
                wanted = attention_over_layers(of_text, [one.places for one in text.words])[-1]
                np.testing.assert_allclose(found, wanted, atol=2e-3)
        monkeypatch.setattr(store, "attention", lambda run_id, step: None)
        page = run_page(store, [run])
        assert "Darker words receive more [CLS] attention" not in page
        assert "The attention of [CLS] was not recorded." in page

    def test_two_runs_share_the_ids_of_their_examples_and_settings_that_differ_are_marked(
        self, store: Store, run: RunRecord, draft: Callable[..., RunConfig], tmp_path: Path
    ) -> None:
        other = recorded(store, draft(more=MORE | {"seed": 1}))
        write_export(EXPORTS["html"], store, run.id, tmp_path / "page.html", other.id)
        page = (tmp_path / "page.html").read_text()
        first, second = known(page)["runs"]
        texts = dict(zip(first["ids"], first["texts"], strict=True))
        shared = set(first["ids"]) & set(second["ids"])
        assert shared
        assert all(text == texts[i] for i, text in zip(second["ids"], second["texts"], strict=True) if i in shared)
        assert re.findall(r'<tr class="differs"><th scope="row">(.*?)</th>', page) == ["Seed"]

    def test_runs_without_a_common_example_are_told_apart(
        self, store: Store, run: RunRecord, draft: Callable[..., RunConfig], tmp_path: Path
    ) -> None:
        rows = [(f"another tale {n}", ("left", "right")[n % 2]) for n in range(60)]
        path = write_csv(tmp_path / "others.csv", rows)
        other = recorded(store, draft(task={"path": str(path)}, more=MORE))
        first, second = known(run_page(store, [run, other]))["runs"]
        assert not set(first["ids"]) & set(second["ids"])
        assert (first["classes"], second["classes"]) == (list(run.probe.classes), ["left", "right"])


class TestItIsClosed:
    def test_nothing_in_it_names_another_place_and_only_its_own_script_may_run(
        self, store: Store, run: RunRecord
    ) -> None:
        page = run_page(store, [run])
        assert run_page(store, [run]) == page
        addresses = set(re.findall(r"(?:https?:)?//[\w.-]+\.\w+[^\s\"'<>)]*", page))
        assert addresses <= {"http://www.w3.org/2000/svg"}
        assert not re.findall(r"\b(?:src|srcset|action|data)=\"(?!data:)", page)
        assert all(place.startswith("#") for place in re.findall(r"url\(([^)]*)\)", page))
        assert str(Path(run.config.encoder.id).parent) not in page + json.dumps(known(page))
        (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"script-src 'sha256-{digest}'" in html.unescape(page)
        assert all(path.read_text(encoding="utf-8") in script for path in MAP)

    def test_text_from_outside_is_text(self, store: Store, run: RunRecord) -> None:
        store.rename(run.id, HOSTILE)
        page = run_page(store, [store.run(run.id)])
        assert HOSTILE not in page
        assert html.escape(HOSTILE).replace("&#x27;", "&#39;") in page
        assert page.count("<script") == 2
        store.rename(run.id, "")


def test_a_run_without_frames_is_refused(elsewhere: Store, draft: Callable[..., RunConfig], tmp_path: Path) -> None:
    attempt = claimed(elsewhere, draft())
    attempt.end(Status.STOPPED)
    with pytest.raises(StoreError, match="has no frames, which a page needs"):
        write_export(EXPORTS["html"], elsewhere, attempt.run_id, tmp_path / "page.html")
    assert list(tmp_path.glob("*.html")) == []


class TestGallery:
    def test_the_index_leads_to_every_page_and_pages_lead_back(
        self, store: Store, run: RunRecord, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main([str(tmp_path / "gallery")]) == 0
        assert capsys.readouterr().out.startswith(f"{len(SHIPPED) + len(PAIRS)} pages and an index, ")
        index = (tmp_path / "gallery" / "index.html").read_text(encoding="utf-8")
        linked = re.findall(r'href="([^":]+\.html)"', index)
        assert sorted([*linked, "index.html"]) == sorted(path.name for path in (tmp_path / "gallery").iterdir())
        assert len(linked) == len(SHIPPED) + len(PAIRS)
        assert "://" not in index
        for path in (tmp_path / "gallery").glob("*.html"):
            assert path.read_text(encoding="utf-8").count('href="index.html"') == (path.name != "index.html")
        assert "index.html" not in run_page(store, [run])

    def test_a_folder_that_cannot_be_written_is_a_sentence(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (tmp_path / "file").write_text("in the way")
        assert main([str(tmp_path / "file")]) == 1
        assert "file could not be written" in capsys.readouterr().err
