package workload_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/scale"
	"github.com/kruisekit/kruisekit/test/podbench"
	"github.com/kruisekit/kruisekit/test/storytest"
	"github.com/kruisekit/kruisekit/workload"
)

// layoutOf are the members of some roles, so many of each: "storage 2, worker 1".
func layoutOf(roles ...any) (layout []workload.Member) {
	for k := 0; k < len(roles); k += 2 {
		role, _ := roles[k].(string)
		n, _ := roles[k+1].(int)
		for range n {
			layout = append(layout, workload.Member{Name: fmt.Sprint(len(layout)), Role: role})
		}
	}
	return layout
}

// withRole has a role run an image, withRoleEnv gives it an environment, which only new pods take.
func withRole(role, image string) func(*appsv1.StatefulSet) {
	return func(set *appsv1.StatefulSet) { annotate(set, role+".image", image) }
}

func withRoleEnv(role, value string) func(*appsv1.StatefulSet) {
	return func(set *appsv1.StatefulSet) { annotate(set, role+".env", value) }
}

func annotate(set *appsv1.StatefulSet, key, value string) {
	if set.Annotations == nil {
		set.Annotations = map[string]string{}
	}
	set.Annotations[key] = value
}

// elected reports whether the members of a database have elected a pod.
func elected(pod *corev1.Pod) bool { return pod.Labels[memberLabel] == "1" }

// groupStory is a rollout of groups with roles.
type groupStory struct {
	why      string
	layout   []workload.Member
	group    workload.Group
	numbered bool
	replicas int32
	// then are the changes, each once nothing is left to do.
	then [][]func(*appsv1.StatefulSet)
	// site changes the world; such a story is not told in random worlds.
	site func(*site)
	// fails are pods that fail, after the change of the same place.
	fails []string
}

func groupStories() map[string]groupStory {
	change := func(changes ...func(*appsv1.StatefulSet)) []func(*appsv1.StatefulSet) { return changes }
	changes := func(all ...[]func(*appsv1.StatefulSet)) [][]func(*appsv1.StatefulSet) { return all }
	chain := []workload.Role{
		{Name: "storage"}, {Name: "router", After: []string{"storage"}}, {Name: "worker", After: []string{"router"}},
	}
	return map[string]groupStory{
		"group together": {
			why:    "without an order all pods of a group leave traffic, change and come back at the same time",
			layout: layoutOf("leader", 1, "worker", 2), replicas: 1,
			group: workload.Group{Roles: []workload.Role{{Name: "leader"}}},
			then:  changes(change(withImage("web:2"))),
		},
		"group dependencies": {
			why:    "storage changes first, then the router, then the workers; the group leaves traffic as a whole",
			layout: layoutOf("storage", 1, "worker", 2, "router", 1), replicas: 1,
			group: workload.Group{Roles: chain}, then: changes(change(withImage("web:2"))),
		},
		"group affected": {
			why:    "only the role that changes leaves traffic, one of its pods at a time; the others get a label",
			layout: layoutOf("leader", 1, "worker", 2), replicas: 2,
			group: workload.Group{
				Traffic: workload.TrafficEach,
				Roles: []workload.Role{
					{Name: "leader"}, {Name: "worker", After: []string{"leader"}, MaxUnavailable: ptr.To[int32](1)},
				},
			},
			then: changes(change(withRole("worker", "web:2"))),
		},
		"group roles": {
			why:    "roles roll independently, each within its own bound",
			layout: layoutOf("router", 2, "worker", 4), replicas: 1,
			group: workload.Group{
				Traffic: workload.TrafficEach,
				Roles: []workload.Role{
					{Name: "router", MaxUnavailable: ptr.To[int32](1)}, {Name: "worker", MaxUnavailable: ptr.To[int32](2)},
				},
			},
			then: changes(change(withImage("web:2"))),
		},
		"group quorum": {
			why:    "a majority stays, and the member that was elected is the last",
			layout: layoutOf("storage", 5), replicas: 1,
			group: workload.Group{
				Traffic: workload.TrafficEach,
				Roles:   []workload.Role{{Name: "storage", MaxUnavailable: ptr.To(int32(2)), Last: elected}},
			},
			then: changes(change(withImage("web:2"))),
		},
		"group blocked pod": {
			why:    "a worker whose change is not possible in place is recreated, and the rest of the group stays",
			layout: layoutOf("leader", 1, "worker", 2), replicas: 1,
			group: workload.Group{
				Traffic: workload.TrafficEach, Blocked: workload.BlockedPod,
				Roles: []workload.Role{{Name: "leader"}, {Name: "worker", MaxUnavailable: ptr.To[int32](1)}},
			},
			then: changes(change(withRoleEnv("worker", "a"))),
		},
		"group leader last": {
			why:    "where a pod that fails is recreated alone, a group is deleted with its leader last",
			layout: layoutOf("leader", 1, "worker", 2), replicas: 1, numbered: true,
			group: workload.Group{Restart: workload.Restart{Policy: workload.RestartPod}},
			then:  changes(change(withEnv), change(withReplicas(0))),
		},
		"group surge": {
			why:    "with one group more while the rollout runs, two groups are available at any time",
			layout: layoutOf("leader", 1, "worker", 1), replicas: 2, numbered: true,
			site: func(s *site) {
				s.surge = 1
				s.set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = &intstr.IntOrString{}
			},
			then: changes(change(withEnv)),
		},
		"group label last": {
			why:    "a pod gets the label of the revision when it runs the new image, and not before",
			layout: layoutOf("leader", 1, "worker", 1), replicas: 1,
			site: func(s *site) { s.policy.Relabel = inplace.RelabelLast },
			then: changes(change(withImage("web:2"))),
		},
		"group restart pod": {
			why:    "a leader that fails is kept for its logs, and recreated alone; its second restart waits twice as long",
			layout: layoutOf("leader", 1, "worker", 2), replicas: 1, numbered: true,
			group: workload.Group{
				Restart: workload.Restart{Policy: workload.RestartPod, BackOff: 10 * time.Second, MaxBackOff: time.Minute},
			},
			then: changes(nil, nil), fails: []string{"web-0-0", "web-0-0"},
		},
		"group restart group": {
			why:    "a worker that fails has its group recreated, after a back-off in which its logs can be read",
			layout: layoutOf("leader", 1, "worker", 2), replicas: 1, numbered: true,
			group: workload.Group{
				Restart: workload.Restart{Policy: workload.RestartGroup, BackOff: 10 * time.Second, MaxBackOff: time.Minute},
			},
			then: changes(nil, nil), fails: []string{"web-0-2", "web-0-1"},
		},
	}
}

