"""A term: one weighted loss on views of a text, at a level and on layers, with checks of their combination."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from core.catalogue.loss_entry import LossEntry
from core.catalogue.losses import LOSSES
from core.catalogue.views import VIEWS, ViewEntry
from core.errors import ConfigError
from core.messages import N_, Message, Text, _, join_list
from core.parameters import AUTO, Value, check_parameters, integer_setting

WEIGHT_MAX = 1000.0


class _WithSettings(BaseModel):
    """Base of models that accept the settings of a registry entry besides their fields."""

    model_config = ConfigDict(frozen=True, extra="allow", allow_inf_nan=False)

    @property
    def parameters(self) -> dict[str, Value]:
        return dict(self.model_extra or {})


class ViewConfig(_WithSettings):
    """One further view of a text. Its parameters, such as `rate`, are additional fields."""

    view: str

    @model_validator(mode="before")
    @classmethod
    def _check_parameters(cls, given: Any) -> Any:
        if not isinstance(given, dict) or "view" not in given:
            return given
        entry = VIEWS.entry(given["view"])
        return check_parameters(entry.name, entry.parameters, given, ("view",))

    @property
    def entry(self) -> ViewEntry:
        return VIEWS.entry(self.view)


class TermConfig(_WithSettings):
    """One weighted loss on the views of a text. Its parameters, such as `temperature`, are additional fields."""

    loss: str
    weight: Annotated[float, Field(ge=0.0, le=WEIGHT_MAX)] = 1.0
    views: Annotated[tuple[ViewConfig, ...], Field(max_length=8)] = ()

    @model_validator(mode="before")
    @classmethod
    def _check_parameters(cls, given: Any) -> Any:
        if not isinstance(given, dict) or "loss" not in given:
            return given
        entry = LOSSES.entry(given["loss"])
        return check_parameters(entry.name, entry.parameters, given, ("loss", "weight", "views"))

    @model_validator(mode="after")
    def _check_mix(self) -> TermConfig:
        """Reject settings that exclude each other."""
        for field, value, remedy in chain.from_iterable(
            find(self) for find in (_view_problems, _count_problems, _level_problems, _extra_problems)
        ):
            raise ConfigError(f"{self.loss}.{field}", value, remedy)
        return self

    @property
    def entry(self) -> LossEntry:
        return LOSSES.entry(self.loss)

    @property
    def level(self) -> str:
        return str(self.parameters.get("level", "sentence"))

    @property
    def layers(self) -> str | tuple[int, ...]:
        """The blocks whose output is contrasted, as configured."""
        chosen = self.parameters.get("layers", "last")
        return chosen if isinstance(chosen, str | tuple) else "last"

    @property
    def original(self) -> bool:
        """True if the unchanged text is one of the views."""
        return bool(self.parameters.get("original", True))


# A field of a term, its value, and the remedy.
Problem = tuple[str, object, Text]


def _view_problems(term: TermConfig) -> Iterator[Problem]:
    """Find views that the loss, its level or its layers do not allow."""
    entry, loss = term.entry, Message(term.entry.label)
    kinds: list[str] = [view.entry.kind for view in term.views]
    on_sentences = entry.reads == "vectors" and term.level == "sentence"
    if "layers" in kinds and not (on_sentences and entry.views[1] is None):
        remedy = Message(
            "layer views are pooled vectors of other layers, but this term contrasts the classifier’s output; "
            "choose another view."
        )
        if on_sentences or not entry.contrastive:
            remedy = Message(
                "layer views are pooled vectors of other layers, which {loss} does not use; choose another view.",
                loss=loss,
            )
        elif term.level == "token":
            remedy = Message(
                "layer views are pooled vectors of other layers, but this term contrasts tokens; choose another view."
            )
        yield "views", "layers", remedy
    if "layers" in kinds and term.layers != "last":
        yield "views", "layers", N_("choose layers as views, or one loss per layer, not both.")
    if "head" in kinds and term.level == "token":
        yield (
            "views",
            "head_dropout",
            N_("head dropout masks the pooled vector, but this term contrasts tokens; choose dropout."),
        )
    for kind, name in (("head", "head_dropout"), ("layers", "layers")):
        if kinds.count(kind) > 1:
            yield "views", Message("{name} twice", name=name), N_("name it once.")
    if not any(view.entry.runs_encoder for view in term.views) and not term.original:
        yield "original", False, N_("include the text itself, or add a view that the encoder reads.")


def _count_problems(term: TermConfig) -> Iterator[Problem]:
    """Find too few or too many views for the loss."""
    loss = Message(term.entry.label)
    count = int(term.original) + len(term.views)
    fewest, most = term.entry.views
    names = [*([_("the text itself")] if term.original else []), *(view.view for view in term.views)]
    named = join_list(names) or _("none")
    if count < fewest:
        remedy = Message("{loss} needs at least two views of a text; add one, such as dropout.", loss=loss)
        if most == fewest:
            remedy = Message("{loss} needs two views of a text; add one, such as dropout.", loss=loss)
        yield "views", named, remedy
    if most is not None and count > most:
        remedy = Message("{loss} uses two views, including the text itself; remove one.", loss=loss)
        if most == 1:
            remedy = Message("{loss} uses no further views; remove one.", loss=loss)
        yield "views", named, remedy


def _level_problems(term: TermConfig) -> Iterator[Problem]:
    """Find levels that the loss does not have, and settings that a level does not allow."""
    entry, values = term.entry, term.parameters
    if "level" in values and term.level not in entry.levels:
        levels: Text = entry.levels[0]
        for level in entry.levels[1:]:
            levels = Message("{some} or {one}", some=levels, one=level)
        yield "level", term.level, Message("{loss} contrasts {levels}.", loss=Message(entry.label), levels=levels)
    if term.level == "logits" and term.layers != "last":
        remedy = N_("only the last layer reaches the classifier, whose output is contrasted here; choose last.")
        yield "layers", term.layers, remedy
    if term.level == "logits" and values["projection"] != "none":
        remedy = N_("the classifier's output has no projection head; choose none, or another level than logits.")
        yield "projection", values["projection"], remedy
    if (
        term.level == "token"
        and values["k"] != AUTO
        and integer_setting(values, "clusters") >= integer_setting(values, "k")
    ):
        yield "clusters", values["clusters"], Message("give fewer clusters than the {k} tokens.", k=values["k"])


def _extra_problems(term: TermConfig) -> Iterator[Problem]:
    """Find a queue that other settings exclude, and settings that Mixup excludes."""
    queue, mixup = term.parameters.get("queue"), term.parameters.get("mixup")
    remedy = ""
    if term.level == "token":
        remedy = N_(
            "the queue holds last-layer vectors of unchanged texts, but this term contrasts tokens; set it to 0."
        )
    elif term.level == "logits":
        remedy = N_(
            "the queue holds last-layer vectors of unchanged texts, but this term contrasts the classifier's "
            "output; set it to 0."
        )
    elif term.layers != "last":
        remedy = N_(
            "the queue holds last-layer vectors of unchanged texts, but this term contrasts other layers; set it to 0."
        )
    elif not term.original:
        remedy = N_(
            "the queue holds last-layer vectors of unchanged texts, but this term contrasts only changed texts; "
            "set it to 0."
        )
    if queue and remedy:
        yield "queue", queue, remedy
    if mixup and term.parameters["margin"]:
        yield "mixup", mixup, N_("Mixup gives each text two labels and supports no margin; set one of them to 0.")
    if mixup and term.parameters["label_smoothing"]:
        remedy = N_("Mixup gives each text two labels and supports no label smoothing; set one of them to 0.")
        yield "mixup", mixup, remedy
