"""Talks to the Lua of a Frame: lines of the REPL, a break, and data that a callback acknowledges."""
import sys


async def main(write, notify):
    glasses = Link("Frame 4F", write, notify)
    await glasses.open(pair=True)
    print("break", (await glasses.ask(b"\x03")).decode())
    print("line", (await glasses.ask(b"print(1 << 4)")).decode())
    await glasses.send(b"frame.bluetooth.receive_callback(function(d) frame.bluetooth.send('\\000'..d) end) print('set')")
    print("callback", (await asyncio.wait_for(glasses.heard.get(), 20)).decode())
    for data in [b"first", b"second"]:
        print("acknowledged", await glasses.ask(b"\x01" + data))
    print("error", (await glasses.ask(b"error('no')")).decode())
    print((await glasses.ask(b"print('endless') while true do frame.sleep(0.01) end")).decode())
    print("break", (await glasses.ask(b"\x03")).decode())
    await glasses.send(b"frame.display.bitmap(1, 1, 8, 2, 1, string.rep('\\255', 8)) frame.display.show() print('shown')")
    print((await asyncio.wait_for(glasses.heard.get(), 20)).decode())
    await glasses.close()


asyncio.run(main(*sys.argv[1:]))
