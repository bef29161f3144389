


#: if assistant
_VOICE_RATE = 16000  # samples a second
_CHUNK = _VOICE_RATE // 10 * 2  # bytes of 100 ms
# At most 30 s are sent ahead of what was played: ahead is too low by up to one period if the sound had a gap.
_MAX_AHEAD = 25000
_PACING_PERIOD = 5000
_REOPEN_AFTER = 1.0  # seconds until a lost conversation is opened again
_MAX_ATTEMPTS = 30  # to open it without success
_MAY_FAIL = "may_fail"  # the id of events that may fail, because the answer may have ended
# The reasons of close codes that another attempt would not change.
_FINAL = {4400: "refused", 4401: "closed", 4402: "no_credit", 4408: "session_limit", 4410: "closed"}


class ConversationEnd:
    """How a conversation ended. reason is stopped, or the code of what ended it: no_credit, session_limit, ...; mode is
    realtime, or text if the session has no realtime model."""

    def __init__(self, reason: str, mode: str):
        self.reason = reason
        self.mode = mode


class _Utterance:
    """An answer that is being spoken, or waits for the one before it."""

    def __init__(self, item: str):
        self.item = item
        self.playback = ""  # the id of its playback.start
        self.waiting = collections.deque()  # type: Deque[bytes]  # sound that was not sent yet
        self.ahead = 0  # ms that were sent and may not have been played
        self.stop_pacing = None  # type: Optional[Callable[[], None]]
        self.complete = False
        self.ended = False  # playback.end was sent

    def stop(self) -> None:
        """Stops the timer that paces the sound."""
        if self.stop_pacing:
            self.stop_pacing()


