"""The product without a browser: configure, run, store and read fine-tunes."""

__version__ = "0.1.0"
