"""A config as a flat list of settings that matter for what is learned, with labels for people.

Left out is what changes nothing that a run learns or that follows from something else that is listed: the run's name,
how often it is saved (checkpoint), what it asks a cluster for (resources), the task's name, the order of an
objective's terms, how λ is bound to two weights (the weights are listed), and every setting that something else has
switched off (the tokens k at sentence level, the queue's momentum without a queue, the LoRA rank where all weights
learn). A knob turn is part of the setting that it changed, as the value over the steps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from core.config import OptimiserConfig, PhaseConfig, ProbeConfig, RunConfig, TaskConfig, TrainableConfig, labels
from core.config.fields import fields_of
from core.config.labels import value_text
from core.config.objective import ObjectiveConfig, setting_of
from core.config.term import TermConfig
from core.config.turns import stages
from core.config.validation import Section
from core.messages import _, listed, ngettext
from core.parameters import Parameter

TURNS_SHOWN = 3
# What "auto" mostly becomes, which a prepared run need not list.
MOSTLY = {"sampler": "random", "classifier_start": "random"}
# Of a task, what says where its rows come from.
SOURCE = ("test_path", "drop")


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting of a run.

    Attributes:
        path: dotted names; a term or a view is listed under its key, as `phases.0.objective.terms.supcon.temperature`.
        label, text: what people read, in their language.
        value: what is compared. Of a knob that was turned, the values and their steps.
        listed: whether it is listed where another run has no such setting; if not, it is at its default.
        follows: what it may merely follow from. Runs that differ there say nothing by differing here.
    """

    path: str
    label: str
    value: Hashable
    text: str
    listed: bool = True
    follows: Hashable = None


def settings(config: RunConfig) -> tuple[Setting, ...]:
    """Everything that matters of a run, in the order in which people read it; all phases, drafts too."""
    seed = fields_of(RunConfig)["seed"]
    phases = [part for number in range(len(config.phases)) for part in phase_settings(config, number)]
    return (
        *_task(config),
        *_plain(config.encoder, "encoder"),
        *_plain(config, "", "start", "classifier_start"),
        Setting("phases", _("Phases"), len(config.phases), str(len(config.phases))),
        *phases,
        *_probe(config),
        *_plain(config, "", "device", "precision", "processes"),
        # Not grouped by thousands: it is a name more than a number.
        Setting("seed", _(seed.label), config.seed, str(config.seed)),
    )


def phase_settings(config: RunConfig, number: int) -> list[Setting]:
    """Those of one phase, numbered from 0."""
    phase, path = config.phases[number], f"phases.{number}"
    return [
        *_over_steps(
            [(step, _objective(used.objective, f"{path}.objective")) for step, used in stages(config, number)]
        ),
        *_trainable(phase.trainable, f"{path}.trainable"),
        *_optimiser(phase.optimiser, f"{path}.optimiser"),
        *_over_steps([(step, [_rate_factor(used.rate_factor, path)]) for step, used in stages(config, number)]),
        *_plain(phase, path, "steps", "epochs", "batch_size"),
        _micro_batch(phase, path),
        *_plain(phase, path, "gradient_checkpointing"),
    ]


def row_settings(task: TaskConfig) -> list[Setting]:
    """Settings of a task's rows that differ from the defaults, such as the number of training rows."""
    names = (name for name in fields_of(TaskConfig) if name not in (*SOURCE, "translators"))
    return [setting for setting in _plain(task, "task", *names) if setting.listed]


def row_source(task: TaskConfig, seed: int) -> Hashable:
    """What decides a run's rows; the seed only where rows are drawn or changed by it."""
    drawn = task.train_size is not None or task.imbalance > 1 or task.label_noise > 0 or task.text_noise > 0
    drawn |= task.back_translation is not None
    data = task.model_copy(update={"name": None, "content_hash": None, "sampler": "random"})
    return (data.model_dump_json(), seed if drawn else None)


