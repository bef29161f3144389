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
        self.hears = False  # transcription was started: it stands from then on

    def run(self):
        self.attempt(lambda: self.glasses.announce(["next item", "go back", "take a photo"]))
        self.listen()
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
        elif type == "transcription":
            self.tell_hearing(payload["running"], payload.get("reason"), payload.get("part"))
        elif type in ("permission", "disabled", "call"):
            self.listen()
        elif (type == "hinge" and payload["state"] == "open" or type == "wear" and payload["worn"]
              or type == "link" and payload["state"] in ("connected", "lossy") or type == "device"):
            self.listen()
            self.draw()

    def listen(self):
        """Starts transcription unless it stands already. One that was refused is tried again when the state changes."""
        if not self.hears:
            self.hears = self.attempt(lambda: self.glasses.start_transcription()) == ""

    def tell_hearing(self, running, reason, part):
        """Tells the wearer that their word is not heard because they did not allow it."""
        if reason in ("permission_denied", "disabled_by_user"):
            self.status = "Not allowed: " + part
            self.draw()
        elif running and self.status.startswith("Not allowed: "):
            self.status = ""
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
        """Returns the code of what the glasses refused, or "". Reports it on stderr and in the event log."""
        try:
            act()
            return ""
        except GlassesError as e:
            if e.code == "closed":
                raise
            print("desk: refused: %s (%s)" % (e, e.code), file=sys.stderr)
            self.glasses.log("com.example.refused", {"code": e.code, "message": e.message})
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
