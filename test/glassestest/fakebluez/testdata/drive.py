"""Scans for a device by name, connects, writes, and prints what it is notified of."""
import asyncio
import sys

from bleak import BleakClient, BleakScanner
from bleak.exc import BleakError

name, write, notify = sys.argv[1:]


async def disconnect(client):
    # bleak closes its own bus connection when it hears that the device is disconnected, which may come before the
    # answer to its call.
    try:
        await client.disconnect()
    except EOFError:
        pass


async def main():
    device = await BleakScanner.find_device_by_filter(lambda d, _: d.name == name, timeout=20)
    print("found", device.address, device.name)
    lost = asyncio.Event()
    notified = asyncio.Queue()
    async with BleakClient(device, disconnected_callback=lambda _: lost.set()) as client:
        size = client.services.get_characteristic(write).max_write_without_response_size
        print(f"connected, payload {size}")
        await client.start_notify(notify, lambda _, value: notified.put_nowait(value))
        for i in range(5):
            kind = ["command", "request"][i % 2]
            await client.write_gatt_char(write, f"{kind} {i}".encode(), response=kind == "request")
        for _ in range(5):
            print("echo", (await notified.get()).decode())
        # After the notifications: BlueZ announces a value that was read like one that was notified.
        print("read", (await client.read_gatt_char(notify)).decode())
        try:
            await client.write_gatt_char(write, bytes(300), response=True)
        except BleakError:
            print("too long refused")
        await disconnect(client)
        await lost.wait()
        print("disconnected")
    device = await BleakScanner.find_device_by_filter(lambda d, _: d.name == name, timeout=20)
    client = BleakClient(device)
    await client.connect()
    print("connected again")
    await disconnect(client)


asyncio.run(main())
