"""Write docs/images/report.png, README's picture of a report: ``python -m tools.report_picture [FILE]``.

The program runs a suite with a wrong picture, and Chromium or a related browser shows the report (tests/browser.py).
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

from tests.browser import BROWSER

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "images" / "report.png"
# GitHub shows 830 pixels. The scale gives two pixels for each pixel of the page.
WIDTH, HEIGHT, SCALE = 980, 628, 2
COLOURS = 64
# The list in the report only has room for short names.
IMAGES = {"barriers": "life", "blur_and_tone_map": "blur", "linear_filter": "filter", "mip_levels": "levels"}
DEMO = {"fail": "ring", "crash": "address", "warn": "root", "pass": "double"}


def main(target: Path) -> None:
    if BROWSER is None:
        sys.exit("error: no browser is installed; on Debian: apt-get install chromium")
    with tempfile.TemporaryDirectory(prefix="scenario-picture-") as name:
        folder = Path(name)
        make_suite(folder / "images")
        command = ["test", "images", "--retries", "0", "--results", "results", "--html", "report.html", "--quiet"]
        subprocess.run([str(ROOT / "tools" / "run"), *command], cwd=folder, stdout=subprocess.DEVNULL)
        screenshot(folder / "report.html", folder / "page.png")
        picture = Image.open(folder / "page.png").convert("RGB").quantize(COLOURS)
        target.parent.mkdir(parents=True, exist_ok=True)
        picture.save(target, optimize=True)
    print(f"{target}: {target.stat().st_size:,} bytes")


def make_suite(folder: Path) -> None:
    """Copy examples with images, and scenarios of the demo; three of these do not pass."""
    for name, copied in IMAGES.items():
        shutil.copytree(ROOT / "scenarios" / "images" / name, folder / copied, ignore=shutil.ignore_patterns("out"))
    demo = ROOT / "scenarios" / "suite_demo"
    for name, copied in DEMO.items():
        for suffix in (".json", ".check.json"):
            if (demo / f"{name}{suffix}").exists():
                shutil.copy(demo / f"{name}{suffix}", folder / f"{copied}{suffix}")
    shutil.copytree(demo / "fail.expected", folder / "ring.expected")
    for source in [*demo.glob("*.comp"), *demo.glob("*.npy")]:
        shutil.copy(source, folder)


def screenshot(page: Path, target: Path) -> None:
    """Save the page, with the wrong picture opened, as a PNG file."""
    command = [str(BROWSER), "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    command += [f"--force-device-scale-factor={SCALE}", f"--window-size={WIDTH},{HEIGHT}"]
    command += [f"--user-data-dir={page.with_name('profile')}", f"--screenshot={target}"]
    subprocess.run([*command, f"{page.as_uri()}#images/ring.json"], check=True, timeout=120, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURE)
