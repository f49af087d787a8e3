package imagepull

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/note"
)

// JobPlan is what to do about a job.
type JobPlan struct {
	// Status of the job.
	Status v1beta1.ImagePullJobStatus
	// Update names the NodeImages to update now with [Request.Apply].
	Update []string
	// Delete says that the job has been finished for long enough. Nothing else is to be done then.
	Delete bool
	// RequeueAfter is when to look again, if not before. Zero is when something changes.
	RequeueAfter time.Duration
	// Notes report which nodes and limits the job waits for, and why.
	Notes []note.Note
}

// fullDelay is how long a job waits for room in a NodeImage. No event requeues the job: it owns no tag there yet.
const fullDelay = time.Minute

// standing is what a job's nodes did.
type standing struct {
	succeeded, failed, active []string
	// ask are the NodeImages that do not list the job yet; mend those that lack a secret; full the nodes without room.
	ask, mend []*v1beta1.NodeImage
	full      []string
	// refused are the nodes that do not list the job, and whose NodeImages take no change.
	refused []string
}

// Review returns the status of the job on the nodes that it selects, and which NodeImages to update next. The nodes
// pull in the order given. The status of a completed job does not change, and the job is deleted after its TTL. Review
// does not delete a job of an ImageListPullJob.
func (r Request) Review(nodes []*v1beta1.NodeImage) (JobPlan, error) {
	if r.Job.Status.CompletionTime != nil {
		return r.ended(), nil
	}
	ref, err := r.reference()
	if err != nil {
		return JobPlan{}, err
	}
	s := r.stand(ref, nodes)
	plan := JobPlan{Status: r.count(s, len(nodes))}
	if plan.Status.CompletionTime == nil && r.Job.Spec.CompletionPolicy.Type != v1beta1.Never {
		left, limited := r.left(plan.Status.StartTime)
		if limited && left <= 0 {
			r.giveUp(&plan, s)
			return plan, nil
		}
		plan.RequeueAfter = left
		if limited {
			plan.RequeueAfter = max(left, time.Second)
		}
	}
	if plan.Status.CompletionTime == nil {
		r.fanOut(&plan, s, ref)
	}
	return plan, nil
}

func (r Request) ended() JobPlan {
	plan := JobPlan{Status: *r.Job.Status.DeepCopy()}
	if listed(r.Job) {
		return plan
	}
	left, limited := expires(r.Job.Status.CompletionTime, r.Job.Spec.CompletionPolicy.TTLSecondsAfterFinished, r.Now)
	if plan.Delete = limited && left <= 0; !plan.Delete {
		plan.RequeueAfter = left
	}
	return plan
}

// listed says whether the job is one of a list. Were it to leave before the others have ended, it would be made again.
func listed(job *v1beta1.ImagePullJob) bool {
	owner := metav1.GetControllerOf(job)
	return owner != nil && owner.Kind == "ImageListPullJob" && ofOurGroup(owner.APIVersion)
}

// expires says how long something that ended still stays. False is for ever.
func expires(ended *metav1.Time, ttl *int32, now time.Time) (time.Duration, bool) {
	if ended == nil || ttl == nil {
		return 0, false
	}
	return remaining(ended.Time, int64(*ttl), now), true
}

// left is how long the job may still take. False is for ever.
func (r Request) left(start *metav1.Time) (time.Duration, bool) {
	limit := r.Job.Spec.CompletionPolicy.ActiveDeadlineSeconds
	if limit == nil {
		return 0, false
	}
	return remaining(start.Time, *limit, r.Now), true
}

// remaining is how much is left of a number of seconds that began some time ago.
func remaining(began time.Time, n int64, now time.Time) time.Duration {
	return began.Add(seconds(n)).Sub(now)
}

// seconds that are more than a Duration holds are half of its largest, so that sums stay in bounds.
func seconds(n int64) time.Duration {
	const most = math.MaxInt64 / int64(2*time.Second)
	return time.Duration(min(max(n, -most), most)) * time.Second
}

func (r Request) stand(ref Reference, nodes []*v1beta1.NodeImage) standing {
	var s standing
	for _, n := range nodes {
		image := n.Spec.Images[ref.Name]
		at := tagAt(image.Tags, ref.Tag)
		if at < 0 || !owns(image.Tags[at].OwnerReferences, r.Job) {
			if r.Refused[n.Name] != nil {
				s.refused = append(s.refused, n.Name)
			} else {
				s.ask = append(s.ask, n)
			}
			continue
		}
		if r.Refused[n.Name] == nil && len(lacking(image.PullSecrets, r.Secrets)) > 0 {
			s.mend = append(s.mend, n)
		}
		status := statusOf(n, ref)
		switch {
		case status == nil || status.Version != image.Tags[at].Version:
			s.active = append(s.active, n.Name)
		case status.Phase == v1beta1.ImagePhaseSucceeded:
			s.succeeded = append(s.succeeded, n.Name)
		case status.Phase == v1beta1.ImagePhaseFailed:
			s.failed = append(s.failed, n.Name)
		default:
			s.active = append(s.active, n.Name)
		}
	}
	return s
}

