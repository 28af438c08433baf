"""Where reports are delivered to: the tables `[confluence]`, `[git]` and `[github]` of `RCA_CONFIG`.

A token never stands in the file: it comes from the variable that `token_env` names (each table has a default), or
from the file that `token_file` names, which is read at each use, so that a rotated secret needs no restart.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, SecretStr, field_validator, model_validator

from bot.errors import ConfigError

_GIT_SSH = re.compile(r"^(?:ssh://)?[\w.-]+@[\w.-]+(?::\d+)?[:/][\w./~-]+$")
_REPOSITORY = re.compile(r"^[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9._-]{1,100}$")
# Source: git-check-ref-format(1), narrowed to what needs no quoting anywhere.
_BRANCH = re.compile(r"^(?!.*(?:\.\.|//|@\{|\.lock(?:/|$)))[A-Za-z0-9_][A-Za-z0-9._/-]*(?<![./])$")
_FOLDER = re.compile(r"^(?!.*\.\.)[A-Za-z0-9][A-Za-z0-9._/-]*$")
_LABEL = re.compile(r"^[^,\n]{1,50}$")


class TargetSettings(BaseModel):
    """What every target has.

    private: whether incidents of private channels may be delivered there too.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    token_env: str
    token_file: Path | None = None
    token: SecretStr | None = None
    private: bool = False

    @model_validator(mode="before")
    @classmethod
    def _takes_no_token(cls, values: Any) -> Any:
        given = values.get("token") if isinstance(values, Mapping) else None
        if given is not None and not isinstance(given, SecretStr):
            raise ValueError("no token stands in this file: name its variable in token_env")
        return values

    def read_token(self) -> str | None:
        """The token as it is now; None where none was given.

        Raises:
            ConfigError: the file that holds it cannot be read.
        """
        if self.token_file is None:
            return self.token.get_secret_value() if self.token else None
        try:
            return self.token_file.read_text(encoding="utf-8").strip() or None
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(
                f"token_file: {self.token_file} cannot be read: {error}; correct the path"
            ) from error


def _plain_url(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("must begin with http:// or https:// and name a host")
    if parts.username or parts.password:
        raise ValueError("must hold no user or password; name the token in token_env")
    return value.rstrip("/")


class ConfluenceSettings(TargetSettings):
    """A space of Confluence.

    kind: `cloud` speaks the v2 API with an API token of `user`; `data_center` the one of Confluence Data Center with
    a personal access token, or a password of `user`. By default the host tells.
    parent: id of the page that reports are put under; the space's home by default.
    """

    token_env: str = "RCA_CONFLUENCE_TOKEN"  # noqa: S105 - a variable's name
    url: str
    space: str
    kind: Literal["cloud", "data_center"] | None = None
    user: str | None = None
    parent: str | None = None

    @field_validator("url")
    @classmethod
    def _is_plain_url(cls, value: str) -> str:
        return _plain_url(value)

    @field_validator("space")
    @classmethod
    def _is_key(cls, value: str) -> str:
        if not re.fullmatch(r"~?[A-Za-z0-9_.:-]{1,255}", value):
            raise ValueError("must be a space key, such as OPS")
        return value

    @field_validator("parent")
    @classmethod
    def _is_id(cls, value: str | None) -> str | None:
        if value is not None and not value.isdecimal():
            raise ValueError("must be a page id: the number in the page's address")
        return value

    @property
    def is_cloud(self) -> bool:
        """Whether it is Atlassian's own service."""
        if self.kind is not None:
            return self.kind == "cloud"
        return (urlsplit(self.url).hostname or "").endswith(".atlassian.net")


class GitSettings(TargetSettings):
    """A repository of postmortems.

    url: https, ssh, or the path of a repository on this machine. branch: what new branches grow from.
    folder: where the reports lie in it. user: who the token belongs to, for https.
    ssh_key: path of a private key, for ssh. ca_file: certificates that an https server is checked against. web: address of a file in the browser, with `{branch}` and `{path}`.
    """

    token_env: str = "RCA_GIT_TOKEN"  # noqa: S105 - a variable's name
    url: str
    branch: str = "main"
    folder: str = "postmortems"
    user: str = "x-access-token"
    ssh_key: Path | None = None
    ca_file: Path | None = None
    web: str | None = None
    author_name: str = "rca-bot"
    author_email: str = "rca-bot@localhost"

    @field_validator("url")
    @classmethod
    def _is_repository(cls, value: str) -> str:
        if value.startswith(("http://", "https://")):
            return _plain_url(value)
        if value.startswith(("/", "file:///")) or _GIT_SSH.fullmatch(value):
            return value
        raise ValueError("must be https://…, ssh://git@host/path, git@host:path or a path from /")

    @field_validator("branch")
    @classmethod
    def _is_branch(cls, value: str) -> str:
        if not _BRANCH.fullmatch(value):
            raise ValueError("is no branch name")
        return value

    @field_validator("folder")
    @classmethod
    def _is_folder(cls, value: str) -> str:
        if not _FOLDER.fullmatch(value):
            raise ValueError("must be a folder inside the repository, such as postmortems")
        return value.rstrip("/")

    @field_validator("author_name", "author_email")
    @classmethod
    def _is_one_line(cls, value: str) -> str:
        if not value.strip() or any(letter in value for letter in "<>\n\r\x00"):
            raise ValueError("must be one line without < and >")
        return value.strip()

    @field_validator("web")
    @classmethod
    def _is_web_address(cls, value: str | None) -> str | None:
        return _plain_url(value) if value is not None else None


class GithubSettings(TargetSettings):
    """A repository whose issues the action items become. api: of GitHub Enterprise Server, ends in `/api/v3`."""

    token_env: str = "RCA_GITHUB_TOKEN"  # noqa: S105 - a variable's name
    repository: str
    api: str = "https://api.github.com"
    label: str = "rca-bot"

    @field_validator("repository")
    @classmethod
    def _is_repository(cls, value: str) -> str:
        if not _REPOSITORY.fullmatch(value) or value.endswith(("/.", "/..")):
            raise ValueError("must look like owner/name")
        return value

    @field_validator("api")
    @classmethod
    def _is_plain_url(cls, value: str) -> str:
        return _plain_url(value)

    @field_validator("label")
    @classmethod
    def _is_label(cls, value: str) -> str:
        if not _LABEL.fullmatch(value):
            raise ValueError("must be one label of at most 50 characters")
        return value


TABLES: Mapping[str, type[TargetSettings]] = {
    "confluence": ConfluenceSettings,
    "git": GitSettings,
    "github": GithubSettings,
}


def with_tokens(values: Mapping[str, Any], environment: Mapping[str, str]) -> dict[str, Any]:
    """`values` with the token of each target's table filled in from the environment."""
    filled = dict(values)
    for name, kind in TABLES.items():
        table = filled.get(name)
        if not isinstance(table, Mapping):
            continue
        variable = table.get("token_env", kind.model_fields["token_env"].default)
        if isinstance(variable, str) and (text := environment.get(variable)):
            filled[name] = {**table, "token": table.get("token", SecretStr(text))}
    return filled
