"""Back-translation on tiny random Marian models, made here: reproducible, cached, and safe to load."""

from __future__ import annotations

import json
import logging
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import huggingface_hub.constants
import pytest
import torch

from core.errors import EncoderError
from core.messages import Text
from core.models import source
from core.views import back_translation
from core.views.back_translation import CANONICAL_ROWS, MemoryTranslationCache, RoundTrip, TranslationCache, job
from tests.conftest import made_rows
from tests.core.models.test_source import check_sentence, with_evil_pickle, with_torch_weights

ROOT = Path(__file__).resolve().parents[3]
TEXTS = [text for text, _ in made_rows(40)]
POSITIONS = 32

Trip = Callable[..., RoundTrip]


def make_marian(folder: Path, seed: int) -> Path:
    """Save a Marian model of one block, 16 wide, with a SentencePiece tokenizer of invented film reviews."""
    import sentencepiece
    from transformers import MarianConfig, MarianMTModel

    folder.mkdir()
    trained = BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([text for text, _ in made_rows(200, seed)]),
        model_writer=trained,
        vocab_size=40,
        num_threads=1,
        minloglevel=2,
    )
    for name in ("source.spm", "target.spm"):
        (folder / name).write_bytes(trained.getvalue())
    processor = sentencepiece.SentencePieceProcessor(model_proto=trained.getvalue())
    pieces = [processor.id_to_piece(i) for i in range(processor.get_piece_size())]
    words = ["</s>", "<unk>", *(piece for piece in pieces if not piece.startswith("<")), "<pad>"]
    (folder / "vocab.json").write_text(json.dumps({word: i for i, word in enumerate(words)}), encoding="utf-8")
    # The published models have this file, with these two entries.
    (folder / "tokenizer_config.json").write_text('{"source_lang": "en", "target_lang": "de"}', encoding="utf-8")
    padding = len(words) - 1
    config = MarianConfig(
        vocab_size=len(words),
        d_model=16,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=32,
        decoder_ffn_dim=32,
        max_position_embeddings=POSITIONS,
        pad_token_id=padding,
        eos_token_id=0,
        forced_eos_token_id=0,
        decoder_start_token_id=padding,
        static_position_embeddings=True,
        scale_embedding=True,
        init_std=0.5,
    )
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        model = MarianMTModel(config)
    # As in the published models: beam search by default, and padding is never generated.
    model.generation_config.update(num_beams=4, bad_words_ids=[[padding]], max_length=POSITIONS)
    model.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("marian")
    return make_marian(folder / "there", 1), make_marian(folder / "back", 2)


@pytest.fixture
def folder(models: tuple[Path, Path], tmp_path: Path) -> Path:
    """Return a copy of the forward model, which a test may damage."""
    return Path(shutil.copytree(models[0], tmp_path / "copy"))


@pytest.fixture(scope="module")
def trip(models: tuple[Path, Path]) -> Trip:
    def make(
        *, temperature: float = 0.7, seed: int = 0, cache: Any = None, device: str = "cpu", **folders: Path
    ) -> RoundTrip:
        there, back = folders.get("forward", models[0]), folders.get("backward", models[1])
        kept = MemoryTranslationCache() if cache is None else cache
        return RoundTrip(str(there), str(back), temperature=temperature, seed=seed, cache=kept, device=device)

    return make


