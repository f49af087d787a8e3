package ephemeraljob

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
)

func forbidden(why string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "x", errors.New(why))
}

// TestLaws has the counters of valid jobs. These rows have conditions, requeues, values beyond their bounds, and errors
// of writes. The picture is phase, match/waiting/running/succeeded/failed, and the conditions.
func TestPlan(t *testing.T) {
	refused := forbidden("no")
	for name, c := range map[string]struct {
		job         *ephemeralJob
		pods        string
		errs        map[string]error
		added, want string
		requeue     time.Duration
	}{
		"a parallelism below zero": {job: newJob(parallelism(-4)), pods: "a", want: "Unknown 1/0/0/0/0"},
		"a parallelism that no int32 sum holds": {
			job: newJob(parallelism(1<<31 - 1)), pods: "a b", added: "a b", want: "Waiting 2/2/0/0/0",
		},
		"replicas below zero are none": {
			job: newJob(replicas(-1)), pods: "a", want: "Waiting 0/0/0/0/0 MatchedEmpty=MatchEmpty",
		},
		"a failure before the last pod exists": {
			job: newJob(replicas(3)), pods: "a=succeeded b=failed", want: "Unknown 2/0/0/1/1 JobFailed=JobFailed",
		},
		"no pod is a target": {
			job: newJob(), pods: "a=ended b=broken c=deleting d=unselected e=taken",
			want: "Waiting 0/0/0/0/0 MatchedEmpty=MatchEmpty",
		},
		"every pod has succeeded": {
			job: newJob(), pods: "a=succeeded", want: "Succeeded 1/0/0/1/0 over JobSucceeded=JobSucceeded",
		},
		"a container that cannot start has failed": {
			job: newJob(), pods: "a=unstarted b=succeeded", want: "Failed 2/0/0/1/1 over JobFailed=JobFailed",
		},
		"both containers must succeed": {
			job:  newJob(two),
			pods: "a=succeeded,running b=succeeded,failed c=succeeded,succeeded d=succeeded,waiting",
			want: "Running 4/1/1/1/1 JobFailed=JobFailed",
		},
		"a pod with one of two containers gets no other one": {
			job: newJob(two), pods: "a=succeeded", want: "Succeeded 1/0/0/1/0 over JobSucceeded=JobSucceeded",
		},
		"the rest of the deadline": {
			job: newJob(deadline(100)), pods: "a", added: "a", want: "Waiting 1/1/0/0/0", requeue: 40 * time.Second,
		},
		"past the deadline": {
			job: newJob(deadline(60)), pods: "a=running b", want: "Failed 2/0/1/0/0 over JobFailed=DeadlineExceeded",
		},
		"a deadline below zero has passed": {
			job: newJob(deadline(-1 << 63)), pods: "a", want: "Failed 1/0/0/0/0 over JobFailed=DeadlineExceeded",
		},
		"a deadline that no duration holds": {
			job: newJob(deadline(1<<63 - 1)), pods: "a", added: "a", want: "Waiting 1/1/0/0/0",
			requeue: 100*365*24*time.Hour - time.Minute,
		},
		"a refusal uses no slot": {
			job: newJob(), pods: "a b c", errs: map[string]error{"a": refused}, added: "b",
			want: "Unknown 3/1/0/0/0 JobFailed=CreateFailed", requeue: retryRefused,
		},
		"all refuse, and each is tried once": {
			job: newJob(), pods: "a b", errs: map[string]error{"a": refused, "b": refused},
			want: "Unknown 2/0/0/0/0 JobFailed=CreateFailed", requeue: retryRefused,
		},
		"a pod that has changed uses its slot in this pass": {
			job: newJob(), pods: "a b",
			errs: map[string]error{"a": apierrors.NewConflict(schema.GroupResource{}, "a", nil)},
			want: "Unknown 2/0/0/0/0", requeue: time.Second,
		},
		"a pod that is gone": {
			job: newJob(), pods: "a b",
			errs: map[string]error{"a": apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "a")},
			want: "Unknown 2/0/0/0/0", requeue: time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := c.job.DeepCopy()
			in := snapshot{job: c.job, pods: newPods(c.job, c.pods), now: epoch()}
			outcome, added := answered(planOf(in), c.errs)
			if got := strings.Join(added, " "); got != c.added {
				t.Errorf("added %q, want %q", got, c.added)
			}
			if got := picture(outcome.Status); got != c.want || outcome.RequeueAfter != c.requeue || outcome.Err != nil {
				t.Errorf("%s after %v, %v; want %s after %v", got, outcome.RequeueAfter, outcome.Err, c.want, c.requeue)
			}
			if (outcome.Turn != nil) != (outcome.Status.CompletionTime != nil) {
				t.Errorf("turn %v", outcome.Turn)
			}
			if diff := cmp.Diff(before, c.job); diff != "" {
				t.Errorf("the input changed:\n%s", diff)
			}
		})
	}
}

