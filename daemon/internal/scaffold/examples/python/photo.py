"""Takes a photo when the capture button is pressed, and says why if it cannot."""
from service.glasses import GlassesError, connect


def take(glasses):
    try:
        photo = glasses.photo(1280)
    except GlassesError as e:
        if e.code == "permission_denied":
            return "The camera is not allowed"
        if e.code in ("busy", "media_lost"):
            return "Please try again"
        return "No photo: %s" % e
    return "%d x %d, %d bytes of %s" % (photo.width, photo.height, len(photo.data), photo.mime)


with connect("Camera", "1.0") as glasses:
    text = "Press the capture button"
    glasses.show({"type": "text", "text": text})
    for event in glasses.events():
        if event.type == "input" and event.payload["kind"] == "capture":
            text = take(glasses)
        elif event.type != "device" or not glasses.device.get("panel"):  # another model's panel is clear
            continue
        glasses.show({"type": "text", "text": text})
