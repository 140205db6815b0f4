"""Run GPU workloads described in JSON on the Vulkan device in front of you."""
