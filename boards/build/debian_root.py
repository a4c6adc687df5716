"""A private Debian in the cache, for tools that only its testing suite has."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from ...base.cached_folder import cached_folder, folder_for, writable_folder
from ...base.errors import MicrotronError
from ...base.processes import run_tool

SUITE = "testing"               # stable has none of these tools
MIRROR = "http://deb.debian.org/debian"
# The first two and prjxray are nowhere else; of the others it has native ones.
PACKAGES = ("nextpnr-himbaechel-xilinx", "nextpnr-himbaechel-xilinx-chipdb", "prjxray",
            "prjxray-database", "nextpnr-ecp5", "nextpnr-ecp5-chipdb", "nextpnr-himbaechel-gowin",
            "nextpnr-himbaechel-gowin-chipdb")
PART = "fpga"                   # of the cache, for everything that boards need
NAME, MADE_FROM = "debian", (SUITE, *PACKAGES)
# In a namespace of its own, where mounts vanish with the process: the tools want /proc, and find
# the design in /mnt.
ENTER = ('mount -t proc proc "$0/proc" && mount --bind . "$0/mnt" && '
         'exec chroot "$0" sh -c \'cd /mnt && exec "$@"\' sh "$@"')


def why_unavailable() -> str | None:
    """Why this user on this machine cannot set one up, if so."""
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        return (f"Debian {SUITE} has it: install it there, or run this as root with the package "
                "debootstrap, which sets up a private Debian in the cache")
    return None


def is_set_up() -> bool:
    """Whether it has been made, and this user may enter it."""
    return os.geteuid() == 0 and folder_for(PART, NAME, MADE_FROM).exists()


def ensure_root() -> Path:
    """A Debian of its own with these packages, made once: 1.3 GB, some minutes."""
    def make(folder: Path) -> None:
        reason = why_unavailable()
        if reason is not None:
            raise MicrotronError(f"{PACKAGES[0]} is missing. {reason}")
        _run("debootstrap", "--variant=minbase", SUITE, str(folder), MIRROR)
        _run(*chroot_prefix(folder), "apt-get", "install", "--yes", "--no-install-recommends",
             *PACKAGES)

    return cached_folder(
        PART, NAME, MADE_FROM, make, checksums=False,
        work=f"setting up a private Debian with {PACKAGES[0]}, once: some minutes")


def chroot_prefix(root: Path) -> tuple[str, ...]:
    """What comes in front of a command, so that it runs in there, in the present folder."""
    return ("unshare", "--mount", "sh", "-c", ENTER, str(root))


def _run(*command: str) -> None:
    done = run_tool(command, folder=writable_folder(PART))
    if done.returncode:
        said = " ".join(done.stdout.split())[-300:]
        raise MicrotronError(f"{' '.join(command[:2])} failed: {said}")
