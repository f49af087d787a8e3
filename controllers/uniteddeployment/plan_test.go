package uniteddeployment

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/uniteddeployment/internal/subsets"
	"github.com/kruisekit/kruisekit/controllers/uniteddeployment/internal/subsets/applied"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/write"
)

var (
	resource  = schema.GroupResource{Group: "apps", Resource: "deployments"}
	missing   = apierrors.NewNotFound(resource, "web")
	conflict  = apierrors.NewConflict(resource, "web", errors.New("it has changed"))
	denied    = apierrors.NewForbidden(resource, "web", errors.New("a policy"))
	noon      = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	errBroken = errors.New("the connection broke")
)

// united is an object of some subsets, of Deployments.
func united(names ...string) *v1beta1.UnitedDeployment {
	u := &v1beta1.UnitedDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u"}}
	u.Spec.Replicas = ptr.To[int32](4)
	u.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	template := &v1beta1.DeploymentTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}}}
	template.Spec.Template.Labels = template.Labels
	template.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: "web:1"}}
	u.Spec.Template.DeploymentTemplate = template
	for _, name := range names {
		u.Spec.Topology.Subsets = append(u.Spec.Topology.Subsets, v1beta1.Subset{Name: name})
	}
	u.Default()
	return u
}

// script answers the writes of a pass, by what they are, each answer for one time.
type script struct {
	plan *plan
	sent []string
	errs map[string][]error
	// have are the objects that questions find; other ones are missing.
	have map[string]*unstructured.Unstructured
}

// describe names the subset of a workload instead of the workload.
func (s *script) describe(w *write.Write) string {
	name := w.Object.GetName()
	for _, subset := range []string{"a", "b"} {
		for attempt := range attempts {
			if name == subsets.Name(s.plan.object, subset, attempt) {
				name = strings.Repeat("other ", min(attempt, 1)) + subset
			}
		}
	}
	if w.Kind() == "revision" {
		name = "revision"
	}
	return strings.TrimSpace(string(w.Verb) + " " + name + " " + w.Subresource)
}

func (s *script) answer(w *write.Write) (write.Object, error) {
	name := s.describe(w)
	s.sent = append(s.sent, name)
	have := s.have[name]
	if errs := s.errs[name]; len(errs) > 0 {
		s.errs[name] = errs[1:]
		return nil, errs[0]
	}
	switch {
	case w.Verb == write.Get && have == nil:
		return nil, missing
	case w.Verb == write.Get:
		return have, nil
	}
	object, _ := w.Object.DeepCopyObject().(write.Object)
	object.SetUID("uid")
	return object, nil
}

func (s *script) run() error {
	p := s.plan.pass()
	for stage := p.Next(); len(stage) > 0; stage = p.Next() {
		for queue := stage; len(queue) > 0; {
			answer, err := s.answer(queue[0])
			queue = append(queue[1:], p.Answer(noon, queue[0], answer, err)...)
		}
	}
	return p.Err()
}

// A workload is created under a name that is free, and what fails there does not concern the other subsets.
func TestCreations(t *testing.T) {
	u := united("a", "b")
	own, foreign := stored.Untyped(resourceKind()), stored.Untyped(resourceKind())
	own.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(u, subsets.OwnerKind())})
	const end = ", Patch web status"
	for name, c := range map[string]struct {
		errs    map[string][]error
		have    map[string]*unstructured.Unstructured
		want    string
		created int
		found   int
		fails   error
		text    string
	}{
		"both names are free": {
			want: "Create revision, Get a, Get b, Patch a, Patch b" + end, created: 2,
		},
		"the answer to an earlier creation was lost": {
			have: map[string]*unstructured.Unstructured{"Get a": own},
			want: "Create revision, Get a, Get b, Patch b" + end, created: 2, found: 1,
		},
		"another owner has the name": {
			have: map[string]*unstructured.Unstructured{"Get a": foreign},
			want: "Create revision, Get a, Get b, Get other a, Patch b, Patch other a" + end, created: 2,
		},
		"other owners have all names": {
			have: map[string]*unstructured.Unstructured{"Get a": foreign, "Get other a": foreign},
			want: "Create revision, Get a, Get b, Get other a, Patch b, Get other a" + end, created: 1,
			text: "create subset a: the name web-a-",
		},
		"the owner cannot be asked for": {
			errs: map[string][]error{"Get a": {errBroken}},
			want: "Create revision, Get a, Get b, Patch b" + end, created: 1,
			fails: errBroken, text: "create subset a: ",
		},
		"a policy denies a workload": {
			errs: map[string][]error{"Patch b": {denied}},
			want: "Create revision, Get a, Get b, Patch a, Patch b" + end, created: 1,
			fails: denied, text: "create subset b: ",
		},
		"the revision cannot be stored": {
			errs: map[string][]error{"Create revision": {denied}}, want: "Create revision" + end, fails: denied,
		},
		"the status cannot be written": {
			errs: map[string][]error{"Patch web status": {errBroken}},
			want: "Create revision, Get a, Get b, Patch a, Patch b" + end, created: 2,
			fails: errBroken, text: "write status: ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := subsets.Read(u.DeepCopy(), noon)
			if err != nil {
				t.Fatal(err)
			}
			p := newPlan(&snapshot{Snapshot: s, object: s.Object, now: noon}, stored.Kind{GVK: subsets.OwnerKind()})
			script := &script{plan: p, errs: c.errs, have: c.have}
			err = script.run()
			if got := strings.Join(script.sent, ", "); got != c.want {
				t.Errorf("sent %s\nwant %s", got, c.want)
			}
			if (err != nil) != (c.fails != nil || c.text != "") || c.fails != nil && !errors.Is(err, c.fails) ||
				err != nil && !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v", err)
			}
			if p.created != c.created || len(p.found) != c.found {
				t.Errorf("%d created, %d found", p.created, len(p.found))
			}
		})
	}
}

func resourceKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
}

// A workload that differs is applied; one that the reconciler has not written before is read first, for the fields of a
// predecessor. What is gone is no failure.
func TestUpdates(t *testing.T) {
	for name, c := range map[string]struct {
		errs  map[string][]error
		known bool
		gone  bool
		want  string
		fails error
		// remembered reports whether the next pass knows of the write.
		remembered bool
		deleted    int
	}{
		"a workload of this process": {
			known: true, want: "Create revision, Patch a, Patch web status", remembered: true,
		},
		"a workload of another process": {
			want: "Create revision, Get a, Patch a, Patch web status", remembered: true,
		},
		"the workload has gone": {
			known: true, errs: map[string][]error{"Patch a": {missing}},
			want: "Create revision, Patch a, Patch web status",
		},
		"another workload has taken its place": {
			known: true, errs: map[string][]error{"Patch a": {conflict}},
			want: "Create revision, Patch a, Patch web status",
		},
		"the workload cannot be read": {
			errs: map[string][]error{"Get a": {errBroken}},
			want: "Create revision, Get a, Patch web status", fails: errBroken,
		},
		"the write is denied": {
			known: true, errs: map[string][]error{"Patch a": {denied}},
			want: "Create revision, Patch a, Patch web status", fails: denied,
		},
		"no subset has the workload": {
			gone: true, want: "Create revision, Get b, Patch b, Delete a, Patch web status", remembered: true, deleted: 1,
		},
		"the workload that no subset has is gone": {
			gone: true, errs: map[string][]error{"Delete a": {missing}},
			want: "Create revision, Get b, Patch b, Delete a, Patch web status", remembered: true, deleted: 1,
		},
		"the deletion is denied": {
			gone: true, errs: map[string][]error{"Delete a": {denied}},
			want: "Create revision, Get b, Patch b, Delete a, Patch web status", remembered: true, fails: denied,
		},
	} {
		t.Run(name, func(t *testing.T) {
			u := united("a")
			workload := rendered(t, u)
			if c.gone {
				u = united("b")
			}
			s, err := subsets.Read(u, noon)
			if err != nil {
				t.Fatal(err)
			}
			s.Add(s.Template.Kind, []*unstructured.Unstructured{workload})
			if c.known {
				s.Known.Writes = map[string]applied.Write{"a": {UID: workload.GetUID()}}
			}
			p := newPlan(&snapshot{Snapshot: s, object: u, now: noon}, stored.Kind{GVK: subsets.OwnerKind()})
			script := &script{plan: p, errs: c.errs, have: map[string]*unstructured.Unstructured{"Get a": workload}}
			err = script.run()
			if got := strings.Join(script.sent, ", "); got != c.want {
				t.Errorf("sent %s\nwant %s", got, c.want)
			}
			if (err != nil) != (c.fails != nil) || !errors.Is(err, c.fails) {
				t.Errorf("got %v", err)
			}
			if remembered := len(p.written) > 0; remembered != c.remembered || p.deleted != c.deleted {
				t.Errorf("remembered %t, deleted %d", remembered, p.deleted)
			}
		})
	}
}

// rendered is the workload of the first subset, as an older version of the spec made it.
func rendered(t *testing.T, u *v1beta1.UnitedDeployment) *unstructured.Unstructured {
	t.Helper()
	s, err := subsets.Read(u, noon)
	if err != nil {
		t.Fatal(err)
	}
	p, err := subsets.Plan(s)
	if err != nil {
		t.Fatal(err)
	}
	o := p.Targets[0].Rendered.DeepCopy()
	o.SetUID("uid")
	if err := unstructured.SetNestedField(o.Object, int64(1), "spec", "replicas"); err != nil {
		t.Fatal(err)
	}
	return o
}

// An object that cannot be reconciled reports that, and fails until the spec changes.
func TestUnusable(t *testing.T) {
	u := united("a")
	p := newPlan(&snapshot{object: u, now: noon, invalid: errBroken}, stored.Kind{GVK: subsets.OwnerKind()})
	script := &script{plan: p}
	err := script.run()
	if got := strings.Join(script.sent, ", "); got != "Patch web status" || !errors.Is(err, errBroken) {
		t.Errorf("sent %s, got %v", got, err)
	}
	p = newPlan(&snapshot{object: u, now: noon, invalid: errBroken}, stored.Kind{GVK: subsets.OwnerKind()})
	script.plan, script.errs = p, map[string][]error{"Patch web status": {denied}}
	if err := script.run(); !errors.Is(err, denied) || errors.Is(err, errBroken) {
		t.Errorf("without a status: got %v", err)
	}
}
