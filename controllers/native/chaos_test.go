//go:build simulated || nightly

package native_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/controllers/native"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/scale"
	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/test/podbench"
)

// chaos is a cluster with the controllers of Kubernetes, sets that change at random, and rules that hold at every step:
// each event of a pod, and each write of the reconciler.
type chaos struct {
	*podbench.Bench

	live   client.WithWatch
	world  *cluster.Cluster
	minor  int
	sets   []*subject
	fleets []*fleet

	mu sync.Mutex
	// pods are the latest that the watch has shown, by name.
	pods map[string]*corev1.Pod
	seen map[types.UID]*sighting
	// evicted and killed are pods that the reconciler and the test have deleted.
	evicted, killed map[types.UID]bool
	steps, writes   int
	inPlace, moved  int
	// deployed counts the updates of pods of Deployments, and judged the states that were compared with the pods.
	deployed, judged int
	broken           []string
	// left is how many writes the reconciler makes before it is killed.
	left int
	died chan struct{}
}

// sighting is what is known of a pod.
type sighting struct {
	epoch, images int
	terminating   bool
}

// errKilled is the answer to the writes of a manager that is about to stop.
var errKilled = errors.New("the manager is killed")

func (c *chaos) breaks(format string, args ...any) {
	if len(c.broken) < 20 {
		c.broken = append(c.broken, fmt.Sprintf(format, args...))
	}
}

// fleet returns the Deployment of a pod; nil for none.
func (c *chaos) fleet(pod metav1.Object) *fleet {
	for _, f := range c.fleets {
		if f.name == pod.GetLabels()["app"] {
			return f
		}
	}
	return nil
}

func (c *chaos) of(pod metav1.Object) *subject {
	ref := metav1.GetControllerOf(pod)
	for _, s := range c.sets {
		if ref != nil && s.name == ref.Name {
			return s
		}
	}
	return nil
}

// isUp reports whether a pod serves, and no update of it is under way.
func isUp(pod *corev1.Pod) bool {
	up, _ := scale.Available(pod, 0, time.Now())
	return up && pod.DeletionTimestamp == nil && inplace.Settled(pod, inplace.Policy{})
}

// observe takes an event of a pod.
func (c *chaos) observe(kind watch.EventType, pod *corev1.Pod) {
	s := c.of(pod)
	if s == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.steps++
	before := c.pods[pod.Name]
	at := c.seen[pod.UID]
	if at == nil {
		at = &sighting{epoch: s.epoch}
		c.seen[pod.UID] = at
	}
	if kind == watch.Deleted {
		if before != nil && before.UID == pod.UID {
			delete(c.pods, pod.Name)
		}
		return
	}
	c.pods[pod.Name] = pod
	if isUp(pod) {
		delete(s.out, pod.Name)
	}
	if pod.DeletionTimestamp != nil && !at.terminating {
		at.terminating = true
		c.judgeDeletion(s, pod)
	}
	if before == nil || before.UID != pod.UID {
		return
	}
	if before.Spec.Containers[0].Image != pod.Spec.Containers[0].Image {
		if at.images++; at.images > s.epoch-at.epoch+1 {
			c.breaks("%s: image %d in %d rollouts", pod.Name, at.images, s.epoch-at.epoch+1)
		}
	}
	for _, status := range pod.Status.ContainerStatuses {
		if int(status.RestartCount) > at.images {
			c.breaks("%s: %d restarts, and %d images", pod.Name, status.RestartCount, at.images)
		}
	}
	const key = appsv1.ControllerRevisionHashLabelKey
	if label := pod.Labels[key]; label != before.Labels[key] {
		c.judgeLabel(s, before, pod, label)
	}
}

