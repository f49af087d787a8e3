package claims_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/claims"
)

func name(as string) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) { c.Name = as }
}

func terminates(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = &metav1.Time{Time: noon()} }

func ownedBy(ref metav1.OwnerReference) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) { c.OwnerReferences = append(c.OwnerReferences, ref) }
}

// earlier is the reference of a claim of an earlier pod web-0.
func earlier() metav1.OwnerReference {
	return claims.PodRef(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-0", UID: "earlier"}})
}

// named has two templates of 2Gi, data and logs.
func named(have ...*corev1.PersistentVolumeClaim) *claims.Named {
	n := &claims.Named{
		Namespace: "shop",
		Workload:  "web",
		Labels:    map[string]string{"app": "web"},
		Have:      map[string]*corev1.PersistentVolumeClaim{},
	}
	for _, template := range []string{"data", "logs"} {
		n.Templates = append(n.Templates, *claim("2Gi", "0", name(template)))
	}
	for _, c := range have {
		n.Have[c.Name] = c
	}
	return n
}

func TestNames(t *testing.T) {
	want := []string{"data-web-0", "logs-web-0", "data-web-7", "logs-web-7"}
	if diff := cmp.Diff(want, named().Names(slices.Values([]int32{0, 7}))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	none := claims.Named{Workload: "web"}
	if names := none.Names(func(func(int32) bool) {
		t.Error("ordinals are asked for though no template is")
	}); names != nil {
		t.Errorf("names %v without templates", names)
	}
}

func TestMissing(t *testing.T) {
	n := named(claim("1Gi", "1Gi", name("data-web-0")))
	set := metav1.OwnerReference{Kind: "StatefulSet", Name: "web", UID: "set"}
	for why, c := range map[string]struct {
		retention *claims.Retention
		owners    []metav1.OwnerReference
	}{
		"not managed":           {nil, nil},
		"outlasts the workload": {&claims.Retention{Workload: set, WithPod: true}, nil},
		"deleted with the workload": {
			&claims.Retention{Workload: set, WithWorkload: true, WithPod: true}, []metav1.OwnerReference{set},
		},
	} {
		n.Retention = c.retention
		missing := n.Missing(0)
		if len(missing) != 1 || missing[0].GetName() != "logs-web-0" || missing[0].GetNamespace() != "shop" ||
			missing[0].GetLabels()["app"] != "web" {
			t.Fatalf("%s: missing %v", why, missing)
		}
		if diff := cmp.Diff(c.owners, missing[0].GetOwnerReferences()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", why, diff)
		}
	}
}

func TestWait(t *testing.T) {
	deletes := &claims.Retention{WithPod: true}
	for why, c := range map[string]struct {
		claim     *corev1.PersistentVolumeClaim
		retention *claims.Retention
		want      string
	}{
		"the claim is free":                   {claim("2Gi", "2Gi"), deletes, ""},
		"the claim terminates":                {claim("2Gi", "2Gi", terminates), nil, claims.NoteTerminates},
		"the claim goes with the earlier pod": {claim("2Gi", "2Gi", ownedBy(earlier())), deletes, claims.NoteStale},
		"the policy retains":                  {claim("2Gi", "2Gi", ownedBy(earlier())), &claims.Retention{}, ""},
		"the owners of claims are left alone": {claim("2Gi", "2Gi", ownedBy(earlier())), nil, ""},
		"the claim belongs to some other object": {
			claim("2Gi", "2Gi", ownedBy(metav1.OwnerReference{Kind: "Pod", Name: "db-0"})), deletes, "",
		},
	} {
		n := named(c.claim)
		n.Retention = c.retention
		got := ""
		if wait := n.Wait("web-0", 0); wait != nil {
			got = wait.Code
		}
		if got != c.want {
			t.Errorf("%s: code %q, want %q", why, got, c.want)
		}
		if wait := n.Wait("web-1", 1); wait != nil {
			t.Errorf("%s: pod web-1 waits for the claims of web-0: %v", why, wait)
		}
	}
}

func TestRefer(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-0", UID: "pod"}}
	set := metav1.OwnerReference{Kind: "StatefulSet", Name: "web", UID: "set"}
	both := claims.Retention{Workload: set, WithWorkload: true, WithPod: true}
	for why, c := range map[string]struct {
		retention *claims.Retention
		has       []metav1.OwnerReference
		unwanted  bool
		patches   int
	}{
		"owners are left alone":           {nil, []metav1.OwnerReference{set}, true, 0},
		"nothing to change":               {&both, []metav1.OwnerReference{set}, false, 0},
		"the workload becomes the owner":  {&both, nil, false, 1},
		"the pod takes over":              {&both, []metav1.OwnerReference{set}, true, 1},
		"the pod has taken over":          {&both, []metav1.OwnerReference{claims.PodRef(pod)}, true, 0},
		"the ordinal is wanted again":     {&both, []metav1.OwnerReference{claims.PodRef(pod)}, false, 1},
		"a policy of Retain takes it off": {&claims.Retention{Workload: set}, []metav1.OwnerReference{set}, false, 1},
	} {
		claim := claim("2Gi", "2Gi")
		claim.OwnerReferences = c.has
		n := named(claim)
		n.Retention = c.retention
		if writes := n.Refer(pod, 0, c.unwanted); len(writes) != c.patches {
			t.Errorf("%s: %d patches, want %d", why, len(writes), c.patches)
		}
	}
}

func TestPodFit(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(noon().Add(-time.Hour))}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady}}
	logs := func(changes ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
		return claim("2Gi", "1Gi", append(changes, name("logs-web-0"))...)
	}
	waits := func(d time.Duration) func(*corev1.PersistentVolumeClaim) { return remounts(noon().Add(-d)) }
	for why, c := range map[string]struct {
		have []*corev1.PersistentVolumeClaim
		want claims.PodFit
	}{
		"no claims": {nil, claims.PodFit{}},
		"they fit":  {[]*corev1.PersistentVolumeClaim{claim("2Gi", "2Gi")}, claims.PodFit{}},
		"one of two is too small": {
			[]*corev1.PersistentVolumeClaim{claim("1Gi", "1Gi"), logs(waits(time.Minute))},
			claims.PodFit{Outdated: true, Grows: true, RemountsAfter: time.Minute},
		},
		"one of two grows": {
			[]*corev1.PersistentVolumeClaim{claim("2Gi", "2Gi"), logs()}, claims.PodFit{Outdated: true, Grows: true},
		},
		"the sooner counts": {
			[]*corev1.PersistentVolumeClaim{claim("2Gi", "1Gi", waits(90*time.Second)), logs(waits(time.Minute))},
			claims.PodFit{Grows: true, RemountsAfter: 30 * time.Second},
		},
		"one has waited enough": {
			[]*corev1.PersistentVolumeClaim{claim("2Gi", "1Gi", waits(time.Hour)), logs(waits(time.Minute))},
			claims.PodFit{Grows: true, Remounts: true, RemountsAfter: time.Minute},
		},
		"it terminates":   {[]*corev1.PersistentVolumeClaim{claim("1Gi", "1Gi", terminates)}, claims.PodFit{}},
		"it is not bound": {[]*corev1.PersistentVolumeClaim{claim("1Gi", "0", unbound)}, claims.PodFit{}},
	} {
		if diff := cmp.Diff(c.want, named(c.have...).Fit(pod, 0, noon())); diff != "" {
			t.Errorf("%s (-want +got):\n%s", why, diff)
		}
	}
}

