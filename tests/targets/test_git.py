"""A branch an incident in a real repository: one commit when something changed, none of a person's work is lost."""

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

import bot.targets._git_commands as git_commands
from bot.errors import ConfigError, DeliveryError, Reason
from bot.exporter import Export
from bot.settings import load_settings
from bot.targets import targets
from tests.report.sample import SECRETS
from tests.targets.git_http import GitHttp
from tests.targets.rig import KEY, Killed, Memory, deliver, parcel, settings_of
from tests.targets.servers import TOKEN
from tests.waiting import until

BRANCH = "rca/INC-7"
PATH = "postmortems/INC-7/INC-7.md"
CLEAN = {
    **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}


def run(folder: Path, *words: str, given: bytes | None = None) -> str:
    identity = ["-c", "user.name=Lin", "-c", "user.email=lin@example.org"]
    done = subprocess.run(
        ["git", *identity, *words],
        cwd=folder,
        input=given,
        capture_output=True,
        check=True,
        env=CLEAN,
    )
    return done.stdout.decode().rstrip("\n")


class Repository:
    """A bare repository, and a person's clone of it."""

    def __init__(self, root: Path) -> None:
        self.bare = root / "there" / "postmortems.git"
        self.bare.mkdir(parents=True)
        run(self.bare, "init", "--quiet", "--bare", "--initial-branch=main", ".")
        self.clone = root / "clone"

    def begin(self) -> None:
        run(self.bare.parent, "clone", "--quiet", str(self.bare), str(self.clone))
        run(self.clone, "checkout", "--quiet", "-B", "main")
        self.commit("README.md", "postmortems\n")

    def commit(self, path: str, text: str, branch: str = "main") -> str:
        run(self.clone, "fetch", "--quiet", "origin")
        if branch != "main":
            run(self.clone, "checkout", "--quiet", "-B", branch, f"origin/{branch}")
        target = self.clone / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        run(self.clone, "add", "-A")
        run(self.clone, "commit", "--quiet", "-m", "by hand")
        run(self.clone, "push", "--quiet", "origin", branch)
        return run(self.clone, "rev-parse", "HEAD")

    def files(self, branch: str = BRANCH) -> set[str]:
        return set(run(self.bare, "ls-tree", "-r", "--name-only", branch).splitlines())

    def text(self, path: str, branch: str = BRANCH) -> str:
        return run(self.bare, "show", f"{branch}:{path}")

    def commits(self, branch: str = BRANCH) -> list[str]:
        return run(self.bare, "rev-list", branch).splitlines()


@pytest.fixture
def repository(tmp_path):
    made = Repository(tmp_path)
    made.begin()
    return made


@pytest.fixture
def settings(repository, tmp_path):
    return settings_of(
        tmp_path, "git", {"url": str(repository.bare), "web": "https://git.example/{branch}/{path}"}
    )


async def test_report_comes_onto_a_branch_of_its_own_beside_what_is_there(repository, settings):
    done = await deliver(settings, "git", parcel("git"), Memory())
    written = {f"postmortems/INC-7/{name}" for name in parcel("git").export.files}
    assert repository.files() == {"README.md", *written}
    assert {PATH, "postmortems/INC-7/INC-7.json"} < written
    assert any(path.endswith(".svg") for path in written)
    assert repository.text(PATH).startswith("# INC-7")
    assert len(repository.commits()) == 2
    assert repository.files("main") == {"README.md"}
    assert done.url == f"https://git.example/{BRANCH}/{PATH}"
    said = run(repository.bare, "log", "-1", "--format=%an <%ae>%n%B", BRANCH)
    assert said.startswith("rca-bot <rca-bot@localhost>\nPostmortem of INC-7")
    assert KEY in said
    everything = "".join(repository.text(path) for path in repository.files())
    assert not [secret for secret in SECRETS if secret in everything]
    assert list((settings.data_dir / "git").iterdir()) == []


