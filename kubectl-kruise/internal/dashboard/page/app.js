// Which view is shown: the fragment of the URL names it.

import {fill, h, put} from './dom.js';
import {whoami} from './feed.js';
import * as budgets from './budgets.js';
import * as plan from './plan.js';
import * as probes from './probes.js';
import * as pulls from './pulls.js';
import * as rollout from './rollout.js';
import * as workloads from './workloads.js';

const views = {workloads, rollout, plan, budgets, pulls, probes};
const main = document.getElementById('main');
let end = null;

function route() {
  const [name, ...rest] = location.hash.replace(/^#\//, '').split('/').map(decodeURIComponent);
  const view = views[name];
  if (!view) {
    location.replace('#/workloads');
    return;
  }
  const first = end === null;
  if (end) end();
  for (const a of document.querySelectorAll('nav a')) {
    const current = a.getAttribute('href') === '#/' + (name === 'rollout' ? 'workloads' : name);
    if (current) a.setAttribute('aria-current', name === 'rollout' ? 'true' : 'page');
    else a.removeAttribute('aria-current');
  }
  fill(main);
  document.title = 'kubectl kruise';
  end = view.open(main, rest) || (() => {});
  if (!first) main.focus({preventScroll: true}); // a reader of the page hears that it is another view
}

document.getElementById('skip').addEventListener('click', (e) => {
  e.preventDefault();
  main.focus();
});
window.addEventListener('hashchange', route);

try {
  const about = await whoami();
  put(document.getElementById('scope'),
    (about.namespace ? 'namespace ' + about.namespace : 'all namespaces') + (about.context ? ' · ' + about.context : '') +
    (about.write ? '' : ' · read-only'));
  route();
} catch (err) {
  fill(main, h('p', {class: 'problem', role: 'alert'}, err.message));
}
