// Package steady keeps the entries of pods from changing as often as tenants change the objects that they are planned
// from. After each write of a webhook configuration, every API server compiles all conditions again.
//
//	next := steady.Next(contributions, state, steady.Policy{}, now)
//	in.Contributions = next.Contributions
//	...
//	state = next.State // once the entries are as planned
//
// A selection that is gone stays for Policy.Keep. An object that is deleted and created again costs no write. A
// namespace whose new selections come more often than Policy.Changes has all of its pods sent, until it is calm for
// some minutes: its further changes cost no write either. Both select more pods than the objects do, and the webhook
// decides by the objects.
//
// Laws:
//   - What is contributed is contributed still, with the same failure policy, or all pods of its namespace are. A
//     selection that fails closed never becomes one that is ignored.
//   - No new selection waits, whatever other namespaces change.
//   - In any minute, the new selections of one namespace change what is contributed at most Policy.Changes and 4 times,
//     for each failure policy, until all of its pods are sent. Less is contributed at most every sixth of Policy.Keep,
//     for all namespaces together. Package entries bounds the writes of all namespaces together.
//   - Once nothing changes, exactly the input is contributed: after Policy.Keep, and where all pods of a namespace were
//     sent after 15 seconds for each of Policy.Changes. Both are rounded up by at most a sixth of Policy.Keep.
//   - Selections of objects without a namespace, and conditions, are those of the input.
//   - Kept selections of one namespace are at most as many as budgets have of their own.
//   - The order of the input does not matter. The input and the former state are not changed.
//
// The state is that of the leader, and is lost with it. The next one starts with exactly what is stored, which costs
// one write. A tenant cannot make a leader stop.
package steady
