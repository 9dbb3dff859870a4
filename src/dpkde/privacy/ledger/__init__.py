"""The ledger: what has been spent of a data set, over all its releases.

    publish ──reserve──► one transaction ──► entry 7 ──► draw noise ──► returned ──► written
                              │                              └──► refused: reduced to what was spent
                              └── refused: nothing was read or drawn

``ledger.py`` is the door, ``store.py`` the file, ``chain.py`` the hashes, ``book.py`` what entries
mean, ``accounting.py`` what is allowed (``proof.md`` says why), ``booking.py`` the life of a
reservation.
"""
