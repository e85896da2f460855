// The setup: a slider or a choice for each field that matters to the view.
import { el, write } from './dom.js';
import { text } from './strings.js';
import * as format from './format.js';

const groups = [
  ['compare', ['view', 'algorithm']],
  ['limit', ['count', 'period', 'burst']],
  ['traffic', ['traffic', 'rate', 'size', 'every', 'cost', 'clients', 'seed']],
  ['outage', ['outage', 'share', 'instances']],
  ['server', ['trip', 'entries']],
];

const shown = { // how a value is written; others are plain numbers
  period: (ms) => format.duration(ms * 1e3),
  every: (ms) => format.duration(ms * 1e3),
  rate: format.rate,
  trip: format.duration,
};

// matters tells whether a field has a say in a setup.
function matters(name, v) {
  const sim = v.view !== 'race' && v.view !== 'block';
  switch (name) {
    case 'algorithm': return v.view !== 'algorithms';
    case 'burst': return v.view === 'algorithms' || !v.algorithm.endsWith('_window');
    case 'traffic': return sim;
    case 'rate': return v.view === 'block' || sim && ['steady', 'poisson', 'onoff', 'boundary'].includes(v.traffic);
    case 'size': return sim;
    case 'every': return v.view === 'block' || sim && (v.traffic === 'bursts' || v.traffic === 'onoff');
    case 'seed': return !sim || v.traffic === 'poisson';
    case 'outage': return v.view === 'algorithms';
    case 'share': return v.view === 'algorithms' && v.outage === 'local';
    case 'instances': return v.view === 'outage' || v.view === 'algorithms' && v.outage === 'local';
    case 'trip': return !sim;
    case 'entries': return v.view === 'block';
  }
  return true;
}

// controls builds the form. onchange is called with (name, value) when the user moves something.
export function controls(fields, onchange) {
  const byName = Object.fromEntries(fields.map((f) => [f.name, f]));
  const rows = {};
  const form = el('form', { class: 'controls', 'aria-label': text.controls, onsubmit: (e) => e.preventDefault() });
  const sets = groups.map(([group, names]) => {
    const set = el('fieldset', {}, el('legend', {}, text.groups[group]));
    for (const name of names) {
      const change = (value) => onchange(name, value);
      rows[name] = name === 'share' ? checkbox(name, change)
        : byName[name].choices.length ? choice(byName[name], change) : slider(byName[name], change);
      set.append(rows[name].row);
    }
    form.append(set);
    return [set, names];
  });
  return {
    form,
    show(values) {
      for (const [set, names] of sets) {
        for (const name of names) {
          rows[name].row.hidden = !matters(name, values);
          rows[name].set(values[name]);
        }
        set.hidden = names.every((name) => rows[name].row.hidden);
      }
    },
  };
}

function choice(field, change) {
  const id = `field-${field.name}`;
  const select = el('select', { id, onchange: () => change(select.value) },
    ...field.choices.map((c) => el('option', { value: c }, text.choices[c])));
  const row = el('div', { class: 'field' }, el('label', { for: id }, text.fields[field.name]), select);
  return { row, set: (v) => { select.value = v; } };
}

function checkbox(name, change) {
  const id = `field-${name}`;
  const box = el('input', { type: 'checkbox', id, onchange: () => change(box.checked ? 1 : 0) });
  const row = el('div', { class: 'field check' }, box, el('label', { for: id }, text.fields[name]));
  return { row, set: (v) => { box.checked = v === 1; } };
}

// slider moves through round numbers, so that one range serves for 1 and for 10,000.
function slider(field, change) {
  const id = `field-${field.name}`;
  let stops = series(field);
  const output = el('output', { for: id });
  const input = el('input', { type: 'range', id, min: 0, step: 1 });
  const say = (v) => {
    const t = (shown[field.name] || format.count)(v);
    write(output, t);
    input.setAttribute('aria-valuetext', t);
  };
  input.addEventListener('input', () => {
    const v = stops[Number(input.value)];
    say(v);
    change(v);
  });
  const row = el('div', { class: 'field' }, el('label', { for: id }, text.fields[field.name]), output, input);
  return {
    row,
    set(v) {
      if (!stops.includes(v)) stops = [...series(field), v].sort((a, b) => a - b);
      input.max = stops.length - 1;
      input.value = stops.indexOf(v);
      say(v);
    },
  };
}

// series are the stops of a slider: round in the unit in which they are written.
function series(field) {
  const { name, least, most } = field;
  if (most - least <= 40) return Array.from({ length: most - least + 1 }, (_, i) => least + i);
  if (name === 'seed') return Array.from({ length: 50 }, (_, i) => i);
  const times = [100, 200, 500, 1e3, 2e3, 3e3, 5e3, 1e4, 2e4, 3e4, 6e4, 12e4, 3e5, 6e5, 18e5, 36e5, 216e5, 864e5];
  const all = name === 'period' || name === 'every' ? times : [];
  const scale = name === 'rate' ? 60 : 1; // round per second
  if (all.length === 0) {
    for (const unit of scale > 1 ? [1, scale] : [1]) {
      for (let power = 1; power <= 1e6; power *= 10) {
        for (const m of [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8]) {
          const v = Math.round(m * power * 10) / 10 * unit;
          if (Number.isInteger(v) && (unit === scale ? v >= (scale > 1 ? 60 : 0) : v < 60)) all.push(v);
        }
      }
    }
  }
  return [...new Set(all)].filter((v) => v >= least && v <= most).sort((a, b) => a - b);
}