async def test_same_report_again_makes_no_commit(repository, settings):
    progress = Memory()
    await deliver(settings, "git", parcel("git"), progress)
    before = repository.commits()
    for again in (progress, Memory()):
        done = await deliver(settings, "git", parcel("git"), again)
        assert not done.is_changed
    assert repository.commits() == before


async def test_changed_report_adds_a_commit_and_takes_only_its_own_old_files_away(
    repository, settings
):
    progress = Memory()
    await deliver(settings, "git", parcel("git"), progress)
    theirs = repository.commit("postmortems/INC-7/notes.md", "by a person\n", BRANCH)
    first = parcel("git")
    files = {name: data for name, data in first.export.files.items() if "causal-chain" not in name}
    files["INC-7.md"] += b"\nmore\n"
    changed = replace(first, export=Export(main="INC-7.md", files=files))
    done = await deliver(settings, "git", changed, progress)
    assert done.is_changed
    assert theirs in repository.commits()
    assert repository.text("postmortems/INC-7/notes.md") == "by a person"
    assert repository.text(PATH).endswith("more")
    assert not [path for path in repository.files() if "causal-chain" in path]
    assert "README.md" in repository.files()


async def test_merged_and_deleted_branch_is_not_made_again_for_the_same_report(
    repository, settings
):
    progress = Memory()
    await deliver(settings, "git", parcel("git"), progress)
    run(repository.bare, "update-ref", "refs/heads/main", BRANCH)
    run(repository.bare, "update-ref", "-d", f"refs/heads/{BRANCH}")
    done = await deliver(settings, "git", parcel("git"), progress)
    assert not done.is_changed
    assert run(repository.bare, "for-each-ref", "--format=%(refname)") == "refs/heads/main"


async def test_empty_repository_gets_its_first_commit(tmp_path):
    empty = Repository(tmp_path)
    own = settings_of(tmp_path, "git", {"url": f"file://{empty.bare}", "folder": "rca/done"})
    await deliver(own, "git", parcel("git"), Memory())
    assert "rca/done/INC-7/INC-7.md" in empty.files()


async def test_person_who_pushes_between_look_and_push_keeps_their_commit(
    repository, settings, monkeypatch
):
    progress = Memory()
    await deliver(settings, "git", parcel("git"), progress)
    run(repository.clone, "fetch", "--quiet", "origin")
    pushed = []
    attempt = git_commands.Git.attempt

    async def slowly(self, *words, **rest):
        if words[0] == "push" and not pushed:
            pushed.append(repository.commit("postmortems/INC-7/race.md", "me first\n", BRANCH))
        return await attempt(self, *words, **rest)

    monkeypatch.setattr(git_commands.Git, "attempt", slowly)
    export = parcel("git").export
    files = {**export.files, "INC-7.md": export.content + b"\nnewer\n"}
    changed = replace(parcel("git"), export=Export(main=export.main, files=files))
    done = await deliver(settings, "git", changed, progress)
    assert done.is_changed
    assert pushed[0] in repository.commits()
    assert repository.text("postmortems/INC-7/race.md") == "me first"
    assert repository.text(PATH).endswith("newer")


async def test_killed_after_any_step_ends_with_one_commit(repository, settings):
    step = 0
    while True:
        step += 1
        if BRANCH in run(repository.bare, "for-each-ref", "--format=%(refname)"):
            run(repository.bare, "update-ref", "-d", f"refs/heads/{BRANCH}")
        progress = Memory()
        progress.dies_at = step
        try:
            await deliver(settings, "git", parcel("git"), progress)
        except Killed:
            progress.dies_at = -1
            await deliver(settings, "git", parcel("git"), progress)
            assert len(repository.commits()) == 2
            continue
        break
    assert step > 2


