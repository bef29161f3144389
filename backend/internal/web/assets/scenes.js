// The built-in scenes of the see-through view, painted with a few shapes each. They are out of focus, like the world
// behind a panel that the wearer reads.

/** @typedef {CanvasRenderingContext2D} Context */

const width = 1600;
const height = 1000;

/** @type {Record<string, {name: string, paint: (c: Context, random: () => number) => void, blur: number}>} */
export const scenes = {
  street: { name: "Street", paint: street, blur: 8 },
  office: { name: "Office", paint: office, blur: 8 },
  night: { name: "Night", paint: night, blur: 2 },
  snow: { name: "Snow", paint: snow, blur: 4 },
};

/**
 * Returns the picture of a scene, which is the same each time.
 * @param {string} id a key of scenes
 */
export function paintScene(id) {
  const { paint, blur } = scenes[id] ?? { paint: street, blur: 4 };
  const small = canvasOf(width / blur, height / blur);
  small.c.scale(1 / blur, 1 / blur);
  paint(small.c, randomFrom(id.length * 7919));
  let now = small.canvas;
  while (now.width < width) { // doubling looks smoother than one large step
    const next = canvasOf(now.width * 2, now.height * 2);
    next.c.imageSmoothingQuality = "high";
    next.c.drawImage(now, 0, 0, next.canvas.width, next.canvas.height);
    now = next.canvas;
  }
  return now;
}

/**
 * @param {number} w
 * @param {number} h
 */
function canvasOf(w, h) {
  const canvas = document.createElement("canvas");
  canvas.width = w;
  canvas.height = h;
  return { canvas, c: /** @type {Context} */ (canvas.getContext("2d", { alpha: false })) };
}

/**
 * Returns a generator of numbers from 0 to 1 (mulberry32).
 * @param {number} seed
 */
