"""Background work: runs and jobs, the processes that carry them out, and who starts and ends these.

May import everything of core but figures and the command line. What a run or a job computes belongs to training and
artifacts; here it is kept in the store.
"""

from core.store.job_table import JobRecord
from core.workers.engine import Engine, LocalEngine, chosen_engine
from core.workers.job_kinds import KINDS, PRELOADED, WARM, Progress
from core.workers.job_worker import Cancelled, carry_out
from core.workers.jobs import Jobs

__all__ = [
    "KINDS",
    "PRELOADED",
    "WARM",
    "Cancelled",
    "Engine",
    "JobRecord",
    "Jobs",
    "LocalEngine",
    "Progress",
    "carry_out",
    "chosen_engine",
]
