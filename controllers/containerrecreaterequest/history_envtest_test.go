//go:build envtest

package containerrecreaterequest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/lifecycle"
)

// history is every version of the requests and pods of a namespace, by their names, in the order in which they were
// written.
type history struct {
	*bench

	mu       sync.Mutex
	requests map[string][]*request
	pods     map[string][]*corev1.Pod
	deleted  map[string]int
}

// history begins now, and ends with the test.
func (b *bench) history() *history {
	b.Helper()
	h := &history{bench: b, requests: map[string][]*request{}, pods: map[string][]*corev1.Pod{}, deleted: map[string]int{}}
	watching, err := client.NewWithWatch(b.config, client.Options{Scheme: b.scheme})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	var done sync.WaitGroup
	for _, list := range []client.ObjectList{&v1beta1.ContainerRecreateRequestList{}, &corev1.PodList{}} {
		w, err := watching.Watch(ctx, list, client.InNamespace(b.namespace))
		if err != nil {
			b.Fatal(err)
		}
		done.Add(1)
		go func() {
			defer done.Done()

			for e := range w.ResultChan() {
				h.add(e)
			}
		}()
	}
	b.Cleanup(func() {
		cancel()
		done.Wait()
	})
	return h
}

func (h *history) add(e watch.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch o := e.Object.(type) {
	case *request:
		h.requests[o.Name] = append(h.requests[o.Name], o)
		if e.Type == watch.Deleted {
			h.deleted[o.Name]++
		}
	case *corev1.Pod:
		h.pods[o.Name] = append(h.pods[o.Name], o)
	}
}

// complete says whether all that happened to a request is known.
func (h *history) complete(r *request, gone bool) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := h.requests[r.Name]
	if len(all) == 0 || gone && h.deleted[r.Name] == 0 || !gone && all[len(all)-1].ResourceVersion != r.ResourceVersion {
		return errors.New("the history of " + r.Name + " is not complete")
	}
	return nil
}

// check finds what was done twice, or in the wrong order, to a request that ended and took its pod out of traffic.
func (h *history) check(r *request, pod *corev1.Pod) {
	h.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	all := h.requests[r.Name]
	steps := map[string]func(*request) string{
		"end": func(r *request) string {
			if r.Status.CompletionTime == nil {
				return ""
			}
			return fmt.Sprint(r.Status.CompletionTime.Unix(), r.Status.Phase, r.Status.Message)
		},
		"grace": func(r *request) string {
			if c := graceCondition(r); c != nil {
				return fmt.Sprint(c.Status, c.LastTransitionTime.Unix())
			}
			return ""
		},
	}
	for what, of := range steps {
		if seen := changes(all, of); len(seen) != 2 {
			h.Errorf("%s: its %s was %q", r.Name, what, seen)
		}
	}
	label := func(r *request) string { return r.Labels[active] }
	if seen := changes(all, label); !slices.Equal(seen, []string{"true", ""}) {
		h.Errorf("%s: its label %s was %q", r.Name, active, seen)
	}
	holds := func(r *request) string { return strconv.FormatBool(slices.Contains(r.Finalizers, finalizer)) }
	held := func(p *corev1.Pod) string {
		return strconv.FormatBool(lifecycle.IsHeld(p, kruise.ContainerRecreateRequestUserAgent, r.Namespace+"/"+r.Name))
	}
	once := []string{"false", "true", "false"}
	if a, b := changes(all, holds), changes(h.pods[pod.Name], held); !slices.Equal(a, once) || !slices.Equal(b, once) {
		h.Errorf("%s: it had the finalizer %q, and the pod was held %q", r.Name, a, b)
		return
	}
	// The finalizer is there for as long as the pod is held.
	first, last := span(all, holds)
	from, to := span(h.pods[pod.Name], held)
	if first >= from || to >= last {
		h.Errorf("%s: it had the finalizer from version %d to %d, and the pod was held from %d to %d",
			r.Name, first, last, from, to)
	}
}

// changes are the values that something had, one after the other.
func changes[T any](versions []T, of func(T) string) []string {
	all := make([]string, 0, len(versions))
	for _, v := range versions {
		all = append(all, of(v))
	}
	return slices.Compact(all)
}

// span is the version in which something became true, and the one in which it was no longer.
func span[T client.Object](versions []T, of func(T) string) (from, to int) {
	for _, v := range versions {
		n, err := strconv.Atoi(v.GetResourceVersion())
		switch is := of(v) == "true"; {
		case err != nil:
			panic(err)
		case is && from == 0:
			from = n
		case !is && from != 0 && to == 0:
			to = n
		}
	}
	return from, to
}
