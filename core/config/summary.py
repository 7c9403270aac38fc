"""A config in a few words, as headings and lists show it."""

from __future__ import annotations

from core.config import RunConfig, TaskConfig, TrainableConfig
from core.config.fields import fields_of
from core.config.labels import value_text
from core.config.objective import ObjectiveConfig
from core.config.term import TermConfig
from core.config.turns import settings_at_end
from core.messages import N_, _, listed, ngettext

BATCHES = {
    "auto": N_("automatic batches"),
    "random": N_("random batches"),
    "class_balanced": N_("class-balanced batches"),
    "balanced": N_("batches with equal shares"),
}
USUAL_BATCHES = ("auto", "random")
# Settings that change the training rows, which makes the task harder.
ROW_CHANGES = ("label_noise", "text_noise", "imbalance", "back_translation")


def row_labels(task: TaskConfig, *, defaults: bool = False) -> list[str]:
    """The training rows in a few words: how many, how batches are drawn from them, what makes them harder.

    Args:
        defaults: also say that all rows are used and that batches are random.
    """
    size = _("All rows") if task.train_size is None else ngettext("{count} row", "{count} rows", task.train_size)
    labels = [size] if defaults or task.train_size is not None else []
    labels += [_(BATCHES[task.sampler])] if defaults or task.sampler not in USUAL_BATCHES else []
    fields, values = fields_of(TaskConfig), {name: getattr(task, name) for name in ROW_CHANGES}
    changes = {name: value for name, value in values.items() if value not in (None, fields[name].default)}
    return labels + [f"{_(fields[name].label)} {value_text(value)}" for name, value in changes.items()]


def objective_label(config: RunConfig, *, weights: bool = True, temperature: bool = True) -> str:
    """The mix in a few signs, such as `0.1 CE + 0.9 SCL, τ 0.3`; phases in their order.

    A knob that was turned shows both values, as launched and last: `τ 0.3 → 0.08`.

    Args:
        config: of a run, with its knob turns (`RunSummary.effective`).
        weights, temperature: whether they are part of the label, which they are not where a grid varies them.
    """
    first, *then = (_phase_label(config, number, weights, temperature) for number in range(len(config.phases)))
    return _("{first}; then {second}", first=first, second=then[0]) if then else first


def _phase_label(config: RunConfig, number: int, weights: bool, temperature: bool) -> str:
    first, last = config.phases[number].objective, settings_at_end(config, number)
    parts = [_mix(first, last.objective) if weights else " + ".join(_name(term) for _key, term in first.as_written)]
    taus = (first.temperature, last.objective.temperature) if temperature else (None, None)
    contrasts = first.contrastive or last.objective.contrastive or not weights
    if taus[0] is not None and taus[1] is not None and contrasts:
        parts.append(f"τ {_moved(f'{taus[0]:g}', f'{taus[1]:g}')}")
    turned = {turn.name for turn in config.knob_turns if config.phase_at(turn.step) == number}
    parts += [
        f"{knob.label} {_moved(f'{knob.value:g}', f'{last.objective.value_of(name):g}')}"
        for name, knob in first.knobs.items()
        if name in turned and name not in ("lambda", "temperature") and not name.endswith(".weight")
    ]
    if last.rate_factor != 1:
        parts.append(_("learning rate × {factor:g}", factor=last.rate_factor))
    if turned and last == (number, first, 1.0):
        parts.append(_("turned and back"))
    return listed(parts)


def _mix(first: ObjectiveConfig, last: ObjectiveConfig) -> str:
    """The terms with their weights, those that count at the beginning or at the end."""
    weights = {key: term.weight for key, term in last.as_written}
    counted = [(term, weights[key]) for key, term in first.as_written if term.weight > 0 or weights[key] > 0]
    if len(counted) == 1:
        return _name(counted[0][0])
    moved = [(_moved(f"{term.weight:.3g}", f"{now:.3g}"), _name(term)) for term, now in counted]
    return " + ".join(f"({weight}) {symbol}" if "→" in weight else f"{weight} {symbol}" for weight, symbol in moved)


def _name(term: TermConfig) -> str:
    """A loss's symbol, and what it contrasts where that is not one or two views of a text's pooled vector."""
    several = len(term.views) + term.original > 2 or any(view.entry.kind == "layers" for view in term.views)
    symbol = term.entry.symbol
    if term.level == "token":
        return _("token multi-view {loss}", loss=symbol) if several else _("token {loss}", loss=symbol)
    return _("multi-view {loss}", loss=symbol) if several else symbol


def _moved(first: str, last: str) -> str:
    """A value, or both where it was turned."""
    return first if first == last else f"{first} → {last}"


def trainable_label(config: RunConfig) -> str:
    """What learns, once where all phases agree."""
    return " → ".join(dict.fromkeys(part_label(phase.trainable) for phase in config.phases))


def part_label(trainable: TrainableConfig) -> str:
    """Name the weights that learn in a phase, such as "last 2 blocks + classifier"."""
    if trainable.part == "last_blocks":
        if trainable.blocks == 1:
            return _("last block + classifier")
        return _("last {blocks} + classifier", blocks=ngettext("{count} block", "{count} blocks", trainable.blocks))
    if trainable.part == "lora":
        return _("LoRA, rank {rank}", rank=trainable.lora_rank)
    return _("all weights") if trainable.part == "all" else _("classifier only")
