#!/usr/bin/env python3
"""Makes what krew, kubectl's plugin manager, installs `kubectl tahoma` from: an archive and its manifest.

    krew.py OUT [--program build/release/bin/kubectl-tahoma] [--url URL]

OUT gets kubectl-tahoma-VERSION-linux-ARCH.tar.gz and tahoma.yaml, whose uri is URL/ARCHIVE. Without --url:

    kubectl krew install --manifest=OUT/tahoma.yaml --archive=OUT/kubectl-tahoma-VERSION-linux-ARCH.tar.gz

The program needs the shared libraries of Debian 12 that images/Dockerfile names. The same program makes the same
bytes.
"""

import argparse
import gzip
import hashlib
import io
import pathlib
import platform
import re
import sys
import tarfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}  # as uname and as Go say it

MANIFEST = """\
apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: tahoma
spec:
  version: v{version}
  shortDescription: Show the Trainium torus and why gangs wait
  description: |
    Draws UltraServers chip by chip, lists gangs and says why a gang or a pod waits, and finds, buys and
    shows Capacity Blocks. It needs a cluster with Tahoma's controller.
  caveats: |
    The program needs the shared libraries of Debian 12. For completion, link it as kubectl_complete-tahoma:
    `kubectl tahoma help completion` says how.
  platforms:
  - selector:
      matchLabels: {{os: linux, arch: {arch}}}
    uri: {uri}
    sha256: {sha256}
    bin: kubectl-tahoma
    files:
    - {{from: kubectl-tahoma, to: .}}
    - {{from: LICENSE, to: .}}
"""


def version():
    return re.search(r'kVersion = "([^"]+)"', (ROOT / "lib/base/version.h").read_text())[1]


def archive_of(files):
    """The bytes of a tar.gz with these files, by name: (content, mode); nothing of this machine is in them."""
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as zipped, tarfile.open(fileobj=zipped, mode="w") as tar:
        for name, (content, mode) in sorted(files.items()):
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), mode
            tar.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build/release/bin/kubectl-tahoma")
    parser.add_argument("--url", default="https://tahoma.invalid/releases")
    args = parser.parse_args()
    if not args.program.is_file():
        sys.exit(f"krew.py: {args.program} is not there; `make programs` builds it")
    arch = ARCHITECTURES[platform.machine()]
    content = archive_of({"kubectl-tahoma": (args.program.read_bytes(), 0o755),
                          "LICENSE": ((ROOT / "LICENSE").read_bytes(), 0o644)})
    name = f"kubectl-tahoma-{version()}-linux-{arch}.tar.gz"
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / name).write_bytes(content)
    (args.out / "tahoma.yaml").write_text(MANIFEST.format(version=version(), arch=arch, uri=f"{args.url}/{name}",
                                                          sha256=hashlib.sha256(content).hexdigest()))
    print(args.out / "tahoma.yaml")


if __name__ == "__main__":
    main()
