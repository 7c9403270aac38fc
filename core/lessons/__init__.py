"""Lessons: what a file says, and the numbers of runs that it speaks of and that its checks are graded by.

May import: what shows a run or an experiment. How a lesson is drawn belongs to pages.
"""
