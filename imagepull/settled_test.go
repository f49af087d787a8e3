package imagepull_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/imagepull"
)

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

// settled says what should not be there any more, or what no job waits for.
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
			if t.CreatedAt == nil ||
				slices.ContainsFunc(t.OwnerReferences, func(o corev1.ObjectReference) bool { return o.Name == "b" }) {
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

// TestCopyLaws: an applied plan leaves at most one copy, and nothing to do; the order of what exists is no matter.
func TestCopyLaws(t *testing.T) {
	eachCase(t, 5_000, func(r *random) string {
		in := imagepull.CopyInput{
			Source: types.NamespacedName{Namespace: "shop", Name: "s1"},
			Users:  pick(r, nil, list("shop/a"), list("shop/b", "shop/a")), KeepUsers: r.once(2),
		}
		if !r.once(4) {
			format := pick(r, corev1.SecretTypeDockerConfigJson, corev1.SecretTypeDockercfg, corev1.SecretTypeOpaque)
			in.Secret = secret("shop", "s1", format, pick(r, docker("1"), "{}", "["))
		}
		for i := range r.Intn(4) {
			in.Copies = append(in.Copies, copyOf("s1", fmt.Sprintf("c%d", i), pick(r, "1", "2"),
				pick(r, "", "shop/a", "shop/b", "shop/a,shop/b"), pick(r, immutable, legacy, func(*corev1.Secret) {})))
		}
		before := jsonOf(in)
		plan := imagepull.PlanCopy(in)
		if jsonOf(in) != before {
			return "the input has changed"
		}
		r.Shuffle(len(in.Copies), func(i, j int) { in.Copies[i], in.Copies[j] = in.Copies[j], in.Copies[i] })
		if diff := cmp.Diff(plan, imagepull.PlanCopy(in)); diff != "" {
			return "shuffled, it is another plan:\n" + diff
		}
		deleted := func(s *corev1.Secret) bool { return slices.Contains(plan.Delete, s) }
		if in.Copies = slices.DeleteFunc(in.Copies, deleted); plan.Apply != nil {
			named := func(s *corev1.Secret) bool { return s.Name == plan.Apply.Name }
			in.Copies = append(slices.DeleteFunc(in.Copies, named), plan.Apply)
		}
		again := imagepull.PlanCopy(in)
		if len(again.Delete) > 0 || again.Apply != nil || again.Reference != plan.Reference {
			return "applied, it is not settled: " + story(plan) + ", then " + story(again)
		}
		if plan.Problem == nil && len(in.Copies) != min(len(in.Users), 1) {
			return fmt.Sprintf("%d copies for the users %v", len(in.Copies), in.Users)
		}
		return ""
	})
}

// TestListLaws: applied, a list has one job an image, and the order of the jobs is no matter.
func TestListLaws(t *testing.T) {
	eachCase(t, 3_000, func(r *random) string {
		images := []string{"a:1", "b:1", "c:1", "d:1"}
		l, other := listJob(images[:r.Intn(5)]...), listJob()
		other.Spec.Parallelism = nil
		var jobs []*v1beta1.ImagePullJob
		for i := range r.Intn(7) {
			jobs = append(jobs, child(fmt.Sprintf("j%d", i), pick(r, images...), pick(r, l, l, other),
				at(2, r.Int31n(3), r.Int31n(3), r.Int31n(3))))
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
