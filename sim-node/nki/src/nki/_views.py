"""Buffers of a program and views of them: shapes, slices and their form in a program's text."""

import math
import operator

from nki._errors import Error, not_built


class Buffer:
    """A tensor in HBM, or a tile in SBUF or PSUM."""

    __slots__ = ("name", "memory", "dtype", "shape", "pitch", "use", "line", "place", "groups", "zeros")

    def __init__(self, name, memory, dtype, shape, place):
        self.name = name
        self.memory = memory  # "tensor", "sbuf" or "psum"
        self.dtype = dtype
        self.shape = shape
        self.pitch = math.prod(shape[1:])  # elements of a partition
        self.use = ""
        self.line = None  # index of the buffer's line in the program, once an instruction names the buffer
        self.place = place
        self.groups = []  # PSUM: the regions that the next nc_matmul adds to
        self.zeros = []  # PSUM: the regions of memsets to zeros that no instruction has touched since

    @property
    def on_chip(self):
        return self.memory != "tensor"


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


class NkiTensor:
    """A view of a buffer, sliced as numpy's arrays are. `ranges` are those of the buffer's dimensions,
    (begin, end, or None for an index), as long as ranges can say the view. `rows`: on chip, whether the first
    dimension is that of the partitions.
    """

    __slots__ = ("buffer", "shape", "strides", "offset", "ranges", "rows")

    def __init__(self, buffer, shape, strides, offset=0, ranges=None, rows=True):
        self.buffer = buffer
        self.shape = shape
        self.strides = strides
        self.offset = offset
        self.ranges = ranges
        self.rows = rows

    @staticmethod
    def whole(buffer):
        return NkiTensor(buffer, buffer.shape, row_major(buffer.shape), 0, tuple((0, size) for size in buffer.shape))

    @property
    def dtype(self):
        return self.buffer.dtype

    @property
    def ndim(self):
        return len(self.shape)

    def is_all(self):
        """Whether the view is all elements of the buffer in their order."""
        return self.offset == 0 and self.strides == row_major(self.shape) and (
            math.prod(self.shape) == math.prod(self.buffer.shape))

    def __repr__(self):
        return f"{self.text()} {self.dtype.program} {list(self.shape)}"

    __iter__ = None  # else Python would try indices until one fails

    def __getitem__(self, keys):
        keys = keys if isinstance(keys, tuple) else (keys,)
        if Ellipsis in keys:
            at = keys.index(Ellipsis)
            keys = keys[:at] + (slice(None),) * (len(self.shape) - len(keys) + 1) + keys[at + 1:]
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
        rows = self.rows and all(end is not None for _, end, _ in taken[:1])
        return NkiTensor(self.buffer, tuple(shape), tuple(strides), offset, self._ranges(taken), rows)

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

    def reshape(self, *shape):
        """Another shape of the same elements in the same order; on chip the partitions stay."""
        shape = tuple(map(index_of, shape[0] if isinstance(shape[0], (tuple, list)) else shape))
        kept = 1 if self.buffer.on_chip and self.rows else 0
        if math.prod(shape) != math.prod(self.shape) or shape[:kept] != self.shape[:kept]:
            raise Error(f"{self!r} cannot become {list(shape)}: the elements and, on chip, the partitions stay")
        if any(size > 1 and stride != dense for size, stride, dense
               in zip(self.shape[kept:], self.strides[kept:], row_major(self.shape[kept:]))):
            raise Error(f"{self!r} cannot become {list(shape)}: its elements are not one beside the other; use .ap")
        return NkiTensor(self.buffer, shape, self.strides[:kept] + row_major(shape[kept:]), self.offset, None, self.rows)

    def ap(self, pattern, offset=0, dtype=None, scalar_offset=None, vector_offset=None, indirect_dim=0):
        """The access pattern [[step, count], …] in elements, from `offset`; on chip the first pair is the partitions."""
        if scalar_offset is not None or vector_offset is not None:
            raise not_built("ap with an offset that is read from memory")
        if dtype is not None and dtype != self.dtype:
            raise not_built("ap with another dtype")
        if not self.is_all():
            raise Error(f"ap of {self!r}, which is a part; AWS's NKI has ap for whole tensors only")
        steps = [(index_of(step), index_of(count)) for step, count in pattern]
        if self.buffer.on_chip and steps[0][1] > 1 and steps[0][0] != self.buffer.pitch:
            raise Error(f"ap of {self!r} steps over partitions by {steps[0][0]} elements; expected {self.buffer.pitch}")
        return NkiTensor(self.buffer, tuple(count for _, count in steps), tuple(step for step, _ in steps), index_of(offset))

    def text(self):
        """As an operand of an instruction."""
        buffer = self.buffer
        if self.ranges is not None:
            if self.shape == buffer.shape:
                return buffer.name
            return f"{buffer.name}[{', '.join([str(b) if e is None else f'{b}:{e}' for b, e in self.ranges])}]"
        steps = [f"{count}x{stride}" for count, stride in zip(self.shape, self.strides)]
        if not buffer.on_chip:
            first = steps.pop(0) if len(steps) > 1 else "1x1"
            where = f"offset={self.offset}"
        else:
            first = f"{self.shape[0]}x1" if self.rows else "1x1"
            steps = steps[1:] if self.rows else steps
            where = f"partition={self.offset // buffer.pitch}, offset={self.offset % buffer.pitch}"
        return f"{buffer.name}.ap({where}, rows={first}, free={' '.join(steps or ['1x1'])})"

    def key(self):
        """Equal for views of the same elements in the same order, of one buffer."""
        return self.offset, self.shape, self.strides

    def region(self):
        """(first partition, last, first element of a partition, last, whether all between are taken); on chip."""
        pitch = self.buffer.pitch
        free = list(zip(self.shape, self.strides))[1 if self.rows else 0:]
        count = self.shape[0] if self.rows else 1
        low, partition = self.offset % pitch, self.offset // pitch
        high = low + sum((size - 1) * stride for size, stride in free)
        return partition, partition + count - 1, low, high, high - low + 1 == math.prod(size for size, _ in free)
