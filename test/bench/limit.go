package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// atOnce is how many requests the plain client has under way, as many as the largest batch of package driver.
const atOnce = 64

const (
	inPlaceReady = "InPlaceUpdateReady"
	normal       = `{"metadata":{"labels":{"lifecycle.apps.kruise.io/state":"Normal"}}}`
)

// plain is a client that makes the writes of a rollout and nothing else: no queue, no decision, no status of a
// workload. What it reaches is the limit of the API server and of the nodes.
type plain struct {
	client kubernetes.Interface
	slots  chan struct{}

	mu   sync.Mutex
	pods map[string]*seen
}

// seen is what the plain client has seen of a pod.
type seen struct {
	image string // that runs
	ready bool
	// containers are ready, whatever readiness gates say.
	containers bool
	changed    chan struct{}
}

// newPlain returns a client that watches its pods until the context ends.
func newPlain(ctx context.Context, config *rest.Config) (*plain, error) {
	config = rest.CopyConfig(config)
	config.UserAgent, config.ContentType = "plain", runtime.ContentTypeProtobuf
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	p := &plain{client: client, slots: make(chan struct{}, atOnce), pods: map[string]*seen{}}
	see := func(object any, gone bool) {
		if last, is := object.(cache.DeletedFinalStateUnknown); is {
			object = last.Obj
		}
		if pod, is := object.(*corev1.Pod); is {
			p.see(pod, gone)
		}
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = "app=plain" }))
	if _, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { see(object, false) },
		UpdateFunc: func(_, object any) { see(object, false) },
		DeleteFunc: func(object any) { see(object, true) },
	}); err != nil {
		return nil, fmt.Errorf("watch pods: %w", err)
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return p, nil
}

func (p *plain) see(pod *corev1.Pod, gone bool) {
	s := seen{changed: make(chan struct{})}
	for _, c := range pod.Status.Conditions {
		s.ready = s.ready || c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		s.containers = s.containers || c.Type == corev1.ContainersReady && c.Status == corev1.ConditionTrue
	}
	for _, c := range pod.Status.ContainerStatuses {
		s.image = c.Image
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if before := p.pods[pod.Name]; before != nil {
		close(before.changed)
	}
	if p.pods[pod.Name] = &s; gone {
		delete(p.pods, pod.Name)
	}
}

// await returns when a pod is as asked; nil is one that is gone.
func (p *plain) await(ctx context.Context, name string, as func(*seen) bool) error {
	for {
		p.mu.Lock()
		s := p.pods[name]
		if as(s) {
			p.mu.Unlock()
			return nil
		}
		if s == nil {
			s = &seen{changed: make(chan struct{})}
			p.pods[name] = s
		}
		p.mu.Unlock()
		select {
		case <-s.changed:
		case <-ctx.Done():
			return fmt.Errorf("wait for pod %s: %w", name, ctx.Err())
		}
	}
}

// write makes a request when there is a slot for it.
func (p *plain) write(request func() error) error {
	p.slots <- struct{}{}
	defer func() { <-p.slots }()
	return request()
}

// each works on the pods, a window of them at a time, and returns how long all took.
func each(names []string, window int, do func(name string) error) (time.Duration, error) {
	began := time.Now()
	var group errgroup.Group
	group.SetLimit(window)
	for _, name := range names {
		group.Go(func() error { return do(name) })
	}
	err := group.Wait()
	return time.Since(began), err
}

// numbered are names of n pods.
func numbered(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("plain-%05d", i)
	}
	return names
}

func (p *plain) create(ctx context.Context, name string) error {
	pods := p.client.CoreV1().Pods(namespace)
	if err := p.write(func() error {
		pod := podNamed(name, "plain")
		pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: inPlaceReady}}
		_, err := pods.Create(ctx, pod, metav1.CreateOptions{})
		return err
	}); err != nil {
		return fmt.Errorf("create pod: %w", err)
	}
	// The conditions that the manager gives a new pod.
	for _, of := range []string{inPlaceReady, "KruisePodReady"} {
		if err := p.condition(ctx, name, of, corev1.ConditionTrue); err != nil {
			return err
		}
	}
	if err := p.patch(ctx, name, normal); err != nil {
		return err
	}
	return p.await(ctx, name, func(s *seen) bool { return s != nil && s.ready })
}

func (p *plain) condition(ctx context.Context, name, of string, status corev1.ConditionStatus) error {
	return p.patch(ctx, name, fmt.Sprintf(
		`{"status":{"conditions":[{"type":%q,"status":%q,"lastTransitionTime":%q}]}}`,
		of, status, time.Now().UTC().Format(time.RFC3339)), "status")
}

func (p *plain) patch(ctx context.Context, name, patch string, subresource ...string) error {
	return p.write(func() error {
		_, err := p.client.CoreV1().Pods(namespace).Patch(ctx, name, types.StrategicMergePatchType, []byte(patch),
			metav1.PatchOptions{}, subresource...)
		if err != nil {
			return fmt.Errorf("patch pod: %w", err)
		}
		return nil
	})
}

// update makes the writes of an update in place.
func (p *plain) update(ctx context.Context, name, image string) error {
	if err := p.condition(ctx, name, inPlaceReady, corev1.ConditionFalse); err != nil {
		return err
	}
	if err := p.patch(ctx, name, fmt.Sprintf(`{"metadata":{"annotations":{"state":%q},"labels":{"revision":`+
		`"web-5d8f9c7b6d","lifecycle.apps.kruise.io/state":"Updating"}},`+
		`"spec":{"containers":[{"name":"main","image":%q}]}}`, state, image)); err != nil {
		return err
	}
	if err := p.await(ctx, name, func(s *seen) bool { return s != nil && s.image == image && s.containers }); err != nil {
		return err
	}
	if err := p.condition(ctx, name, inPlaceReady, corev1.ConditionTrue); err != nil {
		return err
	}
	if err := p.patch(ctx, name, normal); err != nil {
		return err
	}
	return p.await(ctx, name, func(s *seen) bool { return s != nil && s.ready })
}

// state is about as long as what an update in place records on a pod.
const state = `{"revision":"web-5d8f9c7b6d","updateTimestamp":"2030-01-01T00:00:00Z","lastContainerStatuses":{"main":` +
	`{"imageID":"sha256:0000000000000000000000000000000000000000000000000000000000000000"}},` +
	`"containerBatchesRecord":[{"timestamp":"2030-01-01T00:00:00Z","containers":["main"]}]}`

// recreate deletes a pod and creates another one, with another name as the pods of a CloneSet have: the kubelets of
// simulated nodes delete by name.
func (p *plain) recreate(ctx context.Context, name string) error {
	if err := p.write(func() error {
		return p.client.CoreV1().Pods(namespace).Delete(ctx, name, metav1.DeleteOptions{})
	}); err != nil {
		return fmt.Errorf("delete pod: %w", err)
	}
	if err := p.await(ctx, name, func(s *seen) bool { return s == nil }); err != nil {
		return err
	}
	return p.create(ctx, name+"-next")
}

// clear deletes all pods of the client.
func (p *plain) clear(ctx context.Context) error {
	if err := p.client.CoreV1().Pods(namespace).DeleteCollection(ctx, metav1.DeleteOptions{},
		metav1.ListOptions{LabelSelector: "app=plain"}); err != nil {
		return fmt.Errorf("delete pods: %w", err)
	}
	return poll(ctx, 10*time.Minute, func(context.Context) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		if n := len(p.pods); n > 0 {
			return fmt.Errorf("%d pods exist", n)
		}
		return nil
	})
}
