"""The search for scenarios and models below paths, and for the files beside them: expectations, inputs and defaults.

The first items run while the search goes on.
"""

import os
import re
import shlex
import stat
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache, lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import Final

from scenario_runner.errors import MissingFileError, SandboxError, UsageError
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.errors.text import Json, close_files_help, close_names, reason_of
from scenario_runner.files.input import CHECK_FILE, SCENARIO_FILE, ParameterizedFile, is_model, is_stream, read_file
from scenario_runner.files.parameters import as_options
from scenario_runner.files.sandbox import around, check_path, open_file
from scenario_runner.suite.combinations import FILES_KEPT, file_text, values_of_scenario, variants
from scenario_runner.suite.outcomes import Item, SuiteProblems

SUITE_FILE: Final = "suite.json"
"""The name of a file with defaults for the items in a folder and below."""
# Files that are no scenarios, whatever they contain.
_OTHER_NAMES: Final = frozenset({"manifest.json", "results.json"})
_EXTENSIONS: Final = (".json", ".vgf", ".pte")  # of files that may be items
NOT_SEARCHED: Final = ".not-searched"
"""A folder with this file is searched only if the user names the folder."""
# The strings and brackets of a JSON text. A string without an end reaches to the end of the text.
_TOKEN: Final = re.compile(rb'"((?:[^"\\]|\\.)*+)(?:"\s*(:?)|\\?\Z)|[{}\[\]]', re.DOTALL)
_KEYS: Final = (b"commands", b"resources")
_MOST_BYTES_LOOKED_AT: Final = 1 << 20
_MOST_SHOWN: Final = 10


