"""Dependencies go one way, as the design draws them: read with ``ast``, imports inside functions included."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# From the ground up. A module belongs to the longest prefix that fits and may import from its own line and below.
LAYERS = [
    ["lmfusion.child_processes", "lmfusion.errors", "lmfusion.plain_operations", "lmfusion.registration"],
    ["lmfusion.kernels", "lmfusion.checkpoint", "lmfusion.scoring", "lmfusion.text"],
    ["lmfusion.operations"],
    ["lmfusion.inference.int8", "lmfusion.inference.unknown_symbols"],
    [f"lmfusion.lm.{name}" for name in ("freezing", "pooling", "precision", "symbols", "task_value", "vocabulary")],
    ["lmfusion.lm.stack", "lmfusion.lm.recomputation"],
    ["lmfusion.lm.interface"],
    ["lmfusion.lm.old_checkpoints", "lmfusion.lm.decoding", "lmfusion.lm.transformer", "lmfusion.lm.vector_files"],
    ["lmfusion.lm.recurrent_layers", "lmfusion.lm.several_targets"],
    ["lmfusion.lm.cloze", "lmfusion.lm.causal", "lmfusion.lm.recurrent", "lmfusion.lm.static"],
    ["lmfusion.lm"],
    ["lmfusion.state_cache"],
    ["lmfusion.fusion"],
    ["lmfusion.consumers"],
    ["lmfusion.training"],
    ["lmfusion.convert", "lmfusion.described", "lmfusion.inspection"],
    ["lmfusion.fairseq_patches"],
    ["lmfusion.plugin", "lmfusion.inference.search_settings", "lmfusion.inference.hub", "lmfusion.hydra_configs"],
    ["lmfusion.inference.translate_lines", "lmfusion.inference.packing"],
    ["lmfusion.inference"],
    ["lmfusion", "lmfusion.models"],  # the public API
    ["lmfusion.planning"],
    ["lmfusion.runs"],
    ["lmfusion.report"],
    ["lmfusion.rows"],
    ["lmfusion.commands"],
    ["lmfusion.cli"],
]
RANK = {prefix: rank for rank, prefixes in enumerate(LAYERS) for prefix in prefixes}

# Beyond the layers: the only modules of ours that these may import.
INTEGRATIONS, SIDES = ("attend", "cold", "elmo", "finetune", "initialise"), ("source", "target")
SEES_LMS_THROUGH = [
    *("lmfusion.errors", "lmfusion.lm.interface", "lmfusion.lm.vocabulary", "lmfusion.lm.transformer.layout"),
    *("lmfusion.fusion.interface", "lmfusion.fusion.places", "lmfusion.fusion.sides", "lmfusion.fusion.source"),
    "lmfusion.fusion.reordering",
]
ONLY = {
    **{
        f"lmfusion.fusion.{name}": [
            *("lmfusion.errors", "lmfusion.lm.interface", "lmfusion.fusion.interface"),
            *("lmfusion.fusion.scalar_mix", "lmfusion.fusion.elmo", "lmfusion.fusion.learning_rates"),
            *("lmfusion.operations", "lmfusion.state_cache", "lmfusion.lm.stack"),
        ]
        for name in INTEGRATIONS
    },
    **{f"lmfusion.fusion.{name}": SEES_LMS_THROUGH for name in SIDES},
    "lmfusion.fusion.scalar_mix": ["lmfusion.errors"],
    "lmfusion.fusion.interface": [
        *("lmfusion.errors", "lmfusion.fusion.description", "lmfusion.lm.interface", "lmfusion.registration"),
        "lmfusion.fusion.interface",
    ],
    "lmfusion.lm.interface": [
        *("lmfusion.errors", "lmfusion.lm.freezing", "lmfusion.lm.pooling", "lmfusion.lm.vocabulary"),
        *("lmfusion.registration", "lmfusion.lm.stack"),
    ],
    "lmfusion.scoring": ["lmfusion.errors", "lmfusion.scoring"],
}
HEAVY = ("torch", "fairseq")


def modules(root: Path) -> dict[str, ast.Module]:
    """Every module of the package under ``root``, by dotted name."""
    found = {}
    for path in sorted((root / "lmfusion").rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
    return found


def imports(tree: ast.Module, names: set[str]) -> Iterator[str]:
    """Modules that a module imports; ``from package import submodule`` imports that; dots of relative ones stay."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            for alias in node.names:
                submodule = f"{module}.{alias.name}"
                yield submodule if submodule in names else module


def is_in(module: str, prefix: str) -> bool:
    """Whether a module is this one or inside it."""
    return module == prefix or module.startswith(f"{prefix}.")


def rank(module: str) -> int:
    """Height of the longest prefix that fits."""
    return RANK[max((prefix for prefix in RANK if is_in(module, prefix)), key=len)]


