"""The Slack surface: the only package that knows Slack."""