function randomFrom(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/**
 * Fills a rectangle with a gradient from its top to its bottom.
 * @param {Context} c @param {number} x @param {number} y @param {number} w @param {number} h @param {string[]} colours
 */
function fill(c, x, y, w, h, ...colours) {
  const g = c.createLinearGradient(0, y, 0, y + h);
  colours.forEach((colour, i) => g.addColorStop(i / (colours.length - 1), colour));
  c.fillStyle = g;
  c.fillRect(x, y, w, h);
}

/** @param {Context} c @param {string} colour @param {number[]} points x and y in turn */
function shape(c, colour, ...points) {
  c.fillStyle = colour;
  c.beginPath();
  for (let i = 0; i < points.length; i += 2) c.lineTo(points[i] ?? 0, points[i + 1] ?? 0);
  c.fill();
}

/** @param {Context} c @param {string} colour @param {number} x @param {number} y @param {number} r @param {number} [ry] */
function disc(c, colour, x, y, r, ry = r) {
  c.fillStyle = colour;
  c.beginPath();
  c.ellipse(x, y, r, ry, 0, 0, 7);
  c.fill();
}

/**
 * Draws a light that fades out.
 * @param {Context} c @param {string} rgb three numbers @param {number} x @param {number} y @param {number} r @param {number} strength
 */
function glow(c, rgb, x, y, r, strength) {
  const g = c.createRadialGradient(x, y, 0, x, y, r);
  g.addColorStop(0, `rgb(${rgb} / ${strength})`);
  g.addColorStop(1, `rgb(${rgb} / 0)`);
  c.fillStyle = g;
  c.fillRect(x - r, y - r, 2 * r, 2 * r);
}

/** @param {Context} c @param {() => number} random */
function street(c, random) {
  fill(c, 0, 0, width, 621, "#8fb7dd", "#cfe1ee", "#f5ead8");
  glow(c, "255 246 220", 800, 560, 620, 0.9);
  for (let x = 520; x < 1100; x += 46) shape(c, "#b9c3cb", x, 620, x, 500 - random() * 90, x + 44, 500 - random() * 90, x + 44, 620);
  const walls = ["#a9836b", "#c2ab8e", "#8d7f7a", "#b58f73", "#9aa0a3", "#7f6a5e"];
  for (const side of [-1, 1]) {
    for (let n = 5; n >= 0; n--) house(c, random, side, n, walls[(n * 2 + (side + 1) / 2) % walls.length] ?? "");
  }
  shape(c, "#8f8c88", 0, 1000, 0, 780, 740, 612, 860, 612, 1600, 780, 1600, 1000); // pavements
  shape(c, "#5f6165", 180, 1000, 765, 612, 835, 612, 1420, 1000);
  for (let n = 0; n < 7; n++) { // the line in the middle
    const [a, b] = [1 / (n + 1), 1 / (n + 1.45)];
    shape(c, "#e8e4d8", 800 - 12 * a, 612 + 400 * a, 800 + 12 * a, 612 + 400 * a, 800 + 12 * b, 612 + 400 * b, 800 - 12 * b, 612 + 400 * b);
  }
  car(c, "#a53b32", 980, 760, 1);
  car(c, "#3d5a78", 690, 680, 0.5);
  for (const [x, y, size] of [[330, 640, 1.25], [1290, 640, 1.25], [520, 630, 0.7], [1085, 630, 0.7]]) tree(c, random, x ?? 0, y ?? 0, size ?? 1);
  for (const [x, size, coat] of /** @type {[number, number, string][]} */ ([[200, 1.25, "#30404f"], [262, 1.15, "#7a4a3c"], [1180, 0.8, "#444b3d"], [1400, 1.3, "#5b3a55"]])) walker(c, x, size, coat);
}

/**
 * Draws the n-th house from the front on one side of the street.
 * @param {Context} c @param {() => number} random @param {number} side @param {number} n @param {string} wall
 */
function house(c, random, side, n, wall) {
  const at = (/** @type {number} */ k) => 800 + side * (60 + 900 / (1 + k * 0.62));
  const [near, far] = [at(n), at(n + 1)];
  const roof = 1.15 + random() * 0.5;
  const top = (/** @type {number} */ x) => 612 - Math.abs(x - 800) * roof * 0.72;
  const foot = (/** @type {number} */ x) => 612 + Math.abs(x - 800) * 0.3;
  shape(c, wall, near, foot(near), near, top(near), far, top(far), far, foot(far));
  for (let floor = 0; floor < 6; floor++) {
    for (let bay = 0; bay < 4; bay++) {
      const x1 = near + ((far - near) * (bay + 0.25)) / 4;
      const x2 = near + ((far - near) * (bay + 0.75)) / 4;
      const y = (/** @type {number} */ x, /** @type {number} */ part) => top(x) + (foot(x) - top(x)) * ((floor + part) / 6.6);
      shape(c, random() < 0.25 ? "#dfe9ee" : "#4d555c", x1, y(x1, 0.3), x2, y(x2, 0.3), x2, y(x2, 0.82), x1, y(x1, 0.82));
    }
  }
  shape(c, side < 0 ? "rgb(255 236 200 / 14%)" : "rgb(20 24 40 / 22%)", near, foot(near), near, top(near), far, top(far), far, foot(far));
}

/** @param {Context} c @param {string} colour @param {number} x @param {number} y @param {number} size */
function car(c, colour, x, y, size) {
  disc(c, "rgb(0 0 0 / 45%)", x, y + 62 * size, 150 * size, 20 * size);
  c.fillStyle = colour;
  c.beginPath();
  c.roundRect(x - 125 * size, y - 30 * size, 250 * size, 85 * size, 26 * size);
  c.roundRect(x - 95 * size, y - 95 * size, 190 * size, 90 * size, 34 * size);
  c.fill();
  shape(c, "#26323b", x - 78 * size, y - 34 * size, x - 66 * size, y - 82 * size, x + 66 * size, y - 82 * size, x + 78 * size, y - 34 * size);
  for (const side of [-1, 1]) disc(c, "#fff3cf", x + side * 96 * size, y + 6 * size, 17 * size, 12 * size);
}

/** @param {Context} c @param {() => number} random @param {number} x @param {number} foot @param {number} size */
function tree(c, random, x, foot, size) {
  shape(c, "#4b3b2e", x - 9 * size, foot + 130 * size, x - 6 * size, foot - 200 * size, x + 6 * size, foot - 200 * size, x + 9 * size, foot + 130 * size);
  for (let i = 0; i < 46; i++) {
    const tone = 74 + random() * 60;
    disc(c, `rgb(${tone * 0.72} ${tone + 26} ${tone * 0.42})`, x + (random() - 0.5) * 250 * size, foot - (190 + (random() - 0.5) * 230) * size, (26 + random() * 34) * size);
  }
}

/** @param {Context} c @param {number} x @param {number} size @param {string} coat */
function walker(c, x, size, coat) {
  const foot = 850 + (size - 1) * 120;
  disc(c, "rgb(0 0 0 / 35%)", x, foot, 44 * size, 9 * size);
  shape(c, "#22262b", x - 17 * size, foot, x - 13 * size, foot - 100 * size, x + 13 * size, foot - 100 * size, x + 19 * size, foot);
  c.fillStyle = coat;
  c.beginPath();
  c.roundRect(x - 27 * size, foot - 190 * size, 54 * size, 108 * size, 22 * size);
  c.fill();
  disc(c, "#c99b7d", x, foot - 213 * size, 19 * size, 23 * size);
}

/** @param {Context} c @param {() => number} random */
function office(c, random) {
  fill(c, 0, 0, width, 701, "#cfc8bd", "#ded7ca", "#d2c8b8");
  c.fillStyle = "#eef6fb";
  c.fillRect(90, 60, 560, 500);
  fill(c, 90, 60, 560, 500, "#9cc4e6", "#e9f3f8");
  for (let x = 90; x < 650; x += 56) shape(c, "rgb(120 140 156 / 65%)", x, 560, x, 430 - random() * 140, x + 50, 430 - random() * 140, x + 50, 560);
  c.fillStyle = "#f7f4ee";
  for (const [x, y, w, h] of [[72, 40, 18, 540], [650, 40, 18, 540], [72, 40, 596, 20], [72, 560, 596, 26], [362, 60, 14, 500]]) c.fillRect(x ?? 0, y ?? 0, w ?? 0, h ?? 0);
  glow(c, "255 250 235", 370, 320, 640, 0.5);
  shelves(c, random);
  fill(c, 0, 690, width, 310, "#a5784f", "#6d4a2e"); // the desk
  shape(c, "rgb(255 238 205 / 34%)", 120, 1000, 330, 694, 700, 694, 640, 1000);
  monitor(c, 660, 330);
  disc(c, "rgb(0 0 0 / 30%)", 1240, 842, 92, 22);
  for (const [y, r] of [[760, 58], [800, 60], [830, 54]]) disc(c, "#e9e4da", 1240, y ?? 0, r ?? 0, 40);
  disc(c, "#4a2d1c", 1240, 748, 46, 14);
  c.strokeStyle = "#e9e4da";
  c.lineWidth = 15;
  c.beginPath();
  c.arc(1304, 795, 30, -1.3, 1.4);
  c.stroke();
  shape(c, "#f4f1ea", 300, 905, 430, 800, 640, 812, 560, 930);
  shape(c, "#b9b4aa", 345, 897, 445, 818, 600, 826, 540, 910);
  plant(c, random);
}

/** @param {Context} c @param {() => number} random */
function shelves(c, random) {
  const spines = ["#8d3f36", "#3f5d73", "#d9b25f", "#56724f", "#e4ddd0", "#6b5a7a", "#28343c", "#b9714a"];
  for (const y of [120, 270, 420]) {
    for (let x = 1120; x < 1500; ) {
      const w = 16 + random() * 22;
      const h = 76 + random() * 44;
      c.fillStyle = spines[Math.floor(random() * spines.length)] ?? "";
      if (random() < 0.86) c.fillRect(x, y + 120 - h, w, h);
      x += w + 2;
    }
    c.fillStyle = "#8a6a4c";
    c.fillRect(1095, y + 120, 430, 16);
    c.fillStyle = "rgb(0 0 0 / 14%)";
    c.fillRect(1095, y + 136, 430, 18);
  }
}

/** @param {Context} c @param {number} x @param {number} y */
function monitor(c, x, y) {
  disc(c, "rgb(0 0 0 / 32%)", x + 210, y + 402, 190, 26);
  shape(c, "#3a4046", x + 180, y + 290, x + 240, y + 290, x + 252, y + 390, x + 168, y + 390);
  c.fillStyle = "#22272b";
  c.beginPath();
  c.roundRect(x, y, 420, 292, 14);
  c.fill();
  fill(c, x + 14, y + 14, 392, 256, "#24435c", "#142836");
  const lines = ["#7fd0c2", "#e7c36a", "#c7d3da", "#c7d3da", "#e08f8f", "#c7d3da", "#7fd0c2", "#c7d3da"];
  lines.forEach((colour, i) => {
    c.fillStyle = colour;
    c.fillRect(x + 44 + (i % 3) * 26, y + 46 + i * 26, 90 + ((i * 71) % 150), 9);
  });
}

/** @param {Context} c @param {() => number} random */
function plant(c, random) {
  for (let i = 0; i < 34; i++) {
    const angle = -Math.PI / 2 + (random() - 0.5) * 2.3;
    const length = 120 + random() * 170;
    const tone = 70 + random() * 55;
    c.save();
    c.translate(110, 760);
    c.rotate(angle);
    disc(c, `rgb(${tone * 0.6} ${tone + 20} ${tone * 0.55})`, length * 0.62, 0, length * 0.42, 13 + random() * 12);
    c.restore();
  }
  shape(c, "#c9c1b4", 45, 750, 175, 750, 156, 920, 64, 920);
}

/** @param {Context} c @param {() => number} random */
function night(c, random) {
  fill(c, 0, 0, width, 641, "#070b18", "#101a33", "#2b2b46");
  glow(c, "120 96 130", 900, 640, 760, 0.4);
  for (const [base, tone] of /** @type {[number, string][]} */ ([[300, "#141b2e"], [380, "#0c111f"]])) {
    for (let x = -20; x < width; ) {
      const w = 70 + random() * 110;
      const top = base - random() * 210 + Math.abs(x - 800) * -0.12;
      c.fillStyle = tone;
      c.fillRect(x, top, w, 640 - top);
      for (let y = top + 18; y < 600; y += 26) {
        for (let wx = x + 10; wx < x + w - 16; wx += 22) {
          if (random() < 0.3) {
            c.fillStyle = ["#ffd48a", "#ffe9bd", "#9cc8ff", "#f3b56a"][Math.floor(random() * 4)] ?? "";
            c.globalAlpha = 0.35 + random() * 0.5;
            c.fillRect(wx, y, 11, 13);
          }
        }
      }
      c.globalAlpha = 1;
      x += w + random() * 14;
    }
  }
  fill(c, 0, 640, width, 360, "#0b0f18", "#131722", "#080a10");
  const lights = ["255 190 96", "255 112 72", "255 226 176", "110 170 255", "255 74 84", "120 235 205"];
  c.globalCompositeOperation = "lighter";
  for (let i = 0; i < 90; i++) {
    const x = random() * width;
    const far = random();
    const y = 610 + far * far * 150 - random() * 120;
    const rgb = lights[Math.floor(random() * lights.length)] ?? "";
    bokeh(c, rgb, x, y, 7 + far * 30, 0.22 + random() * 0.3);
    for (let k = 0; k < 5; k++) { // on the wet road
      c.fillStyle = `rgb(${rgb} / ${0.1 - k * 0.018})`;
      c.fillRect(x - 5 - far * 14 + (random() - 0.5) * 8, 690 + k * 56 + far * 20, 10 + far * 28, 44);
    }
  }
  c.globalCompositeOperation = "source-over";
}

/** @param {Context} c @param {string} rgb @param {number} x @param {number} y @param {number} r @param {number} strength */
function bokeh(c, rgb, x, y, r, strength) {
  glow(c, rgb, x, y, r * 2.6, strength * 0.4);
  disc(c, `rgb(${rgb} / ${strength})`, x, y, r);
  c.strokeStyle = `rgb(${rgb} / ${strength * 0.7})`;
  c.lineWidth = 2;
  c.stroke();
}

/** @param {Context} c @param {() => number} random */
function snow(c, random) {
  fill(c, 0, 0, width, 641, "#86aed6", "#c4d9ec", "#f3f1ee");
  glow(c, "255 247 226", 1180, 180, 520, 0.95);
  ridge(c, random, 470, 210, "#a9bfd8", "#dfe8f2");
  ridge(c, random, 570, 140, "#8ba6c4", "#eef3f8");
  fill(c, 0, 600, width, 400, "#e6edf5", "#f7f9fb", "#dfe7f1");
  for (let i = 0; i < 9; i++) disc(c, i % 2 ? "rgb(255 255 255 / 75%)" : "rgb(168 190 216 / 28%)", random() * width, 680 + i * 38, 420 + random() * 300, 34 + random() * 30);
  const firs = Array.from({ length: 30 }, () => ({ x: random() * width, depth: random() })).sort((a, b) => a.depth - b.depth);
  for (const { x, depth } of firs) if (Math.abs(x - 800) > 260 * depth + 60) fir(c, random, x, 628 + depth * depth * 250, 0.35 + depth * 1.15);
  for (let i = 0; i < 130; i++) disc(c, `rgb(255 255 255 / ${0.35 + random() * 0.5})`, random() * width, random() * height, 1.5 + random() * random() * 9);
}

/** @param {Context} c @param {() => number} random @param {number} base @param {number} rise @param {string} rock @param {string} cap */
function ridge(c, random, base, rise, rock, cap) {
  /** @type {number[]} */
  const points = [];
  for (let n = 0; n < 20; n++) points.push(n * 90 - 60, base - rise * (0.5 + random() * 0.5) * (n % 2 ? 1 : 0.45));
  shape(c, rock, -60, 660, ...points, width + 60, 660);
  for (let i = 2; i < points.length; i += 4) {
    const [x, y] = [points[i] ?? 0, points[i + 1] ?? 0];
    shape(c, cap, x, y, x - 34, y + 44, x - 14, y + 36, x - 4, y + 66, x + 12, y + 36, x + 34, y + 44);
  }
}

/** @param {Context} c @param {() => number} random @param {number} x @param {number} foot @param {number} size */
function fir(c, random, x, foot, size) {
  disc(c, "rgb(120 146 180 / 35%)", x + 34 * size, foot, 90 * size, 13 * size);
  shape(c, "#3e332c", x - 7 * size, foot, x - 7 * size, foot - 50 * size, x + 7 * size, foot - 50 * size, x + 7 * size, foot);
  const tone = 40 + random() * 26;
  for (let k = 0; k < 5; k++) {
    const [y, w] = [foot - (30 + k * 52) * size, (86 - k * 15) * size];
    shape(c, `rgb(${tone * 0.55} ${tone + 22} ${tone * 0.95})`, x - w, y, x, y - 104 * size, x + w, y);
    shape(c, "rgb(246 250 255 / 88%)", x - w * 0.62, y - 40 * size, x, y - 106 * size, x + w * 0.3, y - 70 * size, x + w * 0.1, y - 44 * size, x - w * 0.2, y - 58 * size);
  }
}
