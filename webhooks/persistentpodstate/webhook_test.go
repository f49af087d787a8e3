package persistentpodstate_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/test/rig/plaintest"
	"github.com/kruisekit/kruisekit/webhooks/persistentpodstate"
)

// reader has one other object, and a white list.
type reader struct {
	client.Client
	reads int
	list  string
	fault error
}

func (r *reader) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	r.reads++
	if config, is := into.(*corev1.ConfigMap); is && r.list != "" {
		config.Data = map[string]string{"PPS_Watch_Custom_Workload_WhiteList": r.list}
		return r.fault
	}
	if r.fault != nil {
		return r.fault
	}
	return apierrors.NewNotFound(schema.GroupResource{}, "")
}

func (r *reader) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	r.reads++
	if list, is := into.(*unstructured.UnstructuredList); is {
		target := map[string]any{"apiVersion": "apps/v1beta2", "kind": "StatefulSet", "name": "taken"}
		for name, spec := range map[string]any{"other": map[string]any{"targetRef": target}, "broken": "none"} {
			object := map[string]any{"metadata": map[string]any{"name": name}, "spec": spec}
			list.Items = append(list.Items, unstructured.Unstructured{Object: object})
		}
	}
	return r.fault
}

// What exactly is invalid is tested in package validation. Here is what is read, and what becomes of it.
func TestValidate(t *testing.T) {
	of := func(api, kind, name, more string) string {
		target := `{"apiVersion":"` + api + `","kind":"` + kind + `","name":"` + name + `"}`
		return `{"metadata":{"name":"a"},"spec":{"targetRef":` + target + more + `}}`
	}
	const hub, old = `,"requiredPersistentTopology":{"keys":["zone"]}`,
		`,"requiredPersistentTopology":{"nodeTopologyKeys":["zone"]}`
	good, games := of("apps/v1", "StatefulSet", "db", "TOPOLOGY"), of("example.com/v2", "GameServerSet", "db", "TOPOLOGY")
	for name, c := range map[string]struct {
		why, now, stored, list string
		fault                  error
		want                   plaintest.Want
		reads                  int
	}{
		"good":      {why: "the others of the namespace are listed", now: good, reads: 1},
		"an update": {why: "nothing is read", now: good, stored: good},
		"no target": {
			why: "two faults", now: of("", "", "", "TOPOLOGY"), reads: 1,
			want: plaintest.Want{Code: 400, Paths: "spec.targetRef" + " spec.targetRef"},
		},
		"a Deployment": {
			why: "not allowed", now: of("apps/v1", "Deployment", "db", "TOPOLOGY"), reads: 2,
			want: plaintest.Want{Code: 400, Paths: "spec.targetRef"},
		},
		"a listed kind": {
			why: "any version", now: games, reads: 2,
			list: `{"Workloads":[{"group":"example.com","VERSION":"v1","Kind":"GameServerSet"}]}`,
		},
		"a broken list": {why: "no fault of the object", now: games, list: `{`, reads: 1, want: plaintest.Want{Code: 500}},
		"a taken target": {
			why: "the version does not count", now: of("apps/v1", "StatefulSet", "taken", "TOPOLOGY"), reads: 1,
			want: plaintest.Want{Code: 400, Paths: "spec.targetRef"},
		},
		"no topology": {
			why: "nothing to restore", now: of("apps/v1", "StatefulSet", "db", ""), reads: 1,
			want: plaintest.Want{Code: 400, Paths: "spec"},
		},
		"another target": {
			why: "verbatim", now: of("apps/v1beta2", "StatefulSet", "db", "TOPOLOGY"), stored: good,
			want: plaintest.Want{Code: 400, Paths: "spec.targetRef"},
		},
		"no lookup": {
			why: "no fault of the object", now: good, fault: errors.New("down"), reads: 1,
			want: plaintest.Want{Code: 500},
		},
	} {
		for version, topology := range map[string]string{"v1alpha1": old, "v1beta1": hub} {
			t.Run(name+"/"+version, func(t *testing.T) {
				api := &reader{list: c.list, fault: c.fault}
				w, err := persistentpodstate.New(api, persistentpodstate.Options{})
				if err != nil {
					t.Fatal(err)
				}
				spelt := func(text string) string { return strings.ReplaceAll(text, "TOPOLOGY", topology) }
				r := plaintest.Request(plaintest.Kind("PersistentPodState"), version, spelt(c.now), spelt(c.stored))
				plaintest.Answers(t, c.why, c.want, w[persistentpodstate.Path](t.Context(), r))
				if api.reads != c.reads {
					t.Errorf("%s: %d reads", c.why, api.reads)
				}
			})
		}
	}
}
