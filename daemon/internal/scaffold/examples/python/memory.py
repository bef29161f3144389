"""Remembers the wearer, who is asked first and can have it deleted. A language model answers and, in a later session,
knows what the wearer has told."""
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
    attempt(lambda: glasses.show({"type": "column", "padding": 16, "gap": 8, "children": [
        {"type": "text", "text": text, "grow": 1, "overflow": "paginate"},
        *[{"type": "button", "id": button.split()[0], "text": button} for button in buttons],
    ]}))


def answer(text):
    said = attempt(lambda: glasses.ask(text, system="Answer in one short sentence.", remember=remember).text)
    draw(said or "I cannot answer now.", change())


def change():
    return "Forget me" if remember else "Remember me"  # the wearer may decide otherwise at any time


def forget():
    glasses.forget()
    return True


with connect("Companion", "1.0") as glasses:
    remember = bool(attempt(glasses.memory))  # a profile exists only if the wearer agreed
    if remember:
        draw("Welcome back.", "Forget me")
    else:
        draw(QUESTION, "Yes", "No")
    attempt(glasses.start_transcription)
    for event in glasses.events():
        target = event.payload.get("target")
        if event.type == "transcript" and event.payload["final"]:
            answer(event.payload["text"])
        elif event.type == "input" and target == "Remember":
            draw(QUESTION, "Yes", "No")
        elif event.type == "input" and target:
            if target == "Forget" and not attempt(forget):
                draw("It is not deleted.", "Forget me")
                continue
            remember = target == "Yes"
            draw("Tell me about yourself." if remember else "I remember nothing.", change())
