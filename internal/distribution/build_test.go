package distribution_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/distribution"
	"github.com/kruisekit/kruisekit/internal/patches"
)

func at(seconds int) time.Time {
	return time.Date(2026, 11, 22, 12, 0, seconds, 0, time.UTC)
}

var me = distribution.Owner{Name: "registry", UID: "uid-registry"}

const plain = `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"pull"},"stringData":{"user":"reader"}}`

func read(t testing.TB, raw string) *distribution.Resource {
	t.Helper()
	r, err := distribution.Read([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func selected(t testing.TB, spec v1beta1.ResourceDistributionTargets, reserved ...string) *distribution.Targets {
	t.Helper()
	s, err := distribution.Select(spec, reserved...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func list(names ...string) (l v1beta1.ResourceDistributionTargetNamespaces) {
	for _, n := range names {
		l.List = append(l.List, v1beta1.ResourceDistributionNamespace{Name: n})
	}
	return l
}

func group(value string) metav1.LabelSelector {
	return metav1.LabelSelector{MatchLabels: map[string]string{"group": value}}
}

// secrets are those of one name in all namespaces, as an API server keeps them.
type secrets struct {
	all     map[string]*corev1.Secret
	version int
	// requests are counted by action and namespace.
	requests map[string]int
	// terminating are namespaces that accept no new objects.
	terminating, missing map[string]bool
}

func newSecrets() *secrets {
	return &secrets{
		all:         map[string]*corev1.Secret{},
		requests:    map[string]int{},
		terminating: map[string]bool{},
		missing:     map[string]bool{},
	}
}

func (s *secrets) next() string {
	s.version++
	return strconv.Itoa(s.version)
}

var resource = schema.GroupResource{Resource: "secrets"}

// put stores what another writer makes of an object.
func (s *secrets) put(namespace string, change func(*corev1.Secret)) {
	is := s.all[namespace]
	if is == nil {
		is = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pull"}, Type: corev1.SecretTypeOpaque}
		is.UID = types.UID("uid-" + s.next())
	} else {
		is = is.DeepCopy()
	}
	change(is)
	is.ResourceVersion = s.next()
	s.all[namespace] = is
}

// send answers the request of a step.
func (s *secrets) send(
	r *distribution.Resource, owner distribution.Owner, step distribution.Step,
) (distribution.Object, error) {
	s.requests[string(step.Action)]++
	n := step.Namespace
	is := s.all[n]
	switch step.Action {
	case distribution.Create:
		return s.create(r.Copy(n, owner))
	case distribution.Inspect:
		if is == nil {
			return nil, apierrors.NewNotFound(resource, "pull")
		}
		return is.DeepCopy(), nil
	case distribution.Update:
		return s.update(n, r, owner, step)
	case distribution.Delete:
		switch {
		case is == nil:
			return nil, apierrors.NewNotFound(resource, "pull")
		case is.UID != step.UID || is.ResourceVersion != step.Version:
			return nil, apierrors.NewConflict(resource, "pull", errors.New("it is another version"))
		case len(is.Finalizers) > 0:
			s.put(n, func(is *corev1.Secret) { is.DeletionTimestamp = ptr.To(metav1.NewTime(at(0))) })
			return nil, nil
		}
		delete(s.all, n)
		return nil, nil
	case distribution.Done:
	}
	return nil, fmt.Errorf("no request: %q", step.Action)
}

func (s *secrets) create(o distribution.Object) (distribution.Object, error) {
	n := o.GetNamespace()
	switch {
	case s.missing[n]:
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, n)
	case s.terminating[n]:
		err := apierrors.NewForbidden(resource, "pull", errors.New("the namespace is being terminated"))
		err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
		return nil, err
	case s.all[n] != nil:
		return nil, apierrors.NewAlreadyExists(resource, "pull")
	}
	made, is := o.DeepCopyObject().(*corev1.Secret)
	if !is || made.UID != "" || made.ResourceVersion != "" || made.StringData != nil || made.Type == "" {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("%+v is not to be created", o))
	}
	made.UID = types.UID("uid-" + s.next())
	made.ResourceVersion = s.next()
	s.all[n] = made
	return made.DeepCopy(), nil
}

func (s *secrets) update(
	n string, r *distribution.Resource, owner distribution.Owner, step distribution.Step,
) (distribution.Object, error) {
	is := s.all[n]
	if is == nil {
		return nil, apierrors.NewNotFound(resource, "pull")
	}
	patch, err := r.Patch(step, owner)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(is)
	if err != nil {
		return nil, err
	}
	if raw, err = patches.Apply(raw, distribution.PatchType, patch, is); err != nil {
		return nil, err
	}
	after := &corev1.Secret{}
	if err := json.Unmarshal(raw, after); err != nil {
		return nil, err
	}
	switch {
	case after.UID != is.UID || after.ResourceVersion != is.ResourceVersion:
		return nil, apierrors.NewConflict(resource, "pull", errors.New("it is another version"))
	case after.Type != is.Type, is.Immutable != nil && *is.Immutable &&
		(!apiequality.Semantic.DeepEqual(is.Data, after.Data) || after.Immutable == nil):
		return nil, apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "pull", nil)
	}
	after.ResourceVersion = s.next()
	s.all[n] = after
	return after.DeepCopy(), nil
}

// copies are what metadata shows of them.
func (s *secrets) copies(owner distribution.Owner) map[string]distribution.Copy {
	all := map[string]distribution.Copy{}
	for n, is := range s.all {
		all[n] = distribution.Copy{
			UID: is.UID, Version: is.ResourceVersion, Controlled: owner.Controls(is), Deleting: is.DeletionTimestamp != nil,
		}
	}
	return all
}

// run sends the steps of a pass one after the other.
func (s *secrets) run(p *distribution.Pass, r *distribution.Resource, owner distribution.Owner) {
	for i, step := range p.Steps {
		for !step.Ended() {
			live, err := s.send(r, owner, step)
			step = p.Answer(step, live, err)
		}
		p.Steps[i] = step
	}
}

// encode is an object as it comes from an API server.
func encode(t testing.TB, o runtime.Object) string {
	t.Helper()
	raw, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
