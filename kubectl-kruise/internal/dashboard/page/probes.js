// PodProbeMarkers, and what the nodes find in the pods.

import {bar, compare, fill, h, many, notes, pill, since} from './dom.js';
import {follow, settled} from './feed.js';

const names = ['PodProbeMarker', 'NodePodProbe'];
const most = 12; // pods that are listed for a probe

export function open(main) {
  const sum = h('p', {class: 'sum'}, 'Loading');
  const missing = h('div');
  const markers = h('div', {class: 'stack'});
  let frame = 0;
  fill(main, h('div', {class: 'head'}, h('h1', {}, 'Probes'), sum), missing, markers);

  function render(tables) {
    const all = [...(tables.get('PodProbeMarker')?.rows.values() || [])];
    all.sort((a, b) => compare(a.namespace || '', b.namespace || '') || compare(a.name, b.name));
    const ready = settled(tables, names);
    fill(sum, ready ? many(all.length, 'PodProbeMarker') : 'Loading');
    fill(missing, notes(tables, names), ready && !all.length && h('p', {class: 'empty'}, 'No PodProbeMarker here.'));
    const states = byProbe(tables.get('NodePodProbe')?.rows || new Map());
    fill(markers, all.map((m) => card(m, states)));
  }

  const stop = follow({view: 'probes'}, (tables) => {
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(() => render(tables));
  });
  return () => {
    cancelAnimationFrame(frame);
    stop();
  };
}

function byProbe(rows) {
  const all = new Map();
  for (const node of rows.values()) {
    for (const state of node.states || []) {
      const key = state.namespace + '/' + state.probe;
      if (!all.has(key)) all.set(key, []);
      all.get(key).push({node: node.name, ...state});
    }
  }
  return all;
}

function card(m, states) {
  if (m.error) return h('section', {class: 'card'}, h('h2', {}, m.name), h('p', {class: 'problem'}, m.error));
  return h('section', {class: 'card', 'aria-label': 'PodProbeMarker ' + m.name},
    h('div', {class: 'cardhead'}, h('h2', {}, m.name), h('span', {class: 'under'}, `${m.namespace} · ${m.selector} · ${many(m.matched, 'pod')}`)),
    m.probes.map((p) => probe(p, states.get(`${m.namespace}/${m.name}#${p.name}`) || [])));
}

function probe(p, list) {
  const n = (state) => list.filter((s) => s.state === state).length;
  const [good, bad, unknown] = [n('Succeeded'), n('Failed'), n('Unknown')];
  const failed = list.filter((s) => s.state === 'Failed').sort((a, b) => (a.since || 0) - (b.since || 0) || compare(a.pod, b.pod));
  return h('div', {class: 'probe'},
    h('div', {class: 'cardhead'}, h('h3', {}, p.name), h('span', {class: 'under'},
      [`container ${p.container}`, p.condition && `condition ${p.condition}`, p.marks].filter(Boolean).join(' · ')),
    bad ? pill('bad', many(bad, 'pod fails', 'pods fail')) : good ? pill('good', 'Succeeds') : pill('', 'No outcome yet')),
    bar(list.length, [{n: good, kind: 'good', label: good + ' succeeded'}, {n: bad, kind: 'bad', label: bad + ' failed'}],
      `${good} succeeded, ${bad} failed, ${unknown} unknown`),
    h('p', {class: 'under'}, `${good} succeeded, ${bad} failed, ${unknown} unknown`),
    failed.length > 0 && h('ul', {class: 'lines'}, failed.slice(0, most).map((s) => h('li', {}, h('b', {}, s.pod),
      ` on ${s.node}` + (s.since ? `, for ${since(s.since)}` : ''), h('span', {class: 'under'}, s.message))),
    failed.length > most && h('li', {class: 'sum'}, `and ${failed.length - most} more`)));
}
