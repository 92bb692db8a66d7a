"""Says which file system a folder lies on, and whether another machine keeps it."""

from __future__ import annotations

MOUNTINFO = "/proc/self/mountinfo"

# Their locks, fsync or shared memory are not what SQLite and flock need of a file system.
NETWORK_TYPES = frozenset(
    "nfs nfs4 cifs smb smb2 smb3 smbfs ncpfs 9p ceph afs coda lustre gpfs beegfs pvfs2 orangefs "
    "ocfs2 gfs2 glusterfs davfs vboxsf vmhgfs prl_fs acfs".split()
)
NETWORK_FUSE = frozenset(
    "sshfs ceph ceph-fuse glusterfs s3fs rclone gcsfuse goofys davfs2 curlftpfs moosefs mfs "
    "juicefs vmhgfs-fuse smbnetfs gvfsd-fuse".split()
)


def read_mountinfo() -> str:
    """This machine's mounts, as the kernel lists them; OSError where /proc is missing."""
    with open(MOUNTINFO, encoding="utf-8", errors="surrogateescape") as file:
        return file.read()


def file_system_of(path: str, mountinfo: str) -> str:
    """The type of the file system that holds this real path; empty when no mount covers it."""
    best, kind = "", ""
    for line in mountinfo.split("\n"):
        fields, _, tail = line.partition(" - ")
        point = _unescaped(fields.split(" ")[4]) if fields.count(" ") >= 4 else ""  # noqa: PLR2004
        # A later line of the same place was mounted over the earlier one.
        if point and _covers(point, path) and len(point) >= len(best):
            best, kind = point, tail.partition(" ")[0]
    return kind


def _covers(point: str, path: str) -> bool:
    return point in {"/", path} or path.startswith(point + "/")


def _unescaped(field: str) -> str:
    """The kernel writes space, tab, newline and backslash as octal escapes."""
    for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        field = field.replace(code, char)
    return field


def is_network(kind: str) -> bool:
    """Whether this type of file system is kept by another machine."""
    if kind.startswith("fuse."):
        return kind.removeprefix("fuse.") in NETWORK_FUSE
    return kind in NETWORK_TYPES
