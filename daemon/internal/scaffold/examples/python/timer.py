"""Counts down on the session's clock, so that a test in virtual time need not wait for it."""
from service.glasses import connect

with connect("Timer", "1.0") as glasses:
    for left in range(5, 0, -1):
        glasses.show({"type": "text", "text": str(left), "style": "title", "align": "center"})
        glasses.sleep(1000)
    glasses.show({"type": "text", "text": "Done", "style": "title", "align": "center"})
    glasses.play("success")
