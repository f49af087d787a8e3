// Package stopping stops containers, so that kubelets start others: the event, the preStop hook, then the runtime.
//
// A Crew does it beside whoever orders it, a bounded number at a time, and tells when one is over. What it does ends with
// the context that it was started with; what is cut short by that has no outcome, for another process will look again.
package stopping