class _Conversation:
    """One call of converse. A thread reads the gateway's events; the app's thread handles them and everything else."""

    def __init__(self, glasses: Glasses, instructions: str, tools: List[AssistantTool], user: str,
                 on_heard: Optional[Callable[[str], Any]], on_said: Optional[Callable[[str], Any]],
                 on_error: Optional[Callable[[GlassesError], Any]]):
        self.is_answering = False  # whether the gateway owes an answer
        self._is_behind = False  # whether the gateway was sent something that it may not have reacted to
        self._glasses = glasses
        self._instructions, self._tools = instructions, tools
        self._user = user  # to remember, or ""
        self._on_heard, self._on_said, self._on_error = on_heard, on_said, on_error or self._print
        self._events = collections.deque()  # type: Deque[Dict[str, Any]]
        self._socket = None  # type: Optional[_WebSocket]
        self._spoken = []  # type: List[_Utterance]
        self._silenced = set()  # type: Set[str]  # items whose further sound is dropped
        self._calls = []  # type: List[Dict[str, Any]]  # of the response in progress
        self._said = ""
        self._barriers = []  # type: List[str]  # to answer once the gateway has caught up
        self._updates = []  # type: List[Callable[[], Any]]  # what to do when it answers each session.update
        self._reason = self._mode = ""
        self._messages = []  # type: List[Dict[str, Any]]  # in the mode text
        self._transcripts = 0
        self._stopped = threading.Event()
        self._attempts = 0
        self._handling = False  # an event, perhaps in the app's own code

    def run(self) -> ConversationEnd:
        glasses = self._glasses
        mode = self._mode = "realtime" if self._has_realtime() else "text"
        listen = self._listen if mode == "realtime" else self._transcribe
        offs = [glasses.on("audio.chunk", self._hear), glasses.on("playback", self._played),
                glasses.on("link", self._lose)]
        if mode == "text":
            offs.append(glasses.on("transcript", self._interrupt_text))
        else:
            self._open()
        for kind in ("hinge", "call", "link", "permission", "disabled", "device", "connection"):
            offs.append(glasses.on(kind, lambda event: listen()))
        try:
            listen()
            while not self._reason:
                glasses._until(lambda: self._events or self._reason)
                if not self._reason:
                    self._handling = True
                    try:
                        self._handle(self._events.popleft())
                    finally:
                        self._handling = False
            self._leave(mode)
        except GlassesError as e:
            if e is glasses._ended and e.code == "closed":
                return ConversationEnd("closed", mode)
            if e is not glasses._ended:  # of a tool or a handler
                self._leave(mode)
            raise
        except Exception:  # of a tool or a handler
            self._leave(mode)
            raise
        finally:
            if self._spoken:
                self._spoken[0].stop()
            for off in offs:
                off()
            self._stopped.set()
            for event in self._events:
                self._discard(event)
            if self._socket:
                self._socket.close()
        return ConversationEnd(self._reason, mode)

    def _leave(self, mode: str) -> None:
        """Stops listening and the sound of an answer."""
        self._try("audio.stop" if mode == "realtime" else "transcription.stop")
        if self._spoken and self._spoken[0].playback:
            self._spoken[0].stop()
            self._try("playback.flush")

    def end(self, reason: str) -> None:
        self._reason = self._reason or reason
        self._forget()
        if self._mode == "text":
            self._glasses.stop_asking()

    def take(self, event: Dict[str, Any]) -> None:
        if self._stopped.is_set():
            self._discard(event)
        else:
            self._events.append(event)

    @staticmethod
    def _discard(event: Dict[str, Any]) -> None:
        """Closes a connection that was opened too late."""
        if event["type"] == "opened":
            event["socket"].close()

    def catch_up(self, barrier: str) -> bool:
        """Answers a barrier later if the gateway may still react to what it was sent; reports whether that is so."""
        if not self._is_behind or not self._socket or self._handling:  # a tool may itself wait for the session's clock
            return False
        self._barriers.append(barrier)
        self._update({}, self._answer_barriers)
        self._is_behind = False
        return True

    def waits(self) -> None:
        """Answers the deferred barriers if the app's own code, such as a tool, now waits for the glasses."""
        if self._handling and self._barriers:
            self._answer_barriers()

    def _answer_barriers(self) -> None:
        barriers, self._barriers = self._barriers, []
        for id in barriers:
            self._glasses._look({"type": "barrier", "id": id, "payload": {}}, None)

    def _try(self, type: str, payload: Optional[Dict[str, Any]] = None) -> Dict[str, Any]:
        try:
            return self._glasses.command(type, payload)[1]
        except GlassesError as e:
            if e is self._glasses._ended:
                raise
            return {}  # a later state may allow it

    def _listen(self) -> None:
        self._try("audio.start", {"sampleRate": _VOICE_RATE})

    def _transcribe(self) -> None:
        self._try("transcription.start")

    def _has_realtime(self) -> bool:
        gateway = self._glasses._gateway
        if not gateway:
            raise _assistant_error("no_gateway", "this session has no AI gateway")
        parts = urllib.parse.urlsplit(gateway["url"])
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        connection = kind(parts.hostname or "", parts.port, timeout=10)
        try:
            connection.request("GET", parts.path + "/realtime?model=assistant", headers={
                "Authorization": "Bearer " + gateway["token"]})
            return bool(connection.getresponse().status == 426)  # it asks for a WebSocket
        except (OSError, http.client.HTTPException) as e:
            why = "the AI gateway cannot be reached (%s)" % e.__class__.__name__
            raise _assistant_error("gateway_unreachable", why)
        finally:
            connection.close()

    def _open(self) -> None:
        gateway = self._glasses._gateway
        if not gateway:
            return self.end("no_gateway")
        self._attempts += 1
        if self._attempts > _MAX_ATTEMPTS:
            return self.end("gateway_unreachable")
        self.is_answering = True  # virtual time waits for the first session.updated
        threading.Thread(target=self._read, args=(gateway,), name="glasses-conversation", daemon=True).start()

    def _read(self, gateway: Dict[str, str]) -> None:
        """Opens the conversation and passes its events on, until it is lost."""
        code = 1006
        try:
            url = "ws" + gateway["url"][len("http"):] + "/realtime?model=assistant&rate=%d" % _VOICE_RATE
            headers = "Authorization: Bearer %s\r\n" % gateway["token"]
            if self._user:
                headers += "X-Service-User: %s\r\nX-Service-Memory: wearer-agreed\r\n" % self._user
            socket = _WebSocket(url, headers)
            if self._stopped.is_set():
                return socket.close()
            self._glasses._receive(self, {"type": "opened", "socket": socket})  # type: ignore[arg-type]
            while True:
                message = socket.receive()
                if message is None:
                    code = socket.close_code
                    break
                self._glasses._receive(self, json.loads(message))  # type: ignore[arg-type]
        except (OSError, ValueError):
            pass  # the connection broke
        if code not in _FINAL:
            self._stopped.wait(_REOPEN_AFTER)
        self._glasses._receive(self, {"type": "lost", "code": code})  # type: ignore[arg-type]

    def _forget(self) -> None:
        """Drops what belongs to a connection that was lost."""
        self.is_answering = self._is_behind = False
        self._calls = []
        updates, self._updates = self._updates, []
        for then in updates:
            then()
        self._silenced.clear()
        for spoken in self._spoken:
            spoken.item = ""  # the next connection does not know it
            if not spoken.complete:
                self._complete(spoken)

    def _send(self, event: Dict[str, Any]) -> None:
        if not self._socket:
            return
        try:
            self._socket.send(_json("the event", event))
            self._is_behind = True
        except OSError:
            pass  # the reader notices

    def _update(self, session: Dict[str, Any], then: Callable[[], Any]) -> None:
        self._updates.append(then)
        self._send({"type": "session.update", "event_id": "update", "session": dict(session, type="realtime")})

    def _configure(self, socket: _WebSocket) -> None:
        self._socket = socket
        tools = [dict(tool._described()["function"], type="function") for tool in self._tools]
        self._update({"instructions": self._instructions, "tools": tools}, self._begin)
        self._update({"audio": {"input": {"transcription": {}}}}, lambda: None)  # by itself: a gateway may refuse it

    def _begin(self) -> None:
        self.is_answering = False

    def _hear(self, event: Event) -> None:
        append = {"type": "input_audio_buffer.append", "audio": base64.b64encode(event.data or b"").decode()}
        if event.payload.get("transcript"):
            append["transcript"] = event.payload["transcript"]
        self._send(append)

    def _handle(self, event: Dict[str, Any]) -> None:
        type = event["type"]
        if type == "opened":
            self._configure(event["socket"])
        elif type == "lost":
            self._socket = None
            self._forget()
            if event["code"] in _FINAL:
                self.end(_FINAL[event["code"]])
            elif not self._reason:
                self._open()
        elif type == "transcript":
            self._answer_text(event["text"], event["number"])
        elif type == "session.updated" or type == "error" and event["error"].get("event_id") == "update":
            self._attempts = 0
            if self._updates:
                self._updates.pop(0)()
        elif type == "error":
            self._refused(event["error"])
        elif type == "input_audio_buffer.speech_started":
            self._interrupt()
        elif type == "conversation.item.input_audio_transcription.completed":
            if self._on_heard:
                self._on_heard(event["transcript"])
        else:
            self._handle_response(type, event)

    def _refused(self, error: Dict[str, Any]) -> None:
        if error.get("event_id") != _MAY_FAIL and error["code"] != "conversation_already_has_active_response":
            self.is_answering = False
            self._on_error(_assistant_error(str(error["code"]), error["message"]))

    def _handle_response(self, type: str, event: Dict[str, Any]) -> None:
        if type == "response.created":
            self.is_answering, self._said = True, ""
        elif type == "response.output_audio_transcript.delta":
            self._said += event["delta"]
            if self._on_said:
                self._on_said(self._said)
        elif type == "response.output_audio.delta":
            self._speak(event["item_id"], base64.b64decode(event["delta"]))
        elif type == "response.output_audio.done":
            for spoken in self._spoken:
                if spoken.item == event["item_id"]:
                    self._complete(spoken)
        elif type == "response.function_call_arguments.done":
            self._calls.append({"id": event["call_id"], "function": {"name": event["name"],
                                                                     "arguments": event["arguments"]}})
        elif type == "response.done":
            self._respond(event["response"])

    @staticmethod
    def _print(error: GlassesError) -> None:
        print("no answer (%s): %s %s" % (error.code, error, error.fix_hint), file=sys.stderr)

    def _respond(self, response: Dict[str, Any]) -> None:
        """Runs the tools that a response called, and asks for the next response."""
        self.is_answering = False
        calls, self._calls = self._calls, []
        status = response["status"]
        if status == "failed":
            error = (response.get("status_details") or {}).get("error") or {}
            self._on_error(_assistant_error(error.get("code") or "provider_error", "the model failed to answer"))
        if status != "completed" or not calls:
            return
        for call in calls:
            output = self._glasses._use(call, self._tools)["content"]
            self._send({"type": "conversation.item.create",
                        "item": {"type": "function_call_output", "call_id": call["id"], "output": output}})
        self._send({"type": "response.create"})

    def _speak(self, item: str, sound: bytes) -> None:
        if item in self._silenced:
            return  # the rest of what was stopped or refused
        spoken = next((u for u in self._spoken if u.item == item), None)
        if not spoken:
            spoken = _Utterance(item)
            self._spoken.append(spoken)
        spoken.waiting.extend(sound[at:at + _CHUNK] for at in range(0, len(sound), _CHUNK))
        self._play()

    def _play(self) -> None:
        """Sends the sound of the first answer; the others wait until it was played."""
        if not self._spoken:
            return
        spoken = self._spoken[0]
        if not spoken.playback:
            spoken.playback = self._glasses._command_unwaited("playback.start", {"sampleRate": _VOICE_RATE},
                                                              lambda code: self._refuse(spoken, code))
            spoken.stop_pacing = self._glasses.every(_PACING_PERIOD, lambda: self._pace(spoken))
        while spoken.waiting and spoken.ahead < _MAX_AHEAD:
            chunk = spoken.waiting.popleft()
            self._glasses._link.send_bytes("playback.chunk", {"playback": spoken.playback}, chunk)
            spoken.ahead += len(chunk) * 1000 // (2 * _VOICE_RATE)
        if spoken.complete and not spoken.waiting:
            self._finish(spoken)

    def _pace(self, spoken: _Utterance) -> None:
        """Sends more sound after a period, in which the glasses have played as much or all that they had."""
        spoken.ahead = max(0, spoken.ahead - _PACING_PERIOD)
        if self._spoken and self._spoken[0] is spoken:
            self._play()

    def _complete(self, spoken: _Utterance) -> None:
        spoken.complete = True
        if spoken is self._spoken[0] and spoken.playback:
            self._play()

    def _finish(self, spoken: _Utterance) -> None:
        if spoken.ended:
            return
        spoken.ended = True
        spoken.stop()
        try:
            self._glasses._command_unwaited("playback.end", {}, lambda code: None)
        except GlassesError:
            pass  # the session is over

    def _refuse(self, spoken: _Utterance, code: str) -> None:
        """Drops an answer that the glasses did not begin to play. Without a speaker, the app may show the words."""
        if code != "unsupported":
            return self._stop(spoken, 0)
        self._silenced.add(spoken.item)
        self._next(spoken)

    def _stop(self, spoken: _Utterance, played_ms: Optional[int]) -> None:
        """Drops the rest of an answer and tells the model how much of it was heard, if that is known."""
        if not self._spoken or self._spoken[0] is not spoken:
            return
        if not spoken.complete:
            self._send({"type": "response.cancel", "event_id": _MAY_FAIL})  # else the model would go on with it
        self._silenced.add(spoken.item)
        if played_ms is not None:
            self._cut(spoken, played_ms)
        self._next(spoken)

    def _lose(self, event: Event) -> None:
        """Drops the answer that glasses were playing when they were detached, for which no event arrives."""
        if event.payload["state"] == "disconnected" and self._spoken and self._spoken[0].playback:
            self._stop(self._spoken[0], None)

    def _next(self, spoken: _Utterance) -> None:
        """Goes on after an answer that was played or dropped."""
        if self._spoken and self._spoken[0] is spoken:
            self._spoken.pop(0).stop()
            self._play()

    def _played(self, event: Event) -> None:
        ended = event.payload
        if ended["state"] == "started" or not self._spoken or self._spoken[0].playback != ended["id"]:
            return
        spoken = self._spoken[0]
        if ended["state"] == "stopped" and ended.get("reason"):
            self._stop(spoken, ended["playedMs"])
        else:
            self._next(spoken)

    def _interrupt(self) -> None:
        """Stops the sound and tells the model how much of it was heard."""
        spoken, self._spoken = self._spoken, []
        if not spoken or not spoken[0].playback:
            return
        spoken[0].stop()
        self._silenced.update(u.item for u in spoken)
        self._cut(spoken[0], self._try("playback.flush").get("playedMs", 0))
        for other in spoken[1:]:
            self._cut(other, 0)

    def _cut(self, spoken: _Utterance, played_ms: int) -> None:
        """Truncates an answer to what was heard, or deletes it if that is nothing."""
        if not spoken.item:
            return
        if played_ms == 0:
            self._send({"type": "conversation.item.delete", "event_id": _MAY_FAIL, "item_id": spoken.item})
        else:
            self._send({"type": "conversation.item.truncate", "event_id": _MAY_FAIL, "item_id": spoken.item,
                        "content_index": 0, "audio_end_ms": played_ms})

    def _interrupt_text(self, event: Event) -> None:
        """Stops the answer to what the wearer said before, and keeps a final transcript for answer_text."""
        self._transcripts += 1
        number = self._transcripts
        self._glasses.stop_asking()
        self._try("speech.stop")
        if event.payload.get("final"):
            self.take({"type": "transcript", "text": event.payload["text"], "number": number})

    def _answer_text(self, text: str, number: int) -> None:
        """Answers a transcript with ask and say."""
        if self._on_heard:
            self._on_heard(text)
        if number != self._transcripts or self._reason:
            return  # the wearer has spoken again
        try:
            answer = self._glasses.ask(self._messages + [{"role": "user", "content": text}],
                                       system=self._instructions or None, tools=self._tools,
                                       remember=self._user != "", on_text=self._on_said)
            self._messages = answer.messages
            if not self._reason:
                self._try("speech.say", {"text": answer.text[:2000]})
        except GlassesError as e:
            if e is self._glasses._ended:
                raise
            if e.code != "cancelled":
                self._on_error(e)
            if e.code in ("no_credit", "cap_reached", "credit_locked", "invalid_key"):
                self.end(e.code)
#: end
