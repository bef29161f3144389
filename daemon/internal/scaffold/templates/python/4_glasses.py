_LONGEST_SLEEP = 600000  # ms of one clock.sleep
_MAX_QUEUE = 1000  # events not taken yet; the oldest are dropped first
_MAX_SEEN = 500  # ids of received events


def connect(name: str, version: str = "", *, transport: Optional[str] = None, url: Optional[str] = None,
            #: if assistant
            user: Optional[str] = None,
            #: end
            secret: Optional[str] = None, release: bool = False) -> "Glasses":
    """Attaches to the session as the app of this name and returns once it is welcomed.

    transport is the one setting, SERVICE_GLASSES_TRANSPORT: simulator or device. By default it is simulator in a
    development build and device in a release build (python -O, SERVICE_RELEASE=1, release=True). url and secret come
    from SERVICE_GLASSES_URL and the file SERVICE_GLASSES_SECRET_FILE. Errors: not_configured, simulator_refused,
    transport_unavailable, refused, not_connected.
    #: if assistant

    user is the secret of the user whom remember, memory and forget are about: 32 random lower-case hexadecimal digits,
    such as one for each person who signs in. By default the module makes one and stores it on this computer.
    #: end
    """
    to, key = _target(transport, url, secret, release)
    app = {"name": name}
    if version:
        app["version"] = version
    glasses = Glasses(to, key, app)
    #: if assistant
    glasses._user = functools.partial(_user_of, name, user)
    #: end
    glasses._until(lambda: glasses.device is not None)
    return glasses


class _Timer:
    """A timer of after or every: its clock.sleep is in progress, or it waits for glasses. Durations are in ms."""

    def __init__(self, task: Callable[[], Any], left: int, period: int):
        self.task = task
        self.left = left  # to sleep after the current clock.sleep
        self.period = period  # 0 for a single call
        self.id = ""  # of its clock.sleep
        self.asked = 0  # duration of that sleep
        self.due = None  # type: Optional[int]  # when that sleep ends, on the session's clock


