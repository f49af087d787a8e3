//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// testRollout rolls a CloneSet out and back, pauses it, and restarts it.
func (p *plugin) testRollout(t *testing.T) {
	s := p.space(t)
	s.apply(t, clonesOf("web", 3))
	s.prints(t, []string{"3 new pods"}, "rollout", "status", "cloneset/web", "--timeout=2m")
	one := s.pods(t, "web", 3)
	s.prints(t, []string{"cloneset.apps.kruise.io/web", "3"}, "get", "all")
	s.prints(t, []string{"app=web", "plugin/web:1"}, "describe", "cloneset", "web")

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

// testSet changes templates that have no pods.
func (p *plugin) testSet(t *testing.T) {
	s := p.space(t)
	const container = ".spec.template.spec.containers[0]"
	s.apply(t, clonesOf("web", 0))
	s.apply(t, workload(kruiseApps, "StatefulSet", "db", "replicas: 0"))
	s.apply(t, workload(kruiseApps, "DaemonSet", "agent", `updateStrategy: {rollingUpdate: {paused: true}}`))
	s.do(t, "create", "configmap", "conf", "--from-literal=first=1", "--from-literal=second=2")
	for _, object := range []string{
		"clonesets.apps.kruise.io/web", "statefulsets.apps.kruise.io/db", "daemonsets.apps.kruise.io/agent",
	} {
		s.prints(t, []string{"image updated"}, "set", "image", object, "app=plugin/web:3")
		s.has(t, object, container+".image", "plugin/web:3")
		s.has(t, object, ".spec.template.spec.containers[1].image", "plugin/helper:1")
		s.prints(t, []string{"env updated"}, "set", "env", object, "A=b", "-c", "app")
		s.has(t, object, container+".env[*].name", "A")
		s.has(t, object, ".spec.template.spec.containers[1].env", "")
		s.do(t, "set", "env", object, "--from=configmap/conf", "--keys=first", "--prefix=P_", "-c", "app")
		s.has(t, object, container+".env[1].valueFrom.configMapKeyRef.key", "first")
		s.prints(t, []string{"A=b", "P_FIRST=1"}, "set", "env", object, "--list", "--resolve")
		s.do(t, "set", "env", object, "A-", "-c", "app")
		s.has(t, object, container+".env[*].name", "P_FIRST")
		s.do(t, "set", "resources", object, "-c", "app", "--requests=cpu=1m", "--limits=memory=64Mi")
		s.has(t, object, container+".resources.requests.cpu", "1m")
		s.has(t, object, container+".resources.limits.memory", "64Mi")
		s.do(t, "set", "serviceaccount", object, "default")
		s.has(t, object, ".spec.template.spec.serviceAccountName", "default")
	}
	s.do(t, "create", "service", "clusterip", "web", "--tcp=80")
	s.do(t, "set", "selector", "service/web", "app=db")
	s.has(t, "service/web", ".spec.selector.app", "db")
	s.do(t, "create", "role", "reader", "--verb=get", "--resource=pods")
	s.do(t, "create", "rolebinding", "read", "--role=reader", "--user=one")
	s.do(t, "set", "subject", "rolebinding/read", "--user=two")
	s.has(t, "rolebinding/read", ".subjects[*].name", "one two")
}

// testScale exposes, enters and scales a CloneSet.
func (p *plugin) testScale(t *testing.T) {
	s := p.space(t)
	s.apply(t, clonesOf("web", 2))
	before := s.pods(t, "web", 2)
	if said := strings.TrimSpace(s.do(t, "exec", "cloneset/web", "-c", "app", "--", "hostname")); said != anyOf(before) {
		t.Errorf("exec enters %q, want %s", said, anyOf(before))
	}
	s.prints(t, []string{"service/web exposed"}, "expose", "cloneset/web", "--port=8080", "--target-port=80")
	eventually(t, func(context.Context) error {
		if got := s.field(t, "endpointslices", ".items[*].endpoints[*].targetRef.name"); len(strings.Fields(got)) != 2 {
			return fmt.Errorf("endpoints are %q", got)
		}
		return nil
	})
	s.prints(t, []string{"scaled"}, "scale", "cloneset/web", "--replicas=4", "--current-replicas=2")
	grown := s.pods(t, "web", 4)
	s.prints(t, []string{"autoscaled"}, "autoscale", "cloneset/web", "--min=2", "--max=6", "--cpu-percent=80")
	s.has(t, "hpa/web", ".spec.scaleTargetRef.kind", "CloneSet")
	s.has(t, "hpa/web", ".spec.maxReplicas", "6")

	names := slices.Sorted(maps.Keys(grown))
	gone := names[1:3]
	s.fails(t, "is no pod of cloneset", "scaledown", "cloneset/web", "--pods=other")
	s.do(t, "scaledown", "cloneset/web", "--pods="+strings.Join(gone, ","), "--dry-run=server")
	s.has(t, "cloneset/web", ".spec.replicas", "4")
	s.prints(t, []string{"selective pod deletion"}, "scaledown", "cloneset", "web",
		"--pods", gone[0]+", "+gone[1]+","+gone[0])
	left := s.pods(t, "web", 2)
	for _, name := range []string{names[0], names[3]} {
		if left[name].uid != grown[name].uid {
			t.Errorf("pods are %v, want %s among them", slices.Collect(maps.Keys(left)), name)
		}
	}
	s.has(t, "cloneset/web", ".spec.replicas", "2")
}

// testStalled has a rollout stand still, with an image that no registry has.
func (p *plugin) testStalled(t *testing.T) {
	s := p.space(t)
	s.apply(t, clonesOf("web", 3))
	before := s.pods(t, "web", 3)
	s.do(t, "patch", "cloneset/web", "--type=merge", "-p",
		`{"spec":{"updateStrategy":{"rollingUpdate":{"partition":1}}}}`)
	s.do(t, "set", "image", "cloneset/web", "app=plugin/web:missing")
	s.fails(t, "timed out", "watch", "cloneset/web", "--timeout=1s")
	s.fails(t, "timed out", "rollout", "status", "cloneset/web", "--timeout=1s")
	eventually(t, func(context.Context) error {
		text := s.do(t, "status", "cloneset/web", "--pods=10")
		for _, want := range []string{
			"out of 2 new pods", "condition Stalled=True", "partition 1 keeps 1 of 3 pods",
			"container app waits: ImagePullBackOff",
		} {
			if !strings.Contains(text, want) {
				return fmt.Errorf("no %q in\n%s", want, text)
			}
		}
		return nil
	})
	for name := range before {
		if !ready(s.pod(t, name)) {
			s.prints(t, []string{"Not ready:", "plugin/web:missing"}, "explain", name)
		}
	}
	// Back to the image that all others run. The partition would keep the pod at the other.
	s.do(t, "rollout", "undo", "cloneset/web")
	s.prints(t, []string{"partition 1 keeps 1 of 3 pods", "1 of 3, 0 ready"}, "status", "cloneset/web")
	s.do(t, "patch", "cloneset/web", "--type=merge", "-p",
		`{"spec":{"updateStrategy":{"rollingUpdate":{"partition":0}}}}`)
	s.do(t, "rollout", "status", "cloneset/web", "--timeout=2m")
	for name, is := range s.pods(t, "web", 3) {
		if is.uid != before[name].uid || is.images["app"] != "plugin/web:1" {
			t.Errorf("pod %s is %+v, was %+v", name, is, before[name])
		}
	}
}

func (s *space) pod(t *testing.T, name string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}}
	if err := s.Client.Get(t.Context(), types.NamespacedName{Namespace: s.namespace, Name: name}, pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

// testSidecar updates a SidecarSet, whose pods a workload of Kubernetes owns.
func (p *plugin) testSidecar(t *testing.T) {
	s := p.space(t)
	set := "side-" + s.namespace
	manifest := fmt.Sprintf(`
apiVersion: apps.kruise.io/v1beta1
kind: SidecarSet
metadata: {name: %s}
spec:
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %s}}
  selector: {matchLabels: {app: web}}
  updateStrategy: {type: RollingUpdate, maxUnavailable: 1}
  containers:
  - {name: side, image: "plugin/helper:1", command: [sleep, "100000"]}
`, set, s.namespace)
	s.apply(t, manifest)
	t.Cleanup(func() { _, _ = s.Kubectl(context.WithoutCancel(t.Context()), "delete", "sidecarset", set) })
	s.apply(t, workload("apps/v1", "Deployment", "web", "replicas: 2"))
	s.pods(t, "web", 2)
	eventually(t, func(context.Context) error {
		if got := s.field(t, "sidecarset/"+set, ".status.readyPods"); got != "2" {
			return fmt.Errorf("%q pods are ready", got)
		}
		return nil
	})
	before := s.pods(t, "web", 2)
	s.prints(t, []string{"SidecarSet " + set + " injected side", "ReplicaSet"}, "explain", anyOf(before))
	s.prints(t, []string{"image updated"}, "set", "image", "sidecarset/"+set, "side=plugin/helper:2")
	s.prints(t, []string{"2 of 2"}, "watch", "sidecarset/"+set, "--timeout=2m")
	for name, is := range s.pods(t, "web", 2) {
		if is.uid != before[name].uid || is.images["side"] != "plugin/helper:2" || is.restarts["side"] != 1 ||
			is.restarts["app"] != 0 {
			t.Errorf("pod %s is %+v, was %+v", name, is, before[name])
		}
	}
	s.fails(t, "no history viewer", "rollout", "history", "sidecarset/"+set)
	s.do(t, "exec", anyOf(before), "-S", "side", "--", "true")
}
