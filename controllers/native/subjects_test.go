//go:build simulated || nightly

package native_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/native"
	adapter "github.com/kruisekit/kruisekit/workload/native"
)

// subject is a set that a user changes at random.
type subject struct {
	name            string
	daemon, rolling bool
	gate            bool
	max             int
	image, env      int
	// restarts counts those that the user asked for, the last one at since.
	restarts        int
	since           time.Time
	replicas, least int32
	paused          bool
	handedOver      bool
	// until is when the set was taken back.
	until time.Time
	envs  []int
	// epoch counts the templates.
	epoch int
	// out are the pods that the reconciler has taken out of service.
	out map[string]bool
}

func newSubjects() []*subject {
	all := []*subject{
		{name: "ondelete", max: 1},
		{name: "ondelete-gate", max: 2, gate: true},
		{name: "rolling", max: 1, rolling: true},
		{name: "rolling-gate", max: 2, gate: true, rolling: true},
		{name: "daemon", max: 1, daemon: true},
		{name: "daemon-gate", max: 2, daemon: true, gate: true},
	}
	for _, s := range all {
		s.out, s.replicas, s.least, s.envs = map[string]bool{}, 4, 4, []int{0}
		if s.daemon {
			s.least = math.MaxInt32
		}
	}
	return all
}

// ordinal of a pod; below that of all for a daemon.
func (s *subject) ordinal(pod metav1.Object) int32 {
	if s.daemon {
		return -1
	}
	n, err := strconv.ParseInt(strings.TrimPrefix(pod.GetName(), s.name+"-"), 10, 32)
	if err != nil {
		return -1
	}
	return int32(n)
}

func (s *subject) template() *corev1.PodTemplateSpec {
	t := &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": s.name}}}
	t.Spec.TerminationGracePeriodSeconds = ptr.To(int64(1))
	t.Spec.Containers = []corev1.Container{{
		Name: "app", Image: fmt.Sprintf("example.com/app:%d", s.image),
		Env: []corev1.EnvVar{{Name: "A", Value: strconv.Itoa(s.env)}},
	}}
	if s.restarts > 0 {
		t.Annotations = map[string]string{restartedAt: strconv.Itoa(s.restarts)}
	}
	if s.gate {
		t.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: kruise.InPlaceUpdateReady}}
	}
	return t
}

const restartedAt = "kubectl.kubernetes.io/restartedAt"

// needless reports whether a pod could change in place to one of the latest templates.
func (s *subject) needless(pod *corev1.Pod) bool {
	restarts, _ := strconv.Atoi(pod.Annotations[restartedAt])
	if restarts < s.restarts && pod.CreationTimestamp.Time.Before(s.since.Add(3*time.Second)) {
		return false // the built-in controller stores the revision later than the user asks
	}
	of := pod.Spec.Containers[0].Env[0].Value
	for _, env := range s.envs[max(len(s.envs)-3, 0):] {
		if strconv.Itoa(env) != of {
			return false
		}
	}
	return true
}

// object is the set as the user wants it.
func (s *subject) object(namespace string) client.Object {
	rollout, _ := json.Marshal(map[string]any{"maxUnavailable": s.max, "paused": s.paused})
	meta := metav1.ObjectMeta{
		Namespace: namespace, Name: s.name, Annotations: map[string]string{adapter.RolloutKey: string(rollout)},
	}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": s.name}}
	if s.daemon {
		set := &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Selector: selector, Template: *s.template()}}
		set.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
		if s.handedOver {
			set.Spec.UpdateStrategy.Type = appsv1.RollingUpdateDaemonSetStrategyType
		}
		return set
	}
	set := &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{
		Selector: selector, Template: *s.template(), Replicas: ptr.To(s.replicas),
		PodManagementPolicy: appsv1.ParallelPodManagement,
	}}
	set.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
	if s.rolling || s.handedOver {
		partition := int32(math.MaxInt32)
		if s.handedOver {
			partition = 0
		}
		set.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{
			Type:          appsv1.RollingUpdateStatefulSetStrategyType,
			RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: &partition},
		}
	}
	return set
}

