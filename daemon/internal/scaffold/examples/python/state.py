"""Follows the state of the glasses, and shows its text again whenever they can show it."""
import sys

from service.glasses import GlassesError, connect


def draw(glasses, text):
    try:
        glasses.show({"type": "text", "text": text})
    except GlassesError as e:
        if e.code == "closed":
            raise
        # Folded, too hot, not worn, out of reach: an event says when that ends.
        print("not shown (%s): %s" % (e.code, e), file=sys.stderr)


with connect("State", "1.0") as glasses:
    text = "All is well"
    draw(glasses, text)
    for event in glasses.events():
        payload = event.payload
        if event.type == "battery" and payload["level"] <= 15 and not payload["charging"]:
            text = "Battery: %d %%" % payload["level"]
        elif event.type == "permission" and payload["state"] == "denied":
            text = "Not allowed: " + payload["part"]
        elif event.type not in ("hinge", "wear", "thermal", "link", "device"):
            continue
        draw(glasses, text)
