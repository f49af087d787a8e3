// Package validationtest has what the tests of the rules of all kinds need: objects of JSON, and the laws of the rules.
package validationtest

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kruisekit/kruisekit/test/rig/plaintest"
)

// Decode reads an object of JSON.
func Decode(t testing.TB, text string, into any) {
	t.Helper()
	plaintest.Decode(t, text, into)
}

// Patched decodes an object of JSON that is changed by a merge patch.
func Patched(t testing.TB, object, patch string, into any) {
	t.Helper()
	plaintest.Decode(t, plaintest.Patched(t, object, patch), into)
}

// Encode returns an object as JSON.
func Encode(t testing.TB, object any) string {
	t.Helper()
	return plaintest.Encode(t, object)
}

// Places returns fields and types of faults, without their texts.
func Places(list field.ErrorList) []string { return plaintest.Faults(list) }
