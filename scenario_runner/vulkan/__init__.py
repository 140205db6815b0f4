"""The only package that sees Vulkan. It is given a plan and a source of bytes, and hands back bytes."""
