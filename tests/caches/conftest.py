"""The layer whose pipeline cache keeps something."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.layers import build_layer


@pytest.fixture(scope="session")
def cache_layer(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Environment variables with which the loader loads the layer; see the C file for those that steer it."""
    source = Path(__file__).with_name("pipeline_cache_layer.c")
    return build_layer(source, tmp_path_factory.mktemp("cache-layer"), "keeps hashes of shaders as pipelines")