// use changes a set at random until the context ends, and leaves it to the reconciler.
func (c *chaos) use(ctx context.Context, s *subject, r *rand.Rand) {
	for ctx.Err() == nil {
		pause(ctx, time.Duration(500+r.IntN(2500))*time.Millisecond)
		switch n := r.IntN(20); {
		case n < 9:
			c.change(s, func() { s.image++ })
		case n < 12:
			c.change(s, func() { s.image = r.IntN(s.image + 1) })
		case n < 14 && !s.rolling:
			c.change(s, func() { s.env++; s.envs = append(s.envs, s.env) })
		case n == 14:
			c.change(s, func() { s.restarts, s.since = s.restarts+1, time.Now().Truncate(time.Second) })
		case n < 17 && !s.daemon:
			c.scale(ctx, s, 3+r.Int32N(3))
		case n == 18:
			c.handOver(ctx, s)
		default:
			c.kill(s, r)
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	<-ctx.Done()
}

// change changes the template.
func (c *chaos) change(s *subject, f func()) {
	c.apply(s, func() { f(); s.epoch++ })
}

// apply writes the set after a change of what the user wants.
func (c *chaos) apply(s *subject, f func()) {
	c.mu.Lock()
	f()
	want := s.object(c.Namespace)
	c.mu.Unlock()
	data, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"annotations": want.GetAnnotations()}, "spec": specOf(want),
	})
	if err == nil {
		err = c.live.Patch(c.Context(), want, client.RawPatch("application/merge-patch+json", data))
	}
	if err != nil && c.Context().Err() == nil {
		c.Errorf("change %s: %v", s.name, err)
	}
}

func specOf(set client.Object) any {
	spec := map[string]any{}
	if daemon, is := set.(*appsv1.DaemonSet); is {
		spec["template"], spec["updateStrategy"] = daemon.Spec.Template, daemon.Spec.UpdateStrategy
	}
	if of, is := set.(*appsv1.StatefulSet); is {
		spec["template"], spec["updateStrategy"] = of.Spec.Template, of.Spec.UpdateStrategy
		spec["replicas"] = of.Spec.Replicas
	}
	if raw, err := json.Marshal(spec["updateStrategy"]); err == nil && !strings.Contains(string(raw), "rollingUpdate") {
		strategy := map[string]any{}
		_ = json.Unmarshal(raw, &strategy)
		strategy["rollingUpdate"] = nil
		spec["updateStrategy"] = strategy
	}
	return spec
}

func (c *chaos) scale(ctx context.Context, s *subject, replicas int32) {
	c.apply(s, func() { s.least, s.replicas = min(s.least, replicas), replicas })
	pause(ctx, 4*time.Second) // until the pods that are too many are gone
	c.mu.Lock()
	defer c.mu.Unlock()
	s.least = replicas
}

// kill deletes a pod of a set.
func (c *chaos) kill(s *subject, r *rand.Rand) {
	c.killOne(r, maps.Values(c.pods), func(pod *corev1.Pod) bool { return c.of(pod) == s })
}

// killOne deletes one of some pods, as a node does that is drained.
func (c *chaos) killOne(r *rand.Rand, of iter.Seq[*corev1.Pod], is func(*corev1.Pod) bool) {
	c.mu.Lock()
	var pods []*corev1.Pod
	for pod := range of {
		if is(pod) && pod.DeletionTimestamp == nil {
			pods = append(pods, pod)
		}
	}
	if len(pods) == 0 {
		c.mu.Unlock()
		return
	}
	pod := pods[r.IntN(len(pods))]
	c.killed[pod.UID] = true
	c.mu.Unlock()
	_ = c.live.Delete(c.Context(), pod, client.Preconditions{UID: &pod.UID})
}

// handOver changes the image, leaves the rest of the rollout to the built-in controller, and takes the set back.
func (c *chaos) handOver(ctx context.Context, s *subject) {
	c.change(s, func() { s.image++ })
	pause(ctx, 2*time.Second)
	c.apply(s, func() { s.paused = true })
	if c.wait(ctx, s, func(p *native.Progress) bool { return p.State == native.StatePaused && p.InProgress == 0 }) {
		c.apply(s, func() { s.handedOver = true })
		c.wait(ctx, s, func(p *native.Progress) bool { return p.State == native.StateComplete })
		c.apply(s, func() { s.handedOver, s.until = false, time.Now() })
		pause(c.Context(), 2*time.Second) // until the built-in controller has observed it
	}
	c.apply(s, func() { s.paused = false })
}

// wait waits for a status, for some seconds.
func (c *chaos) wait(ctx context.Context, s *subject, is func(*native.Progress) bool) bool {
	for range 60 {
		set := s.object(c.Namespace)
		progress := &native.Progress{}
		if c.live.Get(c.Context(), client.ObjectKeyFromObject(set), set) == nil &&
			json.Unmarshal([]byte(set.GetAnnotations()[native.StatusKey]), progress) == nil && is(progress) {
			return true
		}
		pause(ctx, 250*time.Millisecond)
	}
	return false
}
