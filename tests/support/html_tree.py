"""A page as a tree of elements, to be read as people read it."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser


@dataclass
class Node:
    """An element of a page."""

    tag: str
    attrs: dict[str, str] = field(default_factory=dict)
    parent: "Node | None" = None
    children: list["Node | str"] = field(default_factory=list)

    def all(self, *tags: str) -> list["Node"]:
        """Return all elements inside, or those of these tags, in order."""
        found: list[Node] = []
        for child in self.children:
            if isinstance(child, Node):
                found += [child] if not tags or child.tag in tags else []
                found += child.all(*tags)
        return found

    def text(self, *without: str) -> str:
        """Return what is to be read, with a space between elements, but in elements `without`."""
        parts = []
        for child in self.children:
            if isinstance(child, str):
                parts.append(child)
            elif child.tag not in ("script", "style", "template", *without):
                parts.append(child.text(*without))
        return " ".join(" ".join(parts).split())

    @property
    def ancestors(self) -> Iterator["Node"]:
        """Yield the elements around it, the nearest first."""
        above = self.parent
        while above:
            yield above
            above = above.parent


VOID = frozenset(("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"))


class Reader(HTMLParser):
    """Build the tree of a page."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.root = self.at = Node("#")
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = Node(tag, {name: value or "" for name, value in attrs}, self.at)
        self.at.children.append(node)
        if tag not in VOID:
            self.at = node

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.at.children.append(Node(tag, {name: value or "" for name, value in attrs}, self.at))

    def handle_endtag(self, tag: str) -> None:
        for node in (self.at, *self.at.ancestors):
            if node.tag == tag and node.parent:
                self.at = node.parent
                return

    def handle_data(self, data: str) -> None:
        self.at.children.append(data)
