"""One file per sender: a payload becomes domain values, nothing else happens."""
