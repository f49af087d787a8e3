package sidecar_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/sidecar"
)

func TestPatchAnnotations(t *testing.T) {
	set := sidecarSet("s", patches(retain, "has", "set"), patches(retain, "lacks", "set"),
		patches(overwrite, "over", "set"), patches(overwrite, "same", "set"), patches(mergeJSON, "json", `{"a":1}`),
		patches(overwrite, kruise.SidecarSetInjectedListKey, "other"))
	has := pairs("has", "pod", "over", "pod", "same", "set", "json", `{"b":2}`, "other", "pod")
	given := pairs("has", "pod", "over", "pod", "same", "set", "json", `{"b":2}`, "other", "pod")
	got, err := sidecar.PatchAnnotations(set, has)
	if diff := cmp.Diff(pairs("lacks", "set", "over", "set", "json", `{"a":1,"b":2}`), got); diff != "" || err != nil {
		t.Errorf("only what changes (-want +got):\n%s%v", diff, err)
	}
	sameAs(t, "the input is left as it is", given, has)
	if _, err := sidecar.PatchAnnotations(set, pairs("json", "no JSON")); err == nil {
		t.Error("what cannot be merged is an error")
	}
}

// What a running pod records of its sets, as updates read it.
func ExampleReadInjected() {
	entries,
		err := sidecar.ReadInjected(`{"mesh":{"hash":"x7b","sidecarSetName":"mesh","sidecarList":["proxy"]},"old":"c4d"}`)
	fmt.Println(entries["mesh"].Hash, entries["old"].Hash, err)
	// Output: x7b c4d <nil>
}

// Which annotations no set can write.
func ExampleIsRecord() {
	fmt.Println(sidecar.IsRecord(kruise.SidecarSetInjectedListKey), sidecar.IsRecord("example.com/mesh"))
	// Output: true false
}

// What an update records of the containers of a set.
func ExampleNames() {
	set := sidecarSet("mesh", of(container("proxy"), container("agent")), ofInit(container("setup")))
	fmt.Println(sidecar.Names(set), kruise.SidecarSetHashKey)
	// Output: [agent proxy] kruise.io/sidecarset-hash
}
