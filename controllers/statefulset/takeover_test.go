package statefulset_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/statefulset"
	"github.com/kruisekit/kruisekit/test/objects"
)

// A set that OpenKruise has created or updated is continued without a write, and one whose pods it has just updated,
// with a write of the status alone.
func TestTakeover(t *testing.T) {
	cases := map[string]struct {
		why, state, version string
		want                []string
	}{
		"created":          {"nothing is left to do", "1-created", "v1beta1", nil},
		"created, v1alpha": {"references of the older version count", "1-created", "v1alpha1", nil},
		"updating": {
			why:     "the pods were recorded after the set: the status completes the rollout",
			state:   "2-updating",
			version: "v1beta1",
			want:    []string{"PATCH statefulsets/db/status 200"},
		},
		"updated": {"nothing is left to do", "3-updated", "v1beta1", nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, statefulset.Options{})
			n := 0
			var sets v1beta1.StatefulSetList
			var pods corev1.PodList
			var revisions appsv1.ControllerRevisionList
			objects.Recorded(t, c.state+"/statefulsets.v1beta1.yaml", &sets)
			objects.Recorded(t, c.state+"/pods.yaml", &pods)
			objects.Recorded(t, c.state+"/controllerrevisions.yaml", &revisions)
			take := func(o client.Object) {
				if ref := metav1.GetControllerOf(o); ref == nil || ref.UID != sets.Items[0].UID {
					return
				}
				o.GetOwnerReferences()[0].APIVersion = "apps.kruise.io/" + c.version
				m.put(o)
				n++
			}
			m.put(&sets.Items[0])
			for i := range pods.Items {
				take(&pods.Items[i])
			}
			for i := range revisions.Items {
				take(&revisions.Items[i])
			}
			if n < 4 {
				t.Fatalf("%d recorded pods and revisions", n)
			}
			m.Server.Requests()
			m.Reconcile()
			m.Reconcile()
			if diff := cmp.Diff(c.want, m.Server.Requests()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
		})
	}
}

