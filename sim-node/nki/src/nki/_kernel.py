"""@nki.jit, and what calling a kernel does."""

import dataclasses
import functools
import inspect

import numpy

from nki import _recorder, _trn_run
from nki._dtypes import DType, find
from nki._errors import Error, NotBuilt, not_built, refuse_options
from nki._views import MemoryRegion, NkiTensor


@dataclasses.dataclass(frozen=True)
class Input:
    """An argument of a kernel: a type, a shape and, unless only the time is asked for, numbers."""

    shape: tuple
    dtype: DType
    array: numpy.ndarray | None = None
    by_rank: bool = False  # the array's first dimension is the ranks

    def numbers(self):
        """The array for trn-run, which rounds float32 to types that numpy has not."""
        return numpy.ascontiguousarray(self.array, self.dtype.native or numpy.float32)


def tensor(array, dtype=None):
    """An argument of another type than numpy's: nki.tensor(a, nl.bfloat16). trn-run rounds float32 to it."""
    array = numpy.asarray(array)
    return Input(array.shape, find(array.dtype if dtype is None else dtype), array)


def each(arrays, dtype=None):
    """An argument that differs by rank: nki.each([that of rank 0, that of rank 1, …])."""
    shapes = sorted({numpy.shape(array) for array in arrays})
    if len(shapes) != 1:
        raise Error(f"nki.each has arrays of {', '.join(str(list(one)) for one in shapes) or 'no rank'}; expected one of each rank, "
                    "of one shape")
    array = numpy.stack(arrays)
    return Input(shapes[0], find(array.dtype if dtype is None else dtype), array, by_rank=True)


def shape(shape, dtype):
    """An argument without numbers, for run(…, data=False)."""
    return Input(tuple(shape), find(dtype))


@dataclasses.dataclass(frozen=True)
class Run:
    """A run of a kernel. Times are of the emulated cores, in us."""

    # As the kernel returns them: an array or a tuple of arrays; with ranks= a list by rank; None without data.
    results: object
    time_us: float
    bound_us: float  # busy time of the busiest resource
    bound: str  # its name
    resources: dict  # {name: (busy_us, instructions)}; of several ranks empty
    rank_times_us: list
    program: str  # the text that ran (docs/formats/program.md)


class Recording:
    """What a kernel did with its arguments."""

    def __init__(self, function, arguments, options, cores=1):
        self.recorder = _recorder.Recorder(cores, self._run_so_far)
        self.name = function.__name__
        self.inputs = {}  # tensor: Input
        bound = inspect.signature(function).bind(*arguments, **options)
        bound.apply_defaults()
        for name, value in bound.arguments.items():
            bound.arguments[name] = self._argument(name, value)
        token = _recorder.CURRENT.set(self.recorder)
        try:
            returned = function(*bound.args, **bound.kwargs)
            if cores == 2:
                self.recorder.go_to(1)
                function(*bound.args, **bound.kwargs)
        finally:
            _recorder.CURRENT.reset(token)
        self.inputs |= self._constants()
        self.one = not isinstance(returned, (tuple, list))
        self.returned = [self._result(value) for value in ([returned] if self.one else returned)]

    def _constants(self):
        return {name: tensor(*constant) for name, constant in self.recorder.constants.items()}

    def _run_so_far(self, program, output, places):
        inputs = {}
        for name, value in (self.inputs | self._constants()).items():
            if value.array is None or value.by_rank:
                raise NotBuilt(f"a register that decides while {name} is {'by rank' if value.by_rank else 'without numbers'}: a "
                               "program has no jumps, so the register's number must be known while the kernel is recorded")
            inputs[name] = [value.numbers()]
        _, arrays = _trn_run.run(program, self.name, inputs, {output}, [], places, None)
        return arrays[0][output]

    def _argument(self, name, value):
        if isinstance(value, dict):  # **options are one, too
            return {key: self._argument(key if isinstance(key, str) else f"{name}.{key}", one) for key, one in value.items()}
        if type(value) in (list, tuple):  # *arguments are one, too
            return type(value)(self._argument(f"{name}.{at}", one) for at, one in enumerate(value))
        if isinstance(value, numpy.ndarray):
            value = tensor(value)
        if isinstance(value, Input):
            view = NkiTensor.whole(self.recorder.buffer(MemoryRegion.shared_hbm, value.dtype, value.shape, name, "in"))
            self.inputs[view.storage.name] = value
            return view
        if hasattr(value, "shape") and hasattr(value, "dtype") and not isinstance(value, numpy.generic):
            raise Error(f"{name} is a {type(value).__module__}.{type(value).__name__}; expected an array of numpy, "
                        "nki.tensor(array, dtype) or nki.shape(shape, dtype)")
        return value

    def _result(self, value):
        if not isinstance(value, NkiTensor) or value.storage.on_chip:
            raise Error(f"the kernel returns {value!r}; expected tensors with buffer=nl.shared_hbm")
        if not value.is_all():
            raise Error(f"the kernel returns {value!r}, a part; expected a whole tensor")
        self.recorder.output(value.storage)
        if value.storage.use == " out":
            self.inputs.pop(value.storage.name, None)
        return value


