package distribution_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/distribution"
)

// Which namespaces are targets: the cases of the reference.
func TestTargets(t *testing.T) {
	one := map[string]string{"group": "one"}
	namespaces := []distribution.Namespace{
		{Name: "default"},
		{Name: "kube-system", Labels: one},
		{Name: "kube-public"},
		{Name: "ns-1", Labels: one},
		{Name: "ns-2", Labels: one},
		{Name: "ns-3"},
		{Name: "ns-4", Labels: one},
		{Name: "ns-5"},
		{Name: "ns-6", Labels: one, Terminating: true},
	}
	for name, c := range map[string]struct {
		spec v1beta1.ResourceDistributionTargets
		want []string
	}{
		"nothing": {v1beta1.ResourceDistributionTargets{}, nil},
		"all sources": {
			v1beta1.ResourceDistributionTargets{
				IncludedNamespaces: list("ns-1", "ns-3", "ns-5"), ExcludedNamespaces: list("ns-4"), NamespaceSelector: group("one"),
			},
			[]string{"ns-1", "ns-2", "ns-3", "ns-5"},
		},
		"all": {
			v1beta1.ResourceDistributionTargets{AllNamespaces: true, ExcludedNamespaces: list("ns-4")},
			[]string{"default", "ns-1", "ns-2", "ns-3", "ns-5"},
		},
		"all ignores a list": {
			v1beta1.ResourceDistributionTargets{
				AllNamespaces: true, IncludedNamespaces: list("absent"), ExcludedNamespaces: list("ns-4", "default"),
			},
			[]string{"ns-1", "ns-2", "ns-3", "ns-5"},
		},
		"absent ones count": {
			v1beta1.ResourceDistributionTargets{IncludedNamespaces: list("absent", "ns-6", "kube-system", "ns-3", "ns-3")},
			[]string{"absent", "ns-3", "ns-6"},
		},
		"an expression": {
			v1beta1.ResourceDistributionTargets{NamespaceSelector: metav1.LabelSelector{
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "group", Operator: metav1.LabelSelectorOpDoesNotExist}},
			}},
			[]string{"default", "ns-3", "ns-5"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := distribution.Plan(distribution.Input{
				Owner: me, Resource: read(t, plain), Targets: selected(t, c.spec), Namespaces: namespaces, Now: at(0),
			})
			var got []string
			for _, s := range p.Steps {
				got = append(got, s.Namespace)
			}
			for _, f := range p.Failures() {
				if f.Type == v1beta1.ResourceDistributionNamespaceNotExists {
					got = append(got, f.Namespace)
				}
			}
			slices.Sort(got)
			if diff := cmp.Diff(c.want, slices.Compact(got)); diff != "" {
				t.Errorf("targets (-want +got):\n%s", diff)
			}
			if status := p.Status(v1beta1.ResourceDistributionStatus{}, 1, at(0)); int(status.Desired) != len(c.want) {
				t.Errorf("%d are desired", status.Desired)
			}
		})
	}
}

// A reserved namespace is no target, however it is selected. A copy from before stays as it is until its namespace is
// not selected any more.
func TestReserved(t *testing.T) {
	namespaces := []distribution.Namespace{
		{Name: "own", Labels: map[string]string{"group": "one"}}, {Name: "shop", Labels: map[string]string{"group": "one"}},
	}
	for name, c := range map[string]struct {
		spec    v1beta1.ResourceDistributionTargets
		deleted bool
	}{
		"all":           {v1beta1.ResourceDistributionTargets{AllNamespaces: true}, false},
		"a selector":    {v1beta1.ResourceDistributionTargets{NamespaceSelector: group("one")}, false},
		"by name":       {v1beta1.ResourceDistributionTargets{IncludedNamespaces: list("own", "shop")}, false},
		"excluded":      {v1beta1.ResourceDistributionTargets{AllNamespaces: true, ExcludedNamespaces: list("own")}, true},
		"no target yet": {v1beta1.ResourceDistributionTargets{IncludedNamespaces: list("shop")}, true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, copies := range []map[string]distribution.Copy{nil, {"own": {UID: "u", Version: "1", Controlled: true}}} {
				p := distribution.Plan(distribution.Input{
					Owner:      me,
					Resource:   read(t, plain),
					Targets:    selected(t, c.spec, "own"),
					Namespaces: namespaces,
					Copies:     copies,
					Now:        at(0),
				})
				got := map[string]distribution.Action{}
				for _, s := range p.Steps {
					got[s.Namespace] = s.Action
				}
				want := map[string]distribution.Action{"shop": distribution.Create}
				if c.deleted && copies != nil {
					want["own"] = distribution.Delete
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("steps (-want +got):\n%s", diff)
				}
				if status := p.Status(v1beta1.ResourceDistributionStatus{}, 1, at(0)); status.Desired != 1 {
					t.Errorf("%d are desired", status.Desired)
				}
			}
		})
	}
}

