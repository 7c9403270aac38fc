"""Many runs that answer one question: a design of settings and seeds, its runs, and what they show.

May import: everything of core but cli; of figures, the chart of a report. How one run is carried out, and where,
belongs to workers.
"""
