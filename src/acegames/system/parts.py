"""Functions that only kernels call, compiled as parts of these.

Numba optimises every function and makes machine code of it, and then does so again in each kernel
that the function is linked into, which is the only place where a part ever runs. Leaving out the
first saves half of the time that kernels take to compile.

This rests on classes that numba does not promise to keep; without them, importing this fails.
"""

from __future__ import annotations

from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_machinery import LoweringPass, register_pass
from numba.core.typed_passes import IRLegalization


class Part(JITCodeLibrary):  # type: ignore[misc]
    """The code of one function, to be linked into kernels."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """It cannot be called from Python."""
        return 0

    @property
    def codegen(self) -> Part:
        """Whoever wants to be told of the function's environment."""
        return self

    def set_env(self, name: str, environment: Any) -> None:
        """Only machine code has one."""


@register_pass(mutates_CFG=False, analysis_only=False)
class AsPart(LoweringPass):  # type: ignore[misc]
    """Give a function that is about to be lowered a library of that kind."""

    _name = "acegames_part"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        """As numba's lowering does where there is no library yet."""
        state.library = Part(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return False


class PartCompiler(Compiler):  # type: ignore[misc]
    """Numba's own compiler but for that."""

    def define_pipelines(self) -> Any:
        """Its passes, with `AsPart` before lowering."""
        pipelines = super().define_pipelines()
        for pipeline in pipelines:
            pipeline.add_pass_after(AsPart, IRLegalization)
            pipeline.finalize()
        return pipelines
