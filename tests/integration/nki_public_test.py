#!/usr/bin/env python3
"""Runs tests/nki/public.py on a small checkout, of which a kernel is right, one wrong, some files hostile, and looks at its lines.

    TAHOMA_BIN=build/release/bin tests/integration/nki_public_test.py

Status 77 (skipped) without the Python of `.ci/setup`.
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SECONDS = 10  # for a case; a kernel of this test needs one at most, and one never ends

KERNEL = """
import nki, nki.isa as nisa, nki.language as nl, numpy

@nki.jit
def twice(a):
    c = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    tile = nl.load(a)
    nisa.tensor_tensor(dst=tile, data1=tile, data2=tile, op=nl.add)
    nl.store(c, tile)
    return c
"""
ARGUMENT = "numpy.ones((128, 8), numpy.float32)"
FILES = {
    "src/kernels/__init__.py": "",
    "src/kernels/right.py": "import torch\n" + KERNEL,
    "test/test_right.py": """
import numpy, pytest, torch
from kernels.right import twice

@pytest.fixture
def scale():
    return 3

class TestTwice:
    @pytest.mark.parametrize("rows, columns", [pytest.param(4096, 4096, id="large"), (128, 16)])
    def test_is_that_of_numpy(self, rows, columns, scale):
        assert (rows, columns) == (128, 16), "not the smallest case"
        a = numpy.arange(rows * columns, dtype=numpy.float32).reshape(rows, columns) * scale
        numpy.testing.assert_array_equal(twice(a), 2 * a)

    def test_is_that_of_torch(self):
        assert torch.allclose(twice(torch.ones(128, 8)), 2)
""",
    "wrong.py": KERNEL + f"if __name__ == '__main__':\n    assert (twice({ARGUMENT}) == 3).all(), 'not 3'\n",
    "unknown.py": KERNEL.replace("nisa.tensor_tensor(", "nisa.dropout(")
    + f"if __name__ == '__main__':\n    twice({ARGUMENT})\n",
    "exits.py": KERNEL + f"if __name__ == '__main__':\n    twice({ARGUMENT})\n    import os\n    os._exit(3)\n",
    "endless.py": KERNEL + "while True: pass\n",
    "needs.py": KERNEL + f"if __name__ == '__main__':\n    import torch\n    twice(torch.tensor({ARGUMENT}))\n",
    "alone.py": KERNEL,
    "no_python.py": "import nki.isa as nisa\ndef f(:\n",
    "no_kernel.py": "print('hello')\n",
}
LINES = r"""
alone.py              not tried   nothing gives its arguments
endless.py            failed      time is over
exits.py              ran         1 of 1 calls  [\d.]+ us  ended with status 3
needs.py              not tried   needs torch
src/kernels/right.py  agreed      1 of 1 calls  [\d.]+ us
unknown.py            failed      0 of 1 calls  not built: nki.isa.dropout
wrong.py              wrong       1 of 1 calls  [\d.]+ us  AssertionError: not 3
7 files: 1 agreed, 1 ran, 1 wrong, 2 failed, 2 not tried
"""


class Public(unittest.TestCase):
    def test_each_file_has_its_line(self):
        with tempfile.TemporaryDirectory() as checkout:
            for name, text in FILES.items():
                file = pathlib.Path(checkout, name)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
            done = subprocess.run([PYTHON, ROOT / "tests/nki/public.py", checkout, "--seconds", str(SECONDS)],
                                  capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        printed = [" ".join(line.split()) for line in done.stdout.splitlines()]
        expected = [" ".join(line.split()) for line in LINES.strip().splitlines()]
        self.assertEqual(len(printed), len(expected), done.stdout)
        for line, wanted in zip(printed, expected):
            self.assertIsNotNone(re.fullmatch(wanted, line), f"{line!r} is not {wanted!r}")


if __name__ == "__main__":
    found = subprocess.run([ROOT / ".ci/python", "--find"], capture_output=True, text=True)
    if found.returncode != 0:
        print(f"SKIPPED: {found.stderr.strip()}")
        sys.exit(77)
    PYTHON = found.stdout.strip()
    unittest.main(verbosity=2)
