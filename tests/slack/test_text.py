"""Text in and out: escaped once, inert, within limits, whatever it holds."""

from __future__ import annotations

import doctest
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bot.slack.split
import bot.slack.text
from bot.blockkit.validate import validate_message
from bot.cause import Catalogue, KnownFinding
from bot.domain.alert import Alert, AlertStatus
from bot.domain.finding import ProbeStatus
from bot.domain.hypothesis import Hypothesis, Layer, Symptom
from bot.domain.incident import Incident, IncidentStatus
from bot.domain.responder import Severity
from bot.domain.silence import Hearing, Silence
from bot.domain.text import Locale, Localized
from bot.errors import Reason
from bot.incidents.shelf import Known
from bot.inventory import Inventory
from bot.locales import catalogue, templates_root
from bot.message import Message
from bot.slack.present import Presenter
from bot.slack.probe_table import table
from bot.slack.reading import text_of
from bot.slack.render import Renderer
from bot.slack.split import sections
from bot.slack.text import escape, link, plain, unescape
from bot.sop import load_sop, shipped_sops
from tests.conftest import examples

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
SOP = load_sop([shipped_sops()])
KNOWN = Known(sop=SOP, catalogue=Catalogue())
PRESENTER = Presenter(Renderer(KNOWN, ZoneInfo("UTC")), KNOWN, Inventory())
# Everything that Slack would act on; dates are our own.
_LIVE = re.compile(r"<(?!!date\^)[!@#]")


def _incident(title: str) -> Incident:
    return Incident(
        id="INC-1",
        title=title or "–",
        status=IncidentStatus.OPEN,
        severity=Severity.SEV2,
        services=(title[:50] or "s",),
        channel="C1",
        opened_at=NOW,
        locale=Locale.EN,
        current_step="symptom",
        symptoms=(Symptom(id="S-1", summary=Localized.verbatim(title), since=NOW, metric=title),),
        hypotheses=(
            Hypothesis(cause="person:1", title=Localized.verbatim(title), probability=0.5),
            Hypothesis(cause="not_established", title=Localized("open", "未定"), probability=0.5),
        ),
    )


@pytest.mark.parametrize("view", ["card", "status"])
def test_silences_are_said_whole_in_part_and_unknown(view: str) -> None:
    alerts = {
        name: Alert(
            fingerprint=name, status=AlertStatus.FIRING, labels={"alertname": name}, starts_at=NOW
        )
        for name in ("a", "b")
    }
    silence = Silence(id="s", by="alice", comment="<!channel> known", until=NOW)

    def shown(hearing: Hearing | None, locale: Locale = Locale.EN) -> str:
        incident = replace(_incident("ttft"), alerts=alerts, hearing=hearing)
        parts = PRESENTER.present(Message(view=view), incident, locale, {}).parts
        return "\n".join(
            block["text"]["text"] for part in parts for block in part.blocks if "text" in block
        ) or "\n".join(part.text for part in parts)

    assert "🔕" not in shown(None)
    assert "🔕" not in shown(Hearing())
    whole = shown(Hearing(silenced={"a": silence, "b": silence}))
    assert "🔕 Silenced in Alertmanager until" in whole
    assert "by alice: " in whole
    assert not _LIVE.search(whole)
    assert "🔕 1 of 2 firing alerts are silenced" in shown(Hearing(silenced={"a": silence}))
    assert "unknown, Alertmanager does not answer" in shown(Hearing(is_known=False))
    assert "静默状态未知" in shown(Hearing(is_known=False), Locale.ZH_CN)


@pytest.mark.parametrize("module", [bot.slack.text, bot.slack.split], ids=["text", "split"])
def test_examples_in_the_documentation_hold(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]


