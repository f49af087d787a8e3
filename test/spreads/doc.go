// Package spreads tests WorkloadSpreads with an API server: two replicas of the webhooks of pods, of which one leads,
// the reconciler, and the reconcilers of the entries that have pods sent.
//
// The burst prints what it costs, with more pods than by default as well:
//
//	go test -tags envtest ./test/spreads -run TestServer/Burst -v -args -burst 1000
package spreads
