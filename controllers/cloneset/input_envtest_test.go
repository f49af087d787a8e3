//go:build envtest

package cloneset_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/pub"
	"github.com/kruisekit/kruisekit/controllers/cloneset"
)

// No webhook has looked at these: each is told in a condition and an event, once, costs next to nothing while nobody mends it,
// and works as soon as somebody does.
func TestInvalidSets(t *testing.T) {
	rolling := func(s v1beta1.RollingUpdateCloneSetStrategy) func(*v1beta1.CloneSet) {
		return func(set *v1beta1.CloneSet) { set.Spec.UpdateStrategy.RollingUpdate = &s }
	}
	noStrategy := func(set *v1beta1.CloneSet) { set.Spec.UpdateStrategy = v1beta1.CloneSetUpdateStrategy{} }
	const scaling, updating = v1beta1.CloneSetConditionFailedScale, v1beta1.CloneSetConditionFailedUpdate
	cases := map[string]struct {
		why           string
		spoil, mend   func(*v1beta1.CloneSet)
		condition     v1beta1.CloneSetConditionType
		text, event   string
		pods          int
		requestsLater int // in three seconds
	}{
		"selector that is none": {"nobody can tell which pods are its own", func(s *v1beta1.CloneSet) {
			s.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "app", Operator: "In"}}
		}, func(s *v1beta1.CloneSet) { s.Spec.Selector.MatchExpressions = nil }, scaling, "spec.selector", "InvalidSpec", 0, 0},
		"selector of others": {"its pods would not be its own, and each would be given up for the next", func(s *v1beta1.CloneSet) {
			s.Spec.Selector.MatchLabels = map[string]string{"app": "other"}
		}, func(s *v1beta1.CloneSet) { s.Spec.Selector.MatchLabels = map[string]string{"app": s.Name} }, scaling, "does not match", "InvalidSpec", 0, 0},
		"selector that a new pod leaves": {"as above, by a label that the controller writes", func(s *v1beta1.CloneSet) {
			s.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "lifecycle.apps.kruise.io/state", Operator: "DoesNotExist"}}
		}, func(s *v1beta1.CloneSet) { s.Spec.Selector.MatchExpressions = nil }, scaling, "does not match", "InvalidSpec", 0, 0},
		"partition":      {"it counts as none", rolling(v1beta1.RollingUpdateCloneSetStrategy{Partition: ptr.To(intstr.FromString("lots"))}), noStrategy, updating, "partition", "InvalidSpec", 2, 0},
		"maxUnavailable": {"the default counts", rolling(v1beta1.RollingUpdateCloneSetStrategy{MaxUnavailable: ptr.To(intstr.FromString("5"))}), noStrategy, updating, "maxUnavailable", "InvalidSpec", 2, 0},
		"maxSurge":       {"it counts as none", rolling(v1beta1.RollingUpdateCloneSetStrategy{MaxSurge: ptr.To(intstr.FromString("%"))}), noStrategy, updating, "maxSurge", "InvalidSpec", 2, 0},
		"scale maxUnavailable": {
			"it counts as none", func(s *v1beta1.CloneSet) { s.Spec.ScaleStrategy.MaxUnavailable = ptr.To(intstr.FromString("")) },
			func(s *v1beta1.CloneSet) { s.Spec.ScaleStrategy.MaxUnavailable = nil }, updating, "scaleStrategy.maxUnavailable", "InvalidSpec", 2, 0,
		},
		"template": {
			"the API server refuses its pods, and is asked less and less", func(s *v1beta1.CloneSet) { s.Spec.Template.Spec.Containers[0].Name = "A b" },
			func(s *v1beta1.CloneSet) { s.Spec.Template.Spec.Containers[0].Name = "web" }, scaling, "spec.containers[0].name", "FailedCreate", 0, 12,
		},
		"claim template": {
			"the API server refuses its claims", func(s *v1beta1.CloneSet) { withClaims(s); s.Spec.VolumeClaimTemplates[0].Spec.AccessModes = nil },
			func(s *v1beta1.CloneSet) { s.Spec.VolumeClaimTemplates = nil }, scaling, "spec.accessModes", "FailedCreate", 0, 12,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := start(t, cloneset.Options{})
			set := b.create("web", 2, c.spoil)
			b.eventually(set, func(set *v1beta1.CloneSet, pods []corev1.Pod) error {
				if text := condition(set, c.condition); !strings.Contains(text, c.text) || len(pods) != c.pods || set.Status.ObservedGeneration != set.Generation {
					return fmt.Errorf("%d pods, %q, status %+v", len(pods), text, set.Status)
				}
				return b.told(set, c.event)
			})
			b.calm(c.requestsLater)
			if n := len(b.events(set, "InvalidSpec")); c.event == "InvalidSpec" && n != 1 {
				t.Errorf("%s: told %d times", c.why, n)
			}
			b.change(set, c.mend)
			b.eventually(set, settled)
			b.eventually(set, func(set *v1beta1.CloneSet, _ []corev1.Pod) error {
				if text := condition(set, c.condition); text != "" {
					return fmt.Errorf("the condition stays: %s", text)
				}
				return nil
			})
		})
	}
}

