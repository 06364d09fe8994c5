"""Put the demo run into the site: its report as `demo-report.html`, its published pairs as the folder `demo-view`.

mkdocs calls `on_files` and `on_post_build`. The run is that of `make demo`, or the run folder $CURATE_DEMO_RUN.
"""

import os
import shutil
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

import curate

VIEW = "demo-view"


def demo_run() -> Path:
    """Return the run folder of the demo; PluginError if the demo has not run."""
    run = Path(os.environ.get("CURATE_DEMO_RUN") or "runs/demo")
    if not (run / "report.html").is_file():
        raise PluginError(f"{run / 'report.html'}: no such file; run `make demo` first")
    return run


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the report to the files of the site."""
    report = demo_run() / "report.html"
    files.append(File.generated(config, "demo-report.html", content=report.read_text(encoding="utf-8")))
    return files


def on_post_build(config: MkDocsConfig) -> None:
    """Write the pages of `curate view --export` into the site."""
    folder = Path(config.site_dir) / VIEW
    shutil.rmtree(folder, ignore_errors=True)
    curate.view_run(folder=demo_run(), export=folder)
