#!/usr/bin/env python3
"""Makes the images of images/Dockerfile from the programs of a build tree: no registry, no Docker.

    images.py OUT [TARGET …] [--bin BIN]      OUT/TARGET.tar for each, a docker-archive file; default: every target

`docker load`, `ctr images import` and `kind load image-archive` read them. A target has what the Dockerfile copies, and
its labels, user and entry point. Instead of Debian's base and packages it has the shared libraries of the programs as
ldd lists them, the certificates of public authorities, the time zones where it has tzdata, and a shell with a few programs.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import re
import shlex
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/cluster"))

import image  # noqa: E402

DOCKERFILE = ROOT / "images/Dockerfile"
BUILT = "/src/build/release/bin/"  # where the Dockerfile builds
# The chart's pods and the examples use a shell.
SHELL_PROGRAMS = ("bash", "cat", "chown", "env", "false", "id", "ls", "mkdir", "rm", "sh", "sleep", "true")
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
TIME_ZONES = pathlib.Path("/usr/share/zoneinfo")


class DockerfileError(Exception):
    pass


@dataclasses.dataclass
class Stage:
    base: str
    copies: list = dataclasses.field(default_factory=list)  # (stage or None, source, place)
    packages: list = dataclasses.field(default_factory=list)
    labels: dict = dataclasses.field(default_factory=dict)
    user: str = ""
    entrypoint: list = dataclasses.field(default_factory=list)
    command: list = dataclasses.field(default_factory=list)


def instructions(text):
    """(line, name, argument) of each, with its continuations."""
    lines, number = text.splitlines(), 0
    while number < len(lines):
        start, line = number + 1, lines[number].strip()
        while line.endswith("\\"):
            number += 1
            line = line[:-1].rstrip() + " " + lines[number].strip()
        number += 1
        if line and not line.startswith("#"):
            name, _, argument = line.partition(" ")
            yield start, name, argument.strip()


def read_copy(argument):
    words = shlex.split(argument)
    stage = words.pop(0).removeprefix("--from=") if words[0].startswith("--from=") else None
    if len(words) != 2 or words[0].startswith("--"):
        raise DockerfileError("COPY has other words than [--from=STAGE] SOURCE PLACE")
    return stage, *words


def read_instruction(stage, name, argument):
    if name == "COPY":
        stage.copies.append(read_copy(argument))
    elif name == "LABEL":
        stage.labels.update(word.split("=", 1) for word in shlex.split(argument))
    elif name == "USER":
        stage.user = argument
    elif name in ("ENTRYPOINT", "CMD"):
        setattr(stage, "entrypoint" if name == "ENTRYPOINT" else "command", json.loads(argument))
    elif name == "RUN":
        if match := re.search(r"apt-get install ([^&]*)", argument):
            stage.packages += [word for word in match[1].split() if not word.startswith("-")]
    elif name != "WORKDIR":
        raise DockerfileError(f"{name} is none of the instructions that images.py knows")


def read_stages(text):
    """The stages of a Dockerfile, by name."""
    stages = {}
    for line, name, argument in instructions(text):
        try:
            if name == "FROM":
                match = re.fullmatch(r"(\S+) AS (\S+)", argument)
                if not match:
                    raise DockerfileError("FROM is not of the form IMAGE AS STAGE")
                stages[match[2]] = Stage(match[1])
            elif not stages:
                raise DockerfileError(f"{name} comes before any FROM")
            else:
                read_instruction(list(stages.values())[-1], name, argument)
        except (DockerfileError, ValueError) as error:
            raise DockerfileError(f"Dockerfile:{line}: {error}") from error
    return stages


def targets(stages):
    """Those that become images: they have a title."""
    return [name for name, stage in stages.items() if "org.opencontainers.image.title" in stage.labels]


def resolve(stages, name):
    """A stage with what it has of the stages below it."""
    stage = stages[name]
    if stage.base not in stages:
        return stage
    below = resolve(stages, stage.base)
    return Stage(below.base, below.copies + stage.copies, below.packages + stage.packages, {**below.labels, **stage.labels},
                 stage.user or below.user, stage.entrypoint or below.entrypoint, stage.command or below.command)


def copied(copy, bin_dir):
    """The files of a COPY, by their place in the image."""
    stage, source, place = copy
    if stage:
        return {place: str(bin_dir / source.removeprefix(BUILT))}
    path = ROOT / source
    if path.is_dir():
        return {f"{place}/{file.relative_to(path)}": str(file) for file in sorted(path.rglob("*")) if file.is_file()}
    return {place: str(path)}


def files_of(stage, bin_dir):
    files = {f"/bin/{name}": f"/bin/{name}" for name in SHELL_PROGRAMS}
    for copy in stage.copies:
        files.update(copied(copy, bin_dir))
    if missing := [source for source in files.values() if not os.path.exists(source)]:
        sys.exit(f"images.py: there is no {', '.join(missing)}; `make programs` builds the programs")
    return {**image.with_libraries(files), **(time_zones() if "tzdata" in stage.packages else {}), CERTIFICATES: CERTIFICATES}


def time_zones():
    """The files of the package tzdata, but for the same zones with leap seconds."""
    if not TIME_ZONES.is_dir():
        sys.exit(f"images.py: there is no {TIME_ZONES}; the package tzdata has it")
    return {str(file): str(file) for file in sorted(TIME_ZONES.rglob("*"))
            if file.is_file() and file.relative_to(TIME_ZONES).parts[0] not in ("posix", "right", "localtime")}


def tag_of(stage):
    """The pods of the examples name a tag that does not change with the version."""
    title = stage.labels["org.opencontainers.image.title"]
    return f"{title}:v1" if "." in title.split("/")[0] else f"{title}:{stage.labels['org.opencontainers.image.version']}"


def make(out, name, bin_dir, stages=None, extra_tags=()):
    """Writes the image of a target, and returns its tag."""
    stage = resolve(stages or read_stages(DOCKERFILE.read_text()), name)
    image.write(out, [tag_of(stage), *extra_tags], files_of(stage, bin_dir), stage.entrypoint, command=stage.command,
                user=stage.user, labels=stage.labels)
    return tag_of(stage)


def main():
    stages = read_stages(DOCKERFILE.read_text())
    parser = argparse.ArgumentParser(description="Make the images of images/Dockerfile from a build tree.")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("targets", nargs="*", metavar="TARGET", default=targets(stages))
    parser.add_argument("--bin", type=pathlib.Path, default=pathlib.Path(os.environ.get("TAHOMA_BIN", ROOT / "build/release/bin")))
    args = parser.parse_args()
    if unknown := [name for name in args.targets if name not in targets(stages)]:
        sys.exit(f"images.py: there is no target {', '.join(unknown)}; there are {', '.join(targets(stages))}")
    args.out.mkdir(parents=True, exist_ok=True)
    for name in args.targets:
        file = args.out / f"{name}.tar"
        print(f"{make(file, name, args.bin, stages)} in {file}, {file.stat().st_size >> 20} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
