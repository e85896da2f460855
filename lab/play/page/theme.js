// Light and dark: the system's choice, or the reader's.
import { el } from './dom.js';
import { text } from './strings.js';

const key = 'sluice-theme';

export function themeSwitch(onchange) {
  const select = el('select', { id: 'theme' }, ...Object.entries(text.themes).map(([v, t]) => el('option', { value: v }, t)));
  select.value = remembered();
  const apply = () => {
    document.documentElement.dataset.theme = select.value;
    try {
      localStorage.setItem(key, select.value);
    } catch { /* a browser that keeps nothing */ }
    onchange();
  };
  select.addEventListener('change', apply);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', onchange);
  document.documentElement.dataset.theme = select.value;
  return el('label', { class: 'theme', for: 'theme' }, el('span', {}, text.theme), select);
}

function remembered() {
  try {
    const t = localStorage.getItem(key);
    return t in text.themes ? t : 'auto';
  } catch {
    return 'auto';
  }
}
