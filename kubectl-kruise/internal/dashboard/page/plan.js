// What a manifest does before it is applied.

import {bar, duration, fill, h, many, pill, say} from './dom.js';
import {post} from './feed.js';
import {chart} from './chart.js';

const severities = {
  Harmless: ['good', 'Restarts nothing'], Restarts: ['info', 'Restarts containers in place'],
  Recreates: ['warn', 'Recreates or deletes pods'], Stuck: ['bad', 'Does not complete'],
};
const fates = [
  ['Blocked', 'bad', 'blocked'], ['Recreated', 'warn', 'recreated'], ['Deleted', 'warn', 'deleted'], ['InPlace', 'new', 'in place'],
  ['Created', 'good', 'created'], ['Kept', 'old', 'kept'], ['Unchanged', 'old', 'unchanged'],
];
const pageSize = 100;
let kept = ''; // the manifest, when the user comes back to the view

export function open(main) {
  const manifest = h('textarea', {id: 'manifest', rows: 11, spellcheck: 'false', placeholder: 'apiVersion: apps.kruise.io/v1beta1\nkind: CloneSet\n…',
    oninput: () => { kept = manifest.value; }, onkeydown: (e) => {
      if (e.key === 'Enter' && (e.ctrlKey || e.metaKey)) run();
    }});
  manifest.value = kept;
  const file = h('input', {type: 'file', id: 'file', accept: '.yaml,.yml,.json', onchange: async () => {
    if (file.files[0]) kept = manifest.value = await file.files[0].text();
  }});
  const go = h('button', {type: 'button', class: 'main', onclick: run}, 'Plan');
  const status = h('span', {class: 'sum', role: 'status'}, 'Ctrl-Enter plans. Nothing is written.');
  const results = h('div', {class: 'stack'});
  fill(main,
    h('div', {class: 'head'}, h('h1', {}, 'Plan'), h('p', {class: 'sum'}, 'What applying a manifest does to each pod, by the production reconciler over the live objects.')),
    h('section', {class: 'card', 'aria-label': 'Manifest'},
      h('label', {for: 'manifest', class: 'block'}, 'Manifest'), manifest,
      h('div', {class: 'planbar'}, go, h('label', {for: 'file'}, 'or from a file'), file, status)),
    results);

  async function run() {
    go.disabled = true;
    fill(status, 'Computing');
    try {
      const {plans} = await post('api/plan', {manifest: manifest.value});
      fill(results, plans.map(show));
      fill(status, 'Done. Nothing was written.');
      say(plans.map((p) => p.error || `${p.kind} ${p.name}: ${severities[p.forecast.severity][1]}, ${many(p.forecast.pods.length, 'pod')}`).join('. '));
    } catch (err) {
      fill(results, h('p', {class: 'empty problem', role: 'alert'}, err.message));
      fill(status, '');
    }
    go.disabled = false;
  }
}

