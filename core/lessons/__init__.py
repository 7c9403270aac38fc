"""Lessons: parsed lesson files, and the numbers from runs that they quote and grade checks by.

May import: modules that show a run or an experiment. Pages draw the lessons.
"""
