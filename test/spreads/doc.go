// Package spreads tests WorkloadSpreads with an API server: two replicas of the webhooks of pods, of which one leads, the reconciler, and the
// reconcilers of the entries that have pods sent.
package spreads
