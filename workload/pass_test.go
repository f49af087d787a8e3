package workload_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/write"
)

func three(t *testing.T) *server {
	t.Helper()
	return newServer(t, ready("a", "web-1", "web:1"), ready("b", "web-1", "web:1"), ready("c", "web-1", "web:1"))
}

func TestPass(t *testing.T) {
	hold := &kruise.Lifecycle{InPlaceUpdate: &kruise.LifecycleHook{LabelsHandler: map[string]string{"hold": "yes"}}}
	cases := map[string]struct {
		pods     func(*server)
		change   func(*workload.Input)
		fails    func(*workload.Write) error
		sent     []string
		failures string
		after    bool
	}{
		"update: an image update takes the pod out of traffic, and changes it": {sent: []string{"Unready a", "Update a"}},
		"a marked pod is deleted where the budget allows, and nothing else happens in that pass": {
			pods: func(s *server) { s.pods["b"].Labels[kruise.SpecifiedDeleteKey] = "true" }, sent: []string{"Delete b"},
		},
		"refused: another pod takes the turn of one whose update is refused": {
			sent: []string{"Unready a", "Unready b", "Update b"},
			fails: func(w *workload.Write) error {
				if w.Pod.Name == "a" {
					return refused()
				}
				return nil
			},
			failures: "update in place pod a",
		},
		"all refused: the replans of a pass are bounded": {
			sent:  []string{"Unready a", "Unready b", "Unready c"},
			fails: func(*workload.Write) error { return refused() }, failures: "update in place pod b",
		},
		"outage: after a write whose outcome is unknown no other pod takes the turn": {
			sent:  []string{"Unready a"},
			fails: func(*workload.Write) error { return errors.New("connection reset") }, failures: "connection reset",
		},
		"delete refused: a pod whose deletion is refused goes on with its update": {
			failures: "delete pod",
			change:   func(in *workload.Input) { in.Scale.Limits.Replicas, in.Scale.Limits.MaxUnavailable = 2, 2 },
			pods: func(s *server) {
				s.pods["c"].Status.Conditions[0].Status, s.pods["c"].Status.Conditions[2].Status = corev1.ConditionFalse,
					corev1.ConditionFalse
			},
			fails: func(w *workload.Write) error {
				if w.Verb == write.Delete {
					return refused()
				}
				return nil
			},
			sent: []string{"Delete c", "Continue c", "Unready c", "Unready a", "Update c", "Update a"},
		},
		"outdated: a failed test means to look again, and is no failure": {
			sent:  []string{"Unready a"},
			fails: func(*workload.Write) error { return outdated() }, after: true,
		},
		"unreadable: a pod that cannot be read stops no other": {
			sent: []string{"Unready b", "Update b"}, failures: "pod a",
			pods: func(s *server) { s.pods["a"].Annotations = map[string]string{kruise.InPlaceUpdateStateKey: "{"} },
		},
		"a change that is not possible in place fails, and nothing is recreated": {
			failures: "cannot be changed in place",
			change: func(in *workload.Input) {
				in.Strategy, in.Update.Data = workload.InPlaceOnly, slices.Concat([]byte(nil),
					[]byte(strings.Replace(string(in.Update.Data), `"name":"app"`, `"name":"other"`, 1)))
			},
		},
		"not in place: such a change recreates the pod where that is allowed": {
			sent: []string{"Mark a"},
			change: func(in *workload.Input) {
				in.Update.Data = []byte(strings.Replace(string(in.Update.Data), `"name":"app"`, `"name":"other"`, 1))
			},
		},
		"hooked: a hook holds the pod before its update": {
			change: func(in *workload.Input) { in.Scale.Hooks = hold },
			pods: func(s *server) {
				for _, pod := range s.pods {
					pod.Labels["hold"] = "yes"
				}
			},
			sent: []string{"Move a"},
		},
		"an update that the caller disallows is asked for again, and those after it wait": {
			after: true,
			change: func(in *workload.Input) {
				in.MayUpdate = func(pod *corev1.Pod) (bool, string) { return pod.Name != "a", "a drill" }
			},
		},
		"scale out: missing pods are created, and updates wait": {
			change: func(in *workload.Input) { in.Scale.Limits.Replicas = 5 },
			sent:   []string{"Create new-0", "Create new-1"},
		},
		"scale out refused: updates go on where no pod can be created": {
			change: func(in *workload.Input) { in.Scale.Limits.Replicas, in.Scale.Limits.MaxUnavailable = 4, 2 },
			fails: func(w *workload.Write) error {
				if w.Verb == write.Create {
					return refused()
				}
				return nil
			},
			sent:     []string{"Create new-0", "Unready a", "Update a"},
			failures: "create pod new-0",
		},
		"finished: a pod that has finished is deleted first, and a refusal stops nothing": {
			sent:     []string{"Delete b", "Create new-0"},
			failures: "delete pod b",
			pods:     func(s *server) { s.pods["b"].Status.Phase = corev1.PodFailed },
			fails: func(w *workload.Write) error {
				if w.Verb == write.Delete {
					return refused()
				}
				return nil
			},
		},
		"labels: a pod from before the labels of its revision gets them": {
			sent: []string{"Label a", "Label b", "Label c"},
			change: func(in *workload.Input) {
				in.RevisionLabels = func(name string) map[string]string { return map[string]string{"hash": name} }
			},
		},
		"revision gone: a pod whose revision is not stored is recreated": {
			pods: func(s *server) { s.pods["a"].Labels[kruise.PodRevisionLabelKey] = "web-0" }, sent: []string{"Mark a"},
		},
		"older revision: a pod goes in place from any stored revision": {
			sent: []string{"Unready a", "Update a"},
			pods: func(s *server) { s.pods["a"].Labels[kruise.PodRevisionLabelKey] = "web-0" },
			change: func(in *workload.Input) {
				in.Revisions = []workload.Revision{{Name: "web-0", Label: "0", Data: in.Current.Data}}
			},
		},
		"fixed: what no running pod can change recreates it": {
			sent:   []string{"Mark a"},
			change: func(in *workload.Input) { in.Current.Fixed, in.Update.Fixed = "claims-1", "claims-2" },
		},
		"grace: the pass looks again at the end of the grace period": {
			sent: []string{"Unready a", "Update a"}, after: true,
			change: func(in *workload.Input) { in.GraceSeconds, in.Policy.Unready = 30, inplace.UnreadyAlways },
		},
		"state: no update starts from an unknown state": {
			failures: "is in state",
			pods:     func(s *server) { s.pods["a"].Labels[kruise.LifecycleStateKey] = "Unknown" },
		},
		"new pod held: a new pod that its hook holds stays new while it is updated": {
			sent: []string{"Unready a", "Update a"},
			pods: func(s *server) {
				s.pods["a"].Labels[kruise.LifecycleStateKey] = string(kruise.LifecycleStatePreparingNormal)
			},
			change: func(in *workload.Input) {
				in.Scale.Hooks = &kruise.Lifecycle{
					PreNormal: &kruise.LifecycleHook{LabelsHandler: map[string]string{"joined": "yes"}},
				}
			},
		},
		"restored: a pod that was about to go is wanted again": {
			sent: []string{"Move a"},
			pods: func(s *server) {
				s.pods["a"].Labels["hold"], s.pods["a"].Labels[kruise.LifecycleStateKey] = "yes",
					string(kruise.LifecycleStatePreparingDelete)
			},
			change: func(in *workload.Input) {
				in.Scale.Hooks = &kruise.Lifecycle{PreDelete: hold.InPlaceUpdate}
			},
		},
		"delete held: a hook holds a pod before its deletion": {
			sent: []string{"Move a"},
			pods: func(s *server) {
				s.pods["a"].Labels["hold"], s.pods["a"].Labels[kruise.SpecifiedDeleteKey] = "yes", "true"
			},
			change: func(in *workload.Input) {
				in.Scale.Hooks = &kruise.Lifecycle{PreDelete: hold.InPlaceUpdate}
			},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := three(t)
			s.fails = c.fails
			if c.pods != nil {
				c.pods(s)
			}
			in := s.input()
			if c.change != nil {
				c.change(&in)
			}
			before := fmt.Sprint(s.all())
			planned, err := workload.Plan(in)
			if err != nil || fmt.Sprint(s.all()) != before {
				t.Fatalf("planning changed the pods, or failed: %v", err)
			}
			_ = planned.Next()
			pass := s.run(in)
			if diff := cmp.Diff(c.sent, s.sent); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			failed := workload.Err(pass.Failures())
			if (failed == nil) != (c.failures == "") || failed != nil && !strings.Contains(failed.Error(), c.failures) {
				t.Errorf("failures %v, want %q", failed, c.failures)
			}
			if (pass.RequeueAfter() > 0) != c.after {
				t.Errorf("looks again after %s", pass.RequeueAfter())
			}
		})
	}
}

