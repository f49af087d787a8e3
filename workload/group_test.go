package workload_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/write"
)

// groups is one group of a leader and two workers, with a template per role.
func (s *server) groups(leader, worker string) workload.Input {
	s.Helper()
	roles := func(name, leader, worker string) workload.Revision {
		data, err := revision.EncodeRoles(map[string]*corev1.PodTemplateSpec{
			"leader": template(leader), "worker": template(worker),
		})
		if err != nil {
			s.Fatal(err)
		}
		return workload.Revision{Name: name, Data: data}
	}
	in := s.input()
	in.Members = []workload.Member{{Name: "l", Role: "leader"}, {Name: "w1", Role: "worker"}, {Name: "w2", Role: "worker"}}
	in.Current, in.Update = roles("web-1", "web:1", "web:1"), roles("web-2", leader, worker)
	in.Scale.Limits.Replicas = 1
	in.Instances = []workload.Instance{{Name: "g"}}
	for _, pod := range s.all() {
		in.Instances[0].Pods = append(in.Instances[0].Pods, workload.Pod{Pod: pod, Member: pod.Name})
	}
	in.Build = func(creations []workload.Creation) (all [][]write.Object, err error) {
		for _, c := range creations {
			all = append(all, []write.Object{ready(c.Member.Name, c.Revision, "web:1")})
		}
		return all, nil
	}
	return in
}

func group(t *testing.T) *server {
	t.Helper()
	return newServer(t, ready("l", "web-1", "web:1"), ready("w1", "web-1", "web:1"), ready("w2", "web-1", "web:1"))
}

func TestGroup(t *testing.T) {
	cases := map[string]struct {
		pods   func(*server)
		change func(*workload.Input)
		sent   []string
	}{
		"worker missing: a missing member is created at the revision of its leader": {
			pods: func(s *server) { delete(s.pods, "w1") },
			sent: []string{"Create w1"},
		},
		"leader missing: what is left of a group without a leader is deleted": {
			pods: func(s *server) { delete(s.pods, "l") },
			sent: []string{"Delete w1", "Delete w2"},
		},
		"a leader leaves traffic for its update also while a worker still has its name": {
			func(s *server) { s.pods["w1"].DeletionTimestamp = &metav1.Time{Time: noon} },
			nil,
			[]string{"Unready l", "Unready w2", "Update l"},
		},
		"follower left behind: a worker follows its leader although updates are paused": {
			func(s *server) {
				s.pods["l"] = ready("l", "web-2", "web:2")
				s.pods["w1"] = ready("w1", "web-2", "web:2")
			}, func(in *workload.Input) { in.Scale.Updates = "Paused" },
			[]string{"Unready w2", "Update w2"},
		},
		"no member, held: a hook holds a pod that is no member before its deletion": {
			func(s *server) {
				s.pods["w3"] = ready("w3", "web-1", "web:1")
				s.pods["w3"].Labels["hold"] = "yes"
			},
			func(in *workload.Input) {
				in.Update = in.Current
				in.Scale.Hooks = &kruise.Lifecycle{
					PreDelete: &kruise.LifecycleHook{LabelsHandler: map[string]string{"hold": "yes"}},
				}
			},
			[]string{"Move w3"},
		},
		"a group of two revisions is recreated where pods are not updated in place": {
			pods:   func(s *server) { s.pods["l"] = ready("l", "web-2", "web:2") },
			change: func(in *workload.Input) { in.Strategy = workload.Recreate },
			sent:   []string{"Mark l"},
		},
		"unknown revision: a group whose revision is not stored is left alone": {
			pods:   func(s *server) { s.pods["l"].Labels[kruise.PodRevisionLabelKey] = "web-0" },
			change: func(in *workload.Input) { in.Scale.Updates = "Paused" },
		},
		"a group of which one pod is held before its deletion is held as a whole": {
			func(s *server) {
				for _, pod := range s.pods {
					pod.Labels["hold"] = "yes"
				}
				s.pods["l"].Labels[kruise.LifecycleStateKey],
					s.pods["l"].Labels[kruise.SpecifiedDeleteKey] = string(kruise.LifecycleStatePreparingDelete), "true"
			},
			func(in *workload.Input) {
				in.Scale.Hooks = &kruise.Lifecycle{
					PreDelete: &kruise.LifecycleHook{LabelsHandler: map[string]string{"hold": "yes"}},
				}
			},
			[]string{"Move w1", "Move w2"},
		},
		"hooked: no pod changes while a hook holds one": {
			func(s *server) { s.pods["w1"].Labels["hold"] = "yes" },
			func(in *workload.Input) {
				in.Scale.Hooks = &kruise.Lifecycle{
					InPlaceUpdate: &kruise.LifecycleHook{LabelsHandler: map[string]string{"hold": "yes"}},
				}
			},
			[]string{"Move w1"},
		},
		"odd state: no pod changes while one is in an unknown state": {
			pods: func(s *server) { s.pods["w1"].Labels[kruise.LifecycleStateKey] = "Unknown" },
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := group(t)
			if c.pods != nil {
				c.pods(s)
			}
			in := s.groups("web:2", "web:2")
			if c.change != nil {
				c.change(&in)
			}
			if s.run(in); !slices.Equal(s.sent, c.sent) {
				t.Errorf("sent %v, want %v", s.sent, c.sent)
			}
		})
	}
}
