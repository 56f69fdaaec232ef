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
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORKLOAD_PROGRAMS = ("neuron-ls", "neuron-monitor", "neuron-top", "nccom-test", "trn-mem", "trn-run")
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


def write_layer(file, files):
    """A tar whose bytes follow from the files alone."""
    with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:
        folder = tarfile.TarInfo("tmp")
        folder.type, folder.mode = tarfile.DIRTYPE, 0o1777
        tar.addfile(folder)
        for place, source in sorted(files.items()):
            entry = tarfile.TarInfo(place.lstrip("/"))
            content = source if isinstance(source, bytes) else pathlib.Path(source).read_bytes()
            runs = isinstance(source, bytes) or os.access(source, os.X_OK)
            entry.size, entry.mode = len(content), 0o755 if runs else 0o644
            tar.addfile(entry, io.BytesIO(content))


def pack(out, tags, layer, run):
    """The docker-archive file of one layer, an open file, and how its containers run."""
    layer.seek(0)
    digest = hashlib.file_digest(layer, "sha256").hexdigest()
    path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    config = json.dumps({
        "architecture": "amd64", "os": "linux", "created": "1970-01-01T00:00:00Z",
        "config": {**run, "Env": [path, *run.get("Env", ())], "WorkingDir": "/"},
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + digest]},
        "history": [{"created": "1970-01-01T00:00:00Z", "created_by": "image.py"}]}).encode()
    config_name = hashlib.sha256(config).hexdigest() + ".json"
    manifest = json.dumps([{"Config": config_name, "RepoTags": tags, "Layers": ["layer.tar"]}]).encode()
    with tarfile.open(out, "w") as tar:
        for name, content in ((config_name, io.BytesIO(config)), ("manifest.json", io.BytesIO(manifest)), ("layer.tar", layer)):
            entry = tarfile.TarInfo(name)
            entry.size = content.seek(0, io.SEEK_END)
            content.seek(0)
            tar.addfile(entry, content)


def write(out, tags, files, entrypoint=None, environment=(), command=None, user=None, labels=None):
    """`files`: by their place in the image, a path here or the content (of a program)."""
    run = {"Env": list(environment), "Entrypoint": entrypoint, "Cmd": command, "User": user, "Labels": labels}
    with tempfile.TemporaryFile(dir=pathlib.Path(out).parent) as layer:
        write_layer(layer, files)
        pack(out, tags, layer, {key: value for key, value in run.items() if value})


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
