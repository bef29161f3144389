class _WebSocket:
    """A client of RFC 6455: messages of one connection. One thread reads; any may send."""

    MAX = 4 << 20  # bytes of a message
    QUIET = 30.0  # seconds; the service pings every 8

    def __init__(self, url: str, headers: str = ""):
        """headers are further lines of the request, each ending in CRLF."""
        self.close_code = 1006
        self.close_reason = ""
        self._lock = threading.Lock()
        parts = urllib.parse.urlsplit(url)
        port = parts.port or (443 if parts.scheme == "wss" else 80)
        self._socket = socket.create_connection((parts.hostname, port), timeout=10)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if parts.scheme == "wss":
            self._socket = ssl.create_default_context().wrap_socket(self._socket, server_hostname=parts.hostname)
        self._file = self._socket.makefile("rb")
        try:
            self._handshake(parts, port, headers)
            self._socket.settimeout(self.QUIET)
        except Exception:
            self.drop()
            raise

    def _handshake(self, parts: urllib.parse.SplitResult, port: int, headers_sent: str) -> None:
        key = base64.b64encode(os.urandom(16)).decode()
        path = (parts.path or "/") + ("?" + parts.query if parts.query else "")
        host = "[%s]" % parts.hostname if ":" in (parts.hostname or "") else parts.hostname
        self._socket.sendall(("GET %s HTTP/1.1\r\nHost: %s:%d\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                              "Sec-WebSocket-Key: %s\r\nSec-WebSocket-Version: 13\r\n%s\r\n" % (path, host, port, key, headers_sent)).encode())
        status = self._file.readline(8192).split()
        headers = {}
        for _ in range(100):
            line = self._file.readline(8192).decode("latin-1").strip()
            if not line:
                break
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
        accept = base64.b64encode(hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()).decode()
        if len(status) < 2 or status[1] != b"101" or headers.get("sec-websocket-accept") != accept:
            raise OSError("the endpoint does not speak WebSocket")

    def send(self, text: str) -> None:
        self._send(1, text.encode())

    def send_bytes(self, data: bytes) -> None:
        self._send(2, data)

    def _send(self, opcode: int, data: bytes) -> None:
        mask = os.urandom(4)
        length = len(data)
        if length < 126:
            head = struct.pack("!BB", 0x80 | opcode, 0x80 | length)
        elif length < 1 << 16:
            head = struct.pack("!BBH", 0x80 | opcode, 0x80 | 126, length)
        else:
            head = struct.pack("!BBQ", 0x80 | opcode, 0x80 | 127, length)
        key = int.from_bytes((mask * (length // 4 + 1))[:length], "big")
        masked = (int.from_bytes(data, "big") ^ key).to_bytes(length, "big")
        with self._lock:
            self._socket.sendall(head + mask + masked)

    def receive(self) -> Union[str, bytes, None]:
        """The next message: str or bytes; None when the peer closed. OSError when the connection broke."""
        message, kind = b"", 0
        while True:
            final, opcode, data = self._frame()
            if opcode == 8:
                if len(data) >= 2:
                    self.close_code = struct.unpack("!H", data[:2])[0]
                    self.close_reason = data[2:].decode("utf-8", "replace")
                self._answer(8, data[:2])
                return None
            if opcode == 9:
                self._answer(10, data)
                continue
            if opcode == 10:
                continue
            kind = opcode or kind
            message += data
            if len(message) > self.MAX:
                raise OSError("the service sent a message that is too long")
            if final:
                return message.decode("utf-8") if kind == 1 else message

    def _answer(self, opcode: int, data: bytes) -> None:
        try:
            self._send(opcode, data)
        except OSError:
            pass  # the reader will notice

    def _frame(self) -> Tuple[bool, int, bytes]:
        first, second = self._read(2)
        length = second & 0x7F
        if length == 126:
            length = struct.unpack("!H", self._read(2))[0]
        elif length == 127:
            length = struct.unpack("!Q", self._read(8))[0]
        if length > self.MAX or second & 0x80:
            raise OSError("the service sent a frame that is not allowed")
        return bool(first & 0x80), first & 0x0F, self._read(length)

    def _read(self, n: int) -> bytes:
        data = self._file.read(n) if n else b""
        if data is None or len(data) != n:
            raise OSError("the connection broke")
        return data

    def close(self) -> None:
        self._answer(8, struct.pack("!H", 1000))
        self.drop()

    def drop(self) -> None:
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._socket.close()


