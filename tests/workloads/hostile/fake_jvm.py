# fake_jvm.py MODE FOLDER: looks like a JVM, and is a hostile one, which does what MODE says with who attaches. Meanwhile it looks
# at all processes of its user, and prints what secrets it reads in their environments, and which of their descriptors it can
# take. FOLDER is for its files. With crowd:N for MODE there are N of it, all silent, and none looks around.
import ctypes, errno, mmap, os, signal, socket, struct, sys, threading, time

mode, folder = sys.argv[1:]
me = os.getuid()


def path():
    return "/tmp/.java_pid%d" % os.getpid()


def say(*words):
    print(*words, flush=True)


def pretend_to_be_java():
    with open(folder + "/libjvm.so", "wb") as library:
        library.write(bytes(4096))
    with open(folder + "/libjvm.so", "rb") as library:
        return mmap.mmap(library.fileno(), 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)


def spy():
    libc, seen = ctypes.CDLL(None, use_errno=True), set()
    while True:
        for other in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/status" % other) as status:
                    user = int(status.read().split("\nUid:")[1].split()[0])
                with open("/proc/%s/cmdline" % other, "rb") as command:
                    words = command.read()
                # A program that is just being started has no words yet: it may be another of these.
                if user != me or not words or b"fake_jvm.py" in words:
                    continue
                with open("/proc/%s/environ" % other, "rb") as environment:
                    for value in environment.read().split(b"\0"):
                        if b"SECRET" in value and value not in seen:
                            seen.add(value)
                            say("read", value.decode())
                pidfd = libc.syscall(434, int(other), 0)
                stolen = libc.syscall(438, pidfd, 1, 0) if pidfd >= 0 else -1
                if stolen >= 0 and other not in seen:
                    seen.add(other)
                    say("stole a descriptor of", other)
                for descriptor in (pidfd, stolen):
                    if descriptor >= 0:
                        os.close(descriptor)
            except (OSError, IndexError):
                continue
        time.sleep(0.005)


def listen():
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path())
    os.chmod(path(), 0o600)
    listener.listen(8)
    return listener


def request(connection):
    data = b""
    while data.count(b"\0") < 5:
        more = connection.recv(4096)
        if not more:
            break
        data += more
    return data.split(b"\0")


def serve(listener):
    kept = []
    while True:
        connection, _ = listener.accept()
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        say("asked by user", struct.unpack("iII", credentials)[1])
        try:
            if mode == "silent":
                kept.append(connection)
            elif mode == "slow":
                while True:
                    connection.send(b"0")
                    time.sleep(0.05)
            elif mode == "endless":
                while True:
                    connection.send(b"0\n" * 4096)
            elif mode == "garbage":
                connection.send(b"\xff\x1b]0;a title\x07\x1b[31m" * 100)
                connection.close()
            elif mode == "escapes":
                connection.send(b"1\n\x1b]0;a title\x07\x1b[31mred\n")
                connection.close()
            elif mode == "clinging":
                # Takes the pipe, fills it, and never lets go.
                pipe = request(connection)[4].split(b":", 1)[1]
                kept.append(os.open(pipe, os.O_RDWR | os.O_NONBLOCK))
                try:
                    while True:
                        os.write(kept[-1], b"x" * 4096)
                except BlockingIOError:
                    say("the pipe is full")
                connection.send(b"0\nreturn code: 0\n")
                connection.close()
        except OSError as error:
            say("it was left:", errno.errorcode.get(error.errno, error))


def end(*_):
    try:
        os.unlink(path())
    except FileNotFoundError:
        pass
    os._exit(0)


def crowd(count):
    children = []
    while len(children) < count:
        told, tell = os.pipe()
        child = os.fork()
        if child == 0:
            # There may be a socket that a process left which had this number before.
            if os.path.lexists(path()):
                os._exit(0)
            listener = listen()
            os.write(tell, b"y")
            while True:
                signal.pause()
        os.close(tell)
        if os.read(told, 1):
            children.append(child)
        os.close(told)

    def end_all(*_):
        for child in children:
            os.kill(child, signal.SIGTERM)
        end()

    signal.signal(signal.SIGTERM, end_all)
    say("running")
    while True:
        signal.pause()


def main():
    mapped = pretend_to_be_java()
    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGQUIT, lambda *_: say("signal"))
    if mode.startswith("crowd:"):
        crowd(int(mode.split(":")[1]))
    if os.path.lexists(path()):
        say("in use")
        os._exit(1)
    threading.Thread(target=spy, daemon=True).start()
    if mode == "mute":
        pass  # Catches the signal, and never listens.
    elif mode == "fifo":
        os.mkfifo(path())
    elif mode == "file":
        open(path(), "w").close()
    elif mode == "link":
        os.symlink(os.path.join(folder, "elsewhere"), path())
    else:
        threading.Thread(target=serve, args=(listen(),), daemon=True).start()
    say("running")
    while True:
        signal.pause()


main()
