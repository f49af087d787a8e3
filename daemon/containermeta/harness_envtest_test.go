//go:build envtest

package containermeta_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/daemon/containermeta"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/test/requests"
	"github.com/kruisekit/kruisekit/test/rig/nodetest"
)

func TestMain(m *testing.M) { os.Exit(cluster.MainAtOnce(m, 16)) }

// bench is a namespace with a node of its own.
type bench struct {
	*testing.T

	client    client.WithWatch
	config    *rest.Config
	namespace string
	node      *nodetest.Node
	nodeName  string

	requests *requests.Recorder
}

type ways = map[string]nodetest.Way

// start runs a test with others at the same time, with a daemon on the node.
func start(t *testing.T, w ways, o containermeta.Options) *bench {
	t.Helper()
	t.Parallel()
	b := newBench(t, w)
	b.daemon(o)
	return b
}

// newBench has no daemon yet.
func newBench(t *testing.T, w ways) *bench {
	t.Helper()
	c := cluster.Start(t, cluster.Options{})
	config := rest.CopyConfig(c.Config)
	config.QPS = -1
	live, err := client.NewWithWatch(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	namespace := c.Namespace(t)
	b := &bench{
		T: t, client: live, config: config, namespace: namespace, requests: &requests.Recorder{Namespace: namespace},
	}
	b.nodeName = "node-" + b.namespace
	b.node = nodetest.New(b.nodeName, w)
	b.background(func(ctx context.Context) error { return b.node.Run(ctx, live, b.namespace) })
	return b
}

// background runs something until the test ends.
func (b *bench) background(run func(context.Context) error) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	b.Cleanup(func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			b.Error(err)
		}
	})
}

// daemon starts one that ends with the test.
func (b *bench) daemon(o containermeta.Options) {
	b.Helper()
	counted := rest.CopyConfig(b.config)
	counted.Wrap(b.requests.Wrap)
	mgr, err := ctrl.NewManager(counted, ctrl.Options{
		Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Cache: cache.Options{
			DefaultNamespaces: map[string]cache.Config{b.namespace: {}},
			ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: {
				Field: fields.OneTermEqualSelector("spec.nodeName", b.nodeName),
			}},
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	r, err := containermeta.New(mgr.GetClient(), b.nodeName, []*nodetest.Node{b.node}, o)
	if err != nil {
		b.Fatal(err)
	}
	if err := r.SetupWithManager(b.Context(), mgr, controller.Options{}); err != nil {
		b.Fatal(err)
	}
	b.background(mgr.Start)
	// What is there when it begins to watch is left alone until it changes.
	early := b.pod("early", nil)
	for n := 0; metasOf(b.T, early) == nil; n++ {
		b.until(early, func() error { return nil })
		b.change(early, func(pod *corev1.Pod) { pod.Labels = map[string]string{"n": strconv.Itoa(n)} })
	}
}

// take returns the requests since the last time, but for those about the pod that was there before the daemon.
func (b *bench) take() []string { return requests.Without(b.requests.Take(), "pods/early") }

// pod runs the containers app, which takes CONF from the annotation conf, and log. It is of a CloneSet, and not
// described yet.
func (b *bench) pod(name string, change func(*corev1.Pod)) *corev1.Pod {
	b.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: b.namespace, Name: name, Annotations: map[string]string{"conf": "1"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps.kruise.io/v1beta1", Kind: "CloneSet", Name: "web", UID: "c1", Controller: ptr.To(true),
			}},
		},
		Spec: corev1.PodSpec{
			NodeName: b.nodeName, ReadinessGates: []corev1.PodReadinessGate{{ConditionType: kruise.InPlaceUpdateReady}},
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
	if err := b.client.Create(b.Context(), pod); err != nil {
		b.Fatal(err)
	}
	return pod
}

// described waits until the annotation of a pod tells what an in-place update waits for.
func (b *bench) described(pod *corev1.Pod) []kruise.RuntimeContainerMeta {
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
			s := statusOf(pod, m.Name)
			if s == nil || !s.Ready || s.ContainerID != m.ContainerID || m.Hashes.ExtractedEnvFromMetadataHash != want {
				return fmt.Errorf("container %s is described as %+v, and is %+v", m.Name, m, s)
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

func statusOf(pod *corev1.Pod, name string) *corev1.ContainerStatus {
	if i := slices.IndexFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
		return s.Name == name
	}); i >= 0 {
		return &pod.Status.ContainerStatuses[i]
	}
	return nil
}

// until waits for a pod to be as wanted.
func (b *bench) until(pod *corev1.Pod, check func() error) {
	b.Helper()
	var last error
	err := wait.PollUntilContextTimeout(b.Context(), 20*time.Millisecond, time.Minute, true,
		func(ctx context.Context) (bool, error) {
			fresh := &corev1.Pod{}
			if last = b.client.Get(ctx, client.ObjectKeyFromObject(pod), fresh); last == nil {
				*pod = *fresh
				last = check()
			}
			return last == nil, nil
		})
	if err != nil {
		b.Fatalf("%v; last: %v\npod: %v %+v", err, last, pod.Annotations, pod.Status)
	}
}

// change patches the metadata of a pod.
func (b *bench) change(pod *corev1.Pod, how func(*corev1.Pod)) {
	b.Helper()
	before := pod.DeepCopy()
	how(pod)
	if err := b.client.Patch(b.Context(), pod, client.MergeFrom(before)); err != nil {
		b.Fatal(err)
	}
}

// updating takes a pod out of traffic for an in-place update, or puts it back.
func (b *bench) updating(pod *corev1.Pod, is bool) {
	b.Helper()
	status := corev1.ConditionTrue
	if is {
		status = corev1.ConditionFalse
	}
	body := fmt.Sprintf(`{"status":{"conditions":[{"type":%q,"status":%q}]}}`, kruise.InPlaceUpdateReady, status)
	if err := b.client.Status().Patch(b.Context(), pod,
		client.RawPatch("application/strategic-merge-patch+json", []byte(body))); err != nil {
		b.Fatal(err)
	}
}
