// The bar that runs the clock, and fires bursts and outages.
import { el, write } from './dom.js';
import { text } from './strings.js';
import * as format from './format.js';

const steps = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100];

// transport builds the bar. todo: what its buttons do.
export function transport(todo) {
  const button = (onclick, label, attributes = {}) => el('button', { type: 'button', onclick, ...attributes }, label);
  const run = button(todo.run, text.run, { class: 'main', id: 'run' });
  const back = button(todo.back, `‹ ${text.back}`, { title: text.backHint, id: 'back' });
  const step = button(todo.step, `${text.step} ›`, { title: text.stepHint, id: 'step' });
  const restart = button(todo.restart, text.restart, { id: 'restart' });
  const burst = button(todo.burst, '', { id: 'burst' });
  const redis = button(todo.redis, text.redisAway, { id: 'redis', class: 'redis' });
  const speedText = el('output', { for: 'speed' });
  const speed = el('input', { type: 'range', id: 'speed', min: 0, max: steps.length - 1, step: 1 });
  const clock = el('output', { class: 'clock', id: 'clock' });
  const state = el('span', { class: 'state-of-redis', role: 'status' });
  const said = el('span', { class: 'said', role: 'status' });
  let slowed = 1, tiny = false;

  const saySpeed = () => {
    const x = steps[Number(speed.value)];
    const s = slowed > 1 ? text.speedSlow(x, format.duration(x * 1e6 / slowed)) : text.speedValue(x);
    write(speedText, s);
    speed.setAttribute('aria-valuetext', s);
  };
  speed.addEventListener('input', () => {
    saySpeed();
    todo.speed(steps[Number(speed.value)]);
  });

  const root = el('section', { class: 'transport', 'aria-label': text.timeline },
    el('div', { class: 'group' }, run, back, step, restart),
    el('div', { class: 'group speed' }, el('label', { for: 'speed' }, text.speed), speed, speedText),
    el('div', { class: 'group' }, burst, redis, state),
    el('div', { class: 'group time' }, said, el('label', { for: 'clock' }, text.time), clock));
  return {
    root,
    // view fits the bar to a setup: slow is how much slower than real time it runs.
    view(values, slow, x) {
      slowed = slow || 1;
      tiny = slowed > 100;
      burst.hidden = slowed > 1;
      redis.hidden = state.hidden = slowed > 1 || values.view === 'ttl';
      write(burst, text.burst(format.count(values.size)));
      burst.title = text.burstHint(format.count(values.size));
      speed.value = steps.reduce((best, s, i) => (Math.abs(s - x) < Math.abs(steps[best] - x) ? i : best), 0);
      saySpeed();
    },
    running(on) {
      write(run, on ? text.pause : text.run);
      write(said, '');
    },
    show(frame) {
      write(clock, format.clock(frame.now, tiny));
      const up = frame.up !== false;
      write(redis, up ? text.redisAway : text.redisBack);
      write(state, up ? '' : text.redisIs.away);
      root.classList.toggle('away', !up);
    },
    say(s) { write(said, s); },
  };
}
