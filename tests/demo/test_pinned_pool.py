import threading
import time

from bot.demo.pinned_pool import PinnedBufferPool, PoolMode
from tests.waiting import PATIENCE_SECONDS, wait_until

CALLERS = 8


class DriverCall:
    """Takes the place of the registration's wait and notes how many callers were inside it at once."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._inside = 0
        self.most_inside = 0
        self.calls = 0

    def __call__(self, _: float) -> None:
        with self._lock:
            self._inside += 1
            self.calls += 1
            self.most_inside = max(self.most_inside, self._inside)
        time.sleep(self._seconds)
        with self._lock:
            self._inside -= 1


def run_callers(pool: PinnedBufferPool) -> None:
    together = threading.Barrier(CALLERS)

    def one() -> None:
        together.wait(PATIENCE_SECONDS)
        with pool.staging_buffer() as buffer:
            assert buffer.copy_in(b"x" * 5000) == 5000

    threads = [threading.Thread(target=one) for _ in range(CALLERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
    assert not any(thread.is_alive() for thread in threads)


def test_per_request_pool_lets_one_caller_register_at_a_time() -> None:
    call = DriverCall(0.01)
    pool = PinnedBufferPool(mode=PoolMode.PER_REQUEST, wait=call)

    run_callers(pool)

    now = pool.statistics()
    assert (call.calls, call.most_inside) == (CALLERS, 1)
    assert now.host_allocs == CALLERS
    assert now.buffers_in_use == 0


def test_what_callers_wait_for_one_another_is_told_as_time_of_registration() -> None:
    def slowest() -> float:
        pool = PinnedBufferPool(mode=PoolMode.PER_REQUEST, wait=DriverCall(0.01))
        run_callers(pool)
        now = pool.statistics()
        assert now.host_alloc_seconds >= CALLERS * 0.01
        return now.slowest_host_alloc_seconds

    # The last for all of them, where the machine lets all come at once.
    wait_until(lambda: slowest() >= CALLERS * 0.01, "they stand behind one another")


def test_preallocated_pool_never_registers_after_its_start() -> None:
    call = DriverCall(0.01)
    pool = PinnedBufferPool(mode=PoolMode.PREALLOCATED, capacity=CALLERS, wait=call)

    run_callers(pool)
    run_callers(pool)

    now = pool.statistics()
    assert call.calls == 1
    assert (now.host_allocs, now.buffers_in_use, now.buffers_ready) == (0, 0, CALLERS)


def test_switch_takes_effect_without_restart_in_both_directions() -> None:
    call = DriverCall(0.0)
    pool = PinnedBufferPool(mode=PoolMode.PER_REQUEST, capacity=2, wait=call)
    run_callers(pool)

    pool.switch(PoolMode.PREALLOCATED)
    run_callers(pool)
    after_fix = pool.statistics()
    pool.switch(PoolMode.PER_REQUEST)
    run_callers(pool)

    assert after_fix.host_allocs == CALLERS
    assert pool.statistics().host_allocs == 2 * CALLERS


def test_caller_that_waits_for_a_buffer_gets_it_although_the_mode_changed() -> None:
    pool = PinnedBufferPool(mode=PoolMode.PREALLOCATED, capacity=1, wait=lambda _: None)
    got = threading.Event()

    def wait_for_buffer() -> None:
        with pool.staging_buffer():
            got.set()

    with pool.staging_buffer():
        waiter = threading.Thread(target=wait_for_buffer)
        waiter.start()
        pool.switch(PoolMode.PER_REQUEST)
        assert not got.is_set()

    waiter.join(PATIENCE_SECONDS)
    assert got.is_set()


def test_payload_larger_than_the_buffer_is_cut() -> None:
    pool = PinnedBufferPool(
        mode=PoolMode.PREALLOCATED, buffer_bytes=4096, capacity=1, wait=lambda _: None
    )

    with pool.staging_buffer() as buffer:
        assert buffer.copy_in(bytes(5000)) == 4096
