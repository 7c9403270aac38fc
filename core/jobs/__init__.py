"""Long jobs that are no runs, in processes that are no servers: fetching a data set, and whatever else KINDS names.

A job is a folder, `jobs/<id>` of the store's folder: what was asked (job.json), which process has it (process.json),
how far it is or how it ended (state.json), and what it printed (log.txt). Any process may look; the job writes its own
state. Whether it still runs is read off the process itself. Of some kinds only so many work at once; the process of
another one waits for its turn. What ended a while ago is forgotten when the next job is started.

Most jobs have a process of their own. Those of a warm group (WARM) share one that stays, as their libraries take
longer to load than their work lasts: they stand in line, and the process takes the oldest.
"""

from core.jobs.jobs import Jobs
from core.jobs.kinds import KINDS, PRELOADED, WARM, Progress
from core.jobs.records import JobRecord, Status
from core.jobs.work import Cancelled, carry_out

__all__ = ["KINDS", "PRELOADED", "WARM", "Cancelled", "JobRecord", "Jobs", "Progress", "Status", "carry_out"]
