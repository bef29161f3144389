"""Connects both arms of an Even G1 as the vendor's demo does, and shows a picture whose lit pixels form a grid."""
import struct
import sys
import zlib

WIDTH, HEIGHT = 576, 136


def bmp():
    rows = []
    for y in reversed(range(HEIGHT)):
        bits = "".join("1" if x % 7 == 0 or y % 5 == 0 else "0" for x in range(WIDTH))
        rows.append(int(bits, 2).to_bytes(WIDTH // 8, "big"))
    pixels = b"".join(rows)
    return (b"BM" + struct.pack("<IIIIiiHHIIiiII", 62 + len(pixels), 0, 62, 40, WIDTH, HEIGHT, 1, 1, 0, len(pixels), 0, 0,
                                2, 2) + bytes([0, 0, 0, 0, 255, 255, 255, 0]) + pixels)


async def main(write, notify):
    left, right = Link("Even G1_27_L_", write, notify), Link("Even G1_27_R_", write, notify)
    arms = {"left": left, "right": right}
    for name, arm in arms.items():
        await arm.open()
        await arm.send(bytes([0xF4, 0x01]))
        print(name, "init", (await arm.ask(bytes([0x4D, 0x01])))[:2].hex())
    for name, arm in arms.items():
        print(name, "heartbeat", (await arm.ask(bytes([0x25, 6, 0, 1, 4, 1]))).hex())
        print(name, "battery", (await arm.ask(bytes([0x2C, 1])))[2])
    file = bmp()
    checksum = struct.pack(">I", zlib.crc32(bytes([0, 0x1C, 0, 0]) + file))
    for name, arm in arms.items():
        for n, at in enumerate(range(0, len(file), 194)):
            address = bytes([0, 0x1C, 0, 0]) if n == 0 else b""
            await arm.send(bytes([0x15, n]) + address + file[at:at + 194])
        print(name, "end", (await arm.ask(bytes([0x20, 0x0D, 0x0E])))[:2].hex())
        print(name, "checksum", "accepted" if (await arm.ask(b"\x16" + checksum))[5] == 0xC9 else "refused")
    tap = await asyncio.wait_for(right.heard.get(), 20)
    print("right event", tap[:2].hex())
    for name, arm in arms.items():
        print(name, "exit", (await arm.ask(bytes([0x18])))[:2].hex())
    for arm in arms.values():
        await arm.close()


asyncio.run(main(*sys.argv[1:]))
