"""What the doctor says of a node of a cluster, for everything that one may lack."""

import pytest

from curate.commands.doctor import examination
from curate.commands.doctor.examination import _of_node
from curate.retrieval.engines.ray import Node

HAS = {"CPU": 4.0, "GPU": 1.0, "memory": 8.2e9}


@pytest.mark.parametrize(
    ("node", "state", "said"),
    [
        (Node("n", HAS, "1.2", ()), "good", "curate 1.2 and files as here"),
        (Node("n", HAS, "1.1", ()), "bad", "curate 1.1, here 1.2"),
        (Node("n", HAS, None, ()), "bad", "without curate"),
        (Node("n", HAS, "1.2", ["/a", "/b"]), "bad", "does not see the files in /a, /b"),
        (Node("n", HAS, None, (), "its worker did not answer (X)"), "bad", "its worker did not answer (X)"),
    ],
)
def test_what_a_node_lacks_is_said_first(node: Node, state: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examination, "version", lambda _: "1.2")
    found = _of_node(node)
    assert (found.what, found.state, found.found) == ("node n", state, f"4 CPUs, 1 GPUs, 8.2 GB for work; {said}")
    assert bool(found.remedy) == (state == "bad")
