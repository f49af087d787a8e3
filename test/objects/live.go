package objects

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Live is a reader past the cache that counts what is read.
type Live struct {
	client.Reader

	scheme *runtime.Scheme

	mu    sync.Mutex
	reads []string
}

// Reads returns what was read since the last call: "get CloneSet metadata", "list PodList".
func (l *Live) Reads() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	reads := l.reads
	l.reads = nil
	return reads
}

func (l *Live) count(verb string, into any, kind string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, is := into.(*metav1.PartialObjectMetadata); is {
		kind += " metadata"
	}
	l.reads = append(l.reads, verb+" "+kind)
}

// Get implements client.Reader.
func (l *Live) Get(ctx context.Context, key client.ObjectKey, into client.Object, o ...client.GetOption) error {
	kind, err := apiutil.GVKForObject(into, l.scheme)
	if err != nil {
		return err
	}
	l.count("get", into, kind.Kind)
	return l.Reader.Get(ctx, key, into, o...)
}

// List implements client.Reader.
func (l *Live) List(ctx context.Context, into client.ObjectList, o ...client.ListOption) error {
	kind, err := apiutil.GVKForObject(into, l.scheme)
	if err != nil {
		return err
	}
	l.count("list", into, kind.Kind)
	return l.Reader.List(ctx, into, o...)
}
