"""Redis, the only store: the one package that imports it."""
