"""Threads that wait for work: compiled kernels run without the interpreter's lock, several at a time.

Who does what is fixed: task i is that of worker i mod n, and workers take theirs in order. So a result never
depends on scheduling, only on the number of workers. Handing over and waiting costs some ten microseconds.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from tightrope.errors import InputError
from tightrope.numerics.late import futures
from tightrope.numerics.machine import cores

if TYPE_CHECKING:
    from concurrent.futures import Future

MOST_THREADS = 8
"""Threads that are used where nobody says how many."""

T = TypeVar("T")


def count_threads(threads: int | None = None) -> int:
    """As many as asked for; else one per core that this process may use, up to `MOST_THREADS`."""
    if threads is None:
        return max(1, min(cores(), MOST_THREADS))
    if threads < 1:
        raise InputError(f"the number of threads is {threads}, not at least 1")
    return threads


class Team:
    """Workers 0 to n − 1; the caller is worker 0. Threads start with the first work and end with the team."""

    def __init__(self, workers: int = 1) -> None:
        self.workers = workers
        self._queues: list[SimpleQueue[Callable[[], None] | None]] = []
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Team:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        for queue in self._queues:
            queue.put(None)
        for thread in self._threads:
            thread.join()
        self._queues, self._threads = [], []

    def run(self, tasks: Sequence[Callable[[int], T]]) -> list[T]:
        """The results of independent tasks, each told its worker; the first error, once all have ended."""
        if self.workers == 1 or len(tasks) < 2:
            return [task(0) for task in tasks]
        self._start()
        results: list[T | None] = [None] * len(tasks)
        errors: list[BaseException | None] = [None] * len(tasks)
        done: SimpleQueue[None] = SimpleQueue()

        def work(worker: int) -> None:
            for i in range(worker, len(tasks), self.workers):
                try:
                    results[i] = tasks[i](worker)
                except BaseException as error:  # a worker must answer, whatever happened
                    errors[i] = error
                    break
            done.put(None)

        busy = min(self.workers, len(tasks))
        for worker in range(1, busy):
            self._queues[worker - 1].put(partial(work, worker))
        work(0)
        for _ in range(busy):
            done.get()
        for error in filter(None, errors):
            raise error
        return cast(list[T], results)

    def _start(self) -> None:
        while len(self._threads) < self.workers - 1:
            queue: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
            thread = threading.Thread(target=_serve, args=(queue,), daemon=True)
            thread.start()
            self._queues.append(queue)
            self._threads.append(thread)


class Aside(Generic[T]):
    """A task done by a thread from `begin` on, or without `is_beside` when it is asked for."""

    def __init__(self, task: Callable[[], T], is_beside: bool) -> None:
        self._task: Callable[[], T] = task
        self._pool = futures.ThreadPoolExecutor(1) if is_beside else None
        self._begun: Future[T] | None = None

    def __enter__(self) -> Aside[T]:
        return self

    def __exit__(self, *error: object) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def begin(self) -> None:
        if self._pool is not None and self._begun is None:
            self._begun = self._pool.submit(self._task)

    def wait(self) -> None:
        """Until it is done, where it has begun."""
        if self._begun is not None:
            self._begun.exception()

    def get(self) -> T:
        """The task's result; its error is raised here."""
        return self._task() if self._begun is None else self._begun.result()


def _serve(queue: SimpleQueue[Callable[[], None] | None]) -> None:
    while (task := queue.get()) is not None:
        task()
