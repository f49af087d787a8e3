// Package lifecycle installs, upgrades, rolls back and uninstalls the chart on real nodes, by the library of Helm.
// hack/install-test runs it.
package lifecycle
