"""What every shipped cause must carry, and that its strongest reasons can be met by somebody."""

from __future__ import annotations

import re

import pytest

from bot.cause import Cause, LogTest, findings_of, logs_of, signals_of
from bot.diagnosis.knowledge import load_causes, shipped_causes
from bot.diagnosis.plan import tests_of as all_tests_of
from bot.domain.text import Localized

CATALOGUE = load_causes([shipped_causes()])
CHINESE = re.compile(r"[\u4e00-\u9fff]")

IDS = {
    "data_loading_blocked", "batch_size_misconfigured", "gpu_memory_fragmentation", "cpu_contention",
    "gpu_clock_throttling", "network_retransmission", "lock_contention", "pinned_memory_contention",
    "input_feature_drift", "quantization_accuracy_loss", "model_hot_reload_bug", "memory_leak",
    "dependency_failure", "concurrency_control_defect", "missing_logs", "coarse_metrics",
    "missing_traces", "disk_io_saturation", "log_write_surge", "gpu_hardware_fault",
    "gpu_memory_neighbour", "pcie_link_degraded", "gpu_memory_exhausted", "numeric_overflow",
    "traffic_surge", "engine_frozen", "shared_memory_exhausted",
}  # fmt: skip
CAUSES = sorted(CATALOGUE.causes)


def texts(cause: Cause) -> list[Localized]:
    return [
        cause.title, cause.summary,
        *(rule.text for rule in cause.evidence),
        *(refuter.text for refuter in cause.refuters),
        *(item.expects for item in cause.experiments),
        *(item.would_refute for item in cause.experiments),
        *(item.text for item in (*cause.commands, *cause.fixes)),
        *cause.prevention, *cause.checklist,
    ]  # fmt: skip


def test_every_named_cause_is_shipped() -> None:
    assert set(CAUSES) >= IDS


@pytest.mark.parametrize("name", CAUSES)
def test_every_text_is_in_both_languages(name: str) -> None:
    for text in texts(CATALOGUE.causes[name]):
        assert CHINESE.search(text.zh), text
        assert not CHINESE.search(text.en), text


@pytest.mark.parametrize("name", CAUSES)
def test_enough_families_can_speak_for_it(name: str) -> None:
    cause = CATALOGUE.causes[name]
    supporting = {rule.family for rule in cause.evidence if rule.weight > 0}
    assert len(supporting) >= max(3, cause.families)
    assert sum(rule.weight for rule in cause.evidence if rule.weight > 0) >= 6


@pytest.mark.parametrize("name", CAUSES)
def test_something_can_refute_it_and_something_can_test_it(name: str) -> None:
    cause = CATALOGUE.causes[name]
    assert cause.refuters
    probes = [item for item in cause.experiments if item.probe is not None]
    assert probes
    assert all(item.predicts and item.contradicts for item in probes)
    assert all(not set(item.predicts) & set(item.contradicts) for item in probes)


@pytest.mark.parametrize("name", CAUSES)
def test_no_test_speaks_of_a_signal_without_a_source(name: str) -> None:
    cause = CATALOGUE.causes[name]
    derived = ("logs.", "trace.", "traces.")
    for test in all_tests_of([cause]):
        for signal in signals_of(test):
            known = CATALOGUE.signals[signal]
            assert known.queries or signal.startswith(derived), signal
        for finding in findings_of(test):
            assert CATALOGUE.findings[finding].probe
        for pattern in logs_of(test):
            assert isinstance(pattern, LogTest)
            assert not re.search(pattern.pattern, "", re.IGNORECASE), "matches every line"
