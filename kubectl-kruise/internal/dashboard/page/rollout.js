// One workload: how far its rollout is, what holds it, and its pods.

import {bar, command, compare, duration, fill, h, many, notes, pill, say, since} from './dom.js';
import {follow, get, settled} from './feed.js';
import {actions} from './actions.js';
import {chart, draw as redraw, thin} from './chart.js';
import {PodGrid, Shades, brief} from './podgrid.js';
import {stateOf} from './state.js';

const troubles = 12;

export function open(main, [kind, space, name]) {
  const namespace = space === '-' ? '' : space;
  const shades = new Shades();
  const shared = {kind, namespace, name};
  const detail = h('section', {class: 'card detail', hidden: true, 'aria-label': 'Pod'});
  const grid = new PodGrid(shades, (key) => explain(key));
  let tables = new Map();
  let frame = 0;
  let history = []; // [time, updated and ready, available]
  let update;
  let changedAt = Date.now();
  let announced = {at: 0, text: ''};

  const title = h('h1', {}, name);
  const state = h('span');
  const buttons = h('div', {class: 'tools'});
  const missing = h('div');
  const figures = h('dl', {class: 'figures'});
  const progress = h('div', {class: 'progress'});
  const legend = h('ul', {class: 'legend above'});
  const why = h('div');
  const trouble = h('div');
  const guards = h('div');
  const drawing = chart({lines: [], bound: 0, total: 1, label: 'Counts of pods over time'});
  const groupBy = h('select', {id: 'group', onchange: () => grid.setGroup(groupBy.value)},
    [['none', 'in place'], ['node', 'by node'], ['revision', 'by revision'], ['state', 'by state']].map(([value, text]) =>
      h('option', {value}, text)));
  const sheet = h('div', {class: 'sheet'},
    h('section', {class: 'card wide', 'aria-labelledby': 'pods-title'},
      h('div', {class: 'cardhead'}, h('h2', {id: 'pods-title'}, 'Pods'),
        h('div', {class: 'tools'}, h('label', {for: 'group'}, 'Arrange'), groupBy)),
      legend, grid.node),
    h('div', {class: 'side'},
      detail,
      why,
      h('section', {class: 'card', 'aria-labelledby': 'time-title'},
        h('div', {class: 'cardhead'}, h('h2', {id: 'time-title'}, 'Over time')),
        drawing,
        h('ul', {class: 'legend'},
          h('li', {'data-line': 'available'}, 'available'), h('li', {'data-line': 'updated'}, 'updated and ready'),
          h('li', {'data-line': 'bound'}, 'least available'))),
      trouble, guards));
  fill(main,
    h('p', {class: 'crumbs'}, h('a', {href: '#/workloads'}, 'Workloads'), ' / ' + kind + (namespace ? ' / ' + namespace : '')),
    h('div', {class: 'head'}, title, state, buttons),
    missing, figures, progress, sheet);

  function draw() {
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(render);
  }

  function workload() {
    return tables.get('Workload')?.rows.values().next().value;
  }

  function render() {
    const w = workload();
    const ready = settled(tables, ['Workload']);
    fill(missing, notes(tables, ['Workload', 'Pod', 'PodUnavailableBudget', 'Event']),
      ready && !w && !tables.get('Workload').note && h('p', {class: 'empty'}, 'There is no such ' + kind + ' any more.'));
    sheet.hidden = figures.hidden = progress.hidden = !w;
    if (!w) return;
    if (w.error) {
      fill(missing, h('p', {class: 'problem'}, w.error));
      return;
    }
    const pods = tables.get('Pod')?.rows || new Map();
    const counts = count(pods, brief(w.update), w);
    const now = Date.now() / 1000;
    if (update !== w.update) history = []; // another rollout
    update = w.update;
    if (history.length || settled(tables, ['Pod'])) keep(now, counts, w);
    grid.show(pods, brief(w.update));
    const stateNow = stateOf(w, (Date.now() - changedAt) / 1000);
    fill(state, pill(stateNow.kind, stateNow.text));
    document.title = (w.done ? '' : counts.done + '/' + counts.want + ' ') + name + ' · kubectl kruise';
    head(w, counts, now);
    showBar(w, pods, counts);
    reasons(w);
    problems(pods, counts);
    budgets();
    if (history.length) chartOf(w, counts);
    announce(w, counts);
    actions(buttons, w, shared);
  }

  function chartOf(w, counts) {
    const end = history.at(-1)[0];
    redraw(drawing, {
      lines: [
        {kind: 'available', points: history.map(([t, , a]) => [t - history[0][0], a])},
        {kind: 'updated', points: history.map(([t, u]) => [t - history[0][0], u])},
      ],
      bound: w.minAvailable || 0, total: w.replicas,
      label: `${counts.available} pods available, at least ${w.minAvailable || 0} must be; ${counts.done} updated and ready after ${duration(end - history[0][0])}`,
    });
  }

  function keep(now, counts, w) {
    const last = history.at(-1);
    if (!last || last[1] !== counts.done || last[2] !== counts.available) {
      changedAt = Date.now();
      history.push([now, counts.done, counts.available]);
    } else if (!w.done && now - last[0] >= 1) {
      history.push([now, counts.done, counts.available]);
    } else if (w.done && history.length > 1 && history.at(-2)[1] === last[1] && history.at(-2)[2] === last[2]) {
      last[0] = now;
    } else {
      history.push([now, counts.done, counts.available]);
    }
    history = thin(history, 1200);
  }

  function head(w, counts, now) {
    const figure = (label, value, under, kindOf) => h('div', {class: 'figure'},
      h('dt', {}, label), h('dd', {}, h('b', {'data-kind': kindOf || ''}, value), h('span', {}, under)));
    const unready = counts.total - counts.ready;
    const below = w.minAvailable > 0 && counts.available < w.minAvailable;
    const pace = rate(now);
    const left = counts.want - counts.done;
    const seen = history.length ? now - history[0][0] : 0;
    fill(figures,
      figure('Updated and ready', `${counts.done} of ${counts.want}`,
        w.kept ? `partition keeps ${w.kept}` : percent(counts.done, counts.want)),
      figure('Available', String(counts.available),
        w.minAvailable ? `at least ${w.minAvailable} of ${w.replicas}` : `of ${w.replicas}`, below ? 'bad' : ''),
      figure('Not ready', String(unready), counts.failing ? many(counts.failing, 'pod fails', 'pods fail') :
        w.maxUnavailable ? `maxUnavailable ${w.maxUnavailable}` : 'no pod fails', counts.failing ? 'bad' : ''),
      w.done || left <= 0 ? figure('Last change', since(changedAt / 1000), 'ago, seen by this page') :
        figure('Left', pace > 0 ? 'about ' + duration(left / pace) : '–',
          pace > 0 ? pace.toFixed(pace < 1 ? 2 : 1) + ' pods/s' : seen < 10 ? 'measuring' : `no progress for ${duration(Math.min(seen, 60))}`),
      figure('Update revision', brief(w.update) || '–', w.policy || w.kind));
  }

  // rate returns how many pods a second became updated and ready, over the last minute.
  function rate(now) {
    if (!history.length) return 0;
    const from = history.find(([t]) => t >= now - 60) || history[0];
    const seconds = now - from[0];
    return seconds < 2 ? 0 : Math.max(history.at(-1)[1] - from[1], 0) / seconds;
  }

  function showBar(w, pods, counts) {
    const byRevision = new Map();
    for (const pod of pods.values()) {
      const key = pod.r || 'unknown';
      if (!byRevision.has(key)) byRevision.set(key, {n: 0, ready: 0});
      const r = byRevision.get(key);
      r.n++;
      if (pod.s === 'ready' || pod.s === 'succeeded') r.ready++;
    }
    const newest = brief(w.update);
    const list = [...byRevision].map(([key, r]) => ({key, ...r, shade: shades.of(key === 'unknown' ? undefined : key, newest)}))
      .sort((a, b) => a.shade - b.shade);
    const node = h('div', {class: 'bar big', role: 'img',
      'aria-label': `${w.line} ` + list.map((r) => `${r.n} at ${r.key}, ${r.ready} ready`).join('; ')});
    for (const r of list) {
      for (const [n, part] of [[r.ready, 'ready'], [r.n - r.ready, 'unready']]) {
        if (n) node.append(h('span', {class: 'part', 'data-shade': String(r.shade), 'data-part': part, title: `${n} ${part} at ${r.key}`, vars: {part: n / Math.max(counts.total, 1)}}));
      }
    }
    fill(progress, node, h('p', {class: 'sum'}, w.failed || w.line));
    const older = list.filter((r) => r.shade !== 0);
    const item = (shade, text) => h('li', {'data-shade': String(shade)}, text);
    fill(legend,
      newest ? item(0, `${newest}: ${list.find((r) => r.shade === 0)?.n || 0}`) : null,
      older.map((r) => item(r.shade, `${r.key}: ${r.n}`)),
      [['ready', 'ready'], ['unready', 'not ready'], ['failing', 'failing'], ['pending', 'starting or ending']].map(([s, text]) =>
        h('li', {'data-state': s}, text)));
  }

  function reasons(w) {
    const lines = [...(w.reasons || [])];
    if (w.paused && !w.done) lines.unshift('The rollout is paused.');
    if (w.policy === 'OnDelete' && !w.done) lines.push('The update strategy is OnDelete: pods are updated when they are deleted.');
    const events = [...(tables.get('Event')?.rows.values() || [])].sort((a, b) => b.last - a.last);
    const recent = new Map();
    for (const e of events) {
      if (Date.now() / 1000 - e.last > 3600) continue;
      const group = recent.get(e.reason) || {...e, n: 0};
      group.n += e.count;
      recent.set(e.reason, group);
    }
    const warnings = [...recent.values()].slice(0, 4);
    if (!lines.length && !warnings.length) {
      fill(why);
      return;
    }
    fill(why, h('section', {class: 'card', 'aria-labelledby': 'why-title'},
      h('div', {class: 'cardhead'}, h('h2', {id: 'why-title'}, 'What holds it')),
      h('ul', {class: 'lines'}, lines.map((line) => h('li', {}, line)),
        warnings.map((e) => h('li', {}, h('b', {}, e.reason), ` ${e.about}, ${since(e.last)} ago` +
          (e.n > 1 ? `, ${e.n} times` : ''), h('span', {class: 'under'}, e.message))))));
  }

  function problems(pods, counts) {
    const grace = 30;
    const now = Date.now() / 1000;
    const late = [...pods].filter(([, p]) => p.s === 'failing' || (p.s !== 'ready' && p.s !== 'succeeded' && now - (p.t || p.c) > grace))
      .sort(([, a], [, b]) => (b.s === 'failing') - (a.s === 'failing') || (a.t || a.c) - (b.t || b.c) || compare(a.n, b.n));
    const text = late.map(([key, p]) => key + p.s + p.w).join();
    if (trouble.dataset.text === text) return;
    trouble.dataset.text = text;
    if (!late.length) {
      fill(trouble);
      return;
    }
    fill(trouble, h('section', {class: 'card', 'aria-labelledby': 'late-title'},
      h('div', {class: 'cardhead'}, h('h2', {id: 'late-title'}, 'Failing, or not ready for ' + grace + 's'), h('span', {class: 'sum'}, String(late.length))),
      h('ul', {class: 'lines'}, late.slice(0, troubles).map(([key, p]) => h('li', {},
        h('button', {type: 'button', class: 'linklike', onclick: () => grid.open(key)}, p.n),
        h('span', {class: 'under'}, p.w || p.s))),
      late.length > troubles && h('li', {class: 'sum'}, 'and ' + (late.length - troubles) + ' more'))));
  }

  function budgets() {
    const rows = [...(tables.get('PodUnavailableBudget')?.rows.values() || [])];
    if (!rows.length) {
      fill(guards);
      return;
    }
    fill(guards, h('section', {class: 'card', 'aria-labelledby': 'guards-title'},
      h('div', {class: 'cardhead'}, h('h2', {id: 'guards-title'}, 'Budgets')),
      rows.map((b) => h('div', {class: 'guard'},
        h('div', {}, h('b', {}, b.name), h('span', {class: 'under'}, b.bound)),
        pill(b.allowed > 0 ? 'good' : 'warn', b.allowed > 0 ? `room for ${b.allowed}` : 'no room'),
        bar(b.total, [{n: b.available, kind: 'good', label: b.available + ' available'}], `${b.available} available, ${b.desired} wanted`)))));
  }

  // announce reads the progress aloud, rarely.
  function announce(w, counts) {
    const text = w.done ? w.line : `${counts.done} of ${counts.want} pods updated and ready, ${counts.total - counts.ready} not ready`;
    if (text === announced.text || (Date.now() - announced.at < 15000 && !w.done)) return;
    announced = {at: Date.now(), text};
    say(text);
  }

  async function explain(key) {
    const pod = tables.get('Pod')?.rows.get(key);
    detail.hidden = false;
    const close = h('button', {type: 'button', class: 'quiet', onclick: shut}, 'Close');
    const body = h('div', {}, h('p', {class: 'sum'}, 'Reading'));
    fill(detail, h('div', {class: 'cardhead'}, h('h2', {}, pod ? pod.n : key), close), body);
    const [inside, short] = key.includes('/') ? key.split('/') : [namespace, key];
    try {
      const {sections} = await get('api/pod', {namespace: inside, name: short});
      if (grid.chosen !== key) return;
      const told = sections.filter((s, i) => i === 0 || s.lines?.length);
      fill(body, told.map((s, i) => i === 0 ? h('p', {class: 'sum'}, s.title) :
        [h('h3', {}, s.title), h('ul', {class: 'lines'}, s.lines.map((l) => h('li', {}, l)))]),
        command(`kubectl kruise explain pod/${short}` + (inside ? ` -n ${inside}` : '')));
      say(told.flatMap((s) => [s.title, ...(s.lines || [])]).join('. '));
    } catch (err) {
      fill(body, h('p', {class: 'problem'}, err.message));
    }
  }

  function shut() {
    detail.hidden = true;
    grid.cells.get(grid.chosen)?.removeAttribute('aria-pressed');
    grid.chosen = '';
    grid.focus();
  }

  main.onkeydown = (e) => {
    if (e.key === 'Escape' && !detail.hidden) shut();
  };
  const stop = follow({view: 'rollout', kind, namespace, name}, (now) => {
    tables = now;
    draw();
  });
  const tick = setInterval(draw, 1000);
  return () => {
    clearInterval(tick);
    cancelAnimationFrame(frame);
    main.onkeydown = null;
    stop();
  };
}

// count returns how many pods are in which state: by the pods themselves, or by the status where they are not known.
function count(pods, update, w) {
  const c = {total: 0, ready: 0, failing: 0, done: 0, want: Math.max(w.replicas - (w.kept || 0), 0), available: w.available};
  const now = Date.now() / 1000;
  let available = 0;
  for (const pod of pods.values()) {
    if (pod.s === 'terminating') continue;
    c.total++;
    const ready = pod.s === 'ready' || pod.s === 'succeeded';
    if (ready) c.ready++;
    if (ready && now - (pod.t || 0) >= (w.minReady || 0)) available++;
    if (pod.s === 'failing') c.failing++;
    if (ready && pod.r === update) c.done++;
  }
  if (pods.size) c.available = available;
  if (!pods.size || !update) Object.assign(c, {total: c.total || w.replicas, ready: c.ready || w.ready, done: Math.min(w.updated, w.ready)});
  c.done = Math.min(c.done, c.want);
  return c;
}

function percent(n, of) {
  return of ? Math.floor(100 * n / of) + ' %' : '';
}
