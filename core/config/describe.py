"""A config in words: values with units, all relevant settings, one-line labels, and the objective as an equation."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from core.config import MAX_STEPS, OptimiserConfig, ProbeConfig, RunConfig, TaskConfig, TrainableConfig
from core.config.fields import Section, field_at, fields_of
from core.config.objective import ObjectiveConfig, TermConfig, numbered, setting_of, with_number
from core.config.plan import as_ended, as_launched, settings_at_end, stages
from core.errors import ConfigError, PlaygroundError
from core.messages import N_, Message, _, clauses, join_list, ngettext
from core.parameters import AUTO, RELATIVE_LAYERS, Parameter, Value, integer_setting

ABSENT = "–"
# Smaller numbers are learning rates, shown in scientific notation.
SMALL = 1e-3
SWITCH = {
    # Translators: a setting that is switched on.
    True: N_("On"),
    # Translators: a setting that is switched off.
    False: N_("Off"),
}


def problem_text(error: PlaygroundError) -> str:
    """Return the text of an error, with the label of a config field in place of its name."""
    field = field_at(RunConfig, error.field) if isinstance(error, ConfigError) else None
    if not isinstance(error, ConfigError) or field is None:
        return str(error)
    return str(ConfigError(Message(field.label), error.value, error.remedy))


def in_phase(label: str, number: int | None) -> str:
    """Prefix a label with its phase, numbered from 0; None, for a run with one phase, leaves it unchanged."""
    return label if number is None else _("Phase {number}: {setting}", number=number + 1, setting=label)


def value_text(value: object, parameter: Parameter | None = None) -> str:
    """Format a value in the reader's language. Numbers are not rounded, so different numbers look different."""
    words = parameter.values_in_words if parameter is not None else {}
    if value.__hash__ is not None and value in words:
        return words[value]
    if isinstance(value, bool):
        return _(SWITCH[value])
    if isinstance(value, float):
        return number_text(value)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, tuple | list):
        return join_list(map(str, value))
    return ABSENT if value is None else str(value)


def number_text(value: float) -> str:
    """Return the shortest text that is exactly this number: 0.3, 5e-05, 2e-04."""
    style = "e" if 0 < abs(value) < SMALL else "g"
    texts = (f"{value:.{digits}{style}}" for digits in range(18))
    return next(text for text in texts if float(text) == value)


TURNS_SHOWN = 3
# Usual results of "auto", which are not listed for a prepared run.
MOSTLY = {"sampler": "random", "classifier_start": "random"}
# Fields of a task that name the source of its rows.
SOURCE = ("test_path", "drop")
# Fields of TrainableConfig that have an effect, by its `part`.
USED_BY = {
    "all": ("reinitialised_blocks",),
    "last_blocks": ("blocks", "reinitialised_blocks"),
    "lora": ("lora_rank", "lora_alpha", "lora_dropout"),
    "classifier": (),
}


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting of a run.

    Attributes:
        path: dotted names; a term or a view is listed under its key, as `phases.0.objective.terms.supcon.temperature`.
        label, text: the displayed label and value, in the reader's language.
        value: the value to compare. For a turned knob, all its values and their steps.
        listed: whether to list it if another run lacks this setting; False for a default.
        follows: the settings that determine this one. If they differ between runs, a difference here is not listed.
    """

    path: str
    label: str
    value: Hashable
    text: str
    listed: bool = True
    follows: Hashable = None


def settings(config: RunConfig) -> tuple[Setting, ...]:
    """Return all relevant settings of a run, draft or prepared, in display order. All phases are included."""
    seed = fields_of(RunConfig)["seed"]
    phases = [part for number in range(len(config.phases)) for part in phase_settings(config, number)]
    return (
        *_task(config),
        *_plain(config.encoder, "encoder"),
        *_plain(config, "", "start", "branch", "classifier_start"),
        Setting("phases", _("Phases"), len(config.phases), str(len(config.phases))),
        *phases,
        *_probe(config),
        *_plain(config, "", "executor", "device", "precision", "processes"),
        # A seed is a name rather than a number, so it has no thousands separators.
        Setting("seed", _(seed.label), config.seed, str(config.seed)),
    )


def phase_settings(config: RunConfig, number: int) -> list[Setting]:
    """Return the settings of one phase, numbered from 0."""
    phase, path = config.phases[number], f"phases.{number}"
    phase = phase.model_copy(update={"micro_batch": phase.effective_micro_batch})
    of_adam = phase.optimiser.name == "adamw"
    objectives, rates = [], []
    for step, used in stages(config, number):
        factor, text = used.rate_factor, value_text(used.rate_factor)
        objectives.append((step, _objective(used.objective, f"{path}.objective")))
        rates.append((step, [Setting(f"{path}.rate_factor", _("Learning rate ×"), factor, text, listed=False)]))
    optimiser = (name for name in fields_of(OptimiserConfig) if of_adam or name != "bias_correction")
    return [
        *_over_steps(objectives),
        *_plain(phase.trainable, f"{path}.trainable", "part", *USED_BY[phase.trainable.part]),
        *_plain(phase.optimiser, f"{path}.optimiser", *optimiser),
        *_over_steps(rates),
        *_plain(phase, path),
    ]


def row_settings(task: TaskConfig) -> list[Setting]:
    """Return the settings of a task's rows that differ from the defaults, such as the number of training rows."""
    names = (name for name in fields_of(TaskConfig) if name not in (*SOURCE, "translators"))
    return [setting for setting in _plain(task, "task", *names) if setting.listed]


