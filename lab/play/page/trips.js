// What a trace lane shows: every client's way to Redis and back, or how long each call took.
import * as format from './format.js';
import { getInk, sheet, ticks, timeTicks } from './ink.js';

const axis = 16; // px

// drawRace draws a row for each client: lines there and back, and a sign where the server ran it.
export function drawRace(canvas, trips, view) {
  const ink = getInk(), { c, width, height } = sheet(canvas);
  const margin = 8, x = (us) => margin + us / view.end * (width - 2 * margin), row = (height - axis) / (view.clients + 1);
  const y = (client) => row * (client + 1), size = Math.max(1.6, Math.min(4, row * 0.42));
  times(c, x, view.end, width, height, ink);
  for (const t of trips) {
    if (t.sent > view.now) continue;
    c.strokeStyle = ink.line;
    c.lineWidth = Math.max(1, size * 0.5);
    c.beginPath();
    c.moveTo(x(t.sent), y(t.client));
    c.lineTo(x(Math.min(t.got, view.now)), y(t.client));
    c.stroke();
  }
  for (const t of trips) {
    if (t.served > view.now) break;
    sign(c, t, x(t.served), y(t.client), size, ink);
  }
  c.lineWidth = 1;
}

function sign(c, t, x, y, size, ink) {
  c.lineWidth = Math.max(1, size * 0.45);
  c.beginPath();
  switch (t.outcome) {
    case 'allowed':
      c.fillStyle = ink.allowed;
      c.arc(x, y, size, 0, 7);
      c.fill();
      return;
    case 'denied':
      c.strokeStyle = ink.denied;
      c.arc(x, y, size - c.lineWidth / 2, 0, 7);
      break;
    case 'conflict':
      c.strokeStyle = ink.delayed;
      c.moveTo(x - size, y - size);
      c.lineTo(x + size, y + size);
      c.moveTo(x + size, y - size);
      c.lineTo(x - size, y + size);
      break;
    default: // a read
      c.strokeStyle = ink.text;
      c.moveTo(x, y - size);
      c.lineTo(x, y + size);
  }
  c.stroke();
}

// drawLatency draws a bar for each call of the other clients, as high as it took long, and where a slow script ran.
export function drawLatency(canvas, trips, view) {
  const ink = getInk(), { c, width, height } = sheet(canvas);
  const left = 56, x = (us) => left + us / view.end * (width - left - 4);
  const bottom = height - axis, top = 6;
  const y = (us) => bottom - us / view.worst * (bottom - top);
  c.fillStyle = ink.hatched;
  for (const t of trips) {
    if (t.client < 0 && t.served <= view.now) c.fillRect(x(t.served), top, Math.max(2, x(t.left) - x(t.served)), bottom - top);
  }
  times(c, x, view.end, width, height, ink);
  c.fillStyle = ink.text;
  const every = ticks(view.worst);
  for (let us = every; us <= view.worst; us += every) {
    const label = format.duration(Math.round(us));
    c.fillText(label, left - 6 - c.measureText(label).width, y(us) + 4);
    c.fillRect(left - 4, Math.round(y(us)), 4, 1);
  }
  c.fillStyle = ink.allowed;
  for (const t of trips) {
    if (t.client < 0 || t.got > view.now) continue;
    c.fillRect(x(t.sent) - 0.75, y(t.got - t.sent), 1.5, Math.max(2, bottom - y(t.got - t.sent)));
  }
}

function times(c, x, end, width, height, ink) {
  c.strokeStyle = ink.line;
  c.fillStyle = ink.text;
  c.lineWidth = 1;
  const every = timeTicks(end / 1e6) * 1e6;
  for (let us = 0; us <= end; us += every) {
    const at = Math.round(x(us)) + 0.5;
    c.beginPath();
    c.moveTo(at, 0);
    c.lineTo(at, height - axis);
    c.stroke();
    const label = us === 0 ? '0' : format.duration(Math.round(us));
    const w = c.measureText(label).width;
    c.fillText(label, Math.min(Math.max(0, at - w / 2), width - w), height - 3);
  }
}
