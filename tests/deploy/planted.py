"""A copy of what the repository deploys, for tests that plant mistakes in it."""

import shutil
import tempfile
import unittest
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]


class PlantedCopy(unittest.TestCase):
    """`parts` names the files and folders that are copied below `repo`."""

    source = SOURCE
    parts = ()

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.repo = Path(folder.name)
        for part in self.parts:
            target = self.repo / part
            target.parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if (self.source / part).is_dir() else shutil.copy)(self.source / part, target)

    def edit(self, name, old, new):
        path = self.repo / name
        text = path.read_text()
        self.assertIn(old, text)
        path.write_text(text.replace(old, new))
