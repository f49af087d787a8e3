//go:build envtest

package containermeta_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/daemon/containermeta"
	"github.com/kruisekit/kruisekit/test/requests"
)

// conf changes the annotation that the container app is fed by.
func conf(value string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Annotations["conf"] = value }
}

// TestDescribes tells what runs, by the status of the pod, and asks for nothing else.
func TestDescribes(t *testing.T) {
	b := start(t, nil, containermeta.Options{})
	plain := b.pod("plain", func(pod *corev1.Pod) { pod.OwnerReferences = nil })
	injected := b.pod("injected", func(pod *corev1.Pod) {
		pod.OwnerReferences = nil
		pod.Annotations[kruise.SidecarSetHashKey] = "{}"
	})
	pod := b.pod("web", nil)
	metas := b.described(pod)
	if metas[0].Name != "app" || metas[0].RestartCount != 0 || metas[0].Hashes.PlainHash == 0 ||
		metas[0].Hashes.PlainHash == metas[1].Hashes.PlainHash {
		t.Errorf("described as %+v", metas)
	}
	b.described(injected)
	b.until(plain, func() error { return nil })
	if text, ok := plain.Annotations[kruise.RuntimeContainerMetaKey]; ok {
		t.Errorf("a pod that nobody updates in place is described: %s", text)
	}
	asked := b.take()
	for _, r := range asked {
		if r != "PATCH pods/web/status 200" && r != "PATCH pods/injected/status 200" {
			t.Errorf("it asks for %s", r)
		}
	}
	if len(asked) != 2 {
		t.Errorf("two pods cost %d requests: %v", len(asked), asked)
	}
}

// TestEnvironment changes the annotation on the pod itself, which changes nothing that runs; and then in an in-place
// update.
func TestEnvironment(t *testing.T) {
	b := start(t, nil, containermeta.Options{})
	pod := b.pod("web", nil)
	was := b.described(pod)
	b.updating(pod, false)
	b.change(pod, conf("2"))
	// What the daemon does about another pod comes after all that it might do about this one.
	b.described(b.pod("marker", nil))
	if n := len(b.node.Stops()); n > 0 {
		t.Fatalf("%d containers were stopped outside of an update", n)
	}
	b.take()
	b.updating(pod, true)
	is := b.described(pod)
	if is[0].ContainerID == was[0].ContainerID || is[0].RestartCount != 1 || is[1] != was[1] {
		t.Errorf("described as %+v, before as %+v", is, was)
	}
	stops := b.node.Stops()
	if len(stops) != 1 || stops[0].Name != "app" || stops[0].Grace != 30*time.Second {
		t.Errorf("stopped %+v", stops)
	}
	// The new container, before it runs or after, and its environment: what an update costs.
	writes := requests.About(b.take(), "PATCH")
	if len(writes) != 1 {
		t.Errorf("the update costs %v", writes)
	}
	b.updating(pod, false)
	var events corev1.EventList
	b.until(pod, func() error {
		if err := b.client.List(t.Context(), &events, client.InNamespace(b.namespace)); err != nil {
			return err
		}
		if len(events.Items) == 0 {
			return fmt.Errorf("no events")
		}
		return nil
	})
	e := events.Items[0]
	if e.Reason != "Killing" || e.InvolvedObject.UID != pod.UID || e.InvolvedObject.FieldPath != "spec.containers{app}" ||
		e.Message != "Stopping container app by container meta restarter" ||
		e.Source != (corev1.EventSource{Component: "kruise-daemon-containermeta", Host: b.nodeName}) {
		t.Errorf("event %+v", e)
	}
}

// TestLaunchOrder restarts containers of a higher priority first, and waits for them.
func TestLaunchOrder(t *testing.T) {
	b := start(t, ways{"first": {Slow: 2 * time.Second}}, containermeta.Options{})
	pod := b.pod("web", func(pod *corev1.Pod) {
		fed := pod.Spec.Containers[0]
		pod.Spec.Containers = nil
		for i, name := range []string{"last", "first"} {
			c := *fed.DeepCopy()
			c.Name = name
			c.Env = append(c.Env, corev1.EnvVar{Name: "KRUISE_CONTAINER_BARRIER", ValueFrom: &corev1.EnvVarSource{
				ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
					LocalObjectReference: corev1.LocalObjectReference{Name: "web-barrier"}, Key: fmt.Sprintf("p_%d", i),
				},
			}})
			pod.Spec.Containers = append(pod.Spec.Containers, c)
		}
	})
	b.described(pod)
	b.updating(pod, true)
	b.change(pod, conf("2"))
	b.described(pod)
	stops := b.node.Stops()
	if len(stops) != 2 || stops[0].Name != "first" || stops[1].At.Sub(stops[0].At) < 2*time.Second {
		t.Errorf("stopped %+v", stops)
	}
}

// TestGateOff tells what runs, without environments, and stops nothing.
func TestGateOff(t *testing.T) {
	b := start(t, nil, containermeta.Options{NoEnv: true})
	pod := b.pod("web", nil)
	b.until(pod, func() error {
		if len(metasOf(t, pod)) != 2 {
			return fmt.Errorf("not described")
		}
		return nil
	})
	b.updating(pod, true)
	b.change(pod, conf("2"))
	marker := b.pod("marker", nil)
	b.until(marker, func() error {
		if len(metasOf(t, marker)) != 2 {
			return fmt.Errorf("not described")
		}
		return nil
	})
	if metas := metasOf(t, pod); metas[0].Hashes.ExtractedEnvFromMetadataHash != 0 || len(b.node.Stops()) > 0 ||
		b.node.CallsOf("Exec env") > 0 {
		t.Errorf("described as %+v, %d stops, %d environments read", metas, len(b.node.Stops()), b.node.CallsOf("Exec env"))
	}
}

// TestOldPods are left alone by a daemon that starts, until something happens in them.
func TestOldPods(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	pod := b.pod("web", nil)
	b.until(pod, func() error {
		if s := statusOf(pod, "app"); s == nil || !s.Ready {
			return fmt.Errorf("it does not run")
		}
		return nil
	})
	b.daemon(containermeta.Options{})
	b.described(b.pod("marker", nil))
	b.until(pod, func() error { return nil })
	if metas := metasOf(t, pod); metas != nil {
		t.Errorf("described as %+v", metas)
	}
	b.node.End(strings.TrimPrefix(statusOf(pod, "log").ContainerID, "containerd://"), 1)
	b.described(pod)
}

// TestRuntimeAway describes a pod as soon as the runtime is back.
func TestRuntimeAway(t *testing.T) {
	b := start(t, nil, containermeta.Options{})
	b.node.Down(true)
	pod := b.pod("web", nil)
	b.until(pod, func() error {
		if b.node.CallsOf("Containers") < 2 {
			return fmt.Errorf("the runtime is not asked")
		}
		return nil
	})
	b.node.Down(false)
	b.described(pod)
}

// TestQuiet makes no request when nothing that matters changes.
func TestQuiet(t *testing.T) {
	b := start(t, nil, containermeta.Options{})
	pod := b.pod("web", nil)
	b.described(pod)
	b.take()
	calls := b.node.Calls()
	for i := range 5 {
		b.change(pod, func(pod *corev1.Pod) { pod.Labels = map[string]string{"n": fmt.Sprint(i)} })
	}
	before := b.node.Calls()
	b.described(b.pod("marker", nil))
	asked := requests.Without(b.take(), "marker")
	if len(asked) > 0 || before != calls {
		t.Errorf("%v, and %d calls of the runtime", asked, before-calls)
	}
}
