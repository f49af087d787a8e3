//go:build envtest

package containermeta_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/daemon/containermeta"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/test/requests"
	"github.com/kruisekit/kruisekit/test/rig/nodetest"
)

func TestMain(m *testing.M) { os.Exit(cluster.MainAtOnce(m, 16)) }

// bench is a node with a daemon.
type bench struct{ *nodetest.Bench }

func newBench(t *testing.T) bench {
	t.Helper()
	b := bench{nodetest.NewBench(t, nil, cluster.Options{})}
	mgr := b.Manager(nil)
	r, err := containermeta.New(mgr.GetClient(), b.NodeName, []*nodetest.Node{b.Node}, containermeta.Options{})
	if err != nil {
		b.Fatal(err)
	}
	if err := r.SetupWithManager(b.Context(), mgr, controller.Options{}); err != nil {
		b.Fatal(err)
	}
	b.Background(mgr.Start)
	// What is there when it begins to watch is left alone until it changes.
	early := b.pod("early", nil)
	for n := 0; metasOf(t, early) == nil; n++ {
		b.until(early, func() error { return nil })
		b.change(early, func(pod *corev1.Pod) { pod.Labels = map[string]string{"n": strconv.Itoa(n)} })
	}
	return b
}

// take returns the requests since the last time, but for those about the pod that was there before the daemon.
func (b bench) take() []string { return requests.Without(b.Requests.Take(), "pods/early") }

// pod runs the containers app, which takes CONF from the annotation conf, and log. It is of a CloneSet, and not
// described yet.
func (b bench) pod(name string, change func(*corev1.Pod)) *corev1.Pod {
	b.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: b.Namespace, Name: name, Annotations: map[string]string{"conf": "1"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps.kruise.io/v1beta1", Kind: "CloneSet", Name: "web", UID: "c1", Controller: ptr.To(true),
			}},
		},
		Spec: corev1.PodSpec{
			NodeName: b.NodeName, ReadinessGates: []corev1.PodReadinessGate{{ConditionType: kruise.InPlaceUpdateReady}},
			Containers: []corev1.Container{
				{Name: "app", Image: "app:1", Env: []corev1.EnvVar{{Name: "CONF", ValueFrom: &corev1.EnvVarSource{
					FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['conf']"},
				}}}},
				{Name: "log", Image: "log:1"},
			},
		},
	}
	if change != nil {
		change(pod)
	}
	if err := b.Client.Create(b.Context(), pod); err != nil {
		b.Fatal(err)
	}
	return pod
}

// described waits until the annotation of a pod tells what an in-place update waits for.
func (b bench) described(pod *corev1.Pod) []kruise.RuntimeContainerMeta {
	b.Helper()
	var metas []kruise.RuntimeContainerMeta
	b.until(pod, func() error {
		metas = metasOf(b.T, pod)
		if len(metas) != len(pod.Spec.Containers) {
			return fmt.Errorf("%d containers are described", len(metas))
		}
		for i, m := range metas {
			want, err := inplace.EnvHash(&pod.Spec.Containers[i], pod.Labels, pod.Annotations)
			if err != nil {
				return err
			}
			at := slices.IndexFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.Name == m.Name })
			if at < 0 || !pod.Status.ContainerStatuses[at].Ready || m.Hashes.ExtractedEnvFromMetadataHash != want ||
				pod.Status.ContainerStatuses[at].ContainerID != m.ContainerID {
				return fmt.Errorf("container %s is described as %+v, of %+v", m.Name, m, pod.Status.ContainerStatuses)
			}
		}
		return nil
	})
	return metas
}

func metasOf(t *testing.T, pod *corev1.Pod) []kruise.RuntimeContainerMeta {
	t.Helper()
	text, ok := pod.Annotations[kruise.RuntimeContainerMetaKey]
	if !ok {
		return nil
	}
	var set kruise.RuntimeContainerMetaSet
	if err := json.Unmarshal([]byte(text), &set); err != nil {
		t.Fatal(err)
	}
	return set.Containers
}

// until waits for a pod to be as wanted.
func (b bench) until(pod *corev1.Pod, check func() error) {
	b.Helper()
	b.Until(func() error {
		fresh := &corev1.Pod{}
		if err := b.Client.Get(b.Context(), client.ObjectKeyFromObject(pod), fresh); err != nil {
			return err
		}
		*pod = *fresh
		return check()
	})
}

