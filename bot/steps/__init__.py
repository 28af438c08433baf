"""Walking an SOP: what a gate still asks for, and the entries by which a step is left."""