class Discovery:
    """The items at some paths, in the order of the paths. Items in a folder are sorted by name.

    A path is a scenario, a model, a folder, ``@FILE`` for a list of paths, or ``-`` for a list on standard input. Ids
    are relative to ``root``. Files are opened as late as possible, and each item comes once. An unreadable file is a
    problem and stops nothing. A named file is an item even if it does not exist.
    """

    def __init__(self, root: str, problems: SuiteProblems, standard_input: int = 0) -> None:
        self._root = os.path.abspath(root)
        self._below = os.path.join(self._root, "")
        self._problems = problems
        self._input = standard_input  # a descriptor
        self.ids: set[str] = set()
        """The ids of the items found so far."""
        self.has_refused = False
        """True after an error about a path without an item."""
        self._searched: dict[str, str] = {}
        self._folders: set[str] = set()  # with names that were compared with the names of expectations
        # the items of a folder share files, which are read once
        self._text = lru_cache(FILES_KEPT)(file_text)
        above = cache(partial(suite_files, root=self._root))
        self._suite_files = cache(partial(suite_files, root=self._root, above=above))
        self._variants = lru_cache(FILES_KEPT)(self._find_variants)

    def items(self, paths: Iterable[str]) -> Iterator[Item]:
        """Yield the items as they are found."""
        for path in paths:
            yield from self._list(path) if path == "-" or path.startswith("@") else self._path(path)

    def _path(self, path: str) -> Iterator[Item]:
        path, variant = _split(path)
        try:
            is_folder = stat.S_ISDIR(os.stat(path).st_mode)
        except (OSError, ValueError):
            is_folder = False  # the item is missing, and the run says so
        if is_folder:
            folder = os.path.abspath(path)
            self._searched = {}
            above = frozenset(os.path.realpath(parent) for parent in Path(folder).parents)
            yield from self._folder(folder, os.path.realpath(folder), above)
        else:
            file = os.path.abspath(path)
            self._report_misspelt(os.path.dirname(file))
            yield from self._item(file, variant=variant)

    def _list(self, path: str) -> Iterator[Item]:
        """Yield the items of a list. Lines of standard input count as they arrive.

        Invalid UTF-8 stays in the names; a caller refuses each such name.
        """
        name = "standard input" if path == "-" else path[1:]
        try:
            if path == "-":
                with open(self._input, encoding="utf-8-sig", errors="surrogateescape", closefd=False) as lines:
                    yield from self._listed(lines, name, os.getcwd())
            else:
                text = read_file(name).decode("utf-8-sig", "surrogateescape")
                yield from self._listed(text.split("\n"), name, os.path.dirname(os.path.abspath(name)))
        except (OSError, ValueError) as error:
            help = close_files_help(name, error) if isinstance(error, OSError) else None
            self._refuse("SR-SUITE-006", name, f"the list cannot be read: {reason_of(error)}", help)

    def _listed(self, lines: Iterable[str], name: str, folder: str) -> Iterator[Item]:
        """Yield the items of lines. Paths are relative to the root, like ids, or to the folder of the list."""
        for number, line in enumerate(lines, 1):
            text = line.strip()
            if not text or text.startswith("#"):
                continue
            if not _is_plain(text):
                self._not_plain(name, text, number)
                continue
            path = os.path.join(self._root, line.rstrip("\r\n"))
            if not _exists(path):  # the name does not end in a space
                path = os.path.join(self._root, text)
            if not _exists(path) and _exists(os.path.join(folder, text)):
                path = os.path.join(folder, text)
            yield from self._path(path)

    def _folder(self, folder: str, place: str, above: frozenset[str]) -> Iterator[Item]:
        """Yield the items below a folder with the real path ``place``. ``above`` has the real paths above."""
        try:
            check_path(folder)
            with os.scandir(folder) as scan:
                entries = sorted(scan, key=lambda entry: entry.name)
        except OSError as error:
            self._refuse("SR-SUITE-006", folder, f"the folder cannot be searched: {reason_of(error)}")
            return
        except SandboxError as error:
            self._refuse_access(error)
            return
        names = frozenset(entry.name for entry in entries)
        if place in above:
            message = "the link leads to a parent folder, and is not followed"
            self._problems.found("SR-SUITE-007", folder, message, severity="warning")
            return
        if self._searched.setdefault(place, folder) != folder:
            return  # another link has led here already
        if len(self._searched) > 1 and NOT_SEARCHED in names:
            return
        self._report_orphans(folder, names)
        self._report_misspelt(folder, names)
        for entry in entries:
            name = entry.name
            try:
                is_folder = entry.is_dir()
            except OSError:
                is_folder = False
            if name.startswith(".") if is_folder else not name.endswith(_EXTENSIONS):
                continue
            if not _is_plain(name):
                self._not_plain(folder, name)
            elif is_folder:
                may_lead_elsewhere = entry.is_symlink() or os.name == "nt"  # which has junctions
                below = os.path.realpath(entry.path) if may_lead_elsewhere else os.path.join(place, name)
                yield from self._folder(entry.path, below, above | {place})
            elif self._is_item(entry.path, names):
                yield from self._item(entry.path, names)

    def _report_orphans(self, folder: str, names: Collection[str]) -> None:
        """Report expectations without a scenario or model."""
        for name in sorted(filter(is_expectations_file, names)):
            stem = name.removesuffix(CHECK_FILE).removesuffix(".") or _SCENARIO
            if not any(stem + extension in names for extension in _EXTENSIONS):
                message = f"these expectations belong to no scenario: there is no {stem}.json beside them"
                help = f"{CHECK_FILE} is for {_SCENARIO}.json, NAME.{CHECK_FILE} for NAME.json"
                self._problems.found("SR-SUITE-018", os.path.join(folder, name), message, help, severity="warning")

    def _report_misspelt(self, folder: str, names: frozenset[str] = frozenset()) -> None:
        """Report files and folders that are named almost like the missing expectations of an item."""
        if folder in self._folders:
            return
        self._folders.add(folder)
        with suppress(OSError):  # the run reports it
            names = names or frozenset(os.listdir(folder))
        for name, known in _misspelt(names):
            path = os.path.join(folder, name)
            if os.path.isdir(path) != known.endswith(CHECK_FILE) and not _is_scenario(path):
                message, help = "is not used, since the name is not known", f"did you mean {known!r}?"
                self._problems.found("SR-SUITE-019", path, message, help, severity="warning")

    def _is_item(self, path: str, beside: Container[str]) -> bool:
        try:
            return is_item(path, beside)
        except OSError as error:
            self._problems.found("SR-SUITE-006", path, f"the file cannot be read: {reason_of(error)}")
        except SandboxError as error:
            self._refuse_access(error)
        return False

    def _item(self, path: str, beside: Container[str] | None = None, variant: str = "") -> Iterator[Item]:
        """Yield an item for each parameter combination of a scenario or model, or only the item ``variant``."""
        id = path.removeprefix(self._below).replace(os.sep, "/")
        if not _is_plain(id):
            self._not_plain(None, path)
            return
        items = self._variants(id, path, expectations_file(path, beside))
        if variant and id + variant not in items:
            names = ", ".join(item.variant for item in islice(items.values(), _MOST_SHOWN)) or "no parameters"
            message = f"no combination of parameters is called {variant}"
            self._refuse("SR-SUITE-017", path, message, f"combinations: {names}")
            return
        for name, item in {id + variant: items[id + variant]}.items() if variant else items.items():
            if name not in self.ids:
                self.ids.add(name)
                yield item

    def _find_variants(self, id: str, path: str, expectations: str | None) -> dict[str, Item]:
        """Find the items of a scenario or a model, by id."""
        try:
            one = Item(id, path, expectations, self._suite_files(os.path.dirname(path)))
            with around(path, *one.defaults):
                return {item.id: item for item in variants(one, self._text)}
        except SandboxError as error:
            self._refuse_access(error)
            return {}

    def _refuse(self, code: str, path: str, message: str, help: str | None = None) -> None:
        self.has_refused = True
        self._problems.found(code, path, message, help)

    def _refuse_access(self, error: SandboxError) -> None:
        self.has_refused = True
        self._problems.failed(error)

    def _not_plain(self, path: str | None, name: str, line: int | None = None) -> None:
        message = f"the name {os.fsencode(name)!r} has control characters or invalid UTF-8, and is left out"
        help = "rename the file: lists and reports cannot hold this name"
        self._problems.found("SR-SUITE-008", path, message, help, line=line)


