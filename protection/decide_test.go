package protection_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/protection"
)

const (
	key       = "policy.kruise.io/delete-protection"
	always    = "forbidden by ResourcesProtectionDeletion for policy.kruise.io/delete-protection=Always"
	cascading = "forbidden by ResourcesProtectionDeletion for policy.kruise.io/delete-protection=Cascading"
)

// object is one under review, with what its dependents are.
type object struct {
	kind, label string
	terminating bool
	owner       string
	replicas    *int32
	counts      map[protection.Dependents]protection.Count
	failing     protection.Dependents
	user        string
	policy      protection.Policy
	// dying means that the namespace is terminating.
	dying   bool
	unknown bool
}

// decide also returns what was asked, in order.
func (o object) decide(t *testing.T) (protection.Verdict, []string) {
	t.Helper()
	kind := kindOf(t, o.kind)
	meta := &metav1.ObjectMeta{Name: "x"}
	if o.label != "-" {
		meta.Labels = map[string]string{key: o.label}
	}
	if o.terminating {
		meta.DeletionTimestamp = ptr.To(metav1.NewTime(time.Unix(0, 0)))
	}
	if o.owner != "" {
		meta.OwnerReferences = []metav1.OwnerReference{{APIVersion: o.owner, Kind: "Deployment", Controller: ptr.To(true)}}
	}
	var asked []string
	v := protection.Decide(protection.Input{
		Policy: o.policy, Kind: kind, Object: meta, Replicas: o.replicas, User: o.user,
		Count: func(d protection.Dependents) (protection.Count, error) {
			asked = append(asked, string(d))
			if o.failing == d {
				return protection.Count{}, errors.New("no answer")
			}
			return o.counts[d], nil
		},
		NamespaceTerminating: func() (bool, error) {
			asked = append(asked, "namespace")
			if o.unknown {
				return false, errors.New("no answer")
			}
			return o.dying, nil
		},
	})
	return v, asked
}

