"""Token counts without torch, against those of transformers' tokenizer on one text at a time."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from core.advice import counting
from core.advice.counting import CHUNK, token_counts, token_strings
from core.encoders.packing import Tokens
from core.encoders.tokenizer import Tokenizer as EncoderTokenizer
from core.errors import EncoderError
from core.messages import Text
from core.models.source import BUNDLED, encoder_folder
from core.texts.segments import SPECIAL_TOKENS
from tests.core.models.test_source import check_sentence

ROOT = Path(__file__).resolve().parents[3]
Input = str | tuple[str, str]
TEXTS: list[Input] = [
    "The film was lovely, and its music felt warm.",
    "wonderment",
    "",
    "  \n\t ",
    "我非常喜欢这部电影，演员也很好。",
    "영화가 정말 좋았어요 🙂",
    "Ça c’était très émouvant; cafe\u0301",
    "a literal [SEP] and a [MASK] and <s> too </s>",
    "x" * 300,
    "the film was long " * 400,
    ("the film", "was lovely"),
    ("", "its music"),
    ("the film was long " * 200, "영화가"),
]


def sides(text: Input) -> tuple[str, ...]:
    return (text,) if isinstance(text, str) else text


def transformers_ids(folder: Path, texts: list[Input]) -> list[list[int]]:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    return [tokenizer(*sides(text), verbose=False)["input_ids"] for text in texts]


SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]


def saved(folder: Path, tokenizer: Tokenizer) -> Path:
    """Save a tokenizer as transformers does. It puts <s> before a text and </s> after it."""
    ids = [(token, tokenizer.token_to_id(token)) for token in ("<s>", "</s>")]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=ids
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="<unk>", cls_token="<s>", sep_token="</s>", pad_token="<pad>"
    ).save_pretrained(folder)
    (folder / "config.json").write_text(json.dumps({"model_type": "roberta", "vocab_size": 300}))
    return folder


@pytest.fixture(scope="module")
def byte_level(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=320, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(["the film was lovely and the film was long"] * 20, trainer)
    return saved(tmp_path_factory.mktemp("byte-level"), tokenizer)


@pytest.fixture(scope="module")
def unigram(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pieces = [*((token, 0.0) for token in SPECIAL), ("▁the", -1.0), ("▁film", -2.0), ("▁", -3.0)]
    tokenizer = Tokenizer(models.Unigram([*pieces, *((letter, -5.0) for letter in "abcdefghij")], unk_id=3))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.add_special_tokens(SPECIAL)
    return saved(tmp_path_factory.mktemp("unigram"), tokenizer)


@pytest.fixture(scope="module")
def word_list(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the bundled encoder without tokenizer.json, as older encoders are."""
    folder = tmp_path_factory.mktemp("word-list")
    for name in ("vocab.txt", "config.json", "tokenizer_config.json", "special_tokens_map.json"):
        shutil.copy(encoder_folder(BUNDLED) / name, folder / name)
    return folder


@pytest.fixture(params=[BUNDLED, "tiny_encoder", "byte_level", "unigram", "word_list"])
def encoder(request: pytest.FixtureRequest) -> tuple[str, Path]:
    """Return an encoder's id and its folder."""
    if request.param == BUNDLED:
        return BUNDLED, encoder_folder(BUNDLED)
    folder: Path = request.getfixturevalue(request.param)
    return str(folder), folder


class TestCounts:
    def test_they_are_those_of_transformers(self, encoder: tuple[str, Path]) -> None:
        expected = transformers_ids(encoder[1], TEXTS)
        assert token_counts(encoder[0], TEXTS).counts == tuple(map(len, expected))

    def test_the_unknown_share_is_of_the_tokens_that_are_not_special(self, encoder: tuple[str, Path]) -> None:
        tokenizer = AutoTokenizer.from_pretrained(encoder[1])
        plain = [text for text in TEXTS if "[SEP]" not in text]  # here a literal [SEP] is part of the text
        own = [i for text in plain for side in sides(text) for i in tokenizer(side, add_special_tokens=False).input_ids]
        share = own.count(tokenizer.unk_token_id) / len(own)
        assert token_counts(encoder[0], plain).unknown_share == pytest.approx(share)

    def test_what_the_encoder_reads_is_as_long_up_to_its_limit(self, encoder: tuple[str, Path]) -> None:
        read: list[Tokens] = EncoderTokenizer(AutoTokenizer.from_pretrained(encoder[1]), 32)(TEXTS)
        assert [len(tokens.ids) for tokens in read] == [min(32, n) for n in token_counts(encoder[0], TEXTS).counts]

    def test_many_texts_are_counted_in_their_order(self, tiny_encoder: Path) -> None:
        texts = ["film " * (i % 7) for i in range(2 * CHUNK + 3)]
        found = token_counts(str(tiny_encoder), texts)
        assert found == counting.TokenCounts(tuple(i % 7 + 2 for i in range(len(texts))), 0.0)
        assert token_counts(str(tiny_encoder), []) == counting.TokenCounts((), 0.0)


