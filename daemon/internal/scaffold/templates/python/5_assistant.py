

#: if assistant
_MAX_ROUNDS = 8  # answers of the model to one question
_MAX_ANSWER = 1 << 20  # bytes of an answer
_MAX_CALLS = 64  # tool calls in one answer
_QUIET = 120.0  # seconds without a byte from the gateway

_FIX_HINTS = {
    "no_gateway": "Start a session with assistantScript, or use createSimulatorSession in a project with models.",
    "no_credit": "Ask the account's owner to add credit on the credit page; an assistantScript costs nothing.",
    "cap_reached": "Ask the owner to raise the cap on the project's gateway page, or wait until it resets.",
    "credit_reserved": "Ask again when the calls that have reserved the credit have ended.",
    "credit_locked": "Ask the account's owner to confirm their email address.",
    "request_too_large": "Send fewer or shorter messages.",
    "invalid_key": "Attach to a session that is still open.",
    "model_not_found": "Choose a textModel with setAssistantConfig.",
    "not_configured": "Ask the backend's operator to set up a provider; until then use an assistantScript.",
    "no_storage": "Make the user's data directory writable, or pass connect a user that the app stores itself.",
    "cancelled": "Ask again when the wearer wants an answer.",
    "too_many_rounds": "Make the tools' results say clearly that they are complete.",
    "bad_answer": "Ask again; if that does not help, choose another textModel.",
}


def _assistant_error(code: str, message: str, status: int = 0, wait: str = "") -> GlassesError:
    error = GlassesError(code, message)
    waiting_helps = status in (0, 408, 429) or status >= 500
    general = "Ask again." if waiting_helps else "Change the request as the message explains."
    error.fix_hint = _FIX_HINTS.get(code) or general
    error.retry_after_ms = int(wait) * 1000 if wait.isascii() and wait.isdigit() and len(wait) < 7 else 0
    return error


class AssistantTool:
    """A function that the model may call. parameters is the JSON Schema of its arguments, an object; run gets the
    arguments as a dict and returns the result for the model: a text, or a value that JSON can represent."""

    def __init__(self, name: str, description: str, run: Callable[[Dict[str, Any]], Any],
                 parameters: Optional[Dict[str, Any]] = None):
        self.name = name
        self.description = description
        self.run = run
        self.parameters = parameters or {"type": "object", "properties": {}}

    def _described(self) -> Dict[str, Any]:
        return {"type": "function", "function": {"name": self.name, "description": self.description,
                                                 "parameters": self.parameters}}


class AssistantAnswer:
    """The model's answer. To continue, pass messages + [{"role": "user", "content": "..."}]."""

    def __init__(self, text: str, messages: List[Dict[str, Any]]):
        self.text = text
        self.messages = messages  # without the system text


# The method, path, headers and body of a request to the AI gateway.
_Request = Tuple[str, str, Dict[str, str], Optional[bytes]]


