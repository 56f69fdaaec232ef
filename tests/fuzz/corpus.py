#!/usr/bin/env python3
"""The inputs with which fuzz targets begin: an archive for each target, and beside it the inputs that showed a mistake.

    tests/fuzz/corpus.py add api FILE...      adds inputs: found-* to corpus/api, all others to corpus/api.tar.gz
    tests/fuzz/corpus.py remove api NAME...   removes inputs
    tests/fuzz/corpus.py unpack FOLDER        writes every input of TARGET to FOLDER/TARGET and removes all else there

The build unpacks to build/PRESET/corpus. An archive depends on nothing but its inputs: the same inputs
give the same bytes.
"""

import gzip
import io
import pathlib
import sys
import tarfile

CORPUS = pathlib.Path(__file__).resolve().parent / "corpus"
FOUND = "found-"  # begins the name of an input that showed a mistake


def archive_of(target):
    return CORPUS / f"{target}.tar.gz"


def targets():
    return sorted({file.name.removesuffix(".tar.gz") for file in CORPUS.iterdir()})


def packed(target):
    """The inputs of the target's archive: name -> bytes."""
    if not archive_of(target).exists():
        return {}
    with tarfile.open(archive_of(target)) as archive:
        return {member.name: archive.extractfile(member).read() for member in archive}


def inputs_of(target):
    """All inputs of the target: name -> bytes."""
    folder = CORPUS / target
    loose = {file.name: file.read_bytes() for file in folder.iterdir()} if folder.is_dir() else {}
    return {**packed(target), **loose}


def pack(target, inputs):
    """Writes the target's archive."""
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in sorted(inputs.items()):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    archive_of(target).write_bytes(gzip.compress(tar.getvalue(), 9, mtime=0))


def add(target, inputs):
    """Adds inputs; returns how many of them are new or differ."""
    before = inputs_of(target)
    new = {name: data for name, data in inputs.items() if before.get(name) != data}
    CORPUS.mkdir(exist_ok=True)
    for name, data in new.items():
        if name.startswith(FOUND):
            (CORPUS / target).mkdir(exist_ok=True)
            (CORPUS / target / name).write_bytes(data)
    rest = {name: data for name, data in new.items() if not name.startswith(FOUND)}
    if rest:
        pack(target, {**packed(target), **rest})
    return len(new)


def remove(target, names):
    kept = packed(target)
    for name in names:
        if kept.pop(name, None) is None:
            (CORPUS / target / name).unlink()
    pack(target, kept)


def unpack_target(target, folder):
    """Makes the folder hold the target's inputs and nothing else."""
    folder.mkdir(parents=True, exist_ok=True)
    inputs = inputs_of(target)
    for file in folder.iterdir():
        if file.name not in inputs:
            file.unlink()
    for name, data in inputs.items():
        (folder / name).write_bytes(data)


def unpack(folder):
    for target in targets():
        unpack_target(target, folder / target)


def main():
    command, first, *rest = sys.argv[1:]
    if command == "add":
        number = add(first, {pathlib.Path(file).name: pathlib.Path(file).read_bytes() for file in rest})
        print(f"{first}: {number} inputs added")
    elif command == "remove":
        remove(first, rest)
    elif command == "unpack":
        unpack(pathlib.Path(first))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
