//go:build envtest

package broadcastjob_test

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/broadcastjob"
	"github.com/kruisekit/kruisekit/test/podbench"
)

// testLife runs a job to its end, and counts its writes.
func testLife(b *bench) {
	b.addNodes("a", "b", "c")
	b.patch(b.node("c"), `{"spec":{"unschedulable":true}}`)
	b.start(broadcastjob.Options{})
	b.Still()
	b.Asked()
	job := b.create(parallelism("1"))
	b.is(job, "running: desired 2, active 1, succeeded 0, failed 0")
	b.runs("a")
	b.end("a", corev1.PodSucceeded)
	b.runs("a b")
	b.is(job, "running: desired 2, active 1, succeeded 1, failed 0")
	b.end("b", corev1.PodSucceeded)
	b.is(job, "completed: desired 2, active 0, succeeded 2, failed 0")
	b.Still()
	if asked := writes(b.Asked()); len(asked) != 2+3 {
		b.Errorf("%d writes for 2 pods: %q", len(asked), asked)
	}
	c := job.Status.Conditions
	if len(c) != 1 || c[0].Type != v1beta1.JobComplete || c[0].Status != corev1.ConditionTrue ||
		job.Status.CompletionTime == nil || job.Status.StartTime == nil {
		b.Errorf("status %+v", job.Status)
	}
	b.Until(func() error {
		if got := b.Events(job, "JobComplete"); len(got) != 1 ||
			!strings.HasSuffix(got[0], "is completed, 2 pods succeeded, 0 pods failed (1)") {
			return fmt.Errorf("events %q", got)
		}
		return nil
	})
	b.quiet(job)
}

// testNodes: a node that comes, leaves or changes reconciles the jobs that have not ended, and a heartbeat none.
func testNodes(b *bench) {
	b.addNodes("a")
	b.start(broadcastjob.Options{})
	everywhere := func(j *v1beta1.BroadcastJob) { j.Name = "everywhere"; j.Spec.CompletionPolicy.Type = v1beta1.Never }
	onDisks := func(j *v1beta1.BroadcastJob) {
		j.Name, j.Spec.Template.Spec.NodeSelector = "disks", map[string]string{"disk": "ssd"}
	}
	first, second := b.create(everywhere), b.create(onDisks)
	b.is(first, "running: desired 1, active 1, succeeded 0, failed 0")
	b.is(second, "running: desired 0, active 0, succeeded 0, failed 0")
	step := func(what string, change func(), want string) {
		b.Helper()
		b.Still()
		b.passed()
		change()
		b.Still()
		if got := b.passed(); got != want {
			b.Errorf("%s reconciles %q, want %q", what, got, want)
		}
	}
	step("a heartbeat", func() {
		if err := b.Client.Status().Patch(b.Context(), b.node("a"), client.RawPatch(types.MergePatchType,
			[]byte(`{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`))); err != nil {
			b.Fatal(err)
		}
	}, "")
	step("a label", func() { b.patch(b.node("a"), `{"metadata":{"labels":{"team":"x"}}}`) }, "disks everywhere")
	// A pod of another job would be on the node as well: pods have one per node and job.
	b.end("a", corev1.PodSucceeded)
	b.is(first, "running: desired 1, active 0, succeeded 1, failed 0")
	step("a taint", func() {
		b.patch(b.node("a"), `{"spec":{"taints":[{"key":"x","effect":"NoSchedule"}]}}`)
	}, "disks everywhere")
	step("a node that goes", func() {
		if err := b.Client.Delete(b.Context(), b.node("a")); err != nil {
			b.Fatal(err)
		}
	}, "disks everywhere")
	b.addNodes("d")
	b.is(first, "running: desired 1, active 1, succeeded 1, failed 0")
}

// testFaults: requests that fail, or whose answers are lost, run no node twice.
func testFaults(b *bench) {
	b.addNodes("a", "b", "c")
	faults := b.Faults(0)
	b.startWith(broadcastjob.Options{}, func(c client.WithWatch) client.WithWatch { return podbench.Writes(c, faults.Do) })
	job := b.create(parallelism("2"))
	for _, node := range []string{"a", "b", "c"} {
		b.Until(func() error {
			if b.pods()[node] == nil {
				return fmt.Errorf("no pod on %s", node)
			}
			return nil
		})
		b.end(node, corev1.PodSucceeded)
	}
	b.is(job, "completed: desired 3, active 0, succeeded 3, failed 0")
}

// testMalformed: an object that no Go type holds is left alone, with an event, and stops no other job.
func testMalformed(b *bench) {
	b.addNodes("a")
	b.start(broadcastjob.Options{})
	raw := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps.kruise.io/v1beta1",
		"kind":       "BroadcastJob",
		"metadata":   map[string]any{"namespace": b.Namespace, "name": "malformed"},
		"spec":       map[string]any{"template": map[string]any{"spec": map[string]any{"containers": int64(7)}}},
	}}
	if err := b.Client.Create(b.Context(), raw); err != nil {
		b.Fatal(err)
	}
	job := b.create()
	b.is(job, "running: desired 1, active 1, succeeded 0, failed 0")
	b.Until(func() error {
		if got := b.Events(raw, "InvalidSpec"); len(got) != 1 {
			return fmt.Errorf("events %q", got)
		}
		return nil
	})
	b.quiet(job)
}

// testRejected: pods that the API server rejects are an event, and the job goes on once the template is mended.
func testRejected(b *bench) {
	b.addNodes("a", "b")
	b.start(broadcastjob.Options{})
	job := b.create(func(j *v1beta1.BroadcastJob) { j.Spec.Template.Spec.Containers[0].Name = "No Name" })
	b.is(job, "running: desired 2, active 0, succeeded 0, failed 0")
	b.Until(func() error {
		if got := b.Events(job, "FailedCreate"); len(got) == 0 || !strings.Contains(got[0], "spec.containers[0].name") {
			return fmt.Errorf("events %q", got)
		}
		return nil
	})
	b.patch(job, `{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"check:1"}]}}}}`)
	b.is(job, "running: desired 2, active 2, succeeded 0, failed 0")
}

// testRestartRunning restarts the manager while pods run: nothing is written, and the job goes on.
func testRestartRunning(b *bench) {
	b.addNodes("a", "b")
	stop := b.start(broadcastjob.Options{})
	job := b.create(parallelism("1"))
	b.is(job, "running: desired 2, active 1, succeeded 0, failed 0")
	b.Still()
	stop()
	b.Asked()
	stop = b.start(broadcastjob.Options{})
	b.Still()
	if asked := writes(b.Asked()); len(asked) > 0 {
		b.Errorf("a restart costs %q", asked)
	}
	stop()
	b.end("a", corev1.PodSucceeded) // while no manager runs
	b.start(broadcastjob.Options{})
	b.runs("a b")
	b.end("b", corev1.PodSucceeded)
	b.is(job, "completed: desired 2, active 0, succeeded 2, failed 0")
}

// testTimeToLive: a job is deleted after its end, though the manager restarts.
func testTimeToLive(b *bench) {
	b.addNodes("a")
	stop := b.start(broadcastjob.Options{})
	job := b.create(ttl(2))
	b.runs("a")
	b.end("a", corev1.PodSucceeded)
	b.is(job, "completed: desired 1, active 0, succeeded 1, failed 0")
	stop()
	b.start(broadcastjob.Options{})
	b.Until(func() error {
		if err := b.Look(job); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the job is still there: %w", errors.Join(err, errors.New("no deletion")))
		}
		return nil
	})
}
