"""Ids: what tells whose a row is, in one form whatever the table is made of.

**The canonical form** of an id is a text in UTF-8:

* of a cell of text, what is left without the spaces and tabs around it;
* of a whole number its decimal digits, as in ``-7``; so also of a float that is whole, such as
  pandas makes of whole numbers beside missing ones;
* of another float or decimal, the shortest decimal text that reads back as it; of another real
  number that of the float that is equal to it, if one is; of a boolean 0 or 1; of a UUID its usual
  text.

Empty text, nulls, NaN, infinities and whole numbers of thousands of digits are no id, and neither
is a cell of any other type, nor a text with the mark U+FFFD: that stands for characters that could
not be read, and would make one person of several. Such rows are nobody's, and contribute nothing.
Nothing else is made equal: ``7`` in a CSV file and the number 7 in a Parquet file are one id;
``07``, ``7.0`` and ``seven`` in text are others, and so are ``a`` and ``A``. Whole ids decide who
is who, never a hash of them.

A text that is the decimal form of a 64-bit number is kept as that number (`WHOLE`), others as they
are (`TEXT`).
"""

MISSING, WHOLE, TEXT = 0, 1, 2
"""What an id is: none, a number of 64 bits, or a text."""