// A simple second implementation agrees about targets drawn at random.
func TestTargetsOracle(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	some := func() (all []string) {
		for i := range 6 {
			if r.IntN(3) == 0 {
				all = append(all, fmt.Sprint("ns-", i))
			}
		}
		if r.IntN(5) == 0 {
			all = append(all, "kube-system")
		}
		return all
	}
	for range 2000 {
		included, excluded := some(), some()
		spec := v1beta1.ResourceDistributionTargets{
			AllNamespaces: r.IntN(4) == 0, IncludedNamespaces: list(included...), ExcludedNamespaces: list(excluded...),
		}
		selects := r.IntN(2) == 0
		if selects {
			spec.NamespaceSelector = group("one")
		}
		targets := selected(t, spec)
		for i := range 7 {
			name, labels := fmt.Sprint("ns-", i), map[string]string{}
			if i == 6 {
				name = "kube-system"
			}
			if r.IntN(2) == 0 {
				labels["group"] = "one"
			}
			want := spec.AllNamespaces
			want = want || slices.Contains(included, name)
			want = want || selects && labels["group"] == "one"
			if slices.Contains(excluded, name) || strings.HasPrefix(name, "kube-") {
				want = false
			}
			if got := targets.Match(name, labels); got != want {
				t.Fatalf("seed %d: %s %v in %+v: %t", seed, name, labels, spec, got)
			}
		}
	}
}

func controlled(o *corev1.Secret) {
	o.OwnerReferences = []metav1.OwnerReference{{
		APIVersion:         "apps.kruise.io/v1beta1",
		Kind:               distribution.Kind,
		Name:               me.Name,
		UID:                me.UID,
		Controller:         ptr.To(true),
		BlockOwnerDeletion: ptr.To(true),
	}}
}

// good is a copy of plain.
func good(o *corev1.Secret) {
	controlled(o)
	o.Data = map[string][]byte{"user": []byte("reader")}
}

