"""Names of files for the uids of resources."""

from __future__ import annotations

import os

_MOST_BYTES = 200  # of a name: file systems mostly take 255, with all that is put behind it


class FileNames:
    """Gives each uid of a run the name of a file, unlike that of any other uid, always the same one."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._taken: set[str] = set()

    def of(self, uid: str) -> str:
        """The name without an extension: characters that file systems refuse become underscores, and long names are
        cut."""
        name = self._names.get(uid)
        if name is None:
            plain = name = "".join(letter if letter.isalnum() or letter in "-_. " else "_" for letter in uid) or "_"
            plain = name = os.fsencode(plain)[:_MOST_BYTES].decode(errors="ignore")
            count = 1
            while name.casefold() in self._taken:  # some file systems do not tell capitals from small letters
                count += 1
                name = f"{plain}~{count}"
            self._names[uid] = name
            self._taken.add(name.casefold())
        return name
