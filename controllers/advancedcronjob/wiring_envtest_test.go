//go:build envtest

package advancedcronjob_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/advancedcronjob"
	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/test/podbench"
	"github.com/kruisekit/kruisekit/test/requests"
)

func TestMain(m *testing.M) { os.Exit(cluster.MainAtOnce(m, 8)) }

// bench is a namespace with a reconciler whose clock the test puts ahead.
type bench struct {
	*podbench.Bench

	cluster *cluster.Cluster
	ahead   atomic.Int64
}

func newBench(t *testing.T) *bench {
	t.Helper()
	t.Parallel()
	o := cluster.Options{Scheme: podbench.Scheme(t), CRDDirs: []string{
		"../../config/crd/bases/apps.kruise.io_advancedcronjobs.yaml",
		"../../config/crd/bases/apps.kruise.io_broadcastjobs.yaml",
		"../../config/crd/bases/apps.kruise.io_imagelistpulljobs.yaml",
	}}
	c := cluster.Start(t, o)
	return &bench{Bench: podbench.On(t, c, o.Scheme), cluster: c}
}

func (b *bench) now() time.Time { return time.Now().Add(time.Duration(b.ahead.Load())) }

func (b *bench) start(wrap func(client.WithWatch) client.WithWatch) (stop func()) {
	b.Helper()
	return b.Run(func(mgr ctrl.Manager, c client.WithWatch) error {
		r, err := advancedcronjob.New(wrap(c), advancedcronjob.Options{Now: b.now})
		if err != nil {
			return err
		}
		return r.SetupWithManager(b.Context(), mgr, controller.Options{MaxConcurrentReconciles: 2})
	})
}

func plain(c client.WithWatch) client.WithWatch { return c }

// create creates an object with a tick every hour from its creation.
func (b *bench) create(name string, kind v1beta1.TemplateKind, p v1beta1.ConcurrencyPolicy) *v1beta1.AdvancedCronJob {
	b.Helper()
	job := &v1beta1.AdvancedCronJob{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: name}}
	job.Spec.Schedule, job.Spec.ConcurrencyPolicy = "@every 1h", p
	pods := corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "web:1"}},
	}}
	switch kind {
	case v1beta1.JobTemplate:
		job.Spec.Template.JobTemplate = &batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: pods}}
	case v1beta1.BroadcastJobTemplate:
		job.Spec.Template.BroadcastJobTemplate = &v1beta1.BroadcastJobTemplateSpec{
			Spec: v1beta1.BroadcastJobSpec{Template: pods},
		}
	case v1beta1.ImageListPullJobTemplate:
		job.Spec.Template.ImageListPullJobTemplate = &v1beta1.ImageListPullJobTemplateSpec{
			Spec: v1beta1.ImageListPullJobSpec{Images: []string{"web:1"}},
		}
	}
	if err := b.Client.Create(b.Context(), job); err != nil {
		b.Fatal(err)
	}
	return job
}

// tick puts the clock an hour ahead, and wakes the reconciler.
func (b *bench) tick(jobs ...*v1beta1.AdvancedCronJob) {
	b.Helper()
	b.ahead.Add(int64(time.Hour))
	for _, job := range jobs {
		b.wake(job)
	}
}

