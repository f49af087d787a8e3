package ephemeral_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/controllers/ephemeraljob/ephemeral"
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
		"first":                  {"one pod at a time by default", newJob(), "a b c", nil, "a", "Unknown 3/1/0/0/0", 0},
		"alone":                  {"a job whose targets all wait is Waiting", newJob(), "a", nil, "a", "Waiting 1/1/0/0/0", 0},
		"parallel":               {"as many as the parallelism allows", newJob(parallelism(2)), "a b c", nil, "a b", "Unknown 3/2/0/0/0", 0},
		"free slots":             {"running pods use slots", newJob(parallelism(3)), "a=running b c d", nil, "b c", "Running 4/2/1/0/0", 0},
		"the tail":               {"one is left, and slots are free", newJob(parallelism(2)), "a=running b", nil, "b", "Running 2/1/1/0/0", 0},
		"pulling":                {"a container that is pulled uses a slot", newJob(parallelism(2)), "a=pulling b=waiting c", nil, "", "Unknown 3/2/0/0/0", 0},
		"unreported":             {"a container that the kubelet has not reported uses a slot", newJob(), "a=added b", nil, "", "Unknown 2/1/0/0/0", 0},
		"too many":               {"a parallelism that was lowered", newJob(parallelism(1)), "a=running b=running c", nil, "", "Running 3/0/2/0/0", 0},
		"none":                   {"a stored parallelism below one", newJob(parallelism(-4)), "a", nil, "", "Unknown 1/0/0/0/0", 0},
		"largest":                {"a parallelism that no int32 sum holds", newJob(parallelism(1<<31 - 1)), "a b", nil, "a b", "Waiting 2/2/0/0/0", 0},
		"replicas":               {"the first pods by creation", newJob(replicas(2), parallelism(9)), "a b c", nil, "a b", "Waiting 2/2/0/0/0", 0},
		"replicas lowered":       {"later pods stop being targets", newJob(replicas(1)), "a=succeeded b=running", nil, "", "Succeeded 1/0/0/1/0 over JobSucceeded=JobSucceeded", 0},
		"replicas beyond":        {"the job waits for the pods that do not exist yet", newJob(replicas(3), parallelism(3)), "a=succeeded", nil, "", "Unknown 1/0/0/1/0", 0},
		"replicas failed":        {"also after a failure", newJob(replicas(3)), "a=succeeded b=failed", nil, "", "Unknown 2/0/0/1/1 JobFailed=JobFailed", 0},
		"replicas wait":          {"a job is Waiting with all its pods", newJob(replicas(3), parallelism(3)), "a b", nil, "a b", "Unknown 2/2/0/0/0", 0},
		"replicas there":         {"the last pod has come", newJob(replicas(2)), "a=succeeded b=succeeded", nil, "", "Succeeded 2/0/0/2/0 over JobSucceeded=JobSucceeded", 0},
		"replicas and deadline":  {"the deadline ends the wait", newJob(replicas(3), deadline(60)), "a=succeeded", nil, "", "Failed 1/0/0/1/0 over JobFailed=DeadlineExceeded", 0},
		"no replicas":            {"the job is for no pod", newJob(replicas(0)), "a", nil, "", "Waiting 0/0/0/0/0 MatchedEmpty=MatchEmpty", 0},
		"held":                   {"parallelism 0 adds nothing", newJob(parallelism(0)), "a=running b", nil, "", "Running 2/0/1/0/0", 0},
		"no time":                {"deadline 0 has passed", newJob(deadline(0)), "a", nil, "", "Failed 1/0/0/0/0 over JobFailed=DeadlineExceeded", 0},
		"replicas below zero":    {"a stored one is none", newJob(replicas(-1)), "a", nil, "", "Waiting 0/0/0/0/0 MatchedEmpty=MatchEmpty", 0},
		"no pod":                 {"a job waits for pods", newJob(), "", nil, "", "Waiting 0/0/0/0/0 MatchedEmpty=MatchEmpty", 0},
		"no target":              {"pods that are no targets", newJob(), "a=ended b=broken c=deleting d=unselected e=taken", nil, "", "Waiting 0/0/0/0/0 MatchedEmpty=MatchEmpty", 0},
		"ended pod":              {"a pod that ended is replaced", newJob(replicas(1)), "a=running,ended b", nil, "b", "Waiting 1/1/0/0/0", 0},
		"other names":            {"containers of other names do not matter", newJob(), "a=debugged", nil, "a", "Waiting 1/1/0/0/0", 0},
		"mixed end":              {"succeeded and failed pods end the job", newJob(), "a=succeeded b=failed", nil, "", "Failed 2/0/0/1/1 over JobFailed=JobFailed", 0},
		"unstarted":              {"a container that cannot start has failed", newJob(), "a=unstarted", nil, "", "Failed 1/0/0/0/1 over JobFailed=JobFailed", 0},
		"first failure":          {"a failed pod stops no other one", newJob(), "a=failed b", nil, "b", "Unknown 2/1/0/0/1 JobFailed=JobFailed", 0},
		"two containers":         {"both must succeed", newJob(two), "a=succeeded,running b=succeeded,failed c=succeeded,succeeded d=succeeded,waiting", nil, "", "Running 4/1/1/1/1 JobFailed=JobFailed", 0},
		"one of two":             {"a pod with one container gets no other one", newJob(two), "a=succeeded", nil, "", "Succeeded 1/0/0/1/0 over JobSucceeded=JobSucceeded", 0},
		"unknown state":          {"a state without a part waits", newJob(), "a=unknown", nil, "", "Waiting 1/1/0/0/0", 0},
		"paused":                 {"nothing is added", newJob(paused, deadline(1)), "a=running b", nil, "", "Paused 2/0/1/0/0", 0},
		"paused end":             {"a paused job whose targets ended is over", newJob(paused), "a=succeeded", nil, "", "Succeeded 1/0/0/1/0 over JobSucceeded=JobSucceeded", 0},
		"deadline":               {"the rest of the deadline", newJob(deadline(100)), "a", nil, "a", "Waiting 1/1/0/0/0", 40 * time.Second},
		"deadline without a pod": {"it holds without targets", newJob(deadline(60)), "", nil, "", "Failed 0/0/0/0/0 over JobFailed=DeadlineExceeded", 0},
		"past deadline":          {"no container is added", newJob(deadline(60)), "a=running b", nil, "", "Failed 2/0/1/0/0 over JobFailed=DeadlineExceeded", 0},
		"end at the deadline":    {"the end comes first", newJob(deadline(60)), "a=succeeded", nil, "", "Succeeded 1/0/0/1/0 over JobSucceeded=JobSucceeded", 0},
		"no such deadline":       {"a stored one below zero has passed", newJob(deadline(-1 << 63)), "a", nil, "", "Failed 1/0/0/0/0 over JobFailed=DeadlineExceeded", 0},
		"endless deadline":       {"more seconds than a duration holds", newJob(deadline(1<<63 - 1)), "a", nil, "a", "Waiting 1/1/0/0/0", 100*365*24*time.Hour - time.Minute},
		"unbound":                {"pods without a node come after the others", newJob(parallelism(2)), "a=unbound b c", nil, "b c", "Unknown 3/2/0/0/0", 0},
		"unbound alone":          {"they get their containers nevertheless", newJob(), "a=unbound", nil, "a", "Waiting 1/1/0/0/0", 0},
		"refusal":                {"a refusal is isolated, and uses no slot", newJob(), "a b c", map[string]error{"a": refused}, "b", "Unknown 3/1/0/0/0 JobFailed=CreateFailed", 5 * time.Second},
		"only refusals":          {"all are tried once", newJob(), "a b", map[string]error{"a": refused, "b": refused}, "", "Unknown 2/0/0/0/0 JobFailed=CreateFailed", 5 * time.Second},
		"conflict":               {"a pod that has changed uses its slot in this pass", newJob(), "a b", map[string]error{"a": apierrors.NewConflict(schema.GroupResource{}, "a", nil)}, "", "Unknown 2/0/0/0/0", time.Second},
		"gone":                   {"a pod that is gone", newJob(), "a b", map[string]error{"a": apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "a")}, "", "Unknown 2/0/0/0/0", time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			before := c.job.DeepCopy()
			in := ephemeral.Input{Job: c.job, Pods: newPods(c.job, c.pods), Now: epoch()}
			outcome, added := answered(ephemeral.Plan(in), c.errs)
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
		"default":     {newJob(ended(time.Minute)), false, false, 29 * time.Minute},
		"ttl":         {newJob(ended(time.Minute), ttl(90)), false, false, 30 * time.Second},
		"past":        {newJob(ended(time.Minute), ttl(60)), true, false, 0},
		"at once":     {newJob(ended(0), ttl(0)), true, false, 0},
		"below zero":  {newJob(ended(0), ttl(-5)), true, false, 0},
		"finalizer":   {newJob(ended(0), ttl(0), finalizer), true, true, 0},
		"deleted":     {newJob(deleting, finalizer), false, true, 0},
		"only others": {newJob(deleting, func(j *v1alpha1.EphemeralJob) { j.Finalizers = []string{"example.com/other"} }), false, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			pass := ephemeral.Plan(ephemeral.Input{Job: c.job, Pods: newPods(c.job, "a b=running"), Now: epoch()})
			outcome, added := answered(pass, nil)
			if len(added) > 0 || pass.DeleteJob != c.deleteJob || pass.DropFinalizer != c.finalize || outcome.RequeueAfter != c.requeue {
				t.Errorf("added %v, delete %v, finalizer %v, requeue %v", added, pass.DeleteJob, pass.DropFinalizer, outcome.RequeueAfter)
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
		"no selector":       {func(j *v1alpha1.EphemeralJob) { j.Spec.Selector = nil }, nil, "spec.selector: must not be empty"},
		"empty selector":    {func(j *v1alpha1.EphemeralJob) { j.Spec.Selector.MatchLabels = nil }, nil, "spec.selector: must not be empty"},
		"bad selector":      {func(j *v1alpha1.EphemeralJob) { j.Spec.Selector.MatchLabels["a"] = "?" }, nil, "spec.selector: "},
		"empty template":    {func(j *v1alpha1.EphemeralJob) { j.Spec.Template.EphemeralContainers = nil }, nil, "spec.template.ephemeralContainers: must not be empty"},
		"cannot be decoded": {func(*v1alpha1.EphemeralJob) {}, errors.New("spec is a list"), "spec is a list"},
		"long":              {func(*v1alpha1.EphemeralJob) {}, errors.New(strings.Repeat("ä", 5000)), "ä"},
	} {
		t.Run(name, func(t *testing.T) {
			job := newJob(c.change)
			in := ephemeral.Input{Job: job, Pods: newPods(job, "a"), Fault: c.fault, Now: epoch()}
			outcome, added := answered(ephemeral.Plan(in), nil)
			last := outcome.Status.Conditions[len(outcome.Status.Conditions)-1]
			if len(added) > 0 || picture(outcome.Status) != "Error 0/0/0/0/0 JobError=Error" || !strings.HasPrefix(last.Message, c.want) || len(last.Message) > 600 {
				t.Errorf("%s, %q", picture(outcome.Status), last.Message)
			}
			in.Job, in.Fault = newJob(), nil
			in.Job.Status = outcome.Status
			if outcome, _ := answered(ephemeral.Plan(in), nil); picture(outcome.Status) != "Waiting 1/1/0/0/0" {
				t.Errorf("after it was mended: %s", picture(outcome.Status))
			}
		})
	}
}

