// Package dashboard is the command dashboard: a page on this machine that shows workloads, rollouts pod by pod, plans,
// budgets, pulls and probes of a cluster, as they change.
//
// The server lists and watches what the open pages show, and no more: a list begins with its first reader and ends some
// seconds after its last. A list keeps a compact row of each object. A reader gets all rows once, then those that have
// changed, at most five times a second. A slow reader gets fewer messages, and delays no other.
//
// The page has no access to the API server: what it shows is what the user of the command may read.
//
// Requests are answered where they name this machine as host, come from the page itself, and carry the cookie that the
// token of the printed URL is exchanged for. Writes are answered with --write alone, and need a second token.
package dashboard
