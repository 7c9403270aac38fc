"""The script of a run in the store: its rows and its encoder are read, and what it is composed of is found."""

from __future__ import annotations

import torch

from core.encoders.model import Encoder, Tokenizer, load_encoder
from core.errors import StoreError
from core.events import LOSS
from core.exports.entry import file_stem
from core.exports.script.beginning import tokens_digest, weights_digest
from core.exports.script.drawn_texts import run_rows
from core.exports.script.program import ScriptedRun, program, stages_of
from core.exports.script.source_file import PROJECT
from core.store import RunRecord, Store
from core.tasks import TaskData
from core.training.augmentation import with_back_translations
from core.training.precision import in_bfloat16
from core.workers.run_rows import TaskSource

TRANSLATIONS = "translations.db"


def run_script(store: Store, run: RunRecord) -> str:
    """The text of the script; the same run always gives the same.

    Raises: StoreError for a run that cannot be written so; TaskError where its rows are gone, EncoderError where its
        encoder is.
    """
    config = run.effective
    _check_known(run)
    data = TaskSource(store.folder).kept(config.task, config.seed)
    device = torch.device(run.device or "cpu")
    translations = store.cache_folder / TRANSLATIONS
    data = with_back_translations(data, config.task, config.seed, kept=translations, device=_translating(device))
    encoder, tokenizer = _loaded(run, data)
    blocks = len(encoder.blocks)
    rows = run_rows(config, data, stages_of(config, blocks), encoder, tokenizer, translations)
    return program(
        ScriptedRun(
            title=run.title,
            stem=file_stem(run),
            config=config,
            classes=data.classes,
            model_type=encoder.model.config.model_type,
            blocks=blocks,
            device=device.type,
            bfloat16=in_bfloat16(config.precision, device.type),
            weights=weights_digest(encoder),
            tokens=tokens_digest(tokenizer(rows.texts)),
            rows=rows,
            losses=tuple(step.values[LOSS] for step in store.steps(run.id)),
        )
    )


def _check_known(run: RunRecord) -> None:
    """Refuse losses and views from outside the project, whose source a script could not take over."""
    for phase in run.effective.phases:
        for term in phase.objective.terms:
            if not term.entry.compute.startswith(f"{PROJECT}."):
                raise StoreError(
                    "{loss} is a loss from outside this project: no script can be made of it.", loss=term.entry.label
                )
            for view in term.views:
                for change in (view.entry.text, view.entry.tokens, view.entry.embedding, view.entry.by_model):
                    if change and not change.startswith(f"{PROJECT}."):
                        raise StoreError(
                            "{view} is a view from outside this project: no script can be made of it.",
                            view=view.entry.label,
                        )


def _translating(device: torch.device) -> torch.device:
    """Where translations that are not kept would be made again."""
    return device if device.type != "cuda" or torch.cuda.is_available() else torch.device("cpu")


def _loaded(run: RunRecord, data: TaskData) -> tuple[Encoder, Tokenizer]:
    encoder = run.effective.encoder
    return load_encoder(encoder.id, classes=data.classes, pooling=encoder.pooling, max_length=encoder.max_length)
