"""The only writer of incident state."""
