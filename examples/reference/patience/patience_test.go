package patience_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/kruisekit/kruisekit/examples/reference/patience"
)

// empty is a cache that is never filled: there is no API server.
func empty(t *testing.T, end <-chan struct{}) cache.Cache {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	c, err := patience.Until(end, nil)(&rest.Config{Host: "http://127.0.0.1:1"}, cache.Options{
		Scheme: scheme, Mapper: mapper,
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.GetInformer(t.Context(), &corev1.Pod{}, cache.BlockUntilSynced(false)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the cache ended with %v", err)
		}
	})
	return c
}

func TestTheEndIsNotWaitedFor(t *testing.T) {
	end := make(chan struct{})
	c := empty(t, end)
	waited := make(chan bool, 1)
	go func() { waited <- c.WaitForCacheSync(t.Context()) }()
	close(end)
	if !<-waited {
		t.Error("the manager does not go on, and so does not see that it is to end")
	}
}

func TestOthersCanGiveUp(t *testing.T) {
	c := empty(t, make(chan struct{}))
	ctx, cancel := context.WithCancel(t.Context())
	waited := make(chan bool, 1)
	go func() { waited <- c.WaitForCacheSync(ctx) }()
	cancel()
	if <-waited {
		t.Error("a cache that is empty counts as filled")
	}
}
