"""Runs one file of a checkout, in a process that public.py starts, and tells public.py what its kernels did.

    run_file.py CHECKOUT FILE main|test CASES SECONDS REPORT

As `main` the file is imported, and run as a program if it says `if __name__ == "__main__"`. As `test` the CASES smallest
cases of each of its tests are run, SECONDS each. REPORT gets a line of JSON for each kernel that was called, and for the end
of a case or of the file. The code is foreign: this process may end at any moment.
"""

import contextlib
import importlib
import inspect
import io
import itertools
import json
import math
import pathlib
import re
import runpy
import signal
import sys
import time
import traceback
import unittest

import stand_ins
from stand_ins import Absent, Needs, Skipped

MOST_COMBINATIONS = 20000  # of the values of a test's parameters, among which the smallest are looked for


class Timeout(BaseException):
    pass


class Report:
    """The lines for public.py, each written at once: nobody knows how this process ends."""

    def __init__(self, path, checkout):
        self.file, self.checkout = open(path, "a", buffering=1), str(checkout)
        self.compared = None  # in this case: whether results were compared; None: the test alone knows

    def line(self, **fields):
        self.file.write(json.dumps(fields) + "\n")

    def inside(self, files):
        """Those of the checkout, relative to it."""
        return sorted({str(pathlib.Path(file).relative_to(self.checkout)) for file in files
                       if file.startswith(self.checkout + "/")})


def short(error):
    """One line for what went wrong."""
    text = (str(error).strip().splitlines() or [""])[0][:120]
    if isinstance(error, Timeout):
        return "time is over"
    if isinstance(error, Needs):
        return text
    if type(error).__name__ == "NotBuilt":
        return "not built: " + text.removesuffix(" (docs/tasks/kernels.md)").replace(" is not built yet", "")
    if type(error).__name__ == "Error" and type(error).__module__.startswith("nki"):
        return "refused: " + text
    if isinstance(error, SystemExit):
        return "needs a command line" if error.code == 2 else f"exit({error.code})"
    return f"{type(error).__name__}: {text}".removesuffix(": ")


def absent_among(values):
    """The first stand-in among the arguments of a kernel."""
    for value in values:
        if isinstance(value, Absent):
            return value
        if isinstance(value, (list, tuple, dict)) and (found := absent_among(value.values() if isinstance(value, dict) else value)):
            return found
    return None


def files_of(error):
    return [frame.filename for frame in traceback.extract_tb(error.__traceback__)]


def watch_kernels(report):
    """Has each call of a kernel reported: recorded, ran or why not, and which files' code was a part of it."""
    import nki
    import nki._kernel as kernels
    record, run, instruction = kernels.Recording.__init__, kernels.Kernel._run, kernels._recorder.Recorder.instruction
    seen = set()  # files of all callers of instructions

    def noted(self, *more, **options):
        frame = sys._getframe(1)
        while frame is not None:
            seen.add(frame.f_code.co_filename)
            frame = frame.f_back
        return instruction(self, *more, **options)

    def recorded(self, function, arguments, options, *more):
        if found := absent_among([*arguments, *options.values()]):
            found._needed()  # nobody has said with which arguments
        seen.clear()
        try:
            record(self, function, arguments, options, *more)
        except BaseException as error:
            files = report.inside({function.__code__.co_filename, *seen, *files_of(error)})
            report.line(kernel=function.__name__, files=files, state="failed", error=short(error))
            raise
        makers = (place[0] for place in self.recorder.places_of_lines)  # of tensors, too
        self.files = report.inside({function.__code__.co_filename, *seen, *makers})

    def patient(kernel, recording, data, *options):
        """Runs when the core is free: it may still be busy with the program of a case whose time was over."""
        while True:
            try:
                return run(kernel, recording, data, *options)
            except nki.Error as error:
                if "runs a program; try again" not in str(error):
                    raise
            time.sleep(0.1)

    def ran(self, recording, data, *options):
        try:
            result = patient(self, recording, data, *options)
        except BaseException as error:
            if "run without data" in str(error):
                result = patient(self, recording, False, *options)
                report.line(kernel=self.__name__, files=recording.files, state="ran", data=False, time_us=result.time_us)
                raise Skipped("too large to compute here: only timed") from error
            report.line(kernel=self.__name__, files=recording.files, state="recorded", error=short(error))
            raise
        report.line(kernel=self.__name__, files=recording.files, state="ran", data=data, time_us=result.time_us)
        return result

    kernels.Recording.__init__, kernels.Kernel._run, kernels._recorder.Recorder.instruction = recorded, ran, noted


