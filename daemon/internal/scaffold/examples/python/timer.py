"""Counts down on the session's clock, which a test may run in virtual time. It draws once for each change, and sets
the time of the next before it draws: late pictures do not slow it. A tap pauses and resumes it, back restarts it."""
import sys

from service.glasses import GlassesError, connect

SECONDS = 5


class Timer:
    def __init__(self, glasses):
        self.glasses = glasses
        self.left = SECONDS
        self.stop = None  # while it runs

    def attempt(self, command, argument):
        try:
            command(argument)
        except GlassesError as e:
            if e.code == "closed":
                raise
            # Folded, not worn, no speaker, ...: the timer continues.
            print("refused (%s): %s" % (e.code, e), file=sys.stderr)

    def draw(self):
        hint = "Done" if self.left == 0 else "Tap to pause" if self.stop else "Paused"
        self.attempt(self.glasses.show, {
            "type": "column", "align": "center", "padding": 16, "children": [
                {"type": "text", "style": "large", "text": str(self.left)},
                {"type": "text", "text": hint},
            ],
        })

    def tick(self):
        self.left -= 1
        done = self.left == 0
        self.stop = None if done else self.glasses.after(1000, self.tick)
        self.draw()
        if done:
            self.attempt(self.glasses.play, "success")

    def pause(self):
        if self.stop:
            self.stop()
        self.stop = None

    def start(self):
        self.pause()
        self.left = self.left or SECONDS
        self.stop = self.glasses.after(1000, self.tick)

    def handle(self, event):
        kind = event.payload.get("kind") if event.type == "input" else None
        if kind == "back":
            self.left = SECONDS
            self.start()
        elif kind in ("tap", "select"):
            if self.stop:
                self.pause()
            else:
                self.start()
        elif event.type not in ("hinge", "wear", "thermal", "link", "device"):
            return
        self.draw()


with connect("Timer", "1.0") as glasses:
    timer = Timer(glasses)
    timer.start()
    timer.draw()
    for event in glasses.events():
        timer.handle(event)
