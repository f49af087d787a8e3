//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/api/kruise"
)

// work is what the soak does with each kind. NodeImage and NodePodProbe work with the pulls and probes.
func (s *soak) work() []worker {
	template := []string{"spec", "template", "spec"}
	statefulSet, daemonSet, united := kindOf(ours, "StatefulSet"), kindOf(ours, "DaemonSet"),
		kindOf(ours, "UnitedDeployment")
	five := map[string]int64{"replicas": 5, "readyReplicas": 5, "updatedReadyReplicas": 5}
	three := map[string]int64{"replicas": 3, "readyReplicas": 3, "updatedReplicas": 3}
	each := map[string]int64{"desiredNumberScheduled": nodes, "updatedNumberScheduled": nodes, "numberReady": nodes}
	six := map[string]int64{"replicas": 6, "readyReplicas": 6, "updatedReadyReplicas": 6}
	return []worker{
		{"CloneSet, PodUnavailableBudget", []func(context.Context) error{
			s.flips(cloneSet, "web", template, "web", five), s.evicts, s.scales(cloneSet, "web", 7, 5), s.deletesOne,
		}},
		{
			"StatefulSet",
			[]func(context.Context) error{s.flips(statefulSet, "db", template, "db", three), s.scales(statefulSet, "db", 4, 3)},
		},
		{"DaemonSet", []func(context.Context) error{s.flips(daemonSet, "agent", template, "agent", each)}},
		{"SidecarSet", []func(context.Context) error{s.updatesSidecars, s.injects}},
		{"UnitedDeployment", []func(context.Context) error{
			s.flips(united, "zoned", []string{"spec", "template", "cloneSetTemplate", "spec", "template", "spec"}, "zoned", six),
			s.scales(united, "zoned", 8, 6),
		}},
		{"WorkloadSpread", []func(context.Context) error{s.spreads}},
		{"BroadcastJob", []func(context.Context) error{s.broadcasts}},
		{"AdvancedCronJob", []func(context.Context) error{s.schedules}},
		{"ImagePullJob", []func(context.Context) error{s.pulls("imagepulljob", "ImagePullJob", "nginx", nodes)}},
		{"ImageListPullJob", []func(context.Context) error{s.pulls("imagelistpulljob", "ImageListPullJob", "base", 2)}},
		{"ContainerRecreateRequest", []func(context.Context) error{s.recreates}},
		{"EphemeralJob", []func(context.Context) error{s.looksAround}},
		{"PersistentPodState", []func(context.Context) error{s.returns}},
		{"PodProbeMarker", []func(context.Context) error{s.marks}},
		{"ResourceDistribution", []func(context.Context) error{s.distributes}},
		{"deletion protection", []func(context.Context) error{s.protects}},
		{"both versions", []func(context.Context) error{s.converts}},
	}
}

// evicts asks for the eviction of all pods at once, under a budget of 25 % of 5 pods: at most two pods are missing at
// any moment.
func (s *soak) evicts(ctx context.Context) error {
	pods, err := s.podsOf(ctx, "web")
	if err != nil {
		return err
	}
	watched, stop := context.WithCancel(ctx)
	defer stop()
	least := make(chan int, 1)
	go func() { least <- s.leastReady(watched, "web", len(pods)) }()
	begin := time.Now()
	var evicted, refused atomic.Int32
	var requests sync.WaitGroup
	for _, pod := range pods {
		requests.Add(1)
		go func() {
			defer requests.Done()

			if s.Client.SubResource("eviction").Create(ctx, pod, &policyv1.Eviction{}) == nil {
				evicted.Add(1)
			} else {
				refused.Add(1)
			}
		}()
	}
	requests.Wait()
	took := time.Since(begin)
	s.report.countAll("evictions", "admitted", int(evicted.Load()))
	s.report.countAll("evictions", "refused", int(refused.Load()))
	if err := s.settles(ctx, cloneSet, "web", map[string]int64{"replicas": 5, "readyReplicas": 5}); err != nil {
		return err
	}
	stop()
	// A request that waits for a replica that is killed may be admitted when other pods are back.
	if n := evicted.Load(); n > 2 && took < time.Second {
		return fmt.Errorf("the budget admitted %d evictions within %s", n, took)
	}
	if n := <-least; n < 3 {
		return fmt.Errorf("%d pods were ready while %d evictions were admitted within %s, want at least 3",
			n, evicted.Load(), took)
	}
	return nil
}

// leastReady watches how many pods are ready and not being deleted, and returns the least number.
func (s *soak) leastReady(ctx context.Context, app string, least int) int {
	for pause(ctx, 50*time.Millisecond) {
		pods, err := s.podsOf(ctx, app)
		if err != nil {
			continue
		}
		n := 0
		for _, pod := range pods {
			if ready(pod) {
				n++
			}
		}
		least = min(least, n)
	}
	return least
}

// deletesOne marks a pod, which the CloneSet replaces.
func (s *soak) deletesOne(ctx context.Context) error {
	pods, err := s.podsOf(ctx, "web")
	if err != nil {
		return err
	}
	for name, pod := range pods {
		mark := fmt.Appendf(nil, `{"metadata":{"labels":{%q:"true"}}}`, kruise.SpecifiedDeleteKey)
		if err := s.try(ctx, func(ctx context.Context) error {
			return s.Client.Patch(ctx, pod, client.RawPatch(types.MergePatchType, mark))
		}); err != nil {
			return err
		}
		if err := until(ctx, func(ctx context.Context) error {
			now, err := s.podsOf(ctx, "web")
			if err == nil && now[name] != nil {
				err = fmt.Errorf("pod %s is still there", name)
			}
			return err
		}); err != nil {
			return err
		}
		break
	}
	return s.settles(ctx, cloneSet, "web", map[string]int64{"replicas": 5, "readyReplicas": 5})
}

