package imagepulljob

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// sources remembers the pull secrets of jobs under way, as they were read last. Jobs that name the same secret share a read.
type sources struct {
	mu sync.Mutex
	// known has nil for what does not exist.
	known map[types.NamespacedName]*corev1.Secret
	// forgotten counts what the watch has told of.
	forgotten int
}

func (s *sources) recall(key types.NamespacedName) (secret *corev1.Secret, known bool, forgotten int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	secret, known = s.known[key]
	return secret, known, s.forgotten
}

// learn notes what was read, unless the watch has told of something meanwhile: that may be what the read has missed.
func (s *sources) learn(key types.NamespacedName, secret *corev1.Secret, forgotten int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.forgotten == forgotten {
		s.put(key, secret)
	}
}

// note says whether the secret is another than before.
func (s *sources) note(key types.NamespacedName, secret *corev1.Secret) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, known := s.known[key]
	s.put(key, secret)
	return !known || !sameSecret(before, secret)
}

func (s *sources) put(key types.NamespacedName, secret *corev1.Secret) {
	if s.known == nil {
		s.known = map[types.NamespacedName]*corev1.Secret{}
	}
	s.known[key] = secret
}

// keep forgets all but some.
func (s *sources) keep(named map[types.NamespacedName][]reconcile.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.known, func(key types.NamespacedName, _ *corev1.Secret) bool { return named[key] == nil })
}

func (s *sources) forget(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, key)
	s.forgotten++
}

func sameSecret(a, b *corev1.Secret) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Type == b.Type && maps.EqualFunc(a.Data, b.Data, bytes.Equal)
}

// source is a pull secret in the namespace of its job; nil where it does not exist. It is read once: that it has changed,
// the poll or the watch finds out.
func (r *Reconciler) source(ctx context.Context, key types.NamespacedName) (*corev1.Secret, error) {
	if !r.options.WatchSecrets && r.options.SecretPeriod < 0 {
		return r.read(ctx, key)
	}
	secret, known, forgotten := r.sources.recall(key)
	if known {
		return secret, nil
	}
	secret, err := r.read(ctx, key)
	if err == nil {
		r.sources.learn(key, secret, forgotten)
	}
	return secret, err
}

// read keeps of a secret what its copies have; nil where it does not exist.
func (r *Reconciler) read(ctx context.Context, key types.NamespacedName) (*corev1.Secret, error) {
	var secret corev1.Secret
	switch err := r.options.Live.Get(ctx, key, &secret); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("get pull secret %s: %w", key, err)
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Type: secret.Type, Data: secret.Data,
	}, nil
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// poll reads the pull secrets of jobs under way again and again, and wakes the jobs when one has changed.
func (r *Reconciler) poll(ctx context.Context, q queue) error {
	go wait.UntilWithContext(ctx, func(ctx context.Context) { logged(ctx, r.look(ctx, q), "Pull secrets not read") }, r.options.SecretPeriod)
	return nil
}

// look is one round of poll. What nobody has read yet is left to the jobs.
func (r *Reconciler) look(ctx context.Context, q queue) error {
	jobs, err := r.under(ctx, keySecrets)
	if err != nil {
		return err
	}
	named := map[types.NamespacedName][]reconcile.Request{}
	for _, job := range jobs {
		for _, name := range job.Spec.PullSecrets {
			key := types.NamespacedName{Namespace: job.Namespace, Name: name}
			named[key] = append(named[key], reconcile.Request{NamespacedName: client.ObjectKeyFromObject(job)})
		}
	}
	r.sources.keep(named)
	for key, requests := range named {
		if _, known, _ := r.sources.recall(key); !known {
			continue
		}
		secret, err := r.read(ctx, key)
		if err != nil {
			logged(ctx, err, "Pull secret not read")
			continue
		}
		if r.sources.note(key, secret) {
			for _, request := range requests {
				q.Add(request)
			}
		}
	}
	return nil
}

// secretEvents wakes the jobs that name a secret which somebody touched.
func (r *Reconciler) secretEvents() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
		r.sources.forget(client.ObjectKeyFromObject(o))
		jobs, err := r.under(ctx, keyOfSecret(o.GetNamespace()+"/"+o.GetName()))
		logged(ctx, err, "Jobs of a pull secret not found")
		var requests []reconcile.Request
		for _, job := range jobs {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(job)})
		}
		return requests
	})
}
