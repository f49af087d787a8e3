package persistentpodstate_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kruisekit/kruisekit/internal/review/plaintest"
	"github.com/kruisekit/kruisekit/webhooks/persistentpodstate"
)

// reader has one other object, and a white list.
type reader struct {
	client.Reader
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
		list.Items = append(list.Items, unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "other"}, "spec": map[string]any{
			"targetRef": map[string]any{"apiVersion": "apps/v1beta2", "kind": "StatefulSet", "name": "taken"},
		}}}, unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "broken"}, "spec": "none"}})
	}
	return r.fault
}

// TestValidate: which objects are rejected, with which paths and which code, in both versions, and how much is read.
func TestValidate(t *testing.T) {
	of := func(api, kind, name, more string) string {
		return `{"metadata":{"name":"a"},"spec":{"targetRef":{"apiVersion":"` + api + `","kind":"` + kind + `","name":"` + name + `"}` + more + `}}`
	}
	const hub, old = `,"requiredPersistentTopology":{"keys":["zone"]}`, `,"requiredPersistentTopology":{"nodeTopologyKeys":["zone"]}`
	good := of("apps/v1", "StatefulSet", "db", "TOPOLOGY")
	listed := `{"workloads":[{"group":"example.com","version":"v1","kind":"GameServerSet"}]}`
	for name, c := range map[string]struct {
		why         string
		now, before string
		list        string
		fault       error
		change      func(*admission.Request)
		code        int32
		paths       string
		warnings    int
		reads       int
	}{
		"good":             {why: "the others of the namespace are listed", now: good, reads: 1},
		"an update":        {why: "nothing is read", now: good, before: good},
		"no target":        {why: "two faults", now: of("", "", "", "TOPOLOGY"), code: 400, paths: "spec.targetRef;spec.targetRef", reads: 1},
		"a Deployment":     {why: "not allowed", now: of("apps/v1", "Deployment", "db", "TOPOLOGY"), code: 400, paths: "spec.targetRef", reads: 2},
		"a listed kind":    {why: "any version", now: of("example.com/v2", "GameServerSet", "db", "TOPOLOGY"), list: listed, reads: 2},
		"a broken list":    {why: "no fault of the object", now: of("example.com/v2", "GameServerSet", "db", "TOPOLOGY"), list: `{`, code: 500, reads: 1},
		"a taken target":   {why: "the version does not count", now: of("apps/v1", "StatefulSet", "taken", "TOPOLOGY"), code: 400, paths: "spec.targetRef", reads: 1},
		"no topology":      {why: "nothing to restore", now: of("apps/v1", "StatefulSet", "db", ""), code: 400, paths: "spec", reads: 1},
		"another target":   {why: "verbatim", now: of("apps/v1beta2", "StatefulSet", "db", "TOPOLOGY"), before: good, code: 400, paths: "spec.targetRef"},
		"a stored fault":   {why: "a warning", now: of("apps/v1", "StatefulSet", "db", `,"persistentPodAnnotations":[{"key":"x"}]`), before: of("apps/v1", "StatefulSet", "db", ""), warnings: 1},
		"no lookup":        {why: "no fault of the object", now: good, fault: errors.New("down"), code: 500, reads: 1},
		"malformed":        {why: "what cannot be decoded is an error", now: `{"spec":{"targetRef":7}}`, code: 400, paths: "spec.targetRef"},
		"no object":        {why: "an error", code: 400},
		"leaving":          {why: "finalizers can be removed", now: `{}`, before: strings.Replace(good, `"name":"a"}`, `"name":"a","deletionTimestamp":"2030-01-01T00:00:00Z"}`, 1)},
		"a status":         {why: "a status is the controller's", now: `{}`, change: func(r *admission.Request) { r.SubResource = "status" }},
		"unknown version":  {why: "an error", now: good, code: 400, change: func(r *admission.Request) { r.Resource.Version = "v2" }},
		"another resource": {why: "an error", now: good, code: 400, change: func(r *admission.Request) { r.Resource.Resource = "clonesets" }},
	} {
		for version, topology := range map[string]string{"v1alpha1": old, "v1beta1": hub} {
			t.Run(name+"/"+version, func(t *testing.T) {
				req := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
					Operation: admissionv1.Create, Name: "a", Namespace: "default", Object: runtime.RawExtension{Raw: []byte(strings.ReplaceAll(c.now, "TOPOLOGY", topology))},
					Resource: metav1.GroupVersionResource{Group: "apps.kruise.io", Version: version, Resource: "persistentpodstates"},
				}}
				if c.before != "" {
					req.Operation, req.OldObject = admissionv1.Update, runtime.RawExtension{Raw: []byte(strings.ReplaceAll(c.before, "TOPOLOGY", topology))}
				}
				if c.change != nil {
					c.change(&req)
				}
				api := &reader{list: c.list, fault: c.fault}
				w, err := persistentpodstate.New(api, persistentpodstate.Options{})
				if err != nil {
					t.Fatal(err)
				}
				got := w.Validate(t.Context(), req)
				if got.Allowed != (c.code == 0) || !got.Allowed && got.Result.Code != c.code || len(got.Warnings) != c.warnings || api.reads != c.reads {
					t.Fatalf("%s: %+v, warnings %q, %d reads", c.why, got.Result, got.Warnings, api.reads)
				}
				paths := plaintest.Paths(got)
				if strings.Join(paths, ";") != c.paths {
					t.Errorf("%s: paths %q", c.why, paths)
				}
			})
		}
	}
}
