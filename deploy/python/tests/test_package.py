from __future__ import annotations

import ast
import json
import pathlib
import subprocess
import sys
import unittest

import hamlet

HERE = pathlib.Path(hamlet.__file__).parent


class Package(unittest.TestCase):
    def test_grammar(self) -> None:
        """All modules are in the grammar of Python 3.9, and have a docstring."""
        for path in HERE.glob("*.py"):
            tree = ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 9))
            self.assertTrue(ast.get_docstring(tree), path.name)

    def test_notebook(self) -> None:
        """The stored notebook has no outputs, and its code is in the grammar too."""
        notebook = json.loads((HERE.parent / "hamlet.ipynb").read_text(encoding="utf-8"))
        cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
        self.assertGreater(len(cells), 5)
        for cell in cells:
            self.assertEqual((cell["outputs"], cell["execution_count"]), ([], None), "clear the outputs before you save it")
            ast.parse("".join(cell["source"]), feature_version=(3, 9))

    def test_docstrings(self) -> None:
        """Every public class, method and function says what it is for."""
        for path in HERE.glob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and not node.name.startswith("_"):
                    if not isinstance(node, ast.ClassDef) and node.name == "events":
                        continue  # a function within a method
                    self.assertTrue(ast.get_docstring(node), f"{path.name}: {node.name}")

    def test_needs_nothing(self) -> None:
        """The model, the stream classifier and the HTTP client load no other package."""
        code = (
            "import sys; before = set(sys.modules); sys.modules.update({'river': None, 'river.base': None})\n"
            "import hamlet; hamlet.Model, hamlet.StreamClassifier, hamlet.Scorer, hamlet.RefusedError\n"
            "print([m for m in ('numpy', 'pandas', 'sklearn', 'nats', 'scipy') if m in sys.modules])\n"
        )
        done = subprocess.run([sys.executable, "-c", code], cwd=HERE.parent, capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout.strip(), "[]")
        with self.assertRaises(AttributeError):
            hamlet.NoSuchName  # noqa: B018
        self.assertTrue(set(hamlet.__all__) >= set(hamlet._HOMES))