// The objects that a pod needs are created before it. Where one is refused the pod is not created.
func TestClaims(t *testing.T) {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data-new-0"}}
	for _, refuse := range []bool{false, true} {
		s := newServer(t)
		in := s.input()
		in.Scale.Limits.Replicas = 1
		in.Build = func(c []workload.Creation) ([][]write.Object, error) {
			built, err := s.build(c)
			built[0] = append([]write.Object{claim}, built[0]...)
			return built, err
		}
		s.fails = func(w *workload.Write) error {
			if w.Object == write.Object(claim) && refuse {
				return refused()
			}
			return nil
		}
		want := []string{"Create data-new-0", "Create new-0"}
		if refuse {
			want = want[:1]
		}
		if s.run(in); !slices.Equal(s.sent, want) {
			t.Errorf("refused %v: sent %v, want %v", refuse, s.sent, want)
		}
	}
}

// An object that exists and was not observed may be terminating or another owner's. The pod is not created before the
// object was observed.
func TestClaimExists(t *testing.T) {
	s := newServer(t)
	in := s.input()
	in.Scale.Limits.Replicas = 1
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"}}
	in.Build = func(c []workload.Creation) ([][]write.Object, error) {
		built, err := s.build(c)
		return [][]write.Object{{claim, built[0][0]}}, err
	}
	s.fails = func(w *workload.Write) error {
		if w.Object == write.Object(claim) {
			return apierrors.NewAlreadyExists(schema.GroupResource{Resource: "persistentvolumeclaims"}, "data")
		}
		return nil
	}
	pass := s.run(in)
	if !slices.Equal(s.sent, []string{"Create data"}) || len(pass.Failures()) != 0 || !pass.IsOutdated() ||
		pass.RequeueAfter() != time.Second {
		t.Errorf("sent %v, failures %v, outdated %t, looks again after %s",
			s.sent, pass.Failures(), pass.IsOutdated(), pass.RequeueAfter())
	}
}

