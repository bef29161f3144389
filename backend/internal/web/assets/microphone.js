// An audio worklet that hands on what the microphone hears, as 16-bit samples.

class Microphone extends AudioWorkletProcessor {
  /** @param {Float32Array[][]} inputs */
  process(inputs) {
    const heard = inputs[0]?.[0];
    if (!heard) return true;
    const samples = new Int16Array(heard.length);
    for (let i = 0; i < heard.length; i++) samples[i] = Math.max(-1, Math.min(1, heard[i] ?? 0)) * 32767;
    this.port.postMessage(samples, [samples.buffer]);
    return true;
  }
}

registerProcessor("microphone", Microphone);
