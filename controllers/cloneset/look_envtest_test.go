//go:build envtest

package cloneset_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/pub"
	"github.com/kruisekit/kruisekit/lifecycle"
)

// condition is the message of a condition; empty where there is none.
func condition(set *v1beta1.CloneSet, t v1beta1.CloneSetConditionType) string {
	for _, c := range set.Status.Conditions {
		if c.Type == t {
			return c.Message
		}
	}
	return ""
}

// events of a set with a reason.
func (b *bench) events(set *v1beta1.CloneSet, reason string) []corev1.Event {
	b.Helper()
	var list corev1.EventList
	if err := b.client.List(b.Context(), &list, client.InNamespace(b.namespace)); err != nil {
		b.Fatal(err)
	}
	var some []corev1.Event
	for _, e := range list.Items {
		if e.InvolvedObject.UID == set.UID && e.Reason == reason {
			some = append(some, e)
		}
	}
	return some
}

// told says whether there is an event with a reason.
func (b *bench) told(set *v1beta1.CloneSet, reason string) error {
	b.Helper()
	if len(b.events(set, reason)) == 0 {
		return fmt.Errorf("no event %s", reason)
	}
	return nil
}

// until waits for something to be so.
func (b *bench) until(check func() error) {
	b.Helper()
	var last error
	err := wait.PollUntilContextTimeout(b.Context(), 20*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	})
	if err != nil {
		b.Fatalf("%v; last: %v", err, last)
	}
}

// check looks at a set and its pods, and says what is not as it should be.
type check = func(*v1beta1.CloneSet, []corev1.Pod) error

// all wants several things at once.
func all(checks ...check) check {
	return func(set *v1beta1.CloneSet, pods []corev1.Pod) error {
		var errs []error
		for _, c := range checks {
			errs = append(errs, c(set, pods))
		}
		return errors.Join(errs...)
	}
}

// reason wants a reason of Progressing; empty for no such condition.
func reason(want string) check {
	return func(set *v1beta1.CloneSet, _ []corev1.Pod) error {
		got := ""
		for _, c := range set.Status.Conditions {
			if c.Type == v1beta1.CloneSetConditionTypeProgressing {
				got = c.Reason
			}
		}
		if got != want || set.Status.ObservedGeneration != set.Generation {
			return fmt.Errorf("Progressing is %q, want %q", got, want)
		}
		return nil
	}
}

// images wants numbers of pods with an image, ready or not.
func images(want map[string]int) check {
	return func(_ *v1beta1.CloneSet, pods []corev1.Pod) error {
		got := map[string]int{}
		for i := range pods {
			got[pods[i].Spec.Containers[0].Image]++
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("images of pods (-want +got):\n%s", diff)
		}
		return nil
	}
}

// states wants numbers of pods in lifecycle states.
func states(want map[pub.LifecycleState]int) check {
	return func(_ *v1beta1.CloneSet, pods []corev1.Pod) error {
		got := map[pub.LifecycleState]int{}
		for i := range pods {
			got[lifecycle.StateOf(&pods[i])]++
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("states of pods (-want +got):\n%s", diff)
		}
		return nil
	}
}

// counts wants counters of the status.
func counts(replicas, available int32) check {
	return func(set *v1beta1.CloneSet, _ []corev1.Pod) error {
		if s := set.Status; s.Replicas != replicas || s.AvailableReplicas != available || s.ObservedGeneration != set.Generation {
			return fmt.Errorf("want %d, %d of them available, status %+v", replicas, available, s)
		}
		return nil
	}
}

// patch changes a pod by a merge patch of its metadata.
func (b *bench) patch(pod *corev1.Pod, metadata string) {
	b.Helper()
	if err := b.client.Patch(b.Context(), pod, client.RawPatch(types.MergePatchType, []byte(`{"metadata":`+metadata+`}`))); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) delete(pods ...corev1.Pod) {
	b.Helper()
	for i := range pods {
		if err := b.client.Delete(b.Context(), &pods[i]); err != nil {
			b.Fatal(err)
		}
	}
}

// stays wants a thing to be so when nothing happens any more.
func (b *bench) stays(set *v1beta1.CloneSet, c check) {
	b.Helper()
	b.still()
	if err := b.client.Get(b.Context(), client.ObjectKeyFromObject(set), set); err != nil {
		b.Fatal(err)
	}
	if err := c(set, b.pods(set)); err != nil {
		b.Error(err)
	}
}

// clock is the time of a reconciler, which the test puts forward.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// advance puts the clock forward, and has the set looked at.
func (b *bench) advance(c *clock, by time.Duration, set *v1beta1.CloneSet) {
	b.Helper()
	c.ahead.Add(int64(by))
	b.change(set, func(s *v1beta1.CloneSet) {
		s.Annotations = map[string]string{"test.kruisekit.dev/now": c.now().String()}
	})
}

// numbered gives ids that tell the order of births: aa, ab, ac...
func numbered() func() string {
	var n atomic.Int64
	return func() string {
		i := n.Add(1) - 1
		return string([]rune{rune('a' + i/26), rune('a' + i%26)})
	}
}
