"""Pure nouns of the incident: standard library only, no I/O."""
