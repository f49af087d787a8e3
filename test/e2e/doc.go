// Package e2e tests on real kubelets and container runtimes what cannot be tested without them. Its tests have the
// build tag e2e; see test/cluster for what they run on.
package e2e
