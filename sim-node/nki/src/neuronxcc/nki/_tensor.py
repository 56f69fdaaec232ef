"""Tensors that kernels of neuronxcc.nki compute with, and where the results of instructions go.

A call returns a tile. The instruction is recorded when the next call asks for it, or when the kernel assigns the tile to
a part of a tensor: then the instruction writes there, and no tile is made.
"""

import contextvars
import dataclasses
import math
import weakref

import numpy

from nki import isa, language
from nki._errors import Error, not_built
from nki._recorder import contains
from nki._views import MemoryRegion, NkiTensor, row_major
from neuronxcc.nki._indices import aligned, used_axes

sbuf, psum = MemoryRegion.sbuf, MemoryRegion.psum
PROGRAM = contextvars.ContextVar("the program of a grid that runs")
MOST_FREE = 4  # free dimensions of an instruction
NOWHERE = ()  # the box of a mask that is false


@dataclasses.dataclass
class Program:
    """One of the programs of a grid, which run one after another on a core."""

    ids: tuple
    sizes: tuple
    shared: list  # the tensors of shared_hbm that the first program has made
    made: int = 0  # how many of them this program has named
    waiting: "Waiting | None" = None
    kept: tuple | None = None  # (a result, weakly, where its instruction wrote)
    read: set = dataclasses.field(default_factory=set)  # buffers of the operands of the next result
    left_out: set = dataclasses.field(default_factory=set)  # buffers that a false mask left as they were


@dataclasses.dataclass
class Waiting:
    """A result whose instruction is not recorded yet."""

    tile: "Tensor"
    write: object  # of a product write(dst, accumulate) adds
    is_product: bool = False


def program():
    found = PROGRAM.get(None)
    if found is None:
        raise Error("neuronxcc.nki is used outside of a kernel: call it in a function with @nki.jit")
    return found


def settle():
    """Records the instruction that waits. A result that was assigned and is still named gets a tile of its own."""
    running = program()
    kept, running.kept = running.kept, None
    if kept is not None and (tile := kept[0]()) is not None:
        copy(tile, fitted(kept[1], tile.shape))
    waiting, running.waiting = running.waiting, None
    if waiting is not None:
        waiting.write(waiting.tile)


class Tensor(NkiTensor):
    """A view that kernels slice, assign to and compute with. neuronxcc.nki.language adds the operators."""

    __slots__ = ("__weakref__",)

    def __getitem__(self, keys):
        if isinstance(keys, numpy.ndarray) and keys.dtype == bool:
            return part(self, box_of(keys, self.shape))
        found = super().__getitem__(keys)
        arrays = [key for key in (keys if isinstance(keys, tuple) else (keys,)) if isinstance(key, numpy.ndarray)]
        return _without_unused(found, max(len(arrays), 2)) if arrays else found

    def __setitem__(self, keys, value):
        assign(self[keys], value)

    def reshape(self, shape):
        return super().reshape(shape)

    def broadcast_to(self, shape):
        return spread(operand(self), tuple(shape))

    def view(self, dtype):
        raise not_built("a tensor's view with another dtype")


class Blocks:
    """Tiles before whose partitions par_dim leaves dimensions. Each is a tensor of its own."""

    def __init__(self, tiles):
        self.tiles = tiles  # an array of tensors
        first = tiles.flat[0]
        self.shape, self.ndim = tiles.shape + first.shape, tiles.ndim + first.ndim
        self.dtype, self.buffer = first.dtype, first.buffer

    def __getitem__(self, keys):
        keys = keys if isinstance(keys, tuple) else (keys,)
        blocks, rest = keys[:self.tiles.ndim], keys[self.tiles.ndim:]
        if any(isinstance(key, slice) or key is Ellipsis or numpy.ndim(key) > 0 for key in blocks):
            raise Error(f"an index of the blocks {list(self.tiles.shape)} before par_dim is {blocks!r}; expected numbers")
        try:
            found = self.tiles[blocks]
        except IndexError as error:
            raise Error(f"the blocks before par_dim: {error}") from None
        if isinstance(found, numpy.ndarray):
            return Blocks(found)
        return found[rest] if rest else found

    def __setitem__(self, keys, value):
        assign(self[keys], value)


def as_tensor(view):
    return Tensor(view.storage, view.shape, view.strides, view.offset, view.ranges, view.rows)