def _split(path: str) -> tuple[str, str]:
    """Split the name of an item, such as ``a.json[4]``, into the path and the combination."""
    ends = (at for at, letter in enumerate(path) if letter == "[")
    end = next((at for at in ends if os.path.isfile(path[:at])), len(path))
    return (path, "") if os.path.lexists(path) else (path[:end], path[end:])


def check_paths(paths: Iterable[str]) -> None:
    """Raise MissingFileError for paths of a command line that do not exist. A list may have such paths."""
    missing = [path for path in paths if path != "-" and not path.startswith("@") and not _exists(path)]
    if missing:
        code, message = MissingFileError.code, "no such file or folder"
        problems = [Diagnostic(code, "error", None, message, close_files_help(path), path=path) for path in missing]
        raise MissingFileError(problems)


def _exists(path: str) -> bool:
    return os.path.exists(_split(path)[0])


def _misspelt(names: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Yield the names in a folder that resemble the missing expectations of an item, with the right names."""
    lacking: dict[str, tuple[str, str]] = {}
    for name in names:
        stem, extension = os.path.splitext(name)
        if extension not in _EXTENSIONS or _is_other(name) or (is_model(name) and f"{stem}.json" in names):
            continue  # beside a scenario with the same name, the expectations belong to the scenario
        known = _name_beside(name, CHECK_FILE), _name_beside(name, _FOLDER)
        if names.isdisjoint(known):
            lacking[stem] = known
    for name in sorted(names) if lacking else ():
        parts = name.split(".")
        for count, word in ((2, CHECK_FILE), (1, _FOLDER)):
            stem, rest = ".".join(parts[:-count]) or _SCENARIO, ".".join(parts[-count:])
            if stem not in lacking or (count == 2 and not rest.endswith(".json")):
                continue
            if rest.startswith("expect") or close_names(rest, [word], cutoff=0.8):
                yield name, lacking[stem][2 - count]
                break


def listed(item: Item) -> str:
    """Format the name of an item as a line of a list. GitHub takes "::" for a command."""
    return f"./{item.id}" if item.id.startswith(("#", "::")) or item.id[0].isspace() else item.id


def item_of(path: str, id: str, root: str | None = None) -> Item:
    """Make the item of a scenario or a model, with the files beside it. Defaults above ``root`` do not count."""
    return Item(id, path, expectations_file(path), suite_files(os.path.dirname(os.path.abspath(path)), root))


def item_at(path: str) -> Item:
    """Make the item of a file in a command line. Raises UsageError for the name of a combination."""
    file, variant = _split(path)
    item = item_of(os.path.abspath(file), file, os.getcwd())
    if variant:
        values = next((item.parameters for item in variants(item) if item.variant == variant), {})
        help = shlex.join([file, *as_options(values)]) if values else f"{file} --set NAME=VALUE"
        message = "names an item of a suite, expected a file"
        raise UsageError(Diagnostic(UsageError.code, "error", None, message, help, path))
    return item


def scenario_with(path: str, parameters: Mapping[str, Json]) -> str | ParameterizedFile:
    """Return the path of a scenario in a command line, with values. Raises the same errors as `values_of_scenario`."""
    values = parameters if is_stream(path) else values_of_scenario(item_at(path), parameters)
    return ParameterizedFile(path, values) if values else path


def is_item(path: str, beside: Container[str] | None = None) -> bool:
    """Return whether a file is a scenario, or a model with expectations. Raises OSError.

    Beside a scenario with the same name, the expectations belong to the scenario.
    """
    if is_model(path):
        has_some = expectations_file(path, beside) is not None or _is_there(expected_folder(path), beside)
        return has_some and not _is_there(f"{os.path.splitext(path)[0]}.json", beside)
    name = os.path.basename(path)
    has_some = name != SUITE_FILE and expectations_file(path, beside) is not None
    return not _is_other(name) and (has_some or _has_scenario(path))


def _is_other(name: str) -> bool:
    """Return whether a .json file's name rules out a scenario."""
    return name in _OTHER_NAMES or is_expectations_file(name)


def _has_scenario(path: str) -> bool:
    if is_stream(path):  # reading would wait for a writer
        return False
    with open(open_file(path), "rb", buffering=0) as file:
        return looks_like_scenario(file.read(_MOST_BYTES_LOOKED_AT))


def looks_like_scenario(text: bytes) -> bool:
    """Return whether a text begins like a JSON object with the key "commands" or "resources"."""
    text = text.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not text.startswith(b"{"):
        return False
    depth = 0
    for token in _TOKEN.finditer(text):
        bracket = token[0]
        if bracket in (b"{", b"["):
            depth += 1
        elif bracket in (b"}", b"]"):
            depth -= 1
        elif depth == 1 and token[2] and token[1] in _KEYS:
            return True
    return False


def _is_plain(name: str) -> bool:
    """Return whether a name has no control characters and is valid UTF-8."""
    return name.isprintable() or not any(
        ord(letter) < 0x20 or 0x7F <= ord(letter) < 0xA0 or 0xD800 <= ord(letter) < 0xE000 or letter in "\u2028\u2029"
        for letter in name
    )


MODEL_KEYS: Final = ("inputs", "shaders", "push_constants")
"""The keys of expectations that name files for a model."""
_SCENARIO: Final = SCENARIO_FILE.removesuffix(".json")  # the files beside scenario.json need no prefix
_FOLDER: Final = "expected"


def expectations_file(scenario_path: str, beside: Container[str] | None = None) -> str | None:
    """Find the expectations of a scenario or a model, if any.

    The file is ``check.json`` beside ``scenario.json``, or ``NAME.check.json`` beside ``NAME.json`` or ``NAME.vgf``.
    """
    path = _beside(scenario_path, CHECK_FILE)
    return path if _is_there(path, beside) else None


def _is_there(path: str, beside: Container[str] | None) -> bool:
    """Return whether a path exists. ``beside`` has the names in the folder, if they are known."""
    return os.path.lexists(path) if beside is None else os.path.basename(path) in beside


def suite_files(
    folder: str, root: str | None = None, above: Callable[[str], tuple[str, ...]] | None = None
) -> tuple[str, ...]:
    """Find the files ``suite.json`` in a folder and the folders above, up to ``root``, the nearest first.

    ``above`` may be a cache of this function, for the folders above.
    """
    found: list[str] = []
    while True:
        path = os.path.join(folder, SUITE_FILE)
        if os.path.lexists(path) and not _is_scenario(path):
            found.append(path)
        parent = os.path.dirname(folder)  # pathlib takes three times as long
        if folder in (root, parent):
            return tuple(found)
        if above is not None:
            return (*found, *above(parent))
        folder = parent


def _is_scenario(path: str) -> bool:
    with suppress(OSError), around(path):
        return _has_scenario(path)
    return False  # reading the defaults reports the error


def is_expectations_file(path: str) -> bool:
    """Return whether a file name belongs to expectations."""
    return path.endswith(CHECK_FILE) and os.path.basename(path).removesuffix(CHECK_FILE)[-1:] in ("", ".")


def expected_folder(scenario_path: str) -> str:
    """Return the default folder of expected files, which need not exist.

    The folder is ``expected`` beside ``scenario.json``, or ``NAME.expected`` beside ``NAME.json``.
    """
    return _beside(scenario_path, _FOLDER)


def inputs_folder(model_path: str) -> str:
    """Return the default folder of a model's inputs, ``NAME.inputs`` beside ``NAME.vgf``. The folder need not exist."""
    return _beside(model_path, "inputs")


def _beside(path: str, name: str) -> str:
    folder, file = os.path.split(path)
    return os.path.join(folder, _name_beside(file, name))


def _name_beside(file: str, name: str) -> str:
    """Return the name of a file beside a scenario or model: ``NAME.check.json``, but no prefix for scenario.json."""
    stem = os.path.splitext(file)[0]
    return name if stem == _SCENARIO and not is_model(file) else f"{stem}.{name}"
