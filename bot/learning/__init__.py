"""What the team's own incidents teach: likeness, recurrence, priors, search, figures, cases and exercises."""
