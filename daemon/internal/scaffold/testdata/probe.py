# An app for the tests: it reports in log frames what it saw.
from service.glasses import AssistantTool, GlassesError, connect


def ask(glasses, question):
    def weather(given):
        glasses.sleep(500)
        return {"celsius": 21, "city": given["city"]}

    tools = [
        AssistantTool("weather", "Tells the weather.", weather,
                      {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}),
        AssistantTool("photo", "Takes a photo.", lambda given: "%d bytes" % len(glasses.photo(640).data)),
    ]
    glasses.on("battery", lambda e: glasses.stop_asking())
    answer = glasses.ask(question, system="Be brief.", tools=tools,
                         on_text=lambda text: glasses.log("com.example.text", {"text": text}))
    tell(glasses, answer)


def tell(glasses, answer):
    glasses.log("com.example.answer", {"text": answer.text, "roles": [m["role"] for m in answer.messages]})


def handle(glasses, event):
    target = event.payload.get("target")
    if target.startswith("ask "):
        ask(glasses, target[4:])
    elif target == "converse":
        first = glasses.ask("Hello")
        tell(glasses, glasses.ask(first.messages + [{"role": "user", "content": "Bye"}]))
    elif target == "remember":
        tell(glasses, glasses.ask("Hello", remember=True))
    elif target == "memory":
        glasses.log("com.example.memory", {"text": glasses.memory()})
    elif target == "forget":
        glasses.forget()
        glasses.log("com.example.forgotten", {})
    elif target == "photo":
        photo = glasses.photo(640)
        glasses.log("com.example.photo", {"bytes": len(photo.data), "first": photo.data[0], "width": photo.width})
    elif target == "audio":
        glasses.start_audio(lambda chunk: glasses.log("com.example.chunk", {"bytes": len(chunk.data)}), 8000)
    elif target == "timers":
        glasses.on("battery", lambda e: glasses.log("com.example.battery", {"level": e.payload["level"]}))
        turns = []

        def turn():
            turns.append(1)
            glasses.log("com.example.turn", {"turn": len(turns)})
            if len(turns) == 2:
                stop()

        stop = glasses.every(1000, turn)
        glasses.after(300, lambda: glasses.log("com.example.once", {}))
        cancel = glasses.after(50, lambda: glasses.log("com.example.cancelled", {}))
        cancel()
        cancel()
    elif target == "long":
        glasses.after(600500, lambda: glasses.log("com.example.once", {}))
    elif target == "busy":
        def busy():
            glasses.sleep(1000)
            glasses.log("com.example.turn", {})

        glasses.every(100, busy)
    elif target == "wait":
        after = glasses.next(400)
        glasses.log("com.example.next", {"target": after.payload["target"] if after else "none"})
    elif target == "talk":
        glasses.on("battery", lambda e: glasses.stop_conversing())

        def heard(text):
            if text == "Break":
                raise GlassesError("own", "of the app itself")
            glasses.log("com.example.heard", {"text": text})

        try:
            end = glasses.converse(instructions="Be brief.", on_heard=heard,
                                   on_said=lambda text: glasses.log("com.example.said", {"text": text}))
            glasses.log("com.example.ended", {"reason": end.reason, "mode": end.mode})
        except GlassesError as e:
            if e.code == "closed":
                raise
            glasses.log("com.example.ended", {"reason": e.code})
    elif target == "connection":
        glasses.on("connection", lambda e: glasses.log("com.example.connection", dict(e.payload, at=e.at)))
    elif target == "never":
        glasses.every(0, lambda: None)
    elif target == "not json":
        for value in ("\ud83d", {1, 2}):
            try:
                glasses.show({"type": "text", "text": value})
            except GlassesError:
                pass
        glasses.show({"type": "progress", "value": float("nan")})
    elif target == "state":
        glasses.log("com.example.state", glasses.initial_state)
    elif target == "sleep":
        glasses.sleep(2000)
        glasses.say("Grüße")
    else:
        glasses.show({"type": "text", "text": target})


try:
    with connect("probe", "1") as glasses:
        glasses.show({"type": "text", "text": "ready"})
        for event in glasses.events():
            if event.type != "input":
                continue
            try:
                handle(glasses, event)
            except GlassesError as e:
                part = {"part": e.part, "by": e.by} if e.part else {}
                hint = {"fixHint": e.fix_hint, "retryAfterMs": e.retry_after_ms} if e.fix_hint else {}
                glasses.log("com.example.error", {"code": e.code, "message": e.message, **part, **hint})
    print("closed")
except GlassesError as e:
    print(e.code)
