"""An MkDocs hook, which adds files outside docs/ as pages and resolves links between files of the checkout.

The pages are CommonMark with tables, which MkDocs reads slightly differently: the hook warns about differences.
"""

import logging
import re
from collections import Counter
from pathlib import Path
from posixpath import dirname, join, normpath, relpath

from markdown.extensions.toc import slugify
from markdown_it import MarkdownIt
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "scenarios/README.md": "examples.md",
    "scenarios/suite_demo/README.md": "suite_demo.md",
}
SOURCES = {uri: path for path, uri in PAGES.items()}
LINK = re.compile(r"\[(?P<text>[^][]*)\]\((?P<path>(?![a-z]+:|#)[^)#\s]+)(?P<anchor>#[^)\s]+)?\)")

TAG = re.compile(r"<(h[1-6]|li|ol|p|pre|td|ul)\b")
COMMON_MARK = MarkdownIt("commonmark").enable("table")


def on_config(config: MkDocsConfig) -> None:
    """Use the code as anchor of a code's heading, so that a new title breaks no link."""
    config.mdx_configs["toc"]["slugify"] = anchor_of


def anchor_of(heading: str, separator: str) -> str:
    """Return a heading's anchor: the code from `SR-BIND-003: title`, otherwise all words."""
    code = re.match(r"SR-[A-Z]+-\d+(?=: )", heading)
    return slugify(code[0] if code else heading, separator)


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Add the pages outside docs/."""
    for path, uri in PAGES.items():
        files.append(File.generated(config, uri, abs_src_path=str(ROOT / path)))


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let links lead to the site. A link that shows a page's file name now shows the page's title."""
    uri = page.file.src_uri
    folder = dirname(SOURCES.get(uri, f"docs/{uri}"))

    def on_site(link: re.Match[str]) -> str:
        text, path, anchor = link.group("text", "path", "anchor")
        file = file_of(normpath(join(folder, path)))
        if text == path and file.endswith(".md"):
            text = (ROOT / file).read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        target = PAGES.get(file) or file.removeprefix("docs/")
        if target == file and files.get_file_from_path(file) is None:  # a file outside docs/, copied unchanged
            files.append(File.generated(config, file, abs_src_path=str(ROOT / file)))
        return f"[{text}]({relpath(target, dirname(uri) or '.')}{anchor or ''})"

    return LINK.sub(on_site, markdown)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> None:
    """Warn about a page that CommonMark shows differently, for example because lists nest with fewer spaces."""
    if ":::" not in page.markdown:
        here, there = (Counter(TAG.findall(text)) for text in (html, COMMON_MARK.render(page.markdown)))
        if here != there:
            logging.getLogger("mkdocs").warning(
                "%s: elements are %s, in CommonMark %s", page.file.src_uri, dict(here - there), dict(there - here)
            )


def file_of(path: str) -> str:
    """Return a file's path, or the nearest README's path for a folder."""
    while (ROOT / path).is_dir():
        readme = join(path, "README.md")
        path = readme if (ROOT / readme).is_file() else dirname(path)
    return path
