"""Answers what the wearer asks. A language model answers and calls the app's tool; the answer is shown and spoken;
back stops it."""
import sys

from service.glasses import AssistantTool, GlassesError, connect

items = []


def add_item(given):
    items.append(str(given["item"]))
    return {"items": items}


TOOLS = [AssistantTool("add_item", "Puts an item on the shopping list and returns the whole list.", add_item,
                       {"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]})]


def attempt(command, *arguments):
    try:
        return command(*arguments)
    except GlassesError as e:
        if e.code == "closed":
            raise
        print("refused (%s): %s %s" % (e.code, e, e.fix_hint), file=sys.stderr)  # folded, no speaker, no credit, ...
        return None


def draw(question, answer):
    attempt(glasses.show, {"type": "column", "padding": 16, "gap": 8, "children": [
        {"type": "text", "style": "caption", "text": question},
        {"type": "column", "grow": 1, "overflow": "paginate", "children": [{"type": "text", "text": answer}]},
    ]})


def ask(question):
    return glasses.ask(question, system="Answer in one short sentence, which is spoken.", tools=TOOLS).text


def stop(event):
    if event.payload["kind"] == "back":
        glasses.stop_asking()


with connect("Shopping", "1.0") as glasses:
    glasses.on("input", stop)
    draw("Shopping", "Ask me.")
    attempt(glasses.start_transcription)
    for event in glasses.events():
        if event.type != "transcript" or not event.payload["final"]:
            continue
        question = event.payload["text"]
        draw(question, "…")
        answer = attempt(ask, question) or "I cannot answer now."
        draw(question, answer)
        attempt(glasses.say, answer[:2000])
