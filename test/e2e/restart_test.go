//go:build e2e

package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/test/cluster/image"
)

// restarted is a StatefulSet and a DaemonSet with a pod of each on every node, of which one restarts.
type restarted struct {
	*deployed
	namespace string
	images    map[string]image.Image
	// node restarts, killed is when it ended.
	node   string
	killed time.Time
}

const restartedSets = `
apiVersion: apps.kruise.io/v1beta1
kind: StatefulSet
metadata:
  name: db
spec:
  replicas: 3
  podManagementPolicy: Parallel
  selector:
    matchLabels: {app: db}
  updateStrategy:
    rollingUpdate: {podUpdatePolicy: InPlaceIfPossible, maxUnavailable: 1}
  template:
    metadata:
      labels: {app: db}
    spec:
      terminationGracePeriodSeconds: 1
      readinessGates: [{conditionType: InPlaceUpdateReady}]
      topologySpreadConstraints:
      - {maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule,
        labelSelector: {matchLabels: {app: db}}}
      containers: [{name: main, image: %[1]s}]
---
apiVersion: apps.kruise.io/v1beta1
kind: DaemonSet
metadata:
  name: agent
spec:
  selector:
    matchLabels: {app: agent}
  updateStrategy:
    rollingUpdate: {rollingUpdateType: InPlaceIfPossible, maxUnavailable: 1}
  template:
    metadata:
      labels: {app: agent}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: main, image: %[1]s}]
`

// testNodeRestarts has a node lose power in the middle of a rollout. The pods of the node come back with it, no pod is
// recreated, and the rollout goes on.
func (m *deployed) testNodeRestarts(t *testing.T) {
	r := &restarted{deployed: m, namespace: m.Namespace(t), images: map[string]image.Image{}}
	for _, tag := range []string{"old", "new"} {
		r.images[tag] = m.Push(t, image.Spec{Name: "restart/main:" + tag})
	}
	r.create(t)
	var before []corev1.Pod
	eventually(t, func(ctx context.Context) (err error) {
		before, err = r.run(ctx, "old", func(*corev1.Pod) error { return nil })
		return err
	})
	number := r.choose(t)
	start := sync.OnceFunc(m.KillNode(t, number))
	defer start()
	r.killed = time.Now()
	r.roll(t)
	// Each rollout goes on where it can, and comes to the pod that cannot follow.
	eventually(t, r.waits)
	start()
	t.Logf("%s was away for %s", r.node, time.Since(r.killed).Round(time.Second/10))

	var after []corev1.Pod
	eventually(t, func(ctx context.Context) (err error) {
		after, err = r.run(ctx, "new", r.isBack)
		return err
	})
	t.Logf("all pods were updated %s after the node ended", time.Since(r.killed).Round(time.Second/10))
	for i := range before {
		if before[i].UID != after[i].UID || before[i].Spec.NodeName != after[i].Spec.NodeName {
			t.Errorf("pod %s on %s became %s on %s",
				before[i].Name, before[i].Spec.NodeName, after[i].Name, after[i].Spec.NodeName)
		}
	}
	for _, kind := range []string{"asts db", "ads agent"} {
		r.printed(t, kind)
	}
}

func (r *restarted) create(t *testing.T) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "sets.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, restartedSets, r.images["old"].Name), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Kubectl(t.Context(), "apply", "-n", r.namespace, "-f", file); err != nil {
		t.Fatal(err)
	}
}

// choose takes a node without a manager, so that nothing but the pods fails. Two replicas are on two nodes at most.
func (r *restarted) choose(t *testing.T) (number int) {
	t.Helper()
	managers := r.pods(t)
	for number := 1; number <= nodes; number++ {
		name := fmt.Sprintf("node-%d", number)
		if !slices.ContainsFunc(managers, func(pod corev1.Pod) bool { return pod.Spec.NodeName == name }) {
			r.node = name
			return number
		}
	}
	t.Fatal("each node has a manager")
	return 0
}

func (r *restarted) roll(t *testing.T) {
	t.Helper()
	patch := fmt.Sprintf(`[{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": %q}]`,
		r.images["new"].Name)
	for _, kind := range []string{"asts/db", "ads/agent"} {
		// The node may have run a replica of the manager, whose endpoint of the webhook goes when the node is found to be not
		// ready.
		eventually(t, func(ctx context.Context) error {
			_, err := r.Kubectl(ctx, "patch", "-n", r.namespace, kind, "--type=json", "-p", patch)
			return err
		})
	}
}

// list returns the pods by their names.
func (r *restarted) list(ctx context.Context) ([]corev1.Pod, error) {
	var list corev1.PodList
	err := r.Client.List(ctx, &list, client.InNamespace(r.namespace))
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return list.Items, err
}

// run returns the pods, once all are ready with an image and pass a check.
func (r *restarted) run(ctx context.Context, tag string, check func(*corev1.Pod) error) ([]corev1.Pod, error) {
	pods, err := r.list(ctx)
	if err == nil && len(pods) != 2*nodes {
		err = fmt.Errorf("%d pods", len(pods))
	}
	for i := range pods {
		pod := &pods[i]
		if !ready(pod) || pod.Spec.Containers[0].Image != r.images[tag].Name {
			err = errors.Join(err, fmt.Errorf("pod %s on %s runs %s: %+v",
				pod.Name, pod.Spec.NodeName, pod.Spec.Containers[0].Image, pod.Status.Conditions))
		}
		err = errors.Join(err, check(pod))
	}
	return pods, err
}

// waits expects that each rollout has come to the pod of the node that is away, or waits for this pod: after 40 seconds
// the pods of the node are not ready any more.
func (r *restarted) waits(ctx context.Context) error {
	pods, err := r.list(ctx)
	for i := range pods {
		pod := &pods[i]
		if pod.Spec.NodeName == r.node && pod.Spec.Containers[0].Image != r.images["new"].Name && ready(pod) {
			err = errors.Join(err, fmt.Errorf("the rollout has not come to %s", pod.Name))
		}
	}
	return err
}

// isBack expects a pod that has started once more: those of the node with the node, and for the update where that came
// later.
func (r *restarted) isBack(pod *corev1.Pod) error {
	c := pod.Status.ContainerStatuses[0]
	most := int32(1)
	if pod.Spec.NodeName == r.node {
		most = 2
	}
	if c.RestartCount < 1 || c.RestartCount > most || c.State.Running == nil ||
		c.State.Running.StartedAt.Time.Before(r.killed.Truncate(time.Second)) {
		return fmt.Errorf("pod %s on %s: %+v", pod.Name, pod.Spec.NodeName, c)
	}
	return nil
}

// printed logs what kubectl prints, and expects no event of a deletion.
func (r *restarted) printed(t *testing.T, kind string) {
	t.Helper()
	words := strings.Fields(kind)
	for _, verb := range []string{"get", "describe"} {
		said, err := r.Kubectl(t.Context(), append([]string{verb, "-n", r.namespace}, words...)...)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("kubectl %s %s\n%s", verb, kind, said)
		if strings.Contains(said, "SuccessfulDelete") {
			t.Errorf("%s has deleted a pod", kind)
		}
	}
}
