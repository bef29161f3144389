# An app for the tests: it tells by log frames what it saw.
from service.glasses import GlassesError, connect


def handle(glasses, event):
    target = event.payload.get("target")
    if target == "photo":
        photo = glasses.photo(640)
        glasses.log("com.example.photo", {"bytes": len(photo.data), "first": photo.data[0], "width": photo.width})
    elif target == "audio":
        glasses.start_audio(lambda chunk: glasses.log("com.example.chunk", {"bytes": len(chunk.data)}), 8000)
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
                glasses.log("com.example.error", {"code": e.code, "message": e.message})
    print("closed")
except GlassesError as e:
    print(e.code)
