"""Part of tools/mutants.py: compile the text that the environment names in place of one module, in every process."""

import importlib.machinery
import os
import sys


class _Changed(importlib.machinery.SourceFileLoader):
    def get_code(self, fullname):
        with open(os.environ["MUTANT_TEXT"], encoding="utf-8") as text:
            return compile(text.read(), self.path, "exec", dont_inherit=True)


class _Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != os.environ.get("MUTANT_MODULE"):
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        spec.loader = _Changed(name, spec.origin)
        return spec


sys.meta_path.insert(0, _Finder)
