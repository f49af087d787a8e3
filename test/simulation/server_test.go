package simulation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/kruise"
)

// server holds the objects of one workload as the API server does. Objects that it returns are never changed after that;
// it keeps the bytes to prove it.
type server struct {
	now       func() metav1.Time
	version   int64
	born      int
	pods      map[string]*object
	revisions []*appsv1.ControllerRevision
	shop      shop
	// last is what a snapshot showed.
	last *snapshot
	// watch is called after every write.
	watch func(apiWrite)
}

type object struct {
	pod *corev1.Pod
	raw []byte
}

// apiWrite is one change of a pod.
type apiWrite struct {
	by, verb, subresource string
	// before and after; nil where there is no pod.
	before, after *corev1.Pod
}

func (w apiWrite) pod() *corev1.Pod {
	if w.after != nil {
		return w.after
	}
	return w.before
}

// snapshot is everything at one time.
type snapshot struct {
	version   int64
	pods      []*corev1.Pod
	revisions []*appsv1.ControllerRevision
	shop      shop
}

func (s *server) snapshot() *snapshot {
	if s.last != nil && s.last.version == s.version {
		return s.last
	}
	all := &snapshot{version: s.version, revisions: slices.Clone(s.revisions), shop: s.shop}
	for _, name := range slices.Sorted(maps.Keys(s.pods)) {
		all.pods = append(all.pods, s.pods[name].pod)
	}
	s.last = all
	return all
}

// pod is nil where there is none of that name.
func (s *server) pod(name string) *corev1.Pod {
	if o := s.pods[name]; o != nil {
		return o.pod
	}
	return nil
}

func (s *server) next() string {
	s.version++
	return strconv.FormatInt(s.version, 10)
}

// create makes a pod, with a name of the server's choice where only a part of it is given.
func (s *server) create(by string, pod *corev1.Pod) (*corev1.Pod, error) {
	pod = pod.DeepCopy()
	if pod.Name == "" {
		for {
			pod.Name = pod.GenerateName + letters(s.born)
			s.born++
			if s.pods[pod.Name] == nil {
				break
			}
		}
	}
	if s.pods[pod.Name] != nil {
		return nil, apierrors.NewAlreadyExists(schema.GroupResource{Resource: "pods"}, pod.Name)
	}
	pod.CreationTimestamp, pod.ResourceVersion = s.now(), s.next()
	pod.UID = types.UID("uid-" + pod.ResourceVersion)
	pod.Generation = 1
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending}
	raw, err := json.Marshal(pod)
	if err != nil {
		return nil, fmt.Errorf("encode pod: %w", err)
	}
	s.pods[pod.Name] = &object{pod: pod, raw: raw}
	s.watch(apiWrite{by: by, verb: "create", after: pod})
	return pod, nil
}

// letters counts a, b, ... z, ba, bb, ...
func letters(n int) string {
	if n < 26 {
		return string(rune('a' + n))
	}
	return letters(n/26) + letters(n%26)
}

// replace stores a changed pod, if it is one.
func (s *server) replace(w apiWrite) (*corev1.Pod, error) {
	if apiequality.Semantic.DeepEqual(w.before, w.after) {
		if w.after = w.before; w.by == "controller" {
			s.watch(w) // it asked for nothing, but it asked
		}
		return w.before, nil
	}
	w.after.ResourceVersion = s.next()
	raw, err := json.Marshal(w.after)
	if err != nil {
		return nil, fmt.Errorf("encode pod: %w", err)
	}
	s.pods[w.after.Name] = &object{pod: w.after, raw: raw}
	if w.after.DeletionTimestamp != nil && len(w.after.Finalizers) == 0 && w.after.Spec.NodeName == "" {
		delete(s.pods, w.after.Name)
	}
	s.watch(w)
	return w.after, nil
}

// delete begins the deletion of a pod. A pod on a node goes when its node has ended it, and no pod goes as long as it has
// finalizers.
func (s *server) delete(by string, pod *corev1.Pod) error {
	have, err := s.find(pod)
	if err != nil {
		return err
	}
	if have.DeletionTimestamp != nil {
		s.watch(apiWrite{by: by, verb: "delete", before: have, after: have})
		return nil
	}
	after := have.DeepCopy()
	after.DeletionTimestamp = ptr.To(s.now())
	_, err = s.replace(apiWrite{by: by, verb: "delete", before: have, after: after})
	return err
}

// remove ends a pod that its node has ended.
func (s *server) remove(by string, pod *corev1.Pod) {
	if len(pod.Finalizers) > 0 {
		return
	}
	s.next()
	delete(s.pods, pod.Name)
	s.watch(apiWrite{by: by, verb: "remove", before: pod})
}

// find looks for exactly this pod.
func (s *server) find(pod *corev1.Pod) (*corev1.Pod, error) {
	have := s.pod(pod.Name)
	switch {
	case have == nil:
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, pod.Name)
	case have.UID != pod.UID:
		return nil, apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, pod.Name, fmt.Errorf("it has UID %s", have.UID))
	}
	return have, nil
}

// createRevision keeps a new revision.
func (s *server) createRevision(r *appsv1.ControllerRevision) error {
	for _, have := range s.revisions {
		if have.Name == r.Name {
			return apierrors.NewAlreadyExists(schema.GroupResource{Resource: "controllerrevisions"}, r.Name)
		}
	}
	r = r.DeepCopy()
	r.CreationTimestamp, r.ResourceVersion = s.now(), s.next()
	s.revisions = append(slices.Clip(s.revisions), r)
	return nil
}

// numberRevision raises the number of a revision.
func (s *server) numberRevision(name string, number int64) {
	s.revisions = slices.Clone(s.revisions)
	for i, have := range s.revisions {
		if have.Name == name {
			s.revisions[i] = have.DeepCopy()
			s.revisions[i].Revision, s.revisions[i].ResourceVersion = number, s.next()
		}
	}
}

func (s *server) setCurrent(name string) {
	s.next()
	s.shop.Current = name
}

// setSpec is what a user does.
func (s *server) setSpec(change func(*spec)) {
	s.next()
	change(&s.shop.Spec)
}

// choose is what a user does who wants a pod to be deleted within the budget.
func (s *server) choose(name string, check func(error)) {
	_, err := s.patch(change{
		by: "user", pod: name, kind: types.MergePatchType, data: []byte(`{"metadata":{"labels":{"` + kruise.SpecifiedDeleteKey + `":"true"}}}`),
	})
	check(err)
}

// intact returns the pod that a reader has changed; nil for none.
func (s *server) intact() error {
	for name, o := range s.pods {
		raw, err := json.Marshal(o.pod)
		if err != nil {
			return fmt.Errorf("encode pod: %w", err)
		}
		if !bytes.Equal(raw, o.raw) {
			return fmt.Errorf("pod %s was changed in memory", name)
		}
	}
	return nil
}
