//go:build envtest

package containerrestart_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	pure "github.com/kruisekit/kruisekit/containerrestart"
	"github.com/kruisekit/kruisekit/daemon/containerrestart"
	"github.com/kruisekit/kruisekit/daemon/cri"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/test/requests"
	"github.com/kruisekit/kruisekit/test/rig/nodetest"
)

type (
	request = v1beta1.ContainerRecreateRequest
	state   = v1beta1.ContainerRecreateRequestContainerRecreateState
	ways    = map[string]nodetest.Way
)

func TestMain(m *testing.M) { os.Exit(cluster.MainAtOnce(m, 16)) }

// bench is a node with a daemon, and with what does the manager's part.
type bench struct{ *nodetest.Bench }

// start restricts the cache to what is of the node and active, unless it is to be whole.
func start(t *testing.T, w ways, o containerrestart.Options, whole bool) bench {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	b := bench{nodetest.NewBench(t, w, cluster.Options{Scheme: scheme, CRDDirs: []string{
		"../../config/crd/bases/apps.kruise.io_containerrecreaterequests.yaml",
	}})}
	b.Background(b.supervise)
	seen := map[client.Object]cache.ByObject{}
	if !whole {
		seen[&request{}] = cache.ByObject{Label: labels.SelectorFromSet(labels.Set{
			v1beta1.ContainerRecreateRequestNodeNameKey: b.NodeName, v1beta1.ContainerRecreateRequestActiveKey: "true",
		})}
	}
	mgr := b.Manager(seen)
	r, err := containerrestart.New(mgr.GetClient(), b.NodeName, []*nodetest.Node{b.Node}, o)
	if err != nil {
		b.Fatal(err)
	}
	if err := r.SetupWithManager(b.Context(), mgr, controller.Options{}); err != nil {
		b.Fatal(err)
	}
	b.Background(mgr.Start)
	return b
}

// supervise does the manager's part for requests that leave the pod in traffic.
func (b bench) supervise(ctx context.Context) error {
	return wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(v1beta1.GroupVersion.WithKind("ContainerRecreateRequestList"))
		if err := b.Client.List(ctx, list, client.InNamespace(b.Namespace)); err != nil {
			return false, err
		}
		var all []*request
		for i := range list.Items {
			if one, malformed, err := stored.Decode[request](&list.Items[i]); err == nil && malformed == nil {
				all = append(all, one)
			}
		}
		for _, r := range all {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Spec.PodName}}
			switch err := b.Look(ctx, pod); {
			case client.IgnoreNotFound(err) != nil:
				return false, err
			case err != nil:
				pod = nil
			}
			err := b.carryOut(ctx, r, pure.Supervise(pure.Input{Request: r, Pod: pod, Others: all, Now: time.Now()}))
			if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
				return false, err
			}
		}
		return false, nil
	})
}

func (b bench) carryOut(ctx context.Context, r *request, plan pure.Plan) error {
	if plan.Write != nil {
		body, err := plan.Write.Data()
		if err != nil {
			return err
		}
		return b.Client.Status().Patch(ctx, r, client.RawPatch(types.MergePatchType, body))
	}
	if plan.RemoveActive {
		delete(r.Labels, v1beta1.ContainerRecreateRequestActiveKey)
		return b.Client.Update(ctx, r)
	}
	return nil
}

// pod runs the containers app and log.
func (b bench) pod(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	b.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: name},
		Spec: corev1.PodSpec{
			NodeName: b.NodeName, Containers: []corev1.Container{{Name: "app", Image: "app:1"}, {Name: "log", Image: "log:1"}},
		},
	}
	for _, c := range change {
		c(pod)
	}
	if err := b.Client.Create(b.Context(), pod); err != nil {
		b.Fatal(err)
	}
	b.Until(func() error {
		if err := b.Look(b.Context(), pod); err != nil {
			return err
		}
		ready := 0
		for _, c := range pod.Status.ContainerStatuses {
			if c.Ready {
				ready++
			}
		}
		if ready != len(pod.Spec.Containers) {
			return fmt.Errorf("%d containers are ready", ready)
		}
		return nil
	})
	return pod
}

