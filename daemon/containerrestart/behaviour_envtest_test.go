//go:build envtest

package containerrestart_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/daemon/containerrestart"
	"github.com/kruisekit/kruisekit/daemon/cri"
	"github.com/kruisekit/kruisekit/test/requests"
)

// TestHTTPHook asks the pod, at a port by its name, with and without sight of pods.
func TestHTTPHook(t *testing.T) {
	for name, o := range map[string]containerrestart.Options{"pods are watched": {}, "pods are not": {NoPods: true}} {
		t.Run(name, func(t *testing.T) {
			asked := make(chan string, 1)
			server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.URL.Path }))
			defer server.Close()
			at, err := url.Parse(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			port, err := strconv.ParseInt(at.Port(), 10, 32)
			if err != nil {
				t.Fatal(err)
			}
			b := start(t, nil, o)
			pod := b.pod("web", func(pod *corev1.Pod) {
				c := &pod.Spec.Containers[0]
				c.Ports = []corev1.ContainerPort{{Name: "admin", ContainerPort: int32(port)}}
				c.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{
					Path: "/drain", Port: intstr.FromString("admin"),
				}}}
			})
			b.ends(b.ask("again", pod, onlyApp), "", up("app"))
			select {
			case path := <-asked:
				if path != "/drain" {
					t.Errorf("asked for %s", path)
				}
			default:
				t.Error("the hook was not run")
			}
		})
	}
}

// TestWholeCache has a daemon see the requests of other nodes, and those that are over.
func TestWholeCache(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.daemon(containerrestart.Options{}, cache.Options{DefaultNamespaces: map[string]cache.Config{b.namespace: {}}})
	pod := b.pod("web", nil)
	b.ends(b.ask("over", pod, nil), "", up("app"), up("log"))
	if err := b.look(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	elsewhere := pod.DeepCopy()
	elsewhere.Spec.NodeName, elsewhere.UID = "elsewhere", "another"
	other := b.ask("other", elsewhere, nil)
	b.ends(b.ask("own", pod, nil), "", up("app"), up("log"))
	if err := b.look(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	if other.Status.Message != "pod has gone" || len(other.Status.ContainerRecreateStates) > 0 {
		t.Errorf("the request of another node is %+v", other.Status)
	}
}

// TestMalformed has a request before it that none can be.
func TestMalformed(t *testing.T) {
	b := start(t, nil, containerrestart.Options{})
	pod := b.pod("web", nil)
	odd := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps.kruise.io/v1beta1", "kind": "ContainerRecreateRequest",
		"metadata": map[string]any{"namespace": b.namespace, "name": "a-odd", "labels": map[string]any{
			v1beta1.ContainerRecreateRequestActiveKey: "true", v1beta1.ContainerRecreateRequestNodeNameKey: b.nodeName,
			v1beta1.ContainerRecreateRequestPodUIDKey: string(pod.UID),
		}},
		"spec": map[string]any{"podName": "web", "containers": []any{map[string]any{
			"name": "app", "preStop": map[string]any{"httpGet": map[string]any{"port": int64(99999999999)}},
		}}},
	}}
	if err := b.client.Create(t.Context(), odd); err != nil {
		t.Fatal(err)
	}
	b.ends(b.ask("good", pod, onlyApp), "", up("app"))
	if n := len(b.stopsOf("app")); n != 1 {
		t.Errorf("stopped %d times", n)
	}
}

// TestRuntimeAway begins while the runtime is down, and goes on as soon as it is back.
func TestRuntimeAway(t *testing.T) {
	b := start(t, nil, containerrestart.Options{})
	pod := b.pod("web", nil)
	b.node.Down(true)
	r := b.ask("again", pod, nil)
	b.until(func() error {
		if b.node.CallsOf("Containers") < 3 {
			return errNotYet
		}
		return nil
	})
	b.node.Down(false)
	b.ends(r, "", up("app"), up("log"))
}

// TestQuiet makes no request where nothing is under way.
func TestQuiet(t *testing.T) {
	registry := prometheus.NewRegistry()
	b := start(t, ways{"log": {Stop: func(context.Context) error { return errors.New("no such signal") }}},
		containerrestart.Options{Registerer: registry})
	pod := b.pod("web", nil)
	if n := b.node.Calls(); n > 0 {
		t.Errorf("the runtime was asked %d times before there was a request", n)
	}
	r := b.ask("again", pod, func(r *request) {
		r.Spec.Strategy.FailurePolicy = v1beta1.ContainerRecreateRequestFailurePolicyIgnore
	})
	b.ends(r, "", up("app"), state{Name: "log", Phase: failed, Message: "kill container error: no such signal"})
	b.until(func() error {
		if events := b.events(pod); len(events) < 2 {
			return errNotYet
		}
		return nil
	})
	b.requests.Take()
	calls := b.node.Calls()
	for i := range 5 {
		before := pod.DeepCopy()
		pod.Labels = map[string]string{"n": strconv.Itoa(i)}
		if err := b.client.Patch(t.Context(), pod, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
	}
	// What the daemon does about another pod comes after all that it might do about this one.
	b.ends(b.ask("marker", b.pod("marker", nil), onlyApp), "", up("app"))
	asked := requests.Without(b.requests.Take(), "marker")
	if len(asked) > 0 {
		t.Errorf("the API server was asked\n%s", strings.Join(asked, "\n"))
	}
	t.Logf("%d calls of the runtime for one request of two containers, %d for one of one", calls, b.node.Calls()-calls)
	counted(t, registry, map[string]float64{"stopped": 2, "failed": 1})
}

// counted compares the metric of stops, by outcome.
func counted(t *testing.T, from prometheus.Gatherer, want map[string]float64) {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != "kruise_daemon_container_stops_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			outcome := m.GetLabel()[1].GetValue()
			if got := m.GetCounter().GetValue(); got != want[outcome] {
				t.Errorf("%v are %s, want %v", got, outcome, want[outcome])
			}
			delete(want, outcome)
		}
	}
	if len(want) > 0 {
		t.Errorf("not counted: %v", want)
	}
}

// TestDaemonEnds has a daemon end while a hook runs. The next one begins with that container again, and stops it once.
func TestDaemonEnds(t *testing.T) {
	t.Parallel()
	running := make(chan struct{}, 10)
	b := newBench(t, ways{"app": {Exec: func(ctx context.Context, _ []string) (cri.Output, error) {
		running <- struct{}{}
		return cri.Output{}, takes(2 * time.Second)(ctx)
	}}})
	end := b.daemon(containerrestart.Options{}, b.restricted())
	pod := b.pod("web", func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{
			PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"drain"}}},
		}
	})
	r := b.ask("again", pod, onlyApp)
	await(t, running)
	end()
	if n := len(b.node.Stops()); n > 0 {
		t.Errorf("%d containers were stopped by a daemon that has ended", n)
	}
	b.daemon(containerrestart.Options{}, b.restricted())
	b.ends(r, "", up("app"))
	if n := len(b.stopsOf("app")); n != 1 {
		t.Errorf("stopped %d times", n)
	}
	if n := len(running); n != 1 {
		t.Errorf("the hook ran %d times more", n)
	}
}