def test_recorded_alert_text_is_escaped_as_expected() -> None:
    assert escape('p95 < 2 && rate(err[5m]) > 0.5 for "atlas-chat" - it\'s *bad*') == (
        'p95 &lt; 2 &amp;&amp; rate(err[5m]) &gt; 0.5 for "atlas-chat" - it\'s *bad*'
    )
    assert link(
        "http://prom.example/graph?g0.expr=rate(err[5m])>0.5|x&g0.tab=1", "TTFT *high*\nsecond line"
    ) == (
        "<http://prom.example/graph?g0.expr=rate(err[5m])%3E0.5%7Cx&amp;g0.tab=1|TTFT high second line>"
    )
    for bad in ("javascript:alert(1)", "{{ .URL }}", "http://", "", None, "http://x y"):
        assert "<" not in link(bad, "label")


@given(st.text(max_size=300))
def test_escaping_is_undone_exactly(text: str) -> None:
    assert unescape(escape(text)) == text
    assert not re.search(r"[<>]", escape(text))
    assert isinstance(plain(text), str)


@given(st.text(alphabet=st.sampled_from("ab`\n&<>日 "), max_size=4000))
def test_pieces_are_short_and_lose_nothing(text: str) -> None:
    pieces = sections(escape(text), 300)
    assert all(0 < len(piece) <= 300 for piece in pieces)
    kept = re.sub(r"[\s`]", "", "".join(pieces))
    assert kept == re.sub(r"[\s`]", "", escape(text))


@settings(max_examples=examples(120), deadline=None)
@given(
    st.text(
        alphabet=st.one_of(st.characters(), st.sampled_from("<>&*_~`|!@#\n{}%")), max_size=3000
    ),
    st.sampled_from(
        ["notice", "card", "hypotheses", "step_symptom", "evidence", "status", "error"]
    ),
    st.sampled_from(list(Locale)),
)
def test_any_text_in_any_view_is_taken_by_the_schema_and_inert(
    text: str, view: str, locale: Locale
) -> None:
    top = [{"id": "E-1", "summary": text, "node": text}]
    context = {"text": text, "top": top, "sources": [], "found": 1}
    if view == "step_symptom":
        context["step"] = "symptom"
    presented = PRESENTER.present(Message(view=view, context=context), _incident(text), locale, {})
    assert presented.parts
    for part in presented.parts:
        assert validate_message(part.blocks or None, part.text) == []
        assert not _LIVE.search(part.text)
        for block in part.blocks:
            for piece in (block.get("text"), *block.get("elements", ())):
                if piece and piece.get("type") == "mrkdwn":
                    assert not _LIVE.search(piece["text"])
    for part in presented.plain:
        assert 0 < len(part.text) <= 4000


def test_odd_node_is_marked_and_what_could_not_look_is_not_healthy() -> None:
    def result(node: str, status: str = "ok", finding: str = "cpu.ok") -> dict[str, object]:
        severity = "info" if finding.endswith("ok") else "warning"
        found = [{"id": finding, "severity": severity, "summary": finding}]
        return {
            "probe": "host_cpu",
            "node": node,
            "status": status,
            "started_at": "2026-11-30T08:15:00Z",
            "duration_s": 1.0,
            "findings": found if status == "ok" else [],
            "error": None if status == "ok" else "no agent",
        }

    made = table(
        [result("a"), result("b", finding="cpu.pressure"), result("c"), {"probe": "broken"}]
    )
    assert [cell.is_odd for cell in made.rows[0].cells] == [False, True, False]
    assert [cell.mark for cell in made.rows[0].cells] == ["ok", "warning", "ok"]
    silent = table([result("a"), result("b", status="timeout")])
    assert [cell.mark for cell in silent.rows[0].cells] == ["ok", "unknown"]
    assert not silent.rows[0].is_split
    assert not any(cell.is_odd for cell in silent.rows[0].cells)
    split = table([result("a"), result("b", finding="cpu.pressure")])
    assert split.rows[0].is_split