def _without_unused(view, count):
    """A view by arrays of nl.mgrid has no dimensions of indices that it does not use."""
    kept = used_axes(view.shape, count)
    if len(kept) == view.ndim:
        return view
    place = tuple(slice(None) if at in kept else 0 for at in range(view.ndim))
    return Tensor(view.storage, tuple(view.shape[at] for at in kept), tuple(view.strides[at] for at in kept), view.offset, None,
                  kept.index(view.rows) if view.rows in kept else None, [(array[place], size) for array, size in view.indices])


def new(shape, dtype, region=sbuf):
    if region in (sbuf, psum) and len(shape) > MOST_FREE + 1:
        flat = new((shape[0], math.prod(shape[1:])), dtype, region)
        return shaped(flat, shape, (flat.strides[0], *row_major(shape[1:])))
    return as_tensor(language.ndarray(shape, dtype, region))


def shaped(view, shape, strides):
    """A view of other dimensions. Indices are checked here, as they do not follow."""
    view.check()
    return Tensor(view.storage, tuple(shape), tuple(strides), view.offset, None, 0 if view.storage.on_chip else None)


def canonical(view):
    """A view of 2 dimensions or more, the first of them the partitions: an index keeps one partition or one column."""
    if not isinstance(view, NkiTensor):
        raise Error(f"an operand is {view!r}; expected a tensor" + (", one block of it" if isinstance(view, Blocks) else ""))
    if view.storage.on_chip and view.rows is None and view.ndim > 1 and view.shape[0] == 1:
        view = shaped(view, view.shape, (view.storage.pitch, *view.strides[1:]))
    elif view.storage.on_chip and view.rows is None:
        view = shaped(view, (1, *view.shape), (view.storage.pitch, *view.strides))
    if view.ndim < 2:
        missing = 2 - view.ndim
        view = shaped(view, (*view.shape, *[1] * missing), (*view.strides, *[1] * missing))
    return view


def operand(view):
    """What an instruction reads; earlier results are recorded. Where a false mask wrote nothing there are zeros."""
    settle()
    view = canonical(view)
    program().read.add(view.storage)
    if view.storage.line is None and view.storage in program().left_out:
        isa.memset(NkiTensor.whole(view.storage), 0)
    return view


def fitted(view, shape):
    """The view with dimensions of size 1 where `shape` has them."""
    view = canonical(view)
    if view.shape == shape:
        return view
    sizes = [(size, stride) for size, stride in zip(view.shape, view.strides) if size != 1]
    if [size for size, _ in sizes] == [size for size in shape if size != 1]:
        left = iter(sizes)
        return shaped(view, shape, [next(left)[1] if size != 1 else 1 for size in shape])
    if view.shape[0] == shape[0] and math.prod(view.shape) == math.prod(shape):
        return view
    raise Error(f"a result has the shape {list(shape)}; expected that of {view!r}")


def joint(*shapes):
    """The shape that operands have together; dimensions are aligned behind the partitions."""
    most = max(len(shape) for shape in shapes)
    padded = [shape[:1] + (1,) * (most - len(shape)) + shape[1:] for shape in shapes]
    try:
        return numpy.broadcast_shapes(*padded)
    except ValueError:
        shown = ", ".join(str(list(shape)) for shape in shapes)
        raise Error(f"operands have the shapes {shown}; expected equal sizes, or 1") from None


def spread(view, shape):
    """The view with elements repeated to `shape`. One partition is copied to the others."""
    if view.shape == shape:
        return view
    padded = (shape[0] if view.shape[0] == 1 else view.shape[0], *[1] * (len(shape) - view.ndim), *view.shape[1:])
    if joint(padded, shape) != shape:
        raise Error(f"{view!r} cannot be repeated to {list(shape)}")
    if view.shape[0] == 1 != shape[0]:
        tile = new((shape[0], *view.shape[1:]), view.dtype)
        for first in range(0, shape[0], 32):
            isa.nc_stream_shuffle(tile[first:min(first + 32, shape[0])], view, [0] * 32)
        view = tile
    strides = (view.strides[0], *[0] * (len(shape) - view.ndim), *view.strides[1:])
    return shaped(view, shape, [stride if size == wanted else 0 for stride, size, wanted in zip(strides, padded, shape)])


def copy(dst, src, engine=isa.unknown_engine):
    """A kernel that names no engine gets the scalar engine for what is in PSUM, as comments in AWS's kernels say."""
    if engine is isa.unknown_engine and src.buffer is psum and "float" in src.dtype.name:
        engine = isa.scalar_engine
    isa.tensor_copy(dst, src, engine)


