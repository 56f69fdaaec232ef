"""Buffers of a program and views of them: shapes, slices and their form in a program's text."""

import enum
import math
import operator

import numpy

from nki._errors import Error, not_built

MemoryRegion = enum.Enum("MemoryRegion", "sbuf psum hbm shared_hbm private_hbm")
MOST_STEPS = 4  # free steps of a view in a program


class Buffer:
    """A tensor in HBM, or a tile in SBUF or PSUM."""

    __slots__ = ("name", "region", "dtype", "shape", "pitch", "use", "address", "line", "place", "groups", "zeros",
                 "written", "read")

    def __init__(self, name, region, dtype, shape, place, address=None):
        self.name = name
        self.region = region
        self.dtype = dtype
        self.shape = shape
        self.pitch = math.prod(shape[1:])  # elements of a partition
        self.use = ""
        self.address = address
        self.line = None  # index of the buffer's line in the program, once an instruction names the buffer
        self.place = place
        self.groups = []  # PSUM: the regions that the next nc_matmul adds to
        self.zeros = []  # PSUM: the regions of memsets to zeros that no instruction has touched since
        self.written = []  # HBM: views that instructions have written
        self.read = False  # HBM: whether one has read here

    @property
    def memory(self):
        """The word of a program's text."""
        return self.region.name if self.on_chip else "tensor"

    @property
    def on_chip(self):
        return self.region in (MemoryRegion.sbuf, MemoryRegion.psum)


def row_major(shape):
    strides = [1] * len(shape)
    for at in range(len(shape) - 2, -1, -1):
        strides[at] = strides[at + 1] * shape[at + 1]
    return tuple(strides)


def index_of(key):
    try:
        return operator.index(key)
    except TypeError:
        raise Error(f"an index is {key!r}; expected a number, a slice, nl.ds or ...") from None


def affine(offsets):
    """(first, strides) of an array whose elements are evenly spaced in each dimension; None for another one."""
    first, strides, expected = int(offsets.flat[0]), [], offsets.flat[0]
    for at, size in enumerate(offsets.shape):
        beside = tuple(int(other == at and size > 1) for other in range(offsets.ndim))
        strides.append(int(offsets[beside]) - first)
        expected = expected + strides[-1] * numpy.arange(size).reshape([-1 if other == at else 1 for other in range(offsets.ndim)])
    return (first, tuple(strides)) if numpy.array_equal(offsets, expected) else None


