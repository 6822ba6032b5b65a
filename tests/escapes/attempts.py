"""Attempts to get out of the sandbox, one by name. Exit 0: it got out. Exit 1: it was stopped, with the reason.

Run as `attempts.py NAME OUTSIDE PID PORT`: a directory outside the workspace, a process outside, and a TCP server.
"""
import ctypes, errno, os, signal, socket, struct, subprocess, sys, time

name, outside, pid, port = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
victim, secret, here = f"{outside}/victim", f"{os.environ['HOME']}/.ssh/id_test", os.getcwd()
libc = ctypes.CDLL(None, use_errno=True)
AT_FDCWD = -100


def call(number, *args):
    result = libc.syscall(number, *args)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def c(text):
    return ctypes.c_char_p(text.encode())


def out(command, **more):
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, **more)
    if done.returncode != 0:
        raise OSError(done.returncode, done.stderr.strip())
    return done.stdout


def read(path):
    with open(path) as file:
        assert "SECRET" in file.read(), "not the secret"


def write(path, how="w"):
    with open(path, how) as file:
        file.write("changed")


def changed():
    with open(victim) as file:
        assert file.read() != "as it was", "unchanged"


def tcp(address, where, family=socket.AF_INET, protocol=0):
    with socket.socket(family, socket.SOCK_STREAM, protocol) as one:
        one.settimeout(3)
        one.connect((address, where))
        return one.getsockname()


def proxy(request):
    address = os.environ["HTTPS_PROXY"].removeprefix("http://").split(":")
    with socket.create_connection((address[0], int(address[1])), timeout=5) as one:
        one.sendall(request.encode())
        answer = one.recv(200).decode()
    assert " 200 " in answer.split("\r\n")[0], answer.split("\r\n")[0]


def tunnel(target):
    proxy(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n")


def link_then(act):
    os.symlink(victim, "link-out")
    try:
        act("link-out")
    finally:
        os.unlink("link-out")


def open_fds():
    for number in range(3, 256):
        try:
            target = os.readlink(f"/proc/self/fd/{number}")
        except OSError:
            continue
        if target.startswith("/") and not target.startswith((here, "/dev", "/proc", "/usr", "/lib", "/etc")):
            return
    raise OSError(errno.EBADF, "nothing inherited")


def fill():
    place = os.environ.get("TMPDIR", "/tmp")
    write(f"{place}/filler")
    # Whether it is gone afterwards is what the test looks at.
    raise OSError(0, place)


def forks():
    children = []
    try:
        for _ in range(400):
            child = os.fork()
            if child == 0:
                time.sleep(10)
                os._exit(0)
            children.append(child)
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def memory():
    block = bytearray(600 << 20)
    for at in range(0, len(block), 4096):
        block[at] = 1


def files():
    held = [open("/dev/null") for _ in range(400)]
    assert len(held) == 400


def ptrace(number):
    call(101, number, pid, 0, 0)


def process_memory():
    buffer = ctypes.create_string_buffer(8)
    local = (ctypes.c_size_t * 2)(ctypes.addressof(buffer), 8)
    remote = (ctypes.c_size_t * 2)(0x400000, 8)
    call(310, pid, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0)


def belongs_here(other):
    """The shell that starts the attempts, and what the attempts started; of what is dead, only a number is left."""
    try:
        with open(f"/proc/{other}/stat") as state:
            if ") Z " in state.read():
                return True
        with open(f"/proc/{other}/environ", "rb") as environment, open(f"/proc/{other}/cmdline", "rb") as words:
            is_attempt = b"ATTEMPT=1" in environment.read().split(b"\0")
            return is_attempt or words.read().startswith(b"/bin/sh\0-c\0export ATTEMPT=1")
    except OSError:
        return False


def signal_anyone():
    """Ralph, its guardian, or any other process that was not started by the attempts."""
    with open("/proc/1/comm") as first:
        own = {1} if first.read().strip() == "bwrap" else set()
    for other in map(int, filter(str.isdigit, os.listdir("/proc"))):
        try:
            os.kill(other, 0)
        except OSError:
            continue
        if other not in own and not belongs_here(other):
            print(f"reached {other}")
            return
    raise OSError("nobody can be reached")


def pidfd_signal():
    call(424, call(434, pid, 0), 0, 0, 0)


def pidfd_getfd():
    call(438, call(434, pid, 0), 1, 0)


def abstract():
    with socket.socket(socket.AF_UNIX) as one:
        one.connect("\0ralph-escape-test-%d" % pid)


def pathname_socket():
    with socket.socket(socket.AF_UNIX) as one:
        one.connect(os.environ["SOCKET"])


def memfd():
    # A program from memory is as walled as any other.
    number = os.memfd_create("x")
    os.write(number, b"#!/bin/sh\nexec touch %s/from-memfd\n" % outside.encode())
    out([f"/proc/self/fd/{number}"], pass_fds=[number])
    assert os.path.exists(f"{outside}/from-memfd")


def setuid():
    status = open("/proc/self/status").read()
    assert "NoNewPrivs:\t0" in status, "no new privileges"


def capabilities():
    status = dict(line.split(":\t", 1) for line in open("/proc/self/status") if ":\t" in line)
    has = lambda name: int(status[name], 16) != 0
    assert has("CapEff") or has("CapPrm") or has("CapAmb"), "none"


def daemon_writes():
    # A process that leaves its session and its parent is still inside.
    script = f"(setsid sh -c 'sleep 0.2; echo x > {outside}/from-daemon' &) ; sleep 0.8; test -e {outside}/from-daemon"
    out(["sh", "-c", script])


def namespace(flags):
    call(272, flags)


def clone(flags):
    child = call(56, flags | signal.SIGCHLD, 0, 0, 0, 0)
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)


