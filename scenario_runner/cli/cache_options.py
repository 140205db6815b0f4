"""The options of ``run`` for pipeline caches, as the reference runner names them."""

from __future__ import annotations

import argparse
from collections.abc import Collection
from typing import TYPE_CHECKING

from scenario_runner.errors import UsageError

if TYPE_CHECKING:
    from scenario_runner.run.pipeline_caching import PipelineCaching

_SWITCH = "--pipeline-caching"
_CLEAR = "--clear-pipeline-cache"
_FAIL = "--fail-on-pipeline-cache-miss"
_FLAGS = {
    _SWITCH: "keep the driver's pipelines in a file for the next process",
    _CLEAR: f"with {_SWITCH}: remove the scenario's file first",
    _FAIL: f"with {_SWITCH}: fail where a pipeline is not in the file that was loaded",
}
_FOLDER = "--cache-path"
OPTIONS = (*_FLAGS, _FOLDER)


def add_pipeline_cache_options(parser: argparse.ArgumentParser, wanted: Collection[str]) -> None:
    """Define those options that are in ``wanted``: each takes a while."""
    for option, purpose in _FLAGS.items():
        if option in wanted:
            parser.add_argument(option, action="store_true", help=purpose)
    if _FOLDER in wanted:
        purpose = f"with {_SWITCH}: an existing folder for the files (default: in the user's cache folder)"
        parser.add_argument(_FOLDER, metavar="DIR", help=purpose)


def pipeline_caching(options: argparse.Namespace) -> PipelineCaching | None:
    """What the options ask for. Raises UsageError for options that exclude each other, FileError for the folder."""
    given = vars(options)
    if not given.get("pipeline_caching"):
        from scenario_runner.cli.messages import write

        for option in (_CLEAR, _FAIL, _FOLDER):
            if given.get(option.lstrip("-").replace("-", "_")):
                write("warning", f"option {option} has no effect without {_SWITCH}")
        return None
    clear = bool(given.get("clear_pipeline_cache"))
    fail_on_miss = bool(given.get("fail_on_pipeline_cache_miss"))
    if clear and fail_on_miss:
        raise UsageError(
            f"{_CLEAR} and {_FAIL} exclude each other: a cache that was cleared has no pipelines",
            help=f"fill the cache by a run with {_SWITCH} alone, then give {_FAIL}",
        )
    from scenario_runner.run.pipeline_caching import PipelineCaching

    return PipelineCaching(given.get("cache_path"), clear=clear, fail_on_miss=fail_on_miss)
