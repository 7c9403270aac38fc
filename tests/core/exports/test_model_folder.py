"""An exported model predicts as its run did, in the libraries that load it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from core.artifacts.replay import open_replay, write_replay
from core.config import RunConfig
from core.errors import StoreError
from core.exports.entry import export_bytes, write_export
from core.exports.model_folder import ACTIVATIONS
from core.exports.registry import EXPORTS
from core.messages import in_language
from core.models.families import FAMILIES
from core.store import RunRecord, Store
from core.weight_files import CHECKPOINT_NAME
from tests.conftest import made_rows, write_csv
from tests.core.artifacts.made import MORE, recorded
from tests.core.encoders.test_model import made

FAST = {"optimiser": {"learning_rate": 1e-2}}
HOSTILE = "<img src=x> | `a` [b](c)"


def exported(store: Store, run: RunRecord, folder: Path) -> Path:
    write_export(EXPORTS["model"], store, run.id, folder / "model")
    return folder / "model"


def uneven_task(folder: Path) -> dict[str, Any]:
    """Return a task whose largest class has two thirds of the training rows and nine tenths of the test rows."""
    rows = made_rows(160)
    train = [*rows[0::2], *rows[1::4]]
    test = [*made_rows(18, seed=1)[0::2], ("a good text", "good")]
    return {
        "path": str(write_csv(folder / "uneven.csv", train)),
        "test_path": str(write_csv(folder / "test.csv", test)),
    }


def executed(folder: Path) -> dict[str, Any]:
    """Return the names that the code in a model's card defines."""
    (code,) = re.findall(r"```python\n(.*?)\n```\n", (folder / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(re.sub(r'FOLDER = ".*"', f"FOLDER = {str(folder)!r}", code, count=1), "card", "exec"), names)
    return names


def run_in(store: Store, draft: Callable[..., RunConfig], pooling: str, **more: Any) -> RunRecord:
    config = draft(more=MORE, **FAST, **more)
    encoder = config.encoder.model_copy(update={"pooling": pooling, "max_length": 12})
    return recorded(store, config.model_copy(update={"encoder": encoder}))


@pytest.fixture(scope="module")
def run_by(store: Store, draft: Callable[..., RunConfig]) -> Callable[[str], RunRecord]:
    """Return a function that carries out a run with a kind of pooling, once."""
    return cache(lambda pooling: run_in(store, draft, pooling))


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_the_lines_of_its_card_load_it_and_predict_the_same(
    store: Store, run_by: Callable[[str], RunRecord], tmp_path: Path, pooling: str
) -> None:
    run = run_by(pooling)
    names = executed(exported(store, run, tmp_path))
    texts, expected = list(run.probe.texts), store.logits(run.id, run.steps)
    if pooling == "mean":
        np.testing.assert_allclose(names["logits"](texts).numpy(), expected, atol=2e-5)
        return
    shares = torch.tensor(expected).softmax(-1).numpy()
    for answers, row in zip(names["classify"](texts), shares, strict=True):
        found = {one["label"]: one["score"] for one in answers}
        np.testing.assert_allclose([found[name] for name in run.probe.classes], row, atol=2e-5)


@pytest.mark.parametrize("model_type", list(FAMILIES))
@torch.inference_mode()
def test_two_layers_and_their_activation_are_the_head_of_every_family(model_type: str) -> None:
    encoder = made(model_type, "mean")
    vectors = torch.randn(5, encoder.model.config.hidden_size)
    dense, output = (encoder.model.get_submodule(name) for name in encoder.family.head_layers)
    assert encoder.family.head_activation in ACTIVATIONS
    activation = {"tanh": torch.tanh, "relu": torch.relu, "gelu": torch.nn.functional.gelu}
    found = output(activation[encoder.family.head_activation](dense(vectors)))
    torch.testing.assert_close(found, encoder.logits(vectors))


class TestCard:
    def test_its_numbers_are_those_of_the_run_and_a_title_from_outside_is_plain_text(
        self, store: Store, run_by: Callable[[str], RunRecord], tmp_path: Path
    ) -> None:
        run = run_by("cls")
        store.rename(run.id, HOSTILE)
        card = (exported(store, store.run(run.id), tmp_path) / "README.md").read_text(encoding="utf-8")
        store.rename(run.id, "")
        (test,) = (one for one in store.evaluations(run.id) if one.split == "test")
        assert f"| Test | {test.values['accuracy'] * 100:.1f}% |" in card
        assert f"{test.values['accuracy_low'] * 100:.1f}% to {test.values['accuracy_high'] * 100:.1f}%" in card
        assert "| Seed | 0 |" in card
        assert "# \\<img src=x\\> \\| \\`a\\` \\[b\\](c)\n" in card
        assert HOSTILE not in card

    @pytest.mark.parametrize("pooling", ["cls", "mean"])
    def test_classes_from_outside_are_plain_text_and_plain_values(
        self, store: Store, draft: Callable[..., RunConfig], tmp_path: Path, pooling: str
    ) -> None:
        classes = ['"]; import os; os.mkdir("broken") #', "{x} ``` | <b>"]
        rows = [(f"a film {word} {n}", classes[n % 2]) for n, word in enumerate(["lovely", "dull"] * 20)]
        path = write_csv(tmp_path / "`a` | {b} <i>.csv", rows)
        run = run_in(store, draft, pooling, task={"path": str(path)})
        folder = exported(store, run, tmp_path)
        card = (folder / "README.md").read_text(encoding="utf-8")
        prose = card.replace(*re.findall(r"```python\n.*?\n```\n", card, re.DOTALL), "")
        assert not any(sign in prose for sign in ("<b>", "<i>", " ``` ", "`a`"))
        assert yaml.safe_load(card.split("---\n")[1])["base_model"] == run.config.encoder.id.rpartition("/")[2]
        names = executed(folder)
        if pooling == "mean":
            assert names["CLASSES"] == list(run.probe.classes)
        assert not Path("broken").exists()

    def test_no_folder_of_the_machine_is_in_any_file(
        self, store: Store, run_by: Callable[[str], RunRecord], tiny_encoder: Path, small_csv: Path, tmp_path: Path
    ) -> None:
        folder = exported(store, run_by("mean"), tmp_path)
        for path in folder.rglob("*"):
            if path.is_file():
                content = path.read_bytes()
                assert str(tiny_encoder.parent).encode() not in content, path
                assert str(small_csv.parent).encode() not in content, path

    def test_a_classifier_that_never_learned_and_the_majority_rate_of_each_split_are_said(
        self, store: Store, draft: Callable[..., RunConfig], tmp_path: Path
    ) -> None:
        contrast = {"terms": [{"loss": "supcon"}]}
        run = recorded(store, draft(task=uneven_task(tmp_path), objective=contrast, more=MORE))
        card = (exported(store, run, tmp_path) / "README.md").read_text(encoding="utf-8")
        assert "Its classifier was never trained" in card
        assert "linear probe of the vectors" in card
        assert "alone scores 90.0% on the test split and 66.7% on the validation split." in card


def test_a_stopped_run_and_a_replay_have_no_model_and_damaged_weights_are_a_sentence(
    store: Store,
    elsewhere: Store,
    draft: Callable[..., RunConfig],
    run_by: Callable[[str], RunRecord],
    tmp_path: Path,
) -> None:
    with pytest.raises(StoreError, match="only a finished run has a model"):
        exported(store, recorded(store, draft(more=MORE), stop_at=4), tmp_path)
    write_replay(store, run_by("cls").id, tmp_path / "replay.zip")
    opened = elsewhere.run(open_replay(elsewhere, tmp_path / "replay.zip"))
    why = f"{opened.title} has no weights here, only frames."
    assert str(EXPORTS["model"].refusal(elsewhere, opened)) == why
    damaged = run_in(elsewhere, draft, "cls")
    (elsewhere.run_folder(damaged.id) / CHECKPOINT_NAME).write_bytes(b"no weights")
    with pytest.raises(StoreError, match=r"^The last weights of Run 2 are missing or damaged: run the same settings"):
        exported(elsewhere, damaged, tmp_path)
    assert list(tmp_path.glob("*model*")) == []


@pytest.mark.slow
def test_a_browser_gets_it_from_a_process_of_its_own(
    store: Store, run_by: Callable[[str], RunRecord], tmp_path: Path
) -> None:
    run = run_by("cls")
    script = (
        "import sys; from core.exports.entry import export_bytes; from core.exports.registry import EXPORTS\n"
        "from core.store import Store\n"
        f"content = export_bytes(EXPORTS['model'], Store({str(store.folder)!r}), {run.id!r})\n"
        f"open({str(tmp_path / 'model.zip')!r}, 'wb').write(content)\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)
    shutil.unpack_archive(tmp_path / "model.zip", tmp_path / "unpacked")
    assert len(list((tmp_path / "unpacked").rglob("model.safetensors"))) == 1


@pytest.mark.slow
def test_what_goes_wrong_in_that_process_is_said_in_the_language_that_is_spoken(
    elsewhere: Store, draft: Callable[..., RunConfig]
) -> None:
    run = run_in(elsewhere, draft, "cls")
    checkpoint = elsewhere.run_folder(run.id) / CHECKPOINT_NAME
    kept = load_file(checkpoint)
    with safe_open(checkpoint, "np") as file:
        about = file.metadata()
    save_file({name: weight.flatten()[:1].clone() for name, weight in kept.items()}, checkpoint, about)
    with in_language("zh"), pytest.raises(StoreError, match=r"^无法使用检查点（.+ is \[1\], not \["):
        export_bytes(EXPORTS["model"], elsewhere, run.id)


def test_a_process_that_fails_before_it_can_report_is_a_sentence(
    store: Store, run_by: Callable[[str], RunRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_by("cls")
    monkeypatch.setattr("core.exports.entry.ROOT", store.folder)  # a folder without that module
    with pytest.raises(StoreError, match=r"^Model could not be written \(.*core.*\): try again, or use the command"):
        export_bytes(EXPORTS["model"], store, run.id)
