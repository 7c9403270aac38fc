"""Two gloo processes, against one process with the same global batch: every measure of every step, and the weights."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from core.advice.prepare import prepare
from core.config import parse_config
from core.config.presets import PRESETS
from core.events import SHARED_COSINE, OfTerm, Step
from core.training.checkpoints import Checkpoints
from core.training.loop import train
from core.workers.processes import ROOT
from tests.core.training.made import additive
from tests.core.training.ranks_program import first_gradients

# The first test waits for both processes. `test_followers.py` runs two processes.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

PROGRAM = Path(__file__).with_name("ranks_program.py")
STEPS, BATCH = 6, 7  # an odd batch, divided into 3 and 4 texts
TOLERANCE = 1e-5
RATES = {"learning_rate": 1e-6, "classifier_learning_rate": 1e-6}
EVERY_BLOCK = {"trainable": {"part": "all"}}
CE = {"loss": "cross_entropy"}
# Without dropout, because each process has its own random numbers.
CASES: dict[str, list[dict[str, Any]]] = {
    "ce-scl": PRESETS["ce-scl"].phases(EVERY_BLOCK),
    "ce-scl in parts": PRESETS["ce-scl"].phases(EVERY_BLOCK | {"micro_batch": 2}),
    "last block": PRESETS["ce-scl"].phases({"trainable": {"part": "last_blocks", "blocks": 1}}),
    "lora": PRESETS["ce-scl"].phases({"trainable": {"part": "lora", "lora_dropout": 0.0}}),
    "classifier": PRESETS["ce"].phases({"trainable": {"part": "classifier"}}),
    "tokens": PRESETS["token-scl"].phases(EVERY_BLOCK),
    "layers": [{"objective": additive(CE, {"loss": "supcon", "layers": [1, 2]})}],
    "views, a head and a queue": [
        {
            "objective": additive(
                CE,
                {"loss": "supcon", "views": [{"view": "eda"}], "projection": "mlp"},
                {"loss": "supcon", "queue": 16},
            )
        }
    ],
    "mixup": [{"objective": {"terms": [{"loss": "cross_entropy", "mixup": 0.4}]}}],
    "two phases": PRESETS["simcse"].phases(EVERY_BLOCK),
}


@pytest.fixture(scope="module")
def drafts(still_encoder: Path, small_csv: Path) -> dict[str, dict[str, Any]]:
    common = {
        "task": {"id": "file", "path": str(small_csv)},
        "encoder": {"id": str(still_encoder), "max_length": 32},
        "device": "cpu",
        "probe": {"frame_steps": [2]},
        "checkpoint": {"snapshot_steps": []},
    }
    # AdamW divides a gradient by its size. At 0, rounding decides the sign of a whole step.
    sized = {"steps": STEPS, "batch_size": BATCH, "optimiser": RATES}
    return {name: common | {"phases": [phase | sized for phase in phases]} for name, phases in CASES.items()}


@pytest.fixture(scope="module")
def together(drafts: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return curve, gradients and weights of every case, from two processes started by torchrun."""
    folder = tmp_path_factory.mktemp("ranks")
    (folder / "drafts.json").write_text(json.dumps(list(drafts.values())))
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(PROGRAM)]
    done = subprocess.run(
        [*command, str(folder / "drafts.json"), str(folder / "out.json")],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-9000:]
    curves = json.loads((folder / "out.json").read_text())
    return {
        name: (
            curve,
            load_file(folder / f"gradients-{number}.safetensors"),
            load_file(folder / f"weights-{number}" / "checkpoint.safetensors"),
        )
        for number, (name, curve) in enumerate(zip(drafts, curves, strict=True))
    }


@pytest.mark.parametrize("name", CASES)
def test_gradients_are_those_of_one_process(name: str, together: dict[str, Any], drafts: dict[str, Any]) -> None:
    expected = first_gradients(*prepare(parse_config(drafts[name]), gpu=False, bfloat16=False))
    _, gradients, _ = together[name]
    assert gradients.keys() == expected.keys()
    for part, values in expected.items():
        np.testing.assert_allclose(gradients[part], values, rtol=0, atol=TOLERANCE, err_msg=part)


@pytest.mark.parametrize("name", CASES)
def test_two_processes_take_the_steps_of_one(
    name: str, together: dict[str, Any], drafts: dict[str, Any], tmp_path: Path
) -> None:
    config, data = prepare(parse_config(drafts[name]), gpu=False, bfloat16=False)
    events = train(config, data, checkpoints=Checkpoints(tmp_path))
    alone = [event.values for event in events if isinstance(event, Step)]
    curve, _, weights = together[name]
    assert len(curve) == len(alone) == sum(phase.steps or 0 for phase in config.phases)
    for ours, theirs in zip(curve, alone, strict=True):
        assert ours.keys() == theirs.keys()
        # A cosine divides by gradient norms. So an error in a gradient changes it by that error divided by the norm.
        norms = [value for measure, value in theirs.items() if measure.startswith(f"{OfTerm.SHARED_GRADIENT}.")]
        cosine = TOLERANCE * (1 + sum(1 / norm for norm in norms if norm))
        for measure in ours.keys() - {"step_s"}:
            close = cosine if measure == SHARED_COSINE else TOLERANCE
            assert ours[measure] == pytest.approx(theirs[measure], rel=TOLERANCE, abs=close), measure
    reference = load_file(tmp_path / "checkpoint.safetensors")
    assert weights.keys() == reference.keys()
    for part, values in reference.items():
        np.testing.assert_allclose(weights[part], values, rtol=0, atol=TOLERANCE, err_msg=part)
