"""FAISS, loaded with the BLAS kernel that this processor has.

The OpenBLAS in the wheels of faiss-cpu (0.3.15) knows no later processor, nor those of some hypervisors. For these it
takes its oldest kernel, Prescott, and products take three times as long.
"""

import os

from bitextmine.system import processor_flags

_VARIABLE = "OPENBLAS_CORETYPE"
# Kernels of OpenBLAS with the flags of /proc/cpuinfo that they need, fastest first.
_KERNELS = {
    "SkylakeX": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
    "Haswell": {"avx2", "fma"},
}


def openblas_kernel() -> str | None:
    """Return the name of the fastest OpenBLAS kernel for this processor; None to leave the choice to OpenBLAS."""
    flags = processor_flags()
    return next((kernel for kernel, needed in _KERNELS.items() if needed <= flags), None)


_kernel = None if _VARIABLE in os.environ else openblas_kernel()
if _kernel is not None:
    os.environ[_VARIABLE] = _kernel
try:
    import faiss as faiss
finally:
    if _kernel is not None:
        del os.environ[_VARIABLE]  # other libraries, and other processes, choose for themselves
