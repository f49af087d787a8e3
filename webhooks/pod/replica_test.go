package pod_test

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/kruisekit/kruisekit/internal/scope"
	"github.com/kruisekit/kruisekit/webhooks/pod"
)

// wantSteps compares the steps with their order, and with the sources from which controllers/podscope computes which
// pods are sent.
func wantSteps(t *testing.T, steps []pod.Step, want ...string) {
	t.Helper()
	var names, sources []string
	for _, s := range steps {
		names = append(names, s.Name)
	}
	for _, s := range scope.Sources(scope.SourceOptions{EnhancedLiveness: true, Serverless: true}) {
		sources = append(sources, s.Step)
	}
	same(t, "the order of the steps", want, names)
	slices.Sort(names)
	slices.Sort(sources)
	same(t, "each step has a source, and each source a step", sources, names)
}

// Everything that the lookups need starts on a replica that is not elected. This one cannot be: there is no API server.
func TestFollowerIsReady(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(appsv1.SchemeGroupVersion.WithKind("ControllerRevision"), meta.RESTScopeNamespace)
	mgr, err := ctrl.NewManager(&rest.Config{Host: "http://127.0.0.1:1"}, ctrl.Options{
		Scheme: clientgoscheme.Scheme, Metrics: server.Options{BindAddress: "0"},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return mapper, nil },
		LeaderElection: true, LeaderElectionID: "replicas", LeaderElectionNamespace: pod.DefaultNamespace,
	})
	if err != nil {
		t.Fatal(err)
	}
	steps, err := pod.FromManager(mgr, pod.Options{Probes: pod.ProbeOptions{Serverless: true}})
	if err != nil {
		t.Fatal(err)
	}
	wantSteps(t, steps, "readiness", "spread", "sidecars", "launch", "budget", "place", "liveness", "probes")
	w, err := pod.New(steps, pod.Options{})
	if err != nil {
		t.Fatal(err)
	}
	check := (&http.Request{}).WithContext(t.Context())
	if w.Ready(check) == nil {
		t.Error("the replica is ready before the manager starts")
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("manager: %v", err)
		}
	}()
	if wait.PollUntilContextTimeout(ctx, time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
		return w.Ready(check) == nil, nil
	}) != nil {
		t.Error("the follower does not become ready: something that the lookups need starts on the leader only")
	}
}
