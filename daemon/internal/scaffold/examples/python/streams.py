"""Raw sound and movement: handlers get each piece of a stream while the loop takes the other events."""
import struct

from service.glasses import connect

loudest = 0


def listen(chunk):
    global loudest
    samples = struct.unpack("<%dh" % (len(chunk.data) // 2), chunk.data)
    loudest = max(loudest, max((abs(s) for s in samples), default=0))


def move(event):
    print("up: %d thousandths of g" % event.payload["az"])


with connect("Meter", "1.0") as glasses:
    glasses.start_audio(listen, 16000)
    glasses.start_motion(move, 5)
    for event in glasses.events():
        if event.type != "input":
            continue
        glasses.stop_motion()
        glasses.stop_audio()
        print("loudest sample: %d" % loudest)
