// An audio worklet that forwards the sound of the microphone as 16-bit samples at the rate that the app
// requested. Each sample is the mean of the samples that it replaces.

class Microphone extends AudioWorkletProcessor {
  /** @param {{processorOptions: {rate: number}}} options */
  constructor({ processorOptions }) {
    super();
    this.rate = processorOptions.rate;
    this.phase = 0;
    this.sum = 0;
    this.count = 0;
    this.mean = 0;
  }

  /** @param {Float32Array[][]} inputs */
  process(inputs) {
    const heard = inputs[0]?.[0];
    if (!heard) return true;
    const samples = [];
    for (const level of heard) {
      this.sum += level;
      this.count++;
      this.phase += this.rate;
      while (this.phase >= sampleRate) {
        this.phase -= sampleRate;
        if (this.count > 0) this.mean = this.sum / this.count;
        this.sum = this.count = 0;
        samples.push(Math.max(-1, Math.min(1, this.mean)) * 32767);
      }
    }
    if (samples.length > 0) this.port.postMessage(Int16Array.from(samples));
    return true;
  }
}

registerProcessor("microphone", Microphone);
