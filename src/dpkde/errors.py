"""Everything dpkde raises.

::

    DpkdeError
    ├── ParameterError      an argument is wrong (also a ValueError)
    │   └── SchemaError     a table has the wrong shape or type
    ├── BudgetError         a spend would exceed the declared guarantee, or what a ledger has left
    ├── LedgerError         a ledger is damaged, busy, or not one
    ├── AccuracyError       an error cannot be promised for so few records
    ├── SourceError         what hands out the points, code of others, stopped
    ├── MergeError          sketches were made under different plans, or one is there twice
    └── FormatError         a file is damaged, hostile, or not ours (also a ValueError)
        └── VersionError    a file of a format that this version does not read

    ReleaseWarning          a release is of little use, by what it tells itself (a UserWarning)

No message ever quotes a private value: what raises is arguments, schemas and files, never data.
"""

from __future__ import annotations

from typing import Any


class DpkdeError(Exception):
    """Anything that dpkde raises on purpose."""


class ParameterError(DpkdeError, ValueError):
    """An argument is outside its range; the message names the fix."""


class SchemaError(ParameterError):
    """A table has the wrong number of columns, shape or type, or changed. Values never raise."""


class BudgetError(DpkdeError):
    """A spend would exceed the guarantee that was declared, or what a ledger has left."""


class LedgerError(DpkdeError):
    """A ledger cannot be read or written, is damaged, or is none."""


class AccuracyError(DpkdeError):
    """The error asked for cannot be promised; the message says which n, ε or α would do.

    It is raised from public numbers and the noisy count, which has been paid for.
    """


class SourceError(DpkdeError):
    """Code of others that hands out points stopped. Its own words may quote cells: it has ours.

    Whether it stops may hang on a value, so a ledger keeps all that was reserved.
    """


class MergeError(DpkdeError):
    """Sketches were made under different plans, or hold the same part: there is no such sum."""


class FormatError(DpkdeError, ValueError):
    """A file is damaged, hostile, or not one of ours."""


class VersionError(FormatError):
    """A file carries a format version that this version of dpkde does not read."""


class ReleaseWarning(UserWarning):
    """A release that was just published is of less use than it might be, by what it tells itself.

    From noisy numbers that have been paid for and public settings. Where warnings are errors, the
    release is not lost with it.

    Attributes
    ----------
    release
        What was published.
    trouble
        What is wrong with it; all there is, is `Release.troubles`.
    """

    def __init__(self, message: str, release: Any = None, trouble: Any = None) -> None:
        super().__init__(message)
        self.release = release
        self.trouble = trouble
