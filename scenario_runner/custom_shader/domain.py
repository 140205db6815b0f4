"""The domain of custom operations that are shaders, apart: whoever looks for them needs nothing else."""

from __future__ import annotations

from typing import Final

DOMAIN: Final = "com.arm.VulkanCustomShader"
"""The ``domain_name`` of the custom operations that are shaders."""
