"""What is in the files: releases, plans and sketches, in versions 1 and 2; and `load`.

The container (safetensors, canonical JSON document, SHA-256) is specified in `container`. Every
version ever released keeps loading. **Version 1 is written wherever it suffices**: version 2 only
where there is a part, a unit other than one record, or a spend for more than count and table. So
readers of version 1, who refuse version 2 by its number, read all that they understand.

The document of a **release** has these fields:

``format``, ``format_version``
    ``"dpkde-release"``, and 1 or 2. The version changes when the meaning of a field does, and is
    apart from the package's version.
``release_id``
    32 random hexadecimal digits.
``generator``
    The program that wrote it, such as ``"dpkde 0.1.0"``.
``plan``
    ``kernel`` {name, version, parameters}, ``domain`` {kind, dim, parameters}, ``family`` {name,
    version, parameters}, ``lattice`` {bits, capacity_bits}, ``seed`` (decimal string),
    ``columns`` (list of names or null); ``promise``, if it was made for one. *Version 2:* ``unit``
    {name, records}, whose records are protected together, if that is not one record; ``parts``,
    if it has any, the key by which records of a unit are chosen among them. They belong to the
    plan: sketches merge only where they are the same.
``count``
    The number of records, noisy under add-remove; a whole number, at least 1.
``privacy``
    The statement, as in `dpkde.privacy.statement`. Its last spend is for the ``"table"``, and under
    add-remove there is one for the ``"count"`` before it. *Version 2:* its unit is the plan's, and
    where that has a name, the count is paid for under replace, too; there may be other spends
    before the table's, for whatever purpose, each with a law of single numbers (independent noise
    on each, where it is for many) or of choices, or of tables and then with their ``cells`` (at
    most 4096), and a sensitivity of its own, at least that of whole records. So the ``"pilot"`` is
    stated, and each histogram for bounds and bandwidth that were found: ``"scale"``, ``"shape"``.
    The release then has the part ``scale``, `dpkde.release.parts.FoundScale`.
``promise``, ``rate``
    What the answers are promised to be within: null, or ``alpha``, ``eta`` and ``pitch`` (of the
    grid that queries are moved to, in bandwidths, or null); and the probability with which a record
    entered the table, ``"p/q"``. Files without them have null and 1.
``extras``
    An object for the publisher's own use, with namespaced keys; *in version 2* checked: nested at
    most 32 levels deep, at most 2²⁰ characters of JSON.
``parts``
    *Version 2:* what else there is, if anything; see `dpkde.release.parts`.

Tensors: ``table``, int64, one entry a cell, in units of 2^−bits, modulo 2⁶⁴; the family's own
public randomness, each under ``family.`` and its name (`Fourier`: ``family.frequencies`` int32
(D, dim) in 2⁻³² turns per step; ``family.offsets`` int32 (D,) in the phase form); and those of
parts, the plan's and the release's, as ``part.<name>.<tensor>``.

A **plan** has ``format`` (``"dpkde-plan"``), ``format_version`` and ``plan``, and the family's
tensors: by their bare names in version 1, as in a release in version 2. A **sketch**
(``"dpkde-sketch"``) has the same fields, a release's tensors (its table is exact, and secret) and
``totals``, int64 (2,): the numbers of records and of rows, modulo 2⁶⁴. In either version it may
have ``secret``, a sentence for whoever opens it, and ``parts``, among them ``sketch-ids``: which
calls of `dpkde.sketch` are in it. Readers of version 1 pass over them as over any field; other
parts are not kept, since nobody could add them up. The **synthetic release** is specified in
`dpkde.release.synthetic`.

**What a reader may skip, and what it must refuse.** Of a file of version 2 it skips parts that it
does not know and that are not required; it keeps them, and writes them again. It refuses a version
that it does not know; a part that is required and that it does not know; any field of the document,
of the plan, of the statement or of a spend that is not listed here; and any tensor that belongs to
none of the above. Kernels, families and parts have versions of their own for what is inside them.
(Fields that version 1 does not know were ignored in it from the beginning, and still are.)

Names are looked up in a registry, never imported. The loader also checks that the spends add up to
no more than the declared guarantee and that every scale is large enough for its sensitivity; for
count and table that is what the plan says one record moves them by, times the records of a unit
(for the squared L2 norm, times their square).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from dpkde.families.base import Family
from dpkde.kernels import Kernel
from dpkde.release import container
from dpkde.release.release import Release
from dpkde.release.synthetic import SyntheticRelease


def load(
    path: str | os.PathLike[str],
    *,
    families: Sequence[type[Family]] = (),
    kernels: Sequence[type[Kernel]] = (),
) -> Any:
    """Return the `Release` in a file, or the `SyntheticRelease` if it holds one.

    ``dpkde.Release.load`` reads the first kind only, and so is typed.

    Parameters
    ----------
    path
        What `Release.save` wrote.
    families, kernels
        Custom families and kernels that the release may use; names are never imported.

    Raises
    ------
    FormatError
        The file is damaged, hostile, or not a release.
    """
    contents = container.read(path)
    synthetic = contents[0].get("format") == SyntheticRelease.FORMAT
    kind = SyntheticRelease if synthetic else Release
    return kind.of_contents(contents, str(path), families, kernels)
