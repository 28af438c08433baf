"""One Web API call: its merged and checked arguments, and the errors that answer it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request

from bot.blockkit.contract import Argument, Method
from bot.workspace.records import Json

# Arguments that travel as JSON text in forms and query strings, and the code for text that is no JSON.
_JSON_ARGUMENTS: Mapping[str, str] = {
    "attachments": "invalid_attachments",
    "blocks": "invalid_blocks_format",
    "files": "invalid_arguments",
    "message": "invalid_arguments",
    "metadata": "invalid_metadata_format",
    "view": "invalid_arguments",
}


class ApiError(Exception):
    """A call answered with `ok: false`; `more` joins the answer."""

    def __init__(self, code: str, *, messages: Sequence[str] = (), **more: Any) -> None:
        super().__init__(code)
        self.code = code
        self.more: Json = dict(more)
        if messages:
            self.more["response_metadata"] = {"messages": list(messages)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call whose arguments have the types that Slack states; absent ones are not in `arguments`."""

    method: Method
    arguments: Mapping[str, Any]

    def text(self, name: str) -> str | None:
        """A text argument, None when it is absent or empty."""
        value = self.arguments.get(name)
        return str(value) if value not in (None, "") else None

    def required(self, name: str) -> str:
        """A text argument that the contract demands.

        Raises:
            ApiError: it is absent.
        """
        value = self.text(name)
        if value is None:
            raise ApiError(
                "invalid_arguments", messages=[f"[ERROR] missing required field: {name}"]
            )
        return value

    def flag(self, name: str, *, default: bool = False) -> bool:
        """A boolean argument."""
        value = self.arguments.get(name)
        return default if value is None else bool(value)

    def number(self, name: str, default: int) -> int:
        """A whole number."""
        value = self.arguments.get(name)
        return default if value is None else int(value)

    def json(self, name: str) -> Any:
        """A structured argument, None when it is absent."""
        return self.arguments.get(name)

    def has(self, name: str) -> bool:
        """Whether the argument was given at all."""
        return self.arguments.get(name) is not None


async def read_arguments(request: Request) -> Json:
    """Merges query string, form and JSON body, since clients use all three.

    Raises:
        ApiError: a body that is not what its type says.
    """
    merged: Json = dict(request.query_params)
    content_type = request.headers.get("content-type", "")
    if "application/json" in content_type:
        raw = await request.body()
        try:
            body = json.loads(raw or b"{}")
        except ValueError as error:
            raise ApiError("invalid_arguments", messages=["[ERROR] the body is no JSON"]) from error
        if not isinstance(body, dict):
            raise ApiError("invalid_arguments", messages=["[ERROR] the body is no object"])
        merged |= body
    elif content_type.startswith(("application/x-www-form-urlencoded", "multipart/form-data")):
        async with request.form() as form:
            merged |= {key: value for key, value in form.items() if isinstance(value, str)}
    return merged


def checked(method: Method, raw: Mapping[str, Any]) -> Call:
    """Gives the arguments their types.

    Raises:
        ApiError: one is missing, too long, or of a type that Slack does not take.
    """
    faults: list[str] = []
    arguments: Json = {}
    for name, value in raw.items():
        argument = method.arguments.get(name)
        if value is None or argument is None:
            continue
        if name in _JSON_ARGUMENTS and name != "message_ts":
            arguments[name] = _structured(name, value)
            continue
        try:
            arguments[name] = _typed(argument, value)
        except ValueError as error:
            faults.append(f"[ERROR] {error} [json-pointer:/{name}]")
    faults += [
        f"[ERROR] missing required field: {argument.name}"
        for argument in method.arguments.values()
        if argument.required and arguments.get(argument.name) in (None, "")
    ]
    if faults:
        raise ApiError("invalid_arguments", messages=faults)
    return Call(method=method, arguments=arguments)


def _structured(name: str, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if not value.strip():
        return None
    try:
        return json.loads(value)
    except ValueError as error:
        raise ApiError(_JSON_ARGUMENTS[name]) from error


def _typed(argument: Argument, value: Any) -> Any:
    kinds = argument.kinds - {"null"}
    if kinds == {"boolean"}:
        return _boolean(value)
    if kinds & {"number", "integer"}:
        return _number(argument, value)
    if kinds == {"array"}:
        return value.split(",") if isinstance(value, str) else value
    if isinstance(value, (dict, list)):
        raise ValueError(f"{argument.name} must be a string")  # noqa: TRY004  a fault of the caller
    text = str(value)
    if argument.max_length is not None and len(text) > argument.max_length:
        raise ValueError(f"{argument.name} must be no more than {argument.max_length} characters")
    return text


def _boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    match str(value).lower():
        case "1" | "true":
            return True
        case "0" | "false" | "":
            return False
        case other:
            raise ValueError(f"{other!r} is neither true nor false")


def _number(argument: Argument, value: Any) -> int:
    try:
        number = int(value)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{argument.name} must be a number") from error
    if argument.minimum is not None and number < argument.minimum:
        raise ValueError(f"{argument.name} must be at least {argument.minimum}")
    if argument.maximum is not None and number > argument.maximum:
        raise ValueError(f"{argument.name} must be at most {argument.maximum}")
    return number
