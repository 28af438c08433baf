"""The spans of one translation request."""

from __future__ import annotations

from bot.demo.pipeline import Stage, Translation
from bot.demo.spans import Span, SpanContext, new_span_id

_OPERATIONS = {
    Stage.PREPROCESS: "preprocess",
    Stage.HOST_TO_DEVICE: "copy_to_device",
    Stage.WAIT_SLOT: "queue",
    Stage.FORWARD: "engine.compute",
    Stage.POSTPROCESS: "postprocess",
}
_INFERENCE = (Stage.HOST_TO_DEVICE, Stage.WAIT_SLOT, Stage.FORWARD)


def request_spans(
    context: SpanContext, start_ns: int, end_ns: int, translation: Translation, *, model: str
) -> list[Span]:
    """`handle` with a child per stage; the stages on the device hang under `inference`."""
    handle, inference = new_span_id(), new_span_id()
    device = [item for item in translation.stages if item.stage in _INFERENCE]

    def span(name: str, parent: str | None, own: str, start: int, end: int) -> Span:
        tags: dict[str, str | int] = {"model": model} if own == handle else {}
        return Span(
            trace_id=context.trace_id, span_id=own, parent_id=parent, name=name,
            start_ns=start, end_ns=end, attributes=tags,
        )  # fmt: skip

    spans = [span("handle", context.span_id, handle, start_ns, end_ns)]
    spans.append(
        span(
            "inference",
            handle,
            inference,
            min(d.start_ns for d in device),
            max(d.end_ns for d in device),
        )
    )
    for item in translation.stages:
        parent = inference if item.stage in _INFERENCE else handle
        name = _OPERATIONS[item.stage]
        spans.append(span(name, parent, new_span_id(), item.start_ns, item.end_ns))
    return spans
