"""Make the pictures of the gallery: every block of code in ``gallery.md``, one after the other.

    python docs/gallery.py [folder]

Pictures are left in ``docs/gallery``, or in the folder that is named.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path

from PIL import Image

HERE = Path(__file__).parent
COLOURS = 256
"""Of a picture that is kept: a third of the bytes, and no eye tells."""


def main(folder: Path) -> None:
    """Run the blocks in an empty folder, and keep the pictures."""
    text = (HERE / "gallery.md").read_text(encoding="utf-8")
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    namespace: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as empty:
        before = Path.cwd()
        os.chdir(empty)
        try:
            for block in re.findall(r"```python\n(.*?)```", text, re.S):
                exec(compile(block, "gallery.md", "exec"), namespace)  # noqa: S102
            for picture in Path(empty).glob("*.png"):
                image = Image.open(picture).convert("RGB")
                image.quantize(COLOURS, dither=Image.Dither.NONE).save(folder / picture.name)
        finally:
            os.chdir(before)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "gallery")
