// What a user does with a workload: by the page where it may write, else by commands to copy.

import {command, fill, h, put, say, since} from './dom.js';
import {get, post, whoami} from './feed.js';

// actions shows the buttons of a workload.
export async function actions(node, w, at) {
  const {write} = await whoami();
  const looks = [write, w.paused, w.pausable, w.protection, w.uid].join();
  if (node.dataset.looks === looks) return;
  node.dataset.looks = looks;
  const native = w.kind.endsWith('.apps');
  const object = `${w.kind.toLowerCase()}${native ? '' : '.apps.kruise.io'}/${w.name}` + (w.namespace ? ` -n ${w.namespace}` : '');
  const all = [];
  if (w.pausable) {
    all.push(w.paused ?
      {verb: 'resume', name: 'Resume', text: 'The rollout goes on.', line: `kubectl kruise rollout resume ${object}`} :
      {verb: 'pause', name: 'Pause', text: 'No further pod is updated. Updates that have begun are completed.', line: `kubectl kruise rollout pause ${object}`});
  }
  if (w.kind === 'Deployment.apps') {
    all.push({verb: 'undo', name: 'Undo', text: 'The pod template becomes the one before the change.', line: `kubectl kruise rollout undo ${object}`});
  } else if (['CloneSet', 'StatefulSet', 'DaemonSet'].includes(w.kind)) {
    all.push({verb: 'undo', name: 'Undo', text: 'The pod template becomes that of an earlier revision, and the pods roll back by the strategy of the workload.', line: `kubectl kruise rollout undo ${object}`});
  }
  if (native || ['CloneSet', 'StatefulSet', 'DaemonSet'].includes(w.kind)) {
    all.push({verb: 'restart', name: 'Restart', text: 'All pods are rolled once, by the strategy of the workload.', line: `kubectl kruise rollout restart ${object}`});
  }
  all.push(w.protection ?
    {verb: 'unprotect', name: 'Unprotect', text: 'The workload may be deleted again.', line: `kubectl kruise unprotect ${object}`} :
    {verb: 'protect', name: 'Protect', text: 'Deletions of the workload are refused.', line: `kubectl kruise protect ${object}`});
  if (write) {
    fill(node, all.map((a) => h('button', {type: 'button', onclick: () => confirm(a, w, at)}, a.name)));
  } else {
    fill(node, h('button', {type: 'button', onclick: () => commands(all)}, 'Commands'));
  }
}

function dialog(title, ...children) {
  const node = h('dialog', {'aria-labelledby': 'dialog-title'}, h('h2', {id: 'dialog-title'}, title), children);
  node.addEventListener('close', () => node.remove());
  document.body.append(node);
  node.showModal();
  return node;
}

function commands(all) {
  const node = dialog('Commands',
    h('p', {}, 'The page is read-only. With kubectl kruise dashboard --write it does these itself.'),
    all.map((a) => [h('h3', {}, a.name), h('p', {class: 'sum'}, a.text), command(a.line)]),
    h('div', {class: 'buttons'}, h('button', {type: 'button', onclick: () => node.close()}, 'Close')));
}

// confirm asks before it writes, and shows what has come of it.
async function confirm(a, w, at) {
  const choice = h('div');
  const result = h('p', {role: 'status', class: 'sum'});
  const go = h('button', {type: 'button', class: 'main', onclick: run}, a.name);
  const cancel = h('button', {type: 'button', onclick: () => node.close()}, 'Cancel');
  const node = dialog(`${a.name} ${w.kind} ${w.name}`, h('p', {}, a.text), choice, command(a.line), result,
    h('div', {class: 'buttons'}, cancel, go));
  const select = h('select', {id: 'to'});
  if (a.verb === 'undo' && w.kind !== 'Deployment.apps') {
    go.disabled = true;
    try {
      const {revisions} = await get('api/revisions', at);
      fill(select, revisions.slice(1).map((r) => h('option', {value: String(r.number)},
        `revision ${r.number}: ${r.name}, ${since(r.created)} old` + (r.cause ? `, ${r.cause}` : ''))));
      go.disabled = revisions.length < 2;
      fill(choice, revisions.length < 2 ? h('p', {class: 'problem'}, 'There is no earlier revision.') :
        [h('label', {for: 'to'}, 'Back to '), select]);
    } catch (err) {
      fill(choice, h('p', {class: 'problem'}, err.message));
    }
  }

  async function run() {
    go.disabled = true;
    put(result, 'Writing');
    try {
      const {done} = await post('api/act', {...at, verb: a.verb, uid: w.uid, revision: Number(select.value) || 0});
      node.close();
      say(`${w.name}: ${done}`);
    } catch (err) {
      result.className = 'problem';
      put(result, err.message);
      go.disabled = false;
    }
  }
}
