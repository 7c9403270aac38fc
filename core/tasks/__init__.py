"""What can be learned: bundled tasks, files and a library of one's own, read into three splits."""

from core.tasks.dataset import Split, TaskData
from core.tasks.library import LibraryTask, TaskLibrary
from core.tasks.load import load_task
from core.tasks.registry import TASKS, TaskEntry, task_entry

__all__ = ["TASKS", "LibraryTask", "Split", "TaskData", "TaskEntry", "TaskLibrary", "load_task", "task_entry"]