class _AssistantCall:
    """One request to the AI gateway. A thread sends it and reads the answer, and the app's thread takes its parts: the
    text so far, and last the whole message or a GlassesError."""

    def __init__(self, gateway: Dict[str, str], request: _Request, quiet: Optional[float],
                 put: Callable[[Any, Any], None]):
        self.parts = collections.deque()  # type: Any
        self.ended = lambda: None  # type: Callable[[], Any]
        self._quiet = quiet
        self._put = put
        self._text = ""
        self._tool_calls = []  # type: List[Dict[str, Any]]
        self._finished = False
        self._lock = threading.Lock()  # guards what follows
        self._socket = None  # type: Optional[socket.socket]
        self._closed = False
        self._thread = threading.Thread(target=self._run, args=(gateway, request), name="glasses-assistant", daemon=True)
        self._thread.start()

    def take(self, part: Any) -> None:
        """Keeps a part for ask. The last one ends the call."""
        if not isinstance(part, str):
            self.ended()
            self.ended = lambda: None
        self.parts.append(part)

    def close(self) -> None:
        self.ended()
        self.ended = lambda: None
        with self._lock:
            self._closed, open_socket = True, self._socket
        if open_socket:
            try:
                open_socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # it is gone
        self._thread.join(5)

    def _run(self, gateway: Dict[str, str], request: _Request) -> None:
        # Texts of these errors may quote the request with the token, so only their kinds are reported.
        try:
            last = self._exchange(gateway, request)  # type: Any
        except GlassesError as e:
            last = e
        except socket.timeout:
            last = _assistant_error("gateway_timeout", "the AI gateway sent nothing for %d s" % _QUIET)
        except http.client.HTTPException as e:
            last = _assistant_error("answer_broken", "the answer broke off (%s)" % e.__class__.__name__)
        except OSError as e:
            why = e.strerror or e.__class__.__name__
            last = _assistant_error("gateway_unreachable", "the AI gateway cannot be reached (%s)" % why)
        except (ValueError, TypeError, LookupError, AttributeError) as e:
            what = "the AI gateway sent an invalid answer (%s)" % e.__class__.__name__
            last = _assistant_error("bad_answer", what)
        self._put(self, last)

    def _exchange(self, gateway: Dict[str, str], request: _Request) -> Dict[str, Any]:
        method, path, headers, body = request
        parts = urllib.parse.urlsplit(gateway["url"])
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        connection = kind(parts.hostname or "", parts.port, timeout=10)
        try:
            connection.connect()
            with self._lock:
                self._socket = connection.sock
                if self._closed:
                    raise OSError("closed")
            connection.sock.settimeout(self._quiet)
            connection.request(method, parts.path + path, body, dict(headers, Authorization="Bearer " + gateway["token"]))
            response = connection.getresponse()
            if response.status == 204:
                return {}
            if response.status != 200:
                raise self._refusal(response.status, response.getheader("Retry-After", ""), response.read(_MAX_ANSWER))
            return self._read(response) if body else dict(json.loads(response.read(_MAX_ANSWER)))
        finally:
            connection.close()

    @staticmethod
    def _refusal(status: int, wait: str, body: bytes) -> GlassesError:
        try:
            error = json.loads(body)["error"]
            return _assistant_error(str(error["code"]), str(error["message"]), status, wait)
        except (ValueError, TypeError, KeyError):
            return _assistant_error("gateway_error", "the AI gateway answered with status %d" % status, status, wait)

    def _read(self, response: http.client.HTTPResponse) -> Dict[str, Any]:
        left = _MAX_ANSWER
        while True:
            line = response.readline(left + 1)
            left -= len(line)
            if left < 0:
                raise _assistant_error("bad_answer", "the answer is over 1 MB")
            if line.startswith(b"data:"):
                data = line[5:].strip()
                if data == b"[DONE]":
                    break
                self._chunk(json.loads(data))
            elif not line and self._finished:
                break
            elif not line:
                raise _assistant_error("answer_broken", "the answer broke off")
        message = {"role": "assistant", "content": self._text}  # type: Dict[str, Any]
        if self._tool_calls:
            message["tool_calls"] = self._tool_calls
        return message

    def _chunk(self, chunk: Dict[str, Any]) -> None:
        if chunk.get("error"):
            error = chunk["error"]
            message = str(error.get("message") or "the answer broke off")
            raise _assistant_error(str(error.get("code") or "provider_error"), message)
        for choice in (chunk.get("choices") or [])[:1]:
            self._finished = self._finished or bool(choice.get("finish_reason"))
            delta = choice.get("delta") or {}
            for part in delta.get("tool_calls") or []:
                self._tool_call(part)
            if delta.get("content"):
                self._text += delta["content"]
                self._put(self, self._text)

    def _tool_call(self, part: Dict[str, Any]) -> None:
        index = part.get("index", len(self._tool_calls))
        if index == len(self._tool_calls) < _MAX_CALLS:
            self._tool_calls.append({"id": "", "type": "function", "function": {"name": "", "arguments": ""}})
        call, function = self._tool_calls[index], part.get("function") or {}
        call["id"] = call["id"] or part.get("id") or ""
        call["function"]["name"] += function.get("name") or ""
        call["function"]["arguments"] += function.get("arguments") or ""
#: end
