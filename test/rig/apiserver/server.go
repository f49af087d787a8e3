package apiserver

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Server holds objects. The zero value is not usable: see New.
type Server struct {
	// Client panics for what this package does not implement.
	client.Client

	scheme *runtime.Scheme
	now    func() time.Time

	mu      sync.Mutex
	version int64
	stored  map[key]client.Object
	// applied are the fields that managers have applied.
	applied  map[applier][]byte
	indexes  map[indexed]index
	requests []string
	events   []Event
	onChange func(before, after client.Object)
}

// key of an object: its kind with the group, and its own name.
type key struct {
	kind string
	name types.NamespacedName
}

// Event is an event that was emitted.
type Event struct {
	// About is the UID of the object.
	About                 types.UID
	Type, Reason, Message string
}

// New returns a server without objects. The scheme has their kinds.
func New(scheme *runtime.Scheme, now func() time.Time) *Server {
	return &Server{
		scheme: scheme, now: now, stored: map[key]client.Object{}, applied: map[applier][]byte{},
		indexes: map[indexed]index{}, onChange: func(client.Object, client.Object) {},
	}
}

// OnChange has a function called after each change of an object: before is nil for a new object, and after for one that
// is gone. The function neither calls the server nor changes the objects.
func (s *Server) OnChange(changed func(before, after client.Object)) { s.onChange = changed }

// Version changes with each change of an object.
func (s *Server) Version() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// Snapshot returns a server with the same objects, at the same versions, as a cache that lags behind from now on.
func (s *Server) Snapshot() *Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := New(s.scheme, s.now)
	held.version, held.stored, held.indexes = s.version, maps.Clone(s.stored), s.indexes
	return held
}

// Requests are the writes and reads of single objects since it was last called: verb, resource and name, and code of
// the answer.
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.requests
	s.requests = nil
	return all
}

// Event records an event.
func (s *Server) Event(about runtime.Object, eventType, reason, message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	uid := types.UID("")
	if object, is := about.(metav1.Object); is {
		uid = object.GetUID()
	}
	s.events = append(s.events, Event{About: uid, Type: eventType, Reason: reason, Message: message})
}

// Events of a reason about an object, oldest first.
func (s *Server) Events(about metav1.Object, reason string) []Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.events), func(e Event) bool {
		return e.About != about.GetUID() || e.Reason != reason
	})
}

// next returns the version of the next change.
func (s *Server) next() string {
	s.version++
	return strconv.FormatInt(s.version, 10)
}

// keyOf returns the key of an object, and what errors call its kind.
func (s *Server) keyOf(o runtime.Object, name types.NamespacedName) (key, schema.GroupResource, error) {
	kind, err := s.GroupVersionKindFor(o)
	if err != nil {
		return key{}, schema.GroupResource{}, err
	}
	kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	return key{kind.GroupKind().String(), name}, schema.GroupResource{
		Group: kind.Group, Resource: strings.ToLower(kind.Kind) + "s",
	}, nil
}

// Put stores an object as it is, at a new version, which comes after that of the object. An object without a UID gets
// one.
func (s *Server) Put(o client.Object) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, _, err := s.keyOf(o, client.ObjectKeyFromObject(o))
	if err != nil {
		return err
	}
	stored, err := s.copyOf(o)
	if err != nil {
		return err
	}
	if version, err := strconv.ParseInt(o.GetResourceVersion(), 10, 64); err == nil {
		s.version = max(s.version, version)
	}
	stored.SetResourceVersion(s.next())
	if stored.GetUID() == "" {
		stored.SetUID(types.UID("uid-" + stored.GetResourceVersion()))
	}
	before := s.stored[k]
	s.stored[k] = stored
	s.onChange(before, stored)
	return nil
}

// create stores a new object.
func (s *Server) create(o client.Object) (client.Object, error) {
	name := client.ObjectKeyFromObject(o)
	if name.Name == "" {
		name.Name = o.GetGenerateName() + strconv.FormatInt(s.version, 36)
	}
	k, resource, err := s.keyOf(o, name)
	if err != nil {
		return nil, err
	}
	if s.stored[k] != nil {
		return nil, apierrors.NewAlreadyExists(resource, name.Name)
	}
	made, err := s.copyOf(o)
	if err != nil {
		return nil, err
	}
	made.SetName(name.Name)
	made.SetCreationTimestamp(metav1.NewTime(s.now().Truncate(time.Second)))
	made.SetResourceVersion(s.next())
	made.SetUID(types.UID("uid-" + made.GetResourceVersion()))
	made.SetGeneration(1)
	if pod, is := made.(*corev1.Pod); is {
		pod.Status = corev1.PodStatus{Phase: corev1.PodPending}
		if pod.Spec.SchedulerName == "" {
			pod.Spec.SchedulerName = corev1.DefaultSchedulerName
		}
	}
	s.stored[k] = made
	s.onChange(nil, made)
	return made, nil
}