// judgeLabel: a pod is never counted as updated before its containers run the revision. A pod whose containers have not
// started is, where the revision changes nothing of its containers.
func (c *chaos) judgeLabel(s *subject, before, pod *corev1.Pod, label string) {
	c.inPlace++
	var list appsv1.ControllerRevisionList
	if err := c.live.List(c.Context(), &list, client.InNamespace(c.Namespace)); err != nil {
		return
	}
	for k := range list.Items {
		rev := &list.Items[k]
		if c.of(rev) != s || rev.Name != label && rev.Labels[appsv1.ControllerRevisionHashLabelKey] != label {
			continue
		}
		template, err := revision.Decode(rev.Data.Raw)
		if err != nil {
			c.breaks("%s: %v", rev.Name, err)
			return
		}
		image, statuses := template.Spec.Containers[0].Image, pod.Status.ContainerStatuses
		if len(statuses) == 0 {
			if before.Spec.Containers[0].Image != image || pod.Spec.Containers[0].Image != image {
				c.breaks("%s has label %s of image %s, and no container has run", pod.Name, label, image)
			}
			return
		}
		if pod.Spec.Containers[0].Image != image || statuses[0].Image != image ||
			statuses[0].State.Running == nil {
			c.breaks("%s has label %s of image %s, spec %s and status %+v", pod.Name, label, image,
				pod.Spec.Containers[0].Image, statuses[0])
		}
		return
	}
}

// judgeDeletion: what the built-in controller deletes is not updated, and it does so only when it has been asked to.
func (c *chaos) judgeDeletion(s *subject, pod *corev1.Pod) {
	if c.evicted[pod.UID] || c.killed[pod.UID] || s.least <= s.ordinal(pod) {
		return
	}
	switch {
	case !s.handedOver && time.Since(s.until) > 3*time.Second:
		c.breaks("%s was deleted, and neither evicted nor killed", pod.Name)
	case pod.Spec.Containers[0].Image == s.template().Spec.Containers[0].Image &&
		sameEnv(pod, s.template()):
		c.breaks("%s runs the template, and was restarted by the built-in controller", pod.Name)
	}
}

func sameEnv(pod *corev1.Pod, template *corev1.PodTemplateSpec) bool {
	return fmt.Sprint(pod.Spec.Containers[0].Env) == fmt.Sprint(template.Spec.Containers[0].Env)
}

// write makes a write of the reconciler, unless the manager is killed.
func (c *chaos) write(o client.Object, evicts bool, data []byte, send func() error) error {
	name := o.GetName()
	took, err := c.before(o, evicts, data)
	if err != nil {
		return err
	}
	if pod, is := o.(*corev1.Pod); is {
		if f := c.fleet(pod); f != nil {
			f.judgeWrite(pod, string(data))
		}
	}
	if err = send(); err != nil && took != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(took.out, name)
	}
	return err
}

// before takes a write before it is made, and returns the set of which the write takes a pod out of service.
func (c *chaos) before(o client.Object, evicts bool, data []byte) (*subject, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left--; c.left <= 0 {
		if c.left == 0 {
			close(c.died)
		}
		return nil, errKilled
	}
	c.writes++
	c.steps++
	if evicts {
		c.evicted[o.GetUID()] = true
		c.moved++
	}
	pod := c.pods[o.GetName()]
	if pod == nil || pod.UID != o.GetUID() && o.GetUID() != "" {
		return nil, nil
	}
	s := c.of(pod)
	takesOut := evicts || strings.Contains(string(data), `"StartInPlaceUpdate"`) ||
		strings.Contains(string(data), `"/spec/containers/`)
	if s == nil || !takesOut {
		return nil, nil
	}
	if evicts && s.needless(pod) {
		c.breaks("%s is evicted, and could change in place", pod.Name)
	}
	if !isUp(pod) || s.out[pod.Name] {
		return nil, nil
	}
	s.out[pod.Name] = true
	if len(s.out) > s.max {
		c.look(s, pod.Name)
	}
	if len(s.out) > s.max {
		c.breaks("%v of %s are out of service, and %d may be", slices.Sorted(maps.Keys(s.out)), s.name, s.max)
	}
	return s, nil
}

// look drops pods that are back before the watch has shown it, that are not wanted any more, or, of the pod that is
// about to be written, that another component has taken out of service.
func (c *chaos) look(s *subject, written string) {
	for name := range s.out {
		pod := &corev1.Pod{}
		err := c.live.Get(c.Context(), types.NamespacedName{Namespace: c.Namespace, Name: name}, pod)
		if name == written {
			if err != nil || !isUp(pod) {
				delete(s.out, name)
			}
			continue
		}
		if err == nil && isUp(pod) || s.least <= s.ordinal(&metav1.ObjectMeta{Name: name}) ||
			s.daemon && err != nil {
			delete(s.out, name)
		}
	}
}

