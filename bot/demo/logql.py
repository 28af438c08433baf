"""The part of LogQL that the Loki stand-in answers, parsed into values.

Grammar: `{name OP "value", ...}` with `= != =~ !~`; line filters `|= != |~ !~`; `| json`, `| logfmt` and label
filters after them; `count_over_time`, `rate`, `bytes_over_time`, `bytes_rate` over a range; `sum`, `avg`, `min`,
`max`, `count` with `by` or `without`, and `topk`. Anything else is refused. Source: LogQL reference of Loki 2.9.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

from bot.demo.logql_stages import (
    MATCHERS,
    Labels,
    LineTest,
    LogqlError,
    compare,
    label_filter,
    line_filter,
    with_json,
    with_logfmt,
)

_TOKEN = re.compile(
    r"""\s*(?:(?P<string>"(?:\\.|[^"\\])*"|`[^`]*`)
        |(?P<operator>\|=|\|~|!=|!~|=~|==|>=|<=|[{}()\[\],=|<>])
        |(?P<number>\d[\w.]*)
        |(?P<word>[A-Za-z_][\w]*))""",
    re.VERBOSE,
)
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ns|us|ms|s|m|h|d|w)")
_UNIT_SECONDS = {
    "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0,
}  # fmt: skip
RANGE_FUNCTIONS = ("count_over_time", "rate", "bytes_over_time", "bytes_rate")
_AGGREGATIONS = ("sum", "avg", "min", "max", "count", "topk")
_LINE_FILTERS = ("|=", "!=", "|~", "!~")


@dataclass(frozen=True, slots=True)
class Matcher:
    """One label matcher; a missing label counts as empty, and a pattern must match the whole value."""

    name: str
    operator: str
    value: str

    def accepts(self, labels: Labels) -> bool:
        """Whether a stream with these labels is meant."""
        return compare(labels.get(self.name, ""), self.operator, self.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSelector:
    """Which streams, and which of their lines."""

    matchers: tuple[Matcher, ...]
    stages: tuple[LineTest, ...]

    def selects(self, labels: Labels) -> bool:
        """Whether the stream is meant."""
        return all(matcher.accepts(labels) for matcher in self.matchers)

    def pass_line(self, labels: Labels, line: str) -> Labels | None:
        """The labels of a line that passes every stage, with those that a parser added; else None."""
        for stage in self.stages:
            passed = stage(labels, line)
            if passed is None:
                return None
            labels = passed
        return labels


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeQuery:
    """A number per time step, made from the lines of a window before it."""

    function: str
    selector: LogSelector
    window_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregation:
    """Joins series; `by` unset and `without` unset joins all into one; `limit` is topk's count."""

    operator: str
    inner: RangeQuery | Aggregation
    by: tuple[str, ...] | None = None
    without: tuple[str, ...] | None = None
    limit: int = 0

    def group(self, labels: Labels) -> Labels:
        """The labels that a series keeps."""
        if self.without is not None:
            return {k: v for k, v in labels.items() if k not in self.without}
        return {k: labels[k] for k in self.by or () if k in labels}


Query = LogSelector | RangeQuery | Aggregation


def parse_duration(text: str) -> float:
    """Seconds in a Go-like duration.

    Raises:
        LogqlError: it is none.

    >>> parse_duration("1m30s")
    90.0
    """
    parts = _DURATION.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise LogqlError(f"not a valid duration string: {text!r}")
    return sum(float(number) * _UNIT_SECONDS[unit] for number, unit in parts)


def parse(text: str) -> Query:
    """Reads one query.

    Raises:
        LogqlError: it is outside the subset.
    """
    parser = _Parser(text)
    query = parser.query()
    parser.end()
    return query


