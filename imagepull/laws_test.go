package imagepull_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/imagepull"
)

// nodes draws NodeImages from few values, so that jobs meet on tags.
func (r *random) nodes(n int) []*v1beta1.NodeImage {
	all := make([]*v1beta1.NodeImage, n)
	for i := range all {
		all[i] = nodeImage(fmt.Sprintf("n%02d", i))
		for _, image := range []string{"nginx:1", "nginx:2", "redis:1"} {
			if r.once(2) {
				continue
			}
			lists(image, r.Int63n(3), pick(r, nil, list("a"), list("b"), list("a", "b"))...)(all[i])
			tags := all[i].Spec.Images[strings.Split(image, ":")[0]].Tags
			t := &tags[len(tags)-1]
			t.ImagePullPolicy = pick(r, v1beta1.PullAlways, v1beta1.PullIfNotPresent, "")
			t.CreatedAt = ago(time.Duration(r.Intn(1200)) * time.Second)
			if r.once(3) {
				t.PullPolicy.ActiveDeadlineSeconds = longSeconds(r.Int63n(600))
			}
			if r.once(10) {
				t.CreatedAt, t.PullPolicy = nil, nil
			}
			if !r.once(3) {
				did(image, r.Int63n(3), pick(r, waiting, pulling, succeeded, failed, "Odd"))(all[i])
			}
		}
		if _, ok := all[i].Spec.Images["nginx"]; ok && r.once(2) {
			secretsOf("nginx", v1beta1.ReferenceObject{
				Namespace: "kruise-daemon-config", Name: "s", Mode: pick(r, "", v1beta1.ReferenceObjectModeBatch),
			})(all[i])
		}
	}
	return all
}

func (r *random) request() imagepull.Request {
	j := pullJob(pick(r, "a", "c"), "nginx:1", parallel(r.Int31n(5)-1))
	j.Spec.ImagePullPolicy = pick(r, v1beta1.PullAlways, v1beta1.PullIfNotPresent, "")
	if r.once(3) {
		never(j)
	}
	if r.once(2) {
		started(time.Duration(r.Intn(600)) * time.Second)(j)
		deadline(r.Int63n(600))(j)
	}
	q := request(j)
	if r.once(2) {
		q = request(j, "s")
	}
	q.Random = r.Uint32()
	return q
}

// standingOf a node by the letter of the promise, in no hurry.
func standingOf(q imagepull.Request, n *v1beta1.NodeImage) (state string, lacks bool) {
	for _, t := range n.Spec.Images["nginx"].Tags {
		if t.Tag != "1" {
			continue
		}
		for _, o := range t.OwnerReferences {
			if o.UID != q.Job.UID {
				continue
			}
			state = "active"
			for _, s := range n.Status.ImageStatuses["nginx"].Tags {
				if s.Tag == "1" && s.Version == t.Version && (s.Phase == succeeded || s.Phase == failed) {
					state = string(s.Phase)
				}
			}
		}
	}
	for _, want := range q.Secrets {
		there := false
		for _, have := range n.Spec.Images["nginx"].PullSecrets {
			there = there || have.Name == want.Name
		}
		lacks = lacks || !there
	}
	return state, lacks && state != ""
}

// expect is the plan of a job, as one would work it out on paper.
func expect(q imagepull.Request, all []*v1beta1.NodeImage) (status v1beta1.ImagePullJobStatus, tell []string) {
	byState := map[string][]string{}
	var mend []string
	for _, n := range all {
		state, lacks := standingOf(q, n)
		byState[state] = append(byState[state], n.Name)
		if lacks {
			mend = append(mend, n.Name)
		}
	}
	started := q.Job.Status.StartTime
	if started == nil {
		started = ago(0)
	}
	f, ok, on, ask := byState["Failed"], byState["Succeeded"], byState["active"], byState[""]
	status = counts(int32(len(all)), int32(len(on)), int32(len(ok)), int32(len(f)), "")
	status.StartTime = started
	completion, end := q.Job.Spec.CompletionPolicy, q.Job.Spec.CompletionPolicy.Type != v1beta1.Never
	switch {
	case end && len(all) == len(f)+len(ok):
		status.CompletionTime, status.Message = ago(0), "job has completed"
	case end && completion.ActiveDeadlineSeconds != nil &&
		!started.Add(time.Duration(*completion.ActiveDeadlineSeconds)*time.Second).After(noon()):
		status.CompletionTime, status.Message = ago(0), "job exceeds activeDeadlineSeconds"
		status.FailedNodes = append(append(append(status.FailedNodes, f...), on...), ask...)
		status.Failed, status.Active = int32(len(status.FailedNodes)), 0
		return status, nil
	case len(all) == 0:
		status.Message = "job is running, no progress"
	default:
		status.Message = fmt.Sprintf("job is running, progress %.1f%%", float64(len(f)+len(ok))*100/float64(len(all)))
	}
	if len(f) > 0 {
		status.FailedNodes = slices.Sorted(slices.Values(f))
	}
	limit := int(q.Job.Spec.Parallelism.IntVal)
	if limit <= 0 || status.CompletionTime != nil {
		return status, nil
	}
	tell = mend
	for on := len(on); on < limit && len(ask) > 0; on++ {
		tell, ask = append(tell, ask[0]), ask[1:]
	}
	return status, tell
}

