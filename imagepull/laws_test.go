package imagepull_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
			secretsOf("nginx", v1beta1.ReferenceObject{Namespace: "kruise-daemon-config", Name: "s", Mode: pick(r, "", v1beta1.ReferenceObjectModeBatch)})(all[i])
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
	case end && completion.ActiveDeadlineSeconds != nil && !started.Add(time.Duration(*completion.ActiveDeadlineSeconds)*time.Second).After(noon()):
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
		status, tell := expect(q, all)
		if diff := cmp.Diff(status, plan.Status); diff != "" {
			return "status (-oracle +got):\n" + diff
		}
		if !slices.Equal(tell, plan.Tell) {
			return fmt.Sprintf("tells %v, not %v", plan.Tell, tell)
		}
		again, _ := q.Review(all)
		if diff := cmp.Diff(plan, again); diff != "" || jsonOf(all)+jsonOf(q) != before {
			return "asked twice, or the input has changed:\n" + diff
		}
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		shuffled, _ := q.Review(all)
		if shuffled.Status.Message != "job exceeds activeDeadlineSeconds" && cmp.Diff(plan.Status, shuffled.Status) != "" || len(shuffled.Tell) != len(plan.Tell) {
			return "the order of the nodes changes more than the order of what is told"
		}
		return ""
	})
}

// A job is led to its end by a controller that does what the plans say and by nodes that pull, in any order. There are never
// more nodes at it than it allows, and at the end nothing is left to do.
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
			if plan.Status.Succeeded+plan.Status.Failed == plan.Status.Desired && len(plan.Tell) == 0 {
				return idle(q, all)
			}
			for i, n := range all {
				switch {
				case slices.Contains(plan.Tell, n.Name):
					told, err := q.Tell(n)
					if err != nil || told == nil {
						return fmt.Sprintf("%s is to be told, and there is nothing to tell: %v", n.Name, err)
					}
					if problem := kept(n, told); problem != "" {
						return problem
					}
					all[i] = told
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
		if told, err := q.Tell(n); told != nil || err != nil {
			return fmt.Sprintf("converged, and %s is told %s, %v", n.Name, jsonOf(told), err)
		}
	}
	return ""
}