class TestStrings:
    def test_they_are_as_many_as_are_counted_and_those_of_transformers(self, encoder: tuple[str, Path]) -> None:
        tokenizer = AutoTokenizer.from_pretrained(encoder[1])
        assert set(token_strings(encoder[0], "")) <= SPECIAL_TOKENS  # which views leave alone
        is_byte_level = isinstance(tokenizer.backend_tokenizer.decoder, decoders.ByteLevel)
        for text, ids in zip(TEXTS, transformers_ids(encoder[1], TEXTS), strict=True):
            found = token_strings(encoder[0], text)
            assert len(found) == len(ids)
            if not is_byte_level:
                assert found == tokenizer.convert_ids_to_tokens(ids)

    def test_bytes_are_shown_as_what_they_stand_for(self, byte_level: Path) -> None:
        assert token_strings(str(byte_level), "the film") == ["<s>", "the", "Ġfilm", "</s>"]
        assert token_strings(str(byte_level), "é <unk>") == ["<s>", "�", "�", "Ġ", "<unk>", "</s>"]
        for text in ("the film was lovely", "a, b"):
            assert "".join(token_strings(str(byte_level), text)[1:-1]).replace("Ġ", " ") == text

    def test_a_pair_has_the_tokens_of_both(self, tiny_encoder: Path) -> None:
        found = token_strings(str(tiny_encoder), ("The film", "was zzz"))
        assert found == ["[CLS]", "the", "film", "[SEP]", "was", "[UNK]", "[SEP]"]


class TestTrouble:
    @pytest.mark.parametrize("content", ["", "{}", "[]", '{"version": "1.0"}', "not json"])
    def test_a_broken_file_gives_one_sentence(self, tmp_path: Path, content: str) -> None:
        (tmp_path / "tokenizer.json").write_text(content)
        with pytest.raises(EncoderError, match="The tokenizer of encoder") as refused:
            token_counts(str(tmp_path), [])
        check_sentence(refused.value)

    @pytest.mark.parametrize("model_type", ["bert", "roberta", "xlm-roberta"])
    def test_an_encoder_without_a_tokenizer_is_refused(self, tmp_path: Path, model_type: str) -> None:
        (tmp_path / "config.json").write_text(json.dumps({"model_type": model_type, "vocab_size": 30}))
        with pytest.raises(EncoderError) as refused:
            token_strings(str(tmp_path), "a film")
        check_sentence(refused.value)

    def test_a_file_that_was_replaced_is_read_again(self, tiny_encoder: Path, unigram: Path, tmp_path: Path) -> None:
        file = tmp_path / "tokenizer.json"
        shutil.copyfile(tiny_encoder / "tokenizer.json", file)
        assert token_strings(str(tmp_path), "the")[0] == "[CLS]"
        shutil.copyfile(unigram / "tokenizer.json", file)
        os.utime(file, ns=(1, 1))
        assert token_strings(str(tmp_path), "the")[0] == "<s>"

    def test_another_error_than_of_reading_is_not_hidden(
        self, tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def broken(file: Path, changed: int) -> Any:
            raise ZeroDivisionError

        monkeypatch.setattr(counting, "_read", broken)
        with pytest.raises(ZeroDivisionError):
            token_counts(str(tiny_encoder), [])


COUNTING = """
import json, sys
from core.advice.counting import token_counts, token_strings
counts = token_counts(sys.argv[1], ["the film", ("the film", "was")]).counts
strings = token_strings(sys.argv[1], "the film")
heavy = [name for name in ("torch", "transformers", "umap") if name in sys.modules]
print(json.dumps({"counts": counts, "strings": strings, "heavy": heavy}))
"""


def test_counting_imports_neither_torch_nor_transformers() -> None:
    command = [sys.executable, "-c", COUNTING, BUNDLED]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    expected = {"counts": [4, 6], "strings": ["[CLS]", "the", "film", "[SEP]"], "heavy": []}
    assert json.loads(done.stdout.splitlines()[-1]) == expected


def test_a_job_counts_what_the_counter_counts(tiny_encoder: Path, tmp_path: Path) -> None:
    request = {"encoder": str(tiny_encoder), "texts": ["the film was lovely", "unheard of", ["a scene", "its music"]]}
    reported: list[tuple[int, int | None, Text]] = []
    result = counting.job(request, tmp_path, lambda *now: reported.append(now))
    counted = token_counts(str(tiny_encoder), ["the film was lovely", "unheard of", ("a scene", "its music")])
    assert result == {"counts": list(counted.counts), "unknown_share": counted.unknown_share}
    assert json.loads(json.dumps(result)) == result
    assert reported