class TestTexts:
    def test_every_text_comes_back_changed(self, trip: Trip) -> None:
        changed = trip().translate(TEXTS)
        assert len(changed) == len(TEXTS)
        assert all(text == text.strip() != "" for text in changed)
        assert sum(new != old for new, old in zip(changed, TEXTS, strict=True)) > len(TEXTS) / 2
        assert not any(mark in text for text in changed for mark in ("</s>", "<pad>", "<unk>", "▁"))

    def test_seed_temperature_and_models_count(self, trip: Trip, models: tuple[Path, Path]) -> None:
        texts = TEXTS[:4]
        views = [trip(), trip(seed=1), trip(temperature=0.3), trip(forward=models[1], backward=models[0])]
        assert len({tuple(view.translate(texts)) for view in views}) == 4

    def test_a_blank_text_stays(self, trip: Trip) -> None:
        assert trip().translate(["", " \n", "a lovely film"])[:2] == ["", " \n"]
        assert trip().translate([]) == []

    @pytest.mark.parametrize("empty", ["there", "back"])
    def test_an_empty_translation_gives_the_original(
        self, trip: Trip, models: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, empty: str
    ) -> None:
        real = RoundTrip._sample_translations

        def sampled(self: RoundTrip, loaded: tuple[Any, Any], texts: list[str]) -> list[str]:
            found = real(self, loaded, texts)
            return ["", *found[1:]] if Path(loaded[1].name_or_path).name == empty else found

        expected = trip().translate(TEXTS[:3])
        monkeypatch.setattr(RoundTrip, "_sample_translations", sampled)
        changed = trip().translate(TEXTS[:3])
        assert changed[0] == TEXTS[0] != expected[0]
        assert changed[2] != TEXTS[2]

    def test_a_long_text_is_cut_to_the_models_positions(self, trip: Trip) -> None:
        text = trip().translate(["the film was a very lovely story " * 50])[0]
        assert 0 < len(text) < 1000

    def test_a_short_text_does_not_ramble_to_the_bound_of_a_long_one(
        self, trip: Trip, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(back_translation, "SPARE_TOKENS", 0)
        made = trip()
        tokenizer, model = made._models[0]
        # Without an end token, each text has the maximal length.
        model.generation_config.update(suppress_tokens=[0], forced_eos_token_id=None)
        short, long = made._sample_translations((tokenizer, model), ["film", "the film was a very lovely story"])
        lengths = [len(ids) for ids in tokenizer(["film", "the film was a very lovely story"])["input_ids"]]
        # The first output token starts the decoder, and never belongs to the text.
        assert len(tokenizer.tokenize(short)) < 2 * lengths[0] + 2 < len(tokenizer.tokenize(long))

    def test_the_sampler_is_timid_when_cold(self, trip: Trip) -> None:
        made = [trip(temperature=0.001, seed=seed).translate(TEXTS[:2]) for seed in range(3)]
        assert made[0] == made[1] == made[2]

    def test_it_samples_from_all_words_whatever_the_models_own_settings(self, trip: Trip) -> None:
        made = [trip(temperature=50.0, seed=seed) for seed in range(2)]
        for one in made:
            for _, model in one._models:
                model.generation_config.update(top_k=1, top_p=0.01, do_sample=False)
        assert made[0].translate(TEXTS[:2]) != made[1].translate(TEXTS[:2])


class TestRepeatable:
    def test_no_order_and_no_neighbours_change_a_row(self, trip: Trip) -> None:
        expected = trip().translate(TEXTS)
        rows = [39, 3, 17, 3, 0, 38]
        assert trip().translate_rows(TEXTS, rows) == [expected[row] for row in rows]
        one_by_one = trip()
        assert [one_by_one.translate_rows(TEXTS, [row])[0] for row in rows] == [expected[row] for row in rows]

    def test_a_part_of_a_batch_in_the_cache_changes_nothing(self, trip: Trip) -> None:
        cache = MemoryTranslationCache()
        expected = trip(cache=cache).translate(TEXTS)
        half = MemoryTranslationCache()
        half.put(dict(list(cache._kept.items())[::2]))
        assert trip(cache=half).translate(TEXTS) == expected

    def test_equal_texts_of_different_rows_get_views_of_their_own(self, trip: Trip) -> None:
        assert len(set(trip(temperature=2.0).translate([TEXTS[0]] * 8))) > 1

    def test_torchs_random_state_counts_for_nothing_and_stays(self, trip: Trip) -> None:
        torch.manual_seed(1)
        state = torch.get_rng_state()
        first = trip().translate(TEXTS[:3])
        assert torch.equal(torch.get_rng_state(), state)
        torch.manual_seed(2)
        with torch.autocast("cpu", torch.bfloat16):
            assert trip().translate(TEXTS[:3]) == first

    def test_a_failure_leaves_the_random_state_too(self, trip: Trip, monkeypatch: pytest.MonkeyPatch) -> None:
        def fails(*given: Any) -> None:
            torch.rand(3)
            raise RuntimeError("out of memory")

        monkeypatch.setattr(RoundTrip, "_sample_translations", fails)
        state = torch.get_rng_state()
        with pytest.raises(RuntimeError, match="out of memory"):
            trip().translate(TEXTS[:1])
        assert torch.equal(torch.get_rng_state(), state)

    @pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
    def test_a_gpus_random_state_stays(self, trip: Trip) -> None:
        state = torch.cuda.get_rng_state()
        first = trip(device="cuda").translate(TEXTS[:3])
        assert torch.equal(torch.cuda.get_rng_state(), state)
        torch.cuda.manual_seed(5)
        assert trip(device="cuda").translate(TEXTS[:3]) == first

    def test_models_are_in_evaluation_mode_without_gradients(self, trip: Trip) -> None:
        for _, model in trip()._models:
            assert not any(module.training for module in model.modules())
            assert not any(parameter.requires_grad for parameter in model.parameters())


class TestCached:
    def test_what_is_cached_needs_no_model(self, trip: Trip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = tmp_path / "new" / "translations.sqlite3"
        expected = trip(cache=TranslationCache(path)).translate(TEXTS)
        monkeypatch.setattr(back_translation, "_load", lambda *given: pytest.fail("a model was loaded"))
        assert trip(cache=TranslationCache(path)).translate_rows(TEXTS, [30, 2]) == [expected[30], expected[2]]
        with pytest.raises(pytest.fail.Exception, match="a model was loaded"):
            trip(cache=TranslationCache(path), seed=1).translate(TEXTS)

    def test_one_missing_row_has_its_batch_translated_and_no_other(self, trip: Trip) -> None:
        counted: list[int] = []

        class Counting(MemoryTranslationCache):
            def put(self, texts: Mapping[str, str]) -> None:
                counted.append(len(texts))
                super().put(texts)

        cache = Counting()
        made = trip(cache=cache)
        made.translate_rows(TEXTS, [20, 21])
        assert counted == [CANONICAL_ROWS]
        made.translate_rows(TEXTS, range(16, 40))
        assert counted == [CANONICAL_ROWS, 8]

    def test_everything_that_counts_is_in_the_key(self, trip: Trip, folder: Path) -> None:
        asked: list[str] = []

        class Asked(MemoryTranslationCache):
            def get(self, keys: Sequence[str]) -> dict[str, str]:
                asked.extend(keys)
                return dict.fromkeys(keys, "kept")

        def keys(second: str = "two", **given: Any) -> list[str]:
            asked.clear()
            trip(cache=Asked(), forward=folder, **given).translate(["one", second])
            return list(asked)

        found = [*keys(), *keys("three"), *keys(seed=2), *keys(temperature=2)]
        found += [*keys(backward=folder), *keys(device="cuda")]
        with (folder / "model.safetensors").open("ab") as file:
            file.write(b" ")
        found += keys()
        assert len(found) == len(set(found)) == 14
        assert keys() == found[-2:]


@pytest.mark.parametrize("kept", ["file", "memory"])
def test_a_cache_finds_what_was_put_last(tmp_path: Path, kept: str) -> None:
    cache = TranslationCache(tmp_path / "kept.sqlite3") if kept == "file" else MemoryTranslationCache()
    assert cache.get(["a"]) == cache.get([]) == {}
    cache.put({"a": "first"})
    cache.put({"a": "Straße “x”\n", "b": ""})
    assert cache.get(["b", "c", "a"]) == {"a": "Straße “x”\n", "b": ""}
    many = {f"key {i}": str(i) for i in range(1234)}
    cache.put(many)
    assert cache.get([*many, "none"]) == many


PUT_MANY = """
import sys
from pathlib import Path
from core.views.back_translation import TranslationCache

cache, name = TranslationCache(Path(sys.argv[1])), sys.argv[2]
for i in range(20):
    cache.put({f"{name} {i}": name})
"""


class TestFile:
    @pytest.mark.slow
    def test_processes_that_begin_together_share_it(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        path = tmp_path / "kept.sqlite3"
        workers = [subprocess.Popen([sys.executable, "-c", PUT_MANY, str(path), name]) for name in ("one", "two")]
        assert [worker.wait(60) for worker in workers] == [0, 0]
        expected = {f"{name} {i}": name for name in ("one", "two") for i in range(20)}
        assert TranslationCache(path).get([*expected]) == expected
        assert not caplog.records

    @pytest.mark.parametrize("trouble", ["damaged", "folder is a file"])
    def test_a_file_that_cannot_be_used_costs_time_only(
        self, trip: Trip, tmp_path: Path, caplog: pytest.LogCaptureFixture, trouble: str
    ) -> None:
        (tmp_path / "kept.sqlite3").write_bytes(b"no database at all " * 100)
        cache = TranslationCache(tmp_path / "kept.sqlite3" / ("" if trouble == "damaged" else "in.sqlite3"))
        with caplog.at_level(logging.WARNING):
            assert trip(cache=cache).translate(TEXTS[:2]) == trip().translate(TEXTS[:2])
        assert [record.levelname for record in caplog.records] == ["WARNING"]
        assert "translations cannot be cached" in caplog.text


class TestModels:
    def refused(self, make: Trip, **folders: Path) -> str:
        with pytest.raises(EncoderError) as caught:
            make(**folders).translate(["a film"])
        check_sentence(caught.value)
        return str(caught.value)

    def test_no_model_is_looked_up_before_the_first_translation(self, trip: Trip) -> None:
        trip(forward=Path("/no/such/folder"))

    def test_without_a_network_a_hub_name_gives_one_sentence(
        self, trip: Trip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(source, "hub_answers", lambda: False)
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
        message = self.refused(trip, forward=Path("Helsinki-NLP/opus-mt-en-de"))
        assert message == (
            "Translation model 'Helsinki-NLP/opus-mt-en-de' is not on this machine and the Hub cannot be reached: "
            "connect to the internet, or give a local folder."
        )

    def test_a_model_of_another_type_is_refused(self, trip: Trip, tiny_encoder: Path) -> None:
        assert "is of the type 'bert': give a Marian model" in self.refused(trip, forward=tiny_encoder)

    @pytest.mark.parametrize("config", [None, "", "[]", "\xff"])
    def test_a_folder_without_a_readable_config_is_refused(self, trip: Trip, folder: Path, config: str | None) -> None:
        (folder / "config.json").unlink()
        if config is not None:
            (folder / "config.json").write_text(config, encoding="latin-1")
        assert "has no readable config.json" in self.refused(trip, forward=folder)

    @pytest.mark.parametrize("name", ["model.safetensors", "source.spm", "target.spm", "vocab.json"])
    @pytest.mark.parametrize("content", [None, b"", b"damaged"])
    def test_missing_and_damaged_files_are_refused(
        self, trip: Trip, folder: Path, name: str, content: bytes | None
    ) -> None:
        (folder / name).unlink()
        if content is not None:
            (folder / name).write_bytes(content)
        message = self.refused(trip, forward=folder)
        assert "could not be loaded" in message
        assert "give a Marian model" in message

    def test_torch_weights_are_read_where_there_are_no_safetensors(self, trip: Trip, folder: Path) -> None:
        with_torch_weights(folder)
        safe, unsafe = trip()._models[0][1].state_dict(), trip(forward=folder)._models[0][1].state_dict()
        assert all(torch.equal(safe[name], unsafe[name]) for name in safe)

    @pytest.mark.parametrize("beside_safe_weights", [False, True])
    def test_a_pickle_that_runs_code_is_never_run(self, trip: Trip, folder: Path, beside_safe_weights: bool) -> None:
        marker = with_evil_pickle(folder)
        if beside_safe_weights:
            assert trip(forward=folder).translate(["a film"])
        else:
            (folder / "model.safetensors").unlink()
            assert "could not be loaded" in self.refused(trip, forward=folder)
        assert not marker.exists()

    def test_from_the_hub_come_safe_weights_and_tokenizer_of_a_marian_model_only(
        self, models: tuple[Path, Path], tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked: list[list[str]] = []
        folders = {"someone/a-model": models[0], "someone/an-encoder": tiny_encoder}

        def snapshot(name: str, patterns: Sequence[str], revision: str | None = None, what: str = "") -> Path:
            asked.append(list(patterns))
            return folders[name]

        monkeypatch.setattr(source, "_snapshot", snapshot)
        assert back_translation._folder("someone/a-model") == models[0]
        small = ["*.json", "*.txt", "*.model", "*.spm"]
        assert asked == [small, [*small, "*.safetensors"]]
        with pytest.raises(EncoderError, match="is of the type 'bert'"):
            back_translation._folder("someone/an-encoder")
        assert asked[2:] == [small]


def test_the_job_gives_what_the_view_gives_and_keeps_it(models: tuple[Path, Path], trip: Trip, tmp_path: Path) -> None:
    request: dict[str, Any] = {"forward": str(models[0]), "backward": str(models[1]), "temperature": 0.7, "seed": 3}
    reported: list[tuple[int, int | None, Text]] = []
    result = job(request | {"texts": TEXTS[:2]}, tmp_path, lambda *now: reported.append(now))
    assert result == {"texts": [trip(seed=3).translate([text])[0] for text in TEXTS[:2]]}
    assert reported
    assert (tmp_path / "cache" / "translations.db").is_file()


def test_importing_the_views_does_not_import_torch() -> None:
    code = "import sys, core.views; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, timeout=100, check=False).returncode == 0
