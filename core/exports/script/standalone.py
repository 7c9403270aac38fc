"""Code shared by all standalone scripts: the encoder, the steps of a phase, and the output."""

from __future__ import annotations

import argparse
import csv
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor, nn
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from core.config.plan import learning_rate_factor
from core.encoders.model import PlainEncoder
from core.encoders.packing import Tokens
from core.encoders.partial import first_tokens_only
from core.encoders.taps import pooled_vectors
from core.models.source import hub_answers
from core.training.optimisers import make_optimiser, parameter_groups, set_rates, take_clipped_step

# Name, weight and loss of a term; the loss is a scalar, optionally with its pieces.
TermValue = tuple[str, float, Tensor | tuple[Tensor, dict[str, Tensor]]]


class ScriptEncoder(PlainEncoder):
    """An encoder that pools texts and selects the modules that a phase trains."""

    def pooled(self, texts: Sequence[Tokens]) -> Tensor:
        """Return one vector per text, [B, H] float32."""
        groups, found = self._groups(texts), []
        first_only = self.pooling == "cls" and self.family.bert_blocks and self._sdpa
        for members in groups:
            batch = self._batch([texts[i] for i in members])
            # Other tokens of the last block are not used.
            with first_tokens_only(self.blocks[-1], batch.first) if first_only else nullcontext():
                hidden = self._last_hidden(batch)
            found.append(hidden[:, 0].float() if first_only else pooled_vectors(hidden, batch, self.pooling))
        order = torch.tensor([i for members in groups for i in members], device=found[0].device)
        return torch.cat(found)[order.argsort()]

    def learning(self, part: str, blocks: int) -> list[nn.Module]:
        """Return the outermost modules of a part: "all", "last_blocks" with the classifier, or "classifier"."""
        if part == "all":
            return [self]
        head = [self.model.get_submodule(path) for path in self.family.head_modules]
        head += [module for name, module in self.model.named_children() if name == "dropout"]
        return [*self.blocks[len(self.blocks) - blocks :], *head] if part == "last_blocks" else head


def train(
    encoder: Any,
    rows: Mapping[int, tuple[int, Tokens]],
    batches: Sequence[Sequence[int]],
    terms: Callable[[Any, Tensor, Tensor], Sequence[TermValue]],
    readings: int,
    learning: Sequence[nn.Module],
    optimiser: Any,
    autocast: torch.autocast,
) -> list[dict[str, float]]:
    """Train one phase.

    Args:
        rows: row number → class and tokens.
        batches: the row numbers of each step.
        terms: (encoder, vectors [readings, B, H], labels [B]) → the terms, in the order of their random draws.
        readings: number of forward passes per text and step, each with its own dropout mask.
    Returns: for each step, the loss and its parts in nats.
    """
    device, found = encoder.model.device, []
    encoder.requires_grad_(False)
    for module in learning:
        module.requires_grad_(True)
    parameters = [parameter for parameter in encoder.parameters() if parameter.requires_grad]
    stepper = make_optimiser(parameter_groups(encoder, optimiser), optimiser, device)
    for step, numbers in enumerate(batches, 1):
        encoder.eval()  # frozen modules run without dropout
        for module in learning:
            module.train()
        set_rates(stepper, learning_rate_factor(step, len(batches), optimiser.warmup_fraction))
        labels = torch.tensor([rows[row][0] for row in numbers], device=device)
        with autocast:
            pooled = encoder.pooled([rows[row][1] for row in numbers] * readings)
        values: dict[str, Tensor] = {"loss": torch.zeros((), device=device)}
        for name, weight, value in terms(encoder, pooled.unflatten(0, (readings, -1)), labels):
            total, pieces = value if isinstance(value, tuple) else (value, {})
            values["loss"] = values["loss"] + weight * total
            values |= {name: total, **{f"{name}.{piece}": part for piece, part in pieces.items()}}
        values["loss"].backward()
        norm = nn.utils.get_total_norm([p.grad for p in parameters if p.grad is not None])
        take_clipped_step(stepper, parameters, norm, optimiser.max_gradient_norm)
        stepper.zero_grad(set_to_none=True)
        found.append({name: value.item() for name, value in values.items()})
        print(f"step {step:>6}  " + "  ".join(f"{name} {value:.6f}" for name, value in found[-1].items()), flush=True)
    return found


def arguments(encoder: str | None) -> argparse.Namespace:
    """Parse the command line. Args: encoder: default of --encoder; None makes the option required."""
    parser = argparse.ArgumentParser(description="Repeat a fine-tune of SCL Playground step by step.")
    about = "folder or Hub name of the run's encoder" + (f" [{encoder}]".replace("%", "%%") if encoder else "")
    parser.add_argument("--encoder", default=encoder, required=encoder is None, help=about)
    parser.add_argument("--output", metavar="FILE.csv", help="where to write step, loss and parts")
    parser.add_argument("--save", metavar="FOLDER", help="where to save the trained model and its tokenizer")
    return parser.parse_args()


def installed(package: str) -> str | None:
    """Return the folder of the encoder bundled in a package; None if the package is not installed."""
    spec = importlib.util.find_spec(package)
    return str(Path(spec.origin).parent / "model") if spec and spec.origin else None


def load(
    name: str, revision: str | None, classes: Sequence[str], model_type: str, *settings: Any
) -> tuple[ScriptEncoder, Any]:
    """Load an encoder with a new classification head, initialised from torch's random state, and its tokenizer."""
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    given: dict[str, Any] = {"revision": revision, "local_files_only": Path(name).is_dir() or not hub_answers()}
    labels = {"id2label": dict(enumerate(classes)), "label2id": {label: i for i, label in enumerate(classes)}}
    try:
        tokenizer = AutoTokenizer.from_pretrained(name, **given)
        model = AutoModelForSequenceClassification.from_pretrained(
            name, num_labels=len(classes), use_safetensors=True, dtype=torch.float32, **labels, **given
        )
        assert model.config.model_type == model_type, f"it is not of the type {model_type}"
    except Exception as error:
        reason = " ".join(str(error).split("\n")[0].split()).rstrip(" .:")
        raise SystemExit(
            f"The encoder {name} could not be loaded ({reason}): give its folder with --encoder."
        ) from None
    return ScriptEncoder(model, *settings), tokenizer


def tokens_of(tokenizer: Any, texts: Sequence[str | tuple[str, str]], max_length: int) -> list[Tokens]:
    """Tokenise texts or pairs of texts."""
    sides = [list(texts)] if isinstance(texts[0], str) else [list(side) for side in zip(*texts, strict=True)]
    found = tokenizer(*sides, truncation=True, max_length=max_length)
    types = found.get("token_type_ids") or [()] * len(texts)
    return [Tokens(tuple(i), tuple(t) if any(t) else None) for i, t in zip(found["input_ids"], types, strict=True)]


def finish(given: argparse.Namespace, steps: Sequence[Mapping[str, float]], losses: Sequence[float]) -> None:
    """Write the requested table, and compare the losses with those of the run."""
    if given.output is not None:
        names = list(dict.fromkeys(["step", *(name for step in steps for name in step)]))
        with Path(given.output).open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, names, restval="")
            writer.writeheader()
            writer.writerows({"step": number, **step} for number, step in enumerate(steps, 1))
    if losses:
        found = max(abs(step["loss"] - loss) for step, loss in zip(steps, losses, strict=False))
        print(f"largest difference from the run's {len(losses):,} losses: {found:.1e}")
        if abs(steps[0]["loss"] - losses[0]) > 1e-4:
            raise SystemExit("The first loss differs from the run's: use its encoder and the releases named above.")
