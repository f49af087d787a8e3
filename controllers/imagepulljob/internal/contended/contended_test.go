package contended_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/controllers/imagepulljob/internal/contended"
	"github.com/kruisekit/kruisekit/ledger"
)

// server has one ConfigMap, and refuses writes of other versions.
type server struct {
	client.Client

	mu      sync.Mutex
	object  *corev1.ConfigMap // nil for none
	version int
	// foreign is called before each write, as another writer would be.
	foreign func(*corev1.ConfigMap) bool
	refusal error
	writes  int
	reads   int
}

func missing() error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, "shared")
}

func (s *server) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	if s.object == nil {
		return missing()
	}
	s.object.DeepCopyInto(into.(*corev1.ConfigMap))
	return nil
}

func (s *server) Patch(_ context.Context, o client.Object, _ client.Patch, _ ...client.PatchOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes++
	if s.refusal != nil {
		return s.refusal
	}
	if s.object != nil && s.foreign != nil && s.foreign(s.object) {
		s.put(s.object)
	}
	sent := o.(*corev1.ConfigMap)
	switch {
	case s.object == nil:
		return missing()
	case sent.ResourceVersion != s.object.ResourceVersion:
		return apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, "shared", errors.New("changed"))
	}
	s.put(sent)
	return nil
}

func (s *server) put(object *corev1.ConfigMap) {
	s.version++
	object.ResourceVersion = strconv.Itoa(s.version)
	s.object = object.DeepCopy()
}

func writer(s *server) *contended.Writer[corev1.ConfigMap, *corev1.ConfigMap] {
	now := func() time.Time { return time.Unix(0, 0) }
	cached := s.object.DeepCopy() // it never catches up
	return &contended.Writer[corev1.ConfigMap, *corev1.ConfigMap]{
		Client: s, Live: s, Writes: ledger.New[*corev1.ConfigMap](s, now),
		Cached: func(context.Context, client.ObjectKey) (*corev1.ConfigMap, error) { return cached, nil },
	}
}

func shared() *server {
	return &server{version: 1, object: &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "shared", UID: "u", ResourceVersion: "1"}, Data: map[string]string{},
	}}
}

func set(key string) func(*corev1.ConfigMap) (*corev1.ConfigMap, error) {
	return func(is *corev1.ConfigMap) (*corev1.ConfigMap, error) {
		if is.Data[key] != "" {
			return nil, nil
		}
		is = is.DeepCopy()
		if is.Data == nil {
			is.Data = map[string]string{}
		}
		is.Data[key] = "set"
		return is, nil
	}
}

var key = client.ObjectKey{Namespace: "n", Name: "shared"}

// Writers of one process cause no conflicts, though the cache never shows their writes.
func TestWritersTakeTurns(t *testing.T) {
	s := shared()
	w := writer(s)
	var group sync.WaitGroup
	for i := range 50 {
		group.Go(func() {
			if is, err := w.Write(t.Context(), key, set(fmt.Sprint(i))); err != nil || is.Data[fmt.Sprint(i)] != "set" {
				t.Errorf("got %v, %v", is, err)
			}
		})
	}
	group.Wait()
	if len(s.object.Data) != 50 || s.writes != 50 || s.reads != 0 {
		t.Errorf("%d keys after %d writes and %d live reads", len(s.object.Data), s.writes, s.reads)
	}
	if is, err := w.Write(t.Context(), key, set("1")); err != nil || len(is.Data) != 50 || s.writes != 50 {
		t.Errorf("what is set was written again: %v, %v", is, err)
	}
}

func TestWrite(t *testing.T) {
	broken := errors.New("broken")
	times := func(n int) func(*corev1.ConfigMap) bool {
		return func(is *corev1.ConfigMap) bool {
			n--
			if n >= 0 {
				is.Data[fmt.Sprint("foreign", n)] = "kept"
			}
			return n >= 0
		}
	}
	cases := map[string]struct {
		prepare func(*server)
		change  func(*corev1.ConfigMap) (*corev1.ConfigMap, error)
		err     func(error) bool
		exists  bool
		keys    int
		writes  int
	}{
		"a foreign writer in between":      {func(s *server) { s.foreign = times(1) }, set("own"), nil, true, 2, 2},
		"foreign writers all the time":     {func(s *server) { s.foreign = times(100) }, set("own"), apierrors.IsConflict, true, 0, 6},
		"the object is gone":               {func(s *server) { s.object = nil }, set("own"), nil, false, 0, 1},
		"the write is refused":             {func(s *server) { s.refusal = apierrors.NewBadRequest("no") }, set("own"), apierrors.IsBadRequest, true, 0, 1},
		"the change cannot be made":        {func(*server) {}, func(is *corev1.ConfigMap) (*corev1.ConfigMap, error) { return nil, broken }, func(err error) bool { return errors.Is(err, broken) }, true, 0, 0},
		"it is in the right state already": {func(*server) {}, func(*corev1.ConfigMap) (*corev1.ConfigMap, error) { return nil, nil }, nil, true, 0, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := shared()
			w := writer(s)
			c.prepare(s)
			is, err := w.Write(t.Context(), key, c.change)
			if (err != nil) != (c.err != nil) || err != nil && !c.err(err) {
				t.Errorf("got %v", err)
			}
			if (is != nil) != c.exists || s.writes != c.writes || err == nil && is != nil && len(is.Data) != c.keys {
				t.Errorf("got %v after %d writes", is, s.writes)
			}
		})
	}
}
