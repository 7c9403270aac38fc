"""Files for the Embedding Projector, read back as TensorBoard reads them, and a frame as a table."""

from __future__ import annotations

import csv
import io
import zipfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format

from core.artifacts.projector import FRAMES_MAX, example_table_csv, spread, write_projector
from core.errors import ConfigError
from core.events import TRAIN, VALIDATION, FloatArray, Probe
from tests.cases import each

TEXTS = (
    "a plain text",
    "tabs\tand\nlines\r\nand\x0bmore\u2028here",
    '=HYPERLINK("http://x")',
    "<img src=x onerror=alert(1)> \x00\x1b[31m half \ud83d 👩‍👩‍👧",
    '電影 فيلم, "quoted"',
)
PROBE = Probe((0, 1, 2, 3, 4), TEXTS, (0, 1, 1, 0, 1), ("good", "so\tbad"), (VALIDATION,) * 3 + (TRAIN,) * 2)


def frame(step: int) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(step)
    scales = 10.0 ** rng.integers(-30, 30, (5, 7))
    return (rng.standard_normal((5, 7)) * scales).astype(np.float32), rng.standard_normal((5, 2)).astype(np.float32)


def written(steps: list[int], **more: Any) -> zipfile.ZipFile:
    out = io.BytesIO()
    write_projector(out, PROBE, steps, frame, **({"title": "Run 3"} | more))
    return zipfile.ZipFile(out)


def projector_config(text: str) -> Any:
    """The message of TensorBoard's projector_config.proto, as far as it is used."""
    file = descriptor_pb2.FileDescriptorProto(name="config.proto", package="t", syntax="proto3")
    kinds = descriptor_pb2.FieldDescriptorProto
    info = file.message_type.add(name="EmbeddingInfo")
    for name, number in (("tensor_name", 1), ("metadata_path", 2), ("tensor_path", 6)):
        info.field.add(name=name, number=number, type=kinds.TYPE_STRING, label=kinds.LABEL_OPTIONAL)
    config = file.message_type.add(name="ProjectorConfig")
    config.field.add(
        name="embeddings", number=2, type=kinds.TYPE_MESSAGE, type_name=".t.EmbeddingInfo", label=kinds.LABEL_REPEATED
    )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return text_format.Parse(text, message_factory.GetMessageClass(pool.FindMessageTypeByName("t.ProjectorConfig"))())


def tensor(lines: str) -> FloatArray:
    """As the plug-in reads a tensor: lines of numbers with tabs between them."""
    rows = [[float(cell) for cell in line.rstrip("\n").split("\t")] for line in io.StringIO(lines, newline=None)]
    return np.array(rows, np.float32)


def test_the_configuration_names_every_frame_and_its_files() -> None:
    with written([0, 40, 120]) as files:
        config = projector_config(files.read("projector_config.pbtxt").decode())
        names = [info.tensor_name for info in config.embeddings]
        assert names == ["step-0000000", "step-0000040", "step-0000120"]
        paths = {path for info in config.embeddings for path in (info.tensor_path, info.metadata_path)}
        assert paths | {"projector_config.pbtxt", "README.txt"} == set(files.namelist())


def test_vectors_come_back_bit_by_bit() -> None:
    with written([0, 40]) as files:
        for step in (0, 40):
            found = tensor(files.read(f"step-{step:07d}/tensors.tsv").decode())
            np.testing.assert_array_equal(found, frame(step)[0])


def test_metadata_is_one_line_of_cells_for_each_example() -> None:
    with written([40]) as files:
        lines = files.read("step-0000040/metadata.tsv").decode().split("\n")
    assert lines.pop() == ""
    assert [line.split("\t") for line in lines] == [
        line.strip("\r").split("\t") for line in "\n".join(lines).splitlines()
    ]
    header, *rows = [line.split("\t") for line in lines]
    assert header == ["text", "label", "prediction", "confidence", "split", "id"]
    assert [row[0] for row in rows] == [
        "a plain text",
        "tabs and lines and more here",
        '=HYPERLINK("http://x")',
        "<img src=x onerror=alert(1)> [31m half 👩‍👩‍👧",
        '電影 فيلم, "quoted"',
    ]
    assert [row[1] for row in rows] == ["good", "so bad", "so bad", "good", "so bad"]
    logits = frame(40)[1].astype(float)
    for row, (first, second) in zip(rows, logits.tolist(), strict=True):
        assert row[2] == ("good" if first >= second else "so bad")
        assert float(row[3]) == pytest.approx(1 / (1 + np.exp(-abs(first - second))), abs=1e-6)
    assert [row[4] for row in rows] == ["validation"] * 3 + ["train"] * 2
    assert [row[5] for row in rows] == ["0", "1", "2", "3", "4"]


def test_the_same_run_gives_the_same_file(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_projector(tmp_path / name, PROBE, [0, 40], frame, title="Run 3")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    with zipfile.ZipFile(tmp_path / "one") as files:
        assert files.testzip() is None
        assert all(entry.external_attr >> 16 & 0o400 for entry in files.infolist()), "readable once unpacked"


def test_the_readme_says_how_to_open_it_whatever_the_run_is_called() -> None:
    with written([40], title="{0} a\nb %s" + "x" * 1000) as files:
        text = files.read("README.txt").decode()
    assert text.startswith("{0} a b %sxxx")
    assert len(text.splitlines()[0]) == 200
    assert "tensorboard --logdir" in text
    assert "step 40" in text


@each("count", [0, FRAMES_MAX + 1])
def test_no_frame_and_too_many_are_refused(count: int) -> None:
    with pytest.raises(ConfigError, match=f"frames = {count} cannot be used: choose 1 to {FRAMES_MAX}"):
        written(list(range(count)))


def test_frames_are_chosen_evenly_with_the_first_and_the_last() -> None:
    assert spread([0, 3, 9], 5) == [0, 3, 9]
    assert spread(list(range(0, 101, 10)), 3) == [0, 50, 100]
    assert spread([], 3) == []
    chosen = spread(list(range(200)))
    assert len(chosen) == len(set(chosen)) == FRAMES_MAX
    assert (chosen[0], chosen[-1]) == (0, 199)
    assert {b - a for a, b in pairwise(chosen)} <= {8, 9}


def test_the_table_guards_cells_that_a_spreadsheet_would_run() -> None:
    rows = list(csv.reader(io.StringIO(example_table_csv(PROBE, frame(0)[1]).decode("utf-8-sig"), newline="")))
    assert rows[0] == ["id", "split", "text", "label", "prediction", "confidence"]
    assert rows[3][2] == '\'=HYPERLINK("http://x")'
    assert rows[1][2] == "a plain text"
    assert rows[2][2] == TEXTS[1]
    assert len(rows) == 6


def test_the_table_of_a_selection_has_its_rows_in_their_order() -> None:
    rows = list(csv.DictReader(io.StringIO(example_table_csv(PROBE, frame(0)[1], [4, 0]).decode("utf-8-sig"))))
    assert [(row["id"], row["split"], row["label"]) for row in rows] == [
        ("4", "train", "so\tbad"),
        ("0", "validation", "good"),
    ]


def test_a_run_from_before_training_examples_were_shown_has_validation_rows_alone() -> None:
    probe = Probe(PROBE.ids, PROBE.texts, PROBE.labels, PROBE.classes)
    rows = list(csv.DictReader(io.StringIO(example_table_csv(probe, frame(0)[1]).decode("utf-8-sig"))))
    assert {row["split"] for row in rows} == {"validation"}
