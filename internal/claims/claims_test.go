package claims_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/claims"
)

func template(name string) corev1.PersistentVolumeClaim {
	claim := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{"no": "matter"},
	}}
	claim.Spec = corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources: corev1.VolumeResourceRequirements{
			Requests: corev1.ResourceList{"storage": resource.MustParse("1Gi")},
			Limits:   corev1.ResourceList{"storage": resource.MustParse("2Gi")},
		},
	}
	return claim
}

func TestHash(t *testing.T) {
	for want, templates := range map[string][]corev1.PersistentVolumeClaim{"": nil, "1129974074": {template("pvc-1")}} {
		if got, err := claims.Hash(templates); err != nil || got != want {
			t.Errorf("%d templates: want %q, got %q, %v", len(templates), want, got, err)
		}
	}
	one, _ := claims.Hash([]corev1.PersistentVolumeClaim{template("a"), template("b")})
	other, _ := claims.Hash([]corev1.PersistentVolumeClaim{template("b"), template("a")})
	if one != other {
		t.Errorf("the order of the templates matters: %s and %s", one, other)
	}
}

func TestNew(t *testing.T) {
	from, bare := template("data"), template("logs")
	bare.Labels = nil
	owner := []metav1.OwnerReference{{UID: "1"}}
	identity := claims.Identity{
		Namespace: "shop", Workload: "web", Pod: "x7", Labels: map[string]string{"no": "longer", "app": "web"}, Owners: owner,
	}
	want := &corev1.PersistentVolumeClaim{Spec: from.Spec, ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "data-web-x7", Labels: identity.Labels, OwnerReferences: owner,
	}}
	if diff := cmp.Diff(want, claims.New(&from, identity)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if from.Labels["no"] != "matter" {
		t.Error("the template has changed")
	}
	if got := claims.New(&bare, identity); got.Labels["app"] != "web" {
		t.Errorf("a template without labels: %v", got.Labels)
	}
}

func TestMount(t *testing.T) {
	pod := &corev1.PodSpec{Volumes: []corev1.Volume{{Name: "logs"}, {Name: "tmp"}}}
	claims.Mount(pod, []corev1.PersistentVolumeClaim{template("data"), template("logs")}, "web", "0")
	claim := func(name string) corev1.VolumeSource {
		return corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}
	}
	want := []corev1.Volume{
		{Name: "tmp"}, {Name: "data", VolumeSource: claim("data-web-0")}, {Name: "logs", VolumeSource: claim("logs-web-0")},
	}
	if diff := cmp.Diff(want, pod.Volumes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

const label = "id"

// claimOf returns a claim of the workload web.
func claimOf(name, id string, change func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace:       "shop",
		Name:            name,
		Labels:          map[string]string{label: id},
		OwnerReferences: []metav1.OwnerReference{{UID: "web", Controller: ptr.To(true)}},
	}}
	if change != nil {
		change(claim)
	}
	return claim
}

func pool(of ...*corev1.PersistentVolumeClaim) claims.Pool {
	return claims.Pool{
		Workload: &metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "web"}, Label: label,
		Templates: []corev1.PersistentVolumeClaim{template("data"), template("logs")}, Claims: of,
	}
}

func TestPool(t *testing.T) {
	p := pool(claimOf("data-web-a", "a", nil), claimOf("data-web-b", "b", nil), claimOf("data-web-c", "", nil),
		claimOf("logs-web-a", "a", nil), claimOf("logs-web-b", "x", nil))
	if !p.Has("logs-web-a", "a") || p.Has("logs-web-b", "b") || p.Has("logs-web-c", "c") {
		t.Error("a claim serves the id that is in its name and in its label")
	}
	if got := p.Of("a"); len(got) != 2 {
		t.Errorf("claims of a: %v", got)
	}
	if got := p.Of(""); len(got) != 0 {
		t.Errorf("a pod without an id has claims: %v", got)
	}
	pods := []*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{label: "a"}}}, {}}
	if diff := cmp.Diff([]string{"b", "x"}, p.Idle(pods)); diff != "" {
		t.Errorf("idle ids (-want +got):\n%s", diff)
	}
	if got := pool().Idle(pods); got != nil {
		t.Errorf("no claims, and idle ids %v", got)
	}
}

// stock is a cache of claims.
type stock struct {
	client.Reader

	claims map[string]*corev1.PersistentVolumeClaim
	reads  []string
	failed error
}

