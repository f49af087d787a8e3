// Pull jobs, and how far each node is.

import {bar, compare, duration, fill, h, many, mark, notes, pill, since} from './dom.js';
import {follow, settled} from './feed.js';

const most = 30; // jobs that are shown with their nodes
const names = ['ImagePullJob', 'NodeImage'];

export function open(main) {
  const sum = h('p', {class: 'sum'}, 'Loading');
  const missing = h('div');
  const jobs = h('div', {class: 'stack'});
  const cards = new Map();
  let frame = 0;
  fill(main, h('div', {class: 'head'}, h('h1', {}, 'Pull jobs'), sum), missing, jobs);

  function render(tables) {
    const all = [...(tables.get('ImagePullJob')?.rows || [])];
    all.sort(([, a], [, b]) => Boolean(a.completed) - Boolean(b.completed) || b.created - a.created || compare(a.name, b.name));
    const ready = settled(tables, names);
    const busy = all.filter(([, job]) => !job.completed && !job.error).length;
    fill(sum, ready ? many(all.length, 'job') + (busy ? `, ${busy} in progress` : '') : 'Loading');
    fill(missing, notes(tables, names), ready && !all.length && h('p', {class: 'empty'}, 'No ImagePullJob here. ',
      h('code', {}, 'kubectl kruise pull IMAGE'), ' pulls an image before it is needed.'));
    const nodes = byImage(tables.get('NodeImage')?.rows || new Map());
    const wanted = all.slice(0, most).map(([key, job]) => {
      let card = cards.get(key);
      if (!card) cards.set(key, card = newCard());
      card.show(job, nodes.get(job.ref) || []);
      return card.node;
    });
    wanted.forEach((node, i) => {
      if (jobs.children[i] !== node) jobs.insertBefore(node, jobs.children[i] || null);
    });
    while (jobs.children.length > wanted.length) jobs.lastChild.remove();
  }

  const stop = follow({view: 'pulls'}, (tables) => {
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(() => render(tables));
  });
  return () => {
    cancelAnimationFrame(frame);
    stop();
  };
}

// byImage returns what the nodes have of each image.
function byImage(rows) {
  const all = new Map();
  for (const node of rows.values()) {
    for (const pull of node.pulls || []) {
      if (!all.has(pull.ref)) all.set(pull.ref, []);
      all.get(pull.ref).push({name: node.name, ...pull});
    }
  }
  for (const list of all.values()) list.sort((a, b) => compare(a.name, b.name));
  return all;
}

function newCard() {
  const head = h('div', {class: 'cardhead'});
  const progress = h('div');
  const grid = h('div', {class: 'pods nodes', role: 'img'});
  const failures = h('div');
  const cells = new Map();
  const node = h('section', {class: 'card'}, head, progress, grid, failures);
  return {node, show};

  function show(job, nodes) {
    if (job.error) {
      fill(head, h('h2', {}, job.name), h('span', {class: 'problem'}, job.error));
      return;
    }
    mark(node, 'aria-label', 'Pull of ' + job.image);
    const state = job.failed ? pill('bad', many(job.failed, 'node') + ' failed') :
      job.completed ? pill('good', 'Complete') : pill('info', 'In progress');
    const waiting = Math.max(job.desired - job.succeeded - job.active - job.failed, 0);
    fill(head, h('h2', {}, h('code', {class: 'name'}, job.image)), state,
      h('span', {class: 'sum'}, `${job.name} · ${job.namespace} · ` + (job.completed ?
        `took ${duration(job.completed - (job.started || job.created))}` : `since ${since(job.started || job.created)}`)));
    const label = `${job.succeeded} of ${many(job.desired, 'node')} done, ${job.active} pulling, ${waiting} waiting, ${job.failed} failed`;
    fill(progress, bar(job.desired, [
      {n: job.succeeded, kind: 'good', label: job.succeeded + ' done'}, {n: job.active, kind: 'new', label: job.active + ' pulling'},
      {n: job.failed, kind: 'bad', label: job.failed + ' failed'},
    ], label), h('p', {class: 'under'}, label));
    mark(grid, 'aria-label', `${many(nodes.length, 'node')}: ` + ['Succeeded', 'Pulling', 'Waiting', 'Failed'].map((phase) =>
      `${nodes.filter((n) => n.phase === phase).length} ${phase}`).join(', '));
    grid.hidden = !nodes.length;
    mark(grid, 'data-size', nodes.length > 1500 ? 'small' : nodes.length > 400 ? 'middle' : 'large');
    const wanted = nodes.map((n) => {
      let cell = cells.get(n.name);
      if (!cell) cells.set(n.name, cell = h('span', {class: 'node'}));
      mark(cell, 'data-phase', n.phase);
      mark(cell, 'title', `${n.name}: ${n.phase}` + (n.phase === 'Pulling' ? ` ${n.progress || 0} %` : '') + (n.message ? `: ${n.message}` : ''));
      cell.style.setProperty('--done', n.phase === 'Succeeded' ? '100%' : Math.min(Math.max(n.progress || 0, 0), 100) + '%');
      return cell;
    });
    for (let i = wanted.length; i < Math.min(job.desired, 5000); i++) { // nodes that the job has not reached
      const name = 'waiting ' + i;
      if (!cells.has(name)) cells.set(name, h('span', {class: 'hole'}));
      wanted.push(cells.get(name));
    }
    wanted.forEach((cell, i) => {
      if (grid.children[i] !== cell) grid.insertBefore(cell, grid.children[i] || null);
    });
    while (grid.children.length > wanted.length) grid.lastChild.remove();
    const failed = nodes.filter((n) => n.phase === 'Failed');
    fill(failures, failed.length > 0 && h('ul', {class: 'lines failures'}, failed.slice(0, 10).map((n) =>
      h('li', {}, h('b', {}, n.name), ' ', n.message || 'failed')),
    failed.length > 10 && h('li', {class: 'sum'}, `and ${failed.length - 10} more`)),
    job.message && h('p', {class: 'under'}, job.message));
  }
}