class Kernel:
    """A function with @nki.jit. In another kernel it is a plain function."""

    def __init__(self, function, cores=1):
        functools.update_wrapper(self, function)
        self.func = function  # AWS's name
        self.cores = cores

    def __call__(self, *arguments, **options):
        if _recorder.CURRENT.get(None) is not None:
            return self.__wrapped__(*arguments, **options)
        return self._run(Recording(self.__wrapped__, arguments, options, self.cores), True).results

    def __getitem__(self, cores):
        """kernel[2] runs on both physical cores of a logical core of LNC 2, one program each."""
        cores = cores[0] if isinstance(cores, tuple) and len(cores) == 1 else cores
        if cores not in (1, 2):
            raise Error(f"a kernel on {cores!r} cores; expected 1, or 2 for the cores of LNC 2")
        return Kernel(self.__wrapped__, cores)

    def program(self, *arguments, **options):
        """The text of the program, without running it."""
        return Recording(self.__wrapped__, arguments, options, self.cores).recorder.text()

    def run(self, *arguments, data=True, timeline=None, core=0, chip=0, ranks=None, **options):
        """Runs on the claim's `core` of its `chip`, or on all `ranks`, a list of (chip, core). Without data only time passes:
        numbers are not looked at. `timeline` is a file to write for ui.perfetto.dev.
        """
        more = _rank_options([(chip, core)] if ranks is None else list(ranks))
        more += ["--timeline", str(timeline)] if timeline is not None else []
        recording = Recording(self.__wrapped__, arguments, options, self.cores)
        return self._run(recording, data, more, None if ranks is None else len(ranks))

    def _run(self, recording, data, options=(), ranks=None):
        asked = recording.recorder.ranks
        if asked not in (None, ranks or 1):
            raise Error(f"{self.__name__} has collectives of {asked} ranks and runs on {ranks or 1}: "
                        f"{self.__name__}.run(…, ranks=[(chip, core), …])")
        inputs = self._numbers(recording.inputs, ranks) if data else None
        text = recording.recorder.text()
        outputs = {value.storage.name for value in recording.returned}
        printed, arrays = _trn_run.run(text, self.__name__, inputs, outputs, options, recording.recorder.places(), ranks)
        results = None
        if data:
            results = [tuple(one[value.storage.name].reshape(value.shape) for value in recording.returned) for one in arrays]
            results = [one[0] if recording.one else one for one in results]
            results = results[0] if ranks is None else results
        return Run(results, *_trn_run.read_report(printed), text)

    def _numbers(self, inputs, ranks):
        """{tensor: [the array of each rank, or one for all]}"""
        numbers = {}
        for name, value in inputs.items():
            if value.array is None:
                raise Error(f"{name} is a shape without numbers; pass an array, or ask for the time alone: "
                            f"{self.__name__}.run(…, data=False)")
            array = value.numbers()
            if value.by_rank and len(array) != ranks:
                raise Error(f"{name} is an nki.each of {len(array)} arrays; {self.__name__} runs on "
                            f"{'no ranks=' if ranks is None else f'{ranks} ranks'}")
            numbers[name] = list(array) if value.by_rank else [array]
        return numbers


def _rank_options(ranks):
    """The options of trn-run for a list of (chip, core)."""
    chips, cores = (list(dict.fromkeys(numbers)) for numbers in zip(*ranks)) if ranks else ((), ())
    if not ranks or ranks != [(chip, core) for chip in chips for core in cores]:
        raise Error(f"ranks is {ranks!r}; expected (chip, core) of some chips, and of each the same cores in the same order")
    return ["--core", ",".join(map(str, cores)), "--chip", ",".join(map(str, chips))]


def jit(function=None, *, platform_target=None, mode="auto", debug_kernel=False, show_compiler_tb=False, experimental_flags=None,
        **options):
    """Makes a kernel of a function. The other named options are for AWS's compiler, of which there is none here."""
    if platform_target is not None and str(platform_target).lower() not in ("trn2", "gen3"):
        raise NotBuilt(f"nki.jit with platform_target={platform_target!r}; the emulated chip is a Trainium2: trn2")
    refuse_options("nki.jit", **{name: (value, [None]) for name, value in options.items()})
    return jit if function is None else Kernel(function)


def simulate(kernel):
    """The kernel, run by trn-run like any other: AWS's name for a kernel without an accelerator."""
    return kernel if isinstance(kernel, Kernel) else Kernel(kernel)
