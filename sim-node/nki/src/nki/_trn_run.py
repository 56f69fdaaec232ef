"""Calls trn-run and reads what it prints."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import numpy

from nki._errors import HERE, Error
from nki._recorder import shown


def find():
    """The path of trn-run: TRN_RUN, else the one on PATH."""
    named = os.environ.get("TRN_RUN")
    found = shutil.which(named or "trn-run")
    if found is None:
        where = f"at TRN_RUN={named}" if named else "on PATH"
        raise Error(f"there is no trn-run {where}: run in a pod with a claim, where it is, or name it by TRN_RUN ({HERE})")
    return found


def run(program, name, inputs, outputs, options, places, ranks):
    """Runs the text. `inputs` are {tensor: [array of each rank, or one for all]}, None for no data; `ranks` is None for one
    core. Returns what trn-run printed, and {tensor: array} of the outputs of each rank.
    """
    with tempfile.TemporaryDirectory(prefix="nki-") as folder:
        file = pathlib.Path(folder, f"{name}.trn")
        file.write_text(program)
        command = [find(), str(file), *options]
        if inputs is None:
            command.append("--no-data")
        else:
            for tensor, arrays in inputs.items():
                for rank, array in enumerate(arrays):
                    numpy.save(file.with_name(f"{tensor}.{rank}.npy"), array)
                command += ["--in", f"{tensor}={file.with_name(tensor)}.{'{rank}' if len(arrays) > 1 else 0}.npy"]
            for tensor in outputs:
                command += ["--out", f"{tensor}={file.with_name(tensor)}.{{rank}}.npy"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise Error(explain(done.stderr.strip() or f"trn-run ended with status {done.returncode}", file, places))
        arrays = [] if inputs is None else [
            {tensor: numpy.load(file.with_name(f"{tensor}.{rank}.npy")) for tensor in outputs} for rank in range(ranks or 1)]
        return done.stdout, arrays


def explain(message, file, places):
    """The message, with the kernel's line in the place of the program's."""
    message = message.removeprefix("trn-run: ").removeprefix(f"{file}: ")
    line = re.search(r"\bline (\d+)(?:, column \d+)?: ", message)
    if line is None or not 0 < int(line[1]) <= len(places):
        return message
    return f"{message[:line.start()]}{message[line.end():]}\n{shown(places[int(line[1]) - 1])}"


TIME = re.compile(r"^time +([\d.]+) us$", re.MULTILINE)
BOUND = re.compile(r"^bound +([\d.]+) us \([^)]*\): (.+)$", re.MULTILINE)
RANK = re.compile(r"^ *\d+ +\d+ +\d+ +([\d.]+) ", re.MULTILINE)
ROW = re.compile(r"^(\S.*?) +([\d.]+) +[\d.]+ +(\d+)$", re.MULTILINE)


def read_report(text):
    """(time, bound, the bound's resource, {resource: (busy, instructions)}, [time of each rank]), in us."""
    time, bound = TIME.search(text), BOUND.search(text)
    if time is None or bound is None:
        raise Error(f"trn-run printed no time and bound, but:\n{text}")
    rows = {row[1]: (float(row[2]), int(row[3])) for row in ROW.finditer(text, bound.end())}
    ranks = [float(row[1]) for row in RANK.finditer(text, 0, time.start())] or [float(time[1])]
    return float(time[1]), float(bound[1]), bound[2], rows, ranks
