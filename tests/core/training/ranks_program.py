"""Train the drafts of a file in several processes: `torchrun … ranks_program.py DRAFTS OUT`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from core.advice.prepare import prepare
from core.config import RunConfig, parse_config
from core.events import Step
from core.tasks import TaskData
from core.training.checkpoints import Checkpoints
from core.training.data_parallel import Ranks
from core.training.loop import follow, train
from core.training.passes import Setup
from core.training.phase import Phase
from core.training.step import compute_step
from tests.core.training.made import CPU, load_run_encoder


def first_gradients(config: RunConfig, data: TaskData, ranks: Ranks | None = None) -> dict[str, Tensor]:
    """Return the gradient of every trainable parameter after the first backward pass."""
    encoder, tokenizer = load_run_encoder(config, data)
    phase = Phase(config, 0, Setup(data, encoder, tokenizer, CPU, config.seed, ranks=ranks))
    compute_step(phase, 1)
    return {name: p.grad.clone() for name, p in encoder.named_parameters() if p.grad is not None}


def main(drafts: Path, out: Path) -> None:
    torch.set_num_threads(1)
    ranks = Ranks("cpu")
    found = []
    for number, draft in enumerate(json.loads(drafts.read_text())):
        config, data = prepare(parse_config(draft), gpu=False, bfloat16=False)
        gradients = first_gradients(config, data, ranks)
        folder = Checkpoints(out.with_name(f"weights-{number}"))
        if ranks.rank > 0:
            follow(config, data, ranks, checkpoints=folder)
            continue
        save_file(gradients, out.with_name(f"gradients-{number}.safetensors"))
        events = train(config, data, checkpoints=folder, ranks=ranks)
        found.append([dict(event.values) for event in events if isinstance(event, Step)])
    if ranks.rank == 0:
        out.write_text(json.dumps(found))
    ranks.leave()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
