// A cell for each pod: its colour is the revision, its ring the readiness.
//
// A cell stays where it is. A pod that replaces another takes the place that the other has left, so that a rollout is
// seen as it goes through the cells.

import {compare, fill, h, mark, put, since} from './dom.js';

const states = {
  ready: 'ready', unready: 'not ready', pending: 'not running yet', failing: 'failing', succeeded: 'succeeded',
  terminating: 'terminating',
};

// brief returns the hash of a revision, as the server shortens that of pods.
export function brief(revision) {
  return (revision || '').slice((revision || '').lastIndexOf('-') + 1);
}

// Shades gives each revision a colour, and keeps it: 0 is the update revision.
export class Shades {
  constructor() {
    this.older = new Map();
  }

  of(revision, update) {
    this.older.delete(update); // which may have been seen before it was known as such
    if (update && revision === update) return 0;
    if (!this.older.has(revision)) {
      const used = [...this.older.values()];
      this.older.set(revision, [1, 2, 3, 4].find((n) => !used.includes(n)) || 1);
    }
    return this.older.get(revision);
  }
}

export function describe(pod, update) {
  const parts = [pod.n, pod.r === update ? 'updated' : 'revision ' + (pod.r || 'unknown'), states[pod.s] || pod.s];
  if (pod.l) parts.push(pod.l);
  return parts.join(', ');
}

export class PodGrid {
  // choose is called with the key of a pod that the user opens.
  constructor(shades, choose) {
    this.shades = shades;
    this.choose = choose;
    this.cells = new Map();
    this.places = []; // keys by place; null is free
    this.rows = new Map();
    this.update = '';
    this.group = 'none';
    this.chosen = '';
    this.current = ''; // the cell that Tab reaches
    this.grid = h('div', {class: 'pods', role: 'group'});
    this.readout = h('p', {class: 'readout'});
    this.node = h('div', {}, this.grid, this.readout);
    this.grid.addEventListener('keydown', (e) => this.move(e));
    for (const type of ['focusin', 'mouseover']) this.grid.addEventListener(type, (e) => this.tell(e.target));
    this.grid.addEventListener('click', (e) => {
      const key = e.target.dataset?.key;
      if (key) this.open(key);
    });
    this.tell(null);
  }

  // show brings the cells up to date.
  show(rows, update) {
    this.rows = rows;
    const shaded = this.update !== update;
    this.update = update;
    const had = new Set();
    this.places = this.places.map((key) => {
      if (key === null || !rows.has(key)) return null;
      had.add(key);
      return key;
    });
    let free = 0;
    for (const key of [...rows.keys()].filter((k) => !had.has(k)).sort(compare)) {
      while (free < this.places.length && this.places[free] !== null) free++;
      this.places[free] = key;
    }
    while (this.places.length && this.places.at(-1) === null) this.places.pop();
    for (const key of this.cells.keys()) if (!rows.has(key)) this.cells.delete(key);
    for (const [key, pod] of rows) this.cell(key, pod, shaded);
    if (!rows.has(this.current)) this.current = this.places.find((key) => key) || '';
    this.arrange();
    mark(this.grid, 'data-size', rows.size > 2000 ? 'small' : rows.size > 700 ? 'middle' : 'large');
    mark(this.grid, 'aria-label', rows.size + ' pods. Arrow keys move, Enter explains a pod.');
    for (const [key, cell] of this.cells) mark(cell, 'tabindex', key === this.current ? '0' : '-1');
  }

  cell(key, pod, shaded) {
    let cell = this.cells.get(key);
    if (cell && cell.pod === pod && !shaded) return;
    if (!cell) {
      cell = h('button', {type: 'button', class: 'pod', 'data-key': key});
      this.cells.set(key, cell);
    } else if (cell.pod.r !== pod.r) {
      cell.classList.remove('flash');
      void cell.offsetWidth; // begins the animation again
      cell.classList.add('flash');
    }
    cell.pod = pod;
    mark(cell, 'data-shade', String(this.shades.of(pod.r, this.update)));
    mark(cell, 'data-state', pod.s || 'failing');
    mark(cell, 'aria-label', describe(pod, this.update));
    if (key === this.chosen) mark(cell, 'aria-pressed', 'true');
  }