func (s *stock) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	s.reads = append(s.reads, key.Name)
	claim := s.claims[key.Name]
	if claim == nil {
		if s.failed != nil {
			return s.failed
		}
		return apierrors.NewNotFound(schema.GroupResource{Resource: "persistentvolumeclaims"}, key.Name)
	}
	claim.DeepCopyInto(into.(*corev1.PersistentVolumeClaim))
	return nil
}

func TestTaken(t *testing.T) {
	now := metav1.NewTime(time.Unix(1, 0))
	cases := map[string]struct {
		why   string
		claim *corev1.PersistentVolumeClaim
		want  map[string]string
	}{
		"free": {"the name can be used", nil, map[string]string{}},
		"terminating": {
			"the claim is deleted when no pod uses it",
			claimOf("logs-web-a", "a", func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = &now }),
			map[string]string{"a": "claim logs-web-a is terminating"},
		},
		"deleted": {
			"the cache does not show the deletion yet", claimOf("logs-web-a", "a", nil),
			map[string]string{"a": "claim logs-web-a is terminating"},
		},
		"foreign": {
			"another workload has its data there",
			claimOf("logs-web-a", "a", func(c *corev1.PersistentVolumeClaim) { c.OwnerReferences = nil }),
			map[string]string{"a": "claim logs-web-a is not controlled by web"},
		},
		"other instance": {
			"another pod has its data there", claimOf("logs-web-a", "b", nil),
			map[string]string{"a": "claim logs-web-a has another instance id"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := &stock{claims: map[string]*corev1.PersistentVolumeClaim{"logs-web-a": c.claim}}
			got, err := pool(claimOf("data-web-a", "a", nil)).Taken(t.Context(), s, []string{"a"})
			if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
				t.Errorf("%s: %v (-want +got):\n%s", c.why, err, diff)
			}
			if diff := cmp.Diff([]string{"logs-web-a"}, s.reads); diff != "" {
				t.Errorf("reads (-want +got):\n%s", diff)
			}
		})
	}
	s := &stock{failed: errors.New("no cache")}
	if _, err := pool().Taken(t.Context(), s, []string{"a"}); !errors.Is(err, s.failed) {
		t.Errorf("error %v", err)
	}
}

func TestChoose(t *testing.T) {
	is := func(ids ...string) map[string]bool {
		all := map[string]bool{}
		for _, id := range ids {
			all[id] = true
		}
		return all
	}
	ab := pool(claimOf("data-web-a", "a", nil), claimOf("data-web-b", "b", nil), claimOf("data-web-c", "", nil),
		claimOf("logs-web-a", "a", nil))
	cases := map[string]struct {
		why          string
		pool         claims.Pool
		demand       claims.Demand
		ids, blocked []string
	}{
		"claims first": {
			why:    "the new pods find the data of the old ones",
			pool:   ab,
			demand: claims.Demand{Now: 3, Missing: 3},
			ids:    []string{"a", "b", "n1"},
		},
		"used": {
			why:    "a pod has the claim, or the name",
			pool:   ab,
			demand: claims.Demand{Now: 2, Missing: 2, Used: is("a", "n1")},
			ids:    []string{"b", "n2"},
		},
		"pending": {
			why:    "an attempt has created claims for the id",
			pool:   ab,
			demand: claims.Demand{Now: 3, Missing: 3, Pending: []string{"a", "p"}},
			ids:    []string{"a", "b", "p"},
		},
		"leaving": {
			why:    "the pod waits for its claims",
			pool:   ab,
			demand: claims.Demand{Now: 2, Missing: 2, Used: is("a"), Leaving: is("a")},
			ids:    []string{"b"},
		},
		"taken": {
			why:     "the pod waits for the name",
			pool:    ab,
			demand:  claims.Demand{Now: 2, Missing: 2, Taken: map[string]string{"a": "x"}},
			ids:     []string{"b"},
			blocked: []string{"a"},
		},
		"taken, and not needed": {
			why:    "no pod waits",
			pool:   ab,
			demand: claims.Demand{Now: 1, Missing: 1, Taken: map[string]string{"b": "x"}},
			ids:    []string{"a"},
		},
		"taken and pending": {
			why:    "no claim of the id is left to wait for",
			pool:   pool(),
			demand: claims.Demand{Now: 1, Missing: 1, Pending: []string{"p"}, Taken: map[string]string{"p": "x"}},
			ids:    []string{"n1"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			n := 0
			c.demand.New = func() string { n++; return fmt.Sprint("n", n) }
			ids, blocked := c.pool.Choose(c.demand)
			if diff := cmp.Diff([][]string{c.ids, c.blocked}, [][]string{ids, blocked}); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
		})
	}
}
