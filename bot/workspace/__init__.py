"""A local Slack-compatible workspace: Web API, events, commands, interactivity, Socket Mode, files, and a page.

It is as strict as Slack, so that what passes here passes there, and it serves this machine only.
"""