func TestGroupStories(t *testing.T) {
	for name, story := range groupStories() {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, groups, 1, func(s *site) {
				s.layout, s.group, s.numbered = story.layout, story.group, story.numbered
				s.set.Spec.Replicas = ptr.To(story.replicas)
				if story.site != nil {
					story.site(s)
				}
			})
			told := &strings.Builder{}
			fmt.Fprintf(told, "# %s\n\n", story.why)
			s.tell(told)
			for k, change := range story.then {
				s.Server.Requests()
				if len(story.fails) > 0 {
					fmt.Fprintf(told, "\n        # pod %s fails\n", story.fails[k])
					s.fail(story.fails[k])
				} else {
					fmt.Fprint(told, "\n        # the user changes the set\n")
					s.change(change...)
					s.Server.Requests()
				}
				s.tell(told)
				if story.site == nil {
					s.settled()
				}
			}
			storytest.Compare(t, strings.ReplaceAll(name, " ", "-"), told.String())
		})
	}
}

// fail has a pod finish.
func (s *site) fail(name string) {
	s.Server.ChangePods(func(pod *corev1.Pod) *corev1.Pod {
		if pod.Name != name {
			return pod
		}
		after := pod.DeepCopy()
		after.Status.Phase = corev1.PodFailed
		for k := range after.Status.Conditions {
			if t := after.Status.Conditions[k].Type; t == corev1.PodReady || t == corev1.ContainersReady {
				after.Status.Conditions[k].Status = corev1.ConditionFalse
			}
		}
		return after
	})
}

// Whatever users, nodes and faults do, no bound of a role, a group or the workload is crossed, the order of roles is
// kept, no member runs twice, and the groups become as the set asks for.
func TestGroupsRandom(t *testing.T) { runGroups(t, 0, 1) }

func runGroups(t *testing.T, first, n uint64) {
	t.Helper()
	for name, story := range groupStories() {
		if story.site != nil {
			continue
		}
		for seed := first; seed < first+n; seed++ {
			t.Run(fmt.Sprintf("%s, seed=%d", name, seed), func(t *testing.T) { runGroupsOf(t, story, seed) })
		}
	}
}

