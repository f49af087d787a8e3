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

// The picture is phase, match/waiting/running/succeeded/failed, and the conditions.
func TestPlan(t *testing.T) {
	refused := forbidden("no")
	for name, c := range map[string]struct {
		why     string
		job     *v1alpha1.EphemeralJob
		pods    string
		errs    map[string]error
		added   string
		want    string
		requeue time.Duration
	}{
		"first": {"one pod at a time by default", newJob(), "a b c", nil, "a", "Unknown 3/1/0/0/0", 0},
		"alone": {
			why: "a job whose targets all wait is Waiting", job: newJob(), pods: "a", added: "a", want: "Waiting 1/1/0/0/0",
		},
		"parallel": {
			why:   "as many as the parallelism allows",
			job:   newJob(parallelism(2)),
			pods:  "a b c",
			added: "a b",
			want:  "Unknown 3/2/0/0/0",
		},
		"free slots": {
			why:   "running pods use slots",
			job:   newJob(parallelism(3)),
			pods:  "a=running b c d",
			added: "b c",
			want:  "Running 4/2/1/0/0",
		},
		"the tail": {
			why:   "one is left, and slots are free",
			job:   newJob(parallelism(2)),
			pods:  "a=running b",
			added: "b",
			want:  "Running 2/1/1/0/0",
		},
		"pulling": {
			why:  "a container that is pulled uses a slot",
			job:  newJob(parallelism(2)),
			pods: "a=pulling b=waiting c",
			want: "Unknown 3/2/0/0/0",
		},
		"unreported": {
			why:  "a container that the kubelet has not reported uses a slot",
			job:  newJob(),
			pods: "a=added b",
			want: "Unknown 2/1/0/0/0",
		},
		"too many": {
			why:  "a parallelism that was lowered",
			job:  newJob(parallelism(1)),
			pods: "a=running b=running c",
			want: "Running 3/0/2/0/0",
		},
		"none": {
			why: "a stored parallelism below one", job: newJob(parallelism(-4)), pods: "a", want: "Unknown 1/0/0/0/0",
		},
		"largest": {
			why:   "a parallelism that no int32 sum holds",
			job:   newJob(parallelism(1<<31 - 1)),
			pods:  "a b",
			added: "a b",
			want:  "Waiting 2/2/0/0/0",
		},
		"replicas": {
			why:   "the first pods by creation",
			job:   newJob(replicas(2), parallelism(9)),
			pods:  "a b c",
			added: "a b",
			want:  "Waiting 2/2/0/0/0",
		},
		"replicas lowered": {
			why:  "later pods stop being targets",
			job:  newJob(replicas(1)),
			pods: "a=succeeded b=running",
			want: "Succeeded 1/0/0/1/0 over JobSucceeded=JobSucceeded",
		},
		"replicas beyond": {
			why:  "the job waits for the pods that do not exist yet",
			job:  newJob(replicas(3), parallelism(3)),
			pods: "a=succeeded",
			want: "Unknown 1/0/0/1/0",
		},
		"replicas failed": {
			why:  "also after a failure",
			job:  newJob(replicas(3)),
			pods: "a=succeeded b=failed",
			want: "Unknown 2/0/0/1/1 JobFailed=JobFailed",
		},
		"replicas wait": {
			why:   "a job is Waiting with all its pods",
			job:   newJob(replicas(3), parallelism(3)),
			pods:  "a b",
			added: "a b",
			want:  "Unknown 2/2/0/0/0",
		},
		"replicas there": {
			why:  "the last pod has come",
			job:  newJob(replicas(2)),
			pods: "a=succeeded b=succeeded",
			want: "Succeeded 2/0/0/2/0 over JobSucceeded=JobSucceeded",
		},
		"replicas and deadline": {
			why:  "the deadline ends the wait",
			job:  newJob(replicas(3), deadline(60)),
			pods: "a=succeeded",
			want: "Failed 1/0/0/1/0 over JobFailed=DeadlineExceeded",
		},
		"no replicas": {
			why: "the job is for no pod", job: newJob(replicas(0)), pods: "a", want: "Waiting 0/0/0/0/0 MatchedEmpty=MatchEmpty",
		},
		"held": {
			why: "parallelism 0 adds nothing", job: newJob(parallelism(0)), pods: "a=running b", want: "Running 2/0/1/0/0",
		},
		"no time": {
			why:  "deadline 0 has passed",
			job:  newJob(deadline(0)),
			pods: "a",
			want: "Failed 1/0/0/0/0 over JobFailed=DeadlineExceeded",
		},
		"replicas below zero": {
			why: "a stored one is none", job: newJob(replicas(-1)), pods: "a", want: "Waiting 0/0/0/0/0 MatchedEmpty=MatchEmpty",
		},
		"no pod": {
			why: "a job waits for pods", job: newJob(), want: "Waiting 0/0/0/0/0 MatchedEmpty=MatchEmpty",
		},
		"no target": {
			why:  "pods that are no targets",
			job:  newJob(),
			pods: "a=ended b=broken c=deleting d=unselected e=taken",
			want: "Waiting 0/0/0/0/0 MatchedEmpty=MatchEmpty",
		},
		"ended pod": {
			why:   "a pod that ended is replaced",
			job:   newJob(replicas(1)),
			pods:  "a=running,ended b",
			added: "b",
			want:  "Waiting 1/1/0/0/0",
		},
		"other names": {
			why:   "containers of other names do not matter",
			job:   newJob(),
			pods:  "a=debugged",
			added: "a",
			want:  "Waiting 1/1/0/0/0",
		},
		"mixed end": {
			why:  "succeeded and failed pods end the job",
			job:  newJob(),
			pods: "a=succeeded b=failed",
			want: "Failed 2/0/0/1/1 over JobFailed=JobFailed",
		},
		"unstarted": {
			why:  "a container that cannot start has failed",
			job:  newJob(),
			pods: "a=unstarted",
			want: "Failed 1/0/0/0/1 over JobFailed=JobFailed",
		},
		"first failure": {
			why:   "a failed pod stops no other one",
			job:   newJob(),
			pods:  "a=failed b",
			added: "b",
			want:  "Unknown 2/1/0/0/1 JobFailed=JobFailed",
		},
		"two containers": {
			why:  "both must succeed",
			job:  newJob(two),
			pods: "a=succeeded,running b=succeeded,failed c=succeeded,succeeded d=succeeded,waiting",
			want: "Running 4/1/1/1/1 JobFailed=JobFailed",
		},
		"one of two": {
			why:  "a pod with one container gets no other one",
			job:  newJob(two),
			pods: "a=succeeded",
			want: "Succeeded 1/0/0/1/0 over JobSucceeded=JobSucceeded",
		},
		"unknown state": {"a state without a part waits", newJob(), "a=unknown", nil, "", "Waiting 1/1/0/0/0", 0},
		"paused": {
			why: "nothing is added", job: newJob(paused, deadline(1)), pods: "a=running b", want: "Paused 2/0/1/0/0",
		},
		"paused end": {
			why:  "a paused job whose targets ended is over",
			job:  newJob(paused),
			pods: "a=succeeded",
			want: "Succeeded 1/0/0/1/0 over JobSucceeded=JobSucceeded",
		},
		"deadline": {
			why:     "the rest of the deadline",
			job:     newJob(deadline(100)),
			pods:    "a",
			added:   "a",
			want:    "Waiting 1/1/0/0/0",
			requeue: 40 * time.Second,
		},
		"deadline without a pod": {
			why: "it holds without targets", job: newJob(deadline(60)), want: "Failed 0/0/0/0/0 over JobFailed=DeadlineExceeded",
		},
		"past deadline": {
			why:  "no container is added",
			job:  newJob(deadline(60)),
			pods: "a=running b",
			want: "Failed 2/0/1/0/0 over JobFailed=DeadlineExceeded",
		},
		"end at the deadline": {
			why:  "the end comes first",
			job:  newJob(deadline(60)),
			pods: "a=succeeded",
			want: "Succeeded 1/0/0/1/0 over JobSucceeded=JobSucceeded",
		},
		"no such deadline": {
			why:  "a stored one below zero has passed",
			job:  newJob(deadline(-1 << 63)),
			pods: "a",
			want: "Failed 1/0/0/0/0 over JobFailed=DeadlineExceeded",
		},
		"endless deadline": {
			why:     "more seconds than a duration holds",
			job:     newJob(deadline(1<<63 - 1)),
			pods:    "a",
			added:   "a",
			want:    "Waiting 1/1/0/0/0",
			requeue: 100*365*24*time.Hour - time.Minute,
		},
		"unbound": {
			why:   "pods without a node come after the others",
			job:   newJob(parallelism(2)),
			pods:  "a=unbound b c",
			added: "b c",
			want:  "Unknown 3/2/0/0/0",
		},
		"unbound alone": {
			why:   "they get their containers nevertheless",
			job:   newJob(),
			pods:  "a=unbound",
			added: "a",
			want:  "Waiting 1/1/0/0/0",
		},
		"refusal": {
			why:     "a refusal is isolated, and uses no slot",
			job:     newJob(),
			pods:    "a b c",
			errs:    map[string]error{"a": refused},
			added:   "b",
			want:    "Unknown 3/1/0/0/0 JobFailed=CreateFailed",
			requeue: retryRefused,
		},
		"only refusals": {
			why:     "all are tried once",
			job:     newJob(),
			pods:    "a b",
			errs:    map[string]error{"a": refused, "b": refused},
			want:    "Unknown 2/0/0/0/0 JobFailed=CreateFailed",
			requeue: retryRefused,
		},
		"conflict": {
			why:     "a pod that has changed uses its slot in this pass",
			job:     newJob(),
			pods:    "a b",
			errs:    map[string]error{"a": apierrors.NewConflict(schema.GroupResource{}, "a", nil)},
			want:    "Unknown 2/0/0/0/0",
			requeue: time.Second,
		},
		"gone": {
			why:     "a pod that is gone",
			job:     newJob(),
			pods:    "a b",
			errs:    map[string]error{"a": apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "a")},
			want:    "Unknown 2/0/0/0/0",
			requeue: time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := c.job.DeepCopy()
			in := snapshot{job: c.job, pods: newPods(c.job, c.pods), now: epoch()}
			outcome, added := answered(planOf(in), c.errs)
			if got := strings.Join(added, " "); got != c.added {
				t.Errorf("%s: added %q, want %q", c.why, got, c.added)
			}
			if got := picture(outcome.Status); got != c.want || outcome.RequeueAfter != c.requeue || outcome.Err != nil {
				t.Errorf("%s: %s after %v, %v; want %s after %v", c.why, got, outcome.RequeueAfter, outcome.Err, c.want, c.requeue)
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
