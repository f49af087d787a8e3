// What a workload is doing, in one word.

// stateOf returns the kind and the text of the state of a workload. Still is for how many seconds no pod has changed.
export function stateOf(row, still) {
  if (row.deleting) return {kind: 'warn', text: 'Deleting'};
  if (row.failed) return {kind: 'bad', text: 'Failed'};
  if (row.done) return row.kept ? {kind: 'info', text: 'At partition'} : {kind: 'good', text: 'Complete'};
  if (row.paused) return {kind: 'warn', text: 'Paused'};
  if (still > 60) return {kind: 'warn', text: 'Stands still'};
  return {kind: 'info', text: 'In progress'};
}
