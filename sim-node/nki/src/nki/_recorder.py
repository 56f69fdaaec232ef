"""Writes a program (docs/formats/program.md) while a kernel runs: its loops are unrolled by Python."""

import contextvars
import itertools
import linecache
import pathlib
import re
import sys

from nki._errors import Error, not_built
from nki._views import Buffer, MemoryRegion, NkiTensor, all_written

PACKAGES = tuple(str(pathlib.Path(__file__).parents[1] / name) for name in ("nki", "neuronxcc"))
CURRENT = contextvars.ContextVar("the recorder of the kernel that runs")
INDIRECT = "dma_copy_indirect"  # a program's name of dma_copy with such an offset
OVERWRITE = ("nc_matmul", "nc_transpose")  # all of dst
PREFIXES = {"sbuf": "s", "psum": "p"}  # of names; that of tensors in HBM is h


def current():
    recorder = CURRENT.get(None)
    if recorder is None:
        raise Error("nki is used outside of a kernel: call it in a function with @nki.jit")
    return recorder


def caller():
    """(file, line, function) of the innermost frame that is of neither package."""
    frame = sys._getframe(2)
    while frame.f_code.co_filename.startswith(PACKAGES):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name


def shown(place):
    file, line, function = place
    return f'  File "{file}", line {line}, in {function}\n    {linecache.getline(file, line).strip()}'


def operand(value, name, function):
    if isinstance(value, NkiTensor):
        value.check()
        if value.indirect is not None and function != INDIRECT:
            raise not_built(f"nki.isa.{function} with an offset that is read from memory")
        return value
    raise Error(f"{function}: {name} is {value!r}; expected a tensor")


