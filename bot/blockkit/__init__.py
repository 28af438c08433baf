"""Slack's published limits and shapes as data, and a validator for what is sent.

The JSON files beside this module come from Slack's own type packages and reference pages; `NOTICE.md`
carries their licences. Ask `validate` before a send, `contract` for a method's arguments, scopes, rate
tier and error codes, `limits` for a number.
"""
