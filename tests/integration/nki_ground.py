"""What the tests of sim-node/nki begin and end with: import this module before nki and numpy.

It runs the test again with the Python that `.ci/setup` made (`.ci/python`), unless NKI_THIS_PYTHON is set, with the package
of this tree. A test ends with `nki_ground.main()`: trn-run must reach a core, in a pod with a claim. Without that Python,
trn-run or a core the status is 77 (skipped).
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
if "NKI_THIS_PYTHON" not in os.environ:
    FOUND = subprocess.run([ROOT / ".ci/python", "--find"], capture_output=True, text=True)
    if FOUND.returncode != 0:
        print(f"SKIPPED: no Python package 'numpy': {FOUND.stderr.strip()}")
        sys.exit(77)
    if FOUND.stdout.strip() != sys.executable:
        os.execv(FOUND.stdout.strip(), [FOUND.stdout.strip(), *sys.argv])

PACKAGE = ROOT / "sim-node" / "nki"
sys.path.insert(0, str(PACKAGE / "src"))

import nki.isa as nisa
import nki.language as nl
import numpy

EPSILON = numpy.finfo(numpy.float32).eps


def load(source):
    """A new tile in SBUF with the numbers of a tensor."""
    tile = nl.ndarray(source.shape, source.dtype)
    nisa.dma_copy(tile, source)
    return tile


def stored(tile):
    """A new tensor that a kernel may return, with the numbers of a tile."""
    result = nl.ndarray(tile.shape, tile.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(result, tile)
    return result


def as_bf16(array):
    """Rounded to the nearest bf16, ties to even, as float32."""
    bits = array.view(numpy.uint32).astype(numpy.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(numpy.uint32).view(numpy.float32)


class AwsLibrary(unittest.TestCase):
    """Kernels of the checkout of aws-neuron/nki-library that NKI_LIBRARY names."""

    def setUp(self):
        folder = os.environ.get("NKI_LIBRARY", "")
        if not pathlib.Path(folder, "src/nkilib_src").is_dir():
            raise unittest.SkipTest("NKI_LIBRARY names no checkout of aws-neuron/nki-library")
        sys.path.insert(0, str(pathlib.Path(folder, "src")))
        self.addCleanup(sys.path.pop, 0)


def usable():
    """Why trn-run cannot be used; empty when it can."""
    program = shutil.which(os.environ.get("TRN_RUN") or "trn-run")
    if program is None:
        return "there is no trn-run on PATH"
    with tempfile.NamedTemporaryFile("w", suffix=".trn") as file:
        file.write("tensor a fp32 [1, 1] in\ntensor b fp32 [1, 1] out\ndma_copy b <- a\n")
        file.flush()
        done = subprocess.run([program, file.name, "--no-data"], capture_output=True, text=True)
    return done.stderr.strip() if done.returncode == 2 else ""


def main():
    if reason := usable():
        print(f"SKIPPED: {reason}")
        sys.exit(77)
    unittest.main(verbosity=2)
