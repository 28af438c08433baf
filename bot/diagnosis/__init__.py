"""The diagnosis engine: plan, collect, judge, rank, chain, next experiment, blind spots."""
