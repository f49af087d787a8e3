//go:build e2e

package e2e

import (
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// testRollout rolls a CloneSet out and back, pauses it, and restarts it.
func (p *plugin) testRollout(t *testing.T) {
	s := p.space(t)
	s.apply(t, clonesOf("web", 3))
	s.prints(t, []string{"3 new pods"}, "rollout", "status", "cloneset/web", "--timeout=2m")
	one := s.pods(t, "web", 3)
	if said := strings.TrimSpace(s.do(t, "exec", "cloneset/web", "-c", "app", "--", "hostname")); said != anyOf(one) {
		t.Errorf("exec enters %q, want %s", said, anyOf(one))
	}

	s.prints(t, []string{"3 in place", "restarts app (plugin/web:2)"}, "plan", "cloneset/web", "--image",
		"app=plugin/web:2", "--fail-on=recreates", "--hold-hooks")
	s.prints(t, []string{"image updated"}, "set", "image", "cloneset/web", "app=plugin/web:2")
	s.prints(t, []string{"CloneSet " + s.namespace + "/web", "3 of 3, 3 ready"}, "watch", "cloneset/web", "--timeout=2m",
		"--pods=0")
	s.kept(t, "web", one, "plugin/web:2", 1)
	s.prints(t, []string{"3 of 3, 3 ready"}, "status", "cloneset/web")

	s.prints(t, []string{"REVISION", "1", "2"}, "rollout", "history", "cloneset/web")
	s.prints(t, []string{"plugin/web:1"}, "rollout", "history", "cloneset/web", "--revision=1")
	two := s.pods(t, "web", 3)
	s.exits(t, 0, "", "rollout", "undo", "cloneset/web", "--dry-run=server")
	s.has(t, "cloneset/web", ".spec.template.spec.containers[0].image", "plugin/web:2")
	s.prints(t, []string{"rolled back"}, "rollout", "undo", "cloneset/web")
	s.prints(t, append(slices.Collect(maps.Keys(two)), "Updated ready pods:"), "rollout", "status", "cloneset/web",
		"--detail")
	s.kept(t, "web", two, "plugin/web:1", 1)

	s.prints(t, []string{"paused"}, "rollout", "pause", "cloneset/web")
	s.fails(t, "already paused", "rollout", "pause", "cloneset/web")
	three := s.pods(t, "web", 3)
	s.do(t, "rollout", "undo", "cloneset/web", "--to-revision=2")
	s.do(t, "wait", "cloneset/web", "--for=jsonpath={.status.updatedReplicas}=0", "--timeout=1m")
	s.prints(t, []string{"paused by spec.updateStrategy.rollingUpdate.paused", "0 out of 3 new pods"}, "status",
		"cloneset/web", "--pods=1")
	s.prints(t, []string{"CloneSet web owns it", "paused"}, "explain", "pod/"+anyOf(three))
	s.kept(t, "web", three, "plugin/web:1", 0)
	s.prints(t, []string{"resumed"}, "rollout", "resume", "cloneset/web")
	s.fails(t, "is not paused", "rollout", "resume", "cloneset/web")
	s.do(t, "rollout", "status", "cloneset/web", "--timeout=2m")
	s.kept(t, "web", three, "plugin/web:2", 1)

	s.prints(t, []string{"restarted"}, "rollout", "restart", "cloneset/web")
	s.do(t, "rollout", "status", "cloneset/web", "--timeout=2m")
	for name := range s.pods(t, "web", 3) {
		if _, same := three[name]; same {
			t.Errorf("pod %s was not recreated", name)
		}
	}
}

func anyOf(pods map[string]onePod) string { return slices.Min(slices.Collect(maps.Keys(pods))) }

// testRestart restarts containers in their pods, within a budget.
func (p *plugin) testRestart(t *testing.T) {
	s := p.space(t)
	s.apply(t, clonesOf("web", 3))
	before := s.pods(t, "web", 3)
	s.budget(t, s.namespace, "web", 3)
	s.do(t, "restart", "cloneset/web", "--dry-run=client")
	s.do(t, "create", "ContainerRecreateRequest", "none", "--pod="+anyOf(before), "--dry-run=server")
	s.fails(t, `no container "other"`, "restart", "cloneset/web", "--containers=other")
	s.prints(t, []string{"3 of 3 pods", "containers restarted"}, "restart", "cloneset/web", "--containers=app",
		"--max-unavailable=2", "--unready-grace=1", "--interval=200ms", "--timeout=2m")
	s.kept(t, "web", before, "plugin/web:1", 1)

	one := anyOf(before)
	s.do(t, "create", "ContainerRecreateRequest", "again", "--pod="+one, "--containers=helper", "-u", "1", "-m", "2")
	s.has(t, "containerrecreaterequest/again", ".spec.containers[*].name", "helper")
	s.has(t, "containerrecreaterequest/again", ".spec.strategy.unreadyGracePeriodSeconds", "1")
	s.has(t, "containerrecreaterequest/again", ".spec.strategy.minStartedSeconds", "2")
	s.do(t, "wait", "containerrecreaterequest/again", "--for=jsonpath={.status.phase}=Completed", "--timeout=1m")
	for name, is := range s.pods(t, "web", 3) {
		want := map[bool]int32{true: 1}[name == one]
		if is.uid != before[name].uid || is.restarts["helper"] != want || is.restarts["app"] != 1 {
			t.Errorf("pod %s restarted %v times, want %d times helper", name, is.restarts, want)
		}
	}
}

// testPull pulls images to one node each.
func (p *plugin) testPull(t *testing.T) {
	s := p.space(t)
	s.apply(t, clonesOf("web", 1))
	var node string
	for _, pod := range s.pods(t, "web", 1) {
		node = pod.node
	}
	s.do(t, "create", "secret", "docker-registry", "login", "--docker-username=a", "--docker-password=b")
	s.exits(t, 0, "", "pull", "plugin/pull:1", "--pods=app=web", "--dry-run=server")
	s.prints(t, []string{"created", "1 of 1 nodes succeeded"}, "pull", "plugin/pull:1", "--pods=app=web",
		"--interval=200ms", "--parallelism=1", "--keep=1h")
	s.prints(t, []string{"1 of 1 nodes succeeded"}, "pull", "plugin/pull:2", "--nodes="+node, "--timeout=1m",
		"--pull-secrets=login")
	s.prints(t, []string{"1 of 1 nodes succeeded"}, "pull", "plugin/pull:3", "-l", corev1.LabelHostname+"="+node)
	s.do(t, "pull", "plugin/pull:1", "--wait=false")
	var jobs v1beta1.ImagePullJobList
	if err := s.Client.List(t.Context(), &jobs, client.InNamespace(s.namespace)); err != nil {
		t.Fatal(err)
	}
	if len(jobs.Items) != 4 {
		t.Errorf("%d jobs, want 4", len(jobs.Items))
	}
	pulled := false
	for _, job := range jobs.Items {
		pulled = pulled || job.Spec.Image == "plugin/pull:1" && job.Spec.PodSelector != nil &&
			*job.Spec.CompletionPolicy.TTLSecondsAfterFinished == 3600 && job.Status.Succeeded == 1
	}
	if !pulled {
		t.Errorf("no job pulled to the nodes of the pods: %+v", jobs.Items)
	}
	if got := s.exits(t, 1, "", "pull", "plugin/absent:1", "--nodes="+node); !strings.Contains(got.err, "1 nodes failed") {
		t.Errorf("%q", got.err)
	}
}
