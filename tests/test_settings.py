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


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        *(
            (variable, value)
            for variable in ("PROMETHEUS_URL", "SLACK_API_URL", "RCA_PUBLIC_URL")
            for value in ("http://", "http://:80", "http://x:99999", "http://x:abc", "http://x y", "https://[::1",
                          "http://x?y=1", "http://x#f", "ftp://x", "x:9090")
        ),
        *(
            ("REDIS_URL", value)
            for value in ("redis://x:99999", "redis://x:abc/0", "redis://x/notadb", "redis+sentinel://h:26379",
                          "redis+sentinel://h:many/m", "redis:x")
        ),
        ("SLACK_BOT_TOKEN", "xapp-1"),
        ("SLACK_APP_TOKEN", "xoxb-1"),
        ("SLACK_SIGNING_SECRET", "xoxb-1"),
        ("RCA_WEBHOOK_TOKEN", "tök"),
        ("RCA_READ_TOKEN", "two words"),
        ("RCA_READ_TOKEN", '"quoted"'),
        ("RCA_ALERT_CHANNEL", "#alerts"),
        ("RCA_ALERT_CHANNEL", "alerts"),
        ("RCA_WEBHOOK_OPEN", "maybe"),
        ("RCA_PORT", "65536"),
        ("RCA_HOST", "[::1]"),
        ("RCA_HOST", "no host"),
        ("RCA_TIMEZONE", "America"),
        ("RCA_TIMEZONE", "x" * 300),
    ],
)  # fmt: skip
def test_a_wrong_value_is_one_line_that_names_its_variable(variable, value):
    with pytest.raises(ConfigError) as caught:
        load_settings({variable: value})
    assert len(caught.value.faults) == 1
    assert caught.value.faults[0].startswith(f"{variable}: ")
    assert "\n" not in caught.value.faults[0]


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("PROMETHEUS_URL", "http://user:word@[::1]:9090/prometheus/"),
        ("REDIS_URL", "redis://:word@redis:6379/3"),
        ("REDIS_URL", "rediss://redis"),
        ("REDIS_URL", "redis+sentinel://:word@a:26379,b/mymaster/1"),
        ("RCA_HOST", "::1"),
        ("RCA_HOST", "0.0.0.0"),
        ("RCA_WEBHOOK_TOKEN", "a.b/c+d=="),
        ("RCA_WEBHOOK_OPEN", "1"),
    ],
)
def test_a_right_value_is_taken(variable, value):
    load_settings({variable: value})


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ('quiet_hours = "23:00-23:00"', "quiet_hours: begins when it ends"),
        ('quiet_hours = "23:00-07:00Z"', "quiet_hours: must look like 23:00-07:00"),
        ('on_call_group = "oncall"', "on_call_group: must be a user group's id"),
        ('training_channel = "drill"', "training_channel: must be a channel's id"),
        ("[followup]\nstep_idle_s = inf", "followup.step_idle_s: must be a finite number"),
        ("[followup]\nfoo = 1", "followup.foo: there is no such setting"),
        ('[policy]\nresolve = ["lead"]', "policy.resolve: must be a user's id"),
        ('[policy]\nresolve = "*"', "policy.resolve: must be a list"),
        ('[[channels]]\nid = "C1"\n[[channels]]\nid = "C1"', "channels: C1 is listed twice"),
        (
            '[[channels]]\nid = "C1"\nalert_bots = { B1 = "datadog" }',
            "channels.0.alert_bots.B1: must be 'alertmanager', 'grafana' or 'pagerduty'",
        ),
        (
            '[[channels]]\nid = "C1"\nverbosity = "loud"',
            "channels.0.verbosity: must be 'quiet', 'normal' or 'chatty'",
        ),
        ('[[routes]]\nmatch = { a = "b" }\nchannel = "ranking"', "routes.0.channel: must be a"),
        ('timezon = "UTC"', "timezon: there is no such setting; did you mean timezone"),
    ],
)
def test_a_wrong_entry_of_the_file_is_told_in_the_words_of_its_writer(tmp_path, content, fault):
    path = tmp_path / "rca.toml"
    path.write_text(content)
    with pytest.raises(ConfigError) as caught:
        load_settings({"RCA_CONFIG": str(path)})
    [line] = caught.value.faults
    assert line.startswith(f"RCA_CONFIG: {fault}")


def test_a_route_that_can_never_match_is_a_fault_and_one_that_is_wider_is_none(tmp_path):
    narrow = '[[routes]]\nmatch = { team = "a", tier = "1" }\nchannel = "C1"\n'
    wide = '[[routes]]\nmatch = { team = "a" }\nchannel = "C2"\n'
    path = tmp_path / "rca.toml"
    path.write_text(narrow + wide)
    assert len(load_settings({"RCA_CONFIG": str(path)}).routes) == 2
    path.write_text(wide + narrow)
    with pytest.raises(ConfigError, match="routes: number 2 never matches, since number 1"):
        load_settings({"RCA_CONFIG": str(path)})


def test_what_stands_around_a_value_is_left_away():
    settings = load_settings({"RCA_WEBHOOK_TOKEN": " hook\n", "RCA_READ_TOKEN": "  "})
    assert settings.webhook_token.get_secret_value() == "hook"
    assert settings.read_token is None


def test_files_that_are_not_there_are_told_beside_the_other_faults(tmp_path):
    (tmp_path / "key").write_text("k")
    environment = {
        "RCA_PORT": "many",
        "RCA_NODES": str(tmp_path / "nodes.yaml"),
        "RCA_AGENT_KEY": str(tmp_path / "key"),
        "RCA_KNOWLEDGE_DIR": str(tmp_path / "key"),
    }
    with pytest.raises(ConfigError) as caught:
        load_settings(environment, with_files=True)
    named = [fault.partition(":")[0] for fault in caught.value.faults]
    assert named == ["RCA_PORT", "RCA_NODES", "RCA_KNOWLEDGE_DIR"]


def test_links_to_an_ipv6_listener_have_brackets():
    assert load_settings({"RCA_HOST": "::1"}).base_url == "http://[::1]:8080"


@given(st.text(max_size=20))
def test_quiet_hours_are_a_span_or_an_error(text):
    try:
        start, end = parse_quiet_hours(text)
    except ValueError:
        return
    assert start.tzinfo is None
    assert end.tzinfo is None
