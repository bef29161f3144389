"""A list to choose from. The glasses move the focus and scroll; the app learns the choice from the id of its node."""
from service.glasses import connect

DISHES = ["Soup", "Salad", "Pasta", "Cake"]


def menu(chosen):
    return {
        "type": "column", "gap": 8, "padding": 16, "children": [
            {"type": "text", "text": "You chose " + chosen if chosen else "Choose a dish", "style": "title"},
            {"type": "list", "gap": 4, "grow": 1, "overflow": "scroll",
             "children": [{"type": "button", "id": dish, "text": dish} for dish in DISHES]},
        ],
    }


with connect("Menu", "1.0") as glasses:
    screen = menu("")
    glasses.show(screen)
    for event in glasses.events():
        if event.type == "device" and glasses.device.get("panel"):  # another model, whose panel is clear
            glasses.show(screen)
        if event.type != "input":
            continue
        kind, target = event.payload["kind"], event.payload.get("target")
        if kind == "back":
            glasses.clear()
        elif kind in ("select", "tap") and target:
            screen = menu(target)
            glasses.show(screen)
