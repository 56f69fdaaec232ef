"""AWS's Neuron Kernel Interface on an emulated NeuronCore (docs/tasks/kernels.md).

    @nki.jit
    def kernel(a, b): …                       # with nki.language and nki.isa

    c = kernel(a, b)                          # arrays of numpy
    kernel.run(a, b, data=False).time_us      # only the time
    kernel.run(nki.each([a0, a1]), b, ranks=[(0, 0), (1, 0)]).results   # of two chips, with nki.collectives

A call records the kernel's instructions as a program and runs the program with trn-run, in a pod with a claim.
"""

from nki import collectives, dtype, isa, language
from nki._errors import Error, NotBuilt
from nki._kernel import Run, each, jit, shape, simulate, tensor

__all__ = ["Error", "NotBuilt", "Run", "collectives", "dtype", "each", "isa", "jit", "language", "shape", "simulate", "tensor"]