// A set that OpenKruise has begun to update is continued: nothing that it has done is done again, and no pod restarts
// that would not.
func TestTakeoverMidway(t *testing.T) {
	const state = "apps.kruise.io/inplace-update-state"
	unready := func(pod *corev1.Pod) {
		for i := range pod.Status.Conditions {
			if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady || c.Type == kruise.InPlaceUpdateReady {
				c.Status = corev1.ConditionFalse
			}
		}
	}
	cases := map[string]struct {
		why string
		// change makes of the last pod what OpenKruise left, and of the set what the user asked for.
		set  []func(*v1beta1.StatefulSet)
		pod  func(pod *corev1.Pod, update string)
		want []string
		due  time.Duration
	}{
		"grace": {
			"the pod waits for the rest of its grace period",
			[]func(*v1beta1.StatefulSet){rolling(func(u *v1beta1.RollingUpdateStatefulSetStrategy) {
				u.InPlaceUpdateStrategy = &kruise.InPlaceUpdateStrategy{GracePeriodSeconds: 60}
			})},
			func(pod *corev1.Pod, update string) {
				unready(pod)
				pod.Labels[kruise.PodRevisionLabelKey], pod.Labels[kruise.LifecycleStateKey] = update,
					string(kruise.LifecycleStateUpdating)
				pod.Annotations[state] = `{"revision":"` + update +
					`","updateTimestamp":"2030-01-01T11:59:30Z","lastContainerStatuses":null,"updateImages":true}`
				pod.Annotations["apps.kruise.io/inplace-update-grace"] = `{"revision":"` + update +
					`","containerImages":{"web":"web:2"},"graceSeconds":60}`
			},
			[]string{"PATCH statefulsets/db/status 200"},
			30 * time.Second,
		},
		"hook before the update": {
			"the pod waits for its hook",
			[]func(*v1beta1.StatefulSet){func(s *v1beta1.StatefulSet) {
				s.Spec.Lifecycle = &kruise.Lifecycle{
					InPlaceUpdate: &kruise.LifecycleHook{LabelsHandler: map[string]string{"example.com/hook": "true"}},
				}
			}},
			func(pod *corev1.Pod, _ string) {
				pod.Labels["example.com/hook"], pod.Labels[kruise.LifecycleStateKey] = "true",
					string(kruise.LifecycleStatePreparingUpdate)
			},
			[]string{"PATCH statefulsets/db/status 200"},
			0,
		},
		"hook before the deletion": {
			"the pod waits for its hook",
			[]func(*v1beta1.StatefulSet){func(s *v1beta1.StatefulSet) {
				s.Spec.Lifecycle = &kruise.Lifecycle{
					PreDelete: &kruise.LifecycleHook{LabelsHandler: map[string]string{"example.com/hook": "true"}},
				}
			}, func(s *v1beta1.StatefulSet) {
				s.Spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy = v1beta1.RecreatePodUpdateStrategyType
			}},
			func(pod *corev1.Pod, _ string) {
				pod.Labels["example.com/hook"], pod.Labels[kruise.LifecycleStateKey] = "true",
					string(kruise.LifecycleStatePreparingDelete)
			},
			[]string{"PATCH statefulsets/db/status 200"},
			0,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, statefulset.Options{})
			set := m.create("db", 3, append([]func(*v1beta1.StatefulSet){inPlace}, c.set...)...)
			m.becomes(set, "0:1 1:1 2:1")
			m.change(set, image("web:2"), rolling(func(u *v1beta1.RollingUpdateStatefulSetStrategy) { u.Paused = true }))
			m.eventually(set, func(set *v1beta1.StatefulSet) error {
				if set.Status.ObservedGeneration != set.Generation || set.Status.UpdateRevision == set.Status.CurrentRevision {
					return errors.New("no update revision")
				}
				return nil
			})
			m.Still()
			pod := m.pod(set, 2)
			c.pod(pod, set.Status.UpdateRevision)
			m.put(pod)
			m.change(set, rolling(func(u *v1beta1.RollingUpdateStatefulSetStrategy) { u.Paused = false }))
			m.Clock = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
			m.restart(m.Server)
			m.Server.Requests()
			for range 3 {
				m.Reconcile()
			}
			if diff := cmp.Diff(c.want, m.Server.Requests()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
			if c.due != 0 && m.Due.Sub(m.Clock) != c.due {
				t.Errorf("%s: due after %s, want %s", c.why, m.Due.Sub(m.Clock), c.due)
			}
			if got := m.picture(set); !strings.HasPrefix(got, "0:1 1:1 2:1") {
				t.Errorf("%s: pods %s", c.why, got)
			}
		})
	}
}

// A claim that OpenKruise has begun to expand goes on, and its pod follows once.
func TestTakeoverExpansion(t *testing.T) {
	m := newModel(t, statefulset.Options{ExpandClaims: true})
	set := m.create("db", 2, inPlace, expanding)
	m.eventually(set, func(set *v1beta1.StatefulSet) error { m.provision(); return settled(2)(set) })
	claim := &corev1.PersistentVolumeClaim{}
	claim.Namespace, claim.Name = "shop", "data-db-1"
	m.look(claim)
	claim.Spec.Resources.Requests = corev1.ResourceList{"storage": resource.MustParse("2Gi")}
	claim.Annotations = map[string]string{kruise.ClaimOwnedByStatefulSetKey: "db"}
	m.put(claim)
	m.restart(m.Server)
	m.change(set, sized("2Gi"))
	m.Server.Requests()
	m.Reconcile()
	m.Reconcile()
	if diff := cmp.Diff([]string{"PATCH statefulsets/db/status 200"}, m.Server.Requests()); diff != "" {
		t.Errorf("the volume is growing (-want +got):\n%s", diff)
	}
	m.provision()
	m.Server.Requests()
	m.Reconcile()
	if diff := cmp.Diff([]string{"PATCH persistentvolumeclaims/data-db-0 200", "PATCH statefulsets/db/status 200"},
		m.Server.Requests()); diff != "" {
		t.Errorf("the next claim grows (-want +got):\n%s", diff)
	}
}

// put stores an object as it is, at a time when it exists.
func (m *model) put(o client.Object) {
	m.Helper()
	if at := o.GetCreationTimestamp(); at.After(m.Clock) {
		m.Clock = at.Add(time.Minute)
	}
	if err := m.Server.Put(o); err != nil {
		m.Fatal(err)
	}
}
