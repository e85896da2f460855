// The card of a question: asked first, answered when its time has come or when the reader gives up.
import { el } from './dom.js';
import { text } from './strings.js';
import * as format from './format.js';

// question builds the card of a preset, or of free play. do: what its buttons do.
export function question(presets, current, changed, todo) {
  const i = presets.findIndex((p) => p.name === current);
  if (i < 0) return { root: el('section', { class: 'question own', 'aria-label': text.ownSetup }, el('p', {}, text.ownIntro)), reveal() {} };
  const words = text.presets[current];
  const answer = el('div', { class: 'answer', 'aria-live': 'polite' });
  const show = el('button', { type: 'button', class: 'quiet', onclick: todo.answer }, text.showAnswer);
  const next = el('button', { type: 'button', class: 'quiet', onclick: () => todo.open(presets[(i + 1) % presets.length].name) }, text.next);
  const again = el('button', { type: 'button', class: 'quiet', onclick: () => todo.open(current) }, text.backToQuestion);
  const root = el('section', { class: 'question', 'aria-label': words.title },
    el('div', { class: 'asked' },
      el('p', { class: 'count' }, text.question(i + 1, presets.length)),
      el('h2', {}, words.title), el('p', { class: 'ask' }, words.question)),
    el('div', { class: 'answered' },
      changed ? el('p', { class: 'changed' }, text.changed) : answer,
      el('div', { class: 'buttons' }, changed ? again : show, next)));
  return {
    root,
    reveal(frame) {
      if (changed || answer.childNodes.length) return;
      answer.append(el('p', {}, el('strong', {}, `${text.answer}. `), words.answer(named(frame))));
      show.hidden = true;
    },
  };
}

// named are the lanes' figures by name, formatted.
function named(frame) {
  const times = ['worstDelay', 'median', 'p99', 'worst'];
  return Object.fromEntries(frame.lanes.map((l) => [l.name, Object.fromEntries(
    Object.entries(l).filter(([, v]) => typeof v === 'number').map(([k, v]) => [k, times.includes(k) ? format.duration(v) : format.count(v)]))]));
}
