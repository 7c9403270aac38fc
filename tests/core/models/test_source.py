"""Locating an encoder's files: bundled and verified, in a folder, or on a Hub served by this test."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import huggingface_hub.constants
import pytest

from core.config import EncoderConfig
from core.errors import ConfigError, EncoderError, PlaygroundError
from core.models import source
from core.models.source import (
    BUNDLED,
    BUNDLED_SHA256,
    EncoderShape,
    encoder_folder,
    encoder_shape,
    has_safe_weights,
    read_shape,
    tokenizer_file,
    tokenizer_folder,
    verify,
)
from tests.cases import each
from tests.hub_server import HubServer, _Handler

ROOT = Path(__file__).resolve().parents[3]
BERT = {
    "model_type": "bert",
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 64,
    "vocab_size": 30,
}


def written(path: Path, config: object) -> Path:
    path.write_text(config if isinstance(config, str) else json.dumps(config), encoding="utf-8")
    return path


def check_sentence(error: PlaygroundError) -> None:
    message = str(error)
    assert "\n" not in message
    assert message.endswith(".")
    assert len(message) < 300


def with_torch_weights(folder: Path) -> None:
    """Replace the safe weights of a model by the same ones in torch's format."""
    import torch
    from safetensors.torch import load_file

    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


def with_evil_pickle(folder: Path) -> Path:
    """Add torch weights that run code when they are unpickled. Returns: the file that this code would write."""
    import torch

    marker = folder / "ran"

    class Evil:
        def __reduce__(self) -> tuple[Any, ...]:
            return (marker.write_text, ("ran",))

    torch.save({"weights": Evil()}, folder / "pytorch_model.bin")
    return marker


class TestShape:
    def test_it_is_read_from_the_config_file(self, tmp_path: Path) -> None:
        names = {"model_type": "distilbert", "dim": 16, "n_layers": 2, "hidden_dim": 32}
        distilbert = names | {"max_position_embeddings": 64, "vocab_size": 30}
        # The first positions of RoBERTa are kept for padding.
        roberta = BERT | {"model_type": "roberta", "max_position_embeddings": 66, "pad_token_id": 1}
        for config in (BERT, distilbert, roberta):
            shape = read_shape(written(tmp_path / "config.json", config), "tiny")
            assert shape == EncoderShape(str(config["model_type"]), 16, 2, 32, positions=64, vocabulary=30)

    def test_of_a_folder_and_its_weights(self, tiny_encoder: Path) -> None:
        from safetensors import safe_open

        shape = encoder_shape(str(tiny_encoder))
        with safe_open(tiny_encoder / "model.safetensors", "np") as file:
            sizes = {name: file.get_tensor(name).size for name in file.keys()}  # noqa: SIM118
        matrices = sum(n for name, n in sizes.items() if "layer.0." in name and "dense.weight" in name)
        matrices += sum(n for name, n in sizes.items() if "layer.0.attention.self" in name and "weight" in name)
        assert shape.block_parameters == matrices
        assert shape.parameters == pytest.approx(sum(sizes.values()), rel=0.15)

    @each("model_type", ["gpt2", None, ["bert"]])
    def test_an_unsupported_type_is_answered_with_those_that_are(self, tmp_path: Path, model_type: object) -> None:
        path = written(tmp_path / "config.json", BERT | {"model_type": model_type})
        with pytest.raises(EncoderError, match="one of the types bert, roberta") as caught:
            read_shape(path, "tiny")
        check_sentence(caught.value)

    @each(
        "config",
        [
            "{",
            "[]",
            "\xff\xfe",
            {k: v for k, v in BERT.items() if k != "hidden_size"},
            BERT | {"hidden_size": None},
            BERT | {"hidden_size": "wide"},
            json.dumps(BERT).replace("16", "Infinity"),
            json.dumps(BERT).replace("16", "NaN"),
            '{"a": ' * 100_000,
        ],
    )
    def test_a_broken_config_file_is_refused_in_one_sentence(self, tmp_path: Path, config: object) -> None:
        with pytest.raises(EncoderError, match=r"'tiny' has no readable config.json") as caught:
            read_shape(written(tmp_path / "config.json", config), "tiny")
        check_sentence(caught.value)

    def test_a_missing_config_file_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(EncoderError, match=r"no readable config.json"):
            encoder_shape(str(tmp_path))


def test_a_missing_or_changed_file_is_named(tmp_path: Path) -> None:
    published = {"model.safetensors": hashlib.sha256(b"weights").hexdigest()}
    with pytest.raises(EncoderError, match=r"model\.safetensors cannot be read"):
        verify(tmp_path, published)
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    os.utime(tmp_path / "model.safetensors", (1, 1))  # older than the next content, however coarse the clock
    verify(tmp_path, published)
    (tmp_path / "model.safetensors").write_bytes(b"weight_")
    with pytest.raises(EncoderError, match=r"model\.safetensors has the SHA-256") as caught:
        verify(tmp_path, published)
    check_sentence(caught.value)


