//go:build tools

// Package kwok pins the version of KWOK that the simulated level of test/cluster runs. It is a module of its own so
// that KWOK's dependencies never reach the go.mod of the library.
package kwok

import _ "sigs.k8s.io/kwok/cmd/kwok"
