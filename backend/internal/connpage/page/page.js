
"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const words = { disconnected: "Not connected", connecting: "Connecting", connected: "Connected" };
  const does = { disconnected: "Connect glasses", connecting: "Cancel", connected: "Disconnect" };
  const storeKey = "glasses-toggles:" + document.body.dataset.page;
  const toggles = [...document.querySelectorAll("[data-toggle]")];
  let heard = false; // an app has spoken

  // Storage may be missing or forbidden (files, private windows, frames): then switches start as the config says.
  const recall = () => {
    try {
      const kept = JSON.parse(localStorage.getItem(storeKey) || "{}");
      return kept && typeof kept === "object" ? kept : {};
    } catch { return {}; }
  };
  const remember = () => {
    try { localStorage.setItem(storeKey, JSON.stringify(states())); } catch { /* not kept */ }
  };
  const states = () => Object.fromEntries(toggles.map((t) => [t.dataset.toggle, t.checked]));

  const framed = window.parent !== window;
  const hasApp = () => heard || framed || Boolean(window.ReactNativeWebView?.postMessage ||
    window.webkit?.messageHandlers?.glassesConnection || window.glassesConnectionHost?.postMessage);

  const send = (message) => {
    const text = JSON.stringify(message);
    window.dispatchEvent(new CustomEvent("glassesconnection", { detail: message }));
    window.ReactNativeWebView?.postMessage?.(text);
    window.webkit?.messageHandlers?.glassesConnection?.postMessage(message);
    window.glassesConnectionHost?.postMessage?.(text);
    // Nothing in these messages is secret, and the page cannot know who may embed it.
    if (framed) window.parent.postMessage(message, "*");
  };

  const line = (value, most) => typeof value === "string" ? value.slice(0, most) : "";
  const write = (id, text, row = id) => { $(id).textContent = text; $(row).hidden = text === ""; };

  const show = (s) => {
    document.body.dataset.state = s.state;
    $("state").textContent = words[s.state];
    write("message", line(s.message, 200));
    const on = s.state === "connected";
    write("model", on ? line(s.deviceModel, 80) : "", "model-row");
    const known = on && Number.isFinite(s.battery);
    const battery = known ? Math.round(Math.min(100, Math.max(0, s.battery))) : 0;
    $("battery").value = battery;
    write("battery-text", known ? battery + "%" : "", "battery-row");
    $("facts").hidden = $("model-row").hidden && $("battery-row").hidden;
    $("connect").textContent = does[s.state];
    $("connect").hidden = !hasApp();
    $("alone").hidden = hasApp();
  };

  const update = (status) => {
    if (typeof status === "string") {
      try { status = JSON.parse(status); } catch { return; }
    }
    if (!status || !Object.hasOwn(words, status.state)) return;
    heard = true;
    show(status);
  };

  const listen = (event) => {
    if (event.source && event.source !== window && event.source !== window.parent) return;
    let message = event.data;
    if (typeof message === "string") {
      try { message = JSON.parse(message); } catch { return; }
    }
    if (message?.type === "glasses.status") update(message);
  };
  window.addEventListener("message", listen);
  document.addEventListener("message", listen); // React Native on Android speaks to the document
  window.glassesConnection = { update };

  $("connect").addEventListener("click", () => {
    if (document.body.dataset.state === "disconnected") {
      show({ state: "connecting", message: "Asking the app." });
      send({ type: "glasses.connect" });
      return;
    }
    show({ state: "disconnected" });
    send({ type: "glasses.disconnect" });
  });

  const kept = recall();
  for (const t of toggles) {
    if (typeof kept[t.dataset.toggle] === "boolean") t.checked = kept[t.dataset.toggle];
    t.addEventListener("change", () => {
      remember();
      send({ type: "glasses.toggle", id: t.dataset.toggle, on: t.checked });
    });
  }
  show({ state: "disconnected" });
  send({ type: "glasses.ready", toggles: states() });
})();
