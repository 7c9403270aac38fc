"""Storage of runs, experiments, jobs and user-provided tasks: one SQLite file, plus separate files for large data.

May import: config, errors, events, settings, tasks, and the map type of representation. Executing runs belongs to
workers.
"""

from core.store.database import UNDO_S
from core.store.experiment_table import Experiment, ExperimentRun, ExperimentTable
from core.store.library import LibraryTask, TaskLibrary
from core.store.records import Discarded, Liveness, RunRecord, RunSummary, Status, UnreadableRun, Waiting
from core.store.store import Store, default_folder, rows_path
