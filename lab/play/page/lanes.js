// The lanes: a card for each, with its chart and its figures.
import { el, write } from './dom.js';
import { text } from './strings.js';
import { bins, perColumn } from './engine.js';
import * as format from './format.js';
import { drawTimeline, peaks } from './timeline.js';
import { drawLatency, drawRace } from './trips.js';

const simFigures = ['allowed', 'delayed', 'denied', 'worstDelay', 'awayAllowed', 'keys', 'largest', 'largestActing'];
const traceFigures = { race: ['allowed', 'denied', 'conflicts', 'commands'], block: ['median', 'p99', 'worst'] };

// lanes builds the cards of an experiment. setup: its values, its window and span in ms; trips: of a trace.
export function lanes(frame, setup, trips) {
  const { values } = setup, trace = trips.length > 0;
  const data = new Float32Array(frame.lanes.length * bins * perColumn);
  const names = trace ? traceFigures[values.view] : simFigures;
  const cards = frame.lanes.map((lane) => card(lane, setup, names, trace));
  const root = el('div', { class: `lanes ${values.view}` }, ...cards.map((c) => c.root));
  const worst = Math.max(1, ...trips.flat().filter((t) => t.client >= 0).map((t) => t.got - t.sent));

  return {
    root,
    bytes: new Uint8Array(data.buffer),
    show(frame, quiet) {
      const scale = peaks(data), now = frame.now / 1e6, span = setup.span / 1e3;
      frame.lanes.forEach((lane, i) => {
        const c = cards[i];
        if (trace) {
          const view = { now: frame.now, end: frame.end, clients: values.clients, worst };
          (values.view === 'race' ? drawRace : drawLatency)(c.canvas, trips[i], view);
        } else {
          drawTimeline(c.canvas, data.subarray(i * bins * perColumn, (i + 1) * bins * perColumn), {
            from: Math.max(-span * 0.015, now - span * 0.97), span, now, peaks: scale, level: lane.level, limit: lane.most || lane.count, acts: lane.algorithm === 'leaky_bucket',
          });
        }
        figures(c, lane, values, names, trace, setup);
        if (quiet) { // the chart in words, when it stands still
          c.canvas.setAttribute('aria-label', trace
            ? text.traceLabel(text.lanes[lane.name], format.count(lane.allowed), format.count(lane.denied))
            : text.chartLabel(text.lanes[lane.name], format.count(lane.allowed), format.count(lane.denied), format.count(lane.delayed)));
        }
      });
    },
  };
}

function card(lane, setup, names, trace) {
  const canvas = el('canvas', { role: 'img', 'aria-label': text.lanes[lane.name] });
  const limit = el('span', { class: 'limit' });
  const level = el('p', { class: 'level' });
  const list = el('dl', { class: 'figures' });
  const cells = {};
  for (const name of names) {
    const value = el('dd', { 'data-lane': lane.name, 'data-figure': name }), note = el('span', { class: 'note' });
    const label = name === 'largest' ? (setup.values.clients > 1 ? text.firstClient : '') + text.figures.largest(format.duration(setup.window * 1e3))
      : name === 'largestActing' ? text.figures.acting(format.duration(setup.window * 1e3))
        : name === 'worstDelay' ? text.figures.worst : name === 'worst' ? text.figures.worstCall : text.figures[name];
    const row = el('div', { class: `figure ${name}` }, el('dt', {}, label), value, note);
    cells[name] = { row, value, note };
    list.append(row);
  }
  const root = el('section', { class: 'lane', 'aria-label': text.lanes[lane.name] },
    el('header', {}, el('h3', {}, text.lanes[lane.name]), limit), canvas, trace ? null : level, list);
  return { root, canvas, limit, level, cells };
}

// figures writes a lane's numbers; those that say nothing are hidden.
function figures(c, lane, values, names, trace, setup) {
  for (const name of names) {
    const v = lane[name], time = ['worstDelay', 'median', 'p99', 'worst'].includes(name);
    write(c.cells[name].value, time ? format.duration(v) : format.count(v));
  }
  if (trace) return;
  const { cells } = c, limit = lane.most || lane.count;
  cells.delayed.row.hidden = cells.worstDelay.row.hidden = lane.algorithm !== 'leaky_bucket' && lane.delayed === 0;
  cells.awayAllowed.row.hidden = lane.awayAsked === 0;
  cells.keys.row.hidden = values.view !== 'ttl';
  cells.largestActing.row.hidden = cells.delayed.row.hidden;
  const above = lane.largest > lane.count;
  const judged = setup.window <= values.period;
  write(cells.largest.note, lane.asked === 0 || !judged ? '' : above ? text.above(format.count(lane.count)) : text.within(format.count(lane.count)));
  cells.largest.row.classList.toggle('above', judged && above);
  write(c.limit, text.limitOf(format.count(lane.count), format.each(values.period), lane.most && format.count(lane.most)));
  const say = text.level[lane.algorithm];
  const first = values.clients > 1 ? text.firstClient : '';
  write(c.level, first + (lane.level == null ? text.noLevel : say(format.level(lane.level), format.count(limit))));
}