def test_the_bundled_encoder_is_found_and_verified_without_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "hub_answers", lambda: pytest.fail("the Hub was asked"))
    folder = encoder_folder(BUNDLED)
    assert all((folder / name).is_file() for name in BUNDLED_SHA256)
    assert encoder_shape(BUNDLED).hidden_size == 384
    assert EncoderConfig().id == BUNDLED


class TestLocal:
    def test_a_folder_is_taken_as_it_is(self, tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        assert encoder_folder(str(tiny_encoder)) == tiny_encoder
        assert has_safe_weights(tiny_encoder)
        monkeypatch.setenv("HOME", str(tiny_encoder.parent))
        assert encoder_folder(f"~/{tiny_encoder.name}") == tiny_encoder

    @each("name", ["/no/such/folder", "./nothing", "../nothing", "~/nothing", "~no_such_person/x"])
    def test_an_unknown_path_is_refused(self, name: str) -> None:
        with pytest.raises(EncoderError, match="is not a folder: give its full path") as caught:
            encoder_folder(name)
        check_sentence(caught.value)

    @each("ask", [encoder_shape, encoder_folder, tokenizer_folder, tokenizer_file])
    @each("name", ["", "a\0b", "a/b/c", "a b", "x" * 5000, "<b>", "a\nb"])
    def test_what_can_be_no_name_is_refused(self, name: str, ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(source, "hub_answers", lambda: False)
        with pytest.raises(ConfigError, match=r"^encoder = ") as caught:
            ask(name)
        check_sentence(caught.value)

    def test_a_tokenizers_file_is_found_without_asking_the_hub(
        self, tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("socket.create_connection", lambda *given, **more: pytest.fail("the network was used"))
        for encoder, folder in ((str(tiny_encoder), tiny_encoder), (BUNDLED, encoder_folder(BUNDLED))):
            assert tokenizer_folder(encoder) == folder
            assert tokenizer_file(encoder) == folder / "tokenizer.json"
        assert tokenizer_file(str(tmp_path)) is tokenizer_file("acme/never-fetched") is None


@each("ask", [encoder_shape, encoder_folder])
def test_without_a_network_a_hub_name_gives_one_sentence(
    ask: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "hub_answers", lambda: False)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(EncoderError, match="'a/b' is not on this machine and the Hub cannot be reached") as caught:
        ask("a/b")
    check_sentence(caught.value)
    assert BUNDLED in str(caught.value)


@pytest.fixture
def hub(tiny_encoder: Path) -> Iterator[HubServer]:
    """Yield a Hub of tests/tiny with safe weights, a .bin and a script, tests/old with a .bin only, and tests/gpt."""
    tiny = {path.name: path.read_bytes() for path in tiny_encoder.iterdir()}
    old = {name: content for name, content in tiny.items() if not name.endswith(".safetensors")}
    gpt = {"config.json": json.dumps(BERT | {"model_type": "gpt2"}).encode(), "model.safetensors": b"large"}
    with HubServer() as server:
        server.add("model", "tests/tiny", tiny | {"pytorch_model.bin": b"unsafe", "modeling.py": b"raise SystemExit"})
        server.add("model", "tests/old", old | {"pytorch_model.bin": b"old weights"})
        server.add("model", "tests/gpt", gpt)
        yield server


def fetched(hub: HubServer) -> list[str]:
    """Return the files whose content was sent, in their order."""
    sent = [one.path for one in hub.served if one.method == "GET" and one.status == HTTPStatus.OK]
    return [path.split("/resolve/")[1].partition("/")[2] for path in sent if "/resolve/" in path]


ASKING = """
import json, sys
from core.errors import PlaygroundError
from core.models.own_pooling import own_pooling
from core.models.source import encoder_folder, encoder_shape, tokenizer_folder
try:
    found = globals()[sys.argv[1]](sys.argv[2])
    print(json.dumps({"found": str(found)}))
except PlaygroundError as error:
    print(json.dumps({"refused": str(error)}))
"""


def asked(address: str, tmp_path: Path, function: str, name: str) -> dict[str, str]:
    """Call a function in a separate process with this Hub and a cache in the test's folder. Returns: its output."""
    kept = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy") and not k.startswith("HF_")}
    env = kept | {"HF_ENDPOINT": address, "HF_HOME": str(tmp_path / "cache"), "HF_HUB_DISABLE_TELEMETRY": "1"}
    command = [sys.executable, "-c", ASKING, function, name]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    answer: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return answer


NO_HUB = "http://127.0.0.1:1"
# Responses to every request.
TROUBLES: dict[str, Callable[[_Handler], None]] = {
    "gated": lambda handler: handler._error(HTTPStatus.FORBIDDEN, "GatedRepo"),
    "down": lambda handler: handler._error(HTTPStatus.INTERNAL_SERVER_ERROR, None),
    "hangs up": lambda handler: setattr(handler, "close_connection", True),
    "login page": lambda handler: handler._send(HTTPStatus.OK, b"<html>Welcome</html>", {"Content-Type": "text/html"}),
}


class TestHub:
    def test_the_shape_costs_one_small_file_and_that_alone_is_no_encoder(self, hub: HubServer, tmp_path: Path) -> None:
        answer = asked(hub.endpoint, tmp_path, "encoder_shape", "tests/tiny")
        assert "hidden_size=16" in answer["found"]
        assert fetched(hub) == ["config.json"]
        answer = asked(NO_HUB, tmp_path, "encoder_folder", "tests/tiny")
        assert "is not on this machine and the Hub cannot be reached" in answer.get("refused", str(answer))

    def test_safe_weights_are_fetched_once_and_neither_pickles_nor_code(
        self, hub: HubServer, tiny_encoder: Path, tmp_path: Path
    ) -> None:
        folder = Path(asked(hub.endpoint, tmp_path, "encoder_folder", "tests/tiny")["found"])
        expected = {f.name for f in tiny_encoder.iterdir()}
        assert {f.name for f in folder.iterdir()} == expected
        assert (folder / "model.safetensors").read_bytes() == (tiny_encoder / "model.safetensors").read_bytes()
        assert sorted(fetched(hub)) == sorted(expected)
        assert asked(NO_HUB, tmp_path, "encoder_folder", "tests/tiny") == {"found": str(folder)}
        assert "hidden_size=16" in asked(NO_HUB, tmp_path, "encoder_shape", "tests/tiny")["found"]

    def test_an_old_encoder_has_its_bin_file_fetched(self, hub: HubServer, tmp_path: Path) -> None:
        folder = Path(asked(hub.endpoint, tmp_path, "encoder_folder", "tests/old")["found"])
        assert (folder / "pytorch_model.bin").read_bytes() == b"old weights"
        assert not has_safe_weights(folder)

    def test_the_weights_of_an_unsupported_encoder_are_not_fetched(self, hub: HubServer, tmp_path: Path) -> None:
        assert "is of the type 'gpt2'" in asked(hub.endpoint, tmp_path, "encoder_folder", "tests/gpt")["refused"]
        assert fetched(hub) == ["config.json"]

    def test_a_tokenizer_costs_the_small_files_once(self, hub: HubServer, tiny_encoder: Path, tmp_path: Path) -> None:
        first = asked(hub.endpoint, tmp_path, "tokenizer_folder", "tests/tiny")
        assert sorted(fetched(hub)) == sorted(file.name for file in tiny_encoder.glob("*.json"))
        assert asked(NO_HUB, tmp_path, "tokenizer_folder", "tests/tiny") == first

    def test_its_own_pooling_costs_two_small_files_once(self, hub: HubServer, tmp_path: Path) -> None:
        modules = b'[{"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}]'
        pooling = b'{"pooling_mode_mean_tokens": true}'
        hub.add("model", "tests/tiny", {"modules.json": modules, "1_Pooling/config.json": pooling})
        assert asked(hub.endpoint, tmp_path, "own_pooling", "tests/tiny") == {"found": "mean"}
        assert fetched(hub) == ["modules.json", "1_Pooling/config.json"]
        assert asked(NO_HUB, tmp_path, "own_pooling", "tests/tiny") == {"found": "mean"}
        assert asked(hub.endpoint, tmp_path, "own_pooling", "tests/old") == {"found": "cls"}

    def test_an_unknown_name_is_refused(self, hub: HubServer, tmp_path: Path) -> None:
        answer = asked(hub.endpoint, tmp_path, "encoder_shape", "tests/nothing")
        assert answer["refused"] == "Encoder 'tests/nothing' does not exist on the Hub: check the name."

    @pytest.mark.parametrize(
        ("function", "trouble", "part"),
        [
            ("encoder_shape", "gated", "requires an account"),
            # Without a Hub, its client retries a file for 23 s, but fails at once on the list of files.
            ("encoder_folder", "down", "'tests/tiny'"),
            ("encoder_shape", "hangs up", "'tests/tiny'"),
            ("encoder_folder", "login page", "'tests/tiny'"),
        ],
    )
    def test_trouble_on_the_hub_gives_one_sentence(
        self, hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str, trouble: str, part: str
    ) -> None:
        monkeypatch.setattr(_Handler, "_answer", TROUBLES[trouble])
        answer = asked(hub.endpoint, tmp_path, function, "tests/tiny")
        assert part in answer["refused"]
        check_sentence(EncoderError(answer["refused"]))
