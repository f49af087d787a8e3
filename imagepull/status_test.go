package imagepull_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/imagepull"
	"github.com/kruisekit/kruisekit/note"
)

func counts(
	desired, active, succeeded, failed int32, message string, failedNodes ...string,
) v1beta1.ImagePullJobStatus {
	return v1beta1.ImagePullJobStatus{
		StartTime:   ago(0),
		Desired:     desired,
		Active:      active,
		Succeeded:   succeeded,
		Failed:      failed,
		Message:     message,
		FailedNodes: failedNodes,
	}
}

func ended(s v1beta1.ImagePullJobStatus) v1beta1.ImagePullJobStatus {
	s.CompletionTime = ago(0)
	return s
}

func since(d time.Duration, s v1beta1.ImagePullJobStatus) v1beta1.ImagePullJobStatus {
	s.StartTime = ago(d)
	return s
}

func codes(notes []note.Note) string {
	var all []string
	for _, n := range notes {
		all = append(all, n.Code+" "+n.Object)
	}
	return strings.Join(all, ", ")
}

const (
	waiting   = v1beta1.ImagePhaseWaiting
	pulling   = v1beta1.ImagePhasePulling
	succeeded = v1beta1.ImagePhaseSucceeded
	failed    = v1beta1.ImagePhaseFailed
)

func nodes(all ...*v1beta1.NodeImage) []*v1beta1.NodeImage { return all }

// TestReview has what TestReviewLaws does not compare: limits of time and of room, notes, and when to look again.
func TestReview(t *testing.T) {
	ok := func(name string) *v1beta1.NodeImage {
		return nodeImage(name, lists("nginx:1", 0, "a"), did("nginx:1", 0, succeeded))
	}
	bad := func(name string) *v1beta1.NodeImage {
		return nodeImage(name, lists("nginx:1", 0, "a"), did("nginx:1", 0, failed))
	}
	busy := func(name string) *v1beta1.NodeImage {
		return nodeImage(name, lists("nginx:1", 0, "a"), did("nginx:1", 0, pulling))
	}
	job := func(change ...func(*v1beta1.ImagePullJob)) imagepull.Request {
		return request(pullJob("a", "nginx:1", change...))
	}
	for name, test := range map[string]struct {
		request imagepull.Request
		nodes   []*v1beta1.NodeImage
		want    v1beta1.ImagePullJobStatus
		tell    string
		after   time.Duration
		notes   string
	}{
		"one of each": {
			job(parallel(1)), nodes(ok("n1"), bad("n2"), busy("n3"), nodeImage("n4")),
			counts(4, 1, 1, 1, "job is running, progress 50.0%", "n2"), "", 0, "ParallelismReached a",
		},
		"paused": {
			request: job(parallel(0)),
			nodes:   nodes(nodeImage("n1")),
			want:    counts(1, 0, 0, 0, "job is running, progress 0.0%"),
			notes:   "Paused a",
		},
		"past the deadline, each once and in order": {
			request: request(pullJob("a", "nginx:1", deadline(300), started(5*time.Minute)), "s"),
			nodes:   nodes(nodeImage("n1"), busy("n2"), bad("n4"), bad("n3"), ok("n5"), nodeImage("n6", full)),
			want: since(5*time.Minute,
				ended(counts(6, 0, 1, 5, "job exceeds activeDeadlineSeconds", "n4", "n3", "n2", "n1", "n6"))),
			notes: "DeadlineExceeded a",
		},
		"before the deadline": {
			request: job(deadline(300), started(time.Minute)),
			nodes:   nodes(busy("n1")),
			want:    since(time.Minute, counts(1, 1, 0, 0, "job is running, progress 0.0%")),
			after:   4 * time.Minute,
		},
		"a moment before it": {
			request: job(deadline(300), started(300*time.Second-time.Millisecond)),
			nodes:   nodes(busy("n1")),
			want:    since(300*time.Second-time.Millisecond, counts(1, 1, 0, 0, "job is running, progress 0.0%")),
			after:   time.Second,
		},
		"a deadline beyond all time": {
			request: job(deadline(math.MaxInt64), started(time.Minute)),
			nodes:   nodes(busy("n1")),
			want:    since(time.Minute, counts(1, 1, 0, 0, "job is running, progress 0.0%")),
			after:   centuries() - time.Minute,
		},
		"a deadline before all time": {
			request: job(deadline(math.MinInt64), started(0)),
			nodes:   nodes(busy("n1")),
			want:    ended(counts(1, 0, 0, 1, "job exceeds activeDeadlineSeconds", "n1")),
			notes:   "DeadlineExceeded a",
		},
		"no room on a node": {
			request: job(parallel(1)),
			nodes:   nodes(nodeImage("n1", full), nodeImage("n2")),
			want:    counts(2, 0, 0, 0, "job is running, progress 0.0%, NodeImages without room for another image: 1"),
			tell:    "n2",
			after:   time.Minute,
			notes:   "NodeImageFull n1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			plan, err := test.request.Review(test.nodes)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, plan.Status); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
			if got := strings.Join(plan.Update, " "); got != test.tell || plan.RequeueAfter != test.after || plan.Delete {
				t.Errorf("tells %q, again after %v, want %q after %v", got, plan.RequeueAfter, test.tell, test.after)
			}
			if got := codes(plan.Notes); got != test.notes {
				t.Errorf("notes %q, want %q", got, test.notes)
			}
		})
	}
}

