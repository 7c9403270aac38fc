"""An encoder loaded by the real Hub client in a separate process, from a Hub on the loopback address."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from tests.hub_server import HubServer, Served

# Two processes load torch. tests/core/models/test_source.py fetches from the same Hub in this process.
pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]
MODULES = [
    {"idx": 0, "path": "", "type": "sentence_transformers.models.Transformer"},
    {"idx": 1, "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
]
TEXTS = ["a lovely film", "the story was dull and its music cold"]

# Loads encoders by name. Prints the vector of each text's first token, or the error message.
CLIENT = """
import json, sys
import torch
from core.encoders.model import load_encoder
from core.models.own_pooling import own_pooling
from core.models.source import encoder_shape
from core.errors import PlaygroundError

names, texts = json.load(sys.stdin)
answers = []
for name in names:
    try:
        blocks, pooling = encoder_shape(name).blocks, own_pooling(name)
        encoder, tokenizer = load_encoder(name, pooling="cls", classes=["bad", "good"], max_length=16)
        encoder.eval()
        with torch.no_grad():
            answers.append({"blocks": blocks, "pooling": pooling, "vectors": encoder.pooled(tokenizer(texts)).tolist()})
    except PlaygroundError as error:
        answers.append({"error": str(error), "kind": type(error).__name__})
print("ANSWERS" + json.dumps(answers))
"""


def load(hub: HubServer, home: Path, names: list[str], **environment: str) -> dict[str, dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-c", CLIENT],
        input=json.dumps([names, TEXTS]),
        cwd=ROOT,
        env=os.environ | hub.environment(home) | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "ANSWERS" in done.stdout, done.stderr
    return dict(zip(names, json.loads(done.stdout.partition("ANSWERS")[2]), strict=True))


@dataclass(frozen=True)
class Loaded:
    """Results of two processes with one cache: the first with the Hub, the second without."""

    online: dict[str, dict[str, Any]]
    offline: dict[str, dict[str, Any]]
    served: list[Served]


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory, tiny_encoder: Path) -> Loaded:
    home = tmp_path_factory.mktemp("home")
    with HubServer() as hub:
        hub.add_folder("model", "acme/tiny-bert", tiny_encoder)
        files = {path.name: path.read_bytes() for path in tiny_encoder.iterdir()}
        hub.add("model", "acme/gated-bert", files, gated=True)
        hub.add("model", "acme/with-code", files | {"modeling.py": b"raise SystemExit", "tf_model.h5": b"x" * 1000})
        pooled = {
            "modules.json": json.dumps(MODULES).encode(),
            "1_Pooling/config.json": b'{"pooling_mode_mean_tokens": true}',
        }
        hub.add("model", "acme/sentences", files | pooled)
        online = load(hub, home, ["acme/tiny-bert", "acme/with-code", "acme/none", "acme/gated-bert", "acme/sentences"])
        with socket.socket() as held:
            held.bind(("127.0.0.1", 0))  # bound, but not listening
            away = f"http://127.0.0.1:{held.getsockname()[1]}"
            offline = load(hub, home, ["acme/tiny-bert", "acme/other", "acme/sentences"], HF_ENDPOINT=away)
        return Loaded(online, offline, list(hub.served))


def expected_vectors(folder: Path) -> torch.Tensor:
    """Return the first token's vector of each text, computed by transformers text by text, [B, H]."""
    model, tokenizer = AutoModel.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        return torch.cat([model(**tokenizer(text, return_tensors="pt")).last_hidden_state[:, 0] for text in TEXTS])


@pytest.mark.slow
def test_an_encoder_of_the_hub_gives_the_vectors_of_its_files(loaded: Loaded, tiny_encoder: Path) -> None:
    answer = loaded.online["acme/tiny-bert"]
    assert answer["blocks"] == 2
    torch.testing.assert_close(torch.tensor(answer["vectors"]), expected_vectors(tiny_encoder), atol=1e-5, rtol=1e-5)


def test_its_pooling_is_its_own_with_and_without_the_hub(loaded: Loaded) -> None:
    for answers in (loaded.online, loaded.offline):
        assert answers["acme/tiny-bert"]["pooling"] == "cls"
        assert answers["acme/sentences"]["pooling"] == "mean"


def test_its_weights_are_fetched_once(loaded: Loaded) -> None:
    weights = [s for s in loaded.served if s.method == "GET" and s.path.startswith("/acme/tiny-bert/") and s.bytes]
    assert len([s for s in weights if s.path.endswith("model.safetensors")]) == 1


def test_once_fetched_it_needs_no_hub(loaded: Loaded) -> None:
    assert loaded.offline["acme/tiny-bert"] == loaded.online["acme/tiny-bert"]


def test_code_and_other_weights_are_not_fetched(loaded: Loaded) -> None:
    assert loaded.online["acme/with-code"] == loaded.online["acme/tiny-bert"]
    assert not [request for request in loaded.served if request.path.endswith((".py", ".h5"))]


def test_what_cannot_be_had_is_one_sentence(loaded: Loaded) -> None:
    assert loaded.online["acme/none"] == {
        "error": "Encoder 'acme/none' does not exist on the Hub: check the name.",
        "kind": "EncoderError",
    }
    assert loaded.online["acme/gated-bert"] == {
        "error": "Encoder 'acme/gated-bert' requires an account: accept its terms on the Hub first.",
        "kind": "EncoderError",
    }
    message = loaded.offline["acme/other"]["error"]
    assert message.startswith("Encoder 'acme/other' is not on this machine and the Hub cannot be reached")