// A job that is over, or being deleted, stays as it is.
func TestOver(t *testing.T) {
	for name, c := range map[string]struct {
		job                 *v1alpha1.EphemeralJob
		deleteJob, finalize bool
		requeue             time.Duration
	}{
		"default":    {newJob(ended(time.Minute)), false, false, 29 * time.Minute},
		"ttl":        {newJob(ended(time.Minute), ttl(90)), false, false, 30 * time.Second},
		"past":       {newJob(ended(time.Minute), ttl(60)), true, false, 0},
		"at once":    {newJob(ended(0), ttl(0)), true, false, 0},
		"below zero": {newJob(ended(0), ttl(-5)), true, false, 0},
		"finalizer":  {newJob(ended(0), ttl(0), finalizer), true, true, 0},
		"deleted":    {newJob(deleting, finalizer), false, true, 0},
		"only others": {
			job: newJob(deleting, func(j *v1alpha1.EphemeralJob) { j.Finalizers = []string{"example.com/other"} }),
		},
	} {
		t.Run(name, func(t *testing.T) {
			pass := planOf(snapshot{job: c.job, pods: newPods(c.job, "a b=running"), now: epoch()})
			outcome, added := answered(pass, nil)
			_, drops := pass.finalizers()
			if len(added) > 0 || pass.deleteJob != c.deleteJob || drops != c.finalize ||
				outcome.RequeueAfter != c.requeue {
				t.Errorf("added %v, delete %v, finalizer %v, requeue %v",
					added, pass.deleteJob, drops, outcome.RequeueAfter)
			}
			if diff := cmp.Diff(c.job.Status, outcome.Status); diff != "" {
				t.Errorf("the status changes:\n%s", diff)
			}
		})
	}
}

// A spec that cannot work is an error of the job, until the spec is another one.
func TestInvalid(t *testing.T) {
	for name, c := range map[string]struct {
		change change
		fault  error
		want   string
	}{
		"no selector": {
			func(j *v1alpha1.EphemeralJob) { j.Spec.Selector = nil }, nil, "spec.selector: must not be empty",
		},
		"empty selector": {
			func(j *v1alpha1.EphemeralJob) { j.Spec.Selector.MatchLabels = nil }, nil, "spec.selector: must not be empty",
		},
		"bad selector": {
			func(j *v1alpha1.EphemeralJob) { j.Spec.Selector.MatchLabels["a"] = "?" }, nil, "spec.selector: ",
		},
		"empty template": {
			func(j *v1alpha1.EphemeralJob) { j.Spec.Template.EphemeralContainers = nil }, nil,
			"spec.template.ephemeralContainers: must not be empty",
		},
		"cannot be decoded": {func(*v1alpha1.EphemeralJob) {}, errors.New("spec is a list"), "spec is a list"},
		"long":              {func(*v1alpha1.EphemeralJob) {}, errors.New(strings.Repeat("ä", 5000)), "ä"},
	} {
		t.Run(name, func(t *testing.T) {
			job := newJob(c.change)
			in := snapshot{job: job, pods: newPods(job, "a"), fault: c.fault, now: epoch()}
			outcome, added := answered(planOf(in), nil)
			last := outcome.Status.Conditions[len(outcome.Status.Conditions)-1]
			if len(added) > 0 || picture(outcome.Status) != "Error 0/0/0/0/0 JobError=Error" ||
				!strings.HasPrefix(last.Message, c.want) || len(last.Message) > 1100 {
				t.Errorf("%s, %q", picture(outcome.Status), last.Message)
			}
			in.job, in.fault = newJob(), nil
			in.job.Status = outcome.Status
			if outcome, _ := answered(planOf(in), nil); picture(outcome.Status) != "Waiting 1/1/0/0/0" {
				t.Errorf("after it was mended: %s", picture(outcome.Status))
			}
		})
	}
}