// What is planned to be created is known before anything is written.
func TestCreations(t *testing.T) {
	s := three(t)
	in := s.input()
	in.Scale.Limits.Replicas, in.Scale.Limits.Partition = 5, 4
	pass, err := workload.Plan(in)
	if err != nil {
		t.Fatal(err)
	}
	want := []workload.Creation{{Revision: "web-1"}, {Revision: "web-2"}}
	if diff := cmp.Diff(want, pass.Creations()); diff != "" {
		t.Errorf("creations (-want +got):\n%s", diff)
	}
}

// A raised partition takes instances back, one at a time.
func TestRaisedPartition(t *testing.T) {
	s := newServer(t, ready("a", "web-1", "web:1"), ready("b", "web-2", "web:2"), ready("c", "web-2", "web:2"))
	for range 20 {
		in := s.input()
		in.Scale.Limits.Partition = 2
		if err := workload.Err(s.run(in).Failures()); err != nil {
			t.Fatal(err)
		}
		down := slices.DeleteFunc(s.all(), workload.IsReady)
		if len(down) > 1 {
			t.Fatalf("%d pods are not ready", len(down))
		}
		s.restart()
	}
	images := map[string]int{}
	for _, pod := range s.all() {
		images[pod.Spec.Containers[0].Image]++
	}
	if images["web:1"] != 2 || images["web:2"] != 1 {
		t.Errorf("images %v", images)
	}
}
