"""What the encoder reads in a step, as lines: the texts of each pass, changed where its view says so, in one call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from core.config.plan import TRIPLET, Pass, TermPlan
from core.exports.script.line_breaks import broken, indented
from core.exports.script.source_file import Home
from core.exports.script.structure import Structure
from core.exports.script.tracing import tensor, traced, traced_change
from core.losses.evaluate import Contrasted, TermInput
from core.registry import load
from core.training.inputs import stream_of

OUTPUTS = Home("core.training.outputs", "outputs_of")
TAPS = Home("core.encoders.taps", "Taps")
GENERATOR = Home("core.texts.draws", "row_generator")
GRADIENTS = Home("core.training.adversarial", "gradients_of")
LAID_OUT = Home("core.training.adversarial", "laid_out")
PLAIN = "texts"
SIDES = {"premise": "premises", "entailment": "entailments", "contradiction": "contradictions"}

# Of a pass whose texts were changed before the script was written, the name that holds them.
Drawn = Callable[[Pass], str]


class Given(NamedTuple):
    """A list of tokens that a step has: its name, and how it is made."""

    name: str
    made: str


PLAIN_TEXTS = Given(PLAIN, "tokenizer([TEXTS[row] for row in rows])")


def given_of(wanted: Pass, place: int, drawn: Drawn) -> tuple[Given, frozenset[Home]]:
    """What a pass reads, and the functions that make it.

    Args:
        place: of the pass in its plan, from 1.
        drawn: where the texts are that a text view made.
    """
    source, view, _ = wanted
    if source != "rows":
        side = TRIPLET.index(source)
        return Given(SIDES[source], f"tokenizer([TRIPLETS[row][{side}] for row in triplets])"), frozenset()
    if view is None or view.entry.kind in ("pass", "embedding"):
        return PLAIN_TEXTS, frozenset()
    name = f"{PLAIN}_{place}"
    if view.entry.tokens:
        function = Home(*view.entry.tokens.split(":"))
        rng = f"row_generator(SEED, step, row, {stream_of(wanted)})"
        made = f"{function.name}(text, encoder.special_ids, {rng})"
        return Given(name, f"[{made} for row, text in zip(rows, texts, strict=True)]"), frozenset({function, GENERATOR})
    if view.entry.by_model:
        return Given(name, f"tokenizer([{drawn(wanted)}[row] for row in rows])"), frozenset()
    return Given(name, f"tokenizer({drawn(wanted)}[step], keep=False)"), frozenset()


@dataclass
class ReadingLines:
    """The function `read` of a structure.

    Attributes:
        lines: of its body.
        functions: of the project, that they name.
        needs_labels: whether it takes the labels too.
    """

    lines: list[str]
    functions: set[Home]
    needs_labels: bool


def reading_lines(structure: Structure, own: Sequence[str], *, in_parts: bool, autocast: bool) -> ReadingLines:
    """Write it.

    Args:
        own: name of the list that each pass reads.
        in_parts: whether a call reads the texts start … end − 1 only.
        autocast: whether the encoder computes in bfloat16.
    """
    functions = {OUTPUTS, TAPS}
    plan, lines = structure.plan, []
    names = list(dict.fromkeys(own))
    if in_parts:
        lines += [f"{name} = {name}[start:end]" for name in names]
    edits = list(_edits(structure, own, functions, lines))
    change = ""
    if edits:
        lines += _change(edits)
        change = ", change=change"
    taps = f"layers={plan.layers!r}" if plan.layers else ""
    taps += f"{', ' if taps and plan.tokens else ''}tokens={plan.tokens!r}" if plan.tokens else ""
    read = own[0] if len(own) == 1 else f"[{', '.join(f'*{name}' for name in own)}]"
    call = f"encoded = encoder.encode({read}, Taps({taps}){change})"
    lines += ["with AUTOCAST:", *indented(broken(call, depth=2))] if autocast else broken(call, depth=1)
    lines.append(f"return outputs_of(encoded, {len(own)})")
    follows = any(_follows(wanted) for wanted in plan.passes)
    return ReadingLines(lines, functions, follows)


class _Edit(NamedTuple):
    texts: str
    call: str


def _follows(wanted: Pass) -> bool:
    return wanted.view is not None and wanted.view.entry.follows_gradient


def _edits(structure: Structure, own: Sequence[str], functions: set[Home], lines: list[str]) -> Iterator[_Edit]:
    """The calls that change the embeddings of some passes; what they need before is added to `lines`."""
    for place, wanted in enumerate(structure.plan.passes):
        if wanted.view is None or not wanted.view.entry.embedding:
            continue
        entry, settings = wanted.view.entry, wanted.view.parameters
        texts = f"range({place} * size, {place + 1} * size)"
        if entry.follows_gradient:
            functions |= {GRADIENTS, LAID_OUT}
            lines += _gradient(structure, wanted, own[place], place, functions)
            gradient = f"laid_out(gradients_{place + 1}, embeddings, owners, {texts})"
        else:
            gradient = ""
        found = traced_change(load(entry.embedding), texts, gradient, settings)
        functions |= found.functions
        if found.call != "embeddings":  # of a rate of 0
            yield _Edit(own[place], found.call)


def _gradient(structure: Structure, wanted: Pass, texts: str, place: int, functions: set[Home]) -> list[str]:
    """The loss that an adversarial step follows, and its gradients."""
    planned = _term_of(structure, wanted)
    settings, lines = structure.terms.settings[planned.key], []
    if planned.term.entry.reads == "logits":
        given = TermInput(logits=(tensor("encoder.logits(first)"), tensor("encoder.logits(second)")))
    else:
        stacked = "torch.stack([first, second], 1)"
        has_head = planned.term.parameters.get("projection", "none") != "none"
        lines.append("vectors = " + (f'encoder.projections["{planned.key}"]({stacked})' if has_head else stacked))
        given = TermInput(layers=(Contrasted(tensor("vectors", 2)),))
    found = traced(planned.term, given, settings)
    functions |= found.functions
    name = f"followed_{place + 1}"
    return [
        "",
        f"def {name}(first: Tensor, second: Tensor) -> Tensor:",
        *indented([*lines, f"return {found.total.format(value=found.call)}"]),
        "",
        f"gradients_{place + 1} = gradients_of({name}, encoder, {texts}, AUTOCAST)",
    ]


def _term_of(structure: Structure, wanted: Pass) -> TermPlan:
    """The term whose loss an adversarial step follows: the contrastive one, where several share the view."""
    having = [planned for planned in structure.plan.terms if wanted.view in planned.term.views]
    return max(having, key=lambda planned: (planned.term.entry.contrastive, planned.term.weight > 0))


def _change(edits: Sequence[_Edit]) -> list[str]:
    return [
        f"size = len({edits[0].texts})",
        "",
        "def change(embeddings: Tensor, owners: Tensor, special: Tensor) -> Tensor:",
        *indented([line for edit in edits for line in broken(f"embeddings = {edit.call}", depth=2)]),
        *indented(["return embeddings"]),
        "",
    ]