class Manager:
    """What the tests of aws-neuron/nki-library give a kernel to, with its arguments and what it should return."""

    def __init__(self, report):
        self.report = report

    def __getattr__(self, name):
        return Absent(f"test_manager.{name}")

    def execute(self, wish):
        import nki
        self.report.compared = False
        inputs = wish.kernel_input
        if hasattr(inputs, "for_rank"):
            raise Needs("needs several ranks")
        inputs = {name.split(".must_alias")[0]: value for name, value in inputs.items()}
        cores = getattr(wish.compiler_input, "logical_nc_config", 1)
        kernel = wish.kernel_func
        results = (kernel if hasattr(kernel, "run") else nki.simulate(kernel))[cores](**inputs)
        self.compare(results if isinstance(results, tuple) else (results,), wish.validation_args)

    def compare(self, results, wish):
        """Compares as nki-library does: errors are relative to the largest number."""
        golden = getattr(wish, "golden_output", None)
        golden = golden.golden if hasattr(golden, "golden") else golden
        if not isinstance(golden, dict) or absent_among(golden.values()) or len(golden) != len(results):
            return
        equal = importlib.import_module("test.integration.nkilib.utils.comparators").maxAllClose
        for result, (name, expected) in zip(results, golden.items()):
            if hasattr(expected, "validator"):
                right = expected.validator(None).validate(result.astype(expected.dtype))
            else:
                right = equal(result.astype("float32"), expected.astype("float32"), wish.relative_accuracy, wish.absolute_accuracy)
            assert right, f"{name} is not the test's reference"
        self.report.compared = True


def size(values):
    """Grows with the numbers among a test's parameters."""
    total = 0.0
    for value in values:
        for number in value if isinstance(value, (list, tuple)) else [value]:
            total += math.log(number) if isinstance(number, (int, float)) and number > 1 else 0
    return total


def cases(function, marks, count):
    """The smallest cases of a test, each a dict of its arguments."""
    choices = []
    for mark in marks:
        if mark.name in ("skip", "xfail"):
            return []
        if mark.name == "parametrize":
            names = mark.args[0] if mark.args else mark.kwargs["argnames"]
            rows = mark.args[1] if len(mark.args) > 1 else mark.kwargs["argvalues"]
            names = [name.strip() for name in names.split(",") if name.strip()] if isinstance(names, str) else list(names)
            rows = [row for row in rows if not (isinstance(row, stand_ins.Param) and row.left_out())]
            rows = [row.values if isinstance(row, stand_ins.Param) else row if len(names) > 1 else (row,) for row in rows]
            choices.append([dict(zip(names, row)) for row in rows])
        if mark.name == "coverage_parametrize":
            values = {name: getattr(one, "values", one) for name, one in mark.kwargs.items()
                      if name in inspect.signature(function).parameters}
            every = (dict(zip(values, row)) for row in itertools.islice(itertools.product(*values.values()), MOST_COMBINATIONS))
            wanted = mark.kwargs.get("filter")
            choices.append([row for row in every if wanted is None or wanted(**row).name == "VALID"])
    every = ({name: value for one in row for name, value in one.items()}
             for row in itertools.islice(itertools.product(*choices), MOST_COMBINATIONS))
    return sorted(every, key=lambda case: size(case.values()))[:count]


