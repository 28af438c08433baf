"""The node agent: an authenticated, bounded door to read-only probes."""
