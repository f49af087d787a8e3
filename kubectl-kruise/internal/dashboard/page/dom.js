// Elements and texts. Everything that comes from the cluster becomes a text node or an attribute here, never markup.

// h returns an element with properties and children: elements, or texts.
export function h(tag, props, ...children) {
  return build(document.createElement(tag), props, children);
}

// svg is h for elements of a drawing.
export function svg(tag, props, ...children) {
  return build(document.createElementNS('http://www.w3.org/2000/svg', tag), props, children);
}

function build(node, props, children) {
  for (const [name, value] of Object.entries(props || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (name === 'vars') for (const [key, v] of Object.entries(value)) node.style.setProperty('--' + key, v);
    else node.setAttribute(name, value === true ? '' : value);
  }
  add(node, children);
  return node;
}

function add(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    node.append(child); // which makes a text node of a string
  }
}

// fill replaces the children of an element.
export function fill(node, ...children) {
  node.replaceChildren();
  add(node, children);
  return node;
}

// put gives an element a text, where it has another.
export function put(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// mark gives an element an attribute, where it has another value.
export function mark(node, name, value) {
  if (node.getAttribute(name) !== value) node.setAttribute(name, value);
}

// say has screen readers read a text aloud.
export function say(text) {
  put(document.getElementById('aloud'), text);
}

// many returns a number with its noun.
export function many(n, one, more) {
  return n + ' ' + (n === 1 ? one : more || one + 's');
}

// duration returns seconds as 45s, 3m 20s or 2h 5m.
export function duration(seconds) {
  const s = Math.max(Math.round(seconds), 0);
  if (s < 60) return s + 's';
  if (s < 3600) return Math.floor(s / 60) + 'm' + (s % 60 ? ' ' + (s % 60) + 's' : '');
  if (s < 86400) return Math.floor(s / 3600) + 'h' + (s % 3600 >= 60 ? ' ' + Math.floor((s % 3600) / 60) + 'm' : '');
  return Math.floor(s / 86400) + 'd';
}

// since returns how long ago a Unix time was.
export function since(unix) {
  return duration(Date.now() / 1000 - unix);
}

const byName = new Intl.Collator('en', {numeric: true});

// compare orders names, with numbers as numbers.
export function compare(a, b) {
  return byName.compare(a, b);
}

// notes returns what is missing of tables, and why.
export function notes(tables, names) {
  const found = names.map((name) => tables.get(name)).filter((t) => t && t.note);
  return found.length ? h('ul', {class: 'notes', 'aria-label': 'What is missing'}, found.map((t) => h('li', {}, t.note))) : null;
}

// bar returns a bar of segments {n, kind, label}, and reads as its label.
export function bar(total, segments, label) {
  const node = h('div', {class: 'bar', role: 'img', 'aria-label': label});
  for (const s of segments) {
    if (s.n > 0) node.append(h('span', {class: 'part', 'data-kind': s.kind, title: s.label, vars: {part: s.n / Math.max(total, 1)}}));
  }
  return node;
}

// pill returns a short state.
export function pill(kind, text) {
  return h('span', {class: 'pill', 'data-kind': kind}, text);
}

// command returns a command line to copy.
export function command(line) {
  const button = h('button', {type: 'button', class: 'quiet', 'aria-label': 'Copy: ' + line, onclick: async () => {
    try {
      await navigator.clipboard.writeText(line);
      put(button, 'Copied');
    } catch {
      put(button, 'Select it');
    }
  }}, 'Copy');
  return h('div', {class: 'command'}, h('code', {}, line), button);
}
