// Uses Web Bluetooth as a page does, which needs a click for each device.
const arms = {};
let chosen; // the promise of the latest click

async function choose(service, write, notify) {
  const device = await navigator.bluetooth.requestDevice({
    filters: [{ namePrefix: "Echo_" }], optionalServices: [service],
  });
  const arm = { device, service, write, notify };
  arm.lost = new Promise((done) => device.addEventListener("gattserverdisconnected", done, { once: true }));
  arms[device.name] = arm;
  return exchange(arm);
}

// exchange connects, writes 20 values of 200 bytes, and returns what comes back, in order.
async function exchange({ device, service, write, notify }) {
  const server = await device.gatt.connect();
  const found = await server.getPrimaryService(service);
  const input = await found.getCharacteristic(write);
  const output = await found.getCharacteristic(notify);
  const echoed = [];
  const all = new Promise((done) => output.addEventListener("characteristicvaluechanged", (event) => {
    echoed.push(`${event.target.value.getUint8(0)}/${event.target.value.byteLength}`);
    if (echoed.length === 20) done();
  }));
  await output.startNotifications();
  for (let i = 0; i < 20; i++) {
    const value = new Uint8Array(200).fill(i);
    await (i % 2 ? input.writeValueWithResponse(value) : input.writeValueWithoutResponse(value));
  }
  await all;
  return `${device.name}: ${echoed.join(" ")}`;
}

// afterLoss waits until a device is lost, reports which are still connected, and connects again without a click.
async function afterLoss(name) {
  await arms[name].lost;
  const left = Object.values(arms).filter((arm) => arm.device.gatt.connected).map((arm) => arm.device.name);
  return `still connected: ${left}; ${await exchange(arms[name])}`;
}
