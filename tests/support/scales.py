"""Random ordinal scales, for property tests."""

import string

from hypothesis import strategies as st

from curate.core.scale import Scale

LABELS = st.one_of(
    st.lists(st.sampled_from([str(number) for number in range(11)]), min_size=2, max_size=10, unique=True),
    st.lists(st.text(string.ascii_uppercase, min_size=1, max_size=3), min_size=2, max_size=10, unique=True),
    st.lists(st.text("极很较略不相关无答错对", min_size=1, max_size=4), min_size=2, max_size=10, unique=True),
    st.just(["yes", "no"]),
)


@st.composite
def scales(draw: st.DrawFn) -> Scale:
    """Return an ordinal scale of 2 to 10 grades with any cut and gains."""
    labels = draw(LABELS)
    cut = draw(st.integers(0, len(labels) - 2))
    steps = [draw(st.integers(0, 3)) for _ in labels[1:]]
    steps[cut] = max(steps[cut], 1)  # the lowest relevant grade gains more than the best that is not
    gains = tuple(sum(steps[place:]) for place in range(len(labels)))
    return Scale(tuple(labels), labels[cut], gains)