def term_names(objective: ObjectiveConfig) -> dict[str, str]:
    """Return the display name of each term by its key: SCL, or SCL 2 for the second of its kind."""
    return {key: with_number(term.entry.symbol, key, term.loss) for key, term in objective.formula_terms}


def _task(config: RunConfig) -> list[Setting]:
    task = config.task
    name = task.name or Path(task.path or task.id).name
    if task.bundled:
        name = _(name)
    # Everything that determines the rows; the seed counts only if it draws or changes rows.
    drawn = task.train_size is not None or task.imbalance > 1 or task.label_noise > 0 or task.text_noise > 0
    drawn |= task.back_translation is not None
    data = task.model_copy(update={"name": None, "content_hash": None, "sampler": "random"})
    follows = (data.model_dump_json(), config.seed if drawn else None)
    changed = sorted(change.step for change in config.changes)
    # The rows of a draft are not known yet, which is not a difference.
    hashes = [task.content_hash] if task.content_hash else []
    rows = [
        Setting("task.content_hash", _("Rows of the task"), h, h[:8], listed=False, follows=follows) for h in hashes
    ]
    others = [name for name in fields_of(TaskConfig) if name not in SOURCE]
    samplers = [(step, task.model_copy(update={"sampler": config.sampler_at(step)})) for step in (0, *changed)]
    return [
        Setting("task.id", _("Task"), (task.id, task.path), name),
        *_plain(task, "task", *SOURCE),
        *_plain(task.reading, "task.reading"),
        *rows,
        *_over_steps([(step, _plain(used, "task", *others)) for step, used in samplers]),
    ]


def _over_steps(found: Sequence[tuple[int, Sequence[Setting]]]) -> list[Setting]:
    """Combine the settings of all stages, one per path: "0.3 → 0.08 at step 31" for a turned knob.

    Args:
        found: the first step of each stage, 0 at launch, and its settings. A stage without a path shows "–" there: λ,
            for example, disappears when the other weight is turned away from 1.
    """
    if len(found) == 1:
        return list(found[0][1])
    by_path = [(step, {setting.path: setting for setting in of_stage}) for step, of_stage in found]
    paths = dict.fromkeys(setting.path for _step, of_stage in found for setting in of_stage)
    return [_turned([(step, of_stage.get(path)) for step, of_stage in by_path]) for path in paths]


