"""Background work on the queue."""
