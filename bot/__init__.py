"""rca-bot: from an inference alert to the deepest cause, hypothesis by hypothesis."""

__version__ = "0.1.0"
