"""The items that a host gets, and those of a lost one."""

from scenario_runner.suite.cluster_shards import MOST_LOSSES, Shards, next_size
from scenario_runner.suite.outcomes import Item
from scenario_runner.suite.verdicts import Expected


def shards(count: int) -> Shards:
    return Shards((Item(str(number), f"/nowhere/{number}.json") for number in range(count)), lambda name: Expected())


def taken(shards: Shards, size: int) -> list[Item]:
    return [sent.item for sent in shards.take(size)]


def names(items: list[Item]) -> list[str]:
    return [item.id for item in items]


def test_sizes_follow_the_time() -> None:
    """Shards begin small, grow to 50 while they are fast, and shrink to one item where items take long."""
    assert next_size(0, 0) == 10
    assert next_size(10, 0.1) == 40
    assert next_size(40, 0.1) == next_size(50, 4.0) == 50
    assert next_size(50, 16.0) == 12
    assert next_size(2, 60.0) == next_size(1, 600.0) == 1


def test_items_of_a_lost_host_run_alone() -> None:
    """They come before all others, one by one, and after the last loss not again."""
    given = shards(6)
    first = taken(given, 3)
    assert names(first) == ["0", "1", "2"]
    assert given.lost(first[1:]) == []
    alone = taken(given, 50)
    assert names(alone) == ["1"]
    for _ in range(MOST_LOSSES - 2):
        assert given.lost(alone) == []
        alone = taken(given, 50)
        assert names(alone) == ["1"]
    assert names(given.lost(alone)) == ["1"]
    assert names(taken(given, 50)) == ["2"]
    assert names(taken(given, 2)) == ["3", "4"]
    assert [item.id for item in given.rest()] == ["5"]
    assert not given.has_more()


def test_what_did_not_run_comes_back_in_its_order() -> None:
    """Items that a host could not begin with are given to the next one, in one shard."""
    given = shards(5)
    given.back(taken(given, 3))
    assert names(taken(given, 4)) == ["0", "1", "2", "3"]