// watch follows the pods of the namespace.
func (c *chaos) watch(ctx context.Context) {
	for ctx.Err() == nil {
		w, err := c.live.Watch(ctx, &corev1.PodList{}, client.InNamespace(c.Namespace))
		if err != nil {
			continue
		}
		for e := range w.ResultChan() {
			if pod, is := e.Object.(*corev1.Pod); is {
				if f := c.fleet(pod); f != nil {
					f.observe(e.Type, pod)
				} else {
					c.observe(e.Type, pod)
				}
			}
		}
	}
}

// runChaos runs all for a time, and reports the figures.
func runChaos(t *testing.T, seed uint64, length time.Duration) {
	t.Helper()
	world := cluster.Start(t, cluster.Options{Level: cluster.Simulated, Nodes: 4})
	bench := podbench.On(t, world, podbench.Scheme(t))
	live, err := client.NewWithWatch(world.Config, client.Options{Scheme: bench.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	c := &chaos{
		Bench: bench, live: live, world: world, minor: world.Minor(t),
		pods: map[string]*corev1.Pod{}, seen: map[types.UID]*sighting{},
		evicted: map[types.UID]bool{}, killed: map[types.UID]bool{},
	}
	r := rand.New(rand.NewPCG(seed, 0))
	c.sets = newSubjects()
	c.hold()
	go c.watch(t.Context())
	for _, s := range c.sets {
		if err := c.live.Create(t.Context(), s.object(c.Namespace)); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	var users sync.WaitGroup
	for k, s := range c.sets {
		users.Add(1)
		go func() {
			defer users.Done()
			c.use(ctx, s, rand.New(rand.NewPCG(seed, uint64(k)+1)))
		}()
	}
	for k, f := range c.fleets {
		go f.watch(t.Context())
		users.Add(1)
		go func() {
			defer users.Done()
			f.use(ctx, rand.New(rand.NewPCG(seed, uint64(k)+100)))
		}()
	}
	kills := c.run(ctx, r)
	users.Wait()
	c.settle()
	c.mu.Lock()
	defer c.mu.Unlock()
	t.Logf("seed %d: %d steps, %d writes, %d pods in place, %d evicted, %d kills of the manager, %d violations; "+
		"of Deployments %d pods in place, %d states", seed, c.steps, c.writes, c.inPlace, c.moved, kills, len(c.broken),
		c.deployed, c.judged)
	for _, text := range c.broken {
		t.Error(text)
	}
	if c.inPlace < 5 || c.moved == 0 || kills < 2 || len(c.fleets) > 0 && (c.deployed < 5 || c.judged < 20) {
		t.Error("too little has happened to show anything")
	}
}

// settle waits until all sets have ended at their templates.
func (c *chaos) settle() {
	c.Helper()
	for _, f := range c.fleets {
		c.Until(f.done)
	}
	for _, s := range c.sets {
		c.Until(func() error {
			set := s.object(c.Namespace)
			if err := c.live.Get(c.Context(), client.ObjectKeyFromObject(set), set); err != nil {
				return err
			}
			text := set.GetAnnotations()[native.StatusKey]
			var progress native.Progress
			if err := json.Unmarshal([]byte(text), &progress); err != nil || progress.State != native.StateComplete {
				return fmt.Errorf("%s: %s", s.name, text)
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			n := 0
			for _, pod := range c.pods {
				if c.of(pod) == s && isUp(pod) && sameEnv(pod, s.template()) && !pod.CreationTimestamp.Time.Before(s.since) &&
					pod.Spec.Containers[0].Image == s.template().Spec.Containers[0].Image {
					n++
				}
			}
			if n != int(progress.Pods) {
				return fmt.Errorf("%s: %d pods run the template: %s", s.name, n, text)
			}
			if of, is := set.(*appsv1.StatefulSet); is && s.rolling && of.Status.CurrentRevision != of.Status.UpdateRevision {
				return fmt.Errorf("%s: the status has not completed: %+v", s.name, of.Status)
			}
			return nil
		})
	}
}
