package imagepull

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/imagepull"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/ledger"
)

const (
	// Writes of the status: a few at once, and one in two seconds.
	writesPerSecond = 0.5
	writesAtOnce    = 5
	// afterConflict is when to write again if no event shows the change first.
	afterConflict = time.Second
)

// Reasons of events.
const (
	reasonSucceeded = "PullImageSucceed"
	reasonFailed    = "PullImageFailed"
)

// wait is for how long not to write. Zero is a write, and counts.
func (r *Reconciler) wait(now time.Time) time.Duration {
	reservation := r.limiter.ReserveN(now, 1)
	wait := reservation.DelayFrom(now)
	if wait > 0 {
		reservation.CancelAt(now)
	}
	return wait
}

// report writes the status if it differs from the wanted one, also after the write of another client. A result that the
// rate limit holds back stays until it is written.
func (r *Reconciler) report(ctx context.Context, n *v1beta1.NodeImage, now time.Time) (time.Duration, error) {
	fresh, err := r.wanted(n, now)
	if err != nil || fresh == nil {
		return 0, err
	}
	if wait := r.wait(now); wait > 0 {
		return wait, nil
	}
	if err := r.write(ctx, n, fresh); apierrors.IsConflict(err) {
		return afterConflict, nil
	} else if err != nil {
		return 0, err
	}
	return ledger.Patience, nil // the cache may never show the write
}

// wanted is the NodeImage with the status that it should have, or nil where it has it.
func (r *Reconciler) wanted(n *v1beta1.NodeImage, now time.Time) (*v1beta1.NodeImage, error) {
	fresh := n.DeepCopy()
	fresh.Status = imagepull.Work(n, r.pulls()).Status
	if s := &fresh.Status; s.FirstSyncStatus == nil && s.Desired > 0 && s.Desired == s.Succeeded+s.Failed {
		s.FirstSyncStatus = firstSync(*s, now)
	}
	// Compared as they are written: times lose what is below a second.
	patch, err := client.MergeFrom(n).Data(fresh)
	if err != nil {
		return nil, fmt.Errorf("compare status: %w", err)
	}
	if string(patch) == "{}" {
		return nil, nil
	}
	return fresh, nil
}

// firstSync says how the first pulls of a node went, once all have ended: what waits for a new node can begin.
func firstSync(s v1beta1.NodeImageStatus, now time.Time) *v1beta1.SyncStatus {
	first := &v1beta1.SyncStatus{SyncAt: metav1.NewTime(now), Status: v1beta1.SyncStatusSucceeded}
	if s.Failed > 0 {
		first.Status, first.Message = v1beta1.SyncStatusFailed, fmt.Sprintf("%d of %d images failed", s.Failed, s.Desired)
	}
	return first
}

// write patches the changed fields of the status. The patch fails after a write of another client, such as a controller
// that has ended a pull.
func (r *Reconciler) write(ctx context.Context, n, fresh *v1beta1.NodeImage) error {
	patch, err := stored.NodeImageStatus(n, &fresh.Status)
	if err != nil {
		return err
	}
	if err := r.api.Client.Status().Patch(ctx, fresh, patch); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("write status of NodeImage: %w", err)
	}
	r.writes.Patched(r.request().NamespacedName, fresh)
	r.announce(fresh)
	return nil
}

// end cancels all attempts, and waits for them. The next process restarts their pulls.
func (r *Reconciler) end() {
	r.mu.Lock()
	r.closed = true
	for a := range r.busy {
		a.cancel()
	}
	r.mu.Unlock()
	r.attempts.Wait()
}

// announce emits events for the results in the status of a NodeImage, once each. It emits none for a pull that another
// client has ended.
func (r *Reconciler) announce(n *v1beta1.NodeImage) {
	for _, j := range r.inOrder() {
		if j.announced || !j.Ended() || !isIn(n, j.Pull) {
			continue
		}
		j.announced = true
		r.metrics.pulls.WithLabelValues(string(j.Status.Phase)).Inc()
		if r.options.Recorder == nil {
			continue
		}
		if j.Status.Phase == v1beta1.ImagePhaseSucceeded {
			took := j.Status.CompletionTime.Sub(j.Status.StartTime.Time).Round(time.Millisecond)
			r.options.Recorder.Eventf(n, corev1.EventTypeNormal, reasonSucceeded, "Image %s is there, after %s",
				j.Reference, took)
			continue
		}
		text := fmt.Sprintf("Image %s was not pulled on node %s: %s", j.Reference, r.node, j.Status.Message)
		for _, owner := range j.Tag.OwnerReferences {
			r.options.Recorder.Event(&owner, corev1.EventTypeWarning, reasonFailed, text)
		}
		r.options.Recorder.Event(n, corev1.EventTypeWarning, reasonFailed, text)
	}
}

// isIn says that a pull's end is what the status says of its tag.
func isIn(n *v1beta1.NodeImage, p imagepull.Pull) bool {
	return p.Ended() &&
		slices.ContainsFunc(n.Status.ImageStatuses[p.Reference.Name].Tags, func(t v1beta1.ImageTagStatus) bool {
			return t.Tag == p.Status.Tag && t.Version == p.Status.Version && t.Phase == p.Status.Phase &&
				t.CompletionTime != nil && t.CompletionTime.Unix() == p.Status.CompletionTime.Unix()
		})
}
