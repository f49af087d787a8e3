package sidecarset_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	// the one in the API server
	"github.com/kruisekit/kruisekit/test/rig/plaintest"
	"github.com/kruisekit/kruisekit/webhooks/sidecarset"
)

// TestDefaultsOfStored: a container that has its defaults gets none that the user has not asked for, be it written with
// or without those that it has.
func TestDefaultsOfStored(t *testing.T) {
	const (
		probe = `"startupProbe":{"exec":{"command":["true"]}}`
		done  = `"resources":{},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File",`
	)
	with := func(image, more string) string {
		return object(t, "v1beta1", `{"containers":[{"name":"agent","image":"`+image+`",`+more+probe+`}]}`)
	}
	cases := map[string]struct {
		why, now, stored string
		want             string
	}{
		"a new set": {"all defaults", with("a:1", ""), "", `{"exec":{"command":["true"]},"periodSeconds":10}`},
		"a stored one": {
			why:    "what it has gone without",
			now:    with("a:2", done),
			stored: with("a:1", done),
			want:   `{"exec":{"command":["true"]}}`,
		},
		"written again": {"the same", with("a:2", ""), with("a:1", done), `{"exec":{"command":["true"]}}`},
		"never defaulted": {
			why:    "all defaults",
			now:    with("a:2", ""),
			stored: with("a:1", ""),
			want:   `{"exec":{"command":["true"]},"periodSeconds":10}`,
		},
		"another container": {
			why:    "all defaults",
			now:    with("a:2", ""),
			stored: strings.ReplaceAll(with("a:1", done), `"agent"`, `"b"`),
			want:   `{"exec":{"command":["true"]},"periodSeconds":10}`,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			answer := newWebhooks(t, &plainServer{}, sidecarset.Options{})[sidecarset.MutatePath](t.Context(),
				newRequest("v1beta1", c.now, c.stored))
			is := map[string]any{}
			plaintest.Decode(t, string(applied(t, c.now, answer)), &is)
			container := is["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)
			if diff := cmp.Diff(c.want, plaintest.Encode(t, container["startupProbe"])); diff != "" ||
				container["terminationMessagePolicy"] != "File" {
				t.Errorf("%s: %v (-want +got):\n%s", c.why, container, diff)
			}
		})
	}
}

// TestMutateOnce: what has its defaults gets none, and keeps its hashes.
func TestMutateOnce(t *testing.T) {
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		w := newWebhooks(t, &plainServer{}, sidecarset.Options{})
		sent := object(t, version,
			`{"unknown":1,"containers":[{"name":"agent","image":"a:1","new":{"of":"tomorrow"}}],"initContainers":[{"name":"i"}],"volumes":[{"name":"v"}]}`)
		once := applied(t, sent, w[sidecarset.MutatePath](t.Context(), newRequest(version, sent, "")))
		for _, keep := range []string{`"unknown":1`, `"new":{"of":"tomorrow"}`, `"kruise.io/sidecarset-hash"`} {
			if !strings.Contains(string(once), keep) {
				t.Errorf("%s: %s is missing in %s", version, keep, once)
			}
		}
		if again := w[sidecarset.MutatePath](t.Context(), newRequest(version, string(once), sent)); again.Patch != nil {
			t.Errorf("%s: it is changed again: %s", version, again.Patch)
		}
		stale := strings.Replace(string(once), `"kruise.io/sidecarset-hash":"`, `"kruise.io/sidecarset-hash":"stale`, 1)
		if healed := applied(t, stale,
			w[sidecarset.MutatePath](t.Context(), newRequest(version, stale, sent))); string(healed) != string(once) {
			t.Errorf("%s: want %s, got %s", version, once, healed)
		}
	}
}
