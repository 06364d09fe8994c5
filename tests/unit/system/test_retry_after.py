"""How long a server asks to wait, in each of its ways of saying so."""

import datetime as dt

import pytest

from curate.system.http import asked, may_pass

NOW = dt.datetime(2026, 10, 21, 7, 28, 0, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "86400"}, 86400.0),
        ({"retry-after": "inf"}, None),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after": "9", "retry-after-ms": "250"}, 0.25),
        ({"retry-after": "1", "retry-after-ms": "soon"}, 1.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:20 GMT"}, 20.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:20 -0000"}, 20.0),
        ({"retry-after": "Wed, 21 Oct 2026 15:28:20 +0800"}, 20.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:00:00 GMT"}, 0.0),
        ({"retry-after": "Thu, 22 Oct 2026 07:28:00 GMT"}, 86400.0),
    ],
)
def test_the_pause_that_is_asked_for(headers: dict[str, str], seconds: float | None) -> None:
    assert asked(headers, NOW) == seconds


def test_what_may_pass() -> None:
    assert [status for status in (400, 401, 404, 408, 409, 425, 429, 499, 500, 501, 503, 529) if may_pass(status)] == [
        408,
        409,
        425,
        429,
        499,
        500,
        503,
        529,
    ]