// What happens in one namespace, by the object that is there.
func TestOneNamespace(t *testing.T) {
	yes := v1beta1.ResourceDistributionTargets{IncludedNamespaces: list("shop")}
	bad := func(o *corev1.Secret) { good(o); o.Data["user"] = []byte("x") }
	for name, c := range map[string]struct {
		why      string
		is       func(*corev1.Secret)
		targets  v1beta1.ResourceDistributionTargets
		server   func(*secrets)
		requests string
		fails    v1beta1.ResourceDistributionConditionType
		exists   bool
	}{
		"missing":      {why: "it is created", targets: yes, requests: "Create", exists: true},
		"own, equal":   {why: "one read, and no write", is: good, targets: yes, requests: "Inspect", exists: true},
		"own, differs": {why: "it is updated", is: bad, targets: yes, requests: "Inspect Update", exists: true},
		"own, immutable": {
			why:      "no update can change it",
			is:       func(o *corev1.Secret) { bad(o); o.Immutable = ptr.To(true) },
			targets:  yes,
			requests: "Create Delete Inspect",
			exists:   true,
		},
		"own, another type": {
			why:      "no update can change it",
			is:       func(o *corev1.Secret) { good(o); o.Type = "x/y" },
			targets:  yes,
			requests: "Create Delete Inspect",
			exists:   true,
		},
		"foreign": {
			why:     "it is not even read",
			is:      func(o *corev1.Secret) {},
			targets: yes,
			fails:   v1beta1.ResourceDistributionConflictOccurred,
			exists:  true,
		},
		"held": {why: "a finalizer holds the old one", is: func(o *corev1.Secret) {
			good(o)
			o.Finalizers = []string{"a/b"}
			o.DeletionTimestamp = ptr.To(metav1.NewTime(at(0)))
		}, targets: yes, fails: v1beta1.ResourceDistributionUpdateResourceFailed, exists: true},
		"held by a new type": {
			why:      "a finalizer holds the old one",
			is:       func(o *corev1.Secret) { good(o); o.Type = "x/y"; o.Finalizers = []string{"a/b"} },
			targets:  yes,
			requests: "Create Delete Inspect+",
			fails:    v1beta1.ResourceDistributionUpdateResourceFailed,
			exists:   true,
		},
		"no namespace": {
			why:      "it is missing at the API server",
			targets:  yes,
			server:   func(s *secrets) { s.missing["shop"] = true },
			requests: "Create",
			fails:    v1beta1.ResourceDistributionNamespaceNotExists,
		},
		"terminating": {
			why:      "as the API server reports",
			targets:  yes,
			server:   func(s *secrets) { s.terminating["shop"] = true },
			requests: "Create",
			fails:    v1beta1.ResourceDistributionNamespaceNotExists,
		},
		"no target":          {why: "an own copy is deleted", is: good, requests: "Delete"},
		"no target, foreign": {why: "it stays", is: func(o *corev1.Secret) {}, exists: true},
		"no target, none":    {why: "nothing is there"},
	} {
		t.Run(name, func(t *testing.T) {
			s, r := newSecrets(), read(t, plain)
			if c.is != nil {
				s.put("shop", c.is)
			}
			if c.server != nil {
				c.server(s)
			}
			p := distribution.Plan(distribution.Input{
				Owner:      me,
				Resource:   r,
				Targets:    selected(t, c.targets),
				Namespaces: []distribution.Namespace{{Name: "shop"}},
				Copies:     s.copies(me),
				Now:        at(0),
			})
			s.run(p, r, me)
			var all []string
			for action, n := range s.requests {
				all = append(all, action+strings.Repeat("+", n-1))
			}
			slices.Sort(all)
			if got := strings.Join(all, " "); got != c.requests {
				t.Errorf("%s: requests %q, want %q", c.why, got, c.requests)
			}
			var fails v1beta1.ResourceDistributionConditionType
			if f := p.Failures(); len(f) > 0 {
				fails = f[0].Type
			}
			if fails != c.fails || (s.all["shop"] != nil) != c.exists {
				t.Errorf("%s: %v, there is %v", c.why, p.Failures(), s.all["shop"])
			}
		})
	}
}

// A copy that changed since the cache saw it, or that the cache lacks, is read and not overwritten.
func TestStaleCache(t *testing.T) {
	r := read(t, plain)
	all := selected(t, v1beta1.ResourceDistributionTargets{AllNamespaces: true})
	shop := []distribution.Namespace{{Name: "shop"}}
	for name, c := range map[string]struct {
		seen, is func(*corev1.Secret)
		requests map[string]int
		conflict bool
	}{
		"a foreign object that the cache lacks": {
			is: func(*corev1.Secret) {}, requests: map[string]int{"Create": 1, "Inspect": 1}, conflict: true,
		},
		"an own one that the cache lacks": {nil, good, map[string]int{"Create": 1, "Inspect": 1}, false},
		"another version": {
			seen:     good,
			is:       func(o *corev1.Secret) { good(o); o.Data["user"] = []byte("x") },
			requests: map[string]int{"Update": 2, "Inspect": 1},
		},
		"handed over": {
			seen:     good,
			is:       func(o *corev1.Secret) { o.OwnerReferences = nil },
			requests: map[string]int{"Update": 1, "Inspect": 1},
			conflict: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSecrets()
			in := distribution.Input{Owner: me, Resource: r, Targets: all, Namespaces: shop, Now: at(0)}
			if c.seen != nil {
				s.put("shop", c.seen)
				in.Copies = s.copies(me)
				is := s.all["shop"]
				in.Known = map[string]distribution.Known{"shop": {
					UID: is.UID, Version: is.ResourceVersion, Digest: "of an earlier resource",
				}}
			}
			s.put("shop", c.is)
			p := distribution.Plan(in)
			s.run(p, r, me)
			if diff := cmp.Diff(c.requests, s.requests); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			if f := p.Failures(); (len(f) == 1 && f[0].Type == v1beta1.ResourceDistributionConflictOccurred) != c.conflict ||
				!c.conflict && len(f) > 0 {
				t.Errorf("failures %v", f)
			}
		})
	}
}

