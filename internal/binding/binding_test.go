package binding_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/internal/binding"
)

var (
	errClient = errors.New("read by the client")
	errLive   = errors.New("read live")
)

// reader answers each read with an error that names the reader.
type reader struct {
	client.Client

	err error
}

func (r reader) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return r.err
}

func (r reader) List(context.Context, client.ObjectList, ...client.ListOption) error { return r.err }

func mapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion})
	m.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	return m
}

func TestWithoutManager(t *testing.T) {
	if _, err := binding.New("web", nil, binding.Options{}); err == nil {
		t.Error("a reconciler without a client was made")
	}
	b, err := binding.New("web", reader{err: errClient}, binding.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, from := range []client.Reader{b.Live, b.Cached} {
		if err := from.Get(t.Context(), client.ObjectKey{}, &corev1.Pod{}); !errors.Is(err, errClient) {
			t.Errorf("got %v", err)
		}
	}
	if age := time.Since(b.Now()); age < 0 || age > time.Minute {
		t.Errorf("the clock is off by %s", age)
	}
	b.Event(&corev1.Pod{}, "Normal", "Reason", "without a recorder, no event") // and no panic
}

// What the options leave open comes from the manager; what they give stays.
func TestBind(t *testing.T) {
	mgr, err := ctrl.NewManager(&rest.Config{Host: "http://127.0.0.1:1"}, ctrl.Options{
		Scheme: scheme.Scheme, Metrics: server.Options{BindAddress: "0"},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return mapper(), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	events := record.NewFakeRecorder(1)
	given, err := binding.New("web", reader{err: errClient}, binding.Options{Live: reader{err: errLive}, Recorder: events})
	if err != nil {
		t.Fatal(err)
	}
	open, err := binding.New("web", reader{err: errClient}, binding.Options{})
	if err != nil {
		t.Fatal(err)
	}
	before := open.Live
	for _, b := range []*binding.Binding{given, open} {
		c, err := b.Bind(mgr, "web-controller", controller.Options{}).For(&corev1.Pod{}).Build(reconcile.Func(nil))
		if err != nil || c == nil {
			t.Fatalf("got %v, %v", c, err)
		}
		if b.Cached != client.Reader(mgr.GetCache()) {
			t.Error("the cache is not that of the manager")
		}
	}
	if err := given.Live.Get(t.Context(), client.ObjectKey{}, &corev1.Pod{}); !errors.Is(err, errLive) {
		t.Errorf("the given reader was replaced: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := before.List(ctx, &corev1.PodList{}); err == nil || errors.Is(err, errClient) {
		t.Errorf("a reader taken before does not follow: %v", err)
	}
	given.Warningf(&corev1.Pod{}, "Refused", "%d pods", 1)
	if got := <-events.Events; got != "Warning Refused 1 pods" {
		t.Errorf("event %q", got)
	}
	given.Normalf(&corev1.Pod{}, "Reason", "%d pods", 2)
	if got := <-events.Events; got != "Normal Reason 2 pods" {
		t.Errorf("got %q", got)
	}
}

func TestInstalled(t *testing.T) {
	for kind, want := range map[string]bool{"Pod": true, "Vessel": false} {
		if got, err := binding.Installed(mapper(), corev1.SchemeGroupVersion.WithKind(kind)); got != want || err != nil {
			t.Errorf("%s: got %t, %v", kind, got, err)
		}
	}
}

func TestSharedIndex(t *testing.T) {
	broken := errors.New("broken")
	if binding.SharedIndex(nil) != nil || binding.SharedIndex(errors.New("indexer conflict: x")) != nil ||
		!errors.Is(binding.SharedIndex(broken), broken) {
		t.Error("only the error of an index that is there is ignored")
	}
}
