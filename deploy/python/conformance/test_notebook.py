from __future__ import annotations

import pathlib

import nbformat
from nbclient import NotebookClient

NOTEBOOK = pathlib.Path(__file__).parent.parent / "hamlet.ipynb"


def test_notebook_runs():
    """Every cell runs, and the stored notebook has no outputs."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            assert not cell.outputs and cell.execution_count is None, "clear the outputs before you save it"
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(NOTEBOOK.parent)}}).execute()
    assert any(cell.get("outputs") for cell in notebook.cells)