def test_node_that_answers_nothing_is_said_once_and_hides_nobodys_answers() -> None:
    def result(probe: str, node: str, error: str | None = None) -> dict[str, object]:
        found = [] if error else [{"id": "cpu.ok", "severity": "info", "summary": "at rest"}]
        return {
            "probe": probe,
            "node": node,
            "status": "error" if error else "ok",
            "started_at": "2026-11-30T08:15:00Z",
            "duration_s": 1.0,
            "findings": found,
            "error": error,
        }

    made = table(
        [
            *(result(probe, "a") for probe in ("host_cpu", "host_disk")),
            *(result(probe, "b", "cannot be reached") for probe in ("host_cpu", "host_disk")),
            result("host_cpu", "c"),
            result("host_disk", "c", "no permission"),
        ]
    )
    assert [(s.node, s.count, s.text.en) for s in made.silent] == [
        ("b", 2, "the probe failed (cannot be reached)")
    ]
    assert made.nodes == ("a", "b", "c")
    assert [[cell.node for cell in row.cells] for row in made.rows] == [["a", "c"], ["a", "c"]]
    assert made.rows[1].cells[1].mark == "unknown"


def test_probe_answers_are_in_the_readers_language_as_far_as_the_catalogue_knows_them() -> None:
    def result(node: str, **more: object) -> dict[str, object]:
        made = {"probe": "host_cpu", "node": node, "status": "ok", "duration_s": 1.0, "data": {}}
        return {**made, "started_at": "2026-11-30T08:15:00Z", **more}

    found = {"id": "cpu.pressure", "severity": "warning", "summary": "some avg10 38 % <x>"}
    other = {"id": "cpu.unheard_of", "severity": "warning", "summary": "odd words"}
    busy = {"unanswered": "rate_limited"}
    said = "agent of c: answered HTTP 429: more than 120 requests a minute; ask again in 7 s"
    results = [
        result("a", findings=[found]),
        result("b", findings=[other]),
        result("c", status="error", error=said, data=busy),
        result("d", status="error", error="it broke", data={"unanswered": "<made up>"}),
    ]

    def shown(locale: Locale) -> str:
        title = Localized("CPU pressure", "CPU 压力")
        known = KnownFinding(id="cpu.pressure", probe="host_cpu", title=title, layer=Layer.HOST)
        causes = Known(sop=SOP, catalogue=Catalogue(findings={"cpu.pressure": known}))
        presenter = Presenter(Renderer(causes, ZoneInfo("UTC")), causes, Inventory())
        message = Message(view="probe", context={"results": results})
        return presenter.present(message, _incident("t"), locale, {}).parts[0].text

    english, chinese = shown(Locale.EN), shown(Locale.ZH_CN)
    assert "some avg10 38 % &lt;x&gt;" in english
    assert "CPU 压力（some avg10 38 % &lt;x&gt;）" in chinese
    assert "odd words" in chinese
    assert f"not run, the agent took no more requests ({said})" in english
    assert f"未执行，代理暂不接受更多请求（{said}）" in chinese
    # A word that no bot set is not believed.
    assert "the probe failed (it broke)" in english
    assert "探针失败（it broke）" in chinese


def test_alerts_of_one_notification_are_shown_with_their_own_state() -> None:
    def alert(pod: str, ends_at: datetime | None) -> Alert:
        status = AlertStatus.RESOLVED if ends_at else AlertStatus.FIRING
        return Alert(
            fingerprint=pod,
            status=status,
            labels={"alertname": "TTFTHigh", "pod": pod, "status": "ok"},
            annotations={"title": "TTFT high\nsecond line", "summary": "<!channel> look"},
            starts_at=NOW,
            ends_at=ends_at,
            url="http://prom.example/graph?g0.expr=a>0.5|x",
        )

    alerts = [alert("p-0", None), alert("p-1", NOW + timedelta(minutes=8))]
    incident = replace(_incident("t 1"), alerts={item.fingerprint: item for item in alerts})
    card = PRESENTER.present(Message(view="card"), incident, Locale.EN, {}).parts[0].text
    assert "1 firing, 1 over" in card
    assert "✅ TTFTHigh · p-1 · recovered" in card
    assert "after 8 m" in card
    prompt = PRESENTER.present(
        Message(view="step_symptom", context={"step": "symptom"}), incident, Locale.EN, {}
    )
    text = prompt.parts[0].text
    assert "<http://prom.example/graph?g0.expr=a%3E0.5%7Cx|TTFT high second line>" in text
    assert "&lt;!channel&gt; look" in text


