"""The shell's door: exit codes, one line per error, and no import that a word does not need."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from bot.cli import WORDS
from tests.waiting import PATIENCE_SECONDS


def rca_bot(*words, **environment):
    return subprocess.run(
        [sys.executable, "-m", "bot.cli", *words],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", **environment},
        cwd=environment.pop("cwd", None),
    )


def test_without_a_word_it_shows_all_words_and_exits_2():
    answer = rca_bot()
    assert answer.returncode == 2
    assert all(word in answer.stdout for word in WORDS)


def test_a_typo_is_answered_with_the_nearest_word():
    answer = rca_bot("diagnos")
    assert answer.returncode == 2
    assert answer.stderr == "rca-bot: diagnos: no such command; did you mean diagnose\n"


@pytest.mark.parametrize(
    "words",
    [
        ("diagnose", "--at"),
        ("diagnose", "--service", "x"),
        ("diagnose", "--at", "soon", "--service", "x"),
        ("export", "INC-1", "--out", "x", "--format", "docx"),
        ("manifest", "--link", "x"),
        ("sop", "mend"),
        ("agent", "run"),
        ("workspace", "--port", "99999999"),
        ("demo", "--port", "99999"),
    ],
)
def test_a_wrong_call_is_usage_in_one_line_that_says_what_to_do(words):
    answer = rca_bot(*words)
    assert answer.returncode == 2
    assert answer.stdout == ""
    assert answer.stderr.startswith(f"rca-bot: {words[0]}: ")
    assert answer.stderr.endswith(f"; see rca-bot {words[0]} --help\n")
    assert answer.stderr.count("\n") == 1


def test_a_wrong_setting_is_one_line_per_fault_and_no_trace():
    answer = rca_bot("serve", RCA_PORT="many", RCA_LOCALE="fr")
    assert answer.returncode == 1
    assert answer.stderr.count("\n") == 2
    assert "Traceback" not in answer.stderr
    assert "RCA_PORT" in answer.stderr
    assert "RCA_LOCALE" in answer.stderr


def test_the_bot_does_not_start_without_the_files_that_its_settings_name(tmp_path):
    answer = rca_bot(
        "serve",
        RCA_PORT="many",
        RCA_NODES=str(tmp_path / "no.yaml"),
        RCA_KNOWLEDGE_DIR=str(tmp_path / "no"),
        RCA_DATA_DIR=str(tmp_path),
    )
    assert answer.returncode == 1
    starts = [line.split(": ")[2] for line in answer.stderr.splitlines()]
    assert starts == ["RCA_PORT", "RCA_NODES", "RCA_KNOWLEDGE_DIR"]


def test_a_terminal_without_chinese_gets_the_answer_all_the_same(tmp_path):
    nodes = tmp_path / "nodes.yaml"
    nodes.write_text("services: [{name: 翻译}]\n", encoding="utf-8")
    answer = rca_bot(
        "diagnose", "--at", "2026-11-30T08:00:00Z", "--service", "翻译",
        RCA_NODES=str(nodes), RCA_LOCALE="zh-CN", RCA_DATA_DIR=str(tmp_path), PYTHONIOENCODING="ascii",
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    assert "\\u7ffb\\u8bd1" in answer.stdout


@pytest.mark.parametrize(
    ("words", "name"), [([], "help"), (["manifest", "--url", "https://x.example"], "manifest")]
)
def test_an_output_that_is_full_is_one_line(words, name):
    with Path("/dev/full").open("w") as full:
        answer = subprocess.run(
            [sys.executable, "-m", "bot.cli", *words],
            stdout=full, stderr=subprocess.PIPE, text=True, timeout=180,
        )  # fmt: skip
    assert answer.returncode == 1
    assert answer.stderr.startswith(f"rca-bot: {name}: No space left on device")
    assert answer.stderr.count("\n") == 1


@pytest.mark.parametrize("url", ["rca.example", "https://x.example/a b", "https://x:many", ""])
def test_a_manifest_is_made_for_addresses_only(url):
    answer = rca_bot("manifest", "--url", url)
    assert answer.returncode == 1
    assert answer.stderr.startswith("rca-bot: manifest: --url: ")
    assert answer.stderr.count("\n") == 1


def test_a_dead_redis_stops_the_start_with_one_line():
    answer = rca_bot("serve", REDIS_URL="redis://127.0.0.1:1/0", RCA_PORT="0")
    assert answer.returncode == 1
    assert answer.stderr.splitlines()[-1].startswith("rca-bot: serve: readiness: Redis is not")


def test_an_agent_whose_port_is_taken_says_so_in_one_line_and_exits_1(tmp_path):
    assert rca_bot("agent", "keygen", "--out", str(tmp_path)).returncode == 0
    with socket.create_server(("127.0.0.1", 0)) as taken:
        answer = rca_bot(
            "agent",
            RCA_AGENT_NODE="n1",
            RCA_AGENT_PUBLIC_KEYS=str(tmp_path / "rca-agent.pub"),
            RCA_AGENT_PORT=str(taken.getsockname()[1]),
            RCA_AGENT_AUDIT=str(tmp_path / "audit"),
        )
    assert answer.returncode == 1
    assert answer.stderr.startswith("rca-bot: agent: RCA_AGENT_PORT: cannot listen on 127.0.0.1:")
    assert answer.stderr.count("\n") == 1


@pytest.mark.parametrize("host", ["192.0.2.1", "no-such-host.invalid"])
def test_a_host_that_this_machine_does_not_have_is_named_by_its_own_setting(host, tmp_path):
    answer = rca_bot(
        "serve", RCA_HOST=host, RCA_PORT="0", RCA_DATA_DIR=str(tmp_path), RCA_WEBHOOK_TOKEN="t"
    )
    assert answer.returncode == 1
    said = answer.stderr.splitlines()[-1]
    assert said.startswith(f"rca-bot: serve: RCA_HOST: {host} is no address of this machine (")


@pytest.mark.parametrize("word", ["agent"])
def test_the_agent_starts_without_the_bots_libraries(word):
    banned = ["slack_bolt", "slack_sdk", "redis", "jinja2", "matplotlib", "pandas", "yaml"]
    script = (
        "import sys\n"
        f"class Ban:\n"
        f"    def find_spec(self, name, *_):\n"
        f"        if name.partition('.')[0] in {banned!r}: raise ModuleNotFoundError(name=name)\n"
        "sys.meta_path.insert(0, Ban())\n"
        f"from bot.cli import main; main([{word!r}, 'list'])\n"
    )
    answer = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE_SECONDS
    )
    assert answer.returncode == 0, answer.stderr
    assert "host_cpu" in answer.stdout


def test_a_missing_extra_is_one_line_that_names_it():
    script = (
        "import sys\n"
        "class Ban:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name.partition('.')[0] == 'slack_bolt': raise ModuleNotFoundError(name=name)\n"
        "sys.meta_path.insert(0, Ban())\n"
        "from bot.cli import main; main(['serve'])\n"
    )
    answer = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE_SECONDS
    )
    assert answer.returncode == 1
    assert answer.stderr == (
        "rca-bot: serve: the package slack_bolt is not installed; run: pip install 'rca-bot[bot]'\n"
    )


def test_a_change_file_is_imported_once(tmp_path):
    events = tmp_path / "changes.jsonl"
    events.write_text(
        '{"id":"a","kind":"deploy","service":"s","summary":"x","at":"2026-11-30T08:00:00Z"}\n\n'
        '{"id":"b","kind":"model","service":"s","summary":"y","at":"2026-11-30T09:00:00Z"}\n'
    )
    data = {"RCA_DATA_DIR": str(tmp_path / "data")}
    first = rca_bot("changes", "add", "--file", str(events), **data)
    assert (first.returncode, first.stdout) == (0, "2 of 2 change events stored, 0 known\n")
    again = rca_bot("changes", "add", "--file", str(events), **data)
    assert again.stdout == "0 of 2 change events stored, 2 known\n"


def test_a_change_file_may_begin_with_a_mark_and_hold_any_letter(tmp_path):
    events = tmp_path / "changes.jsonl"
    line = '{"id":"%s","kind":"deploy","summary":"a\u2028b\x85c","at":"2026-11-30T08:00:00Z"}'
    events.write_text(f"\ufeff{line % 'a'}\r\n{line % 'b'}", encoding="utf-8", newline="")
    answer = rca_bot("changes", "add", "--file", str(events), RCA_DATA_DIR=str(tmp_path / "a data"))
    assert (answer.returncode, answer.stdout) == (0, "2 of 2 change events stored, 0 known\n")


@pytest.mark.parametrize("name", ["none.jsonl", "."])
def test_a_change_file_that_cannot_be_read_is_one_line_that_says_why(tmp_path, name):
    answer = rca_bot("changes", "add", "--file", name, cwd=str(tmp_path))
    assert answer.returncode == 1
    assert answer.stderr.startswith(f"rca-bot: changes: {name}: cannot be read: ")
    assert "Errno" not in answer.stderr


def test_a_wrong_line_of_a_change_file_is_named(tmp_path):
    events = tmp_path / "changes.jsonl"
    events.write_text('{"id":"a","kind":"party","at":"2026-11-30T08:00:00Z"}\n')
    answer = rca_bot("changes", "add", "--file", str(events), RCA_DATA_DIR=str(tmp_path))
    assert answer.returncode == 1
    assert f"{events}:1.kind: must be one of deploy" in answer.stderr
