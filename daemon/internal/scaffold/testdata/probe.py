# An app for the tests: it tells by log frames what it saw.
from service.glasses import GlassesError, connect


def handle(glasses, event):
    target = event.payload.get("target")
    if target == "photo":
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
    elif target == "never":
        glasses.every(0, lambda: None)
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
                glasses.log("com.example.error", {"code": e.code, "message": e.message, **part})
    print("closed")
except GlassesError as e:
    print(e.code)
