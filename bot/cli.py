"""The entry point `rca-bot`: finds the word, imports only what that word needs, runs it.

An agent installed alone must start without the bot's dependencies, so no word's module is imported before it is asked
for, and a missing extra is one line that names it.
"""

from __future__ import annotations

import contextlib
import difflib
import importlib
import io
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from bot import __version__
from bot.errors import BotError, ConfigError

USAGE = 2


@dataclass(frozen=True, slots=True)
class Word:
    """One sub-command: where it lives, which extra it needs, one line of help."""

    module: str
    extra: str
    help: str


WORDS: dict[str, Word] = {
    "serve": Word("bot.console.serve", "bot", "Run the bot."),
    "agent": Word("bot.agent.cli", "agent", "Run the node agent, its keys and its probes."),
    "workspace": Word("bot.workspace.cli", "bot", "Run the local Slack-compatible workspace."),
    "demo": Word("bot.demo.cli", "all", "Play an incident on this machine."),
    "check": Word("bot.console.check", "bot", "Look at every configured dependency."),
    "diagnose": Word("bot.console.diagnose", "bot", "Rank the causes, without Slack."),
    "export": Word("bot.console.export", "bot", "Compile the report of an incident."),
    "changes": Word("bot.console.changes", "bot", "Store change events."),
    "explain": Word("bot.console.explain", "bot", "Say why an alert was opened or ignored."),
    "sop": Word("bot.console.sop", "bot", "Check SOP, cause and checklist files."),
    "manifest": Word("bot.console.manifest", "bot", "Print the Slack app manifest."),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs one word and exits: 0 done, 1 failed, 2 usage."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    words = [word for word in words if word != "--debug"]
    name = words[0] if words else ""
    try:
        sys.exit(_answer(words))
    except ConfigError as error:
        if debug:
            raise
        for fault in error.faults:
            _say(f"{name}: {fault}")
        sys.exit(1)
    except BotError as error:
        if debug:
            raise
        _fail(f"{name}: {error}", 1)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # The reader went away (a pipe into head): nothing to say, and nobody to say it to.
        _drop_output()
        sys.exit(1)
    except OSError as error:
        if debug:
            raise
        _drop_output()
        _fail(
            f"{name or 'help'}: {error.strerror or error}{_at(error)}; run it again with --debug for the trace",
            1,
        )
    except Exception as error:  # the last door: a person never reads a trace unasked
        if debug:
            raise
        reason = " ".join(str(error).split()) or type(error).__name__
        _fail(f"{name}: {reason}; run it again with --debug for the trace", 1)


def _answer(words: Sequence[str]) -> int:
    """Prints what was asked for; gives the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that cannot show Chinese shows its code points; that must not stop the answer.
            stream.reconfigure(errors="backslashreplace")
    code = _answered(words)
    # Written out here: where the disk is full, the interpreter's own end would say so in its way.
    if sys.stdout is not None:
        sys.stdout.flush()
    return code


def _answered(words: Sequence[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        _print(_overview())
        return 0 if words else USAGE
    name = words[0]
    if name in ("-V", "--version"):
        _print(f"rca-bot {__version__}")
        return 0
    if name not in WORDS:
        near = difflib.get_close_matches(name, WORDS, n=1)
        hint = f"did you mean {near[0]}" if near else "see rca-bot --help"
        _say(f"{name or repr(name)}: no such command; {hint}")
        return USAGE
    return run(name, words[1:])


def _drop_output() -> None:
    """What is left to write goes nowhere: the interpreter would try once more at its end, and complain."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _at(error: OSError) -> str:
    return f": {error.filename}" if error.filename else ""


def run(name: str, arguments: Sequence[str]) -> int:
    """Imports the word's module and runs its Typer app; gives the exit code.

    Raises:
        ConfigError: the extra that it needs is not installed.
        BotError: the word failed.
    """
    word = WORDS[name]
    try:
        module = importlib.import_module(word.module)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package in ("bot", "commands"):
            raise
        raise ConfigError(
            f"the package {package} is not installed; run: pip install 'rca-bot[{word.extra}]'"
        ) from error
    typer = importlib.import_module("typer")  # here since the module brought it
    wrong_call = typer.BadParameter.__base__  # UsageError, which Typer does not export
    try:
        code = module.app(args=list(arguments), prog_name=f"rca-bot {name}", standalone_mode=False)
    except typer.Abort:
        return 130
    except wrong_call as error:
        # Typer's own printing of it is a frame of several lines; an error is one line here.
        reason = " ".join(error.format_message().replace("Value error, ", "").split()).rstrip(".")
        _say(f"{name}: {reason}; see rca-bot {name} --help")
        return USAGE
    return code if isinstance(code, int) else 0


def _overview() -> str:
    width = max(len(name) for name in WORDS)
    lines = [f"  {name:<{width}}  {word.help}" for name, word in WORDS.items()]
    return "\n".join(
        [
            "rca-bot: from an inference alert to the deepest cause, backed by data.",
            "",
            "usage: rca-bot WORD [options]     rca-bot WORD --help",
            "",
            *lines,
            "",
            "  --debug    show the trace when something fails",
            "  --version",
        ]
    )


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")


def _say(text: str) -> None:
    sys.stderr.write(f"rca-bot: {text}\n")


def _fail(text: str, code: int) -> None:
    _say(text)
    sys.exit(code)


if __name__ == "__main__":
    main()