// replace stores a changed object, unless nothing has changed. An object that is deleted goes with its last finalizer;
// a pod that is bound to a node goes when the node ends it.
func (s *Server) replace(k key, before, after client.Object) client.Object {
	if apiequality.Semantic.DeepEqual(before, after) {
		return before
	}
	if !apiequality.Semantic.DeepEqual(fieldOf(before, "Spec"), fieldOf(after, "Spec")) {
		after.SetGeneration(before.GetGeneration() + 1)
	}
	after.SetResourceVersion(s.next())
	s.stored[k] = after
	s.onChange(before, after)
	pod, isPod := after.(*corev1.Pod)
	if after.GetDeletionTimestamp() != nil && len(after.GetFinalizers()) == 0 && (!isPod || pod.Spec.NodeName == "") {
		s.remove(k)
	}
	return after
}

// remove ends an object.
func (s *Server) remove(k key) {
	before := s.stored[k]
	delete(s.stored, k)
	s.onChange(before, nil)
}

// fieldOf returns the spec or the status of an object; nil where it has none.
func fieldOf(o client.Object, name string) any {
	if raw, is := o.(*unstructured.Unstructured); is {
		return raw.Object[strings.ToLower(name)]
	}
	if field := reflect.ValueOf(o).Elem().FieldByName(name); field.IsValid() {
		return field.Interface()
	}
	return nil
}

// delete begins the deletion of an object; now ends it.
func (s *Server) delete(o client.Object, options *client.DeleteOptions) error {
	k, resource, err := s.keyOf(o, client.ObjectKeyFromObject(o))
	if err != nil {
		return err
	}
	have := s.stored[k]
	if have == nil {
		return apierrors.NewNotFound(resource, o.GetName())
	}
	if p := options.Preconditions; p != nil && p.UID != nil && *p.UID != have.GetUID() {
		return apierrors.NewConflict(resource, o.GetName(), fmt.Errorf("it has UID %s", have.GetUID()))
	}
	if p := options.Preconditions; p != nil && p.ResourceVersion != nil &&
		*p.ResourceVersion != have.GetResourceVersion() {
		return apierrors.NewConflict(resource, o.GetName(), fmt.Errorf("it has version %s", have.GetResourceVersion()))
	}
	at := metav1.NewTime(s.now())
	if g := options.GracePeriodSeconds; g != nil && *g == 0 && len(have.GetFinalizers()) == 0 {
		s.next()
		s.remove(k)
		return nil
	}
	if have.GetDeletionTimestamp() != nil {
		return nil
	}
	after, err := s.copyOf(have)
	if err != nil {
		return err
	}
	after.SetDeletionTimestamp(&at)
	s.replace(k, have, after)
	return nil
}

// each returns the stored objects of a kind in the order of their names.
func (s *Server) each(kind string) []client.Object {
	found := map[string]client.Object{}
	for k, object := range s.stored {
		if k.kind == kind {
			found[k.name.String()] = object
		}
	}
	all := make([]client.Object, 0, len(found))
	for _, name := range slices.Sorted(maps.Keys(found)) {
		all = append(all, found[name])
	}
	return all
}

// copyOf returns a copy, typed where the scheme has the kind: an API server stores what the schema of a kind has.
func (s *Server) copyOf(o client.Object) (client.Object, error) {
	if raw, is := o.(*unstructured.Unstructured); is && s.scheme.Recognizes(raw.GroupVersionKind()) {
		made, err := s.scheme.New(raw.GroupVersionKind())
		if err != nil {
			return nil, fmt.Errorf("make %s: %w", raw.GetKind(), err)
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw.Object, made); err != nil {
			return nil, fmt.Errorf("decode %s: %w", raw.GetKind(), err)
		}
		o, is = made.(client.Object)
		if !is {
			return nil, fmt.Errorf("copy %T: the copy is no object", made)
		}
	}
	copied, is := o.DeepCopyObject().(client.Object)
	if !is {
		return nil, fmt.Errorf("copy %T: the copy is no object", o)
	}
	return copied, nil
}