func (r Request) count(s standing, desired int) v1beta1.ImagePullJobStatus {
	status := v1beta1.ImagePullJobStatus{
		StartTime:   r.Job.Status.StartTime.DeepCopy(),
		Desired:     int32(desired),
		Active:      int32(len(s.active)),
		Succeeded:   int32(len(s.succeeded)),
		Failed:      int32(len(s.failed)),
		FailedNodes: slices.Sorted(slices.Values(s.failed)),
	}
	if status.StartTime == nil {
		status.StartTime = ptr.To(metav1.NewTime(r.Now))
	}
	finished := status.Succeeded + status.Failed
	switch {
	case r.Job.Spec.CompletionPolicy.Type != v1beta1.Never && status.Desired == finished:
		status.CompletionTime = ptr.To(metav1.NewTime(r.Now))
		status.Message = "job has completed"
	case desired == 0:
		status.Message = "job is running, no progress"
	default:
		status.Message = fmt.Sprintf("job is running, progress %.1f%%", 100*float64(finished)/float64(status.Desired))
	}
	return status
}

// giveUp ends a job that took too long: all nodes that have not succeeded failed.
func (r Request) giveUp(plan *JobPlan, s standing) {
	status := &plan.Status
	// Failures come first, then what is under way, then what has not begun.
	status.FailedNodes = slices.Concat(s.failed, s.active, namesOf(s.ask), s.full, s.refused)
	status.Failed, status.Active = int32(len(status.FailedNodes)), 0
	status.CompletionTime = ptr.To(metav1.NewTime(r.Now))
	status.Message = "job exceeds activeDeadlineSeconds"
	plan.note(NoteDeadline, r.Job.Name, fmt.Sprintf("%d of %d nodes have not finished within %d seconds",
		len(status.FailedNodes)-len(s.failed), status.Desired, *r.Job.Spec.CompletionPolicy.ActiveDeadlineSeconds))
}

// fanOut adds the job to as many nodes as may pull at once. A node of the job that lacks a secret gets it in any case,
// unless parallelism is 0.
func (r Request) fanOut(plan *JobPlan, s standing, ref Reference) {
	limit := r.parallelism(plan)
	next, waiting := r.next(&s, ref, limit)
	if len(s.full) > 0 {
		plan.Status.Message += fmt.Sprintf(", NodeImages without room for another image: %d", len(s.full))
	}
	if len(s.full) > 0 && (plan.RequeueAfter == 0 || plan.RequeueAfter > fullDelay) {
		plan.RequeueAfter = fullDelay
	}
	if len(r.Refused) > 0 {
		plan.Status.Message += fmt.Sprintf(", NodeImages that take no change: %d", len(r.Refused))
	}
	for _, name := range slices.Sorted(maps.Keys(r.Refused)) {
		plan.note(NoteRefused, name, "the NodeImage takes no change: "+r.Refused[name].Error())
	}
	for _, name := range s.full {
		plan.note(NoteFull, name, fmt.Sprintf("lists as much as it may, and has no room for %s", r.Job.Spec.Image))
	}
	if limit == 0 {
		plan.note(NotePaused, r.Job.Name, "parallelism is 0, no node starts to pull")
		return
	}
	plan.Update = next
	if waiting > 0 {
		plan.note(NoteLimited, r.Job.Name, fmt.Sprintf("%d nodes wait, %d pull at once", waiting, limit))
	}
}

// next returns the nodes that are next, and how many wait for them. Whether a NodeImage has room is found out only now,
// because that takes a look at all that it lists.
func (Request) next(s *standing, ref Reference, limit int) (names []string, waiting int) {
	for _, n := range s.mend {
		if limit > 0 && hasRoom(n, ref) {
			names = append(names, n.Name)
		}
	}
	room := limit - len(s.active)
	for _, n := range s.ask {
		switch {
		case room <= 0:
			waiting++
		case hasRoom(n, ref):
			names = append(names, n.Name)
			room--
		default:
			s.full = append(s.full, n.Name)
		}
	}
	return names, waiting
}

func namesOf(nodes []*v1beta1.NodeImage) []string {
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = n.Name
	}
	return names
}

func (r Request) parallelism(plan *JobPlan) int {
	p := r.Job.Spec.Parallelism
	if p == nil {
		return 1
	}
	n := int64(p.IntVal)
	if p.Type == intstr.String {
		var err error
		if n, err = strconv.ParseInt(p.StrVal, 10, 32); err != nil {
			plan.note(NoteBadNumber, r.Job.Name, fmt.Sprintf("spec.parallelism: %q is no number, 1 is taken", p.StrVal))
			return 1
		}
	}
	if n < 0 {
		plan.note(NoteBadNumber, r.Job.Name, fmt.Sprintf("spec.parallelism: %d is negative, 0 is taken", n))
	}
	return int(max(n, 0))
}

func (p *JobPlan) note(code, object, text string) {
	p.Notes = append(p.Notes, newNote(code, object, text))
}
