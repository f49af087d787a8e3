// PodUnavailableBudgets: how much room each has.

import {bar, compare, fill, h, many, notes, pill} from './dom.js';
import {follow, settled} from './feed.js';

export function open(main) {
  const sum = h('p', {class: 'sum'}, 'Loading');
  const missing = h('div');
  const body = h('tbody');
  const table = h('table', {class: 'list'},
    h('caption', {class: 'aloud'}, 'PodUnavailableBudgets'),
    h('thead', {}, h('tr', {}, h('th', {scope: 'col'}, 'Budget'), h('th', {scope: 'col'}, 'Guards'),
      h('th', {scope: 'col', class: 'wide'}, 'Available'), h('th', {scope: 'col', class: 'number'}, 'Wanted'),
      h('th', {scope: 'col', class: 'number'}, 'Pods'), h('th', {scope: 'col'}, 'Room'), h('th', {scope: 'col'}, 'Taken by'))),
    body);
  fill(main, h('div', {class: 'head'}, h('h1', {}, 'Budgets'), sum), missing, table);
  return follow({view: 'budgets'}, (tables) => {
    const rows = [...(tables.get('PodUnavailableBudget')?.rows.values() || [])];
    rows.sort((a, b) => Math.sign(a.allowed || 0) - Math.sign(b.allowed || 0) ||
      compare(a.namespace || '', b.namespace || '') || compare(a.name, b.name));
    const ready = settled(tables, ['PodUnavailableBudget']);
    const full = rows.filter((b) => !b.error && b.allowed <= 0).length;
    fill(sum, ready ? many(rows.length, 'budget') + (full ? `, ${full} without room` : '') : 'Loading');
    table.hidden = ready && !rows.length;
    fill(missing, notes(tables, ['PodUnavailableBudget']),
      table.hidden && h('p', {class: 'empty'}, 'No PodUnavailableBudget here.'));
    fill(body, rows.map(row));
  });
}

function row(b) {
  if (b.error) return h('tr', {}, h('td', {}, b.name), h('td', {colspan: 6, class: 'problem'}, b.error));
  const taken = [...(b.unavailable || []), ...(b.disrupted || [])];
  return h('tr', {},
    h('td', {}, h('b', {}, b.name), h('span', {class: 'under'}, b.namespace)),
    h('td', {}, b.target || 'nothing', h('span', {class: 'under'}, [b.bound, b.operations].filter(Boolean).join(' · '))),
    h('td', {class: 'wide'}, bar(b.total, [
      {n: Math.min(b.available, b.total), kind: b.available < b.desired ? 'bad' : 'good', label: b.available + ' available'},
    ], `${b.available} of ${b.total} pods available, ${b.desired} wanted`), h('span', {class: 'under'}, `${b.available} available`)),
    h('td', {class: 'number'}, String(b.desired)), h('td', {class: 'number'}, String(b.total)),
    h('td', {}, b.allowed > 0 ? pill('good', 'for ' + many(b.allowed, 'pod')) : pill('warn', 'none')),
    h('td', {}, taken.length ? h('span', {class: 'under'}, taken.slice(0, 3).join(', ') +
      (taken.length + (b.more || 0) > 3 ? ` and ${taken.length + (b.more || 0) - 3} more` : '')) : '–'));
}