// A quota refuses what a set needs. It is told, asked for less and less, makes no heap of claims meanwhile, and when the
// quota is raised the set goes on by itself.
func TestQuota(t *testing.T) {
	cases := map[string]struct {
		why      string
		resource corev1.ResourceName
		reuse    bool
		claims   int
	}{
		"pods":                     {"the claim of the first one is made, and kept for it", corev1.ResourcePods, false, 1},
		"pods, with reused claims": {"as well", corev1.ResourcePods, true, 1},
		"claims":                   {"there is no pod without its claim", corev1.ResourcePersistentVolumeClaims, false, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := start(t, cloneset.Options{})
			raise := b.quota(c.resource)
			set := b.create("web", 2, func(s *v1beta1.CloneSet) {
				withClaims(s)
				s.Spec.ScaleStrategy.EnablePVCReuse = c.reuse
			})
			b.eventually(set, func(set *v1beta1.CloneSet, pods []corev1.Pod) error {
				if text := condition(set, v1beta1.CloneSetConditionFailedScale); !strings.Contains(text, "exceeded quota") || len(pods) > 0 {
					return fmt.Errorf("%d pods, %q", len(pods), text)
				}
				return b.told(set, "FailedCreate")
			})
			b.calm(12)
			if n := len(about(b.requests.take(), "POST", "/persistentvolumeclaims 201")); n != c.claims {
				t.Errorf("%s: %d claims were made, want %d", c.why, n, c.claims)
			}
			raise("10")
			b.eventually(set, settled)
			if n := len(b.claims()); n != 2 {
				t.Errorf("%d claims, want 2", n)
			}
			if text := condition(set, v1beta1.CloneSetConditionFailedScale); text != "" {
				t.Errorf("the condition stays: %s", text)
			}
		})
	}
}

// quota lets none of a resource through, and gives what raises it.
func (b *bench) quota(of corev1.ResourceName) (raise func(string)) {
	b.Helper()
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "small"}}
	q.Spec.Hard = corev1.ResourceList{of: resource.MustParse("0")}
	if err := b.client.Create(b.Context(), q); err != nil {
		b.Fatal(err)
	}
	raise = func(to string) {
		b.Helper()
		// No controller of quotas runs: it would copy this into the status.
		q.Status = corev1.ResourceQuotaStatus{
			Hard: corev1.ResourceList{of: resource.MustParse(to)}, Used: corev1.ResourceList{of: resource.MustParse("0")},
		}
		if err := b.client.Status().Update(b.Context(), q); err != nil {
			b.Fatal(err)
		}
	}
	raise("0")
	trial := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "trial"}}
	trial.Spec.Containers = []corev1.Container{{Name: "web", Image: "web:1"}}
	claim := &v1beta1.CloneSet{}
	withClaims(claim)
	object := client.Object(trial)
	switch of {
	case corev1.ResourcePersistentVolumeClaims:
		object = &claim.Spec.VolumeClaimTemplates[0]
		object.SetNamespace(b.namespace)
	case corev1.ResourcePods:
	default:
		object = &appsv1.ControllerRevision{ObjectMeta: trial.ObjectMeta, Data: runtime.RawExtension{Raw: []byte("{}")}}
	}
	b.until(func() error {
		if err := b.client.Create(b.Context(), object.DeepCopyObject().(client.Object), client.DryRunAll); err == nil || !strings.Contains(err.Error(), "exceeded quota") {
			return fmt.Errorf("the quota does not hold yet: %w", err)
		}
		return nil
	})
	return raise
}

