"""Desk, an example app: a list on the glasses, driven by touch and speech. Run it with Python 3.9 or newer:

    SERVICE_GLASSES_URL=ws://... SERVICE_GLASSES_SECRET_FILE=... python3 desk.py

desk-ts and desk-go are the same app in TypeScript and Go: all three send the same frames in the same order.
"""

import sys

from service.glasses import GlassesError, connect

ITEMS = ["Mail", "Calendar", "Notes"]


class Desk:
    def __init__(self, glasses):
        self.glasses = glasses
        self.index = 0
        self.status = ""

    def run(self):
        self.attempt(lambda: self.glasses.announce(["next item", "go back", "take a photo"]))
        self.attempt(lambda: self.glasses.start_transcription())
        self.draw()
        self.speak("Desk is ready")
        for event in self.glasses.events():
            self.handle(event.type, event.payload)

    def handle(self, type, payload):
        if type == "input":
            self.input(payload["kind"], payload.get("target", ""))
        elif type == "transcript" and payload["final"]:
            self.heard(payload["text"].lower())
        elif type == "battery" and payload["level"] <= 15 and not payload["charging"]:
            self.warn(payload["level"])
        elif type == "hinge" and payload["state"] == "open":
            self.draw()
        elif type == "wear" and payload["worn"]:
            self.draw()
        elif type == "link" and payload["state"] == "connected":
            self.draw()
        elif type == "device":
            self.draw()

    def input(self, kind, target):
        if kind == "capture":
            self.photo()
        elif kind == "back":
            self.move(-1)
        elif kind not in ("tap", "select"):
            return
        elif target == "next":
            self.move(1)
        elif target == "back":
            self.move(-1)
        elif target == "photo":
            self.photo()
        elif target.startswith("item-"):
            self.open(int(target[5:]))

    def heard(self, text):
        if "next" in text:
            self.move(1)
        elif "back" in text:
            self.move(-1)
        elif "photo" in text:
            self.photo()

    def move(self, by):
        self.index = (self.index + by) % len(ITEMS)
        self.status = ""
        self.draw()

    def open(self, index):
        self.index = index
        self.status = "Opened " + ITEMS[index]
        self.draw()
        self.speak(ITEMS[index])

    def photo(self):
        self.status = "Taking a photo"
        self.draw()
        refused = self.attempt(self.take)
        if refused == "permission_denied":
            self.status = "The camera is not allowed"
        elif refused:
            self.status = "No photo: " + refused
        self.draw()
        self.attempt(lambda: self.glasses.sleep(1500))
        self.status = ""
        self.draw()

    def take(self):
        self.status = "Photo: %d bytes" % len(self.glasses.photo(640).data)

    def warn(self, level):
        self.status = "Battery low: %d %%" % level
        self.draw()
        self.speak("The battery is low")

    def speak(self, text):
        self.attempt(lambda: self.glasses.say(text))

    def draw(self):
        """Shows the state. Folded glasses refuse it; they get it when they are opened."""
        if self.attempt(lambda: self.glasses.show(self.tree())) == "hinge_closed":
            self.status = "The glasses were folded"

    def attempt(self, act):
        """Gives the code of what the glasses refused, or ""."""
        try:
            act()
            return ""
        except GlassesError as e:
            if e.code == "closed":
                raise
            return e.code

    def tree(self):
        def button(id, text):
            return {"type": "button", "id": id, "text": text}

        items = [button("item-%d" % i, "> " + item if i == self.index else item) for i, item in enumerate(ITEMS)]
        return {
            "type": "column", "gap": 8, "padding": 16, "children": [
                {"type": "text", "text": "Desk", "style": "title"},
                {"type": "list", "gap": 4, "grow": 1, "overflow": "scroll", "children": items},
                {"type": "text", "text": self.status, "style": "caption", "colour": "#ffd000"},
                {"type": "row", "gap": 8, "children": [button("back", "Back"), button("next", "Next"), button("photo", "Photo")]},
            ],
        }


def main():
    try:
        with connect("Desk", "1.0") as glasses:
            Desk(glasses).run()
    except GlassesError as e:
        if e.code != "closed":
            print("desk: %s (%s)" % (e, e.code), file=sys.stderr)
            return 1
    except KeyboardInterrupt:
        pass
    print("bye")
    return 0


if __name__ == "__main__":
    sys.exit(main())
