package deletion_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kruisekit/kruisekit/protection"
	"github.com/kruisekit/kruisekit/webhooks/deletion"
)

// Every kind is protected in every version, by the code and the reason that clients read.
func TestHandleRefuses(t *testing.T) {
	for _, r := range protected() {
		r.label = "Always"
		answer := newGuard(t, newWorld("Always"), deletion.Options{}).Handle(t.Context(), r.request(t))
		want := &metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: always,
			Details: &metav1.StatusDetails{Name: "x", Group: r.group, Kind: r.kind, Causes: []metav1.StatusCause{
				{Type: "Always", Message: always, Field: "metadata.labels[" + key + "]"},
			}},
		}
		if diff := cmp.Diff(want, answer.Result); diff != "" || answer.Allowed {
			t.Errorf("%s/%s %s (-want +got):\n%s", r.group, r.version, r.kind, diff)
		}
	}
}

// What is not under review, or not protected, is allowed, at no cost.
func TestHandleAllows(t *testing.T) {
	as := func(change func(*admission.Request)) review {
		return review{group: "apps.kruise.io", version: "v1beta1", kind: "CloneSet", label: "Always", change: change}
	}
	cases := map[string]struct {
		why  string
		in   review
		want int32
	}{
		"create": {
			"only deletions are judged", as(func(r *admission.Request) { r.Operation = admissionv1.Create }), 200,
		},
		"subresource": {
			"an object stays when its subresource goes", as(func(r *admission.Request) { r.SubResource = "status" }), 200,
		},
		"no old object": {"old API servers send none", as(func(r *admission.Request) { r.OldObject.Raw = nil }), 200},
		"no JSON": {
			"the object cannot be read", as(func(r *admission.Request) { r.OldObject.Raw = []byte("{") }), 400,
		},
		"an odd template": {
			"other fields are not looked at",
			as(func(r *admission.Request) { r.OldObject.Raw = []byte(`{"spec":{"template":7}}`) }), 200,
		},
		"null": {
			"nothing is protected", as(func(r *admission.Request) { r.OldObject.Raw = []byte(`null`) }), 200,
		},
		"another kind": {
			"the label protects no DaemonSet", review{group: "apps", version: "v1", kind: "DaemonSet", label: "Always"}, 200,
		},
		"another version": {
			"its fields are unknown",
			review{group: "apiextensions.k8s.io", version: "v2", kind: "CustomResourceDefinition", label: "Always"},
			200,
		},
		"no label": {
			"nothing asks for protection", review{version: "v1", kind: "Namespace", stored: `{"metadata":{"name":"x"}}`}, 200,
		},
		"lower case": {"values are case-sensitive", review{version: "v1", kind: "Namespace", label: "always"}, 200},
		"terminating": {
			"finalizers and repeated deletes pass",
			review{
				version: "v1",
				kind:    "Namespace",
				stored:  `{"metadata":{"labels":{"` + key + `":"Always"},"deletionTimestamp":"2024-05-06T07:08:09Z"}}`,
			},
			200,
		},
		"cascading service": {"a Service has no dependents", review{version: "v1", kind: "Service", label: "Cascading"}, 200},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld("Always")
			answer := newGuard(t, w, deletion.Options{}).Handle(t.Context(), c.in.request(t))
			if answer.Result.Code != c.want || answer.Allowed != (c.want == 200) || len(w.calls) > 0 {
				t.Errorf("%s: %+v after %q", c.why, answer.Result, w.calls)
			}
		})
	}
	for why, policy := range map[string]protection.Policy{
		"gate off": {Disabled: true}, "an exempt user": {ExemptUsers: []string{"tenant"}},
	} {
		for _, r := range protected() {
			r.label = "Always"
			w := newWorld("Always")
			answer := newGuard(t, w, deletion.Options{Policy: policy}).Handle(t.Context(), r.request(t))
			if !answer.Allowed || len(w.calls) > 0 {
				t.Errorf("%s, %s: %+v after %q", why, r.kind, answer.Result, w.calls)
			}
		}
	}
}