def _evidence(reason: str, why: str, locale: Locale) -> str:
    source = {"name": "metrics", "state": "unreachable", "count": 0, "reason": reason, "why": why}
    context = {"sources": [source], "found": 0, "top": []}
    message = Message(view="evidence", context=context)
    return PRESENTER.present(message, _incident("t"), locale, {}).parts[0].text


def test_gap_of_a_source_is_said_in_the_readers_language_with_the_detail_cut() -> None:
    detail = "Prometheus: no answer in 3 s <!here> " + "x" * 400
    chinese = _evidence("timeout", detail, Locale.ZH_CN)
    assert "未在时限内应答 (Prometheus: no answer in 3 s &lt;!here&gt; xxx" in chinese
    assert "…)" in chinese
    assert len(chinese) < 400
    assert "no answer in time (Prometheus" in _evidence("timeout", detail, Locale.EN)
    # A job that was queued before there was a reason, and a word that nobody knows yet.
    assert "(only words)" in _evidence("", "only words", Locale.ZH_CN)
    assert "a_new_reason" in _evidence("a_new_reason", "", Locale.EN)


def test_every_reason_of_a_gap_has_words_in_both_languages() -> None:
    probe_ends = {status.value for status in ProbeStatus} - {"ok"}
    for reason in {item.value for item in Reason} | probe_ends | {"empty", "partial"}:
        english = catalogue(Locale.EN)[f"slack.reason_{reason}"]
        assert english != catalogue(Locale.ZH_CN)[f"slack.reason_{reason}"]


# Names that Chinese writes in Latin letters, and a line of fields alone.
_SAME = {"diagnosis.cli.service", "guards.name.gpu", "report.layer.gpu"}


def test_every_sentence_is_in_both_languages_with_the_same_fields() -> None:
    english, chinese = catalogue(Locale.EN), catalogue(Locale.ZH_CN)
    assert set(english) == set(chinese)
    for key, sentence in english.items():
        fields = [sorted(re.findall(r"\{(\w+)\}", words[key])) for words in (english, chinese)]
        assert fields[0] == fields[1], key
        assert not re.search("[\u4e00-\u9fff]", sentence), key
        has_words = re.search("[A-Za-z]{2,}", re.sub(r"\{\w+\}", "", sentence))
        if has_words and key not in _SAME:
            assert re.search("[\u4e00-\u9fff]", chinese[key]), key


def test_every_sentence_that_a_template_names_exists() -> None:
    for path in (templates_root() / "slack").glob("*.j2"):
        for key in re.findall(r't\("([\w.]+)"[,)]', path.read_text(encoding="utf-8")):
            assert key in catalogue(Locale.EN), f"{path.name}: {key}"


def test_words_are_read_wherever_a_message_keeps_them() -> None:
    rich = {
        "type": "rich_text",
        "elements": [
            {
                "type": "rich_text_section",
                "elements": [
                    {"type": "user", "user_id": "U1"},
                    {"type": "text", "text": " saw "},
                    {"type": "link", "url": "http://x.example"},
                    {"type": "emoji", "name": "fire"},
                ],
            },
            {
                "type": "rich_text_list",
                "elements": [
                    {"type": "rich_text_section", "elements": [{"type": "text", "text": "a"}]},
                    {"type": "rich_text_section", "elements": [{"type": "text", "text": "b"}]},
                ],
            },
        ],
    }
    assert text_of({"text": "", "blocks": [rich]}) == "<@U1> saw http://x.example:fire:\na\nb"
    fields = [{"title": "Severity", "value": "page"}, {"title": "", "value": "hz-a"}]
    shown = {"fallback": "[no preview available]", "title": "TTFTHigh", "fields": fields}
    assert text_of({"attachments": [shown]}) == "TTFTHigh\nSeverity: page\nhz-a"
    assert text_of({"attachments": [{"fallback": "only this"}]}) == "only this"
    assert plain("<!subteam^S0ONCALL> <!subteam^S1|@gpu> <!here>") == "@S0ONCALL @gpu @here"
