package cloneset

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/workloads"
)

// clock is a set whose passes are planned and not executed, at times that a test chooses.
type clock struct {
	*testing.T
	*warehouse

	r   *Reconciler
	now time.Time
}

func newClock(t *testing.T) *clock {
	t.Helper()
	c := &clock{T: t, warehouse: stock(t, 3, 0), now: time.Unix(1_800_000_000, 0)}
	r, err := New(c.warehouse, Options{Now: func() time.Time { return c.now }})
	if err != nil {
		t.Fatal(err)
	}
	c.r = r
	c.stalled() // the status of a set that has converged
	return c
}

// stalled is the condition after one more pass, which becomes the status of the set; nil for none. wait is when the
// pass looks again.
func (c *clock) stalled() (condition *workloads.Condition, wait time.Duration) {
	c.Helper()
	s, err := c.r.observe(c.Context(), client.ObjectKeyFromObject(c.set))
	if err != nil {
		c.Fatal(err)
	}
	p, err := c.r.options.plan(s)
	if err != nil {
		c.Fatal(err)
	}
	c.set.Status = *p.status(s)
	c.r.kit.Note(&s.Observation, p.Plan)
	return workloads.Converted[workloads.Conditions](c.set.Status.Conditions).Find(workloads.Stalled), p.After.After()
}

func (c *clock) container(change func(*corev1.ContainerStatus)) {
	status := &c.pods[0].Status
	status.ContainerStatuses[0] = corev1.ContainerStatus{Name: "web", Image: "web:1", ImageID: "sha256:web:1"}
	change(&status.ContainerStatuses[0])
	status.Conditions[0].Status = corev1.ConditionFalse
}

func waiting(reason string) func(*corev1.ContainerStatus) {
	return func(s *corev1.ContainerStatus) { s.State.Waiting = &corev1.ContainerStateWaiting{Reason: reason} }
}

// An image that cannot be pulled is reported at once, in one condition that stays the same while the node tries again.
func TestStalledByImage(t *testing.T) {
	c := newClock(t)
	if got, _ := c.stalled(); got != nil {
		t.Fatalf("a converged set is stalled: %v", got)
	}
	c.container(waiting("ErrImagePull"))
	first, _ := c.stalled()
	if first == nil || first.Reason != "ImagePullFailed" || first.Status != corev1.ConditionTrue ||
		first.Message != "web-00000: container web cannot pull image web:1" {
		t.Fatalf("condition %+v", first)
	}
	c.container(waiting("ImagePullBackOff"))
	c.now = c.now.Add(time.Hour)
	again, _ := c.stalled()
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("the condition changes while nothing does (-first +again):\n%s", diff)
	}
	c.container(func(s *corev1.ContainerStatus) { s.Ready = true })
	c.pods[0].Status.Conditions[0].Status = corev1.ConditionTrue
	if got, wait := c.stalled(); got == nil || wait != workloads.StalledAfter {
		t.Errorf("the condition is gone at once, which may return: %+v, looks again after %s", got, wait)
	}
	c.now = c.now.Add(workloads.StalledAfter)
	if got, _ := c.stalled(); got != nil {
		t.Errorf("the condition stays: %+v", got)
	}
}

// What may come by itself is reported when it has not come for a minute.
func TestStalledForLong(t *testing.T) {
	c := newClock(t)
	c.container(waiting("ContainerCreating"))
	if got, wait := c.stalled(); got != nil || wait != workloads.StalledAfter {
		t.Fatalf("reported at once: %+v, looks again after %s", got, wait)
	}
	c.now = c.now.Add(workloads.StalledAfter / 2)
	if got, wait := c.stalled(); got != nil || wait != workloads.StalledAfter/2 {
		t.Fatalf("reported too early: %+v, looks again after %s", got, wait)
	}
	c.now = c.now.Add(workloads.StalledAfter / 2)
	if got, _ := c.stalled(); got == nil || got.Reason != "NotAvailable" || got.Status != corev1.ConditionUnknown {
		t.Fatalf("not reported: %+v", got)
	}
	// A more telling reason takes its place.
	c.container(waiting("ErrImagePull"))
	if got, _ := c.stalled(); got == nil || got.Reason != "ImagePullFailed" || got.Status != corev1.ConditionTrue {
		t.Errorf("condition %+v", got)
	}
}
