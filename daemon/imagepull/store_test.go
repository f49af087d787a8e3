package imagepull

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// store is an API server with one NodeImage, and secrets.
type store struct {
	mu      sync.Mutex
	object  *v1beta1.NodeImage
	version int
	notify  func()
	// cached is what readers see instead, if it is set.
	cached *v1beta1.NodeImage
	// writes are when the status was written.
	writes []time.Time
	// history are the statuses that were written.
	history []v1beta1.NodeImageStatus
	// refuse is what a write is answered with.
	refuse error
	// lose has writes done, and answered with an error.
	lose    bool
	secrets map[string]*corev1.Secret
	reads   []string
	// behind are secrets that a read from the memory of an API server does not find yet.
	behind map[string]bool
}

func newStore() *store {
	return &store{
		object:  &v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "u1", ResourceVersion: "1"}},
		version: 1,
		secrets: map[string]*corev1.Secret{},
	}
}

func (s *store) watch(notify func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notify = notify
}

func (s *store) stored() *v1beta1.NodeImage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.object.DeepCopy()
}

func (s *store) written() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.writes)
}

// change writes as another client.
func (s *store) change(how func(*v1beta1.NodeImage)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.object.DeepCopy()
	how(n)
	s.put(n)
}

func (s *store) put(n *v1beta1.NodeImage) {
	s.version++
	n.ResourceVersion = strconv.Itoa(s.version)
	s.object = n
	if s.notify != nil {
		s.notify()
	}
}

// set changes how the store behaves.
func (s *store) set(how func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	how()
}

func (s *store) client() client.Client {
	return interceptor.NewClient(nil, interceptor.Funcs{
		Get: func(
			_ context.Context, _ client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption,
		) error {
			var get client.GetOptions
			get.ApplyOptions(options)
			if get.Raw != nil && get.Raw.ResourceVersion == "0" && s.lags(key) {
				return apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, key.Name)
			}
			return s.get(key, o)
		},
		SubResourcePatch: func(
			_ context.Context, _ client.Client, resource string, o client.Object, p client.Patch,
			_ ...client.SubResourcePatchOption,
		) error {
			if resource != "status" {
				return fmt.Errorf("a patch of %q", resource)
			}
			return s.patch(o.(*v1beta1.NodeImage), p)
		},
	})
}

// lags reports whether a read from memory misses a secret, and counts that read.
func (s *store) lags(key client.ObjectKey) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.behind[key.String()] {
		s.reads = append(s.reads, key.String())
	}
	return s.behind[key.String()]
}

func (s *store) get(key client.ObjectKey, o client.Object) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch into := o.(type) {
	case *v1beta1.NodeImage:
		from := s.object
		if s.cached != nil {
			from = s.cached
		}
		if key.Name != from.Name {
			return apierrors.NewNotFound(schema.GroupResource{Resource: "nodeimages"}, key.Name)
		}
		from.DeepCopyInto(into)
	case *corev1.Secret:
		s.reads = append(s.reads, key.String())
		secret := s.secrets[key.String()]
		if secret == nil {
			return apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, key.Name)
		}
		secret.DeepCopyInto(into)
	default:
		return fmt.Errorf("a read of %T", o)
	}
	return nil
}

func (s *store) patch(o *v1beta1.NodeImage, p client.Patch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes = append(s.writes, time.Now())
	if s.refuse != nil {
		return s.refuse
	}
	data, err := p.Data(o)
	if err != nil {
		return err
	}
	var asked struct {
		Metadata metav1.ObjectMeta
		Spec     json.RawMessage
	}
	if err := json.Unmarshal(data, &asked); err != nil {
		return err
	}
	if asked.Spec != nil {
		return fmt.Errorf("a patch of the spec: %s", data)
	}
	if v := asked.Metadata.ResourceVersion; v != "" && v != s.object.ResourceVersion {
		return apierrors.NewConflict(schema.GroupResource{Resource: "nodeimages"}, o.Name,
			fmt.Errorf("it is at %s, not at %s", s.object.ResourceVersion, v))
	}
	document, err := json.Marshal(s.object)
	if err != nil {
		return err
	}
	if document, err = jsonpatch.MergePatch(document, data); err != nil {
		return err
	}
	n := &v1beta1.NodeImage{}
	if err := json.Unmarshal(document, n); err != nil {
		return err
	}
	s.put(n)
	s.history = append(s.history, *n.Status.DeepCopy())
	n.DeepCopyInto(o)
	if s.lose {
		return fmt.Errorf("the answer is lost")
	}
	return nil
}
