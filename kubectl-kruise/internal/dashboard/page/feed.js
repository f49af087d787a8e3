// What the server sends: rows of tables, first all of them, then those that have changed.

const link = document.getElementById('link');

function show(state, text) {
  link.dataset.state = state;
  if (link.textContent !== text) link.textContent = text;
}

// follow opens a view, and calls changed with its tables whenever rows have changed. It returns what ends it.
export function follow(query, changed) {
  const tables = new Map();
  let fresh = true; // the next message is the first of a connection, which sends all rows again
  const source = new EventSource('api/events?' + new URLSearchParams(query));
  source.onopen = () => {
    fresh = true;
    show('live', 'Live');
  };
  source.onerror = () => {
    if (source.readyState === EventSource.CLOSED) show('lost', 'Ended: run the command again');
    else show('lost', 'Reconnecting');
  };
  source.onmessage = (message) => {
    if (fresh) tables.clear();
    fresh = false;
    const changes = JSON.parse(message.data);
    for (const [name, change] of Object.entries(changes)) {
      let table = tables.get(name);
      if (!table) tables.set(name, table = {rows: new Map()});
      table.loaded = change.loaded;
      table.note = change.note || '';
      for (const key of change.gone || []) table.rows.delete(key);
      for (const [key, row] of Object.entries(change.set || {})) table.rows.set(key, row);
    }
    changed(tables, changes);
  };
  show('wait', 'Connecting');
  return () => source.close();
}

// settled reports whether tables have all their rows, or a note on why they have not.
export function settled(tables, names) {
  return names.every((name) => tables.has(name) && (tables.get(name).loaded || tables.get(name).note));
}

let about = null;

// whoami returns what the server says about itself.
export async function whoami() {
  if (!about) about = await get('api/about');
  return about;
}

export async function get(path, query) {
  return read(await fetch(path + (query ? '?' + new URLSearchParams(query) : '')));
}

// post sends a request with an effect.
export async function post(path, body) {
  const {token} = await whoami();
  return read(await fetch(path, {
    method: 'POST', headers: {'Content-Type': 'application/json', 'X-Kruise-Token': token}, body: JSON.stringify(body),
  }));
}

async function read(answer) {
  const type = answer.headers.get('Content-Type') || '';
  const body = type.startsWith('application/json') ? await answer.json() : {error: (await answer.text()).trim()};
  if (!answer.ok) throw new Error(body.error || answer.statusText);
  return body;
}
