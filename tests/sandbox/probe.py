"""Tries one way out after the other from inside the sandbox and says in JSON what each attempt met.

Runs on the bare standard library, because it runs where nothing else is. An attempt that came through says "allowed".
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import glob
import json
import os
import signal
import socket
import stat
import struct
import subprocess
import sys

libc = ctypes.CDLL(None, use_errno=True)
MACHINE = 0 if os.uname().machine == "x86_64" else 1
CALLS = {
    "bpf": (321, 280),
    "io_uring_setup": (425, 425),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "userfaultfd": (323, 282),
    "perf_event_open": (298, 241),
    "ptrace": (101, 117),
    "setns": (308, 268),
    "clone3": (435, 435),
    "fsopen": (430, 430),
    "open_by_handle_at": (304, 265),
}
NEW_USER = 0x10000000


def checked(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def write_file(path):
    with open(path, "w") as file:
        file.write("PWNED")


def append_file(path):
    with open(path, "a") as file:
        file.write("PWNED")


def change_mode(path):
    os.chmod(path, 0o777)


def delete_file(path):
    os.unlink(path)


def truncate_file(path):
    os.truncate(path, 0)


def read_file(path):
    with open(path, "rb") as file:
        return file.read(4096).decode("utf-8", "replace")


def list_folder(path):
    return sorted(os.listdir(path))


def write_through_link(target):
    os.symlink(target, "link-out")
    write_file("link-out")


def move_in(path):
    os.rename(path, "moved-in")


def link_in(path):
    os.link(path, "linked-in")
    append_file("linked-in")


def remount_writable(path):
    checked(libc.mount(b"none", b"/", None, 0x1000 | 0x20, None))
    write_file(path)


def mount_something():
    checked(libc.mount(b"none", b"/tmp", b"tmpfs", 0, None))


def rewrite_core_pattern():
    # The very value that stands there, so that an attempt that succeeds changes nothing.
    path = "/proc/sys/kernel/core_pattern"
    value = read_file(path)
    with open(path, "w") as file:
        file.write(value)


def tcp(host, port):
    socket.create_connection((host, int(port)), timeout=3).close()


def udp(host, port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"leak", (host, int(port)))


def look_up(name):
    return str(socket.getaddrinfo(name, 80))


def unix(path):
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(path.replace("@", "\0"))


def unix_datagram_pair(path):
    first, second = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with first, second:
        first.connect(path)


def open_socket(family, kind, protocol):
    socket.socket(int(family), int(kind), int(protocol)).close()


def open_pair(family, kind, protocol):
    for one in socket.socketpair(int(family), int(kind), int(protocol)):
        one.close()


def loopback_server():
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname(), timeout=3) as client,
        server.accept()[0] as accepted,
    ):
        client.sendall(b"hello")
        return accepted.recv(5).decode()


def socket_pair():
    first, second = socket.socketpair()
    with first, second:
        first.sendall(b"hello")
        return second.recv(5).decode()


def environment():
    return subprocess.run(["env"], capture_output=True, text=True, check=True).stdout


def every_environ():
    found = []
    for path in glob.glob("/proc/[0-9]*/environ"):
        try:
            found.append(read_file(path))
        except OSError:
            continue
    return "\n".join(found)


def kill_process(pid):
    os.kill(int(pid), 0)


def trace_process(pid):
    checked(libc.syscall(ctypes.c_long(CALLS["ptrace"][MACHINE]), 16, int(pid), 0, 0))


def read_memory(pid):
    os.close(os.open(f"/proc/{pid}/mem", os.O_RDONLY))


def system_call(name):
    room = ctypes.create_string_buffer(256)
    checked(libc.syscall(ctypes.c_long(CALLS[name][MACHINE]), ctypes.c_long(4), room, ctypes.c_long(128), 0, 0))


def unshare(flags):
    child = os.fork()
    if child == 0:
        os._exit(0 if libc.unshare(int(flags, 16)) == 0 else ctypes.get_errno())
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code:
        raise OSError(code, os.strerror(code))


def clone_namespace():
    number = (56, 220)[MACHINE]
    pid = libc.syscall(ctypes.c_long(number), ctypes.c_ulong(NEW_USER | signal.SIGCHLD), 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    checked(pid)
    os.waitpid(pid, 0)


def type_into_terminal(device):
    terminal = os.open(device, os.O_RDWR)
    for letter in b"PWNED\n":
        fcntl.ioctl(terminal, 0x5412, struct.pack("B", letter))


def make_device():
    os.mknod("device", 0o600 | stat.S_IFBLK, os.makedev(254, 0))


def setuid_copy():
    """A copy of `id` with the setuid bit, and what it says about who runs it."""
    with open("/usr/bin/id", "rb") as source, open("my-id", "wb") as target:
        target.write(source.read())
    os.chmod("my-id", 0o4755)
    said = subprocess.run(["./my-id", "-u"], capture_output=True, text=True, check=True).stdout
    return {"effective": int(said), "no new privileges": libc.prctl(39, 0, 0, 0, 0)}


def capabilities():
    """The effective, permitted and inheritable ones, as the kernel's own words."""
    header, data = struct.pack("=Ii", 0x20080522, 0), ctypes.create_string_buffer(24)
    checked(libc.syscall(ctypes.c_long((125, 90)[MACHINE]), header, data))
    return [*struct.unpack("=6I", data.raw), *[libc.prctl(23, number, 0, 0, 0) for number in range(40)]]


def become_root():
    said = {}
    for words in (["su", "-c", "id -u"], ["sudo", "-n", "id", "-u"]):
        try:
            answer = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=20)
        except OSError as error:
            said[words[0]] = errno.errorcode[error.errno]
        else:
            said[words[0]] = answer.returncode
    return said


def open_files():
    found = []
    for number in range(4096):
        try:
            os.fstat(number)
        except OSError:
            continue
        found.append(number)
    return found


def attempt(name, *arguments):
    try:
        answer = globals()[name](*arguments)
    except OSError as error:
        return "denied " + errno.errorcode.get(error.errno, type(error).__name__)
    return "allowed" if answer is None else answer


if __name__ == "__main__":
    orders = json.loads(sys.argv[1])
    json.dump([attempt(*order) for order in orders], sys.stdout)