def in_sbuf(view):
    if view.buffer is not psum:
        return view
    tile = new(view.shape, view.dtype)
    copy(tile, view)
    return tile


def as_type(view, dtype):
    if view.dtype == dtype:
        return view
    tile = new(view.shape, dtype)
    copy(tile, view)
    return tile


def box_of(mask, shape):
    """The slices where a mask is true: None for all, NOWHERE for none."""
    if mask is None:
        return None
    if not numpy.any(mask):
        return NOWHERE
    box = language.box_of(aligned(mask, shape), shape)
    return None if all((one.start, one.stop) == (0, size) for one, size in zip(box, shape)) else box


def part(view, box):
    """The part of an operand that goes with a part of the result; what is repeated stays."""
    if box is None or not isinstance(view, NkiTensor):
        return view
    box = box if len(box) == view.ndim else (box[0], *[slice(None)] * (view.ndim - 1))
    return view[tuple(slice(None) if size == 1 else one for size, one in zip(view.shape, box))]


def _pieces(shape, box):
    """Boxes of what one instruction takes: some kernels index more free dimensions."""
    free = [at for at in range(1, len(shape)) if shape[at] != 1]
    if len(free) <= MOST_FREE or box is NOWHERE:
        return [box]
    full = [slice(0, size) for size in shape] if box is None else list(box)
    outer = free[0]
    found = []
    for at in range(full[outer].start, full[outer].stop):
        piece = tuple(full[:outer] + [slice(at, at + 1)] + full[outer + 1:])
        inner = tuple(1 if one == outer else size for one, size in enumerate(shape))
        found += _pieces(inner, piece)
    return found


def made(emit, shape, dtype, box=None, region=sbuf, only=None, same_type=False, make=new, several=False):
    """The tile that an instruction writes. emit(dst, box) records the instruction for a box of the result. It writes to
    the memory `only` and, with `same_type`, the type `dtype`; elsewhere a copy follows. Where emit records `several`
    instructions, they write to no operand.
    """
    settle()
    pieces, running = _pieces(shape, box), program()
    read, running.read = running.read if several or len(pieces) > 1 else (), set()

    def write(dst):
        if box is NOWHERE:
            program().left_out.add(dst.storage)
            return
        dst = fitted(dst, shape)
        if (only is not None and dst.buffer is not only) or (same_type and dst.dtype != dtype) or dst.storage in read:
            tile = make(shape, dtype, region)
            write(tile)
            copy(part(dst, box), part(tile, box))
            return
        _fill(dst, box)
        for piece in pieces:
            emit(part(dst, piece), piece)

    tile = make(shape, dtype, region)
    running.waiting = Waiting(tile, write)
    return tile


def _fill(dst, box):
    """A new tile, of which a mask writes a part, begins with zeros: other instructions may read all of it."""
    if box is not None and dst.storage.line is None and dst.storage.on_chip:
        isa.memset(NkiTensor.whole(dst.storage), 0)


def assign(dst, value):
    """dst[...] = value"""
    if isinstance(value, NkiTensor) and value.storage is dst.storage and value.key() == dst.key():
        return
    running = program()
    waiting = running.waiting
    if waiting is None or waiting.tile is not value or not dst.storage.on_chip or not _fits(dst, value):
        settle()
        _copy(dst, value)
        return
    running.waiting = None
    settle()
    waiting.write(dst)
    running.kept = weakref.ref(value), dst


def _fits(dst, value):
    return math.prod(dst.shape) == math.prod(value.shape)


def _copy(dst, value):
    dst.check()
    if not isinstance(value, NkiTensor):
        isa.memset(dst, value)
    elif not dst.storage.on_chip:
        isa.dma_copy(dst, in_sbuf(canonical(value)))
    else:
        value = canonical(value)
        copy(dst, value if _fits(dst, value) else spread(value, canonical(dst).shape))


def add_product(dst, value):
    """dst += the result of nc_matmul, in PSUM; False for another value."""
    running = program()
    waiting = running.waiting
    waits = waiting is not None and waiting.tile is value and waiting.is_product
    if not waits or dst.buffer is not psum or not _fits(dst, value):
        return False
    running.waiting = None
    settle()
    waiting.write(dst, _holds_sum(dst))
    return True


def _holds_sum(view):
    """accumulate= for nc_matmul: None where there are zeros, products or nothing, for which nki knows what to do."""
    storage, region = view.storage, view.region()
    known = [zeros for _, zeros, _ in storage.zeros] + [group for group, _ in storage.groups]
    return None if storage.line is None or any(contains(one, region) for one in known) else True
