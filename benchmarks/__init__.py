"""Named workloads, measured side by side with other programs: ``python -m benchmarks`` (see docs/benchmarks.md)."""
