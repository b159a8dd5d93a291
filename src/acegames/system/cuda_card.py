"""An NVIDIA GPU: its memory, its kernels, and the way back to the host.

Work goes to one stream and is done in its order. What is filed goes back through two pinned buffers
on a second stream, while the next layer is computed.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from acegames.errors import MissingExtra, TooLarge
from acegames.system.extras import check_installed, optional
from acegames.system.machine import bytes_said

if TYPE_CHECKING:
    from acegames.system.cuda_code import KernelSpec

OLDEST = (7, 5)  # compute capability that the compiler still knows
CUDA = 13  # that drivers must know
NONE = "finds none (or CUDA_VISIBLE_DEVICES hides it)"
ELSE = "LocalEngine() solves the same without (--engine local)"
PINNED = 64 * 2**20  # bytes of each buffer on the way back
COPIERS = 8  # threads that copy from there
SHARED_COPY = 2**20  # bytes from which on they share
RESIDENT = 2048  # threads of a multiprocessor, at most: the driver keeps each one's own memory
GROWING = 4  # rooms that grow become larger than needed by one in so many
RESERVED = 512 * 2**20  # bytes of a card that are left to the driver and to kernels' own memory


class DeviceMemory:
    """Bytes on a card, given back when nothing refers to them any more."""

    def __init__(self, card: Card, count: int) -> None:
        self.card, self.pointer = card, 0
        self.pointer = card.allocate(count)

    def __del__(self) -> None:
        if self.pointer:
            self.card.release(self.pointer)


class DeviceArray:
    """An array on a card: a row or rows of it can be taken, and other shapes, as in numpy."""

    def __init__(self, memory: DeviceMemory, pointer: int, shape: tuple[int, ...], dtype: Any) -> None:
        self.memory, self.pointer, self.shape, self.dtype = memory, pointer, shape, np.dtype(dtype)
        strides, stride = list[int](), self.dtype.itemsize
        for n in reversed(shape):
            strides.insert(0, stride)
            stride *= n
        self.nbytes = stride
        self.words = [0, 0, stride // self.dtype.itemsize, self.dtype.itemsize, pointer, *shape, *strides]
        self._row = strides[0]

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice | int) -> DeviceArray:
        if not isinstance(rows, slice):
            return DeviceArray(self.memory, self.pointer + int(rows) * self._row, self.shape[1:], self.dtype)
        begin, end, _ = rows.indices(self.shape[0])
        shape = (max(end - begin, 0), *self.shape[1:])
        return DeviceArray(self.memory, self.pointer + begin * self._row, shape, self.dtype)

    def reshape(self, *shape: int) -> DeviceArray:
        """Return these numbers in another shape."""
        return DeviceArray(self.memory, self.pointer, shape, self.dtype)

    def view(self, dtype: Any) -> DeviceArray:
        """Return these bytes as numbers of another kind, along one axis."""
        return DeviceArray(self.memory, self.pointer, (self.nbytes // np.dtype(dtype).itemsize,), dtype)


class Card:
    """One card. `open_card` finds it."""

    def __init__(self, number: int, driver: Any) -> None:
        self.driver = driver
        device = self._called(driver.cuDeviceGet(number))
        self.context = self._called(driver.cuDevicePrimaryCtxRetain(device))
        self.enter()
        attribute = driver.CUdevice_attribute
        self.capability = (
            self._called(driver.cuDeviceGetAttribute(attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device)),
            self._called(driver.cuDeviceGetAttribute(attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device)),
        )
        self.processors = self._called(
            driver.cuDeviceGetAttribute(attribute.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device)
        )
        self.name = self._called(driver.cuDeviceGetName(128, device)).split(b"\0")[0].decode()
        if self.capability < OLDEST:
            raise MissingExtra(
                f"GPU engines need a card of compute capability {OLDEST[0]}.{OLDEST[1]} or newer, the {self.name} has "
                f"{self.capability[0]}.{self.capability[1]}"
            )
        flag = driver.CUstream_flags.CU_STREAM_NON_BLOCKING
        self.stream, self.back = (self._called(driver.cuStreamCreate(flag)) for _ in range(2))
        self._kernels = dict[Any, tuple[Any, Any, Any]]()  # by kernel spec
        self._turn, self._returning = 0, Lock()

    def _called(self, answer: Any) -> Any:
        """Return what a call of the driver gives; TooLarge where memory runs out."""
        error, *values = answer
        if error != self.driver.CUresult.CUDA_SUCCESS:
            if error == self.driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY:
                raise TooLarge(
                    f"the GPU has no more memory: {bytes_said(self.free)} of {bytes_said(self.total)} are free; close other programs "
                    "that use it, allow less with GPUEngine(memory=...), or use LocalEngine()"
                )
            words = self.driver.cuGetErrorString(error)[1]
            raise RuntimeError(f"the GPU's driver says: {words.decode() if words else error}")
        return values[0] if len(values) == 1 else values

    def enter(self) -> None:
        """Make this card the one that the calling thread talks to."""
        self._called(self.driver.cuCtxSetCurrent(self.context))

    # -- memory -----------------------------------------------------------------------------------

    @property
    def free(self) -> int:
        """Bytes that are free."""
        return int(self._called(self.driver.cuMemGetInfo())[0])

    @cached_property
    def total(self) -> int:
        """Bytes of its memory."""
        return int(self._called(self.driver.cuMemGetInfo())[1])

    def allocate(self, count: int) -> int:
        """Return the address of some bytes."""
        return int(self._called(self.driver.cuMemAlloc(max(count, 16))))

    def release(self, pointer: int) -> None:
        """Give bytes back."""
        self.driver.cuCtxSetCurrent(self.context)
        self.driver.cuMemFree(pointer)

    def empty(self, shape: Sequence[int] | int, dtype: Any) -> DeviceArray:
        """Return an array with anything in it."""
        shape = (shape,) if isinstance(shape, int) else tuple(map(int, shape))
        memory = DeviceMemory(self, int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize)
        return DeviceArray(memory, memory.pointer, shape, dtype)

    def upload(self, array: NDArray[Any]) -> DeviceArray:
        """Return a copy on the card."""
        there = self.empty(array.shape or 1, array.dtype)
        self.write(there, array)
        return there

    def write(self, there: DeviceArray, array: NDArray[Any]) -> None:
        """Copy an array of the same shape."""
        array = np.ascontiguousarray(array, dtype=there.dtype)
        if array.nbytes:
            self._called(self.driver.cuMemcpyHtoDAsync(there.pointer, array.ctypes.data, array.nbytes, self.stream))

    def zero(self, there: DeviceArray) -> None:
        """Set all bytes to zero."""
        if there.nbytes:
            self._called(self.driver.cuMemsetD8Async(there.pointer, 0, there.nbytes, self.stream))

    def fetch(self, there: DeviceArray) -> NDArray[Any]:
        """Return a copy on the host, once all that was begun before is done."""
        here = np.empty(there.shape, there.dtype)
        self.synchronise()
        if here.nbytes:
            self._called(self.driver.cuMemcpyDtoH(here.ctypes.data, there.pointer, here.nbytes))
        return here

    def synchronise(self) -> None:
        """Wait for all that was begun."""
        self._called(self.driver.cuStreamSynchronize(self.stream))

    # -- kernels ----------------------------------------------------------------------------------

    def prepare(self, spec: KernelSpec, arguments: Any) -> None:
        """Compile or load a kernel before it is needed."""
        if spec not in self._kernels:
            from acegames.system.cuda_code import cubin  # not before: the driver starts beside numba

            name, code = cubin(spec, arguments, self.capability)
            module = self._called(self.driver.cuModuleLoadData(code))
            kernel = self._called(self.driver.cuModuleGetFunction(module, name.encode()))
            most = self.driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            if spec.shared_bytes > 48 * 1024:
                self._called(self.driver.cuFuncSetAttribute(kernel, most, spec.shared_bytes))
            words = len(_flat(arguments, []))
            block = (ctypes.c_int64 * words)()
            first = ctypes.addressof(block)
            self._kernels[spec] = kernel, block, (ctypes.c_void_p * words)(*(first + 8 * k for k in range(words)))

    def launch(self, spec: KernelSpec, blocks: int, arguments: Any) -> None:
        """Begin a kernel."""
        if blocks <= 0:
            return
        self.prepare(spec, arguments)
        kernel, block, pointers = self._kernels[spec]
        block[:] = _flat(arguments, [])
        size = (blocks, 1, 1, spec.threads, 1, 1)
        at = ctypes.addressof(pointers)
        self._called(self.driver.cuLaunchKernel(kernel, *size, spec.shared_bytes, self.stream, at, 0))

    # -- the way back -----------------------------------------------------------------------------

    def send(self, parts: Sequence[tuple[DeviceArray, NDArray[Any]]]) -> Callable[[], None]:
        """Let arrays be copied to the host once the work begun so far is done.

        The answer waits for it and must be called, by any thread, the first time in earnest; until
        then the arrays on the card must stay as they are.
        """
        waiting = list(parts)
        event = self._called(self.driver.cuEventCreate(self.driver.CUevent_flags.CU_EVENT_DISABLE_TIMING))
        self._called(self.driver.cuEventRecord(event, self.stream))

        def receive() -> None:
            with self._returning:
                if not waiting:
                    return
                self.enter()
                self._called(self.driver.cuStreamWaitEvent(self.back, event, 0))
                self._called(self.driver.cuEventDestroy(event))
                for there, here in waiting:
                    self._copy_back(there, here)
                waiting.clear()

        return receive

    def _copy_back(self, there: DeviceArray, here: NDArray[Any]) -> None:
        """Copy through two pinned buffers in turn: one is filled while the other is emptied."""
        into = here.reshape(-1).view(np.uint8)
        pending: tuple[NDArray[np.uint8], int] | None = None
        for begin in range(0, there.nbytes, PINNED):
            count = min(PINNED, there.nbytes - begin)
            self._turn ^= 1
            pinned = self._pinned[self._turn]
            copy = (pinned.ctypes.data, there.pointer + begin, count, self.back)
            self._called(self.driver.cuMemcpyDtoHAsync(*copy))
            if pending is not None:
                self._copy(into[begin - PINNED : begin], pending[0][: pending[1]])
            self._called(self.driver.cuStreamSynchronize(self.back))
            pending = pinned, count
        if pending is not None:
            self._copy(into[there.nbytes - pending[1] :], pending[0][: pending[1]])

    def _copy(self, into: NDArray[np.uint8], pinned: NDArray[np.uint8]) -> None:
        """Copy on several threads, because memory that is used for the first time comes slowly."""
        if len(into) < SHARED_COPY:
            into[:] = pinned
            return
        each = -(-len(into) // COPIERS)
        runs = [slice(begin, begin + each) for begin in range(0, len(into), each)]
        list(self._copiers.map(lambda run: np.copyto(into[run], pinned[run]), runs))

    @cached_property
    def _copiers(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(COPIERS)

    @cached_property
    def _pinned(self) -> list[NDArray[np.uint8]]:
        buffers = [int(self._called(self.driver.cuMemHostAlloc(PINNED, 0))) for _ in range(2)]
        return [np.ctypeslib.as_array((ctypes.c_uint8 * PINNED).from_address(at)) for at in buffers]


class DeviceBuffers:
    """Arrays on a card that are used again and again; they grow where they must."""

    def __init__(self, card: Any) -> None:
        self.card, self._held = card, dict[str, Any]()

    def take(self, name: str, shape: tuple[int, ...] | int, dtype: Any) -> Any:
        """Return an array; whoever took it before under this name has it no more."""
        held, shape = self._held.get(name), (shape,) if isinstance(shape, int) else shape
        count = int(np.prod(shape, dtype=np.int64))
        if held is None or len(held) < count:
            self._held[name] = None
            self._held[name] = held = self.card.empty(max(count + count // GROWING, 1), dtype)
        return held[:count].reshape(*shape)

    def laid(self, name: str, array: NDArray[Any]) -> Any:
        """Return a copy of an array, in the place of the last one of this name."""
        there = self.take(name, array.shape, array.dtype)
        self.card.write(there, array)
        return there


def _flat(arguments: tuple[Any, ...], words: list[int]) -> list[int]:
    """Return the words of arguments, as numba-cuda passes arrays, numbers and records."""
    for x in arguments:
        if type(x) is DeviceArray:
            words += x.words
        elif isinstance(x, tuple):
            _flat(x, words)
        else:
            words.append(struct.unpack("<q", struct.pack("<d", x))[0] if isinstance(x, float) else int(x))
    return words


def usable(card: Any, limit: int | float | None, own: int = 0) -> int:
    """Return bytes of a card that may be used: no more than `limit`, which the user allows.

    `own` more go to the threads of each multiprocessor.
    """
    free = max(int(card.free) - RESERVED - own * int(card.processors), 0)
    return free if limit is None else min(int(limit), free)


@cache
def open_card(number: int) -> Card:
    """Return the card of that number.

    Raises:
        MissingExtra: a package, the driver or the card is missing, or the card is too old.
    """
    check_installed("numba_cuda", "with an NVIDIA GPU and its driver, GPU engines", "gpu")
    driver = optional("cuda.bindings.driver", "GPU engines", "gpu")
    try:
        error = driver.cuInit(0)[0]
    except RuntimeError as missing:  # the library of the driver is not there
        raise MissingExtra(
            f"GPU engines need an NVIDIA GPU and its driver, 580 or newer, which is not installed here; {ELSE}"
        ) from missing
    names = driver.CUresult
    if error in (names.CUDA_ERROR_NO_DEVICE, names.CUDA_ERROR_STUB_LIBRARY):
        raise MissingExtra(f"GPU engines need an NVIDIA GPU, and the driver {NONE}; {ELSE}")
    if error != names.CUDA_SUCCESS:
        words = driver.cuGetErrorString(error)[1]
        raise MissingExtra(f"GPU engines need a working driver, which says: {words.decode() if words else error}")
    known = int(driver.cuDriverGetVersion()[1])
    if known < 1000 * CUDA:
        raise MissingExtra(
            f"GPU engines need NVIDIA's driver 580 or newer, for CUDA {CUDA}; the one that is installed is for CUDA "
            f"{known // 1000}.{known % 1000 // 10}; {ELSE}"
        )
    count = driver.cuDeviceGetCount()[1]
    if count == 0:
        raise MissingExtra(f"GPU engines need an NVIDIA GPU, and the driver {NONE}; {ELSE}")
    if not 0 <= number < count:
        raise MissingExtra(
            f"device: got {number}, and the driver finds {count} GPU{'s' * (count != 1)}, counted from 0"
        )
    return Card(number, driver)
