// A lane's timeline: requests above, the level below, on one axis of time.
import { bins, perColumn } from './engine.js';
import * as format from './format.js';
import { getInk, sheet, timeTicks } from './ink.js';

const axis = 16; // px: the times at the bottom
const gap = 12; // px: between the two charts

// peaks are the most requests up and down in a column of any lane: all lanes are drawn to one scale.
export function peaks(data) {
  let up = 1, down = 0;
  for (let i = 0; i < data.length; i += perColumn) {
    if (data[i] < 0) continue;
    up = Math.max(up, data[i + 1] + data[i + 2]);
    down = Math.max(down, data[i + 3]);
  }
  return { up, down };
}

// drawTimeline draws the columns of one lane. view: from and span in s, the peaks, the lane's level and limit.
export function drawTimeline(canvas, columns, view) {
  const ink = getInk(), { c, width, height } = sheet(canvas);
  const requests = Math.round((height - axis - gap) * 0.62), actsRow = view.acts ? 9 : 0;
  const bars = { top: 2, bottom: requests - actsRow };
  const levels = { top: requests + gap, bottom: height - axis };
  const x = (s) => (s - view.from) / view.span * width;
  const step = width / bins;

  away(c, columns, x, step, height - axis, ink);
  grid(c, x, view, width, height, ink);
  drawRequests(c, columns, x, step, bars, view, ink);
  if (view.acts) drawActs(c, columns, x, step, requests - actsRow + 2, ink);
  drawLevels(c, columns, x, step, levels, view, width, ink);
}

function away(c, columns, x, step, bottom, ink) {
  c.fillStyle = ink.hatched;
  for (let i = 0; i < columns.length; i += perColumn) {
    if (columns[i] >= 0 && columns[i + 6] === 1) c.fillRect(x(columns[i]), 0, step + 0.5, bottom);
  }
}

function grid(c, x, view, width, height, ink) {
  c.strokeStyle = ink.line;
  c.fillStyle = ink.text;
  c.lineWidth = 1;
  const every = timeTicks(view.span);
  for (let s = Math.max(0, Math.ceil(view.from / every) * every); s <= view.from + view.span; s += every) {
    const at = Math.round(x(s)) + 0.5;
    c.beginPath();
    c.moveTo(at, 0);
    c.lineTo(at, height - axis);
    c.stroke();
    const label = format.axis(s, view.span);
    const w = c.measureText(label).width;
    c.fillText(label, Math.min(Math.max(0, at - w / 2), width - w), height - 3);
  }
}

function drawRequests(c, columns, x, step, { top, bottom }, view, ink) {
  const room = bottom - top, { up, down } = view.peaks;
  const unit = Math.min(room / (up + Math.max(down, up * 0.15)), 22);
  const base = Math.round(bottom - Math.max(down, up * 0.15) * unit);
  const high = (n) => (n ? Math.max(n * unit, 2) : 0); // one request is seen beside a burst of hundreds
  const thick = Math.max(1.5, step - (step > 3 ? 1 : 0));
  for (let i = 0; i < columns.length; i += perColumn) {
    if (columns[i] < 0) continue;
    const left = x(columns[i]), allowed = high(columns[i + 1]), delayed = high(columns[i + 2]), denied = high(columns[i + 3]);
    if (left + step < 0) continue;
    if (allowed) {
      c.fillStyle = ink.allowed;
      c.fillRect(left, base - allowed, thick, allowed);
    }
    if (delayed) {
      c.fillStyle = ink.striped;
      c.fillRect(left, base - allowed - delayed, thick, delayed);
    }
    if (denied) {
      c.fillStyle = ink.dotted;
      c.fillRect(left, base + 1, thick, denied);
    }
  }
  c.strokeStyle = ink.strong;
  c.globalAlpha = 0.5;
  c.beginPath();
  c.moveTo(0, base + 0.5);
  c.lineTo(x(view.from + view.span), base + 0.5);
  c.stroke();
  c.globalAlpha = 1;
}

// drawActs marks when requests act, after their wait: a row of small diamonds, or a band where they are many.
function drawActs(c, columns, x, step, top, ink) {
  c.fillStyle = ink.strong;
  let last = -10;
  for (let i = 0; i < columns.length; i += perColumn) {
    if (columns[i] < 0 || columns[i + 4] === 0) continue;
    const at = x(columns[i]) + step / 2;
    if (at - last < 5) {
      c.fillRect(last, top + 2.25, at - last, 1.5);
    } else {
      c.beginPath();
      c.moveTo(at, top);
      c.lineTo(at + 2.5, top + 3);
      c.lineTo(at, top + 6);
      c.lineTo(at - 2.5, top + 3);
      c.fill();
    }
    last = at;
  }
}

function drawLevels(c, columns, x, step, { top, bottom }, view, width, ink) {
  const y = (v) => bottom - Math.min(v / view.limit, 1.15) * (bottom - top) / 1.15;
  c.strokeStyle = ink.text;
  c.setLineDash([4, 3]);
  c.beginPath();
  c.moveTo(0, Math.round(y(view.limit)) + 0.5);
  c.lineTo(width, Math.round(y(view.limit)) + 0.5);
  c.stroke();
  c.setLineDash([]);
  const points = [];
  const draw = () => {
    if (points.length > 1) {
      c.beginPath();
      c.moveTo(points[0][0], bottom);
      for (const p of points) c.lineTo(...p);
      c.lineTo(points.at(-1)[0], bottom);
      c.fillStyle = ink.fill;
      c.fill();
      c.beginPath();
      points.forEach((p, i) => (i ? c.lineTo(...p) : c.moveTo(...p)));
      c.strokeStyle = ink.level;
      c.lineWidth = 1.5;
      c.stroke();
      c.lineWidth = 1;
    }
    points.length = 0;
  };
  for (let i = 0; i < columns.length; i += perColumn) {
    if (columns[i] < 0) continue;
    if (Number.isNaN(columns[i + 5])) {
      if (i + perColumn < columns.length && columns[i + perColumn] >= 0) draw(); // nothing is kept here
      continue;
    }
    points.push([x(columns[i]) + step, y(columns[i + 5])]);
  }
  if (view.level != null) points.push([x(view.now), y(view.level)]);
  draw();
}
