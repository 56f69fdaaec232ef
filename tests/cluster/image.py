#!/usr/bin/env python3
"""Makes a container image of files of this machine, as a docker-archive file: no registry, no builder.

    image.py OUT.tar TAG [--bin BIN]      our programs of a build tree, a shell and what they need

`docker load`, `ctr images import` and `kind load image-archive` read it. It has one layer. Libraries are those that
ldd lists.
"""

import argparse
import hashlib
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORKLOAD_PROGRAMS = ("neuron-ls", "nccom-test", "trn-mem")
SHELL_PROGRAMS = ("bash", "cat", "env", "false", "id", "ls", "sh", "true")
# The kernel keeps signals without a handler from the first process of a container: sleep alone would outlive its grace.
SLEEP = b"""#!/bin/bash
trap 'exit 143' TERM
/usr/libexec/sleep "$@" &
wait
"""


def libraries(program):
    done = subprocess.run(["ldd", program], capture_output=True, text=True, check=False)
    return re.findall(r"(/\S+) \(0x", done.stdout) if done.returncode == 0 else []


def with_libraries(programs):
    """The files of an image, by their place in it, each named by its path here; with the libraries of each program."""
    files = {}
    for place, program in programs.items():
        files[place] = program
        files.update({library: library for library in libraries(program)})
    return files


def layer_of(files):
    """A tar whose bytes follow from the files alone."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        folder = tarfile.TarInfo("tmp")
        folder.type, folder.mode = tarfile.DIRTYPE, 0o1777
        tar.addfile(folder)
        for place, source in sorted(files.items()):
            entry = tarfile.TarInfo(place.lstrip("/"))
            content = source if isinstance(source, bytes) else pathlib.Path(source).read_bytes()
            entry.size, entry.mode = len(content), 0o755
            tar.addfile(entry, io.BytesIO(content))
    return layer.getvalue()


def write(out, tags, files, entrypoint=None, environment=()):
    """`files`: by their place in the image, a path here or the content."""
    layer = layer_of(files)
    path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    run = {"Env": [path, *environment], "WorkingDir": "/"}
    if entrypoint:
        run["Entrypoint"] = entrypoint
    config = json.dumps({
        "architecture": "amd64", "os": "linux", "created": "1970-01-01T00:00:00Z", "config": run,
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest()]},
        "history": [{"created": "1970-01-01T00:00:00Z", "created_by": "image.py"}]}).encode()
    config_name = hashlib.sha256(config).hexdigest() + ".json"
    manifest = json.dumps([{"Config": config_name, "RepoTags": tags, "Layers": ["layer.tar"]}]).encode()
    with tarfile.open(out, "w") as tar:
        for name, content in ((config_name, config), ("manifest.json", manifest), ("layer.tar", layer)):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))


def workload_files(bin_dir):
    programs = {f"/usr/local/bin/{name}": str(bin_dir / name) for name in WORKLOAD_PROGRAMS}
    programs.update({f"/bin/{name}": f"/bin/{name}" for name in SHELL_PROGRAMS})
    programs["/usr/libexec/sleep"] = "/bin/sleep"
    return {**with_libraries(programs), "/bin/sleep": SLEEP}


def main():
    parser = argparse.ArgumentParser(description="Make a container image of our programs.")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("tags", nargs="+")
    parser.add_argument("--bin", type=pathlib.Path, default=pathlib.Path(os.environ.get("TAHOMA_BIN", ROOT / "build/release/bin")))
    args = parser.parse_args()
    write(args.out, args.tags, workload_files(args.bin))
    return 0


if __name__ == "__main__":
    sys.exit(main())
