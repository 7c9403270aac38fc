"""Background work: runs, jobs and the processes that execute them.

May import everything of core but figures and the command line. The computations of runs and jobs belong to training
and artifacts; this package stores their results.
"""

from core.store.job_table import JobRecord
from core.workers.engine import Engine, LocalEngine, build_engine
from core.workers.job_kinds import KINDS, PRELOADED, WARM, Progress
from core.workers.job_worker import Cancelled, carry_out
from core.workers.jobs import Jobs
