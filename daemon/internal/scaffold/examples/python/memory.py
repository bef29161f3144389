"""Remembers the wearer, who is asked first and can have it deleted. A language model answers and, in a later session,
knows what the wearer has told."""
import re
import sys

from service.glasses import GlassesError, connect

QUESTION = "May I remember what you tell me, so that I know it the next time? You can have it deleted at any time."


def attempt(command):
    try:
        return command()
    except GlassesError as e:
        if e.code == "closed":
            raise
        print("refused (%s): %s %s" % (e.code, e, e.fix_hint), file=sys.stderr)  # folded, no gateway, no credit, ...
        return None


def draw(text, *buttons):
    shown[:] = [text, *buttons]
    attempt(lambda: glasses.show({"type": "column", "padding": 4, "gap": 4, "children": [
        {"type": "column", "grow": 1, "overflow": "paginate", "children": [{"type": "text", "text": text}]},
        {"type": "row", "gap": 8, "children": [
            {"type": "button", "id": button.split()[0], "text": button} for button in buttons]},
    ]}))


def hear(text):
    # Some glasses can select only the first button, so the wearer may also say yes or no.
    word = re.match(r"(yes|no)\b", text, re.IGNORECASE) if shown[0] == QUESTION else None
    if word:
        return choose(word.group(1).capitalize())
    said = attempt(lambda: glasses.ask(text, system="Answer in one short sentence.", remember=remember).text)
    draw(said or "I cannot answer now.", change())


def choose(target):
    global remember
    if target == "Remember":
        return draw(QUESTION, "Yes", "No")
    if target == "Forget" and not attempt(forget):
        return draw("It is not deleted.", "Forget me")
    remember = target == "Yes"
    draw("Tell me about yourself." if remember else "I remember nothing.", change())


def change():
    return "Forget me" if remember else "Remember me"  # the wearer may decide otherwise at any time


def forget():
    glasses.forget()
    return True


shown = [""]
with connect("Companion", "1.0") as glasses:
    remember = bool(attempt(glasses.memory))  # a profile exists only if the wearer agreed
    if remember:
        draw("Welcome back.", "Forget me")
    else:
        draw(QUESTION, "Yes", "No")
    attempt(glasses.start_transcription)
    for event in glasses.events():
        if event.type == "transcript" and event.payload["final"]:
            hear(event.payload["text"])
        elif event.type == "input" and event.payload.get("target"):
            choose(event.payload["target"])
        elif event.type == "device":  # other glasses begin with a clear display
            draw(*shown)
            attempt(glasses.start_transcription)
