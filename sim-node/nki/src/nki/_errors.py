"""The exceptions of the package, and how a call is refused."""

import functools

HERE = "docs/tasks/kernels.md"


class Error(Exception):
    """A kernel or a call is wrong, or trn-run refused the program. The message says what would be right."""


class NotBuilt(Error):
    """Exists in AWS's NKI, but not here."""


def not_built(name):
    return NotBuilt(f"{name} is not built yet ({HERE})")


def refuse_options(function, **options):
    """Refuses each option whose value is not the one that means nothing: name=(value, harmless values)."""
    for name, (value, harmless) in options.items():
        if not any(value is one or value == one for one in harmless):
            raise not_built(f"{function} with {name}={value!r}")


def absent_names(module, not_yet, of_trainium3):
    """A module's __getattr__: names that AWS has can be imported, and are refused when they are called."""

    @functools.cache
    def __getattr__(name):
        if name not in not_yet and name not in of_trainium3:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")

        def refuse(*arguments, **options):
            if name in of_trainium3:
                raise NotBuilt(f"{module}.{name} is of Trainium3; the emulated chip is a Trainium2")
            raise not_built(f"{module}.{name}")

        refuse.__name__ = name
        return refuse

    return __getattr__
