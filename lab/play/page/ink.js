// Colours and patterns of the canvases: the style sheet's, read once a theme. Every sign differs by shape, too.

let ink = null;

export function forgetInk() { ink = null; }

export function getInk() {
  if (ink) return ink;
  const style = getComputedStyle(document.documentElement);
  const color = (name) => style.getPropertyValue(name).trim();
  ink = {
    text: color('--muted'), line: color('--line'), strong: color('--ink'),
    allowed: color('--allowed'), delayed: color('--delayed'), denied: color('--denied'), level: color('--level'), fill: color('--level-fill'),
  };
  ink.striped = pattern(4, (c) => { c.fillStyle = ink.delayed; c.fillRect(0, 0, 4, 2); });
  ink.dotted = pattern(4, (c) => { c.fillStyle = ink.denied; c.fillRect(0, 0, 4, 3); });
  ink.hatched = pattern(8, (c) => {
    c.strokeStyle = ink.text;
    c.globalAlpha = 0.35;
    c.lineWidth = 1;
    for (const d of [-8, 0, 8]) {
      c.beginPath();
      c.moveTo(d, 8);
      c.lineTo(d + 8, 0);
      c.stroke();
    }
  });
  return ink;
}

function pattern(size, draw) {
  const tile = document.createElement('canvas');
  tile.width = tile.height = size;
  const c = tile.getContext('2d');
  draw(c);
  return c.createPattern(tile, 'repeat');
}

// sheet clears a canvas, fits it to its place and the screen's pixels, and returns its context and size.
export function sheet(canvas) {
  const ratio = globalThis.devicePixelRatio || 1;
  const width = canvas.clientWidth, height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const c = canvas.getContext('2d');
  c.setTransform(ratio, 0, 0, ratio, 0, 0);
  c.clearRect(0, 0, width, height);
  c.font = `11px ${getComputedStyle(canvas).fontFamily}`;
  c.textBaseline = 'alphabetic';
  return { c, width, height };
}

// ticks are round steps of an axis that is so long: about five of them.
export function ticks(length) {
  const units = [1, 2, 5];
  for (let power = 1e-6; power < 1e9; power *= 10) {
    for (const u of units) if (length / (u * power) <= 6) return u * power;
  }
  return length;
}

// timeTicks are the same for seconds, which above a minute are round in minutes.
export function timeTicks(seconds) {
  for (const step of [15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14400, 43200, 86400]) {
    if (seconds > 60 && seconds / step <= 6) return step;
  }
  return ticks(seconds);
}
