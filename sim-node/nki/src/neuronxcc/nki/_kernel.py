"""@nki.jit of neuronxcc.nki: a kernel takes tensors of neuronxcc.nki, and a grid of programs."""

import functools
import itertools

from nki import _kernel, _recorder
from nki._errors import Error, refuse_options
from nki._views import NkiTensor, index_of
from neuronxcc.nki._tensor import PROGRAM, Program, as_tensor, settle


class Cores:
    """A dimension of a grid that is spread over the cores of LNC 2: program i runs on core i % cores."""

    def __init__(self, programs, cores):
        self.programs = programs
        self.cores = cores


def _size(size):
    return size.programs if isinstance(size, Cores) else index_of(size)


def _tensors(value):
    if isinstance(value, NkiTensor):
        return as_tensor(value)
    return type(value)(map(_tensors, value)) if type(value) in (list, tuple) else value


def _launched(function, grid):
    """The function, once for each program of the grid that is on the recorder's core."""
    sizes = tuple(map(_size, grid))
    spread = next((at for at, size in enumerate(grid) if isinstance(size, Cores)), None)

    @functools.wraps(function)
    def run(*arguments, **options):
        if PROGRAM.get(None) is not None:  # a kernel in a kernel
            return function(*arguments, **options)
        arguments, options = _tensors(arguments), {name: _tensors(value) for name, value in options.items()}
        shared, returned = [], None
        for ids in itertools.product(*map(range, sizes)):
            if spread is not None and ids[spread] % grid[spread].cores != _recorder.current().core:
                continue
            token = PROGRAM.set(Program(ids, sizes, shared))
            try:
                returned = function(*arguments, **options)
                settle()
            finally:
                PROGRAM.reset(token)
        return returned

    return run


class Kernel(_kernel.Kernel):
    """A function with @nki.jit. kernel[4, 8] has a program for each index of the grid, one behind the other."""

    def __init__(self, function, grid=()):
        cores = [size.cores for size in grid if isinstance(size, Cores)] or [1]
        if any(_size(size) < 1 for size in grid) or len(cores) > 1:
            raise Error(f"a grid is {list(map(_size, grid))}; expected sizes of 1 or more, and nl.nc in one dimension at most")
        super().__init__(_launched(function, grid), cores[0])
        self.func = function

    def __getitem__(self, grid):
        return type(self)(self.func, grid if isinstance(grid, tuple) else (grid,))


def jit(function=None, *, platform_target=None, mode="auto", **options):
    """Options are for AWS's compiler, of which there is none here, but for platform_target."""
    _kernel.jit(platform_target=platform_target, mode=mode)
    if function is None:
        return functools.partial(jit, platform_target=platform_target, mode=mode, **options)
    return function if isinstance(function, Kernel) else Kernel(function)


def simulate_kernel(kernel, *arguments, **options):
    return jit(kernel)(*arguments, **options)


class Latency:
    """The one time that all runs on the emulated core take, in us."""

    def __init__(self, time_us):
        self.time_us = time_us

    def get_latency_percentile(self, percentile):
        return self.time_us


class Benchmarked(Kernel):
    """A call gives benchmark_result.nc_latency, too."""

    def __call__(self, *arguments, **options):
        run = self.run(*arguments, **options)
        self.benchmark_result = type("Result", (), {"nc_latency": Latency(run.time_us)})
        return run.results


def benchmark(function=None, **options):
    """One run stands for `warmup` and `iters`; no file is written."""
    refuse_options("nki.benchmark", **{name: (value, [None]) for name, value in options.items()
                                       if name not in ("warmup", "iters", "save_neff_name", "save_trace_name")})
    return benchmark if function is None else Benchmarked(getattr(function, "func", function))
