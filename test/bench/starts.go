package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/revision"
)

// most is how many pods the largest cluster has.
const most = 20000

// replicasEach is how many pods a CloneSet of scenario C has.
const replicasEach = 1000

// starts is scenario C: what a start takes on clusters of several sizes, what the manager takes when nothing changes,
// and how another replica takes over.
func starts(ctx context.Context, e *env) error {
	sizes := []int{0, e.pick(1000, 4000), e.pick(2000, most)}
	table := e.report.Table("Starts", "pods", "first reconcile s", "idle after s", "CPU s", "writes", "peak MiB",
		"steady MiB", "peak of steady", "KiB/pod", "idle CPU of a core", "idle writes")
	first, err := e.settled(ctx)
	if err != nil {
		return err
	}
	sets, err := e.emptySets(ctx, sizes[len(sizes)-1]/replicasEach)
	if err != nil {
		return err
	}
	if err := first.stop(); err != nil {
		return err
	}
	var empty int64
	for i, n := range sizes {
		if err := e.fill(ctx, sets, n); err != nil {
			return err
		}
		s, err := e.started(ctx, n, i == len(sizes)-1)
		if err != nil {
			return err
		}
		if n == 0 {
			empty = s.steady.rss
		}
		table.Add(s.row(empty)...)
	}
	return nil
}

// start is what a start took.
type start struct {
	pods            int
	first, idle     time.Duration
	settled, steady usage
	// idleCPU is the share of a core, and idleWrites the requests, of a process to which nothing happens.
	idleCPU, idleWrites float64
}

func (s start) row(empty int64) []string {
	each := ""
	if s.pods > 0 {
		each = fmt.Sprintf("%.1f", float64(s.steady.rss-empty)/1024/float64(s.pods))
	}
	return []string{
		fmt.Sprint(s.pods), fmt.Sprintf("%.1f", s.first.Seconds()), fmt.Sprintf("%.1f", s.idle.Seconds()),
		fmt.Sprintf("%.2f", s.settled.cpu.Seconds()), fmt.Sprintf("%.0f", s.settled.writes), mib(s.settled.peak),
		mib(s.steady.rss), fmt.Sprintf("%.2f", float64(s.settled.peak)/float64(s.steady.rss)), each,
		fmt.Sprintf("%.2f %%", s.idleCPU*100), fmt.Sprintf("%.0f", s.idleWrites),
	}
}

// started starts a replica, waits until it has nothing to do, watches it for a minute, and has another one take over
// where that is asked for.
func (e *env) started(ctx context.Context, n int, takeover bool) (s start, err error) {
	s.pods = n
	began := time.Now()
	r, err := e.manage(ctx)
	if err != nil {
		return s, err
	}
	if n > 0 {
		if err := r.until(ctx, func(ctx context.Context) error { return r.reconciled(ctx, "cloneset") }); err != nil {
			return s, err
		}
	}
	s.first = time.Since(began)
	const quiet = 2 * time.Second
	if err := r.idle(ctx, quiet); err != nil {
		return s, err
	}
	s.idle = time.Since(began) - quiet
	if s.settled, err = r.used(ctx); err != nil {
		return s, err
	}
	minute := time.Duration(e.pick(15, 60)) * time.Second
	// What a start leaves is collected, and goes back to the system, in the next minutes.
	if err := e.profiled(ctx, r, profile{fmt.Sprintf("c-idle-%d", n), minute}, func() error {
		return wait(ctx, minute)
	}); err != nil {
		return s, err
	}
	before, err := r.used(ctx)
	if err != nil {
		return s, err
	}
	if err := wait(ctx, minute); err != nil {
		return s, err
	}
	if s.steady, err = r.used(ctx); err != nil {
		return s, err
	}
	s.idleCPU = (s.steady.cpu - before.cpu).Seconds() / s.steady.at.Sub(before.at).Seconds()
	s.idleWrites = s.steady.writes - before.writes
	fmt.Printf("  %v\n", s.row(0))
	if err := r.profile(ctx, "heap", filepath.Join(e.out, fmt.Sprintf("c-heap-%d.pprof", n))); err != nil {
		return s, err
	}
	if takeover {
		if err := e.takeover(ctx, r); err != nil {
			return s, err
		}
	}
	return s, r.stop()
}