// The reads of a review, and what the answer says of them.
func TestHandleCounts(t *testing.T) {
	const (
		getNamespace = "get Namespace x"
		listPods     = "list pods of x, status.phase!=Succeeded,status.phase!=Failed"
		listClaims   = "list claims of x"
		getCRD       = "get CustomResourceDefinition x"
		listToasters = "list ToasterList"
	)
	running, leaving, bound := []live{{}}, []live{{terminating: true}}, live{phase: corev1.ClaimBound}
	namespace := func(change func(*world)) (review, *world) {
		w := newWorld("Cascading")
		change(w)
		return review{version: "v1", kind: "Namespace", label: "Cascading"}, w
	}
	definition := func(change func(*world)) (review, *world) {
		w := newWorld("Cascading")
		change(w)
		return review{group: "apiextensions.k8s.io", version: "v1", kind: "CustomResourceDefinition", label: "Cascading"}, w
	}
	cases := map[string]struct {
		why   string
		make  func(func(*world)) (review, *world)
		world func(*world)
		want  string
		calls []string
	}{
		"empty namespace": {
			why:   "both lists are read",
			make:  namespace,
			world: func(*world) {},
			calls: []string{getNamespace, listPods, listClaims},
		},
		"pods": {
			why:   "claims are not read",
			make:  namespace,
			world: func(w *world) { w.pods = [][]live{{{}, {}, {terminating: true}}} },
			want:  ", active pods 2>0",
			calls: []string{getNamespace, listPods},
		},
		"pods on many pages": {
			why:   "counting ends with the page that has one",
			make:  namespace,
			world: func(w *world) { w.pods = [][]live{leaving, running, running} },
			want:  ", active pods 1>0 (at least)",
			calls: []string{getNamespace, listPods, listPods},
		},
		"leaving pods": {
			why:   "terminating pods do not count",
			make:  namespace,
			world: func(w *world) { w.pods = [][]live{leaving, leaving} },
			calls: []string{getNamespace, listPods, listPods, listClaims},
		},
		"a claim": {
			why:   "a bound claim holds data",
			make:  namespace,
			world: func(w *world) { w.claims = [][]live{{{phase: corev1.ClaimPending}, bound}} },
			want:  `, "Bound" status pvc 1>0`,
			calls: []string{getNamespace, listPods, listClaims},
		},
		"claims not listed": {
			why:   "what cannot be counted is refused",
			make:  namespace,
			world: func(w *world) { w.fail = listClaims },
			want:  ", list pvc: no answer",
			calls: []string{getNamespace, listPods, listClaims},
		},
		"another UID": {
			why:   "a review that is made up learns no count",
			make:  namespace,
			world: func(w *world) { w.uid, w.pods = "other", [][]live{running} },
			want:  ", list pods: the Namespace changed during the review",
			calls: []string{getNamespace},
		},
		"instances": {
			why:   "counting ends with the first page that has one",
			make:  definition,
			world: func(w *world) { w.instances = [][]live{running, running} },
			want:  ", active CRs 1>0 (at least)",
			calls: []string{getCRD, listToasters},
		},
		"not listed": {
			why:   "the kind is named",
			make:  definition,
			world: func(w *world) { w.fail = listToasters },
			want:  ", list CRs: example.com/v1, Kind=Toaster: no answer",
			calls: []string{getCRD, listToasters},
		},
		"not served": {
			why:   "instances exist that cannot be listed",
			make:  definition,
			world: func(w *world) { w.versions = []any{map[string]any{"name": "v1", "served": false, "storage": true}} },
			want:  ", list CRs: no version of Toaster.example.com is served",
			calls: []string{getCRD},
		},
		"storage not served": {"another version has the same instances", definition, func(w *world) {
			w.versions = []any{map[string]any{"name": "v1", "storage": true}, map[string]any{"name": "v2", "served": true}}
		}, "", []string{getCRD, listToasters}},
		"definition not read": {
			why:   "the right to read it may be missing",
			make:  definition,
			world: func(w *world) { w.fail = getCRD },
			want:  ", list CRs: read CustomResourceDefinition: no answer",
			calls: []string{getCRD},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r, w := c.make(c.world)
			answer := newGuard(t, w,
				deletion.Options{Policy: protection.Policy{CountInstances: true}}).Handle(t.Context(), r.request(t))
			if diff := cmp.Diff(c.calls, w.calls); diff != "" {
				t.Errorf("%s: calls (-want +got):\n%s", c.why, diff)
			}
			if want := cascading + c.want; answer.Allowed != (c.want == "") || !answer.Allowed && answer.Result.Message != want {
				t.Errorf("%s: got %+v, want %q", c.why, answer.Result, c.want)
			}
		})
	}
}