// updatesSidecars gives the sidecars of four pods their next image, in place.
func (s *soak) updatesSidecars(ctx context.Context) error {
	set := kindOf(ours, "SidecarSet")
	if err := s.patch(ctx, set, "log", `{"spec":{"updateStrategy":{"partition":0}}}`); err != nil {
		return err
	}
	return s.flips(set, "log", []string{"spec"}, "shop", map[string]int64{
		"matchedPods": 4, "updatedPods": 4, "readyPods": 4, "updatedReadyPods": 4,
	})(ctx)
}

// injects deletes pods of a Deployment: the new ones have the sidecar too.
func (s *soak) injects(ctx context.Context) error {
	if err := s.Client.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(s.namespace),
		client.MatchingLabels{"app": "shop"}); err != nil {
		return err
	}
	if err := s.settles(ctx, deployment, "shop", map[string]int64{
		"replicas": 4, "readyReplicas": 4, "updatedReplicas": 4,
	}); err != nil {
		return err
	}
	pods, err := s.podsOf(ctx, "shop")
	if err != nil {
		return err
	}
	for name, pod := range pods {
		if len(pod.Spec.Containers) != 2 {
			return fmt.Errorf("pod %s has %d containers", name, len(pod.Spec.Containers))
		}
	}
	return s.settles(ctx, kindOf(ours, "SidecarSet"), "log", map[string]int64{"matchedPods": 4, "readyPods": 4})
}

// spreads scales a workload: up to three pods are in the first zone, the rest in the second. While a replica is killed,
// pods are created without a subset: such pods end with the next turn.
func (s *soak) spreads(ctx context.Context) error {
	begin := time.Now()
	n := s.draw(7) + 1
	if err := s.scales(cloneSet, "elastic", int64(n))(ctx); err != nil {
		return err
	}
	pods, err := s.podsOf(ctx, "elastic")
	if err != nil {
		return err
	}
	on := map[string]int{}
	for _, pod := range pods {
		on[pod.Spec.NodeName]++
	}
	if first, rest := on[s.zones["zone-a"]], on[s.zones["zone-b"]]; first != min(3, n) || rest != max(0, n-3) {
		if !s.killedSince(begin.Add(-time.Minute)) {
			return fmt.Errorf("of %d pods, %d are in the first zone and %d in the second", n, first, rest)
		}
		s.report.count("deviations while a process was killed", "WorkloadSpread")
		return s.scales(cloneSet, "elastic", 0)(ctx)
	}
	return nil
}

// returns deletes a pod of a StatefulSet, which comes back in its zone.
func (s *soak) returns(ctx context.Context) error {
	begin := time.Now()
	name := fmt.Sprintf("cache-%d", s.draw(3))
	if err := s.shows(ctx, kindOf(ours, "PersistentPodState"), "cache", func(u *unstructured.Unstructured) error {
		if states, _, _ := unstructured.NestedMap(u.Object, "status", "podStates"); len(states) != 3 {
			return fmt.Errorf("%d states", len(states))
		}
		return nil
	}); err != nil {
		return err
	}
	pods, err := s.podsOf(ctx, "cache")
	if err != nil {
		return err
	}
	before := pods[name]
	if before == nil {
		return fmt.Errorf("pod %s is missing", name)
	}
	if err := s.try(ctx, func(ctx context.Context) error {
		return client.IgnoreNotFound(s.Client.Delete(ctx, before.DeepCopy()))
	}); err != nil {
		return err
	}
	return until(ctx, func(ctx context.Context) error {
		pods, err := s.podsOf(ctx, "cache")
		if err != nil {
			return err
		}
		now := pods[name]
		switch {
		case now == nil || now.UID == before.UID || !ready(now):
			return fmt.Errorf("pod %s is not back", name)
		case now.Spec.NodeName != before.Spec.NodeName && !s.killedSince(begin):
			return fmt.Errorf("pod %s was on %s and is on %s", name, before.Spec.NodeName, now.Spec.NodeName)
		case now.Spec.NodeName != before.Spec.NodeName:
			s.report.count("deviations while a process was killed", "PersistentPodState")
		}
		return nil
	})
}

// converts reads objects in the version that is not stored.
func (s *soak) converts(ctx context.Context) error {
	var sets v1alpha1.CloneSetList
	if err := s.try(ctx, func(ctx context.Context) error {
		return s.Client.List(ctx, &sets, client.InNamespace(s.namespace))
	}); err != nil {
		return err
	}
	if !slices.ContainsFunc(sets.Items, func(c v1alpha1.CloneSet) bool { return c.Name == "web" }) {
		return fmt.Errorf("%d CloneSets, without web", len(sets.Items))
	}
	var all v1alpha1.StatefulSetList
	return s.try(ctx, func(ctx context.Context) error { return s.Client.List(ctx, &all, client.InNamespace(s.namespace)) })
}

// protects tries to delete a namespace with pods in it.
func (s *soak) protects(ctx context.Context) error {
	if err := s.apply(ctx, "protected"); err != nil {
		return err
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "vault", Name: "kept"}}
	pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "nginx:1.27"}}
	if err := s.try(ctx, func(ctx context.Context) error {
		return client.IgnoreAlreadyExists(s.Client.Create(ctx, pod.DeepCopy()))
	}); err != nil {
		return err
	}
	if err := until(ctx, func(ctx context.Context) error {
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
			return err
		}
		if !ready(pod) {
			return fmt.Errorf("the pod is %s", pod.Status.Phase)
		}
		return nil
	}); err != nil {
		return err
	}
	if err := s.Client.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "vault"}}); err == nil {
		return fmt.Errorf("a protected namespace was deleted")
	}
	return nil
}
