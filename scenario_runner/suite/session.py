"""One run of a suite: items go to the workers; their outcomes get verdicts, which are recorded and passed on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, Protocol

from scenario_runner.suite.hashes import item_hashes
from scenario_runner.suite.journal import Journal
from scenario_runner.suite.lists import Lists
from scenario_runner.suite.records import Hashes, Item, Outcome, Result, is_bad
from scenario_runner.suite.running.options import Again, Finished
from scenario_runner.suite.verdicts import Row, Rules


class ItemRunner(Protocol):
    """The interface that `running.workers.Workers` and `cluster_workers.ClusterWorkers` share."""

    def run(self, items: Iterable[Item], *, again: Again) -> Iterator[Finished]:
        """Run items, taken as workers become free, and yield each when it needs no further attempt."""

    def stop(self) -> None:
        """Begin no further item; those in flight are finished."""


class Limits(NamedTuple):
    """Conditions that end a run before its last item.

    After ``fail_fast`` unexpected failures no further item runs, and the rest has no result. After ``max_failures`` the
    rest is skipped, with that as the reason. With ``strict_environment`` the run ends at the first item for which this
    machine lacks a tool.
    """

    fail_fast: int | None = None
    max_failures: int | None = None
    strict_environment: bool = False


class Session:
    """Life cycle: created; `run` once; then ``rows`` has the verdict of every item, and ``bad`` the number of failures.

    With a ``journal`` results are written there as they arrive, with hashes if that of the program is given. An item
    whose hashes ``earlier`` knows keeps its earlier result; lists may have changed since.
    """

    def __init__(
        self,
        lists: Lists,
        rules: Rules,
        limits: Limits,
        take: Callable[[Result], None],
        *,
        journal: Journal | None = None,
        program_hash: str | None = None,
        earlier: Callable[[str, Hashes], Result | None] | None = None,
    ) -> None:
        self.rows: dict[str, Row] = {}
        self.bad = 0
        self.taken_over = 0
        self.is_complete = False
        self.lists = lists
        self.rules = rules
        self._limits = limits
        self._take = take
        self._journal = journal
        self._program_hash = program_hash
        self._earlier = earlier
        self._hashes: dict[str, Hashes] = {}  # of items in flight, as their files were before they ran
        self._stopped = False
        self._running = 0

    def run(self, items: Iterable[Item], workers: ItemRunner) -> None:
        """Run the items, and pass each result to ``take``. After an exception, such as Ctrl-C, earlier results stay."""
        items = iter(items)
        for finished in workers.run(self._to_run(items), again=self._again):
            self._running -= 1
            item = finished.item
            verdict = self.rules.verdict(self.lists.expected(item.id), finished.attempts)
            hashes = self._hashes.pop(item.id, Hashes())
            self._add(Result(item, verdict, finished.attempts, finished.device, finished.driver, hashes, finished.host))
            is_enough = self._limits.fail_fast is not None and self.bad >= self._limits.fail_fast
            is_enough = is_enough or (self._limits.strict_environment and verdict == "MissingTool")
            if is_enough and not self._stopped:
                self._stopped = True
                workers.stop()
        self.is_complete = not self._running and next(items, None) is None

    def _to_run(self, items: Iterator[Item]) -> Iterator[Item]:
        """Yield the items that have to run; the others get their results here."""
        most = self._limits.max_failures
        while not self._stopped and (item := next(items, None)) is not None:
            if self.lists.skips.match(item.id):
                self._add(Result(item, "Skip"))
                continue
            hashes = None if self._program_hash is None else item_hashes(item, self._program_hash)
            if hashes is not None and self._take_over(item, hashes):
                continue
            if most is not None and self.bad >= most:
                reason = f"not run: --max-failures {most} was reached"
                self._add(Result(item, "Skip", (Outcome("Skip", reason=reason),)))
                continue
            if hashes is not None:
                self._hashes[item.id] = hashes
            self._running += 1
            yield item

    def _take_over(self, item: Item, hashes: Hashes) -> bool:
        """Reuse the earlier result of an item, if there is one and nothing that it depends on has changed."""
        before = None if self._earlier is None else self._earlier(item.id, hashes)
        expected = self.lists.expected(item.id)
        attempts = None if before is None else self.rules.replayed(expected, before.attempts)
        if before is None or attempts is None:
            return False
        result = before._replace(item=item, verdict=self.rules.verdict(expected, attempts), attempts=attempts)
        self.taken_over += 1
        self._add(result, is_known=result == before)
        return True

    def _again(self, item: Item, attempts: tuple[Outcome, ...]) -> bool:
        return not self._stopped and self.rules.again(self.lists.expected(item.id), attempts)

    def _add(self, result: Result, *, is_known: bool = False) -> None:
        self.rows[result.item.id] = Row(result.verdict, result.seconds)
        self.bad += is_bad(result.verdict)
        if self._journal is not None and not is_known:
            self._journal.add(result)
        self._take(result)
