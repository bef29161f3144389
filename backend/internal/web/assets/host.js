// Handles the glasses' requests to this computer: pictures, sound and speech.
import { NoPicture } from "./camera.js";

/** @typedef {import("./device.js").Ask} Ask */
/** @typedef {import("./device.js").Refusal} Refusal */

export class Host {
  /**
   * @param {import("./camera.js").Camera} camera
   * @param {import("./voice.js").Microphone} microphone
   * @param {import("./voice.js").Speaker} speaker
   * @param {import("./voice.js").Ears} ears
   * @param {(ask: Ask, bytes: Uint8Array | null, refusal: Refusal | null) => void} answer
   */
  constructor(camera, microphone, speaker, ears, answer) {
    this.camera = camera;
    this.microphone = microphone;
    this.speaker = speaker;
    this.ears = ears;
    this.answer = answer;
  }

  /** @param {Ask} a */
  take(a) {
    switch (a.kind) {
      case "photo":
      case "frame":
        return this.give(a, this.camera.photo(a.width ?? 640));
      case "video":
        return this.give(a, this.camera.clip(a.durationMs ?? 0, a.fps ?? 5, a.width ?? 640));
      case "chunk":
        return this.give(a, this.microphone.chunk(a.sampleRate ?? 16000));
      case "say":
        return this.speaker.say(a.text ?? "", a.language ?? "");
      case "hush":
        return this.speaker.hush();
      case "play":
        return this.speaker.play(a.sound ?? "");
      case "sound":
        return this.speaker.sound(a.pcm ?? new Uint8Array(), a.sampleRate ?? 24000);
      case "silence":
        return this.speaker.silence();
      case "listen":
        return this.ears.start(a.language ?? "");
      case "unlisten":
        return this.ears.stop();
      case "camera.on":
        return this.camera.start();
      case "camera.off":
        return this.camera.stop();
      case "mic.on":
        return void this.microphone.start(a.sampleRate ?? 16000);
      case "mic.off":
        return this.microphone.stop();
    }
  }

  /**
   * @param {Ask} a
   * @param {Promise<Uint8Array>} material
   */
  give(a, material) {
    material.then(
      (bytes) => this.answer(a, bytes, null),
      (e) => this.answer(a, null, e instanceof NoPicture
        ? { code: e.code, message: e.message }
        : { code: "platform_error", message: "the simulator page could not do it" }),
    );
  }

  /** Stops everything, because another page acts as the glasses or the session has ended. */
  stop() {
    this.camera.stop();
    this.microphone.stop();
    this.speaker.hush();
    this.speaker.silence();
    this.ears.stop();
  }
}
