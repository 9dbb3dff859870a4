"""Build the documentation site: ``python docs/site FOLDER``; warnings are errors.

Nothing is fetched, neither now nor by who reads it: a page that would load a script, a font, a
style or a picture from elsewhere is an error, too.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from sphinx.cmd.build import main as sphinx

from command_pages import pages as pages_of_commands
from offline import loaded_from_elsewhere
from stage import ROOT, stage, write


def main(folder: str) -> int:
    """Build the site in a folder, and return 0 if nothing is wrong with it."""
    target = Path(folder)
    source, site = target / "source", target / "html"
    stage(source, pages_of_commands())
    # The gallery's pictures are drawn again, by the code that stands beside them.
    gallery = [ROOT / "docs" / "gallery.py", source / "files" / "docs" / "gallery"]
    subprocess.run([sys.executable, *map(str, gallery)], check=True)  # noqa: S603 - our own
    # Tutorials run under settings of our own, not of whoever builds. Their kernels listen on this
    # machine alone; that they do so without encryption is said for each, and would hide the rest.
    settings = target / "ipython" / "profile_default" / "ipython_kernel_config.py"
    write(settings, "c.IPKernelApp.log_level = 40\n")
    os.environ["IPYTHONDIR"] = str((target / "ipython").resolve())
    conf = str(Path(__file__).parent)
    options = ["-W", "--keep-going", "-n", "-q", "-j", "auto", "-b", "html", "-c", conf]
    trees = ["-d", str(target / "doctrees")]
    code = sphinx([*options, *trees, str(source), str(site)])
    fetched = loaded_from_elsewhere(site)
    for line in fetched:
        print(f"loaded from the network: {line}", file=sys.stderr)
    if not (code or fetched):
        print(f"open {site / 'index.html'}")
    return code or bool(fetched)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "build/docs"))
