"""Facts about the machine that are read before torch is imported."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from core.workers import machine

ZEN4 = "processor\t: 0\nflags\t\t: fpu sse2 avx512f avx512_bf16 avx512_vnni\n"
SKYLAKE = "processor\t: 0\nflags\t\t: fpu sse2 avx512f avx512_vnni\n"
SAPPHIRE_RAPIDS = "processor\t: 0\nflags\t\t: fpu amx_bf16 amx_tile avx512f\n"
ARM = "processor\t: 0\nFeatures\t: fp asimd bf16\n"


@pytest.fixture(autouse=True)
def _nothing_remembered() -> Iterator[None]:
    machine._cpu_flags.cache_clear()
    machine.gpu_ids.cache_clear()
    yield
    machine._cpu_flags.cache_clear()
    machine.gpu_ids.cache_clear()


@pytest.mark.parametrize(
    ("facts", "expected"), [(ZEN4, True), (SAPPHIRE_RAPIDS, True), (SKYLAKE, False), (ARM, False), (None, False)]
)
def test_bfloat16_follows_the_processor_s_instructions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, facts: str | None, expected: bool
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setattr(machine, "CPU_FACTS", tmp_path / "cpuinfo")
    if facts is not None:
        (tmp_path / "cpuinfo").write_text(facts)
    assert machine.has_bfloat16("cpu") is expected
    if machine.platform.system() == "Linux":
        assert machine.has_bfloat16("auto") is expected


def test_a_gpu_has_it_unless_the_run_keeps_to_the_processor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    monkeypatch.setattr(machine, "CPU_FACTS", tmp_path / "none")
    assert machine.has_bfloat16("auto")
    assert machine.has_bfloat16("cuda")
    assert not machine.has_bfloat16("cpu")
    assert not machine.has_bfloat16("mps")
