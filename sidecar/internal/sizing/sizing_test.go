package sizing_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/utils/ptr"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/sidecar/internal/sizing"
)

// list makes resources of cpu and memory, each left out where empty.
func list(cpu, memory string) corev1.ResourceList {
	l := corev1.ResourceList{}
	if cpu != "" {
		l[corev1.ResourceCPU] = resource.MustParse(cpu)
	}
	if memory != "" {
		l[corev1.ResourceMemory] = resource.MustParse(memory)
	}
	return l
}

func container(name string, limits, requests corev1.ResourceList) corev1.Container {
	return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Limits: limits, Requests: requests}}
}

func native(c corev1.Container) corev1.Container {
	c.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
	return c
}

// policy has formulas for limits.cpu, limits.memory, requests.cpu and requests.memory.
func policy(mode appsv1beta1.TargetContainersModeType, formulas ...string) *appsv1beta1.ResourcesPolicy {
	formulas = append(formulas, "", "", "", "")
	return &appsv1beta1.ResourcesPolicy{
		TargetContainersMode: mode, TargetContainersNameRegex: ".*",
		ResourcesExpr: appsv1beta1.ResourcesExpr{
			Limits:   &appsv1beta1.ResourceExprList{CPU: formulas[0], Memory: formulas[1]},
			Requests: &appsv1beta1.ResourceExprList{CPU: formulas[2], Memory: formulas[3]},
		},
	}
}

// written is what resources look like to a user.
func written(r corev1.ResourceRequirements) map[string]string {
	texts := map[string]string{}
	for list, of := range map[string]corev1.ResourceList{"limits.": r.Limits, "requests.": r.Requests} {
		for name, q := range of {
			texts[list+string(name)] = q.String()
		}
	}
	return texts
}

const (
	sum = appsv1beta1.TargetContainersModeSum
	top = appsv1beta1.TargetContainersModeMax
)

func TestSize(t *testing.T) {
	pair := []corev1.Container{
		container("a", list("200m", "400Mi"), list("100m", "200Mi")),
		container("b", list("400m", "600Mi"), list("200m", "300Mi")),
	}
	partly := []corev1.Container{
		container("a", list("200m", ""), list("", "")), container("b", list("", "600Mi"), list("50m", "")),
	}
	cases := map[string]struct {
		policy  *appsv1beta1.ResourcesPolicy
		targets []corev1.Container
		want    map[string]string
		notes   []string // code, object
	}{
		"a sum of all four": {
			policy:  policy(sum, "cpu*50% + 100m", "max(memory*20% + 100Mi, 200Mi)", "cpu*30% + 50m", "memory*15% + 50Mi"),
			targets: pair,
			want: map[string]string{
				"limits.cpu": "400m", "limits.memory": "300Mi", "requests.cpu": "140m", "requests.memory": "125Mi",
			},
		},
		"the larger of each": {
			policy:  policy(top, "cpu", "memory", "cpu", "memory"),
			targets: pair,
			want: map[string]string{
				"limits.cpu": "400m", "limits.memory": "600Mi", "requests.cpu": "200m", "requests.memory": "300Mi",
			},
		},
		"no limits without all of them": {
			policy(sum, "cpu", "200Mi"), partly,
			map[string]string{},
			[]string{sizing.NoteUnlimited, "limits.cpu", sizing.NoteUnlimited, "limits.memory"},
		},
		"a broken limit that is not needed": {
			policy:  policy(sum, "cpu*cpu"),
			targets: partly,
			want:    map[string]string{},
			notes:   []string{sizing.NoteUnlimited, "limits.cpu"},
		},
		"requests that some lack": {
			policy: policy(sum, "", "", "cpu*2"), targets: partly, want: map[string]string{"requests.cpu": "100m"},
		},
		"a limit of 0": {
			policy:  policy(sum, "cpu*50%"),
			targets: []corev1.Container{container("a", list("0", ""), nil)},
			want:    map[string]string{"limits.cpu": "0"},
		},
		"no policy": {nil, pair, map[string]string{}, nil},
		"a request above its limit": {
			policy(sum, "100m", "", "cpu"), pair,
			map[string]string{"limits.cpu": "100m", "requests.cpu": "300m"},
			[]string{sizing.NoteAboveLimit, "requests.cpu"},
		},
		"a fraction of a byte": {
			policy(sum, "", "memory/3"), pair,
			map[string]string{"limits.memory": "349525333333m"},
			[]string{sizing.NoteFraction, "limits.memory"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p, err := sizing.Parse(c.policy)
			if err != nil {
				t.Fatal(err)
			}
			sized, err := p.Size(c.targets)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, written(sized.Resources)); diff != "" {
				t.Errorf("resources: %s", diff)
			}
			var notes []string
			for _, note := range sized.Notes {
				notes = append(notes, note.Code, note.Object)
				if note.Text == "" {
					t.Errorf("%v says nothing", note)
				}
			}
			if diff := cmp.Diff(c.notes, notes); diff != "" {
				t.Errorf("notes: %s", diff)
			}
		})
	}
}

