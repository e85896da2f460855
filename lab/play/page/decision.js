// The last decision of each lane: its state before and after, and its arithmetic in words and numbers.
import { el } from './dom.js';
import { text } from './strings.js';
import * as format from './format.js';

// decision draws the panel for a frame that stands still. trips: of a trace.
export function decision(frame, trips) {
  const trace = trips.length > 0;
  const first = frame.lanes.find((l) => l.last)?.last;
  if (!trace && !first) return [el('p', { class: 'ask' }, text.noDecision)];
  const head = trace ? text.serverTime(format.clock(frame.now, true))
    : text.asked(format.count(frame.decided), format.clock(first.at), format.count(first.subject + 1), format.count(first.n));
  const columns = frame.lanes.map((lane, i) => (trace ? trip(lane, last(trips[i], frame.now), frame) : record(lane, frame)));
  return [el('p', { class: 'ask' }, head), el('div', { class: `decisions of${frame.lanes.length}` }, ...columns)];
}

function record(lane, frame) {
  const r = lane.last, kind = !r.allowed ? 'denied' : r.delay > 0 ? 'delayed' : 'allowed';
  return el('section', { class: `decision ${kind}` },
    el('h4', {}, text.lanes[lane.name]),
    el('p', { class: 'verdict' }, text.verdict[kind]),
    el('p', { class: 'why' }, sentences(lane, r).join(' ')),
    words(r.words, r.before, r.after, frame.origin));
}

// sentences explain a decision.
function sentences(lane, r) {
  const x = text.explain;
  const e = {
    held: format.units(r.held), freed: format.units(r.freed), spent: format.units(r.spent), ago: format.duration(r.ago), most: format.count(r.most),
    n: format.count(r.n), sum: format.units(r.spent + r.n), previous: format.count(r.previous), current: format.count(r.current), weight: format.percent(r.weight),
    left: format.duration(r.left), instance: format.count(r.instance + 1), retry: format.duration(r.retry), delay: format.duration(r.delay),
    reset: format.duration(r.reset), remaining: format.count(r.remaining),
  };
  const said = [];
  if (r.away && r.source === 'assumed') return [r.allowed ? x.allow() : x.deny()];
  if (!r.away && r.before.every((w) => w === 0)) said.push((r.expired ? text.expired : text.unseen).trim());
  const level = r.kind === 'bucket' || r.kind === 'queue';
  const alone = r.kind === 'sliding' && r.previous === 0;
  said.push(alone ? x.slidingAlone(e) : level && r.held === 0 ? x[`${r.kind}New`]() : level && r.ago === 0 ? x[`${r.kind}Same`](e) : x[r.kind](e));
  if (r.retry < 0) return [...said, x.never()];
  said.push(x.sum(e, r.allowed));
  if (!r.allowed) return [...said, x.retry(e)];
  if (r.delay > 0) said.push(x.delay(e));
  return [...said, x.after(e)];
}

function last(trips, now) {
  let found = null;
  for (const t of trips) {
    if (t.served > now) break;
    found = t;
  }
  return found;
}

function trip(lane, t, frame) {
  const h = el('h4', {}, text.lanes[lane.name]);
  if (!t) return el('section', { class: 'decision' }, h, el('p', { class: 'why' }, text.noDecision));
  const who = t.client < 0 ? text.trips.slowClient : text.trips.client(format.count(t.client + 1));
  return el('section', { class: `decision ${t.outcome}` }, h,
    el('p', { class: 'verdict' }, text.verdict[t.outcome || 'read']),
    el('p', { class: 'why' }, `${who} ${lost(t) ? text.trips.lost : text.trips[t.kind][t.outcome]} ${text.trips.took('', format.duration(t.left - t.served))}`),
    words(t.words, t.before, t.after, frame.origin));
}

// lost tells whether a write put down what another had written before: that other's charge is lost.
const lost = (t) => t.kind === 'write' && t.outcome === 'allowed' && t.before[0] !== 0 && t.before[0] === t.after[0];

// word writes one integer of a state; a time as what has passed since time 0, which is at origin.
function word(name, v, state, origin) {
  if (state.every((w) => w === 0)) return '–';
  return name === 'ts' || name === 'start' ? format.clock(v - origin, false, 6).replace(/\.?0+$/, '') : format.count(v);
}

function words(names, before, after, origin) {
  const { word: title, before: b, after: a } = text.stateColumn;
  const row = (name, i) => {
    const moved = before[i] !== after[i];
    return el('tr', { class: moved ? 'moved' : '' },
      el('th', { scope: 'row' }, name),
      el('td', { title: before[i] }, word(name, before[i], before, origin)),
      el('td', { title: after[i] }, moved ? word(name, after[i], after, origin) : '='));
  };
  return el('table', { class: 'state' },
    el('thead', {}, el('tr', {}, ...[title, b, a].map((t) => el('th', { scope: 'col' }, t)))),
    el('tbody', {}, ...names.map(row)));
}
