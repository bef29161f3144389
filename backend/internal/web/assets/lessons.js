// Derives a state from the events of another page's glasses, for a page that only observes.

/** Converts an event in a row to a change of state.
 * @type {Record<string, (p: any) => unknown>} */
const told = {
  battery: (p) => ({ battery: p }),
  wear: (p) => ({ worn: p.worn }),
  hinge: (p) => ({ hinge: p.state }),
  thermal: (p) => ({ thermal: p.state }),
  link: (p) => ({ link: p.state }),
  route: (p) => ({ route: p.to }),
  call: (p) => ({ call: p.active }),
  permission: (p) => ({ permissions: { [p.part]: p.state } }),
  disabled: (p) => ({ disabled: p.parts }),
};

/**
 * Returns the control frame with the effect of an event, or null if the event has none.
 * @param {import("./log.js").Row} row
 * @returns {{type: string, payload: any} | null}
 */
export function lesson(row) {
  /** @type {any} */
  const payload = row.payload;
  const change = told[row.type];
  if (change) return { type: "sim.state", payload: change(payload) };
  return row.type === "device" ? { type: "sim.device", payload: { deviceModel: payload.deviceModel.id } } : null;
}