  // arrange puts the cells into their places or groups, and moves those alone that are elsewhere.
  arrange() {
    if (this.group === 'none') {
      const wanted = this.places.map((key, i) => key ? this.cells.get(key) : this.hole(i));
      order(this.grid, wanted);
      return;
    }
    const groups = new Map();
    for (const [key, pod] of this.rows) {
      const name = this.groupOf(pod);
      if (!groups.has(name)) groups.set(name, []);
      groups.get(name).push(key);
    }
    const wanted = [];
    for (const name of [...groups.keys()].sort(compare)) {
      const keys = groups.get(name).sort(compare);
      wanted.push(this.title(name, keys.length), ...keys.map((key) => this.cells.get(key)));
    }
    order(this.grid, wanted);
  }

  groupOf(pod) {
    if (this.group === 'node') return pod.o || 'not scheduled';
    if (this.group === 'revision') return pod.r === this.update ? 'update revision ' + pod.r : 'revision ' + (pod.r || 'unknown');
    return states[pod.s] || pod.s;
  }

  title(name, n) {
    this.titles ||= new Map();
    if (!this.titles.has(name)) this.titles.set(name, h('h3', {class: 'group'}));
    const title = this.titles.get(name);
    put(title, name + ' · ' + n);
    return title;
  }

  hole(i) {
    this.holes ||= [];
    return this.holes[i] ||= h('span', {class: 'hole'});
  }

  setGroup(group) {
    this.group = group;
    fill(this.grid);
    this.arrange();
  }

  open(key) {
    const was = this.cells.get(this.chosen);
    if (was) was.removeAttribute('aria-pressed');
    this.chosen = key;
    const cell = this.cells.get(key);
    if (cell) mark(cell, 'aria-pressed', 'true');
    this.choose(key);
  }

  focus() {
    this.cells.get(this.current)?.focus();
  }

  // move moves the focus by the arrow keys.
  move(e) {
    const all = [...this.grid.querySelectorAll('.pod')];
    const at = all.indexOf(document.activeElement);
    if (at < 0) return;
    let to = at;
    if (e.key === 'ArrowRight') to = Math.min(at + 1, all.length - 1);
    else if (e.key === 'ArrowLeft') to = Math.max(at - 1, 0);
    else if (e.key === 'Home') to = 0;
    else if (e.key === 'End') to = all.length - 1;
    else if (e.key === 'ArrowDown') to = below(all, at, 1);
    else if (e.key === 'ArrowUp') to = below(all, at, -1);
    else return;
    e.preventDefault();
    this.cells.get(this.current)?.setAttribute('tabindex', '-1');
    this.current = all[to].dataset.key;
    all[to].setAttribute('tabindex', '0');
    all[to].focus();
  }

  // tell shows what the cell is below the pointer or the focus.
  tell(target) {
    const pod = target?.pod;
    if (!pod) {
      if (!this.readout.textContent) put(this.readout, 'Point at a pod, or move with the arrow keys; Enter explains it.');
      return;
    }
    const parts = [describe(pod, this.update)];
    if (pod.t) parts.push('for ' + since(pod.t));
    if (pod.o) parts.push('node ' + pod.o);
    if (pod.k) parts.push(pod.k + ' restarts');
    if (pod.w) parts.push(pod.w);
    put(this.readout, parts.join(' · '));
  }
}

// below returns the cell in the next row that is nearest.
function below(all, at, direction) {
  const from = all[at];
  let best = at;
  let distance = Infinity;
  for (let i = at + direction; i >= 0 && i < all.length; i += direction) {
    const dy = (all[i].offsetTop - from.offsetTop) * direction;
    if (dy <= 0) continue;
    const d = dy * 1000 + Math.abs(all[i].offsetLeft - from.offsetLeft);
    if (d >= distance && dy * 1000 > distance) break;
    if (d < distance) [best, distance] = [i, d];
  }
  return best;
}

// order makes nodes the children of another, and moves those alone that are not in place. The focus stays.
function order(parent, nodes) {
  const focused = parent.contains(document.activeElement) ? document.activeElement : null;
  nodes.forEach((node, i) => {
    if (parent.children[i] !== node) parent.insertBefore(node, parent.children[i] || null);
  });
  while (parent.children.length > nodes.length) parent.lastChild.remove();
  if (focused && focused !== document.activeElement && parent.contains(focused)) focused.focus();
}
