// Writes a WebM file with one VP8 track (RFC 8794 for EBML, RFC 9559 for the elements). All pictures are in one cluster,
// so a file is at most 32 seconds long.

/**
 * Returns a file of encoded pictures.
 * @param {EncodedVideoChunk[]} chunks with times from 0 on
 * @param {{width: number, height: number}} size
 * @param {number} duration in ms
 */
export function webm(chunks, size, duration) {
  const blocks = chunks.map((chunk) => {
    const data = new Uint8Array(4 + chunk.byteLength);
    data[0] = 0x81; // track 1
    new DataView(data.buffer).setInt16(1, Math.round(chunk.timestamp / 1000));
    data[3] = chunk.type === "key" ? 0x80 : 0;
    chunk.copyTo(data.subarray(4));
    return element(0xa3, data);
  });
  return join([
    element(0x1a45dfa3, number(0x4286, 1), number(0x42f7, 1), number(0x42f2, 4), number(0x42f3, 8), text(0x4282, "webm"), number(0x4287, 2), number(0x4285, 2)),
    element(0x18538067, // Segment
      element(0x1549a966, number(0x2ad7b1, 1_000_000), text(0x4d80, "simulator"), text(0x5741, "simulator"), float(0x4489, duration)),
      element(0x1654ae6b, element(0xae, number(0xd7, 1), number(0x73c5, 1), number(0x83, 1), number(0x9c, 0), text(0x86, "V_VP8"),
        element(0xe0, number(0xb0, size.width), number(0xba, size.height)))),
      element(0x1f43b675, number(0xe7, 0), ...blocks)),
  ]);
}

/**
 * @param {number} id
 * @param {Uint8Array[]} content
 */
function element(id, ...content) {
  const size = new Uint8Array(8);
  new DataView(size.buffer).setBigUint64(0, BigInt(content.reduce((n, part) => n + part.length, 0)) | (1n << 56n));
  return join([bytesOf(id), size, ...content]);
}

/** @param {number} id @param {number} value */
function number(id, value) {
  return element(id, bytesOf(value));
}

/** @param {number} id @param {number} value */
function float(id, value) {
  const data = new Uint8Array(8);
  new DataView(data.buffer).setFloat64(0, value);
  return element(id, data);
}

/** @param {number} id @param {string} value */
function text(id, value) {
  return element(id, new TextEncoder().encode(value));
}

/**
 * Returns the bytes of a number without leading zeros.
 * @param {number} value
 */
function bytesOf(value) {
  const bytes = [];
  do bytes.unshift(value & 0xff);
  while ((value >>>= 8));
  return Uint8Array.from(bytes);
}

/** @param {Uint8Array[]} parts */
function join(parts) {
  const all = new Uint8Array(parts.reduce((n, part) => n + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