// A pod that refuses is tried again later and later, and after the others. The job goes on with them.
func TestRefusals(t *testing.T) {
	job := newJob()
	in := ephemeral.Input{Job: job, Pods: newPods(job, "a b c"), Now: epoch()}
	errs := map[string]error{"a": forbidden("not here")}
	outcome, _ := answered(ephemeral.Plan(in), errs)
	if len(outcome.NewlyRefused) != 1 || outcome.NewlyRefused[0].Object != "a" || !strings.Contains(outcome.NewlyRefused[0].Text, "not here") {
		t.Errorf("newly refused %v", outcome.NewlyRefused)
	}
	in.Pods, in.Refused, in.Job.Status = newPods(job, "a b=succeeded c"), outcome.Refused, outcome.Status
	if outcome, added := answered(ephemeral.Plan(in), errs); !slices.Equal(added, []string{"c"}) || outcome.RequeueAfter != 5*time.Second {
		t.Errorf("before its time: added %v, requeue %v", added, outcome.RequeueAfter)
	}
	var waits []time.Duration
	in.Pods = newPods(job, "a b=succeeded c=succeeded")
	for range 9 {
		in.Now = outcome.Refused["uid-a"].RetryAt
		outcome, _ = answered(ephemeral.Plan(in), errs)
		waits = append(waits, outcome.RequeueAfter)
		if len(outcome.NewlyRefused) > 0 {
			t.Error("a pod refuses for the first time twice")
		}
		in.Refused, in.Job.Status = outcome.Refused, outcome.Status
	}
	const s = time.Second
	if diff := cmp.Diff([]time.Duration{10 * s, 20 * s, 40 * s, 80 * s, 160 * s, 300 * s, 300 * s, 300 * s, 300 * s}, waits); diff != "" {
		t.Errorf("waits (-want +got):\n%s", diff)
	}
	in.Now = in.Refused["uid-a"].RetryAt
	if outcome, added := answered(ephemeral.Plan(in), nil); !slices.Equal(added, []string{"a"}) || len(outcome.Refused) > 0 || strings.Contains(picture(outcome.Status), "JobFailed") {
		t.Errorf("at last: added %v, refused %v, %s", added, outcome.Refused, picture(outcome.Status))
	}
}

