#!/usr/bin/env python3
"""Assembles the image of kind's nodes, without a registry.

    kind_image.py OUT.tar TAG          as root

Its base is Debian, by debootstrap once into the cache; Kubernetes, containerd and CNI plugins are those of
build_tools.sh (folders in $KUBERNETES_BIN, $KIND_BIN and $COREDNS_BIN), as are the images of the control plane in it; its units and
entry point are kind's own, of the module that kind is built from. It has no network of pods and no storage: kind.py
brings both. `docker load` reads it.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time

import image

HERE = pathlib.Path(__file__).resolve().parent
SUITE = "bookworm"
PACKAGES = ("ca-certificates", "conntrack", "ethtool", "iproute2", "iptables", "jq", "kmod", "libseccomp2", "mount", "nftables",
            "procps", "runc", "socat", "systemd", "util-linux")
# kubeadm asks for its images under this name (imageRepository in kind.py).
REPOSITORY = "localhost"
PAUSE = f"{REPOSITORY}/pause:1"
# Volumes of this class are made by kind.py: there is no provisioner.
STORAGE = """apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata:
  name: standard
  annotations: {storageclass.kubernetes.io/is-default-class: "true"}
provisioner: kubernetes.io/no-provisioner
volumeBindingMode: WaitForFirstConsumer
"""
BIN_FOLDERS = ("KUBERNETES_BIN", "KIND_BIN", "COREDNS_BIN")
IMPORT_SECONDS = 60


def run(*command, **options):
    done = subprocess.run([str(c) for c in command], text=True, check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, **options)
    if done.returncode != 0:
        sys.exit(f"kind_image.py: {' '.join(str(c) for c in command)} ended with status {done.returncode}:\n{done.stdout[-3000:]}")
    return done.stdout


def cache():
    return pathlib.Path(os.environ.get("TAHOMA_CACHE") or pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "tahoma")


def why_not():
    """Why the image cannot be assembled here; None: it can."""
    if os.geteuid() != 0:
        return "there is no image of kind's nodes, and only root can assemble one (KIND_NODE_IMAGE names one that exists)"
    for program in ("debootstrap", "nft"):
        if not shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin"):
            return f"there is no image of kind's nodes, and no {program} to assemble one (.ci/setup kind installs it)"
    return None


def debian_base():
    """A folder with Debian and the packages, made once."""
    base = cache() / f"kind-base-{SUITE}"
    if not base.exists():
        new = base.with_name(f"{base.name}.new{os.getpid()}")
        print(f"fetching Debian's packages for nodes into {base} (a minute, once)", file=sys.stderr, flush=True)
        run("debootstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", SUITE, new)
        new.rename(base)
    return base


def units_of_kind():
    """The folder of files that kind's own base image is made of."""
    return pathlib.Path(run("go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kind", cwd=HERE / "tools-kind",
                            env={**os.environ, "GOFLAGS": "-mod=readonly"}).strip()) / "images/base/files"


def clear_units(root):
    """A container has no hardware and no consoles: of systemd's units only those of kind are started."""
    for pattern in ("lib/systemd/system/multi-user.target.wants/*", "etc/systemd/system/*.wants/*",
                    "lib/systemd/system/local-fs.target.wants/*", "lib/systemd/system/basic.target.wants/*",
                    "lib/systemd/system/sockets.target.wants/*udev*", "lib/systemd/system/sockets.target.wants/*initctl*",
                    "lib/systemd/system/sysinit.target.wants/systemd-tmpfiles-setup.service"):
        for unit in root.glob(pattern):
            unit.unlink()
    wants = root / "etc/systemd/system/multi-user.target.wants"
    wants.mkdir(parents=True, exist_ok=True)
    for unit in ("containerd", "kubelet", "undo-mount-hacks"):
        (wants / f"{unit}.service").symlink_to(f"/etc/systemd/system/{unit}.service")
    # It would register formats of programs for the whole machine.
    (root / "etc/systemd/system/systemd-binfmt.service").symlink_to("/dev/null")
    (root / "sbin/init").unlink(missing_ok=True)
    (root / "sbin/init").symlink_to("/usr/lib/systemd/systemd")


def lay_out(root):
    """What makes a Debian a node of kind."""
    for folder in ("var/cache/apt/archives", "var/lib/apt/lists", "usr/share/doc", "usr/share/man", "usr/share/locale", "var/log", "dev"):
        shutil.rmtree(root / folder, ignore_errors=True)
        (root / folder).mkdir()
    units = units_of_kind()
    for source in sorted(path for path in units.rglob("*") if path.is_file()):
        place = root / source.relative_to(units)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, place)  # the module cache is read-only, its modes are not the files'
        place.chmod(0o755 if place.parent.name == "bin" else 0o644)
    clear_units(root)
    with open(root / "etc/systemd/journald.conf", "a", encoding="utf-8") as journald:
        journald.write("ReadKMsg=no\n")  # of all the machine
    for folder in ("etc/kubernetes/manifests", "kind/manifests", "opt/cni/bin"):
        (root / folder).mkdir(parents=True, exist_ok=True)


def add_programs(root, kubernetes, kind):
    for place, names in (("usr/local/bin", ("containerd", "containerd-shim-runc-v2", "ctr")), ("usr/bin", ("kubelet",))):
        for name in names:
            shutil.copy2(kubernetes / name, root / place)
    for name in ("kubeadm", "kubectl"):
        shutil.copy2(kind / name, root / "usr/bin")
    for plugin in (*(kubernetes / "cni").iterdir(), kind / "portmap"):
        shutil.copy2(plugin, root / "opt/cni/bin")


