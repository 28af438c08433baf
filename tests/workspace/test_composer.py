"""What a person types becomes what Slack would send."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.workspace.composer import as_command, as_message
from bot.workspace.state import Workspace

WORKSPACE = Workspace()


@pytest.mark.parametrize(
    ("typed", "sent"),
    [
        ("a < b & c > d", "a &lt; b &amp; c &gt; d"),
        ("@rca status", "<@U0RCABOT> status"),
        ("请 @chen.siyuan 看 #incidents", "请 <@U0DEV> 看 <#C0INCIDENTS|incidents>"),
        ("<@U0SRE> hi <!here>", "<@U0SRE> hi <!here>"),
        ("<b>bold</b>", "&lt;b&gt;bold&lt;/b&gt;"),
        ("see https://x.example/a?b=1&c=2.", "see <https://x.example/a?b=1&amp;c=2>."),
        ("mail a@rca.example", "mail a@rca.example"),
        ("@nobody", "@nobody"),
    ],
)
def test_message_is_escaped_and_its_names_become_tokens(typed: str, sent: str) -> None:
    assert as_message(WORKSPACE, typed) == sent


def test_command_keeps_its_characters_and_names_its_users() -> None:
    typed = "probe gpu on gpu-1 expr=a>b&c @lin.mei #alerts"
    assert as_command(WORKSPACE, typed) == (
        "probe gpu on gpu-1 expr=a>b&c <@U0LEAD|lin.mei> <#C0ALERTS|alerts>"
    )


@given(st.text(max_size=200))
def test_typed_markup_never_survives_unescaped(typed: str) -> None:
    sent = as_message(WORKSPACE, typed)
    assert "<script" not in sent
    assert sent.count("<") == sent.count(">")
