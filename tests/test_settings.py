"""Settings stop the start with one line per fault, and never show a secret."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.text import Locale
from bot.errors import ConfigError
from bot.setting_checks import parse_quiet_hours
from bot.settings import load_settings


def test_every_fault_is_a_line_of_its_own():
    with pytest.raises(ConfigError) as caught:
        load_settings(
            {
                "RCA_PORT": "many",
                "REDIS_URL": "http://x",
                "RCA_LOCALE": "fr",
                "RCA_TIMEZONE": "Mars/Base",
                "PROMETHEUS_URL": "prom:9090",
            }
        )
    named = sorted(fault.partition(":")[0] for fault in caught.value.faults)
    assert named == ["PROMETHEUS_URL", "RCA_LOCALE", "RCA_PORT", "RCA_TIMEZONE", "REDIS_URL"]
    assert all("\n" not in fault for fault in caught.value.faults)


def test_the_file_is_read_and_the_environment_wins(tmp_path):
    path = tmp_path / "rca.toml"
    path.write_text(
        'locale = "zh-CN"\ntimezone = "Asia/Shanghai"\n[[channels]]\nid = "C1"\n'
        'alert_bots = { B1 = "alertmanager" }\n[[routes]]\nmatch = { team = "a" }\nchannel = "C2"\n'
        "[followup]\nstep_idle_s = 10\n"
    )
    settings = load_settings({"RCA_CONFIG": str(path), "RCA_TIMEZONE": "UTC"})
    assert (settings.locale, settings.timezone) == (Locale.ZH_CN, "UTC")
    assert settings.channel("C1").alert_bots == {"B1": "alertmanager"}
    assert settings.route({"team": "a"}).channel == "C2"
    assert settings.route({"team": "b"}) is None
    assert settings.followup.step_idle_s == 10


def test_an_unknown_key_of_the_file_is_named(tmp_path):
    path = tmp_path / "rca.toml"
    path.write_text('lokale = "en"\n')
    with pytest.raises(ConfigError, match="RCA_CONFIG: lokale"):
        load_settings({"RCA_CONFIG": str(path)})


@pytest.mark.parametrize("content", ["locale = ", "\x00", "= 3"])
def test_a_file_that_is_no_toml_is_one_line(tmp_path, content):
    path = tmp_path / "rca.toml"
    path.write_text(content)
    with pytest.raises(ConfigError, match="is no TOML"):
        load_settings({"RCA_CONFIG": str(path)})


def test_a_secret_is_never_printed():
    settings = load_settings({"SLACK_BOT_TOKEN": "xoxb-hidden", "RCA_WEBHOOK_TOKEN": "hush"})
    assert "xoxb-hidden" not in repr(settings)
    assert "hush" not in str(settings)


@given(st.text(max_size=20))
def test_quiet_hours_are_a_span_or_an_error(text):
    try:
        start, end = parse_quiet_hours(text)
    except ValueError:
        return
    assert start.tzinfo is None
    assert end.tzinfo is None