// kindOf finds a row by its kind, and for the two StatefulSets by group and kind.
func kindOf(t *testing.T, name string) protection.Kind {
	t.Helper()
	for _, k := range protection.Kinds() {
		if k.Kind == name || k.Group+"/"+k.Kind == name {
			return k
		}
	}
	t.Fatalf("no kind %s", name)
	return protection.Kind{}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	one, two := protection.Count{N: 1}, protection.Count{N: 2}
	counting := protection.Policy{CountInstances: true}
	cases := map[string]struct {
		why  string
		in   object
		want protection.Code
		text string
	}{
		"gate off": {
			why:  "the gate turns all of it off",
			in:   object{kind: "Namespace", label: "Always", policy: protection.Policy{Disabled: true}},
			want: protection.Disabled,
		},
		"terminating": {
			why:  "finalizers and repeated deletes pass",
			in:   object{kind: "CloneSet", label: "Always", terminating: true},
			want: protection.Terminating,
		},
		"no label": {
			why:  "the label is what protects",
			in:   object{kind: "Deployment", label: "-", replicas: ptr.To[int32](5)},
			want: protection.Unprotected,
		},
		"lower case": {
			why: "values are case-sensitive", in: object{kind: "Namespace", label: "always"}, want: protection.Unprotected,
		},
		"always, namespace": {
			why: "an empty namespace too", in: object{kind: "Namespace", label: "Always"}, want: protection.Always, text: always,
		},
		"always, service": {
			why:  "a Service is protected by Always",
			in:   object{kind: "Service", label: "Always"},
			want: protection.Always,
			text: always,
		},
		"cascading, service": {
			why: "a Service has no dependents", in: object{kind: "Service", label: "Cascading"}, want: protection.NoEffect,
		},
		"cascading, replicas": {
			why:  "the set has pods",
			in:   object{kind: "CloneSet", label: "Cascading", replicas: ptr.To[int32](2)},
			want: protection.ActiveDependents,
			text: cascading + ", replicas 2>0",
		},
		"cascading, negative": {
			why:  "less than none is none",
			in:   object{kind: "CloneSet", label: "Cascading", replicas: ptr.To[int32](-3)},
			want: protection.NoDependents,
		},
		"namespace, pods": {
			why: "claims are not counted where pods run",
			in: object{kind: "Namespace", label: "Cascading", counts: map[protection.Dependents]protection.Count{
				protection.Pods: two, protection.Claims: one,
			}},
			want: protection.ActiveDependents,
			text: cascading + ", active pods 2>0",
		},
		"namespace, claims": {
			why: "a bound claim holds data",
			in: object{
				kind: "Namespace", label: "Cascading", counts: map[protection.Dependents]protection.Count{protection.Claims: one},
			},
			want: protection.ActiveDependents,
			text: cascading + `, "Bound" status pvc 1>0`,
		},
		"namespace, empty": {
			why: "nothing is lost", in: object{kind: "Namespace", label: "Cascading"}, want: protection.NoDependents,
		},
		"namespace, no pods listed": {
			why:  "what cannot be counted is refused",
			in:   object{kind: "Namespace", label: "Cascading", failing: protection.Pods},
			want: protection.NotCounted,
			text: cascading + ", list pods: no answer",
		},
		"namespace, at least": {
			why: "counting ended early",
			in: object{
				kind:   "Namespace",
				label:  "Cascading",
				counts: map[protection.Dependents]protection.Count{protection.Pods: {N: 500, AtLeast: true}},
			},
			want: protection.ActiveDependents,
			text: cascading + ", active pods 500>0 (at least)",
		},
		"definition, gate off": {
			why:  "an empty definition too, and the gate is named",
			in:   object{kind: "CustomResourceDefinition", label: "Cascading"},
			want: protection.GateDisabled,
			text: cascading + ", feature gate DeletionProtectionForCRDCascadingGate is not enabled",
		},
		"definition, live": {
			why: "an instance would go with it",
			in: object{
				kind:   "CustomResourceDefinition",
				label:  "Cascading",
				policy: counting,
				counts: map[protection.Dependents]protection.Count{protection.Instances: one},
			},
			want: protection.ActiveDependents,
			text: cascading + ", active CRs 1>0",
		},
		"definition, empty": {
			why:  "nothing is lost",
			in:   object{kind: "CustomResourceDefinition", label: "Cascading", policy: counting},
			want: protection.NoDependents,
		},
		"definition, not listed": {
			why:  "what cannot be counted is refused",
			in:   object{kind: "CustomResourceDefinition", label: "Cascading", policy: counting, failing: protection.Instances},
			want: protection.NotCounted,
			text: cascading + ", list CRs: no answer",
		},
		"exempt": {
			why: "the policy exempts the user",
			in: object{
				kind: "Namespace", label: "Always", user: "root", policy: protection.Policy{ExemptUsers: []string{"root"}},
			},
			want: protection.Exempt,
		},
		"another user": {
			why: "the policy exempts one user alone",
			in: object{
				kind: "Namespace", label: "Always", user: "tenant", policy: protection.Policy{ExemptUsers: []string{"root"}},
			},
			want: protection.Always,
			text: always,
		},
		"namespace is held": {
			why:  "the policy holds it, as the reference does",
			in:   object{kind: "CloneSet", label: "Always", dying: true, policy: protection.Policy{HoldNamespaces: true}},
			want: protection.Always,
			text: always,
		},
		"namespace goes": {
			why:  "the deletion of the namespace was admitted",
			in:   object{kind: "CloneSet", label: "Always", dying: true},
			want: protection.NamespaceTerminating,
		},
		"namespace unknown": {
			why:  "an unread namespace does not allow a deletion",
			in:   object{kind: "CloneSet", label: "Always", unknown: true},
			want: protection.Always,
			text: always + "; read namespace: no answer",
		},
		"owner gone": {
			why:  "the deletion of the Deployment was admitted",
			in:   object{kind: "ReplicaSet", label: "Always", owner: "apps/v1", user: protection.GarbageCollectors()[0]},
			want: protection.OwnerDeleted,
		},
		"owner gone, one user": {
			why:  "all controllers may share one user",
			in:   object{kind: "ReplicaSet", label: "Always", owner: "apps/v1", user: protection.GarbageCollectors()[1]},
			want: protection.OwnerDeleted,
		},
		"owner of another kind": {
			why:  "the deletion of that owner was never judged",
			in:   object{kind: "CloneSet", label: "Always", owner: "example.com/v1", user: protection.GarbageCollectors()[0]},
			want: protection.Always,
			text: always,
		},
		"no owner": {
			why:  "nothing precedes this deletion",
			in:   object{kind: "CloneSet", label: "Always", user: protection.GarbageCollectors()[0]},
			want: protection.Always,
			text: always,
		},
		"owner, other user": {
			why:  "the owner may exist",
			in:   object{kind: "ReplicaSet", label: "Always", owner: "apps/v1", user: "tenant"},
			want: protection.Always,
			text: always,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, _ := c.in.decide(t)
			if got.Code != c.want || got.Message != c.text || got.Refused() != (c.text != "") {
				t.Errorf("%s: got %s %q (refused: %t), want %s %q", c.why, got.Code, got.Message, got.Refused(), c.want, c.text)
			}
		})
	}
}

