"""Compiles the functions that only kernels call as far as their kernels need.

Numba turns every function into machine code, with all that it calls linked in and optimised, and
does all of it again for each caller. Here such a function ends as plain LLVM code. It is linked
into its kernel and optimised there, once, together with the rest: two thirds of the time, and code
that is no slower.

All this rests on classes that numba does not promise to keep. Where a release has moved them,
functions are compiled in numba's own way, with a warning.
"""

from __future__ import annotations

import warnings
from typing import Any

import numba
from numba import _dynfunc
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder, Flags, PassManager
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering

from acegames.system.compiling import compiling


class ComparableFlags(Flags):  # type: ignore[misc]
    """Flags that are equal where the same values are set.

    Numba compares all that could be set, some ten times per operation of the source: a tenth of the
    time to compile.
    """

    __slots__ = ()
    _values: dict[str, Any]  # numba's: what is set

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, ComparableFlags) and self._values == other._values)

    def __hash__(self) -> int:
        return hash(frozenset(self._values))


class LinkedLibrary(JITCodeLibrary):  # type: ignore[misc]
    """The LLVM code of one function, for linking into others."""

    def _optimize_final_module(self) -> None:
        """Optimise nothing: the kernel is optimised as a whole."""

    def _finalize_final_module(self) -> None:
        """Make no machine code."""
        self._finalize_dynamic_globals()
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class LinkedLowering(NativeLowering):  # type: ignore[misc]
    """Lowers to LLVM code, and stops there."""

    _name = "acegames_linked_lowering"

    def run_pass(self, state: Any) -> bool:
        """Lower to LLVM code without machine code; what Python would call is an empty shell."""
        try:
            return self._link(state)
        except (AttributeError, TypeError) as error:  # numba has moved what this rests on
            warnings.warn(
                f"acegames does not know this release of numba ({numba.__version__}: {error!r}), so compiling takes longer",
                RuntimeWarning,
                stacklevel=2,
            )
            state.library, state.flags.no_compile = None, False
            return bool(super().run_pass(state))

    def _link(self, state: Any) -> bool:
        state.library = LinkedLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        super().run_pass(state)
        result = state.cr
        name = result.fndesc.qualname.split(".")[-1]
        shell = _dynfunc.make_function(result.fndesc.lookup_module(), name, "", 0, result.env, (state.library,))
        state.targetctx.insert_user_function(shell, result.fndesc, [state.library])
        state.cr = result._replace(cfunc=shell)
        return True


class KernelCompiler(CompilerBase):  # type: ignore[misc]
    """Numba's pipeline, with flags that are quick to compare."""

    def __init__(
        self, typing: Any, target: Any, library: Any, args: Any, returned: Any, flags: Any, local: Any
    ) -> None:
        super().__init__(typing, target, library, args, returned, ComparableFlags(flags), local)

    def compile_extra(self, function: Any) -> Any:
        """Compile; it is known meanwhile that this process does."""
        from acegames.system.machine_code import bind

        with compiling():
            bind()
            return super().compile_extra(function)

    def define_pipelines(self) -> list[Any]:
        """Return the pipeline for compiled code only."""
        return [DefaultPassBuilder.define_nopython_pipeline(self.state)]


class LinkedCompiler(KernelCompiler):
    """Numba's pipeline up to LLVM code."""

    def define_pipelines(self) -> list[Any]:
        """Return the pipeline whose lowering stops at LLVM code."""
        whole = DefaultPassBuilder.define_nopython_pipeline(self.state)
        linked = PassManager("linked")
        for step, words in whole.passes:
            linked.add_pass(LinkedLowering if step is NativeLowering else step, words)
        linked.finalize()
        return [linked]
