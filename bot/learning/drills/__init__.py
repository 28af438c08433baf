"""Exercises: an incident that is played from generated or saved evidence, and what is said of the responder after it."""
