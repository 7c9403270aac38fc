"""The product without its web interface: configure, run, store and read fine-tunes."""

__version__ = "0.2.0.dev0"
