"""Imports only go down: cli, web > pipeline > stages > services > plugins > pure > ground."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "curate"

GROUND = {"errors", "records", "config", "files", "registry", "resources", "protocols", "processes", "yamls"}
PURE = {
    "agreement",
    "alike",
    "audit",
    "audit_page",
    "balance",
    "budget",
    "capture",
    "cascade",
    "characters",
    "charts",
    "clones",
    "concordance",
    "confusion",
    "consequences",
    "controls",
    "correction",
    "cost",
    "coverage",
    "dawid_skene",
    "deeper",
    "differences",
    "difficulty",
    "distinctness",
    "diversity",
    "duplicates",
    "estimates",
    "figures",
    "following",
    "forms",
    "fusion",
    "graph",
    "guide",
    "highlight",
    "holes",
    "integrity",
    "intervals",
    "leaks",
    "lengths",
    "leniency",
    "lexer",
    "marks",
    "measures",
    "mining",
    "page",
    "page_charts",
    "panel",
    "parse",
    "parts",
    "passages",
    "pauses",
    "perquery",
    "policies",
    "position",
    "prompts",
    "questions",
    "quotas",
    "ranking",
    "rates",
    "ratios",
    "rewriting",
    "reranking",
    "sampling",
    "screen",
    "search",
    "significance",
    "sheets",
    "survey",
    "suspicion",
    "sweep",
    "synonyms",
    "tally",
    "totals",
    "voting",
    "wording",
}
SHARED = {"vectors", "corpus", "egress", "int8", "screens", "servers"}
"""Services that plugins may use: they know only protocols, files and what is pure."""
PLUGINS = {"encoders", "engines", "retrievers", "judges", "providers", "exporters", "pii", "readers"}
SERVICES = {
    "anonymise",
    "ask",
    "batch",
    "comparing",
    "deriving",
    "folder",
    "journal",
    "judging",
    "ledger",
    "manifest",
    "owners",
    "ratings_file",
    "readmes",
    "recording",
    "review",
    "sharing",
    "splits",
    "verifying",
}
LAYERS = [
    GROUND,
    PURE,
    SHARED,
    PLUGINS,
    SERVICES,
    {"context"},
    {"stages"},
    {"pipeline"},
    {"models"},
    {"foreign"},
    {"run"},
    {"runs", "status"},
    {"doctor", "embedding", "init", "testing"},
    {"checks"},
    {"analysis"},
    {"evaluating"},
    {"web"},
    {"cli"},
    {"__main__"},
]
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}

ALLOWED = {("judges", "providers")}
"""Arrows between two families of plugins: none is needed yet but this one, of language-model judges."""
PURE_FORBIDDEN = {"os", "time", "socket", "httpx", "httpx2", "subprocess", "pathlib", "random"}


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def unit(path: Path) -> str:
    """Return the name by which a file has a layer: its family, or its own."""
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def imports(path: Path) -> set[tuple[str, ...]]:
    found: set[tuple[str, ...]] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {tuple(alias.name.split(".")) for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {(*node.module.split("."), alias.name) for alias in node.names}
    return found


def ours(path: Path) -> set[tuple[str, ...]]:
    return {parts[1:] for parts in imports(path) if parts[0] == "curate" and len(parts) > 1}


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_only_go_down(path: Path) -> None:
    here = unit(path)
    if here == "__init__":
        return
    assert here in RANK, f"{here} has no layer: give it one in this test"
    for target in ours(path):
        there = target[0]
        if there == here or there not in RANK:
            continue
        down = RANK[there] < RANK[here]
        sideways = RANK[there] == RANK[here] and (here not in PLUGINS or (here, there) in ALLOWED)
        assert down or sideways, f"{path.name} imports curate.{'.'.join(target)}: that arrow runs up or sideways"


def test_no_stage_imports_another() -> None:
    names = {path.stem for path in (PACKAGE / "stages").glob("*.py")} - {
        "__init__",
        "batching",
        "billing",
        "build",
        "decisions",
        "first_look",
        "gate",
        "inquiry",
        "seats",
        "pairing",
        "sentences",
        "spending",
        "spotting",
        "language",
        "leaving",
        "texts",
        "words",
        "provenance",
        "reckoning",
        "masked",
        "renaming",
        "telling",
    }
    names -= {"judge", "diversify"}  # quotes and forecasts are their own
    for path in (PACKAGE / "stages").glob("*.py"):
        used = {target[1] for target in ours(path) if target[0] == "stages" and len(target) > 1}
        assert not (used & names), f"{path.name} imports {used & names}"


def test_pure_code_touches_nothing_outside() -> None:
    for path in modules():
        if unit(path) in PURE:
            used = {parts[0] for parts in imports(path)}
            allowed = {"random"} if path.stem == "sampling" else set()
            assert not (used & PURE_FORBIDDEN - allowed), f"{path.name} imports {used & PURE_FORBIDDEN}"


def test_only_the_edge_prints() -> None:
    for path in modules():
        if unit(path) != "cli":
            calls = [
                node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)
            ]
            names = {call.func.id for call in calls if isinstance(call.func, ast.Name)}
            assert "print" not in names, path.name
            assert "typer" not in {parts[0] for parts in imports(path)}, path.name


def test_every_module_has_a_layer_or_none_is_stale() -> None:
    known = {unit(path) for path in modules()} - {"__init__"}
    assert known == set(RANK) & known
    assert set(RANK) <= known, "a layer names a module that is gone"