// A pod that refuses is tried again after a while. The job goes on with the others.
func TestRefusals(t *testing.T) {
	job := newJob()
	in := snapshot{job: job, pods: newPods(job, "a b c"), now: epoch()}
	errs := map[string]error{"a": forbidden("not here")}
	outcome, _ := answered(planOf(in), errs)
	if len(outcome.NewlyRefused) != 1 || outcome.NewlyRefused[0].Object != "a" ||
		!strings.Contains(outcome.NewlyRefused[0].Text, "not here") {
		t.Errorf("newly refused %v", outcome.NewlyRefused)
	}
	in.pods, in.refused, in.job.Status = newPods(job, "a b=succeeded c"), outcome.Refused, outcome.Status
	if outcome, added := answered(planOf(in), errs); !slices.Equal(added, []string{"c"}) ||
		outcome.RequeueAfter != retryRefused {
		t.Errorf("before its time: added %v, requeue %v", added, outcome.RequeueAfter)
	}
	in.pods = newPods(job, "a b=succeeded c=succeeded")
	in.now = outcome.Refused["uid-a"].retryAt
	outcome, _ = answered(planOf(in), errs)
	if len(outcome.NewlyRefused) > 0 || outcome.RequeueAfter != retryRefused {
		t.Errorf("again: newly refused %v, requeue %v", outcome.NewlyRefused, outcome.RequeueAfter)
	}
	in.refused, in.job.Status = outcome.Refused, outcome.Status
	in.now = in.refused["uid-a"].retryAt
	if outcome, added := answered(planOf(in), nil); !slices.Equal(added, []string{"a"}) ||
		len(outcome.Refused) > 0 || strings.Contains(picture(outcome.Status), "JobFailed") {
		t.Errorf("at last: added %v, refused %v, %s", added, outcome.Refused, picture(outcome.Status))
	}
}

// The limits are those of docs/security.md.
func TestDocumentedLimits(t *testing.T) {
	page, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	row := fmt.Sprintf("| pods that refuse the containers of an EphemeralJob | %d in a pass, each again after %d "+
		"seconds |", maxRefusals, retryRefused/time.Second)
	if !strings.Contains(string(page), row) {
		t.Errorf("docs/security.md lacks %q", row)
	}
}

// An API server that fails ends the pass. The status is that of the answers.
func TestFailure(t *testing.T) {
	job := newJob(parallelism(9))
	job.Status = v1alpha1.EphemeralJobStatus{}
	pass := planOf(snapshot{job: job, pods: newPods(job, "a b c d"), now: epoch()})
	writes := pass.batch()
	pass.added(writes[0], nil)
	pass.added(writes[1], apierrors.NewInternalError(errors.New("down")))
	if more := pass.batch(); len(more) > 0 {
		t.Errorf("%d more writes", len(more))
	}
	status := pass.status()
	if len(pass.failed) == 0 || picture(status) != "Unknown 4/1/0/0/0" ||
		!status.StartTime.Equal(ptrTo(epoch())) {
		t.Errorf("%v, %s since %v", pass.failed, picture(status), status.StartTime)
	}
}

// Conditions keep their times, and those that no longer hold are removed.
func TestConditions(t *testing.T) {
	job := newJob()
	in := snapshot{job: job, now: epoch()}
	outcome, _ := answered(planOf(in), nil)
	in.job.Status, in.now = outcome.Status, epoch().Add(time.Hour)
	again, _ := answered(planOf(in), nil)
	if diff := cmp.Diff(outcome.Status, again.Status); diff != "" {
		t.Errorf("a pass without a change changes the status:\n%s", diff)
	}
	in.pods = newPods(job, "a=taken")
	taken, _ := answered(planOf(in), nil)
	c := taken.Status.Conditions[1]
	if !strings.HasSuffix(c.Message, "names of the template: a") || !c.LastTransitionTime.Equal(ptrTo(epoch())) ||
		!c.LastProbeTime.Equal(ptrTo(in.now)) {
		t.Errorf("condition %+v", c)
	}
	in.pods = newPods(job, "a")
	if found, _ := answered(planOf(in), nil); picture(found.Status) != "Waiting 1/1/0/0/0" {
		t.Errorf("with a pod: %s", picture(found.Status))
	}
}
