"""What the scripts for glasses share: a connection that asks and waits for the answer."""
import asyncio

from bleak import BleakClient, BleakScanner


class Link:
    """One peripheral, by the beginning of its name."""

    def __init__(self, prefix, write, notify):
        self.prefix, self.write_to, self.notify_from = prefix, write, notify
        self.heard = asyncio.Queue()

    async def open(self, pair=False):
        device = await BleakScanner.find_device_by_filter(
            lambda d, _: (d.name or "").startswith(self.prefix), timeout=20)
        self.client = BleakClient(device)
        await self.client.connect()
        if pair:
            await self.client.pair()
        await self.client.start_notify(self.notify_from, lambda _, value: self.heard.put_nowait(bytes(value)))

    async def send(self, data):
        await self.client.write_gatt_char(self.write_to, data, response=False)

    async def ask(self, data):
        await self.send(data)
        return await asyncio.wait_for(self.heard.get(), 20)

    async def close(self):
        # bleak closes its own bus connection when it hears that the device is disconnected, which may come before the
        # answer to its call.
        try:
            await self.client.disconnect()
        except EOFError:
            pass