// A tenant that reverts a copy again and again costs three writes in a minute.
func TestContested(t *testing.T) {
	s, r := newSecrets(), read(t, plain)
	in := distribution.Input{
		Owner:      me,
		Resource:   r,
		Targets:    selected(t, v1beta1.ResourceDistributionTargets{AllNamespaces: true}),
		Namespaces: []distribution.Namespace{{Name: "shop"}},
	}
	turn := func(second int) *distribution.Pass {
		in.Now, in.Copies = at(second), s.copies(me)
		p := distribution.Plan(in)
		s.run(p, r, me)
		in.Known = p.Known()
		return p
	}
	turn(0)
	for second := 1; second < 50; second++ {
		if second%2 == 0 {
			delete(s.all, "shop")
		} else {
			s.put("shop", func(o *corev1.Secret) { o.Data = nil })
		}
		p, foreign := turn(second), s.all["shop"] != nil && !me.Controls(s.all["shop"])
		if held := second > 3; held != (len(p.Failures()) == 1) || (held && !foreign) != (p.RequeueAfter > 0) ||
			p.RequeueAfter > time.Minute {
			t.Errorf("second %d: again after %v, %v", second, p.RequeueAfter, p.Failures())
		}
	}
	if n := s.requests["Create"] + s.requests["Update"]; n != 1+distribution.MaxRepairs {
		t.Errorf("%d writes", n)
	}
	delete(s.all, "shop")
	if p := turn(61); len(p.Failures()) > 0 || s.all["shop"] == nil || string(s.all["shop"].Data["user"]) != "reader" {
		t.Errorf("a minute later: %v", p.Failures())
	}
	clear(s.requests)
	for range 200 {
		s.put("shop", func(o *corev1.Secret) { o.Labels = map[string]string{"x": s.next()} })
		if p := turn(62); len(p.Failures()) > 0 {
			t.Fatalf("a label is no failure: %v", p.Failures())
		}
	}
	if n := s.requests["Inspect"]; n != distribution.MaxReads || len(s.requests) > 1 {
		t.Errorf("a copy that is only touched: %v", s.requests)
	}
}

// Namespaces that failed come last, whatever their names, and are alone in it.
func TestFailedLast(t *testing.T) {
	s, r := newSecrets(), read(t, plain)
	in := distribution.Input{
		Owner: me, Resource: r, Targets: selected(t, v1beta1.ResourceDistributionTargets{AllNamespaces: true}), Now: at(0),
	}
	for _, n := range []string{"a", "b", "c"} {
		in.Namespaces = append(in.Namespaces, distribution.Namespace{Name: n})
	}
	p := distribution.Plan(in)
	broken := apierrors.NewInternalError(errors.New("failed calling webhook"))
	for i, step := range p.Steps {
		if step.Namespace == "a" {
			p.Steps[i] = p.Answer(step, nil, broken)
		}
	}
	if f := p.Failures(); len(f) != 3 || f[0].Err == nil || f[1].Err != nil || p.Err() == nil {
		t.Errorf("one failed, two were not tried: %v", f)
	}
	in.Known = p.Known()
	p = distribution.Plan(in)
	var order []string
	for _, step := range p.Steps {
		order = append(order, step.Namespace)
	}
	if diff := cmp.Diff([]string{"b", "c", "a"}, order); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	s.run(p, r, me)
	if len(p.Failures()) > 0 || p.Err() != nil || len(s.all) != 3 {
		t.Errorf("failures %v", p.Failures())
	}
}
