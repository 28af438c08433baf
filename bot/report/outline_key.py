"""What somebody reads who reads nothing else: cause, impact, how long, fix, and what is left to do."""

from __future__ import annotations

from bot.domain.action_item import ActionStatus
from bot.domain.postmortem import JudgementTopic
from bot.report.blocks import Facts, Inline, Span, Tone
from bot.report.clock import duration_text
from bot.report.wording import Wording, plain


def key_facts(words: Wording) -> Facts:
    """Five lines, each from what is stated in full further down."""
    return Facts(
        rows=(
            (words.t("key.cause"), _cause(words)),
            (words.t("key.impact"), _impact(words)),
            (words.t("key.lasted"), _lasted(words)),
            (words.t("key.fix"), _fix(words)),
            (words.t("key.actions"), _actions(words)),
        )
    )


def _cause(words: Wording) -> Inline:
    chain = words.report.chain
    if not chain:
        return plain(words.t("key.not_established"), Tone.WARN)
    *effects, root = (words.say(link.title) for link in chain)
    if not effects:
        return plain(root, Tone.STRONG)
    links = " \u2192 ".join(reversed(effects))
    return plain(words.t("key.through", root=root, links=links), Tone.STRONG)


def _impact(words: Wording) -> Inline:
    written = next(
        (item.answer for item in words.report.judgements if item.topic is JudgementTopic.IMPACT),
        None,
    )
    return plain(words.say(written)) or plain(words.t("key.impact_unwritten"), Tone.MUTED)


def _lasted(words: Wording) -> Inline:
    header = words.report.header
    start = header.began_at or header.opened_at
    if header.ended_at is None:
        return plain(words.t("fact.ongoing"), Tone.WARN)
    seconds = max(0.0, (header.ended_at - start).total_seconds())
    span = duration_text(seconds, words.locale)
    shown = {"start": words.stamp(start), "end": words.stamp(header.ended_at)}
    return plain(words.t("key.lasted_text", span=span, **shown))


def _fix(words: Wording) -> Inline:
    fix = words.report.fix
    if fix is None:
        return plain(words.t("key.fix_none"), Tone.MUTED)
    said = plain(words.say(fix.text)) or plain(words.t("timeline.withheld"), Tone.MUTED)
    key, tone = {
        True: ("verified", Tone.GOOD),
        False: ("failed", Tone.BAD),
        None: ("unverified", Tone.WARN),
    }[fix.verified]
    return (*said, Span("\n"), Span(words.t(f"key.fix_{key}"), tone))


def _actions(words: Wording) -> Inline:
    items = words.report.action_items
    if not items:
        return plain(words.t("key.actions_none"), Tone.MUTED)
    left = [item for item in items if item.status is ActionStatus.OPEN]
    nobody = sum(item.owner is None for item in left)
    undated = sum(item.due is None for item in left)
    said = [words.t("key.actions_open", open=len(left), count=len(items))]
    if nobody:
        said.append(words.t("key.actions_nobody", count=nobody))
    if undated:
        said.append(words.t("key.actions_undated", count=undated))
    return plain(words.listed(said), Tone.WARN if said[1:] else Tone.PLAIN)