// calm fails when more than some requests are made in three seconds, after the first few attempts that are quick.
func (b *bench) calm(most int) {
	b.Helper()
	time.Sleep(3 * time.Second) //nolint:forbidigo // what is made meanwhile is the thing to count
	b.requests.mu.Lock()
	before := len(b.requests.all)
	b.requests.mu.Unlock()
	time.Sleep(3 * time.Second) //nolint:forbidigo // the same
	b.requests.mu.Lock()
	all := b.requests.all[before:]
	b.requests.mu.Unlock()
	if len(all) > most {
		b.Errorf("%d requests in three seconds, want at most %d:\n%s", len(all), most, strings.Join(all, "\n"))
	}
}

// What refuses a pod may say something else each time, as the number of a request. That is no reason to ask again at once.
func TestRefusalsThatReadDifferently(t *testing.T) {
	var n atomic.Int64
	b := startWith(t, cloneset.Options{}, func(c client.WithWatch) client.Client {
		return interceptor.NewClient(c, interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				if _, is := o.(*corev1.Pod); is {
					return fmt.Errorf("refused, see request %d", n.Add(1))
				}
				return c.Create(ctx, o, opts...)
			},
		})
	})
	set := b.create("web", 1, nil)
	b.eventually(set, func(set *v1beta1.CloneSet, _ []corev1.Pod) error {
		if text := condition(set, v1beta1.CloneSetConditionFailedScale); !strings.Contains(text, "refused") {
			return fmt.Errorf("condition %q", text)
		}
		return b.told(set, "FailedCreate")
	})
	b.calm(12)
}

// A template is changed so that its pods would leave the set. The pods that are there stay as they are.
func TestTemplateLeavesItsSet(t *testing.T) {
	b := start(t, cloneset.Options{})
	set := b.create("web", 2, inPlace)
	b.eventually(set, settled)
	before := uids(b.pods(set))
	b.change(set, func(s *v1beta1.CloneSet) { s.Spec.Template.Labels = map[string]string{"app": "other"} })
	b.eventually(set, func(set *v1beta1.CloneSet, _ []corev1.Pod) error { return b.told(set, "InvalidSpec") })
	b.calm(0)
	b.stays(set, all(counts(2, 2), states(map[pub.LifecycleState]int{pub.LifecycleStateNormal: 2})))
	if now := uids(b.pods(set)); fmt.Sprint(now) != fmt.Sprint(before) {
		t.Errorf("pods %v became %v", before, now)
	}
	b.change(set, func(s *v1beta1.CloneSet) { s.Spec.Template.Labels = map[string]string{"app": "web"} })
	b.eventually(set, settled)
}

// A quota lets no revision through: that is told as well.
func TestQuotaOfRevisions(t *testing.T) {
	b := start(t, cloneset.Options{})
	raise := b.quota("count/controllerrevisions.apps")
	set := b.create("web", 1, nil)
	b.eventually(set, func(set *v1beta1.CloneSet, _ []corev1.Pod) error {
		if text := condition(set, v1beta1.CloneSetConditionFailedScale); !strings.Contains(text, "exceeded quota") {
			return fmt.Errorf("condition %q", text)
		}
		return b.told(set, "FailedCreate")
	})
	b.calm(12)
	raise("10")
	b.eventually(set, settled)
}

// Two sets select each other's pods: each keeps its own, whatever the other does.
func TestOverlappingSelectors(t *testing.T) {
	b := start(t, cloneset.Options{})
	both := func(s *v1beta1.CloneSet) {
		inPlace(s)
		s.Spec.Selector.MatchLabels = map[string]string{"tier": "front"}
		s.Spec.Template.Labels["tier"] = "front"
	}
	one, other := b.create("one", 2, both), b.create("other", 3, both)
	b.eventually(one, settled)
	b.eventually(other, settled)
	kept := uids(b.pods(other))
	b.change(one, image("web:2"))
	b.change(one, func(s *v1beta1.CloneSet) { s.Spec.Replicas = ptr.To(int32(1)) })
	b.eventually(one, settled)
	b.still()
	b.eventually(other, settled)
	if after := uids(b.pods(other)); fmt.Sprint(after) != fmt.Sprint(kept) || running(b.pods(other), "web:1") != 3 {
		t.Errorf("pods %v of the other set became %v", kept, after)
	}
	for _, pod := range append(b.pods(one), b.pods(other)...) {
		if owner := metav1.GetControllerOf(&pod); owner == nil || owner.Name != pod.Labels["app"] {
			t.Errorf("%s is owned by %v", pod.Name, owner)
		}
	}
}
