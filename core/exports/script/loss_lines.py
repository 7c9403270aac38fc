"""The objective of a structure as a function: what each term reads of the encoder's outputs, and its loss."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, cast

from core.config.plan import LogitsOf, TermPlan, VectorOf
from core.exports.script.line_breaks import INDENT, WIDTH, broken
from core.exports.script.source_file import Home
from core.exports.script.structure import Structure
from core.exports.script.tracing import Text, Traced, tensor, traced
from core.losses.evaluate import Contrasted, Mixed, TermInput
from core.parameters import number, whole

MIX = Home("core.losses.cross_entropy", "mix")
CLUSTERS = Home("core.views.token_clusters", "cluster_views")


class LossLines:
    """Writes the lines of one objective, each value that several terms read once.

    Attributes:
        lines: of the function's body.
        functions: of the project, that they name.
    """

    def __init__(self, structure: Structure, blocks: int) -> None:
        self._structure, self._blocks = structure, blocks
        self._passes = len(structure.plan.passes)
        self._names: dict[object, str] = {}
        self._indent = ""
        self.lines: list[str] = []
        self.functions: set[Home] = set()
        self._values: dict[str, Traced] = {}
        for planned in structure.terms.weighted:
            self._add_term(planned)
        for planned in structure.terms.reported:  # of weight 0: reported, and moves nothing
            self._add("with torch.no_grad():")
            self._indent = INDENT
            self._add_term(planned)
            self._indent = ""
        self._add_sum()

    def _add(self, line: str) -> None:
        self.lines += broken(self._indent + line, depth=1)

    def _add_term(self, planned: TermPlan) -> None:
        settings = self._structure.terms.settings[planned.key]
        given = self._input(planned)
        found = traced(planned.term, given, settings)
        self._values[planned.key] = found
        self.functions |= found.functions
        self._add(f"{planned.key} = {found.call}")

    def _add_sum(self) -> None:
        weights = self._structure.terms.weights
        parts = []
        for planned in self._structure.terms.weighted:
            value, weight = self._values[planned.key].total.format(value=planned.key), weights[planned.key]
            parts.append(value if weight == 1 else f"{weight!r} * {value}")
        line = f"loss = {' + '.join(parts)}"
        if len(line) + len(INDENT) <= WIDTH:
            self._add(line)
        else:
            self.lines += ["loss = (", INDENT + parts[0], *(f"{INDENT}+ {part}" for part in parts[1:]), ")"]
        self._add(f"return loss, {{{', '.join(self._parts())}}}")

    def _parts(self) -> Iterator[str]:
        for planned in self._structure.plan.terms:
            key, found = planned.key, self._values[planned.key]
            yield f'"{key}": {found.total.format(value=key)}'
            yield from (f'"{key}.{name}": {piece.format(value=key)}' for name, piece in found.pieces.items())

    # What a term reads

    def _input(self, planned: TermPlan) -> TermInput:
        term = planned.term
        if term.entry.reads == "logits":
            if (concentration := number(term.parameters, "mixup")) > 0:
                return self._mixed(planned, concentration)
            return TermInput(logits=tuple(tensor(self._logits(wanted)) for wanted in planned.logits))
        if term.level == "logits":
            stacked = f"torch.stack([{', '.join(map(self._logits, planned.logits))}], 1)"
            name = self._named((planned.key, "logits"), self._called(planned, "answers"), stacked, "[B, V, C]")
            return TermInput(layers=(Contrasted(tensor(name, len(planned.logits))),))
        if term.level == "token":
            return TermInput(layers=tuple(self._tokens(planned, group) for group in planned.groups))
        layers = tuple(self._vectors(planned, group) for group in planned.groups)
        queue = Text(f'queues["{planned.key}"].held') if whole(term.parameters, "queue") else None
        return TermInput(layers=layers, queue=cast("Any", queue))

    def _vectors(self, planned: TermPlan, group: Sequence[VectorOf]) -> Contrasted:
        views = [self._vector(wanted) for wanted in group]
        stacked = f"{views[0]}.unsqueeze(1)" if len(views) == 1 else f"torch.stack([{', '.join(views)}], 1)"
        name = self._called(planned, "vectors", group)
        stacked = self._named(name, name, self._projected(planned, stacked), "[B, V, H]")
        return Contrasted(tensor(stacked, len(views)))

    def _vector(self, wanted: VectorOf) -> str:
        pooled = self._pooled(wanted.layer, wanted.number)
        if wanted.mask is None:
            return pooled
        masked = f"masked_{wanted.number + 1}_{wanted.mask + 1}" if self._passes > 1 else f"masked_{wanted.mask + 1}"
        return self._named(wanted, masked, f"nn.functional.dropout({pooled}, {wanted.rate!r})")

    def _pooled(self, layer: int, number: int) -> str:
        """The pooled vectors [B, H] of a pass at a layer."""
        name = "pooled" if len(self._layers) == 1 else f"pooled_{layer}"
        if self._passes == 1:
            return self._named(("pooled", layer), name, f"outputs.pooled[{layer}][0]", "[B, H]")
        return f"{self._named(('pooled', layer), name, f'outputs.pooled[{layer}]', '[passes, B, H]')}[{number}]"

    @cached_property
    def _layers(self) -> tuple[int, ...]:
        return self._structure.plan.layers or (self._blocks,)

    def _logits(self, wanted: LogitsOf) -> str:
        several = len({one for planned in self._structure.plan.terms for one in planned.logits}) > 1
        name = f"logits_{len([n for n in self._names if isinstance(n, LogitsOf)]) + 1}" if several else "logits"
        if wanted in self._names:
            return self._names[wanted]
        pooled = self._pooled(self._blocks, wanted.number)
        return self._named(wanted, name, f"encoder.logits({pooled})", "[B, C]")

    def _mixed(self, planned: TermPlan, concentration: float) -> TermInput:
        """One draw of pairs and share for the batch."""
        self.functions.add(MIX)
        name = planned.key
        drawn = f"torch.distributions.Beta({concentration!r}, {concentration!r}).sample().to(DEVICE)"
        share = self._named((name, "share"), self._called(planned, "share"), drawn)
        partners = self._named(
            (name, "partners"), self._called(planned, "partners"), "torch.randperm(len(labels), device=DEVICE)"
        )
        logits = [
            self._named(
                (name, of),
                f"mixed_{place}" if len(planned.logits) > 1 else self._called(planned, "mixed"),
                f"encoder.logits(mix({self._pooled(self._blocks, of.number)}, {partners}, {share}))",
            )
            for place, of in enumerate(planned.logits, 1)
        ]
        return TermInput(logits=tuple(map(tensor, logits)), mixed=Mixed(tensor(partners), tensor(share)))

    def _tokens(self, planned: TermPlan, group: Sequence[VectorOf]) -> Contrasted:
        """The top tokens of each pass side by side: [B, P·k, H], or P·clusters means."""
        k, clusters = whole(planned.term.parameters, "k"), whole(planned.term.parameters, "clusters")
        layer = group[0].layer
        tapped = dict(self._structure.plan.tokens)[layer]
        views = self._named(("tokens", layer), f"top_tokens_{layer}", f"outputs.tokens[{layer}]")
        vectors, mask = self._called(planned, "vectors", group), self._called(planned, "mask", group)
        cut = "" if k == tapped else f"[:, :{k}]"
        names = []
        for place, wanted in enumerate(group, 1):
            own = f"_of_{place}" if len(group) > 1 else ""
            self._add(f"{vectors}{own} = {views}.vectors[{wanted.number}]{cut}  # [B, k, H]")
            self._add(f"{mask}{own} = {views}.mask[{wanted.number}]{cut}  # [B, k]")
            if clusters:
                self.functions.add(CLUSTERS)
                self._add(f"{vectors}{own}, {mask}{own} = cluster_views({vectors}{own}, {mask}{own}, {clusters})")
            names.append(own)
        if len(group) > 1:
            for name in (vectors, mask):
                self._add(f"{name} = torch.cat([{', '.join(name + own for own in names)}], 1)")
        if (through := self._projected(planned, vectors)) != vectors:
            self._add(f"{vectors} = {through}")
        return Contrasted(tensor(vectors), tensor(mask))

    def _projected(self, planned: TermPlan, vectors: str) -> str:
        has_head = planned.term.parameters.get("projection", "none") != "none"
        return f'encoder.projections["{planned.key}"]({vectors})' if has_head else vectors

    # Names

    def _called(self, planned: TermPlan, what: str, group: Sequence[VectorOf] = ()) -> str:
        """A variable of a term: its plain name where no other term has such a one."""
        alike = [one for one in self._structure.plan.terms if bool(one.groups) == bool(planned.groups)]
        name = what if len(alike) == 1 else f"{planned.key}_{what}"
        return f"{name}_{group[0].layer}" if len(planned.groups) > 1 and group else name

    def _named(self, what: object, name: str, value: str, shape: str = "") -> str:
        """The variable that holds a value; its line is written when it is first asked for."""
        if what not in self._names:
            self._names[what] = name
            self._add(f"{name} = {value}" + (f"  # {shape}" if shape else ""))
        return self._names[what]
