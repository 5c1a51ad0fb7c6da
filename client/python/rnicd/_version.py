"""The package's version: that of the project, which a test compares."""

__version__ = "0.1.0"
