"""What must not leave is masked, the same way everywhere, and nothing else is."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from bot.report.redact import DEFAULT_RULES, Masker, Rule, redact
from bot.report.redaction_rules import rules_of
from bot.settings import RedactionSettings
from tests.report.sample import SECRETS, sample_case
from tests.report.sample_facts import ALLOCATOR


@pytest.mark.parametrize(
    "text",
    [
        "xoxb-123456789012-abcdefghij",
        "Authorization: Bearer abc.def-ghi123",
        "DB_PASSWORD=Tr0ub4dor&3",
        'api_key: "0123456789abcdef"',
        "密码：hunter22",
        "postgres://app:s3cr3tpw@db/x",
        "-----BEGIN PRIVATE KEY-----\nMIIEvQ\n-----END PRIVATE KEY-----",
        "https://hooks.slack.com/services/T000/B000/XXXXYYYY",
        "AKIAIOSFODNN7EXAMPLE",
        "mail li.na@corp.example today",
        "at 192.168.7.9:9477",
        "at fd12:3456:789a::1",
        "client 203.0.113.9 waited",
        "peer 2001:db8:7::12 refused",
        "owner <@U02ABCDEF9>",
        "mysql -u app --password=hunter22",
        "the password is hunter22",
        "令牌是 abcdef99",
        "Set-Cookie: session=abc123; HttpOnly",
        "GET /x?X-Amz-Signature=0123456789abcdef&a=1",
        "sk_live_0123456789abcdef",
        "xoxe.xoxp-1-abcdefghijkl",
        "Authorization: Token 0123456789abcdef",
        'authorization="0123456789abcdef"',
        "curl -u admin:hunter22 https://x",
        "mysqldump -h db -phunter22 orders",
        '{"password": "hunter22 with spaces"}',
        "the api key is hunter22",
        "LTAI5tabcdefGHIJKL12",
        "AKIDabcdefGHIJKL1234",
        "hvs.abcdefghijklmnopqrstuv",
        "glsa_abcdefghijklmnopqrst_12345678",
        "SG.abcdefghijklmnop.abcdefghijklmnop",
        "dop_v1_0123456789abcdef0123456789abcdef",
        "https://open.feishu.cn/open-apis/bot/v2/hook/0123456789abcdef",
        "node ip-10-1-2-3.ec2.internal",
    ],
)
def test_secret_is_masked(text):
    masked = Masker().mask(text)
    assert "[masked-" in masked
    secret = re.sub(
        r"^(Authorization: Bearer |DB_PASSWORD=|api_key: \"|密码：|mail |at |client |peer )",
        "",
        text,
    )
    assert secret not in masked
    assert not re.search("hunter22|abcdef99|abc123|0123456789abcdef|U02ABCDEF9", masked)


@pytest.mark.parametrize(
    "text",
    [
        "P99 rose from 80 ms to 612 ms",
        "tokens: 512 per second, max_tokens=4096",
        "driver 550.54.14 on 127.0.0.1, library version 2.14.1.0, v1.2.3.4",
        "sha256 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "2026-11-30T08:15:00Z E-1a2b3c 14:05::9",
        "secretariat and passport",
        "Authorization: see the runbook; mysql -h db -p, then tail -u",
        "sip-10-1-2-3 and ip-300-1-2-3",
        "authorization failed for the user",
    ],
)
def test_ordinary_text_is_left_alone(text):
    assert Masker().mask(text) == text


def test_same_value_has_the_same_mask_wherever_it_stands():
    masker = Masker()
    first = masker.mask("password=hunter2x and 10.0.0.5")
    again = masker.mask_everywhere("hunter2x came from 10.0.0.5, not 10.0.0.50")
    assert first == "password=[masked-secret-1] and [masked-address-1]"
    assert again == "[masked-secret-1] came from [masked-address-1], not [masked-address-2]"


def test_word_that_once_stood_for_a_password_does_not_vanish_everywhere():
    masker = Masker()
    masker.mask("password: required")
    assert masker.mask_everywhere("a review is required") == "a review is required"


def test_masking_twice_changes_nothing():
    masker = Masker()
    once = masker.mask("db password=hunter2x9 token=abcdef123456")
    assert masker.mask_everywhere(masker.mask(once)) == once


def test_report_says_how_much_was_masked():
    safe = redact(sample_case().compile())
    assert safe.masked == {"address": 1, "email": 1, "secret": 4, "user": 1}
    assert redact(safe) is safe


def test_no_secret_is_left_anywhere_in_the_report():
    said = repr(redact(sample_case().compile()))
    for secret in SECRETS:
        assert secret not in said


def test_evidence_keeps_its_id_when_its_query_is_masked():
    case = sample_case()
    item = replace(ALLOCATOR, query='up{instance="10.1.2.3:9100"}')
    report = replace(case, incident=replace(case.incident, evidence=(item,))).compile()
    safe = redact(report)
    assert safe.evidence[0].id == item.id
    assert "10.1.2.3" not in safe.evidence[0].evidence.query
    assert safe.evidence[0].evidence.digest == item.digest


def test_drawings_and_their_data_are_masked_too():
    blobs = {
        "symptom.svg": b'<svg xmlns="http://www.w3.org/2000/svg"><text x="1">node 10.9.8.7</text></svg>',
        "symptom.csv": b"time,node 10.9.8.7\n2026-11-30T08:15:00Z,1.5\n",
    }
    chart = redact(sample_case(charts=blobs).compile()).charts[0]
    assert b"10.9.8.7" not in chart.svg
    assert b"10.9.8.7" not in chart.csv
    assert chart.csv.endswith(b"\n2026-11-30T08:15:00Z,1.5\n")


def test_hint_misses_nothing_that_a_rule_means():
    """The one search that spares the twenty must find something in all that they find."""
    rules = [replace(rule, is_hinted=False) for rule in DEFAULT_RULES]
    for text in SECRET_FORMS:
        assert Masker(rules).mask(text) == Masker().mask(text), text


SECRET_FORMS = (
    *SECRETS,
    "PassPhrase = abc", "PWD:x1y2z3", "Secrets: 'abcd'", "CREDENTIALS=abcd", "my_ToKeN: abcdef",
    "ACCOUNTKEY=abcdef", "bEaReR abcdefgh", "BASIC YWxhZGRpbg==", "cookie: a=b", "://:pw@h",
    "?sig=abcdef", "&code=abcdef", "口令 为 abc", "a+b@c.io", "1.2.3.4", "fe80:1::2", "-u a:bcd", " --user=a:bcd", "mysql -pabc", "AUTHORIZATION=abcde1",
    "ip-1-2-3-4", "discord.com/api/webhooks/1/ab", "pypi-abcdefghijklmnop", "dckr_pat_abcdefghijklmnop",
    "dapi0123456789abcdef0123456789abcdef", "glc_abcdefghijklmnopqrst", "W0ABC", "U1ABCDEFG",
)  # fmt: skip


def test_deployment_decides_about_names_addresses_people_and_exceptions():
    settings = RedactionSettings(
        patterns=(r"tenant-(?P<secret>\d+)",),
        names=("Umbrella Corp", "Umbrella", "保护伞"),
        allow=("203.0.113.9", "Ops@Example.com"),
        addresses="private",
        users=False,
    )
    masker = Masker(rules_of(settings))
    said = "umbrella corp (tenant-12) and UMBRELLA, not Umbrellas; 保护伞公司; Umbrella Corp"
    assert masker.mask(said) == (
        "[masked-name-1] (tenant-[masked-custom-1]) and [masked-name-2], not Umbrellas; [masked-name-3]公司; "
        "[masked-name-1]"
    )
    kept = "203.0.113.9 198.51.100.7 ops@example.com U02ABCDEF9"
    assert masker.mask(kept) == kept
    assert masker.mask("10.1.1.1") == "[masked-address-1]"


@pytest.mark.parametrize("pattern", ["(", "a*"])
def test_pattern_that_cannot_work_stops_the_start(pattern):
    with pytest.raises(ValueError, match="regular expression|empty text"):
        RedactionSettings(patterns=(pattern,))


def test_own_rule_masks_customer_data():
    rule = Rule(kind="custom", pattern=re.compile(r"\bcustomer-(?P<secret>\d+)\b"))
    masker = Masker((*DEFAULT_RULES, rule))
    assert masker.mask("customer-4711 waits") == "customer-[masked-custom-1] waits"
