// The page: one experiment at a time, its clock, and what the reader does to it.
import { start } from './engine.js';
import { el, write } from './dom.js';
import { text } from './strings.js';
import * as format from './format.js';
import { forgetInk } from './ink.js';
import { controls } from './controls.js';
import { lanes } from './lanes.js';
import { decision } from './decision.js';
import { question } from './question.js';
import { legend } from './legend.js';
import { themeSwitch } from './theme.js';
import { transport } from './transport.js';

const app = document.getElementById('app');
app.append(el('p', { class: 'loading', role: 'status' }, text.loading));
start().then(page, (err) => {
  app.replaceChildren(el('p', { class: 'loading', role: 'alert' }, text.failed(err.message)));
});

// slow is how much slower than real time the views run whose whole story takes ms.
const slow = { race: 1000, block: 10 };

function page(engine) {
  const presets = engine.presets();
  let setup; // as engine.parse returns it
  let preset = ''; // the question's name
  let changed = false; // the reader moved something since
  let running = false, answered = false;
  let speed = 1, before = 0, rest = 0; // rest: µs not yet run, below 1
  let trips = [], cards, card, frame;

  const tellTheme = () => {
    forgetInk();
    if (cards) show();
  };
  const menu = el('select', { id: 'question', onchange: () => open(menu.value) },
    el('option', { value: '' }, text.ownSetup),
    ...presets.map((p, i) => el('option', { value: p.name }, `${i + 1}. ${text.presets[p.name].title}`)));
  const copy = el('button', { type: 'button', class: 'quiet', onclick: copyLink }, text.copyLink);
  const form = controls(engine.fields(), move);
  const bar = transport({
    run: () => run(!running), step, back, restart, burst, redis,
    speed: (x) => { speed = x; },
  });
  const asked = el('div'), stage = el('div', { class: 'stage' }), signs = el('div');
  const panel = el('section', { class: 'panel', 'aria-label': text.decision, 'aria-live': 'polite' });
  const fault = el('p', { class: 'fault', role: 'alert' });
  app.replaceChildren(
    el('header', { class: 'top' },
      el('div', { class: 'brand' }, el('img', { src: 'icon.svg', alt: '', width: 28, height: 28 }), el('h1', {}, text.title), el('span', { class: 'subtitle' }, text.subtitle)),
      el('div', { class: 'tools' }, el('label', { for: 'question' }, el('span', {}, text.questions), menu), copy, themeSwitch(tellTheme))),
    el('main', {},
      asked, bar.root, fault,
      el('div', { class: 'columns' }, el('details', { class: 'setup', open: true }, el('summary', {}, text.controls), form.form),
        el('div', { class: 'shown' }, signs, stage, panel))),
    el('footer', {}, el('p', {}, text.keys, ' ', el('a', { href: 'licences.txt' }, text.licences))));
  if (matchMedia('(max-width: 760px)').matches) app.querySelector('details.setup').open = false;

  // load begins what the address says: a question, or a setup.
  function load() {
    const hash = decodeURIComponent(location.hash.slice(1));
    const found = presets.find((p) => `question=${p.name}` === hash);
    begin(found ? found.setup : hash, found ? found.name : '');
  }

  function open(name) {
    const p = presets.find((q) => q.name === name);
    begin(p ? p.setup : '', name);
  }

  // begin opens an experiment at time 0, at rest.
  function begin(setupText, name, keep = false) {
    let parsed = engine.parse(setupText);
    write(fault, parsed.error);
    if (parsed.error) parsed = engine.parse('');
    setup = parsed;
    if (!keep) {
      preset = parsed.error ? '' : name;
      changed = false;
      speed = preset ? text.presets[preset].speed : 1;
    }
    engine.open(setup.text);
    answered = false;
    rest = 0;
    trips = engine.trips();
    bar.view(setup.values, slow[setup.values.view], speed);
    frame = engine.frame(null);
    const words = frame.lanes.map((l) => l.words);
    trips.forEach((lane, i) => lane.forEach((t) => { t.words = words[i]; }));
    cards = lanes(frame, setup, trips);
    stage.replaceChildren(cards.root);
    signs.replaceChildren(legend(setup.values));
    ask();
    form.show(setup.values);
    address();
    run(false);
  }

  function ask() {
    card = question(presets, preset, changed, { answer, open });
    asked.replaceChildren(card.root);
    menu.value = preset;
  }

  function address() {
    const hash = preset && !changed ? `question=${preset}` : setup.text;
    history.replaceState(null, '', hash ? `#${hash}` : location.pathname + location.search);
  }

  // typical are the values of a view's own question: what another view's would make of it is rarely worth a look.
  function typical(view) {
    const p = presets.find((q) => engine.parse(q.setup).values.view === view && view !== 'algorithms');
    return engine.parse(p ? p.setup : '').values;
  }

  // move is what the reader does to the setup. What is compared, or a time 0, begins anew; the rest goes on.
  function move(name, value) {
    const values = { ...(name === 'view' ? typical(value) : setup.values), [name]: value };
    const fresh = name === 'view' || name === 'algorithm' || trips.length > 0 || frame.now === 0 && frame.decided === 0;
    if (name === 'period' && preset && !changed) Object.assign(values, { span: 0, window: 0 });
    const to = Object.entries(values).map(([k, v]) => `${k}=${v}`).join('&');
    const parsed = engine.parse(to);
    write(fault, parsed.error);
    if (parsed.error) return;
    if (!changed) {
      changed = true;
      ask();
    }
    if (fresh) {
      const was = running;
      begin(parsed.text, preset, true);
      run(was);
      return;
    }
    const err = engine.change(to);
    write(fault, err);
    if (err) return;
    setup = { ...parsed, window: setup.window, span: setup.span };
    bar.view(setup.values, slow[setup.values.view], speed);
    form.show(setup.values);
    address();
    show();
  }

  const end = () => (preset && !changed ? presets.find((p) => p.name === preset).end * 1e3 : Infinity);

  // advance runs so many µs, but not past the moment at which the question can be answered.
  function advance(us) {
    const left = answered ? Infinity : end() - frame.now;
    engine.advance(Math.max(0, Math.min(us, left)));
    frame = engine.frame(cards.bytes);
    const over = frame.end !== undefined && frame.now >= frame.end;
    if (!answered && us >= left || over) {
      if (!answered && (us >= left || over)) reveal();
      return false;
    }
    return true;
  }

  function reveal() {
    answered = true;
    card.reveal(frame);
  }

  function answer() {
    if (frame.now > end()) begin(setup.text, preset);
    advance(end() - frame.now);
    if (!answered) reveal();
    run(false);
  }

  function run(on) {
    running = on;
    if (on && frame.end !== undefined && frame.now >= frame.end) restart();
    running = on;
    bar.running(on);
    if (on) {
      before = performance.now();
      requestAnimationFrame(tick);
    }
    show();
  }

  function tick(at) {
    if (!running) return;
    const us = Math.min(Math.max(at - before, 0), 100) * 1e3 * speed / (slow[setup.values.view] || 1) + rest;
    before = Math.max(at, before);
    rest = us - Math.floor(us);
    if (!advance(Math.floor(us))) {
      run(false);
      return;
    }
    show();
    requestAnimationFrame(tick);
  }

  function step() {
    run(false);
    const went = engine.step();
    show();
    if (!went) bar.say(text.noMore);
  }

  function back() {
    run(false);
    const went = engine.back();
    show();
    if (!went) bar.say(text.atStart);
  }

  function restart() {
    begin(setup.text, preset, true);
  }

  function burst() {
    if (trips.length) return;
    engine.burst(setup.values.size);
    if (!running) engine.advance(0);
    show();
  }

  function redis() {
    if (trips.length) return;
    engine.redis(!frame.up);
    show();
  }

  // show draws the moment.
  function show() {
    frame = engine.frame(cards.bytes);
    cards.show(frame, !running);
    bar.show(frame);
    panel.replaceChildren(el('h2', {}, text.decision),
      ...(running ? [el('p', { class: 'hint' }, text.decisionHint)] : decision(frame, trips)));
  }

  async function copyLink() {
    try {
      await navigator.clipboard.writeText(location.href);
      write(copy, text.copied);
    } catch {
      write(copy, text.copyFailed);
    }
    setTimeout(() => write(copy, text.copyLink), 2000);
  }

  const press = { ' ': () => run(!running), ArrowRight: step, ArrowLeft: back, b: burst, r: redis, 0: restart };
  addEventListener('keydown', (e) => {
    const busy = e.target.closest?.('input, select, textarea, button, summary, a');
    if (busy && !(e.target.tagName === 'BUTTON' && e.key !== ' ') || e.ctrlKey || e.metaKey || e.altKey || !press[e.key]) return;
    e.preventDefault();
    press[e.key]();
  });
  addEventListener('hashchange', load);
  addEventListener('resize', () => show());
  load();
  document.documentElement.dataset.ready = 'true';
}
