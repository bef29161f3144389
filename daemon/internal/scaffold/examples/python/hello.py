"""Shows a text and counts taps until the session is closed."""
from service.glasses import connect


def draw(glasses, taps):
    glasses.show({
        "type": "column", "gap": 8, "padding": 16, "children": [
            {"type": "text", "text": "Hello, glasses", "style": "title"},
            {"type": "text", "text": "Taps: %d" % taps if taps else "Tap me"},
        ],
    })


with connect("Hello", "1.0") as glasses:
    taps = 0
    draw(glasses, taps)
    for event in glasses.events():
        if event.type == "input" and event.payload["kind"] == "tap":
            taps += 1
            draw(glasses, taps)
        elif event.type == "device" and glasses.device.get("panel"):  # another model, whose panel is clear
            draw(glasses, taps)
