// What the signs mean, drawn as the charts draw them.
import { el } from './dom.js';
import { text } from './strings.js';

export function legend(values) {
  const l = text.legend;
  const items = values.view === 'race' ? [['read', l.read], ['dot', l.allowedTrip], ['ring', l.deniedTrip], ['cross', l.conflict]]
    : values.view === 'block' ? [['up', l.latency], ['hatch', l.slow]]
      : [['up', l.allowed], ['down', l.denied],
        ...(values.view === 'algorithms' || values.algorithm === 'leaky_bucket' ? [['striped', l.delayed], ['diamond', l.acting]] : []),
        ...(values.view === 'ttl' ? [] : [['hatch', l.away]])];
  return el('ul', { class: 'legend', 'aria-label': l.title }, ...items.map(([sign, words]) => el('li', {}, el('i', { class: `sign ${sign}`, 'aria-hidden': 'true' }), words)));
}
