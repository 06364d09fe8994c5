"""Put the report of the demo run into the site, as `demo-report.html`: a specimen of what a run makes.

mkdocs calls `on_files`. The report is that of `make demo`, or of the run folder $CURATE_DEMO_RUN.
"""

import os
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the report to the files of the site; PluginError if the demo has not run."""
    report = Path(os.environ.get("CURATE_DEMO_RUN") or "runs/demo") / "report.html"
    if not report.is_file():
        raise PluginError(f"{report}: not there; type `make demo` first")
    files.append(File.generated(config, "demo-report.html", content=report.read_text(encoding="utf-8")))
    return files
