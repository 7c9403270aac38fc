"""How a script begins and ends: its arguments, the encoder and whether it is the run's, and what it writes down."""

from __future__ import annotations

import argparse
import csv
import hashlib
import importlib.util
import socket
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

import torch
import transformers
from huggingface_hub.constants import ENDPOINT
from torch import Tensor
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from core.encoders.model import Encoder, Tokenizer
from core.encoders.packing import Tokens
from core.encoders.tokenizer import special_ids
from core.errors import EncoderError, first_line
from core.models.own_pooling import Pooling
from core.models.source import LOADING_ERRORS


def arguments(encoder: str | None) -> argparse.Namespace:
    """What the command line says; `encoder` is the run's own, None where it has to be said."""
    parser = argparse.ArgumentParser(description="Repeat a fine-tune of SCL Playground step by step.")
    known = f" [{encoder}]".replace("%", "%%") if encoder else ""
    about = f"folder or Hub name of the run's encoder{known}"
    parser.add_argument("--encoder", default=encoder, required=encoder is None, help=about)
    parser.add_argument("--output", metavar="FILE.csv", help="where to write step, loss and parts")
    parser.add_argument("--save", metavar="FOLDER", help="where to save the trained model and its tokenizer")
    return parser.parse_args()


def installed(package: str) -> str | None:
    """The folder of the encoder that a package brings; None where the package is not installed."""
    spec = importlib.util.find_spec(package)
    return str(Path(spec.origin).parent / "model") if spec and spec.origin else None


def hub_answers() -> bool:
    """Whether the Hub takes a connection within 3 s: without a network its client would go on asking for a minute."""
    address = urlsplit(ENDPOINT)
    if getproxies().get(address.scheme):
        return True
    try:
        socket.create_connection((address.hostname or "", address.port or 443), timeout=3).close()
    except OSError:
        return False
    return True


def load(
    name: str, revision: str | None, classes: Sequence[str], pooling: Pooling, max_length: int
) -> tuple[Encoder, Tokenizer]:
    """An encoder with a fresh classification head, drawn from torch's random state, and its tokenizer."""
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    labels = dict(enumerate(classes))
    try:
        here = Path(name).is_dir() or not hub_answers()
        tokenizer = AutoTokenizer.from_pretrained(name, revision=revision, local_files_only=here)
        model = AutoModelForSequenceClassification.from_pretrained(
            name,
            revision=revision,
            local_files_only=here,
            num_labels=len(labels),
            id2label=labels,
            label2id={label: number for number, label in labels.items()},
            dtype=torch.float32,
        )
        encoder = Encoder(model, pooling)
    except (*LOADING_ERRORS, EncoderError) as error:
        reason = first_line(error).rstrip(" .:")
        raise SystemExit(
            f"The encoder {name} could not be loaded ({reason}): give its folder with --encoder."
        ) from None
    encoder.special_ids = special_ids(tokenizer)
    return encoder, Tokenizer(tokenizer, max_length)


def check_encoder(encoder: Encoder, read: Iterable[Tokens], weights: str, tokens: str) -> None:
    """Stop where it is not the run's encoder: losses would be others.

    Args:
        read: the tokens of the rows.
        weights, tokens: the run's `weights_digest` and `tokens_digest`.
    """
    if weights_digest(encoder) != weights:
        raise SystemExit("This encoder has other weights than the run's: give the run's own with --encoder.")
    if tokens_digest(read) != tokens:
        raise SystemExit("This encoder's tokenizer reads the texts differently: give the run's own with --encoder.")


def weights_digest(encoder: Encoder) -> str:
    """A digest of the pre-trained weights; the classifier's are drawn afresh."""
    head = tuple(f"{path}." for path in encoder.family.head_modules)
    digests = sorted(  # so that what releases of transformers call the weights does not matter
        hashlib.sha256(weight.detach().cpu().contiguous().numpy().tobytes()).hexdigest()
        for name, weight in encoder.model.named_parameters()
        if not name.startswith(head)
    )
    return hashlib.sha256("".join(digests).encode()).hexdigest()[:16]


def tokens_digest(read: Iterable[Tokens]) -> str:
    """A digest of what the encoder reads of the rows."""
    return hashlib.sha256(repr([(one.ids, one.types) for one in read]).encode()).hexdigest()[:16]


class Record:
    """Prints each step, and keeps it for a table.

    Attributes:
        rows: step, loss and parts, in nats.
    """

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def __call__(self, step: int, loss: Tensor, parts: Mapping[str, Tensor]) -> None:
        values = {"loss": loss.item(), **{name: part.item() for name, part in parts.items()}}
        self.rows.append({"step": step, **values})
        print(f"step {step:>6}  " + "  ".join(f"{name} {value:.6f}" for name, value in values.items()), flush=True)

    def compare(self, losses: Sequence[float]) -> None:
        """Print the largest difference to the losses that the run had, if it took a step."""
        if not losses:
            return
        pairs = zip((row["loss"] for row in self.rows), losses, strict=False)
        found = max(abs(own - other) for own, other in pairs)
        print(f"largest difference to the run's {len(losses):,} losses: {found:.1e}")

    def write(self, path: str) -> None:
        """A row for each step; parts that a step does not have are left empty."""
        names = list(dict.fromkeys(name for row in self.rows for name in row))
        with Path(path).open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, names, restval="")
            writer.writeheader()
            writer.writerows(self.rows)
