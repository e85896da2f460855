// Elements, made in one line.

// el makes an element: el('button', {class: 'x', onclick: f}, 'text', child).
export function el(tag, attributes = {}, ...children) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) e.addEventListener(name.slice(2), value);
    else if (value === true) e.setAttribute(name, '');
    else if (value !== false && value != null) e.setAttribute(name, value);
  }
  e.append(...children.filter((c) => c != null));
  return e;
}

// write sets an element's text, if it is another: so that a screen reader hears of it once.
export function write(e, s) {
  if (e.textContent !== s) e.textContent = s;
}
