"""README is short, and what it shows and links to exists."""

import re
from pathlib import Path

import imageio.v3
import pytest

from tests.browser import needs_browser
from tools.report_picture import HEIGHT, PICTURE, SCALE, WIDTH, main


def test_readme_is_short(checkout: Path) -> None:
    """It has fewer than 120 lines, and the picture less than 150 kB, sharp where 830 pixels are shown."""
    text = (checkout / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) < 120
    assert f"]({PICTURE.relative_to(checkout)})" in text
    assert PICTURE.stat().st_size < 150_000
    assert imageio.v3.improps(PICTURE).shape[:2] == (HEIGHT * SCALE, WIDTH * SCALE)


def test_links_of_readme_lead_somewhere(checkout: Path) -> None:
    """Each link is a file or folder of the checkout, and its anchor a heading there."""
    links = re.findall(r"\]\(([^)#]+)(?:#([\w-]+))?\)", (checkout / "README.md").read_text(encoding="utf-8"))
    assert len(links) > 40
    for path, anchor in links:
        assert (checkout / path).exists(), path
        if anchor:
            headings = re.findall(r"^#+ (.*)$", (checkout / path).read_text(encoding="utf-8"), re.M)
            assert anchor in {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}, path


@needs_browser
@pytest.mark.heavy
def test_the_picture_shows_a_difference(tmp_path: Path) -> None:
    """The picture, made again, has the size of README's, a light page, and the blue of a ring."""
    main(tmp_path / "report.png")
    pixels = imageio.v3.imread(tmp_path / "report.png", mode="RGB").astype(int)
    assert pixels.shape == (HEIGHT * SCALE, WIDTH * SCALE, 3)
    assert (pixels.min(axis=2) > 240).mean() > 0.6
    assert (abs(pixels - (51, 153, 255)).max(axis=2) < 8).mean() > 0.01
