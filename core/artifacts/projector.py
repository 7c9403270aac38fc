"""Frames of a run for other programs: TensorBoard's Embedding Projector, and a spreadsheet.

The projector reads `projector_config.pbtxt` of the folder that it is pointed at, and the files which that names,
relative to it: tab-separated numbers, one example a line, and what is known of each under a line of column names.
Source: https://www.tensorflow.org/tensorboard/tensorboard_projector_plugin, and its projector_config.proto.
"""

from __future__ import annotations

import unicodedata
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from core.errors import ConfigError
from core.events import FloatArray, Probe
from core.tasks.listing import csv_file

# TensorBoard reads every frame before it shows the first.
FRAMES_MAX = 24
# A zip file knows no earlier one; with a fixed date the same run gives the same file.
ZIP_DATE = (1980, 1, 1, 0, 0, 0)
TITLE_CHARS = 200
README = """{title}

Frames of a run as the Embedding Projector of TensorBoard reads them: the pooled vectors of the examples on the map, as
they are, with each example's text, label, prediction and confidence.

To look at them, unpack this file into a folder of its own and start

    tensorboard --logdir THE_FOLDER

then open the Projector tab, and choose a frame under "Data". Without TensorBoard: load one frame's tensors.tsv and
metadata.tsv at https://projector.tensorflow.org, which reads them in the browser.

Frames: {frames}
"""


def write_projector(
    target: Path | IO[bytes],
    probe: Probe,
    steps: Sequence[int],
    read: Callable[[int], tuple[FloatArray, FloatArray]],
    *,
    title: str,
) -> None:
    """Write a zip file for the Embedding Projector.

    Args:
        target: a path, or a file open for writing.
        steps: 1 to FRAMES_MAX frames, in the order in which they are to be listed.
        read: gives the embeddings [N, H] and logits [N, C] of a frame.
    Raises: ConfigError for no frame or too many, OSError where the file cannot be written, and what `read` raises.
    """
    if not 1 <= len(steps) <= FRAMES_MAX:
        raise ConfigError("frames", len(steps), "choose 1 to {most}.", most=FRAMES_MAX)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as out:
        _add(out, "projector_config.pbtxt", "".join(map(_listed, steps)))
        for step in steps:
            embeddings, logits = read(step)
            _add(out, f"{_folder(step)}/tensors.tsv", _numbers(embeddings))
            _add(out, f"{_folder(step)}/metadata.tsv", _metadata(probe, logits))
        frames = ", ".join(f"step {step}" for step in steps)
        _add(out, "README.txt", README.format(title=_cleaned(title)[:TITLE_CHARS], frames=frames))


def spread(steps: Sequence[int], most: int = FRAMES_MAX) -> list[int]:
    """At most `most` of the steps, the first and the last among them, spread evenly over their order."""
    chosen = np.linspace(0, len(steps) - 1, min(most, len(steps))).round().astype(int)
    return [steps[number] for number in chosen]


def example_records(probe: Probe, logits: FloatArray, rows: Sequence[int] | None = None) -> list[dict[str, str]]:
    """What is known of examples at one frame, a value as text under each column's name.

    Args:
        logits: [N, C].
        rows: which examples, in this order; None: all.
    """
    shares: NDArray[np.float64] = softmax(logits.astype(np.float64), axis=1)
    predicted = logits.argmax(1)
    splits = probe.splits or ("validation",) * len(probe.ids)
    return [
        {
            "id": str(probe.ids[row]),
            "split": splits[row],
            "text": probe.texts[row],
            "label": probe.classes[probe.labels[row]],
            "prediction": probe.classes[predicted[row]],
            "confidence": f"{shares[row].max():.6f}",
        }
        for row in (range(len(probe.ids)) if rows is None else rows)
    ]


def example_table_csv(probe: Probe, logits: FloatArray, rows: Sequence[int] | None = None) -> bytes:
    """`example_records` as CSV; a cell that a spreadsheet might run as a formula gets an apostrophe in front."""
    return csv_file(example_records(probe, logits, rows))


def _metadata(probe: Probe, logits: FloatArray) -> str:
    columns = ("text", "label", "prediction", "confidence", "split", "id")
    records = ([_cleaned(record[name]) for name in columns] for record in example_records(probe, logits))
    return "".join("\t".join(cells) + "\n" for cells in (columns, *records))


def _numbers(rows: FloatArray) -> str:
    """Nine digits give every float32 back as it was."""
    line = "\t".join(["%.9g"] * rows.shape[1]) + "\n"
    return "".join(line % tuple(row) for row in rows.tolist())


def _listed(step: int) -> str:
    """A frame in the configuration; neither name nor paths hold anything that came from outside."""
    return (
        "embeddings {\n"
        f'  tensor_name: "{_folder(step)}"\n'
        f'  tensor_path: "{_folder(step)}/tensors.tsv"\n'
        f'  metadata_path: "{_folder(step)}/metadata.tsv"\n'
        "}\n"
    )


def _folder(step: int) -> str:
    return f"step-{step:07d}"


def _cleaned(text: str) -> str:
    """On one line and in one cell: control characters are white space, and any of that is one space."""
    return " ".join("".join(" " if unicodedata.category(c) in ("Cc", "Cs") else c for c in text).split())


def _add(out: zipfile.ZipFile, name: str, text: str) -> None:
    # Numbers hardly shrink: the fastest level gives a twelfth more and takes a fifth of the time.
    data = text.encode("utf-8", "replace")
    out.writestr(zipfile.ZipInfo(name, ZIP_DATE), data, zipfile.ZIP_DEFLATED, compresslevel=1)