func preStop(h corev1.LifecycleHandler) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &h} }
}

// ask makes a request about the container app of a pod, as the webhook would let it pass.
func (b bench) ask(name string, pod *corev1.Pod) *request {
	b.Helper()
	r, faults := pure.Admit(&request{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: name},
		Spec: v1beta1.ContainerRecreateRequestSpec{
			PodName: pod.Name, Containers: []v1beta1.ContainerRecreateRequestContainer{{Name: "app"}},
		},
	}, pod, &corev1.Node{})
	if len(faults) > 0 {
		b.Fatal(faults.ToAggregate())
	}
	if err := b.Client.Create(b.Context(), r); err != nil {
		b.Fatal(err)
	}
	return r
}

// restarts waits until a request is over, after which app was stopped and has restarted so often.
func (b bench) restarts(r *request, times int) {
	b.Helper()
	b.Until(func() error {
		fresh := &request{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Name}}
		if err := b.Look(b.Context(), fresh); err != nil {
			return err
		}
		*r = *fresh
		if r.Status.CompletionTime == nil || r.Labels[v1beta1.ContainerRecreateRequestActiveKey] != "" {
			return fmt.Errorf("%s: %+v", r.Name, r.Status)
		}
		return nil
	})
	want := []state{{Name: "app", Phase: v1beta1.ContainerRecreateRequestSucceeded, IsKilled: true}}
	if r.Status.Message != "" || !slices.Equal(r.Status.ContainerRecreateStates, want) {
		b.Errorf("%s ends with %q %+v", r.Name, r.Status.Message, r.Status.ContainerRecreateStates)
	}
	var stopped []string
	for _, s := range b.Stops() {
		stopped = append(stopped, s.Name)
	}
	if !slices.Equal(stopped, slices.Repeat([]string{"app"}, times)) {
		b.Errorf("stopped %v, want app %d times", stopped, times)
	}
}

