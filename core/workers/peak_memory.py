"""Peak memory of a run, measured by the process that carries it out."""

from __future__ import annotations

import ctypes
import gc
from contextlib import suppress
from pathlib import Path

STATUS, CLEAR_REFS = Path("/proc/self/status"), Path("/proc/self/clear_refs")
RESET_PEAK = "5"  # see proc_pid_clear_refs(5)


class PeakMemory:
    """The largest memory that this process needs from now on, beyond what it holds now.

    A process carries out several runs. Memory that an earlier run freed is therefore returned to the system first, and
    the peak starts again.
    """

    def __init__(self) -> None:
        import torch

        gc.collect()
        with suppress(OSError, AttributeError):  # glibc alone keeps freed memory, and has this function
            ctypes.CDLL(None).malloc_trim(0)
        if torch.cuda.is_initialized():
            torch.cuda.reset_peak_memory_stats()
        self._before: int | None = None
        with suppress(OSError):  # only Linux has these files
            CLEAR_REFS.write_text(RESET_PEAK)
            self._before = _status_bytes("VmRSS")

    def read_bytes(self, device: str) -> int | None:
        """Return the peak so far.

        Args:
            device: of the run. On CUDA the peak is that of the tensors on the GPU; elsewhere, that of the resident
                memory of this process beyond what it held before.
        Returns: bytes; None if this system does not report it.
        """
        import torch

        if torch.device(device).type == "cuda":
            return torch.cuda.max_memory_allocated()
        return None if self._before is None else max(0, _status_bytes("VmHWM") - self._before)


def _status_bytes(name: str) -> int:
    """Return a field of this process's status file, in bytes."""
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(f"{name}:"))
    return int(line.split()[1]) * 1024
