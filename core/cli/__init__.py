"""The command line.

May import: all of core except figures. Code that pages also need belongs in a lower package.
"""