// change patches the metadata of a pod.
func (b bench) change(pod *corev1.Pod, how func(*corev1.Pod)) {
	b.Helper()
	before := pod.DeepCopy()
	how(pod)
	if err := b.Client.Patch(b.Context(), pod, client.MergeFrom(before)); err != nil {
		b.Fatal(err)
	}
}

// updating takes a pod out of traffic for an in-place update, or puts it back.
func (b bench) updating(pod *corev1.Pod, is bool) {
	b.Helper()
	status := corev1.ConditionTrue
	if is {
		status = corev1.ConditionFalse
	}
	body := fmt.Sprintf(`{"status":{"conditions":[{"type":%q,"status":%q}]}}`, kruise.InPlaceUpdateReady, status)
	if err := b.Client.Status().Patch(b.Context(), pod,
		client.RawPatch("application/strategic-merge-patch+json", []byte(body))); err != nil {
		b.Fatal(err)
	}
}

// TestDescribes tells what runs, by the status of the pod, and asks for nothing else.
func TestDescribes(t *testing.T) {
	b := newBench(t)
	plain := b.pod("plain", func(pod *corev1.Pod) { pod.OwnerReferences = nil })
	injected := b.pod("injected", func(pod *corev1.Pod) {
		pod.OwnerReferences = nil
		pod.Annotations[kruise.SidecarSetHashKey] = "{}"
	})
	metas := b.described(b.pod("web", nil))
	if metas[0].Name != "app" || metas[0].RestartCount != 0 || metas[0].Hashes.PlainHash == 0 ||
		metas[0].Hashes.PlainHash == metas[1].Hashes.PlainHash {
		t.Errorf("described as %+v", metas)
	}
	b.described(injected)
	b.until(plain, func() error { return nil })
	if text, ok := plain.Annotations[kruise.RuntimeContainerMetaKey]; ok {
		t.Errorf("a pod without in-place updates is described: %s", text)
	}
	asked := b.take()
	slices.Sort(asked)
	if !slices.Equal(asked, []string{"PATCH pods/injected/status 200", "PATCH pods/web/status 200"}) {
		t.Errorf("two pods cost %v", asked)
	}
}

// TestEnvironment changes the annotation on the pod itself, which changes nothing that runs; and then in an in-place
// update.
func TestEnvironment(t *testing.T) {
	b := newBench(t)
	pod := b.pod("web", nil)
	was := b.described(pod)
	b.updating(pod, false)
	b.change(pod, func(pod *corev1.Pod) { pod.Annotations["conf"] = "2" })
	// What the daemon does about another pod comes after all that it might do about this one.
	b.described(b.pod("marker", nil))
	if n := len(b.Stops()); n > 0 {
		t.Fatalf("%d containers were stopped outside of an update", n)
	}
	b.take()
	b.updating(pod, true)
	is := b.described(pod)
	if is[0].ContainerID == was[0].ContainerID || is[0].RestartCount != 1 || is[1] != was[1] {
		t.Errorf("described as %+v, before as %+v", is, was)
	}
	if stops := b.Stops(); len(stops) != 1 || stops[0].Name != "app" || stops[0].Grace != 30*time.Second {
		t.Errorf("stopped %+v", stops)
	}
	// The new container, before it runs or after, and its environment: what an update costs.
	if writes := requests.About(b.take(), "PATCH"); len(writes) != 1 {
		t.Errorf("the update costs %v", writes)
	}
	var events corev1.EventList
	b.Until(func() error {
		if err := b.Client.List(t.Context(), &events, client.InNamespace(b.Namespace)); err != nil {
			return err
		}
		if len(events.Items) == 0 {
			return nodetest.ErrNotYet
		}
		return nil
	})
	e := events.Items[0]
	if e.Reason != "Killing" || e.InvolvedObject.UID != pod.UID || e.InvolvedObject.FieldPath != "spec.containers{app}" ||
		e.Message != "Stopping container app by container meta restarter" ||
		e.Source != (corev1.EventSource{Component: "kruise-daemon-containermeta", Host: b.NodeName}) {
		t.Errorf("event %+v", e)
	}
}