func TestSizeRefuses(t *testing.T) {
	targets := []corev1.Container{container("a", list("1", "1Gi"), nil)}
	cases := map[string]struct {
		policy        *appsv1beta1.ResourcesPolicy
		reason, where string
	}{
		"negative":           {policy(sum, "cpu-2"), errNegative, "limits.cpu"},
		"broken":             {policy(sum, "", "memory*"), "expected a number", "limits.memory"},
		"the other variable": {policy(sum, "", "", "memory"), errUndefined, "requests.cpu"},
		"too large":          {policy(sum, "", "memory*1e9"), errHeld, "limits.memory"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p, err := sizing.Parse(c.policy)
			if err != nil {
				t.Fatal(err)
			}
			sized, err := p.Size(targets)
			if err == nil || !strings.Contains(err.Error(), c.reason) || !strings.Contains(err.Error(), c.where) {
				t.Errorf("want %s in %s, got %v, %v", c.reason, c.where, sized, err)
			}
		})
	}
	p, err := sizing.Parse(policy(sum, "1"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err = p.Size(nil); !errors.Is(err, sizing.ErrNoTarget) {
		t.Errorf("want ErrNoTarget, got %v", err)
	}
}

func TestTargets(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		InitContainers: []corev1.Container{
			container("setup", nil, nil), native(container("mesh", nil, nil)), native(container("injected-init", nil, nil)),
		},
		Containers: []corev1.Container{
			container("app", nil, nil), container("app-2", nil, nil), container("injected", nil, nil),
		},
	}}
	pod.Spec.InitContainers[0].RestartPolicy = ptr.To(corev1.ContainerRestartPolicy("Never"))
	declared := []string{"injected", "injected-init", "elsewhere"}
	cases := map[string]struct {
		names    string
		pod      *corev1.Pod
		declared []string
		want     []string
	}{
		"all but what sets bring": {".*", pod, declared, []string{"mesh", "app", "app-2"}},
		"no sets bring any":       {"", pod, nil, []string{"mesh", "injected-init", "app", "app-2", "injected"}},
		"a part of the name":      {"pp", pod, declared, []string{"app", "app-2"}},
		"no pod":                  {".*", nil, declared, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			of := policy(sum)
			of.TargetContainersNameRegex = c.names
			p, err := sizing.Parse(of)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, target := range p.Targets(c.pod, c.declared) {
				got = append(got, target.Name)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	change := func(p *appsv1beta1.ResourcesPolicy, by func(*appsv1beta1.ResourcesPolicy)) *appsv1beta1.ResourcesPolicy {
		by(p)
		return p
	}
	cases := map[string]struct {
		policy *appsv1beta1.ResourcesPolicy
		want   []string // fields
		parses bool
	}{
		"none":                      {nil, nil, true},
		"sound":                     {policy(sum, "max(cpu*50%, 50m)", "memory-100Mi", "cpu-2", "64Mi"), nil, true},
		"a number that counts as 0": {policy(top, "cpu + 1e"), nil, true},
		"broken formulas, all of them": {
			policy(sum, "cpu +*/ 50%", "cpu", "cpu*cpu", "-memory-1"),
			[]string{
				"resourcesExpr.limits.cpu", "resourcesExpr.limits.memory", "resourcesExpr.requests.cpu",
				"resourcesExpr.requests.memory",
			},
			true,
		},
		"another mode": {policy("avg", "cpu"), []string{"targetContainersMode"}, false},
		"no mode":      {policy("", "cpu"), []string{"targetContainersMode"}, false},
		"a pattern that does not compile": {
			change(policy(sum, "cpu"), func(p *appsv1beta1.ResourcesPolicy) { p.TargetContainersNameRegex = "(" }),
			[]string{"targetContainersNameRegex"},
			false,
		},
		"no pattern": {
			change(policy(sum, "cpu"), func(p *appsv1beta1.ResourcesPolicy) { p.TargetContainersNameRegex = "" }),
			[]string{"targetContainersNameRegex"},
			true,
		},
		"no lists": {
			change(policy(sum), func(p *appsv1beta1.ResourcesPolicy) { p.ResourcesExpr = appsv1beta1.ResourcesExpr{} }),
			[]string{"resourcesExpr"},
			true,
		},
		"everything": {
			&appsv1beta1.ResourcesPolicy{},
			[]string{"targetContainersMode", "targetContainersNameRegex", "resourcesExpr"},
			false,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, fault := range sizing.Check(c.policy) {
				got = append(got, fault.Field)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if _, err := sizing.Parse(c.policy); (err == nil) != c.parses {
				t.Errorf("Parse: %v", err)
			}
		})
	}
}

// TestOrder tries all orders of some containers: only how a result is written may differ. What is given stays as it is.
func TestOrder(t *testing.T) {
	some := []corev1.Container{
		container("a", list("200m", "1Gi"), list("", "1G")), container("b", list("1", "512Mi"), list("3", "1Gi")),
		container("c", list("0", "3M"), list("1500m", "")), container("d", list("7", "1"), list("0", "7Ki")),
	}
	before := make([]corev1.Container, 0, len(some))
	for i := range some {
		before = append(before, *some[i].DeepCopy())
	}
	for _, mode := range []appsv1beta1.TargetContainersModeType{sum, top} {
		p, err := sizing.Parse(policy(mode, "cpu/3", "memory*50%", "max(cpu, 1)", "memory+1"))
		if err != nil {
			t.Fatal(err)
		}
		want, err := p.Size(some)
		if err != nil {
			t.Fatal(err)
		}
		// The largest of these, and their sums, from the list above.
		if cpu := want.Resources.Limits.Cpu().MilliValue(); mode == sum && cpu != 8200/3 || mode == top && cpu != 7000/3 {
			t.Errorf("%s: a third of the cpu is %dm", mode, cpu)
		}
		permute(some, 0, func(order []corev1.Container) {
			got, err := p.Size(order)
			if err != nil {
				t.Fatal(err)
			}
			equal := cmp.Comparer(func(a, b resource.Quantity) bool { return a.Cmp(b) == 0 })
			if diff := cmp.Diff(want, got, equal, cmpopts.IgnoreFields(note.Note{}, "Text")); diff != "" {
				t.Fatalf("%s: %s", mode, diff)
			}
		})
	}
	if diff := cmp.Diff(before, some); diff != "" {
		t.Errorf("the containers changed: %s", diff)
	}
}

// permute tries all orders of what comes at a place or behind it, and leaves them in the first.
func permute(all []corev1.Container, from int, try func([]corev1.Container)) {
	if from == len(all) {
		try(all)
		return
	}
	for i := from; i < len(all); i++ {
		all[from], all[i] = all[i], all[from]
		permute(all, from+1, try)
		all[from], all[i] = all[i], all[from]
	}
}
