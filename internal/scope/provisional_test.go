package scope_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/scope"
)

const someApp = `selector: {matchLabels: {app: a}}`

// admitted is a set as webhooks see it.
func admitted(set *appsv1beta1.SidecarSet) *appsv1beta1.SidecarSet {
	set.UID, set.Generation = types.UID("uid-"+set.Name), 3
	return set
}

// The entry is as the planned one of the set alone, whatever else there is, but for how it selects the pods, under a
// name and a path of its own, and ignored where no replica answers: nothing shows that the set will be stored.
func TestProvisional(t *testing.T) {
	cases := map[string]struct {
		why  string
		set  *appsv1beta1.SidecarSet
		path string
	}{
		"closed": {
			"the path reports that its pods must not go without", newSet(t, "a.b", someApp), "/mutate-pod-new/a.b/uid-a.b/3",
		},
		"open": {"its pods may go without", open(newSet(t, "a", someApp)), "/mutate-pod-new-open/a/uid-a/3"},
		"labels": {
			"of namespaces", newSet(t, "a", someApp+"\nnamespaceSelector: {matchLabels: {env: prod}}"),
			"/mutate-pod-new/a/uid-a/3",
		},
		"paused": {"it selects nothing now", newSet(t, "a", someApp+"\ninjectionStrategy: {paused: true}"), ""},
		"empty":  {"it selects nothing", newSet(t, "a", `selector: {}`), ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			in := input(newSet(t, "other", `selector: {matchLabels: {app: b}}`))
			in.Contributions = append(in.contributions(t), scope.Readiness(true).Contribute(nil))
			count := len(in.Contributions)
			got := scope.Provisional(in.Input, admitted(c.set))
			if (got == nil) != (c.path == "") {
				t.Fatalf("%s: %+v", c.why, got)
			}
			if got == nil {
				return
			}
			mark, ok := scope.ReadMark(*got.ClientConfig.Service.Path)
			if *got.ClientConfig.Service.Path != c.path || !ok || mark != scope.MarkOf(c.set) || !mark.In(c.set) {
				t.Errorf("%s: path %s, mark %+v", c.why, *got.ClientConfig.Service.Path, mark)
			}
			if !scope.IsProvisional(got.Name) || !scope.Ours(got.Name) || strings.Count(got.Name, ".") != 2 {
				t.Errorf("it is called %s", got.Name)
			}
			want := compute(t, input(c.set)).Entries[0]
			if scope.IsProvisional(want.Name) {
				t.Errorf("%s is taken for a provisional one", want.Name)
			}
			want.Name, want.ClientConfig = got.Name, got.ClientConfig
			want.FailurePolicy, want.TimeoutSeconds = ptr.To(admissionregistrationv1.Ignore), ptr.To[int32](2)
			want.MatchConditions, want.ObjectSelector, want.NamespaceSelector = nil, got.ObjectSelector, got.NamespaceSelector
			if diff := cmp.Diff(want, *got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
			if *in.Client.Service.Path != "/mutate-pod" || len(in.Contributions) != count {
				t.Error("the input changed")
			}
			in.Client.Service, in.Client.URL = nil, ptr.To("https://localhost:1/mutate-pod")
			if got = scope.Provisional(in.Input, c.set); *got.ClientConfig.URL != "https://localhost:1"+c.path {
				t.Errorf("the address is %v", got)
			}
		})
	}
}

// Its selectors choose the pods that the set selects, but for those that are spared.
func TestProvisionalSelects(t *testing.T) {
	chosen, left := 0, 0
	for seed := range uint64(400) {
		d := newDraw(seed)
		set := d.sets(1)[0]
		entry := scope.Provisional(input().Input, admitted(set))
		for n := range 20 {
			pod := d.pod(n)
			closed, open := concerns(input(set), pod)
			got := entry != nil && chooses(t, entry, pod)
			if got != (closed || open) {
				t.Errorf("seed %d: pod %s/%s %v: %t by %+v, for %+v",
					seed, pod.Namespace, pod.Name, pod.Labels, got, entry, set.Spec)
			}
			if got {
				chosen++
			} else {
				left++
			}
		}
	}
	if chosen < 100 || left < 100 {
		t.Errorf("%d pods are chosen, %d are not", chosen, left)
	}
}

