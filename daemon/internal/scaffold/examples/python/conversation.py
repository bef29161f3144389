"""A voice assistant with two tools, which the wearer can interrupt. It shows what was heard and said. A tap begins a
conversation, back ends it."""
import sys

from service.glasses import AssistantTool, GlassesError, connect

items = []
heard = ""


def add_item(given):
    items.append(str(given["item"]))
    return {"items": items}


def start_timer(given):
    minutes = given["minutes"]
    if not isinstance(minutes, int) or not 1 <= minutes <= 180:
        return {"error": "minutes must be 1 to 180"}
    glasses.after(minutes * 60000, lambda: draw("Timer", "Time is up."))
    return {"started": True}


TOOLS = [
    AssistantTool("add_item", "Puts an item on the shopping list and returns the whole list.", add_item,
                  {"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]}),
    AssistantTool("start_timer", "Starts a kitchen timer of 1 to 180 minutes.", start_timer,
                  {"type": "object", "properties": {"minutes": {"type": "integer"}}, "required": ["minutes"]}),
]


def attempt(command):
    try:
        return command()
    except GlassesError as e:
        if e.code == "closed":
            raise
        print("refused (%s): %s %s" % (e.code, e, e.fix_hint), file=sys.stderr)  # folded, no gateway, no credit, ...
        return None


def draw(caption, said):
    global heard
    heard = caption
    attempt(lambda: glasses.show({"type": "column", "padding": 16, "gap": 8, "children": [
        {"type": "text", "style": "caption", "text": caption},
        {"type": "column", "grow": 1, "overflow": "paginate", "children": [{"type": "text", "text": said}]},
    ]}))


def stop(event):
    if event.payload["kind"] == "back":
        glasses.stop_conversing()


def talk():
    off = glasses.on("input", stop)
    draw("Kitchen", "I am listening.")
    end = attempt(lambda: glasses.converse(
        instructions="You help in the kitchen. Answer in one or two short sentences.", tools=TOOLS,
        on_heard=lambda text: draw(text, "…"), on_said=lambda text: draw(heard, text),
        on_error=lambda error: draw(heard, "I cannot answer that now.")))
    off()
    stopped = end is not None and end.reason == "stopped"
    draw("Kitchen", "Tap to talk." if stopped else "I cannot talk now. Tap to try again.")


with connect("Kitchen", "1.0") as glasses:
    draw("Kitchen", "Tap to talk.")
    for event in glasses.events():
        if event.type == "input" and event.payload["kind"] in ("tap", "select"):
            talk()