def violations(root: Path) -> list[str]:
    """Imports of ours against the rules, as "importer -> imported"."""
    found = []
    sources = modules(root)
    for name, tree in sources.items():
        allowed = next((prefixes for prefix, prefixes in ONLY.items() if is_in(name, prefix)), None)
        for imported in imports(tree, set(sources)):
            if imported.startswith("."):
                wrong = True  # the rules below need full names
            elif not is_in(imported, "lmfusion"):
                wrong = is_in(name, "lmfusion.scoring") and imported.split(".")[0] in HEAVY
            elif allowed is not None:
                wrong = not any(is_in(imported, prefix) for prefix in allowed)
            else:
                wrong = rank(imported) > rank(name)
            if wrong:
                found.append(f"{name} -> {imported}")
    return found


def cycle(root: Path) -> list[str]:
    """A chain of modules that import each other in a circle, or nothing."""
    sources = modules(root)
    # A package's __init__ and its own modules import each other by nature.
    graph = {name: {i for i in imports(tree, set(sources)) if not is_in(name, i)} for name, tree in sources.items()}
    done: set[str] = set()

    def walk(name: str, path: list[str]) -> list[str]:
        if name in path:
            return [*path[path.index(name) :], name]
        if name in done:
            return []
        done.add(name)
        return next((loop for i in sorted(graph.get(name, ())) if (loop := walk(i, [*path, name]))), [])

    return next((loop for name in sorted(graph) if (loop := walk(name, []))), [])


def test_imports_go_one_way() -> None:
    assert violations(ROOT) == []


def test_nothing_imports_in_a_circle() -> None:
    assert cycle(ROOT) == []


def test_the_sweep_saw_the_package() -> None:
    names = set(modules(ROOT))
    assert {"lmfusion.cli", "lmfusion.lm.cloze", "lmfusion.fusion.model", "lmfusion.scoring.bleu"} <= names
    assert len(names) == len(list((ROOT / "lmfusion").rglob("*.py"))) > 25
    assert all(any(is_in(name, prefix) for name in names) for prefix in ONLY), "a rule for a module that is gone"


def package(root: Path, **sources: str) -> Path:
    """A package with these modules; ``lm__cloze`` stands for lm/cloze.py."""
    for name, source in sources.items():
        path = root / "lmfusion" / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, encoding="utf-8")
    return root


@pytest.mark.parametrize(
    ("module", "source", "violation"),
    [
        ("lm__cloze", "from lmfusion.fusion.model import X", "lmfusion.lm.cloze -> lmfusion.fusion.model"),
        ("lm__interface", "import lmfusion.lm.cloze", "lmfusion.lm.interface -> lmfusion.lm.cloze"),
        ("fusion__elmo", "from lmfusion.fusion import source", "lmfusion.fusion.elmo -> lmfusion.fusion.source"),
        ("fusion__source", "from lmfusion.lm.cloze import X", "lmfusion.fusion.source -> lmfusion.lm.cloze"),
        ("fusion__model", "def f():\n    import lmfusion.cli", "lmfusion.fusion.model -> lmfusion.cli"),
        ("scoring__rouge", "if True:\n    import torch.nn", "lmfusion.scoring.rouge -> torch.nn"),
        ("scoring__rouge", "from fairseq import data", "lmfusion.scoring.rouge -> fairseq"),
        ("lm__transformer__join", "from .layout import RowLayout", "lmfusion.lm.transformer.join -> .layout"),
        ("scoring__rouge", "from lmfusion.lm import x", "lmfusion.scoring.rouge -> lmfusion.lm"),
    ],
)
def test_a_violation_is_found(tmp_path: Path, module: str, source: str, violation: str) -> None:
    package(tmp_path, **{"fusion__source": "", module: source})
    assert violations(tmp_path) == [violation]


def test_a_circle_is_found(tmp_path: Path) -> None:
    package(tmp_path, lm__a="import lmfusion.lm.b", lm__b="import lmfusion.lm.c", lm__c="import lmfusion.lm.a")
    assert cycle(tmp_path) == ["lmfusion.lm.a", "lmfusion.lm.b", "lmfusion.lm.c", "lmfusion.lm.a"]


def test_data_preparation_takes_only_text_and_errors_from_the_package() -> None:
    files = sorted((ROOT / "data-prep").rglob("*.py"))
    assert len(files) > 5
    for path in files:
        taken = [
            name for name in imports(ast.parse(path.read_text(encoding="utf-8")), set()) if is_in(name, "lmfusion")
        ]
        assert all(is_in(name, "lmfusion.text") or is_in(name, "lmfusion.errors") for name in taken), path


def test_one_module_alone_imports_the_kernels() -> None:
    sources = modules(ROOT)
    importers = {
        name
        for name, tree in sources.items()
        for imported in imports(tree, set(sources))
        if is_in(imported, "lmfusion.kernels") and not is_in(name, "lmfusion.kernels")
    }
    assert importers == {"lmfusion.operations"}


def test_checkpoints_are_read_in_one_place() -> None:
    readers = {
        name
        for name, tree in modules(ROOT).items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node) in ("torch.load", "pickle.load", "pickle.loads")
    }
    assert readers == {"lmfusion.checkpoint.reading"}
