_MAX_FRAME = 64 << 10  # bytes of a text frame
_MAX_UNACKNOWLEDGED = 1000  # frames
_FIRST_PAUSE, _LONGEST_PAUSE = 0.3, 10.0  # seconds between attempts
_PATIENCE = 10.0  # seconds in which the first attach must succeed


def _now() -> int:
    return int(time.time() * 1000)


def _json(what: str, value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        text.encode()
        return text
    except (TypeError, ValueError, RecursionError) as e:
        raise GlassesError("bad_payload", "%s cannot be encoded as JSON" % what) from e


class _Link:
    """Keeps one session attached: reconnects with its cursor and resends unacknowledged frames.

    A thread reads and reconnects; what it reads goes to receive(frame, data), in order, on that thread.
    """

    def __init__(self, url: str, secret: str, app: Dict[str, str], receive: Callable[[Any, Any], None],
                 end: Callable[[GlassesError], None]):
        self.state = "offline"
        self._url, self._secret, self._app = url, secret, app
        self._receive, self._end = receive, end
        self._lock = threading.RLock()  # guards what follows, and the order of sends
        self._socket = None  # type: Optional[_WebSocket]
        self._attached = False
        self._ended = None  # type: Optional[GlassesError]
        self._prefix = os.urandom(6).hex()
        self._count = 0
        self._cursor = None  # type: Optional[int]
        self._at = 0  # the session's time of the newest frame
        self._is_virtual = False  # whether its clock is virtual, and stands still while the app is away
        self._unacknowledged = {}  # type: Dict[str, str]
        self._attempt = 0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="glasses-link", daemon=True)
        self._thread.start()

    def send(self, type: str, payload: Dict[str, Any], ready: Callable[[str], None] = lambda id: None) -> str:
        """Assigns an id to the frame, keeps the frame until it is acknowledged, and returns the id; ready gets the id
        first."""
        with self._lock:
            if self._ended:
                raise self._ended
            id = self._id()
            text = self._encode(type, id, payload)
            if len(text.encode()) > _MAX_FRAME:
                raise GlassesError("bad_payload", "%s would be longer than 64 KB" % type)
            if len(self._unacknowledged) >= _MAX_UNACKNOWLEDGED:
                raise GlassesError("busy", "too many frames wait for the service")
            ready(id)
            self._unacknowledged[id] = text
            if self._attached:
                self._write(text)
            return id

    #: if assistant
    def send_bytes(self, type: str, payload: Dict[str, Any], data: bytes) -> None:
        """Sends a binary frame, which is not repeated if the connection is lost."""
        with self._lock:
            header = self._encode(type, self._id(), payload).encode()
            try:
                if self._attached and self._socket:
                    self._socket.send_bytes(struct.pack("!H", len(header)) + header + data)
            except OSError:
                pass  # the reader notices

    #: end
    def passed(self, id: str, calls: int) -> None:
        """Answers a barrier of the service. calls is the number of calls to the AI gateway in progress."""
        with self._lock:
            if self._attached:
                self._write(self._encode("barrier", id, {"calls": calls}))

    def close(self, why: GlassesError) -> None:
        with self._lock:
            if self._ended:
                return
            self._ended, self._attached, self.state = why, False, "closed"
            socket = self._socket
        self._stopped.set()
        if socket:
            socket.close()
        self._end(why)
        if threading.current_thread() is not self._thread:
            self._thread.join(5)

    def _id(self) -> str:
        self._count += 1
        return "%s-%d" % (self._prefix, self._count)

    @staticmethod
    def _encode(type: str, id: str, payload: Dict[str, Any]) -> str:
        return _json(type, {"v": 1, "type": type, "id": id, "at": _now(), "payload": payload})

    def _write(self, text: str) -> None:
        try:
            if self._socket:
                self._socket.send(text)
        except OSError:
            pass  # the reader notices, and unacknowledged frames are resent

    def _run(self) -> None:
        began = time.monotonic()
        while not self._stopped.is_set():
            code, reason = 1006, ""
            try:
                code, reason = self._serve()
            except (OSError, ValueError):
                pass  # nobody listens, or the connection broke: try again
            self._lost(code, reason)
            if self._cursor is None and time.monotonic() - began > _PATIENCE:
                self.close(GlassesError("not_connected", "no session answers at the endpoint"))
            self._stopped.wait(min(_FIRST_PAUSE * 2 ** self._attempt, _LONGEST_PAUSE))
            self._attempt = min(self._attempt + 1, 10)

    def _serve(self) -> Tuple[int, str]:
        socket = _WebSocket(self._url)
        try:
            with self._lock:
                self._socket = socket
                if self._ended:
                    return 1000, ""
                hello = {"secret": self._secret, "app": self._app, "barrier": True, "gateway": True}
                if self._cursor is not None:
                    hello["since"] = self._cursor
                socket.send(self._encode("hello", self._id(), hello))
            while True:
                message = socket.receive()
                if message is None:
                    return socket.close_code, socket.close_reason
                self._message(message)
        finally:
            socket.drop()

    def _lost(self, code: int, reason: str) -> None:
        with self._lock:
            was, self._attached = self._attached, False
            if self._ended:
                return
            self.state = "offline"
            ids = list(self._unacknowledged) if code == 1009 else []
        if was:
            self._receive({"type": "connection", "id": "", "at": self._session_now(), "payload": {"state": "offline"}}, None)
        if code in (4400, 4401):
            self.close(GlassesError("refused", reason or "the service refused the app"))
        elif code == 4410:
            self.close(GlassesError("closed", reason or "the session is closed"))
        for id in ids:
            self._refuse(id, {"code": "bad_frame", "message": "the frame was too big for the service"})

    def _message(self, message: Union[str, bytes]) -> None:
        data = None
        try:
            if isinstance(message, bytes):
                end = 2 + struct.unpack("!H", message[:2])[0]
                message, data = message[2:end], message[end:]
            frame = json.loads(message)
        except (ValueError, struct.error):
            return  # not a frame: a newer service may send what this module does not know
        self._take(frame, data)

    def _take(self, frame: Dict[str, Any], data: Optional[bytes]) -> None:
        frame.setdefault("id", "")
        payload = frame.setdefault("payload", {})
        with self._lock:
            self._at = max(self._at, frame.get("at", 0))
            if frame.get("seq"):
                self._see(frame["seq"])
            if frame["type"] == "welcome":
                self.state = payload["link"]
                self._attempt = 0
                self._is_virtual = payload.get("glasses", {}).get("clock") == "virtual"
                if self._cursor is None:
                    self._cursor = payload["lastSeq"]
                self._attached = True
                for text in self._unacknowledged.values():
                    self._write(text)
            elif frame["type"] == "ack":
                self._unacknowledged.pop(payload["id"], None)
                return
            elif frame["type"] == "cursor":
                self._see(payload["seq"])
                return
            elif frame["type"] == "link":
                self.state = payload["state"]
        if frame["type"] == "error":
            self._refuse(frame["id"], payload)
        else:
            self._receive(frame, data)

    def _refuse(self, id: str, error: Dict[str, str]) -> None:
        with self._lock:
            known = self._unacknowledged.pop(id, None)
        if known is not None:
            self._receive({"type": "result", "id": id, "at": self._session_now(), "payload": {"error": error}}, None)

    def _session_now(self) -> int:
        return self._at if self._is_virtual else _now()

    def _see(self, seq: int) -> None:
        if self._cursor is not None and seq > self._cursor:
            self._cursor = seq