// TestOneContainer restarts one, whose hook fails. It costs three writes and two events, and nothing afterwards.
func TestOneContainer(t *testing.T) {
	b := start(t, nil, containerrestart.Options{}, false)
	pod := b.pod("web", preStop(corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"drain"}}}))
	if n := b.Calls(); n > 0 {
		t.Errorf("the runtime was asked %d times before there was a request", n)
	}
	b.Requests.Take()
	b.restarts(b.ask("again", pod), 1)
	// The manager may have written in the same moment, which costs one more each time.
	if writes := b.Requests.Take(); len(requests.Without(writes, " 409")) != 3 {
		t.Errorf("it costs\n%s", strings.Join(writes, "\n"))
	}
	event := func(kind, reason, message string) corev1.Event {
		return corev1.Event{
			Type: kind, Reason: reason, Message: message,
			InvolvedObject: corev1.ObjectReference{
				Kind: "Pod", APIVersion: "v1", Namespace: b.Namespace, Name: "web", UID: pod.UID, FieldPath: "spec.containers{app}",
			},
			Source: corev1.EventSource{Component: "kruise-daemon-crr", Host: b.NodeName},
		}
	}
	want := []corev1.Event{
		event("Normal", "Killing", "Stopping container app by ContainerRecreateRequest again"),
		event("Warning", "FailedPreStopHook", "PreStopHook failed: the command ended with exit code 127"),
	}
	var got corev1.EventList
	b.Until(func() error {
		if err := b.Client.List(t.Context(), &got, client.InNamespace(b.Namespace)); err != nil {
			return err
		}
		if len(got.Items) < len(want) {
			return nodetest.ErrNotYet
		}
		return nil
	})
	slices.SortFunc(got.Items, func(a, b corev1.Event) int { return strings.Compare(a.Type, b.Type) })
	only := cmpopts.IgnoreFields(corev1.Event{}, "TypeMeta", "ObjectMeta", "FirstTimestamp", "LastTimestamp", "Count",
		"EventTime", "ReportingController", "ReportingInstance")
	if diff := cmp.Diff(want, got.Items, only); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	for i := range 5 {
		if err := b.Look(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		before := pod.DeepCopy()
		pod.Labels = map[string]string{"n": strconv.Itoa(i)}
		if err := b.Client.Patch(t.Context(), pod, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
	}
	// What the daemon does about another pod comes after all that it might do about this one.
	b.restarts(b.ask("marker", b.pod("marker")), 2)
	if asked := requests.Without(b.Requests.Take(), "marker"); len(asked) > 0 {
		t.Errorf("the API server was asked\n%s", strings.Join(asked, "\n"))
	}
}

// TestGivenUp deletes the request, or its pod, while a hook runs.
func TestGivenUp(t *testing.T) {
	for name, which := range map[string]func(*corev1.Pod, *request) client.Object{
		"the request": func(_ *corev1.Pod, r *request) client.Object { return r },
		"the pod":     func(pod *corev1.Pod, _ *request) client.Object { return pod },
	} {
		t.Run(name, func(t *testing.T) {
			running, given := make(chan struct{}), make(chan struct{})
			b := start(t, ways{"app": {Exec: func(ctx context.Context, _ []string) (cri.Output, error) {
				close(running)
				<-ctx.Done()
				close(given)
				return cri.Output{}, ctx.Err()
			}}}, containerrestart.Options{}, false)
			pod := b.pod("web", preStop(corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"drain"}}}),
				func(pod *corev1.Pod) { pod.Finalizers = []string{nodetest.Stay} })
			r := b.ask("again", pod)
			<-running
			if err := b.Client.Delete(t.Context(), which(pod, r)); err != nil {
				t.Fatal(err)
			}
			<-given
			if n := len(b.Stops()); n != 0 {
				t.Errorf("%d containers were stopped", n)
			}
			before := pod.DeepCopy()
			pod.Finalizers = nil
			if err := b.Client.Patch(t.Context(), pod, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestWithoutPods has a hook that asks the pod, at a port by its name, from a daemon that watches no pods.
func TestWithoutPods(t *testing.T) {
	asked := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.URL.Path }))
	t.Cleanup(server.Close)
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.ParseInt(at.Port(), 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	b := start(t, nil, containerrestart.Options{NoPods: true}, false)
	pod := b.pod("web", preStop(corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{
		Path: "/drain", Port: intstr.FromString("admin"),
	}}), func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "admin", ContainerPort: int32(port)}}
	})
	b.restarts(b.ask("again", pod), 1)
	select {
	case path := <-asked:
		if path != "/drain" {
			t.Errorf("asked for %s", path)
		}
	default:
		t.Error("the hook was not run")
	}
}

// TestWholeCache has a daemon see the requests of other nodes, ended requests, and one that no daemon can carry out.
func TestWholeCache(t *testing.T) {
	b := start(t, nil, containerrestart.Options{}, true)
	pod := b.pod("web")
	b.restarts(b.ask("over", pod), 1)
	if err := b.Look(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	odd := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps.kruise.io/v1beta1", "kind": "ContainerRecreateRequest",
		"metadata": map[string]any{"namespace": b.Namespace, "name": "a-odd", "labels": map[string]any{
			v1beta1.ContainerRecreateRequestActiveKey: "true", v1beta1.ContainerRecreateRequestNodeNameKey: b.NodeName,
			v1beta1.ContainerRecreateRequestPodUIDKey: string(pod.UID),
		}},
		"spec": map[string]any{"podName": "web", "containers": []any{map[string]any{
			"name": "app", "preStop": map[string]any{"httpGet": map[string]any{"port": int64(99999999999)}},
		}}},
	}}
	if err := b.Client.Create(t.Context(), odd); err != nil {
		t.Fatal(err)
	}
	elsewhere := pod.DeepCopy()
	elsewhere.Spec.NodeName, elsewhere.UID = "elsewhere", "another"
	other := b.ask("other", elsewhere)
	b.restarts(b.ask("own", pod), 2)
	if err := b.Look(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	if other.Status.Message != "pod has gone" || len(other.Status.ContainerRecreateStates) > 0 {
		t.Errorf("the request of another node is %+v", other.Status)
	}
}