// A thousand pods that refuse cost a bounded number of writes in one pass, and all of them are tried.
func TestManyRefusals(t *testing.T) {
	job := newJob(parallelism(100))
	names, errs := []string{}, map[string]error{}
	for i := range 1000 {
		names = append(names, fmt.Sprintf("p%03d", i))
		errs[names[i]] = forbidden("no")
	}
	in := ephemeral.Input{Job: job, Pods: newPods(job, strings.Join(names, " ")), Now: epoch()}
	tried := map[types.UID]bool{}
	for passes := 1; ; passes++ {
		outcome, added := answered(ephemeral.Plan(in), errs)
		if fresh := len(outcome.Refused) - len(tried); fresh > ephemeral.MaxRefusals || len(added) > 0 {
			t.Fatalf("%d writes in a pass", fresh)
		}
		for uid := range outcome.Refused {
			tried[uid] = true
		}
		in.Refused = outcome.Refused
		if outcome.RequeueAfter > time.Millisecond {
			if len(tried) != 1000 || passes != 16 || outcome.RequeueAfter != 5*time.Second {
				t.Errorf("%d pods after %d passes, requeue %v", len(tried), passes, outcome.RequeueAfter)
			}
			return
		}
	}
}

// An API server that fails ends the pass. The status is that of the answers.
func TestFailure(t *testing.T) {
	job := newJob(parallelism(9))
	job.Status = v1alpha1.EphemeralJobStatus{}
	pass := ephemeral.Plan(ephemeral.Input{Job: job, Pods: newPods(job, "a b c d"), Now: epoch()})
	writes := pass.Next()
	pass.Answer(epoch(), writes[0], writes[0].Object, nil)
	pass.Answer(epoch(), writes[1], nil, apierrors.NewInternalError(errors.New("down")))
	if more := pass.Next(); len(more) > 0 {
		t.Errorf("%d more writes", len(more))
	}
	outcome := pass.Conclude()
	if pass.Err() == nil || picture(outcome.Status) != "Unknown 4/1/0/0/0" || !outcome.Status.StartTime.Equal(ptrTo(epoch())) {
		t.Errorf("%v, %s since %v", pass.Err(), picture(outcome.Status), outcome.Status.StartTime)
	}
}

// Conditions keep their times, and those that no longer hold are removed.
func TestConditions(t *testing.T) {
	job := newJob()
	in := ephemeral.Input{Job: job, Now: epoch()}
	outcome, _ := answered(ephemeral.Plan(in), nil)
	in.Job.Status, in.Now = outcome.Status, epoch().Add(time.Hour)
	again, _ := answered(ephemeral.Plan(in), nil)
	if diff := cmp.Diff(outcome.Status, again.Status); diff != "" {
		t.Errorf("a pass without a change changes the status:\n%s", diff)
	}
	in.Pods = newPods(job, "a=taken")
	taken, _ := answered(ephemeral.Plan(in), nil)
	c := taken.Status.Conditions[1]
	if !strings.HasSuffix(c.Message, "names of the template: a") || !c.LastTransitionTime.Equal(ptrTo(epoch())) || !c.LastProbeTime.Equal(ptrTo(in.Now)) {
		t.Errorf("condition %+v", c)
	}
	in.Pods = newPods(job, "a")
	if found, _ := answered(ephemeral.Plan(in), nil); picture(found.Status) != "Waiting 1/1/0/0/0" {
		t.Errorf("with a pod: %s", picture(found.Status))
	}
}
