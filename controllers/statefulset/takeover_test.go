package statefulset

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
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
			m := newModel(t, Options{})
			m.Recorded(c.state, c.version,
				&v1beta1.StatefulSetList{}, &corev1.PodList{}, &appsv1.ControllerRevisionList{})
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
		set  changes
		pod  func(pod *corev1.Pod, update string)
		want []string
		due  time.Duration
	}{
		"grace": {
			"the pod waits for the rest of its grace period",
			changes{rolling(func(u *v1beta1.RollingUpdateStatefulSetStrategy) {
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
			changes{func(s *v1beta1.StatefulSet) {
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
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, Options{})
			set := m.create("db", 3, append(changes{inPlace}, c.set...)...)
			m.becomes(set, "0:1 1:1 2:1")
			m.change(set, withImage("web:2"), paused)
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
