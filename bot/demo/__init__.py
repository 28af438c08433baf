"""A small real translation service with a real fault, its load and its telemetry, for `rca-bot demo`."""
