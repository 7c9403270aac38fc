"""Objectives, and the loss terms that they combine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, model_validator

from core.catalogue.loss_entry import LossEntry
from core.catalogue.losses import LOSSES
from core.catalogue.views import VIEWS, ViewEntry
from core.config.fields import Section, build
from core.errors import ConfigError
from core.messages import N_, Message, Text, _, join_list
from core.parameters import AUTO, EMBEDDINGS, Value, check_parameters, integer_setting, number

WEIGHT_MAX = 1000.0


class _WithSettings(BaseModel):
    """Base of models that accept the settings of a registry entry besides their fields.

    The field that names the entry has the name of the registry's kind.
    """

    model_config = ConfigDict(frozen=True, extra="allow", allow_inf_nan=False)
    registry: ClassVar[Any]

    @model_validator(mode="before")
    @classmethod
    def _check_parameters(cls, given: Any) -> Any:
        if not isinstance(given, dict) or cls.registry.kind not in given:
            return given
        entry = cls.registry.entry(given[cls.registry.kind])
        return check_parameters(entry.name, entry.parameters, given, tuple(cls.model_fields))

    @property
    def parameters(self) -> dict[str, Value]:
        return dict(self.model_extra or {})


class ViewConfig(_WithSettings):
    """One further view of a text. Its parameters, such as `rate`, are additional fields."""

    registry = VIEWS
    view: str

    @property
    def entry(self) -> ViewEntry:
        return VIEWS.entry(self.view)


class TermConfig(_WithSettings):
    """One weighted loss on the views of a text. Its parameters, such as `temperature`, are additional fields."""

    registry = LOSSES
    loss: str
    weight: Annotated[float, Field(ge=0.0, le=WEIGHT_MAX)] = 1.0
    views: Annotated[tuple[ViewConfig, ...], Field(max_length=8)] = ()

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
    if term.level == "token" and isinstance(term.layers, tuple) and EMBEDDINGS in term.layers:
        yield "layers", term.layers, N_("tokens are chosen by the attention of a block; give layers from 1.")
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
    """Find a queue that other settings exclude, and settings that Mixup or CutMix excludes."""
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
    cut = term.parameters.get("cutmix")
    angle = integer_setting(term.parameters, "angle_margin")
    if angle > 1 and (mixup or cut):
        yield (
            "angle_margin",
            angle,
            N_("Mixup and CutMix give each text two labels and support no margin; set it to 1."),
        )
    if cut and (mixup or term.parameters["margin"] or term.parameters["label_smoothing"]):
        remedy = N_("CutMix gives each text two labels and excludes Mixup, margin and label smoothing; set them to 0.")
        yield "cutmix", cut, remedy
    if cut and term.views:
        yield "cutmix", cut, N_("CutMix mixes the unchanged texts, without further views; remove the views.")
    if mixup and term.parameters["margin"]:
        yield "mixup", mixup, N_("Mixup gives each text two labels and supports no margin; set one of them to 0.")
    if mixup and term.parameters["label_smoothing"]:
        remedy = N_("Mixup gives each text two labels and supports no label smoothing; set one of them to 0.")
        yield "mixup", mixup, remedy


CONVEX_TOLERANCE = 1e-6
# Automatic k is a third of a text's tokens, so that attention still selects among them.
K_SHARE, K_LEAST, K_MOST, K_MOST_CLUSTERED = 1 / 3, 2, 30, 90

WEIGHT = N_("Weight of this term in the sum.")


class Knob(NamedTuple):
    """A setting that can be turned during a run: its label, its value, its slider's range, and its help.

    Label and help are translated.
    """

    label: str
    value: float
    slider: tuple[float, float]
    help: str = ""


class ObjectiveConfig(Section):
    """A list of weighted terms.

    `combine` determines how λ binds the weights of a cross-entropy and one contrastive term. "convex" is (1 − λ)·CE +
    λ·SCL; "additive" is CE + λ·SCL, or any other weighted sum.

    Source: Gunel et al. 2021, eq. 1, arXiv:2011.01403.
    """

    terms: Annotated[tuple[TermConfig, ...], Field(min_length=1, max_length=8)] = (
        TermConfig.model_validate({"loss": "supcon", "weight": 0.9, "temperature": 0.3}),
        TermConfig(loss="cross_entropy", weight=0.1),
    )
    combine: Literal["convex", "additive"] = "convex"

    @model_validator(mode="after")
    def _check_weights(self) -> ObjectiveConfig:
        if all(t.weight == 0 for t in self.terms):
            raise ConfigError("objective.terms", Message("all weights 0"), "give at least one term a weight above 0.")
        total = sum(t.weight for t in self.terms)
        if self.combine == "convex" and len(self.terms) > 1 and abs(total - 1) > CONVEX_TOLERANCE:
            raise ConfigError(
                "objective.terms",
                Message("weights that sum to {total:g}", total=total),
                "make convex weights sum to 1, or set objective.combine to additive.",
            )
        return self

    @property
    def keys(self) -> tuple[str, ...]:
        """A key for each term: its loss, numbered from the second of its kind."""
        return numbered(term.loss for term in self.terms)

    @property
    def formula_terms(self) -> tuple[tuple[str, TermConfig], ...]:
        """The terms with their keys, in the order of a formula: losses on the classifier first."""
        pairs = zip(self.keys, self.terms, strict=True)
        return tuple(sorted(pairs, key=lambda pair: pair[1].entry.contrastive))

    @property
    def contrastive(self) -> tuple[TermConfig, ...]:
        """The terms that compare the vectors of a batch and have a weight above 0."""
        return tuple(t for t in self.terms if t.entry.contrastive and t.weight > 0)

    @property
    def classifies(self) -> bool:
        """True if any term reaches the classifier."""
        return any(t.weight > 0 and (not t.entry.contrastive or t.level == "logits") for t in self.terms)

    @property
    def trains_classifier(self) -> bool:
        """True if a loss on logits has a weight above 0. Contrast of logits teaches the classifier no classes."""
        return any(t.weight > 0 and not t.entry.contrastive for t in self.terms)

    @property
    def weight(self) -> float | None:
        """λ, if it binds a loss on logits and one contrastive term; otherwise None."""
        other = next((t for t in self.terms if not t.entry.contrastive), None)
        bound = self.combine == "convex" or (other is not None and other.weight == 1)
        return self._pair.weight if self._pair is not None and bound else None

    @property
    def _pair(self) -> TermConfig | None:
        """The contrastive term, if the only other term is a loss on logits."""
        contrastive = [t for t in self.terms if t.entry.contrastive]
        return contrastive[0] if len(self.terms) == 2 and len(contrastive) == 1 else None

    @property
    def temperature(self) -> float | None:
        """τ, if exactly one term has one; otherwise None."""
        taus = [number(t.parameters, "temperature") for t in self.terms if "temperature" in t.parameters]
        return taus[0] if len(taus) == 1 else None

    @property
    def knobs(self) -> dict[str, Knob]:
        """The knobs by name: λ or each weight, τ, and those of the terms."""
        knobs: dict[str, Knob] = {}
        if self.weight is not None:
            about = _("Weight of the contrastive loss. The other loss has weight 1.")
            if self.combine == "convex":
                about = _("Weight of the contrastive loss. The other loss has weight 1 − λ.")
            knobs["lambda"] = Knob(_("Weight λ"), self.weight, (0.0, 1.0), about)
        for key, term in zip(self.keys, self.terms, strict=True):
            owner = with_number(term.entry.symbol, key, term.loss) if len(self.terms) > 1 else ""
            bound = self.weight is not None and term.entry.contrastive
            if not bound and len(self.terms) > 1 and self.combine == "additive":
                knobs[f"{key}.weight"] = Knob(_("Weight of {loss}", loss=owner), term.weight, (0.0, 1.0), _(WEIGHT))
            for parameter in term.entry.parameters:
                # Extras are knobs only while they are in use.
                in_use = not term.entry.extras or term.parameters[parameter.name] != parameter.default
                if parameter.knob and parameter.slider and in_use:
                    value = number(term.parameters, parameter.name)
                    shown = (value, parameter.slider, _(parameter.help))
                    if parameter.name == "temperature" and self.temperature is not None:
                        knobs["temperature"] = Knob(_(parameter.label), *shown)
                    else:
                        knobs[f"{key}.{parameter.name}"] = Knob(setting_of(parameter.label, owner), *shown)
        return knobs

    def with_knob(self, name: str, value: float) -> ObjectiveConfig:
        """Return the objective after a knob was turned.

        The values of knobs do not restrict which knobs can be turned, so any turn can follow any other.

        Raises: ConfigError for a value out of bounds or a knob that this objective does not have.
        """
        key, setting = self._target(name)
        terms = [t.model_dump() for t in self.terms]
        if setting != "lambda":
            terms[self.keys.index(key)][setting] = value
            return self._with_terms(terms)
        most = 1.0 if self.combine == "convex" else WEIGHT_MAX
        if not 0.0 <= value <= most:
            raise ConfigError("lambda", value, "give a number from 0 to {most:g}.", most=most)
        for term in terms:
            if LOSSES.entry(term["loss"]).contrastive:
                term["weight"] = value
            elif self.combine == "convex":
                term["weight"] = round(1.0 - value, 12)  # 0.1 for 0.9, not 0.09999999999999998
        return self._with_terms(terms)

    def value_of(self, name: str) -> float:
        """Return the value of a knob, even one that `knobs` no longer lists because another was turned.

        Raises: ConfigError for a knob that this objective does not have.
        """
        key, setting = self._target(name)
        term = self.terms[self.keys.index(key)]
        return term.weight if setting in ("lambda", "weight") else number(term.parameters, setting)

    def _target(self, name: str) -> tuple[str, str]:
        """Return the key of the term that a knob turns, and the setting: "lambda" for the weights that λ binds.

        Raises: ConfigError for a knob that this objective does not have.
        """
        if name == "lambda" and self._pair is not None:
            return self.keys[self.terms.index(self._pair)], name
        if name == "temperature" and self.temperature is not None:
            return next(k for k, t in zip(self.keys, self.terms, strict=True) if name in t.parameters), name
        key, _dot, setting = name.rpartition(".")
        if key in self.keys:
            parameters = self.terms[self.keys.index(key)].entry.parameters
            settings = {parameter.name for parameter in parameters if parameter.knob}
            if self.temperature is not None:
                settings.discard("temperature")  # listed under its short name
            if setting in settings or (setting == "weight" and self.combine == "additive" and len(self.terms) > 1):
                return key, setting
        names = join_list(["learning_rate", *self.knobs])
        raise ConfigError("knob", name, "this objective has no such knob; its knobs are {names}.", names=names)

    def _with_terms(self, terms: list[dict[str, Any]]) -> ObjectiveConfig:
        return build(ObjectiveConfig, {"terms": terms, "combine": self.combine})

    def with_momentum(self, momentum: float) -> ObjectiveConfig:
        """Return the objective with this momentum for every queue whose momentum is automatic."""
        terms = [t.model_dump() for t in self.terms]
        for term in terms:
            if term.get("queue") and term["momentum"] == AUTO:
                term["momentum"] = momentum
        return self._with_terms(terms)

    @property
    def counts_tokens(self) -> bool:
        """True if any k depends on the lengths of the texts."""
        return any(term.level == "token" and term.parameters["k"] == AUTO for term in self.terms)

    def with_tokens(self, tokens: float) -> ObjectiveConfig:
        """Return the objective with a number for every automatic k: a third of the tokens of a text.

        The number is from 2 to 30. With clusters it is at most 90, as in the notes, and at least twice their number.

        Args:
            tokens: mean number of tokens of a text.
        """
        terms = [t.model_dump() for t in self.terms]
        for term in terms:
            if term.get("level") == "token" and term["k"] == AUTO:
                most = K_MOST_CLUSTERED if term["clusters"] else K_MOST
                term["k"] = max(K_LEAST, min(most, round(K_SHARE * tokens)), 2 * term["clusters"])
        return self._with_terms(terms)


def numbered(names: Iterable[str]) -> tuple[str, ...]:
    """Return a key for each loss or view: its name, numbered from the second of its kind."""
    seen: Counter[str] = Counter()
    keys = []
    for name in names:
        seen[name] += 1
        keys.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return tuple(keys)


def with_number(text: str, key: str, name: str) -> str:
    """Append the number in the key of a loss or view, such as SCL 2; the first of its kind has none."""
    return f"{text} {key.removeprefix(name).lstrip('_')}".strip()


def setting_of(label: str, loss: str) -> str:
    """Return a setting's label with its loss, such as Temperature τ of SCL; the label alone if `loss` is empty.

    Args:
        label: in English.
    """
    return _("{setting} of {loss}", setting=_(label), loss=loss) if loss else _(label)
