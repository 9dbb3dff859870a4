"""What is kept in files, and the one way in which all of it is written and read.

`dpkde.release.format` says what is in them, `container` how their bytes lie.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from numpy.typing import NDArray

from dpkde.errors import BudgetError, FormatError, VersionError
from dpkde.privacy.secrecy import sealed
from dpkde.release import container
from dpkde.release.parts import NO_PARTS, Parts, parts_from_json

if TYPE_CHECKING:
    from dpkde.families.base import Family
    from dpkde.kernels import Kernel

VERSIONS = (1, 2)
"""Of every kind of file."""
SECRECY = "exact sums of private data, as secret as the data"
"""What a secret file says of itself, to whoever opens it."""


@dataclass
class Opened:
    """What a file holds, while it is read: tensors are taken out, and none may be left over.

    Attributes
    ----------
    document, tensors
        As in the container.
    version
        The file's format version.
    families, kernels
        Of the caller's own, which the file may name.
    """

    document: Mapping[str, Any]
    tensors: dict[str, NDArray[Any]]
    version: int
    families: tuple[type[Family], ...] = ()
    kernels: tuple[type[Kernel], ...] = ()

    def under(self, prefix: str) -> dict[str, NDArray[Any]]:
        """Take the tensors whose names begin so, and return them without it."""
        names = [name for name in self.tensors if name.startswith(prefix)]
        return {name.removeprefix(prefix): self.tensors.pop(name) for name in names}

    def expect(self, entry: Mapping[str, Any], known: AbstractSet[str]) -> None:
        """Refuse fields that nobody knows. Files of version 1 may have them, and always might."""
        unknown = set() if self.version == 1 else set(entry) - known
        if unknown:
            raise FormatError(f"this file has a field {min(unknown)!r} that does not belong")

    def parts(self, entry: Mapping[str, Any]) -> Parts:
        """Return the parts that an object of the document has."""
        if self.version == 1:
            return NO_PARTS
        return parts_from_json(entry.get("parts", {}), self.tensors)


class Filed(ABC):
    """Something that is a file, and bytes."""

    __slots__ = ()

    FORMAT: ClassVar[str]
    """What its files call themselves."""
    SECRET: ClassVar[bool] = False
    """Whether its files are as secret as the data, and readable by their owner alone."""

    @property
    @abstractmethod
    def format_version(self) -> int:
        """The version that its files have: 1 wherever that suffices, so that old readers do."""

    @abstractmethod
    def _described(self) -> container.Contents:
        """Return the document, apart from format and version, and the tensors."""

    @classmethod
    @abstractmethod
    def _rebuilt(cls, opened: Opened) -> Self:
        """Return what a file describes, having checked all of it."""

    @sealed
    def contents(self) -> container.Contents:
        """Return the document and the tensors that its file has."""
        document, tensors = self._described()
        return {"format": self.FORMAT, "format_version": self.format_version, **document}, tensors

    @classmethod
    @sealed
    def of_contents(
        cls,
        contents: container.Contents,
        what: str = "what was given",
        families: Sequence[type[Family]] = (),
        kernels: Sequence[type[Kernel]] = (),
    ) -> Self:
        """Rebuild it from a document and tensors; a FormatError calls them `what`."""
        document, tensors = contents
        version = expect_format(document, cls.FORMAT, what)
        opened = Opened(document, dict(tensors), version, tuple(families), tuple(kernels))
        try:
            thing = cls._rebuilt(opened)
        except FormatError:
            raise
        except (ArithmeticError, LookupError, TypeError, ValueError, BudgetError):
            raise FormatError(f"{what} is damaged: its description does not add up") from None
        if opened.tensors:
            raise FormatError(f"{what} has a tensor {min(opened.tensors)!r} that does not belong")
        return thing

    @sealed
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file, atomically; never over a file that is not dpkde's."""
        container.write(path, *self.contents(), secret=self.SECRET)
        action: Callable[[], None] | None = getattr(self, "_when_saved", None)
        if action is not None:
            action()

    def when_saved(self, action: Callable[[], None]) -> None:
        """Do something whenever a file of it is complete. It is not kept in any file."""
        object.__setattr__(self, "_when_saved", action)

    @sealed
    def to_bytes(self) -> bytes:
        """Return what `save` would write."""
        return container.pack(*self.contents())

    @classmethod
    @sealed
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        families: Sequence[type[Family]] = (),
        kernels: Sequence[type[Kernel]] = (),
    ) -> Self:
        """Read what `save` wrote.

        Parameters
        ----------
        path
            Of the file.
        families, kernels
            Custom families and kernels that the file may use; names are never imported.

        Raises
        ------
        FormatError
            The file is damaged, hostile, or of another kind.
        VersionError
            It needs a newer dpkde.
        """
        return cls.of_contents(container.read(path), str(path), families, kernels)

    @classmethod
    @sealed
    def from_bytes(
        cls,
        data: bytes,
        *,
        families: Sequence[type[Family]] = (),
        kernels: Sequence[type[Kernel]] = (),
    ) -> Self:
        """Read what `to_bytes` returned, or the bytes of a file; as `load`."""
        contents = container.unpack(data)
        return cls.of_contents(contents, families=families, kernels=kernels)


def expect_format(document: Mapping[str, Any], name: str, path: str) -> int:
    """Check that a file is of the kind and of a version we read; return the version."""
    if document.get("format") != name:
        raise FormatError(f"{path} is not a {name} file but {document.get('format')!r}")
    version = document.get("format_version")
    if type(version) is not int or version not in VERSIONS:
        raise VersionError(
            f"{path} has {name} version {version!r}; this dpkde reads versions "
            f"{' and '.join(map(str, VERSIONS))}: install a newer dpkde"
        )
    return version
