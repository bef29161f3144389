"""Driven by voice: announces the phrases that it understands, listens, and answers aloud."""
import sys

from service.glasses import GlassesError, connect

with connect("Pages", "1.0") as glasses:
    page = 1
    glasses.announce(["next page", "previous page"])
    try:
        glasses.start_transcription()
    except GlassesError as e:
        print("not listening: %s" % e, file=sys.stderr)  # permission_denied, unsupported, ...
    for event in glasses.events():
        if event.type != "transcript" or not event.payload["final"]:
            continue
        heard = event.payload["text"].lower()
        if "next page" in heard:
            page += 1
        elif "previous page" in heard:
            page = max(1, page - 1)
        else:
            continue
        glasses.say("Page %d" % page)
