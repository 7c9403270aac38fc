"""Where runs live: one SQLite file, one array file per frame, one folder per run.

May import: config, errors, events, settings, the maps that a run keeps. Who executes a run belongs to workers.
"""

from core.store.records import Liveness, RunRecord, RunSummary, Status
from core.store.store import Store, default_folder, rows_path

__all__ = ["Liveness", "RunRecord", "RunSummary", "Status", "Store", "default_folder", "rows_path"]