def configure_containerd(root, kubernetes):
    spec = json.loads(subprocess.run([kubernetes / "ctr", "oci", "spec"], capture_output=True, check=True).stdout)
    spec.setdefault("hooks", {}).setdefault("createContainer", []).append({"path": "/kind/bin/mount-product-files.sh"})
    spec["process"].pop("rlimits", None)
    (root / "etc/containerd/cri-base.json").write_text(json.dumps(spec))
    config = root / "etc/containerd/config.toml"
    # A root without CAP_SYS_RESOURCE may not make the kernel spare a process.
    config.write_text(re.sub("restrict_oom_score_adj = false", "restrict_oom_score_adj = true", re.sub(
        "sandbox_image = .*", f'sandbox_image = "{PAUSE}"', config.read_text())))


def version(command, pattern):
    return re.search(pattern, run(*command))[1]


def write_images(folder, kubernetes, kind, coredns):
    """The images that kubeadm asks for."""
    release = version([kubernetes / "kubelet", "--version"], r"(v\S+)")
    etcd = version([kubernetes / "etcd", "--version"], r"etcd Version: (\S+)")
    dns = version([coredns / "coredns", "-version"], r"CoreDNS-(\S+)")
    programs = {f"{name}:{release}": kubernetes / name for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler")}
    programs[f"etcd:{etcd}-0"] = kubernetes / "etcd"
    files = {tag: ({f"/usr/local/bin/{program.name}": str(program)}, [f"/usr/local/bin/{program.name}"])
             for tag, program in programs.items()}
    files[f"coredns:v{dns}"] = ({"/coredns": str(coredns / "coredns")}, ["/coredns"])
    files[f"kube-proxy:{release}"] = (
        {"/usr/local/bin/kube-proxy": str(kind / "kube-proxy"), **image.with_libraries({"/usr/sbin/nft": "/usr/sbin/nft"})},
        ["/usr/local/bin/kube-proxy"])
    files[PAUSE.removeprefix(f"{REPOSITORY}/")] = (image.with_libraries({"/bin/sleep": "/bin/sleep"}), ["/bin/sleep", "infinity"])
    for tag, (content, entrypoint) in files.items():
        image.write(folder / f"{tag.split(':')[0]}.tar", [f"{REPOSITORY}/{tag}"], content, entrypoint)
    return release


def import_images(root, images, kubernetes, scratch):
    """Puts images where the node's containerd keeps what it was given; the node unpacks those that it needs."""
    config = scratch / "containerd.toml"
    config.write_text(f"""version = 3
root = '{root}/var/lib/containerd'
state = '{scratch}/state'
disabled_plugins = ['io.containerd.grpc.v1.cri', 'io.containerd.nri.v1.nri']
[grpc]
address = '{scratch}/c.sock'
[ttrpc]
address = '{scratch}/t.sock'
""")
    ctr = [kubernetes / "ctr", "--timeout", f"{IMPORT_SECONDS}s", "--address", scratch / "c.sock", "--namespace", "k8s.io"]
    with open(scratch / "containerd.log", "wb") as log, subprocess.Popen(
            [kubernetes / "containerd", "--config", config], stdout=log, stderr=log) as containerd:
        try:
            deadline = time.monotonic() + IMPORT_SECONDS
            while subprocess.run([*ctr, "version"], capture_output=True, check=False).returncode != 0:
                if containerd.poll() is not None or time.monotonic() > deadline:
                    sys.exit(f"kind_image.py: containerd does not answer:\n{(scratch / 'containerd.log').read_text()[-2000:]}")
                time.sleep(0.1)
            for file in sorted(images.iterdir()):
                run(*ctr, "images", "import", "--no-unpack", file)
        finally:
            containerd.terminate()


def anonymous(entry):
    entry.uname = entry.gname = ""
    return entry


def assemble(out, tag):
    kubernetes, kind, coredns = (pathlib.Path(os.environ[name]) for name in BIN_FOLDERS)
    base = debian_base()
    with tempfile.TemporaryDirectory(prefix="kn", dir=out.parent) as folder:
        scratch = pathlib.Path(folder)
        root, images = scratch / "root", scratch / "images"
        run("cp", "-a", base, root)
        images.mkdir()
        lay_out(root)
        add_programs(root, kubernetes, kind)
        configure_containerd(root, kubernetes)
        (root / "kind/version").write_text(write_images(images, kubernetes, kind, coredns) + "\n")
        (root / "kind/manifests/default-storage.yaml").write_text(STORAGE)
        import_images(root, images, kubernetes, scratch)
        with tempfile.TemporaryFile(dir=out.parent) as layer:
            with tarfile.open(fileobj=layer, mode="w", format=tarfile.PAX_FORMAT) as tar:
                tar.add(root, arcname=".", filter=anonymous)
            image.pack(out, [tag], layer, {"Env": ["container=docker"], "StopSignal": "SIGRTMIN+3",
                                           "Entrypoint": ["/usr/local/bin/entrypoint", "/sbin/init"]})


def main():
    parser = argparse.ArgumentParser(description="Assemble the image of kind's nodes.")
    parser.add_argument("out", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("tag")
    args = parser.parse_args()
    assemble(args.out, args.tag)
    return 0


if __name__ == "__main__":
    sys.exit(main())