def fast_open(flag):
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as one:
        one.sendto(b"x", flag, ("127.0.0.1", port))


def utimes():
    os.utime(victim, (1, 1))
    assert os.stat(victim).st_mtime == 1


def chmod():
    os.chmod(victim, 0o777)
    assert os.stat(victim).st_mode & 0o777 == 0o777


def xattr():
    os.setxattr(victim, "user.ralph", b"x")


def sysv():
    call(29, 0, 4096, 0o1600)


def sysv_of_others():
    shared = int(os.environ["SHARED_MEMORY"])
    libc.shmat.restype = ctypes.c_void_p
    place = libc.shmat(shared, None, 0)
    assert place != ctypes.c_void_p(-1).value, os.strerror(ctypes.get_errno())


def git_hook():
    with open(".git/hooks/post-checkout", "w") as file:
        file.write("#!/bin/sh\n")


def server_of_own():
    listener = socket.create_server(("127.0.0.1", 0))
    tcp("127.0.0.1", listener.getsockname()[1])


ATTEMPTS = {
    # Writing outside
    "write": lambda: write(victim),
    "append": lambda: write(victim, "a"),
    "create": lambda: write(f"{outside}/new"),
    "truncate": lambda: os.truncate(victim, 0),
    "unlink": lambda: os.unlink(victim),
    "mkdir": lambda: os.mkdir(f"{outside}/directory"),
    "rmdir": lambda: os.rmdir(f"{outside}/empty"),
    "rename-out": lambda: (write("mine"), os.rename("mine", f"{outside}/moved")),
    "rename-in": lambda: os.rename(victim, "stolen"),
    "rename-over": lambda: (write("mine"), os.rename("mine", victim)),
    "exchange": lambda: (write("mine"), call(316, AT_FDCWD, c("mine"), AT_FDCWD, c(victim), 2)),
    "hard-link-out": lambda: (write("mine"), os.link("mine", f"{outside}/linked")),
    "hard-link-in": lambda: (os.link(victim, "linked"), write("linked"), changed()),
    "symlink-out": lambda: os.symlink("/", f"{outside}/symlink"),
    "mknod": lambda: os.mknod(f"{outside}/device", 0o600 | 0o020000, os.makedev(1, 3)),
    "mknod-inside": lambda: os.mknod("device", 0o600 | 0o060000, os.makedev(254, 0)),
    "mkfifo": lambda: os.mkfifo(f"{outside}/fifo"),
    "chmod": chmod,
    "chown": lambda: os.chown(victim, os.getuid(), os.getgid()),
    "times": utimes,
    "xattr": xattr,
    "open-truncate": lambda: os.close(os.open(victim, os.O_RDONLY | os.O_TRUNC)) or changed(),
    "tmpfile-link": lambda: os.open(outside, os.O_TMPFILE | os.O_WRONLY),
    # Roundabout ways
    "through-symlink": lambda: link_then(write),
    "through-directory-symlink": lambda: (os.symlink(outside, "d"), write("d/new")),
    "through-proc-self-root": lambda: write(f"/proc/self/root{victim}"),
    "through-proc-self-cwd": lambda: (os.chdir(outside), write("/proc/self/cwd/victim")),
    "through-proc-fd": lambda: write(f"/proc/self/fd/{os.open(victim, os.O_RDONLY)}"),
    "through-o-path": lambda: write(f"/proc/self/fd/{os.open(outside, os.O_PATH)}/victim"),
    "through-proc-pid-root": lambda: write(f"/proc/{pid}/root{victim}"),
    "through-proc-pid-cwd": lambda: write(f"/proc/{pid}/cwd/victim"),
    "through-dot-dot": lambda: write(os.path.relpath(victim)),
    "change-directory": lambda: (os.chdir(outside), write("victim")),
    "inherited-descriptors": open_fds,
    "from-a-daemon": daemon_writes,
    "memfd": memfd,
    "write-to-home": lambda: write(f"{os.environ['HOME']}/.bashrc"),
    "write-to-cargo-bin": lambda: write(f"{os.environ['HOME']}/.cargo/bin/cargo"),
    "write-to-cargo-config": lambda: write(f"{os.environ['HOME']}/.cargo/config.toml"),
    "write-to-host-tmp": lambda: write(f"/tmp/ralph-escape-{pid}"),
    "write-to-proc-sys": lambda: os.close(os.open("/proc/sys/kernel/hostname", os.O_WRONLY)),
    "core-pattern": lambda: os.close(os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY)),
    "sysrq": lambda: os.close(os.open("/proc/sysrq-trigger", os.O_WRONLY)),
    "cgroups": lambda: os.close(os.open("/sys/fs/cgroup/unified/cgroup.procs" if os.path.exists("/sys/fs/cgroup/unified") else "/sys/fs/cgroup/cgroup.procs", os.O_WRONLY)),
    # Reading what is hidden
    "read-hidden": lambda: read(secret),
    "read-hidden-symlink": lambda: (os.symlink(secret, "s"), read("s")),
    "read-hidden-proc-root": lambda: read(f"/proc/self/root{secret}"),
    "read-hidden-proc-pid-root": lambda: read(f"/proc/{pid}/root{secret}"),
    "read-hidden-chdir": lambda: (os.chdir(os.path.dirname(secret)), read("id_test")),
    "read-hidden-hard-link": lambda: (os.link(secret, "s"), read("s")),
    "read-hidden-rename": lambda: (os.rename(os.path.dirname(secret), f"{os.environ['HOME']}/open"), read(f"{os.environ['HOME']}/open/id_test")),
    "read-hidden-cat": lambda: out(["cat", secret]),
    "read-configured-hide": lambda: read(f"{outside}/hidden/file"),
    "read-disk": lambda: os.read(os.open("/dev/vda", os.O_RDONLY), 1),
    "read-environ": lambda: open(f"/proc/{pid}/environ", "rb").read(1) or None,
    "read-maps": lambda: open(f"/proc/{pid}/maps").read(1),
    "read-fd-of-others": lambda: os.readlink(f"/proc/{pid}/fd/1"),
    "read-mem-of-others": lambda: os.close(os.open(f"/proc/{pid}/mem", os.O_RDONLY)),
    "open-by-handle": lambda: call(304, AT_FDCWD, 0, 0),
    # Other processes
    "signal-zero": lambda: os.kill(pid, 0),
    "signal-term": lambda: os.kill(pid, signal.SIGTERM),
    "pidfd-signal": pidfd_signal,
    "pidfd-getfd": pidfd_getfd,
    "ptrace-attach": lambda: ptrace(16),
    "ptrace-seize": lambda: ptrace(0x4206),
    "process-vm-read": process_memory,
    "signal-ralph": lambda: os.kill(int(os.environ["RALPH_PID"]), 0),
    "ptrace-ralph": lambda: (call(101, 0x4206, int(os.environ["RALPH_PID"]), 0, 0)),
    "signal-anyone": signal_anyone,
    "set-priority": lambda: os.setpriority(os.PRIO_PROCESS, pid, 19),
    "set-limits": lambda: __import__("resource").prlimit(pid, 7, (64, 64)),
    # Kernel
    "user-namespace": lambda: namespace(0x10000000),
    "mount-namespace": lambda: namespace(0x20000),
    "clone-user-namespace": lambda: clone(0x10000000),
    "setns": lambda: call(308, os.open("/proc/self/ns/net", os.O_RDONLY), 0),
    "mount": lambda: call(165, c("none"), c(here), c("tmpfs"), 0, 0),
    "open-tree": lambda: call(428, AT_FDCWD, c("/"), 1),
    "chroot": lambda: os.chroot(here),
    "io-uring": lambda: call(425, 1, ctypes.byref((ctypes.c_char * 120)())),
    "keyring": lambda: call(250, 0, -3, 1),
    "add-key": lambda: call(248, c("user"), c("ralph"), c("x"), 1, -3),
    "bpf": lambda: call(321, 0, ctypes.byref((ctypes.c_char * 64)()), 64),
    "perf": lambda: call(298, ctypes.byref((ctypes.c_char * 128)()), 0, -1, -1, 0),
    "userfaultfd": lambda: call(323, 1),
    "x32": lambda: call(0x40000000 + 39),
    "setuid-programs": setuid,
    "capabilities": capabilities,
    "type-into-terminal": lambda: __import__("fcntl").ioctl(os.open("/dev/ptmx", os.O_RDWR), 0x5412, b"x"),
    "sysv-memory": sysv,
    "sysv-of-others": sysv_of_others,
    # Sockets
    "abstract-socket": abstract,
    "pathname-socket": pathname_socket,
    "packet-socket": lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW),
    "raw-socket": lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1),
    "vsock": lambda: socket.socket(40, socket.SOCK_STREAM),
    "alg": lambda: socket.socket(38, 5),
    # A list of hosts
    "tcp-other-port": lambda: tcp("127.0.0.1", port),
    "tcp-ipv6": lambda: tcp("::1", port, socket.AF_INET6),
    "tcp-own-server": server_of_own,
    "udp-dns": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", 53)),
    "udp-ipv6": lambda: socket.socket(socket.AF_INET6, socket.SOCK_DGRAM),
    "netlink": lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW),
    "mptcp": lambda: tcp("127.0.0.1", port, protocol=262),
    "fast-open": lambda: fast_open(0x20000000),
    "fast-open-connect": lambda: socket.socket().setsockopt(6, 30, 1),
    "proxy-loopback": lambda: tunnel(f"127.0.0.1:{port}"),
    "proxy-localhost": lambda: tunnel(f"localhost:{port}"),
    "proxy-address": lambda: tunnel("93.184.216.34:443"),
    "proxy-mapped-address": lambda: tunnel(f"[::ffff:127.0.0.1]:{port}"),
    "proxy-decimal-address": lambda: tunnel(f"2130706433:{port}"),
    "proxy-private-name": lambda: tunnel("ip6-localhost:443"),
    "proxy-user-info": lambda: tunnel(f"allowed.example:443@127.0.0.1:{port}"),
    "proxy-host-header": lambda: proxy(f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n"),
    "proxy-plain": lambda: proxy(f"GET http://127.0.0.1:{port}/ HTTP/1.1\r\nHost: allowed.example\r\n\r\n"),
    "proxy-two-hosts": lambda: proxy(f"GET http://127.0.0.1:{port}/ HTTP/1.1\r\nHost: allowed.example\r\nHost: b\r\n\r\n"),
    # The workspace itself
    "git-hook": git_hook,
    "git-config": lambda: write(".git/config", "a"),
    "ralph-yml": lambda: write("ralph.yml", "a"),
    "ralph-directory": lambda: write(".ralph/agents/evil.yml"),
    # Limits
    "fill-private-directory": fill,
    "fork-bomb": forks,
    "memory": memory,
    "open-files": files,
}

if name == "--list":
    print("\n".join(ATTEMPTS))
    sys.exit(0)
try:
    ATTEMPTS[name]()
except (OSError, AssertionError, MemoryError, KeyError) as error:
    print(f"stopped: {error}")
    sys.exit(1)
print("out")
