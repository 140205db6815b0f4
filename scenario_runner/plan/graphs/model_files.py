"""VGF files that scenarios name, read once for as long as they do not change."""

from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

from scenario_runner.files.source import Identity, SourceFile

if TYPE_CHECKING:
    from scenario_runner.graphs import Vgf

# A process that runs one model after the other must not keep all of them.
_MOST_KEPT = 4
_kept: "OrderedDict[Identity, Vgf]" = OrderedDict()


class ModelFile(NamedTuple):
    """A VGF file that was read, and what it was before."""

    vgf: "Vgf"
    identity: Identity


def read_model(path: str) -> ModelFile:
    """The VGF file at ``path``; the model of the last time, if the file is what it was then.

    Raises FileError and, without the ``ml`` extra, UnsupportedError.
    """
    from scenario_runner.graphs import read_open_vgf

    with SourceFile(path) as file:
        found = _kept.pop(file.identity, None)
        if found is None:
            found = read_open_vgf(file)
        if file.identity.settled:
            while len(_kept) >= _MOST_KEPT:
                _kept.popitem(last=False)
            _kept[file.identity] = found
        return ModelFile(found, file.identity)


def forget() -> None:
    """Keep no model."""
    _kept.clear()
