package main

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/workload"
)

func newTeam(replicas, size int32) *team {
	t := &team{}
	t.Namespace, t.Name, t.UID = "ns", "web", "team"
	t.Spec.Replicas, t.Spec.Size = replicas, size
	t.Spec.Leader.Spec.Containers = []corev1.Container{{Name: "main", Image: "leader:0"}}
	t.Spec.Worker.Spec.Containers = []corev1.Container{{Name: "main", Image: "worker:0"}}
	return t
}

// input observes the objects, and adds the wanted revision to those stored.
func input(t *testing.T, team *team, pods []corev1.Pod, revisions *[]appsv1.ControllerRevision) workload.Input {
	t.Helper()
	in, err := team.input(revision.ControlledBy(team, pods), revision.ControlledBy(team, *revisions))
	if err != nil {
		t.Fatal(err)
	}
	in.Scale.Now = time.Now()
	if len(in.Store.Next()) > 0 {
		*revisions = append(*revisions, *in.Store.Newest())
	}
	return in
}

// plan plans a pass over the objects.
func plan(t *testing.T, team *team, pods []corev1.Pod, revisions *[]appsv1.ControllerRevision) *workload.Pass {
	t.Helper()
	pass, err := workload.Plan(input(t, team, pods, revisions))
	if err != nil {
		t.Fatal(err)
	}
	return pass
}

// grow creates what a pass is to create, pass after pass, as long as there is something to create.
func grow(t *testing.T, team *team, pods []corev1.Pod, revisions *[]appsv1.ControllerRevision) []corev1.Pod {
	t.Helper()
	for {
		pass := plan(t, team, pods, revisions)
		before := len(pods)
		for writes := pass.Next(); len(writes) > 0; writes = pass.Next() {
			for _, w := range writes {
				if w.Action == workload.ActionCreate {
					pods = append(pods, *w.Pod)
					pass.Answer(time.Now(), w, w.Pod, nil)
				}
			}
		}
		if len(pods) == before {
			return pods
		}
	}
}

func describe(pods []corev1.Pod) (lines []string) {
	for i := range pods {
		pod := &pods[i]
		lines = append(lines, pod.Name+" of "+pod.Labels[groupLabel]+": "+pod.Spec.Containers[0].Image)
	}
	slices.Sort(lines)
	return lines
}

func TestNames(t *testing.T) {
	t.Parallel()
	pods := grow(t, newTeam(2, 3), nil, &[]appsv1.ControllerRevision{})
	if in := input(t, newTeam(2, 3), pods, &[]appsv1.ControllerRevision{}); in.Scale.Limits.MaxUnavailable != 1 {
		t.Errorf("MaxUnavailable is %d, want 1 where the team has none", in.Scale.Limits.MaxUnavailable)
	}
	want := []string{
		"web-0 of web-0: leader:0", "web-0-w1 of web-0: worker:0", "web-0-w2 of web-0: worker:0",
		"web-1 of web-1: leader:0", "web-1-w1 of web-1: worker:0", "web-1-w2 of web-1: worker:0",
	}
	if diff := cmp.Diff(want, describe(pods)); diff != "" {
		t.Errorf("pods (-want +got):\n%s", diff)
	}
	for i := range pods {
		if gates := pods[i].Spec.ReadinessGates; len(gates) != 1 || gates[0].ConditionType != kruise.InPlaceUpdateReady {
			t.Errorf("pod %s has readiness gates %v", pods[i].Name, gates)
		}
	}
}

func TestGroupsBelowThePartitionAreCreatedAtTheCurrentRevision(t *testing.T) {
	t.Parallel()
	team, revisions := newTeam(2, 2), []appsv1.ControllerRevision{}
	grow(t, team, nil, &revisions)
	team.Status.CurrentRevision = revisions[0].Name
	team.Spec.Partition, team.Spec.Worker.Spec.Containers[0].Image = 1, "worker:1"
	want := []string{
		"web-0 of web-0: leader:0", "web-0-w1 of web-0: worker:0", "web-1 of web-1: leader:0", "web-1-w1 of web-1: worker:1",
	}
	if diff := cmp.Diff(want, describe(grow(t, team, nil, &revisions))); diff != "" {
		t.Errorf("pods (-want +got):\n%s", diff)
	}
}

func TestExpired(t *testing.T) {
	t.Parallel()
	team, revisions := newTeam(1, 2), []appsv1.ControllerRevision{}
	pods := grow(t, team, nil, &revisions)
	for _, image := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		team.Spec.Leader.Spec.Containers[0].Image = image
		input(t, team, pods, &revisions)
	}
	// The first revision is that of the pods, and the last is wanted: of the six in between, the oldest goes.
	var expired []string
	for _, w := range plan(t, team, pods, &revisions).Trim(revision.ControlledBy(team, revisions), historyLimit) {
		expired = append(expired, w.Object.GetName())
	}
	if !slices.Equal(expired, []string{revisions[1].Name}) {
		t.Errorf("expired are %v, want %s", expired, revisions[1].Name)
	}
}
