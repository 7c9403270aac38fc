"""Outputs of the encoder for the passes of a step, and the inputs of the objective's terms."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from core.config.plan import Plan, TermPlan, VectorOf
from core.encoders.model import Encoder
from core.encoders.taps import Encoded, TokenViews
from core.losses.cross_entropy import mix
from core.losses.evaluate import Contrasted, LastLayer, Mixed, TermInput
from core.parameters import integer_setting, number
from core.training.trainable import last_layer
from core.views.token_clusters import cluster_views


class Outputs(NamedTuple):
    """Vectors of P passes over B texts: layer → [P, B, H], and layer → vectors [P, B, K, H] with mask [P, B, K]."""

    pooled: dict[int, Tensor]
    tokens: dict[int, TokenViews]

    @property
    def vectors(self) -> list[Tensor]:
        """Return all tensors that gradients flow through."""
        return [*self.pooled.values(), *(views.vectors for views in self.tokens.values())]


def combine_outputs(combine: Callable[..., Tensor], *parts: Outputs) -> Outputs:
    """Combine outputs with the same layers. `combine` takes one tensor of each part: of vectors, or of masks."""
    first = parts[0]
    tokens = {
        layer: TokenViews(*(combine(*same) for same in zip(*(part.tokens[layer] for part in parts), strict=True)))
        for layer in first.tokens
    }
    return Outputs({layer: combine(*(part.pooled[layer] for part in parts)) for layer in first.pooled}, tokens)


def outputs_of(encoded: Encoded, passes: int) -> Outputs:
    """Split one encoder call over [P·B] texts by pass."""
    return combine_outputs(lambda rows: rows.unflatten(0, (passes, -1)), Outputs(encoded.pooled, encoded.tokens))


def concatenate_outputs(parts: Sequence[Outputs]) -> Outputs:
    """Concatenate the outputs of micro-batches along the texts."""
    return combine_outputs(lambda *tensors: torch.cat(tensors, 1), *parts)


def last_layers(encoder: Encoder, pooled: Sequence[Tensor]) -> tuple[LastLayer, ...]:
    """Return the last layer of the classifier with its inputs for pooled vectors [B, H] of each view."""
    found = [last_layer(encoder, vectors) for vectors in pooled]
    return tuple(LastLayer(features, layer.weight, layer.bias) for layer, features in found)


class Reader:
    """The inputs of the objective's terms. Tensors that several terms read are computed once."""

    def __init__(
        self,
        outputs: Outputs,
        encoder: Encoder,
        plan: Plan,
        *,
        queue: Callable[[str], tuple[Tensor, Tensor] | None] = lambda key: None,
        cut: Mapping[int, Mixed] | None = None,
    ) -> None:
        """Args: cut: partners and shares of the passes with CutMix, by number."""
        self._outputs, self._encoder, self._queue, self._cut = outputs, encoder, queue, cut or {}
        self._plans = {term.key: term for term in plan.terms}
        pooled, last = outputs.pooled, len(encoder.blocks)
        self._last = last
        # Not methods: a cache that refers to this reader would keep a step's graph until garbage is collected.
        self._logits = cache(lambda of: encoder.logits(pooled[last][of.number]))
        self._masked = cache(lambda of: F.dropout(pooled[of.layer][of.number], of.rate))
        self._inputs: dict[str, TermInput] = {}

    def __call__(self, key: str) -> TermInput:
        if key not in self._inputs:
            self._inputs[key] = self._input(self._plans[key])
        return self._inputs[key]

    def _input(self, plan: TermPlan) -> TermInput:
        settings, level = plan.term.parameters, plan.term.parameters.get("level")
        if plan.logits and level != "logits":
            pooled, concentration = self._outputs.pooled[self._last], number(settings, "mixup")
            if integer_setting(settings, "angle_margin") > 1:
                return TermInput(last=last_layers(self._encoder, [pooled[of.number] for of in plan.logits]))
            if concentration > 0:  # mix the batch with one draw of partners and share, as in the paper's code
                share = torch.distributions.Beta(concentration, concentration).sample().to(pooled.device)
                partners = torch.randperm(pooled.shape[1], device=pooled.device)
                logits = tuple(self._encoder.logits(mix(pooled[of.number], partners, share)) for of in plan.logits)
                return TermInput(logits=logits, mixed=Mixed(partners, share))
            logits = tuple(map(self._logits, plan.logits))
            return TermInput(logits=logits, mixed=self._cut.get(plan.logits[0].number))
        if level == "logits":
            return TermInput(layers=(Contrasted(torch.stack(list(map(self._logits, plan.logits)), 1)),))  # [B, V, C]
        if level == "token":
            clusters = integer_setting(settings, "clusters")
            k = integer_setting(settings, "k")
            return TermInput(layers=tuple(self._tokens(plan, group, k, clusters) for group in plan.groups))
        layers, pooled_of = [], self._outputs.pooled
        for group in plan.groups:
            views = [pooled_of[of.layer][of.number] if of.mask is None else self._masked(of) for of in group]
            layers.append(Contrasted(apply_projection(self._encoder, plan.key, torch.stack(views, 1))))  # [B, V, H]
        return TermInput(layers=tuple(layers), queue=self._queue(plan.key))

    def _tokens(self, plan: TermPlan, group: Sequence[VectorOf], k: int, clusters: int) -> Contrasted:
        """Concatenate the top tokens of each pass, [B, P·k, H], or the means of their clusters, [B, P·clusters, H]."""
        vectors, masks = [], []
        for wanted in group:
            views = self._outputs.tokens[wanted.layer]
            # A layer is tapped at the largest k of all terms, with the most attended tokens first.
            chosen, mask = views.vectors[wanted.number][:, :k], views.mask[wanted.number][:, :k]
            if clusters:
                chosen, mask = cluster_views(chosen, mask, clusters)
            vectors.append(chosen)
            masks.append(mask)
        return Contrasted(apply_projection(self._encoder, plan.key, torch.cat(vectors, 1)), torch.cat(masks, 1))


PROJECTION_WIDTH = 128


def apply_projection(encoder: Encoder, key: str, vectors: Tensor) -> Tensor:
    """Apply a term's projection head to vectors [..., H], if it has one."""
    return encoder.projections[key](vectors) if key in encoder.projections else vectors


def projection_head(kind: str, width: int) -> nn.Module:
    """Build a projection head: "linear", or "mlp" with one hidden layer. Its output is PROJECTION_WIDTH wide."""
    if kind == "linear":
        return nn.Linear(width, PROJECTION_WIDTH)
    return nn.Sequential(nn.Linear(width, PROJECTION_WIDTH), nn.ReLU(), nn.Linear(PROJECTION_WIDTH, PROJECTION_WIDTH))