func TestAhead(t *testing.T) {
	logs := claim("1Gi", "1Gi", name("logs-web-0"), class("slow"))
	n := named(claim("1Gi", "1Gi"), claim("2Gi", "1Gi", name("logs-web-0")))
	if ahead := n.Ahead(0); len(ahead.Writes) != 1 || ahead.Wait != "the volume of claim logs-web-0 is to grow" ||
		ahead.Err != nil {
		t.Errorf("one is to be expanded, and the other grows: %+v", ahead)
	}
	if ahead := n.Ahead(1); len(ahead.Writes) != 0 || ahead.Wait != "" || ahead.Err != nil {
		t.Errorf("another ordinal has no claims: %+v", ahead)
	}
	if ahead := named(claim("1Gi", "1Gi"), logs).Ahead(0); len(ahead.Writes) != 0 || ahead.Err == nil {
		t.Errorf("none is expanded where one cannot be: %+v", ahead)
	}
}

// classReader counts reads, and finds nothing but what fails.
type classReader struct {
	client.Reader
	read []string
	err  error
}

func (r *classReader) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	r.read = append(r.read, key.Name)
	return r.err
}

func TestReadClasses(t *testing.T) {
	n := named(
		claim("1Gi", "1Gi", class("slow")), claim("1Gi", "1Gi", class("slow"), name("logs-web-0")),
		claim("2Gi", "2Gi", class("fast"), name("data-web-1")), claim("1Gi", "1Gi", name("logs-web-1")),
	)
	r := &classReader{}
	if err := n.ReadClasses(t.Context(), r, slices.Values([]int32{0, 1})); err != nil ||
		!slices.Equal(r.read, []string{"slow"}) || n.Classes["slow"] == nil {
		t.Errorf("each class of a claim that is to grow is read once: %v, %v", r.read, err)
	}
	r.err = errors.New("unreachable")
	if err := n.ReadClasses(t.Context(), r, slices.Values([]int32{0})); !errors.Is(err, r.err) {
		t.Errorf("error %v", err)
	}
}

func TestStatus(t *testing.T) {
	n := named(claim("2Gi", "2Gi"), claim("2Gi", "1Gi", name("data-web-1")), claim("1Gi", "1Gi", name("data-web-2")),
		claim("2Gi", "2Gi", name("data-web-3")))
	want := []v1beta1.VolumeClaimStatus{
		{VolumeClaimName: "data", CompatibleReplicas: 2, CompatibleReadyReplicas: 1}, {VolumeClaimName: "logs"},
	}
	if diff := cmp.Diff(want, n.Status(slices.Values([]int32{0, 1, 2}))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMounts(t *testing.T) {
	n, pod := named(), &corev1.PodSpec{Volumes: []corev1.Volume{{Name: "data"}}}
	if claims.Mounts(pod, n.Templates) {
		t.Error("a volume that is no claim counts")
	}
	claims.Mount(pod, n.Templates, "web", "0")
	if !claims.Mounts(pod, n.Templates) || claims.Mounts(pod, append(n.Templates, *claim("1Gi", "0", name("more")))) {
		t.Error("a pod mounts the claims that it was given, and no others")
	}
}
