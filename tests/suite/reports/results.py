"""Results as a suite gives them, of every verdict, for the tests of the reports."""

from pathlib import Path

import imageio.v3
import numpy

from scenario_runner.suite.outcomes import Item, Outcome, OutputCheck, Result
from scenario_runner.suite.reports.summary import SuiteInfo

DEVICES = (("uuid-0", "software device"), ("uuid-1", "fast device"))
HOSTILE = "</script><script>alert(1)</script>\x1b[31m\x00 \ud800 & \u202e"


def info(folder: Path) -> SuiteInfo:
    """A suite that was started in ``folder``, and has its results in results/ there."""
    command = ("scenario-runner", "test", "suite")
    results = str(folder / "results")
    return SuiteInfo(
        "a suite <1>", 1.7e9, 12.5, DEVICES, ("driver 1.2",), "host", "0.1.0", command, str(folder), results
    )


def item(folder: Path, name: str) -> Item:
    return Item(f"{name}/scenario.json", str(folder / "suite" / name / "scenario.json"))


def pictures(folder: Path, name: str, size: int = 4) -> dict[str, str]:
    """PNG files of an output in the folder of the results: black, white, and gray for the error."""
    files = {}
    for what, value in (("expected", 0), ("actual", 255), ("error", 128)):
        path = folder / "results" / name / f"{what}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        imageio.v3.imwrite(path, numpy.full((size, size, 3), value, "u1"))
        files[what] = f"{name}/{what}.png"
    return files


def every_verdict(folder: Path) -> list[Result]:
    """One result of each kind."""
    metrics, elements = {"rmse": 0.25, "psnr": float("inf")}, (("[0, 1, 2]", "0", "255"), ("[1, 1, 0]", "0", "254"))
    wrong = OutputCheck("image", "Fail", "3 of 48 elements differ", metrics, elements, pictures(folder, "fail"))
    failed = Outcome("Fail", 0.25, "image: 3 of 48 elements differ", 0, outputs=(wrong, OutputCheck("sum", "Pass")))
    crashed = Outcome("Crash", 0.5, "ended by SIGSEGV", 12, stack='File "execute.py", line 3 in execute')
    crashed = crashed._replace(output=f"last words {HOSTILE}\n", before=("pass/scenario.json",))
    place = {"path": "scenario.json", "line": 3, "column": 4, "pointer": "/commands/0"}
    text = {"code": "SR-REF-001", "severity": "error", "message": "no resource has the uid 'x'", "help": "write y"}
    passed = Outcome("Pass", 0.004)

    def result(name: str, verdict: str, *attempts: Outcome) -> Result:
        device = DEVICES[len(name) % 2][0] if attempts else ""
        return Result(item(folder, name), verdict, attempts, device, "driver 1.2" if attempts else "")

    return [
        result("pass", "Pass", passed),
        result("images.2d/fail", "Fail", failed),
        result("crash", "Crash", crashed, crashed._replace(seconds=0.125, stack="another stack")),
        result("twice", "Fail", failed, failed._replace(seconds=0.5)),
        result("flake", "Flake", crashed, passed),
        result("known-flake", "KnownFlake", failed),
        result("expected-fail", "ExpectedFail", failed),
        result("improved", "UnexpectedImprovement(Pass)", passed),
        result("timeout", "Timeout", Outcome("Timeout", 10.0, "no result within 10 s", 10)),
        result("missing", "Missing", Outcome("Missing", 0.0, "no resource 'x'", 3, diagnostics=({**text, **place},))),
        result(
            "warn", "Warn", Outcome("Warn", 0.01, "rmse is 0.2", outputs=(OutputCheck("o", "Warn", "rmse is 0.2"),))
        ),
        result("unsupported", "NotSupported", Outcome("NotSupported", 0.001, "no VK_ARM_tensors", 6)),
        result("skipped", "Skip"),
        result(f"hostile {HOSTILE}", "Fail", Outcome("Fail", 0.1, f"reason {HOSTILE}")),
        result("pass", "Pass", passed),  # the same name again
    ]
