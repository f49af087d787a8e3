package imagepull

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/imagepull"
	"github.com/kruisekit/kruisekit/internal/statuspatch"
	"github.com/kruisekit/kruisekit/ledger"
)

const (
	// Writes of the status: a few at once, and one in two seconds.
	writesPerSecond = 0.5
	writesAtOnce    = 5
	// afterConflict is when to write again if no event shows the change first.
	afterConflict = time.Second
	// lastWord is how long the last write may take, when everything ends.
	lastWord = 5 * time.Second
)

// Reasons of events.
const (
	reasonSucceeded = "PullImageSucceed"
	reasonFailed    = "PullImageFailed"
	// reasonSlow has no counterpart in the reference, which does not report slow pulls.
	reasonSlow = "PullImageSlow"
	// reasonNoRoom has none either.
	reasonNoRoom = "PullImageNoRoom"
)

// book is about what was written.
type book struct {
	// writes has what the API server answered to the last write, until the cache has it.
	writes  *ledger.Ledger[*v1beta1.NodeImage]
	limiter *rate.Limiter
}

func newBook() book { return book{limiter: rate.NewLimiter(writesPerSecond, writesAtOnce)} }

func (r *Reconciler) keepLedger() {
	var live client.Reader = r.client
	if r.options.Live != nil {
		live = r.options.Live
	}
	r.book.writes = ledger.New[*v1beta1.NodeImage](live, r.options.Now)
}

// wait is for how long not to write. Zero is a write, and counts.
func (b *book) wait(now time.Time) time.Duration {
	reservation := b.limiter.ReserveN(now, 1)
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
	if wait := r.book.wait(now); wait > 0 {
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
	patch, err := statuspatch.NodeImage(n, &fresh.Status)
	if err != nil {
		return err
	}
	if err := r.client.Status().Patch(ctx, fresh, patch); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("write status of NodeImage: %w", err)
	}
	r.book.writes.Patched(r.request().NamespacedName, fresh)
	r.announce(fresh)
	return nil
}

// end cancels all attempts, waits for them, and writes what has ended and is not written yet.
func (r *Reconciler) end(ctx context.Context) error {
	r.mu.Lock()
	r.closed = true
	for a := range r.busy {
		a.cancel()
	}
	r.mu.Unlock()
	r.attempts.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.collect()
	if !slices.ContainsFunc(r.inOrder(), func(j *job) bool { return j.Ended() && !j.announced }) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWord)
	defer cancel()
	n, _, err := r.read(ctx)
	if err != nil || n == nil {
		return err
	}
	fresh, err := r.wanted(n, r.options.Now())
	if err != nil || fresh == nil {
		return err
	}
	return r.write(ctx, n, fresh)
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

// announceSlow emits the event of a pull that takes long, once.
func (r *Reconciler) announceSlow(n *v1beta1.NodeImage, j *job, now time.Time) {
	if j.slow || r.options.SlowAfter < 0 || j.elapsed(now) < r.options.SlowAfter || r.options.Recorder == nil {
		return
	}
	j.slow = true
	r.options.Recorder.Eventf(n, corev1.EventTypeNormal, reasonSlow, "Image %s: %s", j.Reference, j.progress(now))
}

// announceShort emits an event about pulls that wait for room: each pull counts in one event, and a pause is between
// two of them.
func (r *Reconciler) announceShort(n *v1beta1.NodeImage, now time.Time, room imagepull.Headroom) {
	var short []*job
	for _, j := range r.inOrder() {
		if j.short && !j.shortTold && j.underWay() {
			short = append(short, j)
		}
	}
	if len(short) == 0 || r.options.Recorder == nil || !r.noRoom.IsZero() && now.Sub(r.noRoom) < noRoomEvery {
		return
	}
	r.noRoom = now
	for _, j := range short {
		j.shortTold = true
	}
	r.options.Recorder.Eventf(n, corev1.EventTypeWarning, reasonNoRoom, "Pulls wait, %s among them: %s (%d%% now)",
		short[0].Reference, short[0].failure, room.FreePercent)
}