def _turned(history: Sequence[tuple[int, Setting | None]]) -> Setting:
    """Combine one setting over the steps; return it unchanged if no turn changed it."""
    changes = [history[0]]
    for step, setting in history[1:]:
        if (setting and setting.value) != (changes[-1][1] and changes[-1][1].value):
            changes.append((step, setting))
    known = next(setting for _step, setting in history if setting is not None)
    if len(changes) == 1:
        return known
    texts = [ABSENT if setting is None else setting.text for _step, setting in changes]
    later = zip(changes[1:], texts[1:], strict=True)
    spoken = [texts[0], *(_("{value} at step {step:,}", value=text, step=step) for (step, _setting), text in later)]
    turns = len(spoken) - 1
    if turns > TURNS_SHOWN:
        last = ngettext("{value} ({count} turn)", "{value} ({count} turns)", turns, value=spoken[-1])
        spoken = [*spoken[:2], "…", last]
    value = tuple((step, setting and setting.value) for step, setting in changes)
    return replace(known, value=value, text=" → ".join(spoken), listed=True)


def _objective(objective: ObjectiveConfig, path: str) -> list[Setting]:
    names = term_names(objective)
    found = [Setting(f"{path}.terms", _("Losses"), tuple(sorted(names)), " + ".join(names.values()))]
    if objective.weight is not None:
        text = value_text(objective.weight)
        found.append(Setting(f"{path}.lambda", _("Weight λ"), objective.weight, text))
    for key, term in objective.formula_terms:
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
    shown = [*([_("Include the text itself")] if term.original else []), *(_(view.entry.label) for view in term.views)]
    counts = len(shown) > 1 or not term.original
    views = _("Views of {loss}", loss=name)
    found.append(Setting(f"{path}.views", views, (term.original, *keys), join_list(shown), counts))
    for key, view in zip(keys, term.views, strict=True):
        called = with_number(_(view.entry.label).lower(), key, view.view)
        for parameter in view.entry.parameters:
            value = view.parameters[parameter.name]
            label = _("{setting} of {view} for {loss}", setting=_(parameter.label), view=called, loss=name)
            found.append(_parameter(parameter, value, f"{path}.views.{key}", label))
    return found


def _parameter(parameter: Parameter, value: Hashable, path: str, label: str) -> Setting:
    text = value_text(value, parameter)
    return Setting(f"{path}.{parameter.name}", label, value, text, listed=value != parameter.default)


def _counts(term: TermConfig, name: str) -> bool:
    """Return whether a setting of a term has any effect, given the others."""
    if name in ("k", "clusters"):
        return term.level == "token"
    if name == "original":
        return False  # it is listed with the views
    if name == "momentum":
        return bool(term.parameters["queue"])
    return not (name == "alpha" and term.parameters.get("uniform"))


def _probe(config: RunConfig) -> list[Setting]:
    """Return the settings of the map.

    The number of points follows from the validation and training rows, the frame steps from the steps of the run.
    """
    task, probe = config.task, config.probe
    size, train_size = _plain(probe, "probe", "size", "train_size")
    frames, field = probe.frame_steps, fields_of(ProbeConfig)["frame_steps"]
    text = value_text(None if frames is None else len(frames), field)
    lengths = tuple((phase.steps, phase.epochs) for phase in config.phases)
    return [
        replace(size, follows=task.validation_size),
        replace(train_size, follows=(probe.size, task.train_size, task.imbalance)),
        Setting("probe.frame_steps", _(field.label), frames, text, listed=frames is not None, follows=lengths),
    ]


def _plain(section: Section, path: str, *names: str) -> list[Setting]:
    """Return the named fields as settings; without names, every field that has a label."""
    fields = fields_of(type(section))
    found = []
    for name in names or fields:
        field, value = fields[name], getattr(section, name)
        counts = field.listed or value not in (field.default, MOSTLY.get(name, field.default))
        found.append(Setting(f"{path}.{name}".lstrip("."), _(field.label), value, value_text(value, field), counts))
    return found


BATCHES = {
    "auto": N_("automatic batches"),
    "random": N_("random batches"),
    "class_balanced": N_("class-balanced batches"),
    "two_classes": N_("batches of two classes"),
    "balanced": N_("batches with equal shares"),
}
USUAL_BATCHES = ("auto", "random")
# Settings that change the training rows and so make the task harder.
ROW_CHANGES = ("label_noise", "text_noise", "imbalance", "back_translation", "paraphrases")


