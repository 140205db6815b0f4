"""The layer that makes Vulkan calls fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.layers import build_layer


@pytest.fixture(scope="session")
def fault_layer(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Environment variables with which the loader loads the layer; see fault_layer.c for those that steer it."""
    source = Path(__file__).with_name("fault_layer.c")
    return build_layer(source, tmp_path_factory.mktemp("fault-layer"), "makes one call fail")
