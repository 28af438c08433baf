"""Compiles the postmortem and draws what it shows: charts, the causal chain, the page."""