func TestReviewParallelism(t *testing.T) {
	for name, test := range map[string]struct {
		of    *intstr.IntOrString
		want  int
		notes string
	}{
		"nothing":         {nil, 1, "ParallelismReached a"},
		"a number":        {atMost(2), 2, "ParallelismReached a"},
		"a text":          {atMostText("4"), 3, ""},
		"a negative":      {atMost(-1), 0, "BadNumber a, Paused a"},
		"a negative text": {atMostText("-1"), 0, "BadNumber a, Paused a"},
		"a percentage":    {atMostText("50%"), 1, "BadNumber a, ParallelismReached a"},
		"words":           {atMostText("abc"), 1, "BadNumber a, ParallelismReached a"},
		"far too many":    {atMostText("99999999999"), 1, "BadNumber a, ParallelismReached a"},
	} {
		t.Run(name, func(t *testing.T) {
			job := pullJob("a", "nginx:1", func(j *v1beta1.ImagePullJob) { j.Spec.Parallelism = test.of })
			plan, err := request(job).Review(nodes(nodeImage("n1"), nodeImage("n2"), nodeImage("n3")))
			if err != nil || len(plan.Update) != test.want || codes(plan.Notes) != test.notes {
				t.Errorf("updates %v, notes %q, %v", plan.Update, codes(plan.Notes), err)
			}
		})
	}
}

// A job that has ended is not looked at again, and leaves in time.
func TestReviewEnded(t *testing.T) {
	inList := func(version string) func(*v1beta1.ImagePullJob) {
		return func(j *v1beta1.ImagePullJob) {
			j.OwnerReferences = []metav1.OwnerReference{{
				APIVersion: version, Kind: "ImageListPullJob", Controller: ptr.To(true),
			}}
		}
	}
	for name, test := range map[string]struct {
		change []func(*v1beta1.ImagePullJob)
		gone   bool
		after  time.Duration
	}{
		"no ttl":                     {nil, false, 0},
		"later":                      {list(ttl(30)), false, 20 * time.Second},
		"now":                        {list(ttl(10)), true, 0},
		"at once":                    {list(ttl(0)), true, 0},
		"a negative is as good as 0": {list(ttl(math.MinInt32)), true, 0},
		"as late as can be": {
			list(ttl(math.MaxInt32)), false, math.MaxInt32*time.Second - 10*time.Second,
		},
		"one of a list stays":     {list(ttl(0), inList("apps.kruise.io/v1alpha1")), false, 0},
		"a list of another group": {list(ttl(0), inList("example.com/v1")), true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			job := pullJob("a", "NOT A REFERENCE", append(test.change, completed(10*time.Second))...)
			job.Status.Desired, job.Status.Message = 3, "kept"
			plan, err := request(job).Review(nodes(nodeImage("n1")))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(imagepull.JobPlan{Status: job.Status, Delete: test.gone, RequeueAfter: test.after},
				plan); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReviewRefuses(t *testing.T) {
	if _, err := request(pullJob("a", "UPPER/x")).Review(nil); err == nil ||
		!strings.HasPrefix(err.Error(), "spec.image: ") {
		t.Error(err)
	}
	anonymous := pullJob("a", "nginx")
	anonymous.UID = ""
	if _, err := request(anonymous).Review(nil); err == nil || !strings.HasPrefix(err.Error(), "metadata.uid: ") {
		t.Error(err)
	}
}