def row_labels(task: TaskConfig, *, defaults: bool = False) -> list[str]:
    """Describe the training rows in short labels: their number, their sampler, and what makes them harder.

    Args:
        defaults: whether to include the number of rows and the sampler at their defaults.
    """
    size = (
        _("All training rows") if task.train_size is None else ngettext("{count} row", "{count} rows", task.train_size)
    )
    labels = [size] if defaults or task.train_size is not None else []
    labels += [_(BATCHES[task.sampler])] if defaults or task.sampler not in USUAL_BATCHES else []
    fields, values = fields_of(TaskConfig), {name: getattr(task, name) for name in ROW_CHANGES}
    changes = {name: value for name, value in values.items() if value not in (None, fields[name].default)}
    return labels + [f"{_(fields[name].label)} {value_text(value, fields[name])}" for name, value in changes.items()]


def objective_label(config: RunConfig, *, weights: bool = True, temperature: bool = True) -> str:
    """Return the objective as a short label, such as `0.1 CE + 0.9 SCL, τ 0.3`; phases in order.

    A turned knob shows its first and its last value: `τ 0.3 → 0.08`.

    Args:
        config: of a run, with its knob turns (`RunSummary.effective`).
        weights, temperature: whether to include them; a grid leaves out what it varies.
    """
    first, *then = (_phase_label(config, number, weights, temperature) for number in range(len(config.phases)))
    return _("{first}; then {second}", first=first, second=then[0]) if then else first


def _phase_label(config: RunConfig, number: int, weights: bool, temperature: bool) -> str:
    first, last = config.phases[number].objective, settings_at_end(config, number)
    if first.keys != last.objective.keys:  # other losses
        ends = (as_launched(config), as_ended(config, MAX_STEPS))
        return " → ".join(_phase_label(one, number, weights, temperature) for one in ends)
    parts = [_mix(first, last.objective) if weights else " + ".join(_name(term) for _key, term in first.formula_terms)]
    taus = (first.temperature, last.objective.temperature) if temperature else (None, None)
    contrasts = first.contrastive or last.objective.contrastive or not weights
    if taus[0] is not None and taus[1] is not None and contrasts:
        parts.append(f"τ {_moved(f'{taus[0]:g}', f'{taus[1]:g}')}")
    turned = {turn.name for turn in config.knob_turns if config.phase_at(turn.step) == number}
    parts += [
        f"{knob.label} {_moved(f'{knob.value:g}', f'{last.objective.value_of(name):g}')}"
        for name, knob in (first.knobs if turned else {}).items()
        if name in turned and name not in ("lambda", "temperature") and not name.endswith(".weight")
    ]
    if last.rate_factor != 1:
        parts.append(_("learning rate × {factor:g}", factor=last.rate_factor))
    if turned and last == (number, first, 1.0):
        parts.append(_("turned and turned back"))
    return join_list(parts)


def _mix(first: ObjectiveConfig, last: ObjectiveConfig) -> str:
    """Return the weighted terms, without those whose weight is 0 at the beginning and at the end."""
    weights = {key: term.weight for key, term in last.formula_terms}
    counted = [(term, weights[key]) for key, term in first.formula_terms if term.weight > 0 or weights[key] > 0]
    if len(counted) == 1:
        return _name(counted[0][0])
    moved = [(_moved(f"{term.weight:.3g}", f"{now:.3g}"), _name(term)) for term, now in counted]
    return " + ".join(f"({weight}) {symbol}" if "→" in weight else f"{weight} {symbol}" for weight, symbol in moved)


def _name(term: TermConfig) -> str:
    """Return a loss's symbol, qualified unless it contrasts one or two views of a text's pooled vector."""
    several = len(term.views) + term.original > 2 or any(view.entry.kind == "layers" for view in term.views)
    symbol = term.entry.symbol
    if term.level == "token":
        return _("token multi-view {loss}", loss=symbol) if several else _("token {loss}", loss=symbol)
    return _("multi-view {loss}", loss=symbol) if several else symbol


def _moved(first: str, last: str) -> str:
    """Return a value, or both values if it was turned."""
    return first if first == last else f"{first} → {last}"


