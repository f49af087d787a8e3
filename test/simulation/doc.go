// Package simulation plays rollouts of a made-up workload, from the first pod to the last, in a world without a cluster:
// a server that holds pods as the API server does, a scheduler, kubelets and owners of hooks, all small, and all of them
// driven by one seed and a clock that only counts. The controller in it is what an operator author would write
// with inplace, lifecycle, revision and scale; read controller_test.go for that.
//
// Each story in testdata is the log of one rollout, with a comment on what it shows. What must never happen is
// tried after every single write (rules_test.go), in the stories, with the controller dying at every write, and in
// worlds drawn at random. A random world that fails is played again by its seed:
//
//	go test ./test/simulation -run TestRandom/seed=17 -v
//	go test ./test/simulation -run TestRandom -worlds 10000
package simulation
