"""Something outside the sandbox to attack: a process, sockets, shared memory. Prints its port and its memory, then waits."""
import ctypes, os, socket, sys, time

libc = ctypes.CDLL(None)
keep = []
for address in ["\0ralph-escape-test-%d" % os.getpid(), sys.argv[1]]:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen()
    keep.append(listener)
tcp = socket.create_server(("127.0.0.1", 0), backlog=500)
keep.append(tcp)
port = tcp.getsockname()[1]
keep.append(socket.create_server(("::1", port), family=socket.AF_INET6, backlog=500))
memory = libc.shmget(0, 4096, 0o1600)
print(port, memory, flush=True)
try:
    sys.stdin.read()
finally:
    libc.shmctl(memory, 0, None)
