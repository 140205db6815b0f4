"""VGF files that scenarios name, read once for as long as they do not change."""

from __future__ import annotations

import os
from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scenario_runner.vgf import Vgf

# A process that runs one model after the other must not keep all of them mapped.
_MOST_KEPT = 4
_kept: OrderedDict[tuple[object, ...], Vgf] = OrderedDict()


def read_model(path: str) -> Vgf:
    """The VGF file at ``path``; the object of the last time, if the file is what it was then.

    So the constants of a model that runs twice are the same objects, and its pipelines are found again. Raises
    FileError and, without the ``ml`` extra, UnsupportedError.
    """
    from scenario_runner.vgf import read_vgf

    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return read_vgf(path)  # which says what is wrong
    key = (os.path.abspath(path), status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
    found = _kept.pop(key, None)
    if found is None:
        found = read_vgf(path)
        while len(_kept) >= _MOST_KEPT:
            _kept.popitem(last=False)
    _kept[key] = found
    return found