def term_names(objective: ObjectiveConfig) -> dict[str, str]:
    """What people call each term, by its key: SCL, or SCL 2 for the second of a kind."""
    return {
        key: f"{term.entry.symbol} {key.removeprefix(term.loss).lstrip('_')}".strip()
        for key, term in objective.as_written
    }


def numbered(names: Iterable[str]) -> tuple[str, ...]:
    """A key for each of several losses or views: its name, numbered from the second of a kind on."""
    seen: Counter[str] = Counter()
    keys = []
    for name in names:
        seen[name] += 1
        keys.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return tuple(keys)


def _task(config: RunConfig) -> list[Setting]:
    task = config.task
    name = task.name or Path(task.path or task.id).name
    if task.bundled:
        name = _(name)
    # Of a draft the rows are not known yet, which is no difference.
    hashes = [task.content_hash] if task.content_hash else []
    follows = row_source(task, config.seed)
    rows = [
        Setting("task.content_hash", _("Rows of the task"), h, h[:8], listed=False, follows=follows) for h in hashes
    ]
    return [
        Setting("task.id", _("Task"), (task.id, task.path), name),
        *_plain(task, "task", *SOURCE),
        *_plain(task.reading, "task.reading"),
        *rows,
        *_plain(task, "task", *(name for name in fields_of(TaskConfig) if name not in SOURCE)),
    ]


def _over_steps(found: Sequence[tuple[int, Sequence[Setting]]]) -> list[Setting]:
    """Settings as launched and from later steps on, as one for each path: "0.3 → 0.08 at step 31" where one was turned.

    Args:
        found: the first step of each stage, 0 for that of the launch, and its settings; a stage that lacks a path
            (λ, where the weight beside it was turned away from 1) has "–" there.
    """
    if len(found) == 1:
        return list(found[0][1])
    by_path = [(step, {setting.path: setting for setting in of_stage}) for step, of_stage in found]
    paths = dict.fromkeys(setting.path for _step, of_stage in found for setting in of_stage)
    return [_turned([(step, of_stage.get(path)) for step, of_stage in by_path]) for path in paths]


def _turned(history: Sequence[tuple[int, Setting | None]]) -> Setting:
    """One setting over the steps; as it is where no turn changed it."""
    changes = [history[0]]
    for step, setting in history[1:]:
        if (setting and setting.value) != (changes[-1][1] and changes[-1][1].value):
            changes.append((step, setting))
    known = next(setting for _step, setting in history if setting is not None)
    if len(changes) == 1:
        return known
    texts = [labels.ABSENT if setting is None else setting.text for _step, setting in changes]
    later = zip(changes[1:], texts[1:], strict=True)
    spoken = [texts[0], *(_("{value} at step {step:,}", value=text, step=step) for (step, _setting), text in later)]
    turns = len(spoken) - 1
    if turns > TURNS_SHOWN:
        last = ngettext("{value} ({count} turn)", "{value} ({count} turns)", turns, value=spoken[-1])
        spoken = [*spoken[:2], "…", last]
    value = tuple((step, setting and setting.value) for step, setting in changes)
    return replace(known, value=value, text=" → ".join(spoken), listed=True)


def _rate_factor(factor: float, path: str) -> Setting:
    """What the learning-rate knob multiplies the schedule by."""
    return Setting(f"{path}.rate_factor", _("Learning rate ×"), factor, value_text(factor), listed=False)


def _objective(objective: ObjectiveConfig, path: str) -> list[Setting]:
    names = term_names(objective)
    found = [Setting(f"{path}.terms", _("Losses"), tuple(sorted(names)), " + ".join(names.values()))]
    if objective.weight is not None:
        text = value_text(objective.weight)
        found.append(Setting(f"{path}.lambda", _("Weight λ"), objective.weight, text))
    for key, term in objective.as_written:
        weight = value_text(term.weight)
        counts = len(names) > 1 or term.weight != 1
        label = _("Weight of {loss}", loss=names[key])
        found.append(Setting(f"{path}.terms.{key}.weight", label, term.weight, weight, counts))
        found += _term(term, names[key], f"{path}.terms.{key}")
    return found