// chooses goes by the selectors alone, as API servers do where there is no condition.
func chooses(t *testing.T, entry *admissionregistrationv1.MutatingWebhook, pod *corev1.Pod) bool {
	t.Helper()
	if len(entry.MatchConditions) > 0 {
		t.Fatalf("conditions %v", entry.MatchConditions)
	}
	of := map[string]string{corev1.LabelMetadataName: pod.Namespace}
	maps.Copy(of, places()[pod.Namespace])
	for _, s := range []struct {
		selector *metav1.LabelSelector
		of       map[string]string
	}{{entry.NamespaceSelector, of}, {entry.ObjectSelector, pod.Labels}} {
		selector, err := metav1.LabelSelectorAsSelector(s.selector)
		if err != nil {
			t.Fatal(err)
		}
		if !selector.Matches(labels.Set(s.of)) {
			return false
		}
	}
	return true
}

func TestMark(t *testing.T) {
	mark := scope.Mark{Set: "a", UID: "uid-a", Generation: 3}
	for why, c := range map[string]struct {
		change func(*appsv1beta1.SidecarSet)
		want   bool
	}{
		"the same":             {func(*appsv1beta1.SidecarSet) {}, true},
		"later":                {func(s *appsv1beta1.SidecarSet) { s.Generation++ }, true},
		"earlier":              {func(s *appsv1beta1.SidecarSet) { s.Generation-- }, false},
		"another of the name":  {func(s *appsv1beta1.SidecarSet) { s.UID = "other" }, false},
		"another name":         {func(s *appsv1beta1.SidecarSet) { s.Name = "b" }, false},
		"another policy":       {func(s *appsv1beta1.SidecarSet) { open(s) }, false},
		"another policy later": {func(s *appsv1beta1.SidecarSet) { open(s).Generation++ }, true},
	} {
		set := admitted(newSet(t, "a", someApp))
		c.change(set)
		if got := mark.In(set); got != c.want {
			t.Errorf("%s: %t", why, got)
		}
	}
	for _, path := range []string{
		"", "/", "/mutate-pod", "/mutate-pod-open", "/mutate-pod-new", "/mutate-pod-new/a/u", "/mutate-pod-new/a/u/x",
		"/mutate-pod-new//u/1", "/mutate-pod/a/u/1", "a/b/c/d/e",
	} {
		if got, ok := scope.ReadMark(path); ok {
			t.Errorf("%q: %+v", path, got)
		}
	}
}

// What brings no pod that was not there before needs no entry.
func TestWidens(t *testing.T) {
	paused := someApp + "\ninjectionStrategy: {paused: true}"
	for why, c := range map[string]struct {
		now, before *appsv1beta1.SidecarSet
		want        bool
	}{
		"new":            {newSet(t, "a", someApp), nil, true},
		"new and paused": {newSet(t, "a", paused), nil, false},
		"unchanged":      {newSet(t, "a", someApp+"\nrevisionHistoryLimit: 2"), newSet(t, "a", someApp), false},
		"of other pods":  {newSet(t, "a", someApp), newSet(t, "a", `selector: {matchLabels: {app: b}}`), true},
		"of other spaces": {
			newSet(t, "a", someApp), newSet(t, "a", someApp+"\nnamespaceSelector: {matchLabels: {env: prod}}"), true,
		},
		"goes on":            {newSet(t, "a", someApp), newSet(t, "a", paused), true},
		"pauses":             {newSet(t, "a", paused), newSet(t, "a", someApp), false},
		"must not be missed": {newSet(t, "a", someApp), open(newSet(t, "a", someApp)), true},
	} {
		if got := scope.Widens(c.now, c.before); got != c.want {
			t.Errorf("%s: %t", why, got)
		}
	}
}
