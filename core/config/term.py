"""One weighted loss on views of a text, at a level and on layers; and what of these can go together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from core.catalogue.loss_entry import LossEntry
from core.catalogue.losses import LOSSES
from core.catalogue.view_entry import ViewEntry
from core.catalogue.views import VIEWS
from core.errors import ConfigError
from core.messages import N_, Message, Text, _, listed
from core.parameters import AUTO, Value, checked, whole

WEIGHT_MAX = 1000.0


class _WithSettings(BaseModel):
    """Takes the settings of its registry entry beside its own fields."""

    model_config = ConfigDict(frozen=True, extra="allow", allow_inf_nan=False)

    @property
    def parameters(self) -> dict[str, Value]:
        return dict(self.model_extra or {})


class ViewConfig(_WithSettings):
    """One further view of a text. Its own parameters (`rate`, …) are given beside `view`."""

    view: str

    @model_validator(mode="before")
    @classmethod
    def _check_parameters(cls, given: Any) -> Any:
        if not isinstance(given, dict) or "view" not in given:
            return given
        entry = VIEWS.entry(given["view"])
        return checked(entry.name, entry.parameters, given, ("view",))

    @property
    def entry(self) -> ViewEntry:
        return VIEWS.entry(self.view)


class TermConfig(_WithSettings):
    """One weighted loss on the views of a text. Its own parameters (`temperature`, `level`, …) lie beside them."""

    loss: str
    weight: Annotated[float, Field(ge=0.0, le=WEIGHT_MAX)] = 1.0
    views: Annotated[tuple[ViewConfig, ...], Field(max_length=8)] = ()

    @model_validator(mode="before")
    @classmethod
    def _check_parameters(cls, given: Any) -> Any:
        if not isinstance(given, dict) or "loss" not in given:
            return given
        entry = LOSSES.entry(given["loss"])
        return checked(entry.name, entry.parameters, given, ("loss", "weight", "views"))

    @model_validator(mode="after")
    def _check_mix(self) -> TermConfig:
        check_mix(self)
        return self

    @property
    def entry(self) -> LossEntry:
        return LOSSES.entry(self.loss)

    @property
    def level(self) -> str:
        return str(self.parameters.get("level", "sentence"))

    @property
    def layers(self) -> str | tuple[int, ...]:
        """The blocks whose output is contrasted, as chosen."""
        chosen = self.parameters.get("layers", "last")
        return chosen if isinstance(chosen, str | tuple) else "last"

    @property
    def original(self) -> bool:
        """Whether the unchanged text is one of the views."""
        return bool(self.parameters.get("original", True))


def check_mix(term: TermConfig) -> None:
    """Refuse a term whose loss, level, layers and views cannot go together.

    Raises: ConfigError naming the field, its value and what would work.
    """
    entry = term.entry
    kinds = [view.entry.kind for view in term.views]
    _check_view_kinds(term, kinds)
    if not any(view.entry.runs_encoder for view in term.views) and not term.original:
        raise ConfigError(f"{term.loss}.original", False, "keep the text itself, or add a view that the encoder reads.")
    count = int(term.original) + len(term.views)
    fewest, most = entry.views
    if count < fewest:
        remedy = Message(
            "{loss} takes at least two views of a text; add one, such as dropout.", loss=Message(entry.label)
        )
        if most == fewest:
            remedy = Message("{loss} takes two views of a text; add one, such as dropout.", loss=Message(entry.label))
        raise ConfigError(f"{term.loss}.views", _named(term), remedy)
    if most is not None and count > most:
        remedy = Message("{loss} takes two views, the text itself among them; remove one.", loss=Message(entry.label))
        if most == 1:
            remedy = Message("{loss} takes no further views; remove one.", loss=Message(entry.label))
        raise ConfigError(f"{term.loss}.views", _named(term), remedy)
    _check_levels(term)
    _check_queue(term)
    _check_mixup(term)


def _check_view_kinds(term: TermConfig, kinds: Sequence[str]) -> None:
    where = f"{term.loss}.views"
    on_sentences = term.entry.reads == "vectors" and term.level == "sentence"
    if "layers" in kinds and not (on_sentences and term.entry.views[1] is None):
        raise ConfigError(where, "layers", _no_layers(term, on_sentences))
    if "layers" in kinds and term.layers != "last":
        raise ConfigError(where, "layers", "choose layers as views, or one loss per layer, not both.")
    if "head" in kinds and term.level == "token":
        raise ConfigError(where, "head_dropout", "it masks the pooled vector, and tokens are contrasted; take dropout.")
    for kind, name in (("head", "head_dropout"), ("layers", "layers")):
        if kinds.count(kind) > 1:
            raise ConfigError(where, Message("{name} twice", name=name), "name it once.")


def _no_layers(term: TermConfig, on_sentences: bool) -> Message:
    """Why other layers are no views here, and what would work."""
    if on_sentences or not term.entry.contrastive:
        return Message(
            "they are pooled vectors of other layers, and {loss} takes none; take another view.",
            loss=Message(term.entry.label),
        )
    if term.level == "token":
        return Message("they are pooled vectors of other layers, and tokens are contrasted here; take another view.")
    return Message(
        "they are pooled vectors of other layers, and the classifier’s output is contrasted here; take another view."
    )


def _check_levels(term: TermConfig) -> None:
    entry, values = term.entry, term.parameters
    if "level" in values and term.level not in entry.levels:
        levels: Text = entry.levels[0]
        for level in entry.levels[1:]:
            levels = Message("{some} or {one}", some=levels, one=level)
        raise ConfigError(
            f"{term.loss}.level", term.level, "{loss} contrasts {levels}.", loss=Message(entry.label), levels=levels
        )
    if term.level == "logits" and term.layers != "last":
        raise ConfigError(
            f"{term.loss}.layers",
            term.layers,
            "only the last layer reaches the classifier, whose output is contrasted here; choose last.",
        )
    if term.level == "logits" and values["projection"] != "none":
        raise ConfigError(
            f"{term.loss}.projection",
            values["projection"],
            "the classifier's output is contrasted as it is; choose none, or another level than logits.",
        )
    if term.level == "token" and values["k"] != AUTO and whole(values, "clusters") >= whole(values, "k"):
        raise ConfigError(
            f"{term.loss}.clusters", values["clusters"], "give fewer clusters than the {k} tokens.", k=values["k"]
        )


def _check_queue(term: TermConfig) -> None:
    size = term.parameters.get("queue")
    if not size:
        return
    if remedy := _no_queue(term):
        raise ConfigError(f"{term.loss}.queue", size, remedy)


def _no_queue(term: TermConfig) -> Message | None:
    """Why there can be no queue, and what would work; None where there can be one."""
    if term.level == "token":
        return Message(
            "it holds the last layer's vectors of unchanged texts, and tokens are contrasted here; set it to 0.",
        )
    if term.level != "sentence":
        return Message(
            "it holds the last layer's vectors of unchanged texts, and the classifier's output is contrasted here; "
            "set it to 0."
        )
    if term.layers != "last":
        return Message(
            "it holds the last layer's vectors of unchanged texts, and other layers are contrasted here; set it to 0."
        )
    if not term.original:
        return Message(
            "it holds the last layer's vectors of unchanged texts, and only changed texts are contrasted here; "
            "set it to 0."
        )
    return None


def _check_mixup(term: TermConfig) -> None:
    if not term.parameters.get("mixup"):
        return
    remedies = {
        "margin": N_("Mixup has two labels for each text and takes no margin; set one of them to 0."),
        "label_smoothing": N_("Mixup has two labels for each text and takes no label smoothing; set one of them to 0."),
    }
    for other, remedy in remedies.items():
        if term.parameters[other]:
            raise ConfigError(f"{term.loss}.mixup", term.parameters["mixup"], remedy)


def _named(term: TermConfig) -> str:
    names = [*([_("the text itself")] if term.original else []), *(view.view for view in term.views)]
    return listed(names) or _("none")
