"""``bench --compare A.json B.json``: what changed beyond noise."""

from __future__ import annotations

from scenario_runner.cli.bench_report import duration, print_table
from scenario_runner.errors import FileError
from scenario_runner.timing.samples import MIN_SAMPLES, Change, ScenarioSamples, compare, keyed, read, summary
from scenario_runner.visible import one_line

SLOWER_EXIT_CODE = 1
# What the host's clock and its interruptions leave unclear.
_HOST_RESOLUTION_NS = 1000.0


def show_comparison(before_path: str, after_path: str, *, threshold_percent: float) -> int:
    """Print every change; returns 1 where something is slower, else 0. Raises FileError."""
    before, after = read(before_path), read(after_path)
    pairs, alone = _pairs(before, after)
    if not pairs:
        raise FileError(f"{before_path} and {after_path} have no scenario in common")
    slower = 0
    for one, other in pairs:
        slower += _show(one, other, threshold_percent)
    for name in alone:
        print(f"{one_line(name)}: only in one of the files")
    return SLOWER_EXIT_CODE if slower else 0


def _pairs(
    before: list[ScenarioSamples], after: list[ScenarioSamples]
) -> tuple[list[tuple[ScenarioSamples, ScenarioSamples]], list[str]]:
    """The scenarios in both, by name, and the names of the others; two single scenarios belong together."""
    if len(before) == len(after) == 1:
        return [(before[0], after[0])], []
    others = {each.scenario: each for each in after}
    names = {each.scenario for each in before}
    pairs = [(each, others[each.scenario]) for each in before if each.scenario in others]
    return pairs, sorted(names ^ others.keys())


def _show(before: ScenarioSamples, after: ScenarioSamples, threshold_percent: float) -> int:
    """Print the changes of one scenario; returns how many rows are slower."""
    print(f"{one_line(after.scenario)}: {before.count} runs before, {after.count} after")
    if before.device != after.device:
        print(f"  the devices differ: {one_line(before.device)} before, {one_line(after.device)} after")
    rows, others = dict(keyed(before)), dict(keyed(after))
    changes: list[tuple[str, Change]] = []
    for key, row in rows.items():
        if key in others:
            resolution_ns = 2 * max(before.period_ns, after.period_ns) if row.kind == "device" else _HOST_RESOLUTION_NS
            change = compare(
                summary(row.samples),
                summary(others[key].samples),
                threshold_percent=threshold_percent,
                resolution_ns=resolution_ns,
            )
            name = row.name if row.command is None else f"{row.command} {row.name}"
            changes.append((f"{row.kind}: {one_line(name)}", change))
    counts = {
        verdict: sum(change.verdict == verdict for _, change in changes)
        for verdict in ("slower", "faster", "same", "unknown")
    }
    lines = [
        (
            name,
            duration(change.before.median),
            duration(change.after.median),
            f"{change.percent:+.1f} %",
            duration(change.noise),
            change.verdict,
        )
        for name, change in changes
        if change.verdict in ("slower", "faster")
    ]
    if lines:
        print_table(("", "before", "after", "change", "noise", ""), lines)
    unknown = f", {counts['unknown']} with fewer than {MIN_SAMPLES} samples" if counts["unknown"] else ""
    lost = len(rows.keys() ^ others.keys())
    different = f", {lost} in one file alone" if lost else ""
    print(f"  {counts['slower']} slower, {counts['faster']} faster, {counts['same']} unchanged{unknown}{different}")
    return counts["slower"]
