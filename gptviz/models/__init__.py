"""Language models: which exist, where they come from, how they are loaded and run.

``gptviz.models`` is this package and, because the public name of the catalogue is ``gv.models()``, also callable.
"""

from __future__ import annotations

import sys
from types import ModuleType


class _CallablePackage(ModuleType):
    def __call__(self):
        """Every model that can be chosen, as ModelCards (see ``gptviz.models.catalog.models``)."""
        from gptviz.models.catalog import models

        return models()


sys.modules[__name__].__class__ = _CallablePackage
