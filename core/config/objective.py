"""The objective of a run: a list of weighted terms, and the knobs that can be turned during the run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field, model_validator

from core.catalogue.losses import LOSSES
from core.config.fields import Section, build
from core.config.term import WEIGHT_MAX, TermConfig
from core.errors import ConfigError
from core.messages import N_, Message, _, join_list
from core.parameters import AUTO, number

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
        _check_weight(value, self.combine)
        for term in terms:
            if LOSSES.entry(term["loss"]).contrastive:
                term["weight"] = value
            elif self.combine == "convex":
                term["weight"] = _complement(value)
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


def mixed_objective(
    weight: float, temperature: float = 0.3, combine: Literal["convex", "additive"] = "convex"
) -> ObjectiveConfig:
    """Return the objective (1 − λ)·CE + λ·SCL, or CE + λ·SCL.

    Args:
        weight: λ, in [0, 1] when convex, ≥ 0 when additive.
        temperature: τ > 0, unitless.
    Raises: ConfigError naming the field and the value.
    Source: Gunel et al. 2021, eq. 1, arXiv:2011.01403.
    """
    _check_weight(weight, combine)
    terms = [
        {"loss": "supcon", "weight": weight, "temperature": temperature},
        {"loss": "cross_entropy", "weight": _complement(weight) if combine == "convex" else 1.0},
    ]
    return build(ObjectiveConfig, {"terms": terms, "combine": combine})


def _complement(weight: float) -> float:
    """Return 1 − λ without rounding noise: 0.1 for 0.9, not 0.09999999999999998."""
    return round(1.0 - weight, 12)


def _check_weight(weight: float, combine: str) -> None:
    upper = 1.0 if combine == "convex" else WEIGHT_MAX
    if not 0.0 <= weight <= upper:
        raise ConfigError("lambda", weight, "give a number from 0 to {most:g}.", most=upper)
