// Numbers and times as the page writes them.
import { text } from './strings.js';

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const fine = new Intl.NumberFormat('en', { maximumFractionDigits: 3 });
const fine2 = new Intl.NumberFormat('en', { maximumFractionDigits: 2 });
const short = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });

export const count = (n) => whole.format(n);
export const units = (x) => fine.format(x);
export const level = (x) => short.format(x);
export const percent = (x) => `${short.format(x * 100)} %`;

// duration writes µs in the largest unit in which it is at least 1: "1.9 s", "90 ms", "2 min".
export function duration(us) {
  const u = text.units;
  if (us < 0) return text.never;
  if (us < 1e3) return `${whole.format(us)} ${u.us}`;
  if (us < 1e6) return `${digits(us / 1e3)} ${u.ms}`;
  if (us < 60e6 || us % 60e6 !== 0 && us < 120e6) return `${digits(us / 1e6)} ${u.s}`;
  if (us < 3600e6) return `${digits(us / 60e6)} ${u.min}`;
  if (us === 86400e6) return `1 ${u.day}`;
  return `${digits(us / 3600e6)} ${u.h}`;
}

// digits writes three of them, or all before the point.
const digits = (x) => (x >= 100 ? whole : x >= 10 ? short : fine2).format(x);

// each writes a period after a slash: "s", "10 s", "min".
export function each(ms) {
  const t = duration(ms * 1e3);
  return t.startsWith('1 ') ? t.slice(2) : t;
}

// rate writes requests a minute.
export const rate = (perMinute) =>
  perMinute >= 60 ? text.perSecond(short.format(perMinute / 60)) : text.perMinute(count(perMinute));

// axis writes a moment on an axis of so many seconds.
export function axis(s, span) {
  if (s === 0) return '0';
  return span <= 60 ? duration(Math.round(s * 1e6)) : clock(s * 1e6).slice(0, -4);
}

// clock writes a moment: "0:01.250", or with µs where a whole run is only a few ms.
export function clock(us, tiny, decimals = 3) {
  if (tiny) return `${fine.format(us / 1e3)} ${text.units.ms}`;
  const ms = Math.floor(us / 1e3);
  const pad = (n, width) => String(n).padStart(width, '0');
  const h = Math.floor(ms / 3.6e6), m = Math.floor(ms / 6e4) % 60, s = Math.floor(ms / 1e3) % 60;
  return `${h ? `${h}:${pad(m, 2)}` : m}:${pad(s, 2)}.${pad(Math.floor(us % 1e6 / 10 ** (6 - decimals)), decimals)}`;
}
