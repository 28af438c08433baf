"""What must not leave is masked, the same way everywhere, and nothing else is."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from bot.report.redact import DEFAULT_RULES, Masker, Rule, redact
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
    ],
)
def test_secret_is_masked(text):
    masked = Masker().mask(text)
    assert "[masked-" in masked
    secret = re.sub(
        r"^(Authorization: Bearer |DB_PASSWORD=|api_key: \"|密码：|mail |at )", "", text
    )
    assert secret not in masked


@pytest.mark.parametrize(
    "text",
    [
        "P99 rose from 80 ms to 612 ms",
        "tokens: 512 per second, max_tokens=4096",
        "driver 550.54.14 on 127.0.0.1, library version 2.14.1.0, v1.2.3.4",
        "sha256 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "2026-11-30T08:15:00Z E-1a2b3c 14:05::9",
        "secretariat and passport",
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


def test_own_rule_masks_customer_data():
    rule = Rule(kind="custom", pattern=re.compile(r"\bcustomer-(?P<secret>\d+)\b"))
    masker = Masker((*DEFAULT_RULES, rule))
    assert masker.mask("customer-4711 waits") == "customer-[masked-custom-1] waits"
