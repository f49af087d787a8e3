// Package compat holds the proofs that the API is the reference's: objects recorded from a running reference
// (testdata/recorded), manifests in the shape users write them (testdata/manifests), and the tests that decode,
// convert and apply them.
package compat