async def test_hooks_and_settings_of_the_machine_are_not_used(
    repository, settings, tmp_path, monkeypatch
):
    home = tmp_path / "home"
    home.mkdir()
    trap = tmp_path / "trap"
    trap.mkdir()
    witness = tmp_path / "ran"
    for name in ("pre-push", "pre-commit", "reference-transaction", "post-index-change"):
        (trap / name).write_text(f"#!/bin/sh\ntouch {witness}\n")
        (trap / name).chmod(0o755)
    (home / ".gitconfig").write_text(f"[core]\n\thooksPath = {trap}\n[commit]\n\tgpgSign = true\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    await deliver(settings, "git", parcel("git"), Memory())
    assert PATH in repository.files()
    assert not witness.exists()


async def test_link_in_the_repository_leads_nowhere(repository, settings, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (repository.clone / "postmortems").symlink_to(outside)
    run(repository.clone, "add", "-A")
    run(repository.clone, "commit", "--quiet", "-m", "a trap")
    run(repository.clone, "push", "--quiet", "origin", "main")
    await deliver(settings, "git", parcel("git"), Memory())
    assert PATH in repository.files()
    assert list(outside.iterdir()) == []


@pytest.fixture
def http_server(repository):
    run(repository.bare, "config", "http.receivepack", "true")
    made = GitHttp(repository.bare.parent, "x-access-token", TOKEN)
    yield made
    made.close()


async def test_token_goes_in_a_header_and_into_no_argument_or_file(
    http_server, repository, tmp_path, monkeypatch
):
    own = settings_of(tmp_path, "git", {"url": f"{http_server.url}/postmortems.git"})
    seen = []
    attempt = git_commands.Git.attempt

    async def watched(self, *words, **rest):
        answer = await attempt(self, *words, **rest)
        seen.append(" ".join(words))
        seen.extend(
            path.read_text(errors="replace") for path in self.folder.rglob("*") if path.is_file()
        )
        return answer

    monkeypatch.setattr(git_commands.Git, "attempt", watched)
    await deliver(own, "git", parcel("git"), Memory())
    assert PATH in repository.files()
    assert http_server.refused == 0
    assert not [text for text in seen if TOKEN in text or "Authorization" in text]


async def test_wrong_token_is_one_line_that_says_so(http_server, tmp_path):
    wrong = settings_of(
        tmp_path,
        "git",
        {"url": f"{http_server.url}/postmortems.git"},
        RCA_GIT_TOKEN="no-such-token",
    )
    with pytest.raises(DeliveryError, match="token or key that may push") as caught:
        await deliver(wrong, "git", parcel("git"), Memory())
    assert caught.value.reason is Reason.UNAUTHORISED
    assert "no-such-token" not in str(caught.value)
    assert "\n" not in str(caught.value)


async def test_repository_that_is_not_there_and_branch_that_is_not_there(repository, tmp_path):
    gone = settings_of(tmp_path, "git", {"url": str(tmp_path / "nowhere.git")})
    with pytest.raises(DeliveryError, match=r"\[git\] url") as caught:
        await deliver(gone, "git", parcel("git"), Memory())
    assert caught.value.reason is Reason.NOT_FOUND
    other = settings_of(tmp_path, "git", {"url": str(repository.bare), "branch": "trunk"})
    with pytest.raises(DeliveryError, match="no branch trunk"):
        await deliver(other, "git", parcel("git"), Memory())


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (
            "fatal: unable to access 'https://h/x.git/': The requested URL returned error: 301",
            Reason.NOT_FOUND,
        ),
        (
            "remote: Repository not found.\nfatal: repository 'https://h/x.git/' not found",
            Reason.NOT_FOUND,
        ),
        (
            "git@h: Permission denied (publickey).\nfatal: Could not read from remote",
            Reason.UNAUTHORISED,
        ),
        (
            "fatal: could not read Username for 'https://h': terminal prompts disabled",
            Reason.UNAUTHORISED,
        ),
        ("remote: error: GH006: Protected branch update failed\nerror: failed", Reason.UNSUPPORTED),
        (" ! [rejected] x -> y (stale info)\nerror: failed to push some refs", Reason.CONFLICT),
        ("fatal: unable to access 'https://h/': Could not resolve host: h", Reason.REFUSED),
        ("", Reason.REFUSED),
    ],
)
def test_what_git_says_has_its_reason_and_stays_one_line(said, reason, tmp_path):
    git = git_commands.Git(program="git", folder=tmp_path, environment={}, where="git at h")
    fault = git.fault("push", said)
    assert fault.reason is reason
    assert "\n" not in str(fault)
    assert str(fault).startswith("git at h: git push failed: ")


