package sidecar_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/kruisekit/kruisekit/api/pub"
	"github.com/kruisekit/kruisekit/sidecar"
)

// FuzzAnnotations injects into a pod that says anything in its annotations.
func FuzzAnnotations(f *testing.F) {
	f.Add(`{"b":2}`, `{"a":1}`, `{"s":"legacy"}`, `{"x":"x-2"}`)
	f.Add(`[1]`, `{"a":{"b":null}}`, `{"t":{"hash":"h","sidecarList":null}}`, `null`)
	f.Add(``, `{"a":null}`, `null`, `{}`)
	f.Add(`{"a":1e400}`, ` "x" `, `{"s":null}`, ``)
	f.Add(`{} {}`, `{`, `[]`, `[]`)
	f.Fuzz(func(t *testing.T, was, patch, hashes, working string) {
		pod := podOf(own("main"))
		pod.Annotations = pairs("k", was, pub.SidecarSetHashKey, hashes, pub.SidecarSetWorkingHotUpgradeContainerKey, working)
		sets := parse(sidecarSet("s", of(container("x", hot("empty"))), patches(mergeJSON, "k", patch)))
		got, err := sidecar.Inject(pod, sets, at())
		if err != nil {
			if was == "" && (hashes == "" || json.Valid([]byte(hashes))) && working == "" && !strings.Contains(err.Error(), "sidecarset-hash") {
				t.Errorf("there is nothing to refuse: %v", err)
			}
			return
		}
		if got.Pod == nil {
			t.Fatal("it got nothing")
		}
		for _, key := range []string{pub.SidecarSetHashKey, pub.SidecarSetHashWithoutImageKey, pub.SidecarSetWorkingHotUpgradeContainerKey} {
			if !json.Valid([]byte(got.Pod.Annotations[key])) {
				t.Errorf("%s is no JSON: %s", key, got.Pod.Annotations[key])
			}
		}
		if is := got.Pod.Annotations["k"]; was != "" && was != patch && !json.Valid([]byte(is)) {
			t.Errorf("%s merged into %s is no JSON: %s", patch, was, is)
		}
		if strings.Contains(patch, "null") {
			return // what it removes here is not yet removed where there was no value
		}
		again, err := sidecar.Inject(got.Pod, sets, at())
		if was == "" && err != nil {
			return // what is written as it is need not be JSON
		}
		if err != nil || again.Pod != nil {
			t.Errorf("it is injected again: %v, %v", err, again.Pod)
		}
	})
}