class Recorder:
    def __init__(self, cores=1, run_so_far=None):
        self.run_so_far = run_so_far  # (program, output, places): the output's numbers
        self.lines = []  # None: left out
        self.places_of_lines = []  # the kernel's own
        self.names = set()
        self.count = 0
        self.constants = {}  # {tensor: (array, type)}, inputs that the kernel brings along
        self.identities = {}  # {(rows, type): tile}
        self.cores = cores
        self.core = 0  # whose instructions are recorded
        self.ranks = None  # that collectives name, all the same number
        self.shared = [[], []]  # by core: the tensors of shared_hbm, in the order in which the kernel makes them

    def go_to(self, core):
        """Records the other core of a program of two: the kernel runs again."""
        self.core = core
        self.identities = {}
        self.lines.append(f"core {core}")
        self.places_of_lines.append(caller())

    def on_ranks(self, function, ranks):
        if self.ranks not in (None, ranks):
            raise Error(f"{function}: replica_group is of {ranks} ranks, that of an earlier collective of {self.ranks}")
        self.ranks = ranks

    def _shared(self, dtype, shape):
        """On the second core: the tensor that the first core has made."""
        at = len(self.shared[1])
        storage = self.shared[0][at] if at < len(self.shared[0]) else None
        if storage is None or (storage.dtype, storage.shape) != (dtype, tuple(shape)):
            raise Error(f"program 1 makes a tensor of shared_hbm, {dtype!r} {list(shape)}, that program 0 does not make; both "
                        "share these tensors: expected the same in the same order, or nl.private_hbm")
        self.shared[1].append(storage)
        return storage

    def buffer(self, region, dtype, shape, name="", use="", address=None):
        if not shape:
            raise Error("a tensor has no dimensions; expected a shape of 1 or more")
        shares = region is MemoryRegion.shared_hbm and not use
        if shares and self.core == 1:
            return self._shared(dtype, shape)
        if not re.fullmatch(r"[A-Za-z][\w.-]{0,62}", name or "", re.ASCII) or name in self.names:
            while (name := f"{PREFIXES.get(region.name, 'h')}{self.count}") in self.names:
                self.count += 1
            self.count += 1
        self.names.add(name)
        storage = Buffer(name, region, dtype, shape, caller(), address)
        if shares:
            self.shared[0].append(storage)
        if use:
            storage.use = f" {use}"
            self._declare(storage)
        return storage

    def constant(self, array, dtype):
        """A tensor in HBM with the numbers of an array."""
        storage = self.buffer(MemoryRegion.shared_hbm, dtype, array.shape, "", "in")
        self.constants[storage.name] = (array, dtype)
        return NkiTensor.whole(storage)

    def _declare(self, storage):
        storage.line = len(self.lines)
        address = "" if storage.address is None else f" @ {storage.address}"
        self.lines.append(f"{storage.memory} {storage.name} {storage.dtype.program} {list(storage.shape)}{storage.use}{address}")
        self.places_of_lines.append(storage.place)

    def output(self, buffer):
        if buffer.use == " in":
            raise Error(f"the kernel returns its input {buffer.name}; expected a tensor that the kernel writes")
        if buffer.use == " inout" and not buffer.read and all_written(buffer):
            self._use(buffer, " out")  # nobody sees what was there
        if buffer.line is None:
            raise Error(f"the kernel returns {buffer.name}, which no instruction has written\n{shown(buffer.place)}")
        if not buffer.use:
            self._use(buffer, " out")

    def _use(self, buffer, use):
        line = self.lines[buffer.line]
        self.lines[buffer.line] = line.removesuffix(buffer.use) + use
        buffer.use = use

    def instruction(self, name, written, read, options=""):
        """`written` and `read` are views; an instruction of another engine ends the groups of nc_matmul."""
        texts = []
        for view in (written, *read):
            if view.storage.line is None:
                self._declare(view.storage)
            if not view.storage.on_chip:
                view.storage.written += [view] if view is written and view.indirect is None else []
                if view is written and view.storage.use == " in":
                    self._use(view.storage, " inout")
                view.storage.read |= view is not written
            if view.storage.groups and (name != "nc_matmul" or view is not written):
                end_groups(view)
            if view.storage.zeros:
                self._leave_out_zeros(view, view is written and name in OVERWRITE and " accumulate" not in options)
            texts.append(view.text())
        texts.insert(1, "<-")
        self.lines.append(f"{name} {' '.join(texts if read else texts[:1])}{options}")
        self.places_of_lines.append(caller())

    def zeros(self, view, options):
        """A memset to zeros. That of a PSUM tile is left out if nobody sees the zeros."""
        self.instruction("memset", view, [], options)
        if view.storage.memory == "psum":
            view.storage.zeros.append((len(self.lines) - 1, view.region(), view.key()))

    def _leave_out_zeros(self, view, overwrites):
        """Of zeros where an instruction touches the tile, those are left out that it overwrites; the others stay."""
        region, key, left = view.region(), view.key(), []
        for line, zeros, of in view.storage.zeros:
            if not overlap(zeros, region):
                left.append((line, zeros, of))
            elif overwrites and (of == key or (region[4] and contains(region, zeros))):
                self.lines[line] = None
        view.storage.zeros = left

    def number_of(self, view):
        """What a tile of one element holds after the program so far, which runs for that."""
        if self.cores != 1:
            raise not_built("a register in kernel[2]")
        if self.ranks is not None:
            raise not_built("a register beside collectives, where ranks may have other numbers,")
        view.check()
        name = next(name for at in itertools.count() if (name := f"register{at}") not in self.names)
        end = f"tensor {name} {view.dtype.program} [1, 1] out\ndma_copy {name} <- {view.text()}\n"
        return int(self.run_so_far(self.text() + end, name, self.places() + 2 * [caller()]).reshape(()))

    def text(self):
        return "".join(f"{line}\n" for line in self.lines if line is not None)

    def places(self):
        """The kernel's own place of each line of the text."""
        return [place for line, place in zip(self.lines, self.places_of_lines) if line is not None]


def overlap(one, other):
    return one[0] <= other[1] and other[0] <= one[1] and one[2] <= other[3] and other[2] <= one[3]


def contains(one, other):
    return one[0] <= other[0] and other[1] <= one[1] and one[2] <= other[2] and other[3] <= one[3]


def end_groups(view):
    region = view.region()
    view.storage.groups = [(group, key) for group, key in view.storage.groups if not overlap(group, region)]


def adds(view, accumulate):
    """Whether nc_matmul adds to `view`. None, as AWS's compiler is taken to infer: the first after the tile was made,
    read or written by another instruction overwrites, later ones add.
    """
    groups = view.storage.groups
    key = view.key()
    if groups and groups[-1][1] == key:
        return True if accumulate is None else accumulate
    region = view.region()
    inside = any(key == other or (group[4] and contains(group, region)) for group, other in groups)
    if accumulate is None and not inside and any(overlap(group, region) for group, _ in groups):
        raise Error(f"nc_matmul: a part of {view!r} was written by nc_matmul, another was not: accumulate= must say "
                    "whether to add")
    if not inside:
        groups.append((region, key))
    return inside if accumulate is None else accumulate