async def test_rule_of_the_server_that_refuses_the_branch_is_told(repository, settings):
    hook = repository.bare / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    with pytest.raises(DeliveryError) as caught:
        await deliver(settings, "git", parcel("git"), Memory())
    assert caught.value.reason is Reason.UNSUPPORTED


async def test_command_that_hangs_is_killed_with_all_its_children(
    repository, settings, monkeypatch, tmp_path
):
    pids = tmp_path / "pids"
    hook = repository.bare / "hooks" / "pre-receive"
    hook.write_text(f"#!/bin/sh\necho $$ > {pids}\nexec sleep 600\n")
    hook.chmod(0o755)
    for seconds in (1.0, 5.0, 25.0):
        monkeypatch.setattr(git_commands, "TIMEOUT_SECONDS", seconds)
        with pytest.raises(DeliveryError) as caught:
            await deliver(settings, "git", parcel("git"), Memory())
        assert caught.value.reason is Reason.TIMEOUT
        if pids.exists():
            break  # else the machine was too busy to come so far
    pid = int(pids.read_text())
    await until(lambda: not _lives(pid), "the hook is dead")


def _lives(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


async def test_leftovers_of_a_killed_process_are_swept(repository, settings):
    old = settings.data_dir / "git" / "left"
    old.mkdir(parents=True)
    os.utime(old, (1, 1))
    await deliver(settings, "git", parcel("git"), Memory())
    assert not old.exists()


async def test_check_says_what_the_repository_holds(repository, settings):
    async with httpx.AsyncClient(trust_env=False) as http:
        assert "branch main" in await targets()["git"].check(settings, http)


@pytest.mark.parametrize(
    "lines",
    [
        {"url": "https://user:secret@git.example/x.git"},
        {"url": "ext::sh -c touch% /tmp/x"},
        {"url": "--upload-pack=touch /tmp/x"},
        {"url": "relative/path"},
        {"url": "https://git.example/x.git", "branch": "-x"},
        {"url": "https://git.example/x.git", "branch": "a..b"},
        {"url": "https://git.example/x.git", "folder": "../up"},
        {"url": "https://git.example/x.git", "folder": ".git"},
        {"url": "https://git.example/x.git", "author_name": "a <b>"},
        {"url": "https://git.example/x.git", "token": "secret-token"},
    ],
    ids=lambda lines: "-".join(lines)[:20] + str(len(str(lines))),
)
def test_setting_that_could_do_harm_stops_the_start(lines, tmp_path):
    with pytest.raises(ConfigError) as caught:
        settings_of(tmp_path, "git", lines)
    assert "secret" not in str(caught.value)
    assert "RCA_CONFIG: git" in str(caught.value)


def test_token_is_read_from_its_file_at_each_use(tmp_path):
    secret = tmp_path / "token"
    secret.write_text("first\n")
    own = settings_of(
        tmp_path, "git", {"url": "https://git.example/x.git", "token_file": str(secret)}
    ).git
    assert own is not None and own.read_token() == "first"
    secret.write_text("second\n")
    assert own.read_token() == "second"
    secret.unlink()
    with pytest.raises(ConfigError, match="token_file"):
        own.read_token()


def test_token_comes_from_the_variable_that_is_named_and_is_not_shown(tmp_path):
    path = tmp_path / "rca.toml"
    path.write_text('[git]\nurl = "https://git.example/x.git"\ntoken_env = "MY_TOKEN"\n')
    loaded = load_settings({"RCA_CONFIG": str(path), "MY_TOKEN": TOKEN})
    assert loaded.git is not None and loaded.git.read_token() == TOKEN
    assert TOKEN not in repr(loaded)