def part_label(trainable: TrainableConfig) -> str:
    """Name the weights that learn in a phase, such as "last 2 blocks + classifier"."""
    if trainable.part == "last_blocks":
        if trainable.blocks == 1:
            return _("last block + classifier")
        return _("last {blocks} + classifier", blocks=ngettext("{count} block", "{count} blocks", trainable.blocks))
    if trainable.part == "lora":
        return _("LoRA, rank {rank}", rank=trainable.lora_rank)
    return _("all weights") if trainable.part == "all" else _("classifier only")


def total_latex(objective: ObjectiveConfig) -> str:
    """Return the weighted sum in LaTeX, such as L = 0.10 CE + 0.90 SCL."""
    alone = len(objective.terms) == 1
    parts = []
    for key, term in objective.formula_terms:
        weight = "" if alone and term.weight == 1 else rf"{_format_formula_value(term.weight)}\,"
        number = key.removeprefix(term.loss).lstrip("_")
        below = f"_{{{number}}}" if number else ""
        level = rf"^{{\text{{{term.level}}}}}" if term.level != "sentence" else ""
        parts.append(rf"{weight}\text{{{term.entry.symbol}}}{below}{level}")
    return rf"\mathcal{{L}}={'+'.join(parts)}"


def term_latex(term: TermConfig) -> list[str]:
    """Return a term's equation in LaTeX, and a line for each changed setting that alters it."""
    entry, settings = term.entry, term.parameters
    equation = entry.latex_variants.get(str(settings.get("variant")), entry.latex)
    defaults = {parameter.name: parameter.default for parameter in entry.parameters}
    changed = [name for name in entry.latex_notes if settings[name] != defaults[name]]
    words = {name: entry.latex_words[name](settings[name]) for name in changed if name in entry.latex_words}
    lines = [equation, *(entry.latex_notes[name].replace("{words}", words.get(name, "")) for name in changed)]
    for name, value in settings.items():  # other braces belong to LaTeX
        lines = [line.replace(f"{{{name}}}", _format_formula_value(value)) for line in lines]
    return lines


def term_words(term: TermConfig) -> str:
    """Describe in words what a term contrasts; empty for the plain case."""
    words = []
    if term.level == "token":
        words.append(_tokens(term))
    if term.level == "logits":
        words.append(_("the classifier's output"))
    if isinstance(term.layers, tuple):
        words.append(_("one loss per layer ({layers})", layers=join_list(map(str, term.layers))))
    elif term.layers != "last":
        words.append(_("one loss per layer ({layers})", layers=_(RELATIVE_LAYERS[term.layers]).lower()))
    if (head := term.parameters.get("projection", "none")) != "none":
        words.append(_("through an MLP projection head") if head == "mlp" else _("through a linear projection head"))
    if size := integer_setting(term.parameters, "queue"):
        words.append(
            _("a queue of {vectors} as further candidates", vectors=ngettext("{count} vector", "{count} vectors", size))
        )
    if not term.original:
        words.append(_("without the unchanged text"))
    if not term.parameters.get("normalize", True):
        words.append(_("the vectors that it compares are not normalised"))
    if term.parameters.get("label_filter"):
        words.append(_("without candidates of the anchor's label"))
    if term.views:
        words.append(_("views: {views}", views=join_list(_(view.entry.label).lower() for view in term.views)))
    return clauses(words)


def _tokens(term: TermConfig) -> str:
    """Describe the tokens that a term contrasts, clustered or not."""
    clusters = integer_setting(term.parameters, "clusters")
    if term.parameters["k"] == AUTO:
        if clusters:
            return _(
                "the third of the tokens with the highest [CLS] attention, grouped into {groups} clusters",
                groups=clusters,
            )
        return _("the third of the tokens with the highest [CLS] attention")
    tokens = ngettext("{count} token", "{count} tokens", integer_setting(term.parameters, "k"))
    if clusters:
        return _(
            "the {tokens} with the highest [CLS] attention, grouped into {groups} clusters",
            tokens=tokens,
            groups=clusters,
        )
    return _("the {tokens} with the highest [CLS] attention", tokens=tokens)


def _format_formula_value(value: Value) -> str:
    """Format a setting for a formula.

    Two decimals keep the formula's width while the user drags a slider. More appear only if two would hide part of the
    number.
    """
    if not isinstance(value, float):
        return str(value)
    return f"{value:.2f}" if value == round(value, 2) else f"{value:g}"