def _term(term: TermConfig, name: str, path: str) -> list[Setting]:
    found = []
    for parameter in term.entry.parameters:
        if _counts(term, parameter.name):
            label = setting_of(parameter.label, name)
            setting = _parameter(parameter, term.parameters[parameter.name], path, label)
            found.append(replace(setting, listed=setting.listed or parameter.name == "temperature"))
    keys = numbered(view.view for view in term.views)
    shown = [*([_("The text itself")] if term.original else []), *(_(view.entry.label) for view in term.views)]
    counts = len(shown) > 1 or not term.original
    views = _("Views of {loss}", loss=name)
    found.append(Setting(f"{path}.views", views, (term.original, *keys), listed(shown), counts))
    for key, view in zip(keys, term.views, strict=True):
        called = f"{_(view.entry.label).lower()} {key.removeprefix(view.view).lstrip('_')}".strip()
        for parameter in view.entry.parameters:
            value = view.parameters[parameter.name]
            label = _("{setting} of {view} for {loss}", setting=_(parameter.label), view=called, loss=name)
            found.append(_parameter(parameter, value, f"{path}.views.{key}", label))
    return found


def _parameter(parameter: Parameter, value: Hashable, path: str, label: str) -> Setting:
    text = value_text(value, parameter)
    return Setting(f"{path}.{parameter.name}", label, value, text, listed=value != parameter.default)


def _counts(term: TermConfig, name: str) -> bool:
    """Whether a setting of a term does anything beside the others."""
    if name in ("k", "clusters"):
        return term.level == "token"
    if name == "original":
        return False  # it is listed with the views
    if name == "momentum":
        return bool(term.parameters["queue"])
    return not (name == "alpha" and term.parameters.get("uniform"))


def _trainable(trainable: TrainableConfig, path: str) -> list[Setting]:
    used = {"part"}
    used |= {"last_blocks": {"blocks"}, "lora": {"lora_rank", "lora_alpha", "lora_dropout"}}.get(trainable.part, set())
    if trainable.part in ("all", "last_blocks"):
        used.add("reinitialised_blocks")
    return _plain(trainable, path, *(name for name in fields_of(TrainableConfig) if name in used))


def _optimiser(optimiser: OptimiserConfig, path: str) -> list[Setting]:
    left_out = {"bias_correction"} if optimiser.name != "adamw" else set()
    return _plain(optimiser, path, *(name for name in fields_of(OptimiserConfig) if name not in left_out))


def _micro_batch(phase: PhaseConfig, path: str) -> Setting:
    size = phase.effective_micro_batch
    field = fields_of(PhaseConfig)["micro_batch"]
    return Setting(f"{path}.micro_batch", _(field.label), size, value_text(size, field), listed=size is not None)


def _probe(config: RunConfig) -> list[Setting]:
    """The points follow from the validation rows and the training rows, the frames' steps from the steps."""
    task = config.task
    probe = config.probe.model_copy(update={"train_size": config.probe.train_points})
    size, train_points = _plain(probe, "probe", "size", "train_size")
    frames, field = probe.frame_steps, fields_of(ProbeConfig)["frame_steps"]
    text = value_text(None if frames is None else len(frames), field)
    lengths = tuple((phase.steps, phase.epochs) for phase in config.phases)
    return [
        replace(size, follows=task.validation_size),
        replace(train_points, follows=(probe.size, task.train_size, task.imbalance)),
        Setting("probe.frame_steps", _(field.label), frames, text, listed=frames is not None, follows=lengths),
    ]


def _plain(section: Section, path: str, *names: str) -> list[Setting]:
    """Fields as they are, each with its label; all that have one where none is named."""
    fields = fields_of(type(section))
    found = []
    for name in names or fields:
        field, value = fields[name], getattr(section, name)
        counts = field.listed or value not in (field.default, MOSTLY.get(name, field.default))
        found.append(Setting(f"{path}.{name}".lstrip("."), _(field.label), value, value_text(value, field), counts))
    return found