func TestReviewLaws(t *testing.T) {
	eachCase(t, 5_000, func(r *random) string {
		q, all := r.request(), r.nodes(r.Intn(7))
		before := jsonOf(all) + jsonOf(q)
		plan, err := q.Review(all)
		if err != nil {
			return err.Error()
		}
		status, want := expect(q, all)
		if diff := cmp.Diff(status, plan.Status); diff != "" {
			return "status (-oracle +got):\n" + diff
		}
		if !slices.Equal(want, plan.Update) {
			return fmt.Sprintf("updates %v, not %v", plan.Update, want)
		}
		again, _ := q.Review(all)
		if diff := cmp.Diff(plan, again); diff != "" || jsonOf(all)+jsonOf(q) != before {
			return "asked twice, or the input has changed:\n" + diff
		}
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		shuffled, _ := q.Review(all)
		if shuffled.Status.Message != "job exceeds activeDeadlineSeconds" && cmp.Diff(plan.Status, shuffled.Status) != "" ||
			len(shuffled.Update) != len(plan.Update) {
			return "the order of the nodes changes more than the order of the updates"
		}
		return ""
	})
}

// A job is led to its end by a controller that does what the plans say and by nodes that pull, in any order. There are
// never more nodes at it than it allows, and at the end nothing is left to do.
func TestRolloutLaws(t *testing.T) {
	eachCase(t, 1_000, func(r *random) string {
		q, all := r.request(), r.nodes(1+r.Intn(6))
		q.Job.Spec.Parallelism, q.Job.Spec.CompletionPolicy.ActiveDeadlineSeconds = atMost(1+r.Int31n(3)), nil
		limit, most := int(q.Job.Spec.Parallelism.IntVal), 0
		for _, n := range all {
			if state, _ := standingOf(q, n); state == "active" {
				most++
			}
		}
		most = max(most, limit)
		for range 200 {
			plan, err := q.Review(all)
			if err != nil {
				return err.Error()
			}
			if int(plan.Status.Active) > most {
				return fmt.Sprintf("%d are active, of at most %d", plan.Status.Active, most)
			}
			if plan.Status.Succeeded+plan.Status.Failed == plan.Status.Desired && len(plan.Update) == 0 {
				return idle(q, all)
			}
			for i, n := range all {
				switch {
				case slices.Contains(plan.Update, n.Name):
					changed, err := q.Apply(n)
					if err != nil || changed == nil {
						return fmt.Sprintf("the plan updates %s, and Apply changes nothing: %v", n.Name, err)
					}
					if problem := kept(n, changed); problem != "" {
						return problem
					}
					all[i] = changed
				case r.once(2):
					all[i] = r.pull(n)
				}
			}
		}
		return "it does not end: " + jsonOf(all)
	})
}

// idle says what is still done for a job where nothing is left to do.
func idle(q imagepull.Request, all []*v1beta1.NodeImage) string {
	for _, n := range all {
		if changed, err := q.Apply(n); changed != nil || err != nil {
			return fmt.Sprintf("converged, and %s becomes %s, %v", n.Name, jsonOf(changed), err)
		}
	}
	return ""
}

// kept returns what Apply removed from a NodeImage; empty for nothing.
func kept(before, after *v1beta1.NodeImage) string {
	for name, image := range before.Spec.Images {
		for _, t := range image.Tags {
			at := slices.IndexFunc(after.Spec.Images[name].Tags, func(x v1beta1.ImageTagSpec) bool { return x.Tag == t.Tag })
			if at < 0 {
				return "a tag is lost"
			}
			now := after.Spec.Images[name].Tags[at]
			if now.Version < t.Version || len(now.OwnerReferences) < len(t.OwnerReferences) {
				return "a version goes back, or an owner is lost"
			}
		}
		if len(after.Spec.Images[name].PullSecrets) < len(image.PullSecrets) {
			return "a secret is lost"
		}
	}
	if !slices.IsSortedFunc(after.Spec.Images["nginx"].Tags, func(a, b v1beta1.ImageTagSpec) int {
		return strings.Compare(a.Tag, b.Tag)
	}) {
		return "tags are not sorted"
	}
	return ""
}

// pull is what a node does, with the plans of its own.
func (r *random) pull(n *v1beta1.NodeImage) *v1beta1.NodeImage {
	n = n.DeepCopy()
	plan := imagepull.Work(n, nil)
	for i, p := range plan.Start {
		p, _ = p.Next(noon())
		if r.once(2) {
			p = p.Succeed("x", noon())
		}
		for r.once(3) {
			p = p.Fail("no", noon())
		}
		plan.Start[i] = p
	}
	n.Status = imagepull.Work(n, plan.Start).Status
	return n
}
