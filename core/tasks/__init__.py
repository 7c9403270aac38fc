"""Tasks: bundled ones, users' files and Hub data sets, read into three splits.

May import: config, errors, models, quantities, settings, texts; never torch. Training decides how a run uses the texts.
"""

from core.tasks.dataset import Split, TaskData
from core.tasks.load import load_task
from core.tasks.registry import TASKS, TaskEntry, task_entry
