"""Guards and layers in the thread and in the report; a cause waits for every layer of its chain, or for a waiver."""

from __future__ import annotations

from datetime import UTC, datetime

import httpx

from bot.domain.evidence import BlindSpot, Evidence, EvidenceSource, SourceState
from bot.domain.guard import GuardKind, GuardNote
from bot.domain.hypothesis import Contribution, Hypothesis, Layer, LayerState, LayerVerdict
from bot.domain.instant import Window
from bot.domain.text import Localized
from bot.incidents.responding import Via
from bot.jobs import outbox
from bot.jobs.charting import request_of
from bot.message import Message
from tests.slack.conftest import CHANNEL, Stage

NOW = datetime(2026, 11, 30, 20, 30, tzinfo=UTC)
SEEN = Evidence(
    source=EvidenceSource.PROBE, plugin="host_disk", summary=Localized("slow disk", "磁盘慢"), query="host_disk",
    window=Window(NOW, NOW), samples=1, digest="d", node="node-1", finding="disk.latency_high",
)  # fmt: skip
STATES = {Layer.STORAGE: LayerState.ABNORMAL, Layer.NETWORK: LayerState.NOT_CHECKED}
LAYERS = tuple(
    LayerVerdict(
        layer=layer,
        state=STATES.get(layer, LayerState.CLEAN),
        why=Localized("no agent answered <there>", "没有节点代理应答")
        if STATES.get(layer) is LayerState.NOT_CHECKED
        else Localized("as read", "如实"),
    )
    for layer in Layer
)
GUARDS = (
    GuardNote(
        kind=GuardKind.CO_MOVEMENT,
        text=Localized("what moves together is no proof", "同步变化不能证明因果"),
    ),
    GuardNote(kind=GuardKind.OLD_CHANGE, text=Localized("six days old", "六天前的变更")),
)
SPOT = BlindSpot(what=Localized("the uplink", "上行链路"), why=Localized("no agent", "没有代理"))


async def judged(stage: Stage) -> None:
    """What a pass of the engine writes, and the two messages that follow it."""
    await stage.calm()
    explained = tuple(item.id for item in (await stage.incident()).symptoms)
    leading = Hypothesis(
        cause="network_retransmission", title=Localized("packets are lost", "丢包"), probability=0.8,
        chain=("disk_io_saturation", "network_retransmission"), layers=(Layer.STORAGE, Layer.NETWORK),
        explains=explained,
        supports=(Contribution(source=SEEN.source, summary=SEEN.summary, ref=SEEN.id, weight=2.0),),
    )  # fmt: skip

    def follow(incident):  # type: ignore[no-untyped-def]
        return [
            outbox.thread_post(incident, Message(view="evidence", context={"found": 1, "sources": []})),
            outbox.thread_post(incident, Message(view="hypotheses", context={"reason": "asked"})),
        ]  # fmt: skip

    await stage.bot.services.responding.record_evidence(
        "INC-1", Via(by="system", at=NOW, key="pass-1"), evidence=[SEEN], gaps=[],
        sources={"metrics": SourceState.OK}, layers=LAYERS, blind_spots=[SPOT], changes=[],
        hypotheses=[leading], guards=GUARDS, jobs=follow,
    )  # fmt: skip
    stage.bot.services.wake()


async def test_guards_layers_and_blind_spots_stand_in_the_thread_and_the_report(
    stage: Stage,
) -> None:
    thread = await stage.start()
    await judged(stage)
    found = await stage.reply(thread, lambda m: "no agent answered" in m.all_text)
    rows = [line for line in found.all_text.splitlines() if " · " in line and " – " in line]
    assert len(rows) >= len(Layer)
    assert "network · not checked – no agent answered" in found.all_text
    assert "storage · abnormal" in found.all_text
    assert "the uplink – no agent" in found.all_text
    ranked = await stage.reply(thread, lambda m: "packets are lost" in m.all_text)
    for note in GUARDS:
        assert note.text.en in ranked.all_text
    assert "not checked on its chain: network" in ranked.all_text
    async with httpx.AsyncClient(trust_env=False) as http:
        url = f"http://127.0.0.1:{stage.settings.port}/incidents/INC-1/report.md"
        secret = stage.settings.read_token or stage.settings.webhook_token
        bearer = {"Authorization": f"Bearer {secret.get_secret_value() if secret else ''}"}
        for locale, said in (("en", GUARDS[1].text.en), ("zh-CN", GUARDS[1].text.zh)):
            page = await http.get(url, params={"locale": locale}, headers=bearer, timeout=60)
            assert page.status_code == 200, page.text
            assert said in page.text
        # By its Chinese name, in Chinese words; the report says who let it pass and why.
        await stage.lead.command(CHANNEL, "/rca hypothesis 豁免 网络 交换机归别的团队管")
        await stage.entry(lambda e: e.data.get("layer") == "network")
        page = await http.get(url, params={"locale": "zh-CN"}, headers=bearer, timeout=60)
        row = next(line for line in page.text.splitlines() if line.startswith("| 网络"))
        assert "已豁免：交换机归别的团队管" in row


async def test_cause_on_an_unchecked_layer_waits_until_that_is_waived_with_a_reason(
    stage: Stage,
) -> None:
    thread = await stage.start()
    await stage.lead.command(CHANNEL, "/rca symptom P99 600 ms")
    await stage.entry(lambda e: e.data.get("id") == "S-1")
    await judged(stage)
    ranked = await stage.reply(thread, lambda m: "packets are lost" in m.all_text)
    await stage.lead.command(CHANNEL, "/rca hypothesis confirm 1")
    refused = await stage.whispered(stage.lead, "was not checked")
    assert "hypothesis waive network" in refused.all_text
    await stage.lead.command(CHANNEL, "/rca hypothesis waive network")
    await stage.whispered(stage.lead, "needs a reason")
    await stage.lead.command(CHANNEL, "/rca hypothesis waive storage no time")
    await stage.whispered(stage.lead, "nothing to waive")
    assert (await stage.incident()).waivers == ()

    await stage.lead.click(CHANNEL, ranked.ts, "rca.layer.waive")
    await stage.lead.wait_for_view()
    await stage.lead.submit({"reason": "the switch is another team's"})
    entry = await stage.entry(lambda e: e.op == "waived")
    assert entry.author == "U0LEAD"
    assert entry.text is not None
    await stage.lead.command(CHANNEL, "/rca hypothesis confirm 1")
    await stage.reply(thread, lambda m: "Root cause confirmed" in m.all_text)
    waived = (await stage.incident()).waivers
    assert [(item.layer, item.by) for item in waived] == [(Layer.NETWORK, "U0LEAD")]


async def test_changes_asked_for_further_back_are_searched_from_then_on(stage: Stage) -> None:
    await stage.start()
    await stage.calm()
    await stage.lead.command(CHANNEL, "/rca changes since=5d")
    await stage.lead.command(CHANNEL, "/rca changes since=30d")
    entry = await stage.entry(lambda e: e.op == "widened")
    assert entry.author == "U0LEAD"
    month = 30 * 86_400.0
    assert (await stage.incident()).changes_back_seconds == month
    await stage.entry(lambda e: e.seq > entry.seq and "sources" in e.data, "another pass")
    request = request_of(
        stage.bot.services, await stage.incident(), by="U0LEAD", window_seconds=3600
    )
    assert request.changes_back_seconds == month
