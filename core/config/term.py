"""One weighted loss on views of a text, at a level and on layers; and what of these can go together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from core.errors import ConfigError
from core.losses.entry import LossEntry
from core.losses.registry import loss_entry
from core.parameters import AUTO, Value, checked, whole
from core.views.entry import ViewEntry
from core.views.registry import view_entry

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
        entry = view_entry(given["view"])
        return checked(entry.name, entry.parameters, given, ("view",))

    @property
    def entry(self) -> ViewEntry:
        return view_entry(self.view)


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
        entry = loss_entry(given["loss"])
        return checked(entry.name, entry.parameters, given, ("loss", "weight", "views"))

    @model_validator(mode="after")
    def _check_mix(self) -> TermConfig:
        check_mix(self)
        return self

    @property
    def entry(self) -> LossEntry:
        return loss_entry(self.loss)

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
        remedy = f"{entry.label} takes {'two views' if most == fewest else 'at least two views'} of a text"
        raise ConfigError(f"{term.loss}.views", _named(term), f"{remedy}; add one, such as dropout.")
    if most is not None and count > most:
        at_most = "no further views" if most == 1 else "two views, the text itself among them"
        raise ConfigError(f"{term.loss}.views", _named(term), f"{entry.label} takes {at_most}; remove one.")
    _check_levels(term)
    _check_queue(term)
    _check_mixup(term)


def _check_view_kinds(term: TermConfig, kinds: Sequence[str]) -> None:
    where = f"{term.loss}.views"
    on_sentences = term.entry.reads == "vectors" and term.level == "sentence"
    if "layers" in kinds and not (on_sentences and term.entry.views[1] is None):
        cause = f"{term.entry.label} takes none"
        if not on_sentences and term.entry.contrastive:
            cause = f"{'tokens are' if term.level == 'token' else 'the classifier’s output is'} contrasted here"
        raise ConfigError(where, "layers", f"they are pooled vectors of other layers, and {cause}; take another view.")
    if "layers" in kinds and term.layers != "last":
        raise ConfigError(where, "layers", "choose layers as views, or one loss per layer, not both.")
    if "head" in kinds and term.level == "token":
        raise ConfigError(where, "head_dropout", "it masks the pooled vector, and tokens are contrasted; take dropout.")
    for kind, name in (("head", "head_dropout"), ("layers", "layers")):
        if kinds.count(kind) > 1:
            raise ConfigError(where, f"{name} twice", "name it once.")


def _check_levels(term: TermConfig) -> None:
    entry, values = term.entry, term.parameters
    if "level" in values and term.level not in entry.levels:
        raise ConfigError(f"{term.loss}.level", term.level, f"{entry.label} contrasts {' or '.join(entry.levels)}.")
    if term.level == "logits" and term.layers != "last":
        remedy = "only the last layer reaches the classifier, whose output is contrasted here; choose last."
        raise ConfigError(f"{term.loss}.layers", term.layers, remedy)
    if term.level == "logits" and values["projection"] != "none":
        remedy = "the classifier's output is contrasted as it is; choose none, or another level than logits."
        raise ConfigError(f"{term.loss}.projection", values["projection"], remedy)
    if term.level == "token" and values["k"] != AUTO and whole(values, "clusters") >= whole(values, "k"):
        raise ConfigError(
            f"{term.loss}.clusters", values["clusters"], f"give fewer clusters than the {values['k']} tokens."
        )


def _check_queue(term: TermConfig) -> None:
    size = term.parameters.get("queue")
    if not size:
        return
    contrasted = None
    if term.level != "sentence":
        contrasted = "tokens are" if term.level == "token" else "the classifier's output is"
    elif term.layers != "last":
        contrasted = "other layers are"
    elif not term.original:
        contrasted = "only changed texts are"
    if contrasted is not None:
        remedy = f"it holds the last layer's vectors of unchanged texts, and {contrasted} contrasted here; set it to 0."
        raise ConfigError(f"{term.loss}.queue", size, remedy)


def _check_mixup(term: TermConfig) -> None:
    if not term.parameters.get("mixup"):
        return
    for other in ("margin", "label_smoothing"):
        if term.parameters[other]:
            remedy = f"Mixup has two labels for each text and takes no {other.replace('_', ' ')}; set one of them to 0."
            raise ConfigError(f"{term.loss}.mixup", term.parameters["mixup"], remedy)


def _named(term: TermConfig) -> str:
    names = [*(["the text itself"] if term.original else []), *(view.view for view in term.views)]
    return ", ".join(names) or "none"