class Tests:
    """Runs the cases of a module's tests."""

    def __init__(self, file, module, report, seconds):
        self.module, self.report, self.seconds = module, report, seconds
        self.has_asserts = "assert" in file.read_text(errors="replace")

    def fixture(self, name, owner):
        made = getattr(owner, name, None) or getattr(self.module, name, None)
        if getattr(made, "is_fixture", False):
            value = self.call(made, owner, {})
            return next(value) if inspect.isgenerator(value) else value
        if name == "test_manager":
            return Manager(self.report)
        if name == "platform_target":
            return importlib.import_module("test.utils.common_dataclasses").Platforms.TRN2
        return name == "simulation_only" if name.startswith(("simulation_only", "is_negative")) else Absent(f"fixture {name}")

    def call(self, function, owner, case):
        names = [name for name, one in inspect.signature(function).parameters.items()
                 if name != "self" and (name in case or one.default is one.empty)]
        return function(**{name: case[name] if name in case else self.fixture(name, owner) for name in names})

    def guarded(self, name, run):
        """Runs a case for its time and reports its end."""
        self.report.compared = None
        signal.alarm(self.seconds)
        verdict, error = "passed", ""
        try:
            run()
        except (Skipped, unittest.SkipTest) as reason:
            verdict, error = "skipped", str(reason)
        except AssertionError as wrong:
            inside_kernel = any(file.endswith("/nki/_kernel.py") for file in files_of(wrong))
            verdict, error = "failed" if inside_kernel else "wrong", short(wrong)
        except BaseException as wrong:
            verdict, error = "failed", short(wrong)
        finally:
            signal.alarm(0)
        if verdict == "passed" and (self.has_asserts if self.report.compared is None else self.report.compared):
            verdict = "agreed"
        self.report.line(case=name, verdict=verdict, error=error)

    def run(self, count):
        for name, value in list(vars(self.module).items()):
            if getattr(value, "__module__", None) != self.module.__name__:
                continue
            if isinstance(value, type) and issubclass(value, unittest.TestCase):
                for test in unittest.defaultTestLoader.loadTestsFromTestCase(value):
                    self.guarded(test.id(), unittest.TestSuite([test]).debug)
            elif isinstance(value, type) and name.startswith("Test"):
                for method in [method for method in vars(value) if method.startswith("test") and callable(getattr(value, method))]:
                    self.function(method, value, count)
            elif inspect.isfunction(value) and name.startswith("test"):
                self.function(name, None, count)

    def function(self, name, owner, count):
        function = getattr(owner or self.module, name)
        marks = [*getattr(function, "pytestmark", []), *getattr(owner, "pytestmark", [])]
        try:
            chosen = cases(function, marks, count)
        except Exception as error:
            self.report.line(case=name, verdict="failed", error=short(error))
            return
        for case in chosen:
            def run(case=case):
                made = owner() if owner else None
                self.call(getattr(made, name) if made else function, made, case)
            self.guarded(name, run)


def roots(checkout):
    """Folders of a checkout from which its modules are imported."""
    found = [checkout, *checkout.glob("**/src")]
    found += [init.parent.parent for init in checkout.glob("**/__init__.py") if not (init.parent.parent / "__init__.py").exists()]
    return sorted(set(found), key=lambda path: (-len(path.parts), str(path)))


def module_name(file, paths):
    """(the module's name, the folder from which it is imported). Relative imports need a package, with __init__.py or without."""
    parts, folder = [file.stem.replace(".", "_")], file.parent  # kernel_90.92mfu.py
    relative = re.search(r"^ *from \.", file.read_text(errors="replace"), re.MULTILINE)
    while (folder / "__init__.py").exists() or (relative and folder not in paths):
        parts.insert(0, folder.name)
        folder = folder.parent
    return ".".join(parts), folder


def load(name, file):
    if "." in name:
        return importlib.import_module(name)
    spec = importlib.util.spec_from_file_location(name, file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def run_program(name, file, report, seconds):
    """Imports the file, and runs it if it is a program: then that is its only case."""
    def run():
        sys.argv = [str(file)]
        if "__main__" not in file.read_text(errors="replace"):
            load(name, file)
        elif "." in name:
            runpy.run_module(name, run_name="__main__")
        else:
            runpy.run_path(str(file), run_name="__main__")
    Tests(file, None, report, seconds).guarded("main", run)


def main():
    checkout, file, kind, count, seconds, path = sys.argv[1:]
    checkout, file = pathlib.Path(checkout), pathlib.Path(file)
    report = Report(path, checkout)

    def alarm(*_):
        raise Timeout
    signal.signal(signal.SIGALRM, alarm)
    paths = [*roots(checkout), file.parents[-1]]
    name, folder = module_name(file, paths)
    sys.path[:0] = [str(path) for path in dict.fromkeys([folder, *paths[:-1]])]
    stand_ins.install(checkout, {entry.stem for path in paths[:-1] for entry in path.iterdir() if entry.suffix in ("", ".py")})
    watch_kernels(report)
    with contextlib.redirect_stdout(io.StringIO()):
        if kind == "main":
            run_program(name, file, report, int(seconds))
            return
        signal.alarm(int(seconds))
        try:
            module = load(name, file)
        except BaseException as error:
            report.line(case="import", verdict="failed", error=short(error))
            return
        finally:
            signal.alarm(0)
        Tests(file, module, report, int(seconds)).run(int(count))


if __name__ == "__main__":
    main()
