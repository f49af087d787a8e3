// All workloads, those whose rollout is not done first.

import {bar, compare, fill, h, many, notes, pill, put, say} from './dom.js';
import {follow, settled} from './feed.js';
import {stateOf} from './state.js';

const kinds = ['CloneSet', 'StatefulSet', 'DaemonSet', 'UnitedDeployment', 'SidecarSet', 'BroadcastJob',
  'Deployment.apps', 'StatefulSet.apps', 'DaemonSet.apps'];
const pageSize = 200;

export function open(main) {
  let tables = new Map();
  let shown = pageSize;
  let frame = 0;
  const search = h('input', {type: 'search', id: 'search', placeholder: 'name, namespace, kind or image', oninput: draw});
  const only = h('input', {type: 'checkbox', id: 'only', onchange: draw});
  const sum = h('p', {class: 'sum'}, 'Loading');
  const missing = h('div');
  const body = h('tbody');
  const more = h('button', {type: 'button', hidden: true, onclick: () => {
    shown += pageSize;
    draw();
  }}, 'Show more');
  const table = h('table', {class: 'list'},
    h('caption', {class: 'aloud'}, 'Workloads'),
    h('thead', {}, h('tr', {},
      h('th', {scope: 'col'}, 'Workload'), h('th', {scope: 'col', class: 'wide'}, 'Rollout'),
      h('th', {scope: 'col', class: 'number'}, 'Updated'), h('th', {scope: 'col', class: 'number'}, 'Ready'),
      h('th', {scope: 'col', class: 'number'}, 'Pods'), h('th', {scope: 'col'}, 'State'), h('th', {scope: 'col'}, 'Images'))),
    body);
  fill(main,
    h('div', {class: 'head'}, h('h1', {}, 'Workloads'), sum,
      h('div', {class: 'tools'},
        h('label', {for: 'search'}, 'Find'), search,
        h('label', {class: 'check'}, only, 'In progress only'))),
    missing, table, more);

  const rows = new Map(); // by key: the element and the row that it shows

  function draw() {
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(render);
  }

  function render() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const all = kinds.flatMap((kind) => [...(tables.get(kind)?.rows.entries() || [])].map(([key, row]) => [kind + '/' + key, row]));
    const busy = all.filter(([, row]) => !row.done && !row.error).length;
    const found = all.filter(([, row]) => (!only.checked || !row.done) && words.every((w) => text(row).includes(w)));
    found.sort(([, a], [, b]) => Boolean(a.done) - Boolean(b.done) ||
      compare(a.namespace || '', b.namespace || '') || compare(a.name, b.name));
    const page = found.slice(0, shown);
    const wanted = page.map(([key, row]) => {
      const had = rows.get(key);
      if (had && had.row === row) return had.node;
      const node = had ? had.node : h('tr', {});
      refill(node, row);
      rows.set(key, {node, row});
      return node;
    });
    wanted.forEach((node, i) => {
      if (body.children[i] !== node) body.insertBefore(node, body.children[i] || null);
    });
    while (body.children.length > wanted.length) body.lastChild.remove();
    if (rows.size > 4 * shown) rows.clear();
    more.hidden = found.length <= shown;
    put(more, 'Show more of ' + many(found.length, 'workload'));
    const ready = settled(tables, kinds);
    put(sum, ready ? many(all.length, 'workload') + ', ' + (busy ? busy + ' in progress' : 'none in progress') : 'Loading');
    if (ready) say(sum.textContent);
    table.hidden = ready && all.length === 0;
    fill(missing, notes(tables, kinds), table.hidden && h('p', {class: 'empty'}, 'No workload of apps.kruise.io here, and none of apps with a rollout in place.'));
  }

  function refill(node, row) {
    if (row.error) {
      fill(node, h('td', {}, row.name), h('td', {colspan: 6, class: 'problem'}, row.error));
      return;
    }
    const focused = node.contains(document.activeElement);
    const state = stateOf(row);
    const path = ['rollout', row.kind, row.namespace || '-', row.name].map(encodeURIComponent).join('/');
    const link = h('a', {href: '#/' + path}, row.name);
    fill(node,
      h('td', {}, link, h('span', {class: 'under'}, row.kind + (row.namespace ? ' · ' + row.namespace : ''))),
      h('td', {class: 'wide'}, bar(row.replicas, [
        {n: Math.min(row.updated, row.replicas), kind: 'new', label: row.updated + ' updated'},
        {n: Math.max(row.replicas - row.updated, 0), kind: 'old', label: (row.replicas - row.updated) + ' at an older revision'},
      ], row.updated + ' of ' + row.replicas + ' pods updated')),
      h('td', {class: 'number'}, String(row.updated)),
      h('td', {class: 'number', 'data-kind': row.ready < row.replicas ? 'warn' : ''}, String(row.ready)),
      h('td', {class: 'number'}, String(row.replicas)),
      h('td', {}, pill(state.kind, state.text)),
      h('td', {class: 'images'}, (row.images || []).slice(0, 2).map((image) => h('code', {}, image.split(' ').pop()))));
    if (focused) link.focus();
  }

  const stop = follow({view: 'workloads'}, (now) => {
    tables = now;
    draw();
  });
  return () => {
    cancelAnimationFrame(frame);
    stop();
  };
}

function text(row) {
  return [row.name, row.namespace, row.kind, ...(row.images || [])].join(' ').toLowerCase();
}
