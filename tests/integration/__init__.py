"""Tests with processes, servers, browsers, encoders or whole pipelines, in the folders of the package."""