// Every workload of the table is judged by its replicas alone.
func TestDecideWorkloads(t *testing.T) {
	t.Parallel()
	var workloads []string
	for _, k := range protection.Kinds() {
		if !k.Workload() {
			continue
		}
		name := k.Group + "/" + k.Kind
		workloads = append(workloads, name)
		for replicas, refused := range map[int32]bool{0: false, 2: true} {
			if v, _ := (object{kind: name, label: "Cascading", replicas: &replicas}).decide(t); v.Refused() != refused {
				t.Errorf("%s, Cascading, %d replicas: %+v", name, replicas, v)
			}
			if v, _ := (object{kind: name, label: "Always", replicas: &replicas}).decide(t); !v.Refused() {
				t.Errorf("%s, Always, %d replicas: %+v", name, replicas, v)
			}
		}
	}
	want := []string{
		"apps/Deployment", "apps/ReplicaSet", "apps/StatefulSet", "apps.kruise.io/CloneSet", "apps.kruise.io/StatefulSet",
		"apps.kruise.io/UnitedDeployment",
	}
	if diff := cmp.Diff(want, workloads); diff != "" {
		t.Errorf("workloads (-want +got):\n%s", diff)
	}
}

// Reads cost: each is asked for only where the answer depends on it.
func TestDecideAsksLittle(t *testing.T) {
	t.Parallel()
	pods := map[protection.Dependents]protection.Count{protection.Pods: {N: 1}}
	cases := map[string]struct {
		why  string
		in   object
		want []string
	}{
		"no label": {"an unprotected namespace costs nothing", object{kind: "Namespace", label: "-"}, nil},
		"always": {
			"pods do not matter, the namespace of the object does",
			object{kind: "CloneSet", label: "Always"},
			[]string{"namespace"},
		},
		"allowed": {
			"a set without replicas is not looked at further", object{kind: "CloneSet", label: "Cascading"}, nil,
		},
		"exempt": {
			"the answer is clear",
			object{
				kind: "Namespace", label: "Cascading", user: "root", policy: protection.Policy{ExemptUsers: []string{"root"}},
			},
			nil,
		},
		"pods": {
			"claims are not listed", object{kind: "Namespace", label: "Cascading", counts: pods}, []string{"Pods", "namespace"},
		},
		"gate off": {
			"custom resources are not listed",
			object{kind: "CustomResourceDefinition", label: "Cascading"},
			[]string{"namespace"},
		},
		"terminating": {
			"a repeated delete costs nothing", object{kind: "Namespace", label: "Cascading", terminating: true}, nil,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, asked := c.in.decide(t)
			if diff := cmp.Diff(c.want, asked); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
		})
	}
}

func TestLabel(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ why, kind, value, want string }{
		"always":    {"every kind has it", "Service", "Always", ""},
		"cascading": {"workloads have it", "CloneSet", "Cascading", ""},
		"cascading, service": {
			why: "it has no effect there", kind: "Service", value: "Cascading",
			want: `metadata.labels[policy.kruise.io/delete-protection]: Invalid value: "Cascading": must be Always, as other values do not protect objects of kind Service`,
		},
		"lower case": {
			why: "values are case-sensitive", kind: "Namespace", value: "always",
			want: `metadata.labels[policy.kruise.io/delete-protection]: Invalid value: "always": must be Always or Cascading, as other values protect nothing`,
		},
		"empty": {
			why: "it protects nothing", kind: "Namespace",
			want: `metadata.labels[policy.kruise.io/delete-protection]: Invalid value: "": must be Always or Cascading, as other values protect nothing`,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ""
			if faults := protection.Label(kindOf(t, c.kind), map[string]string{key: c.value}); len(faults) > 0 {
				got = faults.ToAggregate().Error()
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
		})
	}
	if faults := protection.Label(kindOf(t, "Service"), nil); len(faults) > 0 {
		t.Errorf("without the label: %v", faults)
	}
}

func TestKindOf(t *testing.T) {
	t.Parallel()
	for _, other := range [][2]string{
		{"apps", "DaemonSet"},
		{"apps.kruise.io", "SidecarSet"},
		{"", "Pod"},
		{"", "PersistentVolumeClaim"},
		{"batch", "Job"},
		{"extensions", "Deployment"},
	} {
		if k, ok := protection.KindOf(other[0], other[1]); ok {
			t.Errorf("%v is protected: %+v", other, k)
		}
	}
}
