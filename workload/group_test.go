package workload_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
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

// All pods leave traffic, the leader changes first, the others follow once it is done, and all come back together.
func TestGroupInPlace(t *testing.T) {
	s := group(t)
	step := func(want ...string) {
		t.Helper()
		s.sent = nil
		pass := s.run(s.groups("web:2", "web:3"))
		if err := workload.Err(pass.Failures()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, s.sent); diff != "" {
			t.Errorf("sent (-want +got):\n%s", diff)
		}
	}
	step("Unready l", "Unready w1", "Unready w2", "Update l")
	step()
	s.restart()
	step("Update w1", "Update w2")
	step()
	s.restart()
	step("Continue l", "Continue w1", "Continue w2", "Move l", "Move w1", "Move w2")
	s.restart()
	step()
	if l, w := s.pods["l"].Spec.Containers[0].Image, s.pods["w2"].Spec.Containers[0].Image; l != "web:2" || w != "web:3" {
		t.Errorf("the leader runs %s, a worker %s", l, w)
	}
}

func TestGroup(t *testing.T) {
	cases := map[string]struct {
		why    string
		pods   func(*server)
		change func(*workload.Input)
		sent   []string
	}{
		"worker missing": {
			why:  "a missing member is created at the revision of its leader",
			pods: func(s *server) { delete(s.pods, "w1") },
			sent: []string{"Create w1"},
		},
		"leader missing": {
			why:  "what is left of a group without a leader is deleted",
			pods: func(s *server) { delete(s.pods, "l") },
			sent: []string{"Delete w1", "Delete w2"},
		},
		"recreated as a whole": {
			why:    "a mark on the leader stands for all",
			change: func(in *workload.Input) { in.Strategy = workload.Recreate },
			sent:   []string{"Mark l"},
		},
		"worker terminating": {
			"a leader leaves traffic for its update also while a worker still has its name",
			func(s *server) { s.pods["w1"].DeletionTimestamp = &metav1.Time{Time: noon} },
			nil,
			[]string{"Unready l", "Unready w2", "Update l"},
		},
		"blocked": {
			why:    "a change that is not possible in place recreates the group",
			change: func(in *workload.Input) { in.Update.Fixed, in.Current.Fixed = "2", "1" },
			sent:   []string{"Mark l"},
		},
		"follower left behind": {
			"a worker follows its leader although updates are paused",
			func(s *server) {
				s.pods["l"] = ready("l", "web-2", "web:2")
				s.pods["w1"] = ready("w1", "web-2", "web:2")
			}, func(in *workload.Input) { in.Scale.Updates = "Paused" },
			[]string{"Unready w2", "Update w2"},
		},
		"no member": {
			why:    "a pod that is no member is deleted, and the group stays as it is",
			pods:   func(s *server) { s.pods["w3"] = ready("w3", "web-1", "web:1") },
			change: func(in *workload.Input) { in.Update = in.Current },
			sent:   []string{"Delete w3"},
		},
		"no member, held": {
			"a hook holds a pod that is no member before its deletion",
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
		"recreated follower": {
			why:    "a group of two revisions is recreated where pods are not updated in place",
			pods:   func(s *server) { s.pods["l"] = ready("l", "web-2", "web:2") },
			change: func(in *workload.Input) { in.Strategy = workload.Recreate },
			sent:   []string{"Mark l"},
		},
		"unknown revision": {
			why:    "a group whose revision is not stored is left alone",
			pods:   func(s *server) { s.pods["l"].Labels[kruise.PodRevisionLabelKey] = "web-0" },
			change: func(in *workload.Input) { in.Scale.Updates = "Paused" },
		},
		"held together": {
			"a group of which one pod is held before its deletion is held as a whole",
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
		"hooked": {
			"no pod changes while a hook holds one",
			func(s *server) { s.pods["w1"].Labels["hold"] = "yes" },
			func(in *workload.Input) {
				in.Scale.Hooks = &kruise.Lifecycle{
					InPlaceUpdate: &kruise.LifecycleHook{LabelsHandler: map[string]string{"hold": "yes"}},
				}
			},
			[]string{"Move w1"},
		},
		"odd state": {
			why:  "no pod changes while one is in an unknown state",
			pods: func(s *server) { s.pods["w1"].Labels[kruise.LifecycleStateKey] = "Unknown" },
		},
		"no group": {
			why:    "a new group begins with its leader",
			pods:   func(s *server) { clear(s.pods) },
			change: func(in *workload.Input) { in.Instances = nil },
			sent:   []string{"Create l"},
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
				t.Errorf("%s: sent %v, want %v", c.why, s.sent, c.sent)
			}
		})
	}
}

// A pod whose own template stays leaves traffic with the others of its group.
func TestGroupLeavesTogether(t *testing.T) {
	s := group(t)
	s.run(s.groups("web:1", "web:2"))
	if want := []string{
		"Unready l", "Unready w1", "Unready w2", "Update l", "Update w1", "Update w2",
	}; !slices.Equal(s.sent, want) {
		t.Errorf("sent %v, want %v", s.sent, want)
	}
}

// A worker whose write is refused keeps the group out of traffic until the write succeeds, and then all come back.
func TestGroupRefused(t *testing.T) {
	s := group(t)
	s.fails = func(w *workload.Write) error {
		if w.Pod != nil && w.Pod.Name == "w2" && w.Action == workload.ActionUpdate {
			return refused()
		}
		return nil
	}
	for range 4 {
		s.run(s.groups("web:2", "web:2"))
		s.restart()
	}
	s.fails = nil
	for range 4 {
		s.run(s.groups("web:2", "web:2"))
		s.restart()
	}
	for name, pod := range s.pods {
		if !workload.IsReady(pod) || pod.Spec.Containers[0].Image != "web:2" {
			t.Errorf("%s does not serve web:2", name)
		}
	}
}