// kept says what a NodeImage has lost by being told.
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
	if !slices.IsSortedFunc(after.Spec.Images["nginx"].Tags, func(a, b v1beta1.ImageTagSpec) int { return strings.Compare(a.Tag, b.Tag) }) {
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

// TestMaintainLaws applies a plan and asks again, until there is nothing to do but wait.
func TestMaintainLaws(t *testing.T) {
	eachCase(t, 5_000, func(r *random) string {
		u := imagepull.Upkeep{
			Image: r.nodes(1)[0], Node: clusterNode(), Now: noon(), Random: r.Uint32(),
			OwnerGone: func(o corev1.ObjectReference) bool { return o.Name == "b" },
			SecretGone: func(v1beta1.ReferenceObject) bool {
				return true
			},
		}
		u.Node.Name = u.Image.Name
		for range 4 {
			before := jsonOf(u.Image)
			plan := imagepull.Maintain(u)
			if diff := cmp.Diff(plan, imagepull.Maintain(u)); diff != "" || jsonOf(u.Image) != before {
				return "asked twice, or the input has changed:\n" + diff
			}
			switch {
			case plan.Update != nil && plan.Status != nil:
				return "two writes at once"
			case plan.Update != nil:
				u.Image = plan.Update
			case plan.Status != nil:
				if want := countOf(u.Image, plan.Status); cmp.Diff(want, *plan.Status) != "" {
					return "counts: " + jsonOf(plan.Status)
				}
				u.Image.Status = *plan.Status
			default:
				return settled(u.Image, plan)
			}
		}
		return "it goes on for ever"
	})
}

// countOf a status, in no hurry.
func countOf(n *v1beta1.NodeImage, s *v1beta1.NodeImageStatus) v1beta1.NodeImageStatus {
	want := *s.DeepCopy()
	want.Desired, want.Succeeded, want.Failed, want.Pulling, want.Waiting = 0, 0, 0, 0, 0
	for name, image := range n.Spec.Images {
		want.Desired += int32(len(image.Tags))
		for _, t := range s.ImageStatuses[name].Tags {
			switch t.Phase {
			case succeeded:
				want.Succeeded++
			case failed:
				want.Failed++
			case pulling:
				want.Pulling++
			default:
				want.Waiting++
			}
		}
	}
	return want
}

// settled says what should not be there any more, or what nobody waits for.
func settled(n *v1beta1.NodeImage, plan imagepull.UpkeepPlan) string {
	waits := false
	for name, image := range n.Spec.Images {
		if len(image.Tags) == 0 {
			return "an image without tags"
		}
		for _, s := range image.PullSecrets {
			if s.Mode == "" {
				return "a secret that is gone"
			}
		}
		for _, t := range image.Tags {
			if t.CreatedAt == nil || slices.ContainsFunc(t.OwnerReferences, func(o corev1.ObjectReference) bool { return o.Name == "b" }) {
				return "a tag that nobody asks for"
			}
			told := false
			for _, s := range n.Status.ImageStatuses[name].Tags {
				told = told || s.Tag == t.Tag && s.Version == t.Version
				waits = waits || s.Tag == t.Tag && s.Version == t.Version && s.CompletionTime != nil
			}
			waits = waits || !told
		}
	}
	if waits && plan.RequeueAfter < 3*time.Second {
		return fmt.Sprintf("again after %v", plan.RequeueAfter)
	}
	return ""
}

// TestSecretsLaws: applied, a claim is settled; the order of what exists is no matter; nobody else's use is forgotten.
func TestSecretsLaws(t *testing.T) {
	eachCase(t, 5_000, func(r *random) string {
		c := imagepull.Claim{Job: pullJob("a", "nginx", wants(pick(r, nil, list("s1"), list("s2", "s1"), list("s3"))...)), Random: r.Uint32()}
		if r.once(4) {
			completed(0)(c.Job)
		}
		for i := range r.Intn(3) {
			c.Sources = append(c.Sources, secret("shop", fmt.Sprintf("s%d", i+1), pick(r, corev1.SecretTypeDockerConfigJson, corev1.SecretTypeDockercfg), pick(r, "1", "2")))
		}
		for i := range r.Intn(5) {
			change := pick(r, immutable, legacy, func(*corev1.Secret) {})
			c.Copies = append(c.Copies, copyOf(pick(r, "s1", "s2", "s4"), fmt.Sprintf("c%d", i), pick(r, "1", "2"), pick(r, "", "shop/a", "shop/b", "shop/a,shop/b"), change))
		}
		before := jsonOf(c)
		plan := imagepull.Secrets(c)
		if jsonOf(c) != before {
			return "the claim has changed"
		}
		r.Shuffle(len(c.Copies), func(i, j int) { c.Copies[i], c.Copies[j] = c.Copies[j], c.Copies[i] })
		r.Shuffle(len(c.Sources), func(i, j int) { c.Sources[i], c.Sources[j] = c.Sources[j], c.Sources[i] })
		if diff := cmp.Diff(plan, imagepull.Secrets(c)); diff != "" {
			return "shuffled, it is another plan:\n" + diff
		}
		others := usedByOthers(c.Copies)
		c.Copies = applied(c.Copies, plan)
		if left := usedByOthers(c.Copies); left != others {
			return fmt.Sprintf("others used %d secrets, and now %d", others, left)
		}
		again := imagepull.Secrets(c)
		if len(again.Create)+len(again.Update)+len(again.Delete) > 0 || cmp.Diff(plan.References, again.References) != "" {
			return "applied, it is not settled: " + story(plan) + ", then " + story(again)
		}
		return ""
	})
}

func usedByOthers(copies []*corev1.Secret) int {
	n := 0
	for _, s := range copies {
		n += strings.Count(s.Annotations[v1beta1.ImagePullSecretReferencesKey], "shop/b")
	}
	return n
}

func applied(copies []*corev1.Secret, plan imagepull.ClaimPlan) []*corev1.Secret {
	var left []*corev1.Secret
	for _, s := range copies {
		named := func(x *corev1.Secret) bool { return x.Name == s.Name }
		if slices.ContainsFunc(plan.Delete, named) {
			continue
		}
		if at := slices.IndexFunc(plan.Update, named); at >= 0 {
			s = plan.Update[at]
		}
		left = append(left, s)
	}
	return append(left, plan.Create...)
}

// TestListLaws: applied, a list has one job an image, and the order of the jobs is no matter.
func TestListLaws(t *testing.T) {
	eachCase(t, 3_000, func(r *random) string {
		images := []string{"a:1", "b:1", "c:1", "d:1"}
		l, other := listJob(images[:r.Intn(5)]...), listJob()
		other.Spec.Parallelism = nil
		var jobs []*v1beta1.ImagePullJob
		for i := range r.Intn(7) {
			jobs = append(jobs, child(fmt.Sprintf("j%d", i), pick(r, images...), pick(r, l, l, other), at(2, r.Int31n(3), r.Int31n(3), r.Int31n(3))))
		}
		plan := imagepull.List(l, jobs, noon())
		r.Shuffle(len(jobs), func(i, j int) { jobs[i], jobs[j] = jobs[j], jobs[i] })
		if diff := cmp.Diff(plan, imagepull.List(l, jobs, noon())); diff != "" {
			return "shuffled, it is another plan:\n" + diff
		}
		left := slices.DeleteFunc(jobs, func(j *v1beta1.ImagePullJob) bool { return slices.Contains(plan.DeleteJobs, j) })
		left = append(left, plan.Create...)
		var have []string
		for _, j := range left {
			have = append(have, j.Spec.Image)
			j.OwnerReferences = []metav1.OwnerReference{{UID: l.UID}}
		}
		slices.Sort(have)
		if !slices.Equal(have, l.Spec.Images) {
			return fmt.Sprintf("jobs for %v, want %v", have, l.Spec.Images)
		}
		if again := imagepull.List(l, left, noon()); len(again.Create)+len(again.DeleteJobs) > 0 {
			return "applied, it is not settled"
		}
		return ""
	})
}
