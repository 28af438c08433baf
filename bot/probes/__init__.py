"""The probes, one read-only look each; the file's name is the probe's name everywhere."""
