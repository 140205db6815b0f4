"""Names of files for the uids of resources."""

from __future__ import annotations


class FileNames:
    """Gives each uid of a run the name of a file, unlike that of any other uid, always the same one."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._taken: set[str] = set()

    def of(self, uid: str) -> str:
        """The name without an extension: characters that file systems refuse become underscores."""
        name = self._names.get(uid)
        if name is None:
            plain = name = "".join(letter if letter.isalnum() or letter in "-_. " else "_" for letter in uid) or "_"
            count = 1
            while name.casefold() in self._taken:  # some file systems do not tell capitals from small letters
                count += 1
                name = f"{plain}~{count}"
            self._names[uid] = name
            self._taken.add(name.casefold())
        return name