@dataclass(slots=True)
class _Parser:
    text: str
    tokens: list[tuple[str, str]] = field(init=False)
    position: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.tokens = []
        at, text = 0, self.text.rstrip()
        while at < len(text):
            found = _TOKEN.match(text, at)
            if found is None or found.lastgroup is None:
                raise LogqlError(f"parse error at col {at + 1}: unexpected {text[at : at + 10]!r}")
            self.tokens.append((found.lastgroup, found[found.lastgroup]))
            at = found.end()

    def end(self) -> None:
        if self.position < len(self.tokens):
            raise LogqlError(f"parse error: unexpected {self.tokens[self.position][1]!r}")

    def query(self) -> Query:
        return self.selector() if self.at("{") else self.metric()

    def metric(self) -> RangeQuery | Aggregation:
        word = self.take("word")
        if word in RANGE_FUNCTIONS:
            return self.range_query(word)
        if word not in _AGGREGATIONS:
            raise LogqlError(f"parse error: function {word} is not answered here")
        by, without = self.grouping()
        self.expect("(")
        limit = 0
        if word == "topk":
            limit = int(self.take("number"))
            self.expect(",")
        inner = self.metric()
        self.expect(")")
        if by is None and without is None:
            by, without = self.grouping()
        if word == "topk" and by is None:
            without = ()
        return Aggregation(operator=word, inner=inner, by=by, without=without, limit=limit)

    def range_query(self, function: str) -> RangeQuery:
        self.expect("(")
        selector = self.selector()
        self.expect("[")
        window_seconds = parse_duration(self.take("number"))
        self.expect("]")
        self.expect(")")
        return RangeQuery(function=function, selector=selector, window_seconds=window_seconds)

    def grouping(self) -> tuple[tuple[str, ...] | None, tuple[str, ...] | None]:
        if not (self.at("by") or self.at("without")):
            return None, None
        word = self.take("word")
        self.expect("(")
        names = []
        while not self.at(")"):
            names.append(self.take("word"))
            if not self.at(")"):
                self.expect(",")
        self.expect(")")
        return (tuple(names), None) if word == "by" else (None, tuple(names))

    def selector(self) -> LogSelector:
        self.expect("{")
        matchers: list[Matcher] = []
        while not self.at("}"):
            name = self.take("word")
            operator = self.take("operator")
            if operator not in MATCHERS:
                raise LogqlError(f"parse error: unexpected {operator!r} in a matcher")
            matchers.append(Matcher(name, operator, self.string()))
            if not self.at("}"):
                self.expect(",")
        self.expect("}")
        if all(matcher.accepts({}) for matcher in matchers):
            raise LogqlError(
                "queries require at least one matcher that does not accept an empty value"
            )
        stages: list[LineTest] = []
        while self.at("|") or any(self.at(operator) for operator in _LINE_FILTERS):
            stages.append(self.stage())
        return LogSelector(matchers=tuple(matchers), stages=tuple(stages))

    def stage(self) -> LineTest:
        operator = self.take("operator")
        if operator != "|":
            return line_filter(operator, self.string())
        word = self.take("word")
        if word == "json":
            return with_json
        if word == "logfmt":
            return with_logfmt
        operator = self.take("operator")
        if self.position < len(self.tokens) and self.tokens[self.position][0] == "string":
            return label_filter(word, operator, self.string())
        return label_filter(word, operator, self.take("number"))

    def at(self, value: str) -> bool:
        return self.position < len(self.tokens) and self.tokens[self.position][1] == value

    def take(self, kind: str) -> str:
        if self.position >= len(self.tokens):
            raise LogqlError("parse error: unexpected end of input")
        found, value = self.tokens[self.position]
        if found != kind:
            raise LogqlError(f"parse error: unexpected {value!r}, expected a {kind}")
        self.position += 1
        return value

    def expect(self, value: str) -> None:
        if self.take("word" if value.isalpha() else "operator") != value:
            raise LogqlError(f"parse error: expected {value!r}")

    def string(self) -> str:
        quoted = self.take("string")
        if quoted[0] == "`":
            return quoted[1:-1]
        try:
            return str(json.loads(quoted))
        except ValueError:  # a regular expression's \. is no JSON escape
            return re.sub(r"\\(.)", r"\1", quoted[1:-1])