function show(p) {
  const label = {class: 'card', 'aria-label': `Plan of ${p.kind} ${p.name}`};
  if (p.error) return h('section', label, h('h2', {}, `${p.kind} ${p.name}`), h('p', {class: 'problem'}, p.error));
  const f = p.forecast;
  const b = f.bounds;
  const [kind, text] = severities[f.severity] || ['', f.severity];
  const count = (fate) => f.pods.filter((pod) => pod.fate === fate).length;
  const parts = fates.map(([fate, color, word]) => ({n: count(fate), kind: color, label: `${count(fate)} ${word}`})).filter((s) => s.n);
  const largest = Math.max(0, ...f.batches.map((batch) => batch.pods.length));
  const figure = (name, value, under) => h('div', {class: 'figure'}, h('dt', {}, name), h('dd', {}, h('b', {}, value), h('span', {}, under)));
  return h('section', label,
    h('div', {class: 'cardhead'}, h('h2', {}, `${f.kind} ${f.namespace ? f.namespace + '/' : ''}${f.name}`), pill(kind, text),
      h('code', {class: 'sum'}, f.from && f.from !== f.to ? `${f.from} → ${f.to}` : f.to || '')),
    p.warnings && h('p', {class: 'problem'}, p.warnings),
    bar(f.pods.length, parts, parts.map((s) => s.label).join(', ')),
    h('ul', {class: 'legend fates'}, parts.map((s) => h('li', {'data-kind': s.kind}, s.label))),
    h('div', {class: 'planrow'},
      h('div', {}, h('dl', {class: 'figures'},
        figure('Takes about', duration(f.duration || 0), f.pace?.assumed?.length ? 'in part assumed' : 'by the pace of these pods'),
        figure('Batches', String(f.batches.length), largest ? `of up to ${many(largest, 'pod')}` : 'no pod is touched'),
        figure('Stay available', `${b.minAvailable} of ${b.replicas}`, `maxUnavailable ${b.maxUnavailable}` +
          (b.maxSurge ? `, maxSurge ${b.maxSurge}` : '') + (b.partition ? `, partition ${b.partition}` : ''))),
      cells(f)),
      f.timeline.length > 1 && h('div', {class: 'time'}, chart({
        lines: [
          {kind: 'available', points: f.timeline.map((m) => [m.at, m.available])},
          {kind: 'updated', points: f.timeline.map((m) => [m.at, m.updated])},
        ], bound: b.minAvailable, total: b.replicas,
        label: `Available and updated pods over ${duration(f.duration || 0)}; at least ${Math.min(...f.timeline.map((m) => m.available))} are available`,
      }), h('ul', {class: 'legend'}, h('li', {'data-line': 'available'}, 'available'), h('li', {'data-line': 'updated'}, 'updated'),
        h('li', {'data-line': 'bound'}, 'least available')))),
    f.incomplete && h('ul', {class: 'lines problem'}, (f.notes || []).map((n) => h('li', {}, [n.object, n.text].filter(Boolean).join(': ')))),
    pods(f));
}

// cells draws the pods in the order of their batches.
function cells(f) {
  const words = Object.fromEntries(fates.map(([fate, color, word]) => [fate, {color, word}]));
  const list = f.pods.map((pod, i) => [pod, i]).sort(([a, i], [b, j]) => (a.batch || Infinity) - (b.batch || Infinity) || i - j);
  return h('div', {class: 'pods nodes', role: 'img', 'data-size': list.length > 2000 ? 'small' : list.length > 500 ? 'middle' : 'large',
    'aria-label': `The fates of ${many(list.length, 'pod')}, in the order of their batches`},
  list.slice(0, 5000).map(([pod]) => h('span', {class: 'fate', 'data-kind': words[pod.fate]?.color || '',
    'data-edge': pod.batch && pod.batch % 2 === 0 ? 'even' : '',
    title: `${pod.name}: ${words[pod.fate]?.word || pod.fate}` + (pod.batch ? `, batch ${pod.batch}` : '')})));
}

function pods(f) {
  let shown = pageSize;
  const body = h('tbody');
  const more = h('button', {type: 'button', onclick: () => {
    shown += 5 * pageSize;
    draw();
  }}, `Show more of ${f.pods.length} pods`);
  const words = Object.fromEntries(fates.map(([fate, , word]) => [fate, word]));
  function draw() {
    fill(body, f.pods.slice(0, shown).map((pod) => h('tr', {},
      h('td', {}, h('code', {}, pod.name)), h('td', {}, words[pod.fate] || pod.fate),
      h('td', {class: 'number'}, pod.batch ? String(pod.batch) : '–'), h('td', {}, detail(pod)))));
    more.hidden = f.pods.length <= shown;
  }
  draw();
  return f.pods.length > 0 && h('details', {open: f.pods.length <= 20}, h('summary', {}, `Fate of each pod (${f.pods.length})`),
    h('table', {class: 'list plain'}, h('caption', {class: 'aloud'}, 'Fate of each pod'), h('thead', {}, h('tr', {},
      h('th', {scope: 'col'}, 'Pod'), h('th', {scope: 'col'}, 'Fate'), h('th', {scope: 'col', class: 'number'}, 'Batch'),
      h('th', {scope: 'col'}, 'Detail'))), body), more);
}

function detail(pod) {
  const parts = [];
  if (pod.containers?.length) {
    parts.push('restarts ' + pod.containers.map((c) => pod.images?.[c] ? `${c} (${pod.images[c]})` : c).join(', '));
  } else if (pod.fate === 'InPlace') parts.push('restarts no container');
  if (pod.paths?.length) parts.push('changes ' + pod.paths.join(', '));
  else if (pod.text) parts.push(pod.text);
  if (pod.hooks?.length) parts.push('waits for hook ' + pod.hooks.join(', '));
  return parts.join('; ');
}