// Objects of a terminating namespace go with it; a refusal costs one read to find that out.
func TestHandleFollows(t *testing.T) {
	in := func(label string) review {
		return review{
			group:   "apps.kruise.io",
			version: "v1beta1",
			kind:    "CloneSet",
			stored:  `{"metadata":{"name":"x","namespace":"ns","labels":{"` + key + `":"` + label + `"}},"spec":{"replicas":2}}`,
		}
	}
	cases := map[string]struct {
		why   string
		in    review
		world func(*world)
		want  string
		calls []string
	}{
		"active": {"the namespace stays", in("Always"), func(*world) {}, always, []string{"get Namespace ns"}},
		"terminating": {
			why:   "the deletion of the namespace was admitted",
			in:    in("Always"),
			world: func(w *world) { w.terminating = true },
			calls: []string{"get Namespace ns"},
		},
		"not read": {
			why:   "what is unknown allows nothing",
			in:    in("Cascading"),
			world: func(w *world) { w.fail = "get Namespace ns" },
			want:  cascading + ", replicas 2>0; read namespace: no answer",
			calls: []string{"get Namespace ns"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld("")
			c.world(w)
			answer := newGuard(t, w, deletion.Options{}).Handle(t.Context(), c.in.request(t))
			if diff := cmp.Diff(c.calls, w.calls); diff != "" {
				t.Errorf("%s: calls (-want +got):\n%s", c.why, diff)
			}
			if answer.Allowed != (c.want == "") || !answer.Allowed && answer.Result.Message != c.want {
				t.Errorf("%s: got %+v, want %q", c.why, answer.Result, c.want)
			}
		})
	}
}

// A list that takes too long ends the review before the API server gives up.
func TestHandleEndsInTime(t *testing.T) {
	w := newWorld("Cascading")
	g := newGuard(t, w, deletion.Options{Timeout: time.Nanosecond})
	answer := g.Handle(t.Context(), review{version: "v1", kind: "Namespace", label: "Cascading"}.request(t))
	if answer.Allowed || !strings.Contains(answer.Result.Message, "context deadline exceeded") {
		t.Errorf("got %+v", answer.Result)
	}
}

func TestNew(t *testing.T) {
	if _, err := deletion.New(nil, deletion.Options{}); err == nil {
		t.Error("without a reader")
	}
	for name, o := range map[string]deletion.Options{
		"timeout": {Timeout: -1}, "page": {Page: -1},
	} {
		if _, err := deletion.New(newWorld("").client(), o); err == nil {
			t.Errorf("with a negative %s", name)
		}
	}
}

// FuzzHandle: no object makes the guard panic, or answer with an error of its own.
func FuzzHandle(f *testing.F) {
	for _, seed := range []string{
		`{}`, `null`, `[]`, `{"metadata":null}`,
		`{"metadata":{"labels":{"policy.kruise.io/delete-protection":"Always"},"namespace":"ns"}}`,
		`{"metadata":{"name":"x","uid":"b5b7c6a2","labels":{"policy.kruise.io/delete-protection":"Cascading"}},"spec":{"replicas":-1}}`,
		`{"metadata":{"ownerReferences":[{"apiVersion":"/","kind":"CloneSet","controller":null}]}}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		for _, r := range protected() {
			req := r.request(t)
			req.OldObject.Raw = []byte(raw)
			answer := newGuard(t, newWorld("Cascading"), deletion.Options{}).Handle(t.Context(), req)
			if code := answer.Result.Code; code != 200 && code != 400 && code != 403 {
				t.Fatalf("%s: %+v", r.kind, answer.Result)
			}
		}
	})
}