func (b *bench) wake(job *v1beta1.AdvancedCronJob) {
	b.Helper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"now":%q}}}`, b.now())
	if err := b.Client.Patch(b.Context(), job.DeepCopy(),
		client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		b.Fatal(err)
	}
}

// children of an object by kind.
func (b *bench) children(job *v1beta1.AdvancedCronJob, kind v1beta1.TemplateKind) []unstructured.Unstructured {
	b.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("apps.kruise.io/v1beta1")
	if kind == v1beta1.JobTemplate {
		list.SetAPIVersion("batch/v1")
	}
	list.SetKind(string(kind) + "List")
	if err := b.Client.List(b.Context(), list, client.InNamespace(b.Namespace)); err != nil {
		b.Fatal(err)
	}
	var all []unstructured.Unstructured
	for _, c := range list.Items {
		if metav1.IsControlledBy(&c, job) && c.GetDeletionTimestamp() == nil {
			all = append(all, c)
		}
	}
	return all
}

// has waits for so many children, of which so many are listed as active.
func (b *bench) has(
	job *v1beta1.AdvancedCronJob, kind v1beta1.TemplateKind, children, active int,
) []unstructured.Unstructured {
	b.Helper()
	var all []unstructured.Unstructured
	b.Until(func() error {
		all = b.children(job, kind)
		if err := b.Look(job); err != nil {
			return err
		}
		if len(all) != children || len(job.Status.Active) != active || job.Status.Type != kind {
			return fmt.Errorf("%d children, status %+v", len(all), job.Status)
		}
		return nil
	})
	return all
}

// end writes the status of a child that has succeeded, as its controller would.
func (b *bench) end(c *unstructured.Unstructured) {
	b.Helper()
	at := time.Now().UTC().Format(time.RFC3339)
	status := fmt.Sprintf(`{"status":{"startTime":%q,"completionTime":%q,"succeeded":1,"conditions":[{"type":"SuccessCriteriaMet","status":"True"},{"type":"Complete","status":"True"}]}}`,
		at, at)
	switch c.GetKind() {
	case "ImageListPullJob":
		status = fmt.Sprintf(
			`{"status":{"startTime":%q,"completionTime":%q,"desired":1,"active":0,"completed":1,"succeeded":1}}`, at, at)
	case "BroadcastJob":
		status = fmt.Sprintf(`{"status":{"startTime":%q,"conditions":[{"type":"Complete","status":"True","lastProbeTime":%q,"lastTransitionTime":%q}]}}`,
			at, at, at)
	}
	if err := b.Client.Status().Patch(b.Context(), c,
		client.RawPatch("application/merge-patch+json", []byte(status))); err != nil {
		b.Fatal(err)
	}
}

// Each kind of children is created at its tick, and its end and its deletion wake the owner. A tick takes the child and
// the status, and the first one of a process a read.
func TestKinds(t *testing.T) {
	for _, kind := range allKinds() {
		t.Run(string(kind), func(t *testing.T) {
			b := newBench(t)
			b.start(plain)
			job := b.create("web", kind, v1beta1.ForbidConcurrent)
			b.has(job, kind, 0, 0)
			b.Still()
			b.Asked()
			b.tick(job)
			first := b.has(job, kind, 1, 1)
			b.Still()
			if asked := requests.About(b.Asked(), ""); len(asked) != 3 {
				t.Errorf("the first tick took %q", asked)
			}
			b.tick(job)
			b.Still()
			b.has(job, kind, 1, 1)
			b.end(&first[0]) // the tick that waited runs at once
			second := b.has(job, kind, 2, 1)
			b.Until(func() error {
				for _, reason := range []string{"SuccessfulCreate", "SawCompletedJob", "JobAlreadyActive"} {
					if len(b.Events(job, reason)) == 0 {
						return fmt.Errorf("no event %s", reason)
					}
				}
				return nil
			})
			for i := range second {
				if second[i].GetName() == first[0].GetName() {
					continue
				}
				if err := b.Client.Delete(t.Context(), &second[i],
					client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
					t.Fatal(err)
				}
			}
			b.has(job, kind, 1, 0)
			b.Still()
			b.Asked()
			b.wake(job)
			b.Still()
			b.has(job, kind, 1, 0)
			if asked := b.Asked(); len(asked) > 0 {
				t.Errorf("nothing is due, and %q was asked", asked)
			}
		})
	}
}

// Whichever requests fail, before or after the API server applied them, each tick has one child.
func TestFaults(t *testing.T) {
	b := newBench(t)
	faults := b.Faults(0)
	b.start(func(c client.WithWatch) client.WithWatch { return podbench.Writes(c, faults.Do) })
	var jobs []*v1beta1.AdvancedCronJob
	for i := range 8 {
		jobs = append(jobs, b.create(fmt.Sprint("web-", i), v1beta1.ImageListPullJobTemplate, v1beta1.ReplaceConcurrent))
	}
	for i := range 3 {
		b.tick(jobs...)
		for _, job := range jobs {
			b.Until(func() error {
				if err := b.Look(job); err != nil {
					return err
				}
				// The status has the tick, so that the next one can come.
				if last, tick := job.Status.LastScheduleTime,
					job.CreationTimestamp.Add(time.Duration(i+1)*time.Hour); last == nil || last.Time.Before(tick) {
					return fmt.Errorf("%s: the last tick is %v, want %s", job.Name, last, tick)
				}
				return nil
			})
			b.has(job, v1beta1.ImageListPullJobTemplate, 1, 1)
		}
	}
	if made := requests.About(b.Asked(), "POST imagelistpulljobs 201"); len(made) != 3*len(jobs) {
		t.Errorf("%d children were created, want %d", len(made), 3*len(jobs))
	}
}

// What docs/kinds/advancedcronjob.md shows is what kubectl prints for the samples.
func TestDocument(t *testing.T) {
	b := newBench(t)
	b.start(plain)
	if out, err := b.cluster.Kubectl(t.Context(), "apply", "-n", b.Namespace, "-f",
		"../../config/samples/advancedcronjob.yaml"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	report := &v1beta1.AdvancedCronJob{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: "report"}}
	cleanup := &v1beta1.AdvancedCronJob{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: "cleanup"}}
	images := &v1beta1.AdvancedCronJob{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: "images"}}
	b.has(images, v1beta1.ImageListPullJobTemplate, 0, 0)
	if err := b.Client.Patch(t.Context(), images,
		client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"paused":true}}`))); err != nil {
		t.Fatal(err)
	}
	b.ahead.Store(int64(2 * time.Minute))
	b.wake(report)
	b.wake(cleanup)
	b.has(report, v1beta1.JobTemplate, 1, 1)
	b.has(cleanup, v1beta1.BroadcastJobTemplate, 1, 1)
	printed, err := b.cluster.Kubectl(t.Context(), "get", "advancedcronjobs", "-n", b.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../docs/kinds/advancedcronjob.md")
	if err != nil {
		t.Fatal(err)
	}
	_, shown, _ := strings.Cut(string(text), "```\nNAME")
	shown, _, _ = strings.Cut("NAME"+shown, "```")
	// Ages, and what is left of a column that has some.
	even := func(s string) string {
		s = regexp.MustCompile(`-?\d+[smh]\d*s?|<invalid>`).ReplaceAllString(strings.ReplaceAll(s, "@every 1m", "@every"),
			"AGE")
		return regexp.MustCompile(`[ ]+`).ReplaceAllString(s, " ")
	}
	if diff := cmp.Diff(even(shown), even(printed)); diff != "" {
		t.Errorf("(-document +kubectl):\n%s", diff)
	}
	if ptr.Deref(report.Spec.StartingDeadlineSeconds, 0) != 600 {
		t.Errorf("spec %+v", report.Spec)
	}
}