// takeover starts a second replica, stops the first, and reports how long the second takes to lead and to be idle.
func (e *env) takeover(ctx context.Context, leader *replica) error {
	second, err := e.manage(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := leader.stop(); err != nil {
		return err
	}
	stopped := time.Since(began)
	if err := second.until(ctx, func(ctx context.Context) error {
		return second.reconciled(ctx, "cloneset")
	}); err != nil {
		return err
	}
	first := time.Since(began)
	if err := second.idle(ctx, 2*time.Second); err != nil {
		return err
	}
	table := e.report.Table("A takeover by the other replica", "step", "s after the leader was asked to end")
	table.Add("the leader has ended", fmt.Sprintf("%.1f", stopped.Seconds()))
	table.Add("the other replica has reconciled a CloneSet", fmt.Sprintf("%.1f", first.Seconds()))
	table.Add("the other replica has nothing to do", fmt.Sprintf("%.1f", time.Since(began).Seconds()-2))
	return second.stop()
}

// reconciled returns an error until a controller has reconciled.
func (r *replica) reconciled(ctx context.Context, controller string) error {
	body, err := r.get(ctx, 2, "/metrics")
	if err != nil {
		return err
	}
	for _, s := range samples(body, "controller_runtime_reconcile_total") {
		if s.labels["controller"] == controller+"-controller" && s.value > 0 {
			return nil
		}
	}
	return errors.New(controller + " has reconciled nothing")
}

// idle returns when the replica has reconciled nothing for a while, and nothing waits. It asks seldom: an answer with
// all metrics takes the replica some milliseconds.
func (r *replica) idle(ctx context.Context, quiet time.Duration) error {
	last, since := -1.0, time.Now()
	return r.until(ctx, func(ctx context.Context) error {
		if err := wait(ctx, quiet/4); err != nil {
			return err
		}
		body, err := r.get(ctx, 2, "/metrics")
		if err != nil {
			return err
		}
		passes, waiting := 0.0, 0.0
		for _, s := range samples(body, "controller_runtime_reconcile_total") {
			passes += s.value
		}
		for _, metric := range []string{"workqueue_depth", "controller_runtime_active_workers"} {
			for _, s := range samples(body, metric) {
				waiting += s.value
			}
		}
		if passes != last || waiting > 0 {
			last, since = passes, time.Now()
		}
		if time.Since(since) < quiet {
			return fmt.Errorf("%.0f reconciles, %.0f objects wait", passes, waiting)
		}
		return nil
	})
}

// emptySets creates CloneSets without pods, and returns their names and the hashes of their revisions.
func (e *env) emptySets(ctx context.Context, n int) (sets []*unstructured.Unstructured, err error) {
	for i := range n {
		s := cloneSet(fmt.Sprintf("web-%d", i), 0, inPlace())
		if err := s.create(ctx, e.client); err != nil {
			return nil, err
		}
		object := s.empty()
		if err := poll(ctx, time.Minute, func(ctx context.Context) error {
			if err := e.client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
				return fmt.Errorf("get CloneSet: %w", err)
			}
			if hash, _, _ := unstructured.NestedString(object.Object, "status", "updateRevision"); hash == "" {
				return errors.New("the CloneSet has no revision")
			}
			return nil
		}); err != nil {
			return nil, err
		}
		sets = append(sets, object)
	}
	return sets, nil
}

// fill gives the CloneSets pods, as the manager would, until there are n in all. A replica runs that serves webhooks
// and reconciles no CloneSets.
func (e *env) fill(ctx context.Context, sets []*unstructured.Unstructured, n int) error {
	if n == 0 {
		return nil
	}
	serving, err := e.manage(ctx, "--controllers=nodeimage")
	if err != nil {
		return err
	}
	p, err := newPlain(ctx, e.config)
	if err != nil {
		return err
	}
	nodes := e.nodes.Names()
	var next atomic.Int32
	for _, set := range sets[:n/replicasEach] {
		if have, _, _ := unstructured.NestedInt64(set.Object, "spec", "replicas"); have > 0 {
			continue
		}
		if err := e.client.Patch(ctx, set, client.RawPatch("application/merge-patch+json",
			fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicasEach))); err != nil {
			return fmt.Errorf("scale CloneSet: %w", err)
		}
		if _, err := each(numbered(replicasEach), atOnce, func(name string) error {
			pod := owned(set, name, nodes[int(next.Add(1))%len(nodes)])
			if err := p.write(func() error {
				_, err := p.client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
				return err //nolint:wrapcheck // the caller names the step
			}); err != nil {
				return err
			}
			return p.conditions(ctx, pod.Name)
		}); err != nil {
			return fmt.Errorf("create pods: %w", err)
		}
	}
	if err := poll(ctx, 10*time.Minute, func(ctx context.Context) error {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
		if err := e.client.List(ctx, list, client.InNamespace(namespace), client.Limit(1),
			client.MatchingFields{"status.phase": string(corev1.PodPending)}); err != nil {
			return fmt.Errorf("list pods: %w", err)
		}
		if len(list.Items) > 0 {
			return fmt.Errorf("pod %s does not run", list.Items[0].Name)
		}
		return nil
	}); err != nil {
		return err
	}
	return serving.stop()
}

// owned is a pod of a CloneSet.
func owned(set *unstructured.Unstructured, name, node string) *corev1.Pod {
	hash, _, _ := unstructured.NestedString(set.Object, "status", "updateRevision")
	id := name[len(name)-5:]
	pod := podNamed(set.GetName()+"-"+id, set.GetName())
	pod.Spec.NodeName = node
	pod.Labels["controller-revision-hash"], pod.Labels["apps.kruise.io/cloneset-instance-id"] = hash, id
	pod.Labels["pod-template-hash"] = revision.Short(hash)
	pod.Labels["lifecycle.apps.kruise.io/state"] = "Normal"
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, set.GroupVersionKind())}
	pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: inPlaceReady}}
	return pod
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return fmt.Errorf("wait: %w", ctx.Err())
	case <-timer.C:
		return nil
	}
}