class Glasses:
    """One attached session, for one thread of the app. Every command raises a GlassesError when the glasses refuse it.

    Events come out of next() and events(), in order; those of types with a handler go to it instead. Handlers and timers run on
    this thread whenever the app waits: in next(), events() and run(), and during sleep() and every other command, which then
    returns after them and raises what they raise. While a handler or timer runs, it is not called again.
    """

    def __init__(self, url: str, secret: str, app: Dict[str, str]):
        """Use connect."""
        self.device = None  # type: Any  # the glasses as the service describes them: panel, inputs, camera, ...
        # The state of the glasses when the app attached: battery, worn, hinge, thermal, link, route, call, permissions,
        # disabled, clock. An event reports each later change.
        self.initial_state = {}  # type: Dict[str, Any]
        self._changed = threading.Condition()  # guards what follows
        self._inbox = collections.deque()  # type: Deque[Tuple[Any, Any]]  # frames that the app's thread has not read
        self._ended = None  # type: Optional[GlassesError]
        self._results = {}  # type: Dict[str, Any]  # of commands in progress: None, then the result's payload
        self._bytes = {}  # type: Dict[str, bytes]
        self._events = collections.deque(maxlen=_MAX_QUEUE)  # type: Deque[Event]
        self._handlers = {}  # type: Dict[str, List[Callable[[Event], Any]]]
        self._handled = collections.deque(maxlen=_MAX_QUEUE)  # type: Deque[Event]  # for handlers
        self._timers = {}  # type: Dict[str, _Timer]  # by the id of their clock.sleep
        self._stalled = []  # type: List[_Timer]  # until glasses are attached
        self._due = []  # type: List[_Timer]  # due timers
        self._running = []  # type: List[Any]  # timers, and types of events whose handlers run
        self._seen = {}  # type: Dict[str, bool]  # in the order in which they came
        self._calls = 0  # to the AI gateway, in progress
        #: if assistant
        self._gateway = {}  # type: Dict[str, str]  # url and token of the AI gateway, if the session has one
        self._user = functools.partial(_user_of, app["name"], None)
        self._stops = 0  # how often stop_asking was called
        self._conversation = None  # type: Optional[_Conversation]
        self._refusals = {}  # type: Dict[str, Callable[[str], Any]]  # by the id of a command that nobody waits for
        #: end
        self._link = _Link(url, secret, app, self._receive, self._end)

    def __enter__(self) -> "Glasses":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def link(self) -> str:
        """The connection to the glasses: connected, lossy, lost, disconnected; offline while the service is
        unreachable; closed."""
        return self._link.state

    def close(self) -> None:
        """Ends the session for this app; pending calls fail with the code closed."""
        self._link.close(GlassesError("closed", "the app closed the connection"))

    #: if display
    def show(self, tree: Dict[str, Any]) -> None:
        """Replaces the content of the panel with a display tree, e.g. {"type": "text", "text": "Hello"}."""
        self.command("display.show", {"tree": tree})

    def clear(self) -> None:
        self.command("display.clear")

    #: end
    #: if speech
    def say(self, text: str, language: Optional[str] = None) -> str:
        """Speaks to the wearer. Returns when the glasses begin, with the id that the speech event will name."""
        return self.command("speech.say", {"text": text, "language": language})[0]

    def stop_saying(self) -> None:
        self.command("speech.stop")

    #: end
    #: if sound
    def play(self, sound: str) -> None:
        """Plays chime, success, error or tick."""
        self.command("sound.play", {"sound": sound})

    #: end
    #: if phrases
    def announce(self, phrases: List[str]) -> None:
        """Announces the phrases that the app understands; replaces the previous list."""
        self.command("phrases.announce", {"phrases": phrases})

    #: end
    #: if transcription
    def start_transcription(self, handler: Optional[Callable[[Event], Any]] = None, language: Optional[str] = None) -> None:
        """What the wearer says arrives as transcript events; handler is short for on("transcript")."""
        self._start("transcription.start", {"language": language}, "transcript", handler)

    def stop_transcription(self) -> None:
        self._stop("transcription.stop", "transcript")

    #: end
    #: if microphone
    def start_audio(self, handler: Callable[[Event], Any], sample_rate: Optional[int] = None) -> None:
        """Sound arrives as audio.chunk events: data is 16-bit little-endian PCM, one channel, 100 ms."""
        self._start("audio.start", {"sampleRate": sample_rate}, "audio.chunk", handler)

    def stop_audio(self) -> None:
        self._stop("audio.stop", "audio.chunk")

    #: end
    #: if camera
    def photo(self, width: Optional[int] = None) -> Media:
        """Takes a photo, a JPEG."""
        return self._media(*self.command("camera.photo", {"width": width}))

    def clip(self, duration_ms: int, fps: Optional[int] = None, width: Optional[int] = None) -> Media:
        """Records a clip, Motion JPEG; returns when it is complete."""
        return self._media(*self.command("camera.video", {"durationMs": duration_ms, "fps": fps, "width": width}))

    def start_video(self, handler: Callable[[Event], Any], fps: Optional[int] = None, width: Optional[int] = None) -> None:
        """Pictures arrive as video.frame events: data is a JPEG."""
        self._start("video.start", {"fps": fps, "width": width}, "video.frame", handler)

    def stop_video(self) -> None:
        self._stop("video.stop", "video.frame")

    def _media(self, id: str, result: Dict[str, Any], data: Optional[bytes]) -> Media:
        if data is None:
            raise GlassesError("media_lost", "the connection broke while the picture was being sent; take it again")
        return Media(data, result["media"])

    #: end
    #: if motion
    def start_motion(self, handler: Callable[[Event], Any], hz: Optional[int] = None) -> None:
        """Movement arrives as motion events: thousandths of g and of a degree a second."""
        self._start("motion.start", {"hz": hz}, "motion", handler)

    def stop_motion(self) -> None:
        self._stop("motion.stop", "motion")

    #: end
    #: if assistant
    def ask(self, question: Any, *, system: Optional[str] = None, tools: Iterable["AssistantTool"] = (),
            remember: bool = False, on_text: Optional[Callable[[str], Any]] = None) -> "AssistantAnswer":
        """Asks the model of the session's AI gateway. question is a text, or a conversation, which is a list like
        AssistantAnswer.messages.

        on_text gets the text of the model's message so far, whenever more of it arrives. When the model calls a tool,
        its run is called here, and the model answers again, up to 8 times. Virtual time stands still while the gateway
        works; handlers and timers still run. Errors have fix_hint, and retry_after_ms if waiting helps: no_gateway,
        cancelled, gateway_unreachable, gateway_timeout, answer_broken, bad_answer, too_many_rounds, and those of the
        gateway: no_credit, credit_reserved, credit_locked, cap_reached, request_too_large, model_not_found,
        not_configured, provider_busy, ...

        remember states that the wearer agreed that the service remembers what is said; the model then knows it later.
        """
        messages = [{"role": "user", "content": question}] if isinstance(question, str) else list(question)
        tools = list(tools)
        request = {"model": "assistant", "stream": True}  # type: Dict[str, Any]
        if tools:
            request["tools"] = [tool._described() for tool in tools]
        before = [{"role": "system", "content": system}] if system else []
        headers = {"Content-Type": "application/json", "Accept": "text/event-stream"}
        if remember:
            headers.update({"X-Service-User": self._user(), "X-Service-Memory": "wearer-agreed"})
        stops = self._stops
        for _ in range(_MAX_ROUNDS):
            body = _json("the conversation", dict(request, messages=before + messages)).encode()
            message = self._call_gateway(("POST", "/chat/completions", headers, body), stops, on_text)
            messages.append(message)
            if "tool_calls" not in message:
                return AssistantAnswer(message["content"], messages)
            for call in message["tool_calls"]:
                messages.append(self._use(call, tools))
                self._check_stop(stops)
        raise _assistant_error("too_many_rounds", "the model still calls tools after %d answers" % _MAX_ROUNDS)

    def memory(self) -> str:
        """Returns what the service remembers about the user; "" if that is nothing."""
        profile = self._call_gateway(("GET", "/memory", {"X-Service-User": self._user()}, None), None, None)
        return str(profile.get("profile") or "")

    def forget(self) -> None:
        """Deletes what the service remembers about the user."""
        self._call_gateway(("DELETE", "/memory", {"X-Service-User": self._user()}, None), None, None)

    def stop_asking(self) -> None:
        """Ends every ask in progress, e.g. from a handler: it raises the code cancelled."""
        self._stops += 1

    def converse(self, *, instructions: str = "", tools: Iterable["AssistantTool"] = (), remember: bool = False,
                 on_heard: Optional[Callable[[str], Any]] = None,
                 on_said: Optional[Callable[[str], Any]] = None,
                 on_error: Optional[Callable[[GlassesError], Any]] = None) -> "ConversationEnd":
        """Speaks with the wearer until stop_conversing, e.g. from a handler: the model hears the microphone and answers
        with sound, which stops when the wearer speaks again. Its tools run here, as for ask. on_heard gets what the
        wearer said, on_said the text of the answer so far, and on_error why an answer failed, which is printed without
        it. Without a realtime model it uses transcripts, ask and say instead. Use neither start_audio nor
        start_transcription meanwhile. It continues by itself after a lost connection, a phone call or folded glasses,
        but after a lost connection the model has forgotten what was said. remember and errors: as for ask.
        """
        if self._conversation:
            raise _assistant_error("busy", "a conversation is running already")
        user = self._user() if remember else ""
        self._conversation = _Conversation(self, instructions, list(tools), user, on_heard, on_said, on_error)
        try:
            return self._conversation.run()
        finally:
            self._conversation = None

    def stop_conversing(self) -> None:
        """Ends the conversation: converse returns with the reason stopped."""
        if self._conversation:
            self._conversation.end("stopped")

    def _command_unwaited(self, type: str, payload: Dict[str, Any], refused: Callable[[str], Any]) -> str:
        """Sends a command without waiting for its result; returns its id. refused gets the code if the glasses refuse it."""
        return self._link.send(type, payload, lambda id: self._refusals.__setitem__(id, refused))

    def _check_stop(self, stops: Optional[int]) -> None:
        if stops is not None and self._stops != stops:
            raise _assistant_error("cancelled", "the app stopped asking")

    def _call_gateway(self, request: "_Request", stops: Optional[int],
                      on_text: Optional[Callable[[str], Any]]) -> Dict[str, Any]:
        """The answer to a request: the model's message, or an object. A token that expires meanwhile is replaced once."""
        # A virtual clock does not measure how long the gateway takes.
        quiet = None if self.initial_state.get("clock") == "virtual" else _QUIET
        for again in (False, True):
            gateway = self._gateway
            if not gateway:
                raise _assistant_error("no_gateway", "this session has no AI gateway")
            try:
                return self._exchange(_AssistantCall(gateway, request, quiet, self._receive), stops, on_text)
            except GlassesError as e:
                if again or e.code != "invalid_key" or self._gateway == gateway:
                    raise
        raise AssertionError("not reached")

    def _exchange(self, call: "_AssistantCall", stops: Optional[int],
                  on_text: Optional[Callable[[str], Any]]) -> Dict[str, Any]:
        self._calls += 1
        call.ended = lambda: setattr(self, "_calls", self._calls - 1)
        try:
            while True:
                self._until(lambda: call.parts or stops is not None and self._stops != stops)
                self._check_stop(stops)
                part = call.parts.popleft()
                if isinstance(part, GlassesError):
                    raise part
                if isinstance(part, dict):
                    return part
                if on_text:
                    on_text(part)
        finally:
            call.close()

    def _use(self, call: Dict[str, Any], tools: List["AssistantTool"]) -> Dict[str, Any]:
        """Runs the tool of a call. Mistakes of the model and refusals by the glasses are reported to the model."""
        function = call["function"]
        named = [tool for tool in tools if tool.name == function["name"]]
        try:
            arguments = json.loads(function["arguments"] or "{}")
        except ValueError:
            arguments = None
        if not named:
            result = {"error": "there is no tool with this name"}  # type: Any
        elif not isinstance(arguments, dict):
            result = {"error": "the arguments are not a JSON object"}
        else:
            try:
                result = named[0].run(arguments)
            except GlassesError as e:
                if e is self._ended or e.code == "cancelled":
                    raise
                result = {"error": {"code": e.code, "message": e.message}}
        content = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
        return {"role": "tool", "tool_call_id": call["id"], "content": content}

    #: end
    def sleep(self, ms: int) -> None:
        """Waits on the session's clock, which may be virtual. Use it instead of time.sleep."""
        self.command("clock.sleep", {"ms": ms})

    def after(self, ms: int, task: Callable[[], Any]) -> Callable[[], None]:
        """Calls task once, after ms on the session's clock. Returns a function that cancels it."""
        return self._time(ms, 0, task, 0)

    def every(self, ms: int, task: Callable[[], Any]) -> Callable[[], None]:
        """Calls task every ms on the session's clock. A call that is due while task still runs is skipped. Returns a
        function that cancels it."""
        return self._time(ms, 1, task, ms)

    def on(self, type: str, handler: Callable[[Event], Any]) -> Callable[[], None]:
        """Calls handler for each event of a type. Returns a function that stops it. Type "connection" has
        {state: online | offline}: whether the service is reachable."""
        handlers = self._handlers.setdefault(type, [])
        handlers.append(handler)
        return lambda: handlers.remove(handler) if handler in handlers else None

    def next(self, timeout_ms: Optional[int] = None) -> Optional[Event]:
        """The next event without a handler; None if none came within timeout_ms of the session's clock. Raises the code
        closed at the end."""
        event = self._pop()
        if event is not None:
            return event
        late = []  # type: List[bool]
        cancel = self.after(timeout_ms, lambda: late.append(True)) if timeout_ms is not None else None
        try:
            while event is None:
                self._until(lambda: self._events or late)
                event = self._pop()
                if late:
                    break
        finally:
            if cancel:
                cancel()
        return event

    def events(self) -> Iterator[Event]:
        """All events without a handler, one after the other, until the session is closed."""
        while True:
            try:
                event = self.next()
            except GlassesError as e:
                if e is self._ended and e.code == "closed":
                    return
                raise
            if event is not None:
                yield event

    def run(self) -> None:
        """Serves the handlers until the session is closed."""
        for _ in self.events():
            pass

    def log(self, type: str, payload: Dict[str, Any]) -> None:
        """Writes an event of the app to the session's log, e.g. log("com.example.score", {"points": 3})."""
        self._link.send(type, payload)

    def command(self, type: str, payload: Optional[Dict[str, Any]] = None,
                ) -> Tuple[str, Dict[str, Any], Optional[bytes]]:
        """Sends any command of the protocol; the methods above use it. Returns (id, result, bytes or None)."""
        payload = {k: v for k, v in (payload or {}).items() if v is not None}
        id = self._link.send(type, payload, lambda id: self._results.__setitem__(id, None))
        try:
            self._until(lambda: self._results[id])
            result = self._results[id]
        finally:
            del self._results[id]
            data = self._bytes.pop(id, None)
        if "error" in result:
            error = result["error"]
            raise GlassesError(error.get("code", "platform_error"), error.get("message", ""), error.get("part", ""),
                               error.get("by", ""))
        return id, result, data

    #: if transcription,microphone,camera,motion
    def _start(self, type: str, payload: Dict[str, Any], event: str, handler: Optional[Callable[[Event], Any]]) -> None:
        off = self.on(event, handler) if handler else lambda: None
        try:
            self.command(type, payload)
        except GlassesError:
            off()
            raise

    def _stop(self, type: str, event: str) -> None:
        self.command(type)
        self._handlers.pop(event, None)

    #: end
    def _time(self, ms: int, least: int, task: Callable[[], Any], period: int) -> Callable[[], None]:
        if ms != int(ms) or ms < least:
            raise GlassesError("bad_payload", "%s is not a whole number of ms from %d" % (ms, least))
        timer = _Timer(task, int(ms), int(period))
        self._sleep(timer)
        return lambda: self._cancel(timer)

    def _sleep(self, timer: _Timer) -> None:
        timer.asked = min(timer.left, _LONGEST_SLEEP)
        timer.id = self._link.send("clock.sleep", {"ms": timer.asked})
        timer.left -= timer.asked
        self._timers[timer.id] = timer

    def _cancel(self, timer: _Timer) -> None:
        for waiting in (self._stalled, self._due):
            if timer in waiting:
                waiting.remove(timer)
        if self._timers.pop(timer.id, None) and not self._ended:
            try:
                self._link.send("clock.cancel", {"id": timer.id})
            except GlassesError as e:
                if e.code != "closed":
                    raise  # after the end there is nothing to cancel

    def _tick(self, timer: _Timer, at: int, error: Optional[Dict[str, str]]) -> None:
        if error and error.get("code") in ("not_connected", "timeout"):
            timer.left += timer.asked  # it is not known how much of it has passed
            timer.due = None
            if error["code"] == "not_connected" and self.link == "disconnected":
                self._stalled.append(timer)
            else:  # also if glasses were attached while the app was away
                self._sleep(timer)
        elif error:
            raise GlassesError(error.get("code", "platform_error"), error.get("message", ""))
        elif timer.left > 0:
            self._sleep(timer)
        else:
            if timer.period:
                self._sleep_again(timer, at)
            if timer not in self._due and timer not in self._running:
                self._due.append(timer)

    def _sleep_again(self, timer: _Timer, at: int) -> None:
        """Sleeps until the next call is due; a late answer does not delay it."""
        timer.left = timer.period if timer.due is None else min(timer.due + timer.period - at, timer.period)
        if timer.left <= 0:
            timer.left = timer.period  # calls were missed
        timer.due = at + timer.left
        self._sleep(timer)

    def _resume(self) -> None:
        stalled, self._stalled = self._stalled, []
        for timer in stalled:
            self._sleep(timer)

    def _receive(self, frame: Dict[str, Any], data: Optional[bytes]) -> None:
        with self._changed:
            self._inbox.append((frame, data))
            self._changed.notify_all()

    def _end(self, why: GlassesError) -> None:
        with self._changed:
            self._ended = why
            self._changed.notify_all()

    def _until(self, there: Callable[[], Any]) -> None:
        """Runs handlers and timers and reads frames, on the app's thread, until there() holds. Here the app waits for
        the glasses, so that barriers are answered."""
        while not there():
            if self._work():
                continue
            #: if assistant
            if self._conversation:
                self._conversation.waits()
            #: end
            with self._changed:
                while not self._inbox:
                    if self._ended:
                        raise self._ended
                    self._changed.wait()
                frame, data = self._inbox.popleft()
            #: if assistant
            if isinstance(frame, (_AssistantCall, _Conversation)):
                frame.take(data)
                continue
            #: end
            self._look(frame, data)

    def _work(self) -> bool:
        """Runs one timer or the handlers of one event, the first that is not already running. Reports whether there was
        one."""
        if self._due:
            timer = self._due.pop(0)
            self._run(timer, [timer.task])
            return True
        for event in self._handled:
            if event.type not in self._running:
                self._handled.remove(event)
                self._run(event.type, [functools.partial(handler, event) for handler in self._handlers.get(event.type, ())])
                return True
        return False

    def _run(self, what: Any, tasks: List[Callable[[], Any]]) -> None:
        self._running.append(what)
        try:
            for task in tasks:
                task()
        finally:
            self._running.remove(what)

    def _keep(self, event: Event) -> None:
        (self._handled if self._handlers.get(event.type) else self._events).append(event)

    def _pop(self) -> Optional[Event]:
        """The oldest event without a handler. A handler may have come after the event."""
        while self._events:
            event = self._events.popleft()
            if self._handlers.get(event.type):
                self._handled.append(event)
            elif event.type != "connection" and event.data is None:
                return event
        return None

    def _look(self, frame: Dict[str, Any], data: Optional[bytes]) -> None:
        type, id, payload = frame["type"], frame["id"], frame["payload"]
        if type == "barrier":
            calls = self._calls
            #: if assistant
            if self._conversation and self._conversation.catch_up(id):
                return  # the gateway may still react to what it was sent
            if self._conversation and self._conversation.is_answering:
                calls += 1
            #: end
            self._link.passed(id, calls)
        elif type == "gateway.token":
            #: if assistant
            self._gateway = payload
            #: end
            pass  # not an event: it contains a secret
        elif type == "result":
            if id in self._timers:
                self._tick(self._timers.pop(id), frame["at"], payload.get("error"))
            elif id in self._results:
                self._results[id] = payload
            #: if assistant
            elif id in self._refusals:
                refused = self._refusals.pop(id)
                if "error" in payload:
                    refused(payload["error"].get("code", ""))
            #: end
        elif type == "media":
            if id in self._results and data is not None:
                self._bytes[id] = data
        elif type == "welcome":
            self.device = payload["deviceModel"]
            self.initial_state = payload.get("glasses", {})
            #: if assistant
            self._gateway = payload.get("gateway", {})
            #: end
            self._keep(Event("connection", "", frame["at"], {"state": "online"}))
            if payload["link"] != "disconnected":
                self._resume()
        elif data is not None or not self._again(id):
            if type == "device":
                self.device = payload["deviceModel"]
            self._keep(Event(type, id, frame["at"], payload, data))
            if type == "link" and payload["state"] != "disconnected":
                self._resume()

    def _again(self, id: str) -> bool:
        """Reports whether an event was received before: after a restart the service may send one twice."""
        if not id:
            return False
        if id in self._seen:
            return True
        self._seen[id] = True
        if len(self._seen) > _MAX_SEEN:
            del self._seen[next(iter(self._seen))]
        return False
