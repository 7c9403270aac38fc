"""What can be learned: bundled tasks, people's files and Hub data sets, read into three splits.

May import: config, errors, quantities, settings. What a run does with the texts belongs to training.
"""

from core.tasks.dataset import Split, TaskData
from core.tasks.library import LibraryTask, TaskLibrary
from core.tasks.load import load_task
from core.tasks.registry import TASKS, TaskEntry, task_entry

__all__ = ["TASKS", "LibraryTask", "Split", "TaskData", "TaskEntry", "TaskLibrary", "load_task", "task_entry"]
