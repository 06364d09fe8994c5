"""Tests of single rules, in the folders of the package: no browser, no subprocess, no encoder; `make quick`."""
