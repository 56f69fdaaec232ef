"""The older namespace of AWS's Neuron Kernel Interface (docs/tasks/kernels.md): calls return tiles.

    @nki.jit
    def kernel(a, b):
        tile = nl.load(a) + nl.load(b)
        result = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        nl.store(result, value=tile)
        return result

Each call is one or more of nki.isa.
"""

from nki import Error, NotBuilt, shape, tensor
from neuronxcc.nki import compiler, isa, language, typing
from neuronxcc.nki._kernel import benchmark, jit, simulate_kernel

baremetal = jit

__all__ = ["Error", "NotBuilt", "baremetal", "benchmark", "compiler", "isa", "jit", "language", "shape", "simulate_kernel",
           "tensor", "typing"]
