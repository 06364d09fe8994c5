"""The public names: complete, sorted, documented, and the version that the package metadata says."""

from importlib.metadata import version

import curate


def test_all_is_sorted_and_complete() -> None:
    assert curate.__all__ == sorted(curate.__all__)
    assert set(curate.__all__) == set(curate._HOMES)


def test_every_public_name_exists_and_says_what_it_is() -> None:
    for name in curate.__all__:
        assert (getattr(curate, name).__doc__ or "").strip(), f"{name} has no docstring"


def test_version_agrees_with_the_package() -> None:
    assert curate.__version__ == version("curate-ir")


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(curate, "no_such_name")
