"""Webhooks, health, metrics and the read-only pages."""