class NkiTensor:
    """A view of a buffer, sliced as numpy's arrays are. `ranges` are those of the buffer's dimensions,
    (begin, end, or None for an index), as long as ranges can say the view. `rows`: on chip, which dimension is that of
    the partitions; None after an index. `indices`: of a view by arrays of indices, those of each dimension of the tensor.
    `indirect`: (offsets, step) of a view whose place is read from memory.
    """

    __slots__ = ("storage", "shape", "strides", "offset", "ranges", "rows", "indices", "indirect")

    def __init__(self, storage, shape, strides, offset=0, ranges=None, rows=0, indices=None):
        self.storage = storage
        self.shape = shape
        self.strides = strides
        self.offset = offset
        self.ranges = ranges
        self.rows = rows
        self.indices = indices
        self.indirect = None

    @staticmethod
    def whole(storage):
        return NkiTensor(storage, storage.shape, row_major(storage.shape), 0, tuple((0, size) for size in storage.shape))

    @property
    def dtype(self):
        return self.storage.dtype

    @property
    def buffer(self):
        """nl.sbuf, nl.psum, …"""
        return self.storage.region

    @property
    def ndim(self):
        return len(self.shape)

    def is_all(self):
        """Whether the view is all elements of the buffer in their order."""
        return self.offset == 0 and self.strides == row_major(self.shape) and (
            math.prod(self.shape) == math.prod(self.storage.shape))

    def __repr__(self):
        return f"{self.text()} {self.dtype.program} {list(self.shape)}"

    __iter__ = None  # else Python would try indices until one fails

    def _check_direct(self):
        if self.indirect is not None:
            raise Error(f"a part of {self!r}, whose place is read from memory; expected .ap with the pattern of the part")

    def __getitem__(self, keys):
        self._check_direct()
        keys = keys if isinstance(keys, tuple) else (keys,)
        if any(isinstance(key, numpy.ndarray) for key in keys):
            return self._by_arrays(keys)
        if any(key is Ellipsis for key in keys):
            at = next(at for at, key in enumerate(keys) if key is Ellipsis)
            keys = keys[:at] + (slice(None),) * (len(self.shape) - len(keys) + 1) + keys[at + 1:]
        if self.storage.on_chip and self.rows == 0 and len(keys) == 2 and len(self.shape) == 1:  # AWS's tiles have two
            return type(self)(self.storage, (*self.shape, 1), (*self.strides, 1), self.offset, None, self.rows)[keys]
        if len(keys) > len(self.shape):
            raise Error(f"{len(keys)} indices of {self!r}, which has {len(self.shape)} dimensions")
        offset, shape, strides, taken = self.offset, [], [], []
        for at, size in enumerate(self.shape):
            begin, end, step = self._range(keys[at], at) if at < len(keys) else (0, size, 1)
            offset += begin * self.strides[at]
            taken.append((begin, end, step))
            if end is not None:
                shape.append(-(-(end - begin) // step))
                strides.append(self.strides[at] * step)
        rows = self.rows
        if rows is not None:
            rows = None if rows < len(taken) and taken[rows][1] is None else sum(end is not None for _, end, _ in taken[:rows])
        indices = self.indices
        if indices is not None:
            box = tuple(begin if end is None else slice(begin, end, step) for begin, end, step in taken)
            indices = [(array[box], size) for array, size in indices]
        return type(self)(self.storage, tuple(shape), tuple(strides), offset, self._ranges(taken), rows, indices)

    def _range(self, key, at):
        """(begin, end, step) of a slice, (begin, None, 1) of an index."""
        size = self.shape[at]
        if not isinstance(key, slice):
            index = index_of(key)
            if not -size <= index < size:
                raise Error(f"index {index} of dimension {at} of {self!r}; expected 0 to {size - 1}")
            return index % size, None, 1
        step = 1 if key.step is None else index_of(key.step)
        begin = 0 if key.start is None else index_of(key.start)
        end = size if key.stop is None else index_of(key.stop)
        begin, end = begin + size * (begin < 0), end + size * (end < 0)
        if step < 1:
            raise Error(f"a slice of dimension {at} of {self!r} steps by {step}; expected 1 or more")
        if not 0 <= begin < end <= size:
            raise Error(f"the slice {begin}:{end} of dimension {at} of {self!r}; expected begin below end, within 0:{size}")
        return begin, end, step

    def _ranges(self, taken):
        if self.ranges is None or any(step != 1 for _, _, step in taken):
            return None
        left = iter(taken)
        ranges = []
        for begin, end in self.ranges:
            if end is not None:
                low, high, _ = next(left)
                begin, end = begin + low, None if high is None else begin + high
            ranges.append((begin, end))
        return tuple(ranges)

    def _by_arrays(self, keys):
        """A view by arrays of indices, as nl.arange and nl.mgrid make them. An index too large is found when the view is
        used: a mask may leave it out.
        """
        if len(keys) != len(self.shape) or any(isinstance(key, slice) or key is Ellipsis for key in keys):
            raise Error(f"{self!r} has {len(self.shape)} dimensions; expected an index or an array of indices for each")
        keys = [numpy.asarray(key if isinstance(key, numpy.ndarray) else index_of(key)) for key in keys]
        shape = numpy.broadcast_shapes(*(key.shape for key in keys))
        parts = [affine(key.reshape((1,) * (len(shape) - key.ndim) + key.shape)) for key in keys]
        arrays = [numpy.broadcast_to(key, shape) for key in keys]
        if None in parts:
            found = affine(sum(array * stride for array, stride in zip(arrays, self.strides)))
        else:
            found = (sum(first * stride for (first, _), stride in zip(parts, self.strides)),
                     tuple(sum(steps[at] * stride for (_, steps), stride in zip(parts, self.strides)) for at in range(len(shape))))
        rows, has_rows = None, self.storage.on_chip and self.rows is not None
        if found is None or (has_rows and parts[self.rows] is None):
            raise Error(f"the indices of {self!r} are not evenly spaced")
        offset, strides = found
        if has_rows:
            rows = next((at for at, step in enumerate(parts[self.rows][1]) if step != 0), None)
            if rows is not None and strides[rows] % self.strides[self.rows] != 0:
                raise Error(f"the indices of {self!r} step over partitions and elements at once")
        return type(self)(self.storage, shape, strides, self.offset + offset, None, rows, list(zip(arrays, self.shape)))

    def check(self):
        """Refuses a view by arrays that leaves its tensor."""
        for at, (array, size) in enumerate(self.indices or ()):
            once = array[tuple(slice(1 if stride == 0 else None) for stride in array.strides)]  # what broadcasting repeats
            if once.min() < 0 or once.max() >= size:
                raise Error(f"the indices of dimension {at} of {self.storage.name} are {once.min()} to {once.max()}; "
                            f"expected 0 to {size - 1}, or a mask")

    def reshape(self, *shape):
        """Another shape of the same elements in the same order; on chip the partitions stay."""
        self._check_direct()
        shape = tuple(map(index_of, shape[0] if isinstance(shape[0], (tuple, list)) else shape))
        kept = 1 if self.storage.on_chip and self.rows == 0 else 0
        if math.prod(shape) != math.prod(self.shape) or shape[:kept] != self.shape[:kept]:
            raise Error(f"{self!r} cannot become {list(shape)}: the elements and, on chip, the partitions stay")
        if any(size > 1 and stride != dense for size, stride, dense
               in zip(self.shape[kept:], self.strides[kept:], row_major(self.shape[kept:]))):
            raise Error(f"{self!r} cannot become {list(shape)}: its elements are not one beside the other; use .ap")
        return type(self)(self.storage, shape, self.strides[:kept] + row_major(shape[kept:]), self.offset, None, self.rows)

    def ap(self, pattern, offset=0, dtype=None, scalar_offset=None, vector_offset=None, indirect_dim=0):
        """The access pattern [[step, count], …] in elements, from `offset`; on chip the first pair is the partitions.
        `scalar_offset` is an index of the tensor's dimension `indirect_dim` that is added to all of the pattern;
        `vector_offset` has one for each row of the pattern, in the place of the first pair's steps.
        """
        self._check_direct()
        if dtype is not None and dtype != self.dtype:
            raise not_built("ap with another dtype")
        if not self.is_all():
            raise Error(f"ap of {self!r}, which is a part; AWS's NKI has ap for whole tensors only")
        steps = [(index_of(step), index_of(count)) for step, count in pattern]
        if self.storage.on_chip and steps[0][1] > 1 and steps[0][0] != self.storage.pitch:
            raise Error(f"ap of {self!r} steps over partitions by {steps[0][0]} elements; expected {self.storage.pitch}")
        view = type(self)(self.storage, tuple(count for _, count in steps), tuple(step for step, _ in steps), index_of(offset))
        if scalar_offset is not None or vector_offset is not None:
            if indirect_dim not in range(self.ndim):
                raise Error(f"ap of {self!r} with indirect_dim {indirect_dim!r}; expected 0 to {self.ndim - 1}")
            view._read_offsets(scalar_offset, vector_offset, self.strides[indirect_dim])
        return view

    def _read_offsets(self, scalar, vector, stride):
        """`stride` is that of the tensor's dimension. AWS's kernels give the first pair of a vector any step."""
        if vector is not None and scalar is not None:
            raise Error("ap has scalar_offset and vector_offset; expected at most one of both")
        if vector is None and not isinstance(scalar, NkiTensor):
            self.offset += index_of(scalar) * stride
            return
        if self.storage.on_chip:
            raise not_built("ap of a tile with an offset that is read from memory")
        offsets = scalar if vector is None else vector
        count = 1 if vector is None else self.shape[0]
        if not isinstance(offsets, NkiTensor) or math.prod(offsets.shape) != count or not offsets.storage.on_chip:
            raise Error(f"ap with offsets {offsets!r}; expected a tile in SBUF with {count} of them, one in each partition")
        if vector is not None:
            self.shape, self.strides = (*self.shape, *[1] * (self.ndim == 1)), (0, *self.strides[1:], *[1] * (self.ndim == 1))
        self.indirect = (offsets, stride)

    def _steps(self):
        """((count, stride) of the rows, those of the free steps)."""
        steps = list(zip(self.shape, self.strides))
        if self.storage.on_chip:
            rows = (1, 1) if self.rows is None else (steps.pop(self.rows)[0], 1)
        else:
            rows = steps.pop(0) if len(steps) > 1 else (1, 1)
        if len(steps) > MOST_STEPS:
            steps = joined(steps)
        return rows, steps or [(1, 1)]

    def text(self):
        """As an operand of an instruction."""
        storage = self.storage
        if self.ranges is not None:
            if self.shape == storage.shape:
                return storage.name
            return f"{storage.name}[{', '.join([str(b) if e is None else f'{b}:{e}' for b, e in self.ranges])}]"
        rows, steps = self._steps()
        where = f"offset={self.offset}"
        if storage.on_chip:
            where = f"partition={self.offset // storage.pitch}, offset={self.offset % storage.pitch}"
        return (f"{storage.name}.ap({where}, rows={rows[0]}x{rows[1]}, "
                f"free={' '.join([f'{count}x{stride}' for count, stride in steps])})")

    def key(self):
        """Equal for views of the same elements in the same order, of one buffer."""
        return self.offset, self.shape, self.strides

    def region(self):
        """(first partition, last, first element of a partition, last, whether all between are taken); on chip."""
        pitch = self.storage.pitch
        free = list(zip(self.shape, self.strides))
        count = 1 if self.rows is None else free.pop(self.rows)[0]
        first, partition = self.offset % pitch, self.offset // pitch
        ends = [(size - 1) * stride for size, stride in free]
        low, high = first + sum(end for end in ends if end < 0), first + sum(end for end in ends if end > 0)
        return partition, partition + count - 1, low, high, high - low + 1 == math.prod(size for size, _ in free)


def all_written(storage):
    """Whether the views that instructions have written are all elements."""
    found = numpy.zeros(math.prod(storage.shape), bool)
    for view in storage.written:
        numpy.lib.stride_tricks.as_strided(found[view.offset:], view.shape, view.strides)[...] = True
    return found.all()


def joined(steps):
    """The same elements in the same order, in as few steps as there can be."""
    found = []
    for count, stride in steps:
        if found and found[-1][1] == count * stride:
            found[-1] = (found[-1][0] * count, stride)
        elif count != 1:
            found.append((count, stride))
    return found
