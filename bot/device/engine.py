"""Queue, running requests and progress counters of an inference engine, whichever it is."""

from __future__ import annotations

from dataclasses import dataclass

from bot.device.exposition import Exposition


@dataclass(frozen=True, slots=True, kw_only=True)
class _Names:
    """Series of one engine; the first that the page has is taken, except `progress`, which are summed."""

    engine: str
    mark: tuple[str, ...]
    running: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    progress: tuple[str, ...]
    cache_ratio: tuple[str, ...] = ()


# Source: the metrics pages of vLLM v1, Triton 2.4x, TGI 2/3, SGLang 0.4, TorchServe 0.9.
_ENGINES = (
    _Names(
        engine="vllm",
        mark=("vllm:num_requests_running",),
        running=("vllm:num_requests_running",),
        waiting=("vllm:num_requests_waiting",),
        progress=(
            "vllm:generation_tokens_total",
            "vllm:prompt_tokens_total",
            "vllm:request_success_total",
        ),
        cache_ratio=("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
    ),
    _Names(
        engine="sglang",
        mark=("sglang:num_running_reqs",),
        running=("sglang:num_running_reqs",),
        waiting=("sglang:num_queue_reqs",),
        progress=("sglang:generation_tokens_total", "sglang:prompt_tokens_total"),
        cache_ratio=("sglang:token_usage",),
    ),
    _Names(
        engine="tgi",
        mark=("tgi_queue_size", "tgi_batch_current_size"),
        running=("tgi_batch_current_size",),
        waiting=("tgi_queue_size",),
        progress=("tgi_request_success_total", "tgi_request_success", "tgi_batch_inference_count"),
    ),
    _Names(
        engine="triton",
        mark=("nv_inference_request_success", "nv_inference_pending_request_count"),
        waiting=("nv_inference_pending_request_count",),
        progress=("nv_inference_request_success", "nv_inference_exec_count", "nv_inference_count"),
    ),
    _Names(
        engine="generic",
        mark=("ts_inference_requests_total", "app_queue_depth", "app_active_workers"),
        running=("app_active_workers", "app_requests_in_flight"),
        waiting=("app_queue_depth",),
        progress=("ts_inference_requests_total", "app_requests_total"),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineMoment:
    """One scrape; None where the engine does not tell. `progress` is the sum of counters that move with work."""

    engine: str
    running: float | None
    waiting: float | None
    progress: float | None
    cache_ratio: float | None
    started_at: float | None
    scrape_seconds: float


def engine_moment(page: Exposition) -> EngineMoment | None:
    """The engine's figures; None when the page is of no engine that is known."""
    for names in _ENGINES:
        if page.total(*names.mark) is None:
            continue
        told = [value for name in names.progress if (value := page.total(name)) is not None]
        return EngineMoment(
            engine=names.engine,
            running=page.total(*names.running),
            waiting=page.total(*names.waiting),
            progress=sum(told) if told else None,
            cache_ratio=page.total(*names.cache_ratio),
            started_at=page.total("process_start_time_seconds"),
            scrape_seconds=page.scrape_seconds,
        )
    return None
