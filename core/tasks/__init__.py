"""What can be learned: bundled tasks and files, read into three splits."""

from core.tasks.dataset import Split, TaskData
from core.tasks.load import load_task
from core.tasks.registry import TASKS, TaskEntry, task_entry

__all__ = ["TASKS", "Split", "TaskData", "TaskEntry", "load_task", "task_entry"]
