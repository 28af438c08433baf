"""Which component of a dependency graph is at fault: lost time, calls, gauges, lines and spans together."""