func runGroupsOf(t *testing.T, story groupStory, seed uint64) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 9))
	s := newSite(t, groups, seed, func(s *site) {
		s.layout, s.group, s.numbered = story.layout, story.group, story.numbered || r.IntN(2) == 0
		s.group.Restart.BackOff = min(s.group.Restart.BackOff, time.Duration(r.IntN(8))*time.Second)
		s.lag = max(0, r.IntN(4)-1)
		rolling := s.set.Spec.UpdateStrategy.RollingUpdate
		rolling.MaxUnavailable = &intstr.IntOrString{IntVal: int32(1 + r.IntN(2))}
		s.grace = int32(max(r.IntN(9)-5, 0))
		if hook := story.group.Blocked == workload.BlockedGroup && r.IntN(3) == 0; hook {
			labels := &kruise.LifecycleHook{LabelsHandler: map[string]string{"hold": "yes"}}
			s.hooks, s.set.Spec.Template.Labels["hold"] = &kruise.Lifecycle{InPlaceUpdate: labels}, "yes"
		}
	})
	faults := &podbench.Chance{Seed: seed, Of: 12}
	for range 60 {
		if role := s.layout[r.IntN(len(s.layout))].Role; r.IntN(6) == 0 {
			s.change([]func(*appsv1.StatefulSet){
				withRole(role, fmt.Sprint("web:", 1+r.IntN(3))), withRole(role, ""), withRoleEnv(role, fmt.Sprint(r.IntN(2))),
			}[r.IntN(3)])
		}
		if pods := s.Pods(); len(pods) > 0 && r.IntN(12) == 0 {
			s.fail(pods[r.IntN(len(pods))].Name)
		}
		s.act(r, faults)
		s.turn()
		s.answerHooks()
		if r.IntN(2) == 0 {
			s.RunPods()
		}
		s.Advance(time.Second)
	}
	faults.Of = 0
	s.start(s.Server)
	s.change(withImage("web:9"), withPartition(0))
	s.settled()
}

// TestGroupInvalid: a group that cannot work is an error that names the field.
func TestGroupInvalid(t *testing.T) {
	one := ptr.To[int32](1)
	cases := map[string]struct {
		change func(*workload.Input)
		field  string
	}{
		"role twice": {
			func(in *workload.Input) { in.Group.Roles = []workload.Role{{Name: "a"}, {Name: "a"}} }, "Group.Roles[1].Name",
		},
		"unknown role": {
			func(in *workload.Input) { in.Group.Roles = []workload.Role{{Name: "worker", After: []string{"x"}}} },
			"Group.Roles[0].After[0]",
		},
		"leader last": {
			func(in *workload.Input) {
				in.Group.Roles = []workload.Role{{Name: "worker"}, {Name: "leader", After: []string{"worker"}}}
			},
			"Group.Roles[1].After",
		},
		"circle": {
			func(in *workload.Input) {
				in.Group.Roles = []workload.Role{{Name: "a", After: []string{"b"}}, {Name: "b", After: []string{"a"}}}
			},
			"Group.Roles[0].After[0]",
		},
		"bound of a role without each": {
			func(in *workload.Input) { in.Group.Roles = []workload.Role{{Name: "a", MaxUnavailable: one}} },
			"Group.Roles[0].MaxUnavailable",
		},
		"a group restarts without a slot": {
			func(in *workload.Input) { in.Group.Restart.Policy = workload.RestartGroup }, "Group.Restart.Policy",
		},
		"marks that have no effect": {
			func(in *workload.Input) { in.IgnoreMarks, in.Group.Restart.Policy = true, workload.RestartPod },
			"Group.Restart.Policy",
		},
		"pods without a hook": {
			func(in *workload.Input) {
				in.Group.Blocked = workload.BlockedPod
				in.Scale.Hooks = &kruise.Lifecycle{PreDelete: &kruise.LifecycleHook{}}
			},
			"Group.Blocked",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			in := group(t).groups("web:2", "web:2")
			c.change(&in)
			_, err := workload.Plan(in)
			if invalid := (*scale.InputError)(nil); !errors.As(err, &invalid) || invalid.Field != c.field {
				t.Errorf("got %v, want an error of %s", err, c.field)
			}
		})
	}
}

// A back-off doubles with each restart up to its maximum, and starts from the first one when the pods have run for
// long.
func TestRestartBackOff(t *testing.T) {
	for _, policy := range []workload.RestartPolicy{workload.RestartPod, workload.RestartGroup} {
		t.Run(string(policy), func(t *testing.T) {
			s := newSite(t, groups, 1, func(s *site) {
				s.layout, s.numbered, s.set.Spec.Replicas = layoutOf("leader", 1, "worker", 1), true, ptr.To[int32](1)
				s.group.Restart = workload.Restart{
					Policy: policy, BackOff: 10 * time.Second, MaxBackOff: 25 * time.Second,
				}
			})
			s.settled()
			for k, want := range []int{10, 20, 25, 25, 10} {
				if k == 4 {
					s.Advance(10 * time.Minute)
				}
				s.fail("web-0-1")
				failed := s.Clock
				for s.runs("web-0-1") {
					s.turn()
					s.Advance(time.Second)
				}
				if waited := int(s.Clock.Sub(failed)/time.Second) - 1; waited != want {
					t.Errorf("restart %d after %d s, want %d s", k+1, waited, want)
				}
				s.settled()
			}
			for key, known := range s.restarts {
				if known.Count != 1 {
					t.Errorf("%s: %+v", key, known)
				}
			}
		})
	}
}

// runs reports whether a pod exists whose deletion has not begun.
func (s *site) runs(name string) bool {
	for _, pod := range s.Pods() {
		if pod.Name == name {
			return pod.DeletionTimestamp == nil
		}
	}
	return false
}
