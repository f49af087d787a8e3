package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"iter"
	"log"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/revision"
)

const (
	replicas, size, unavailable = 4, 3, 2

	pathOfTeam = "/apis/example.com/v1/namespaces/ns/teams/web"
)

var again = flag.Uint64("seed", 0, "of the random tests, to repeat what failed")

// seeds yields n seeds, fewer with -short, that no run before has had, or the one to repeat.
func seeds(n uint64) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		if *again != 0 {
			yield(*again)
			return
		}
		if testing.Short() {
			n = max(n/8, 1)
		}
		begin := uint64(time.Now().UnixNano())
		for i := range n {
			if !yield(begin + i) {
				return
			}
		}
	}
}

// TestKilled kills the operator at random writes, before and after the server has them, while both images change forth
// and back.
func TestKilled(t *testing.T) {
	t.Parallel()
	kills := 0
	for seed := range seeds(8) {
		w := newWorld(t, seed)
		w.settle()
		first := w.uids()
		for range 2 + w.random.IntN(5) {
			w.setImage("leader", w.random.IntN(3))
			w.setImage("worker", w.random.IntN(3))
			for range w.random.IntN(12) {
				w.step()
			}
		}
		w.settle()
		if last := w.uids(); fmt.Sprint(last) != fmt.Sprint(first) {
			w.Fatalf("seed %d: pods were recreated: before %v, after %v", seed, first, last)
		}
		kills += w.kills
	}
	if kills == 0 {
		t.Error("the operator was never killed")
	}
}

// TestKilledRecreating kills the operator while templates change in a way that no running pod can follow, and while the
// numbers change.
func TestKilledRecreating(t *testing.T) {
	t.Parallel()
	for seed := range seeds(4) {
		w := newWorld(t, seed)
		w.settle()
		first := w.uids()
		w.set("/spec/worker/spec/containers/0/env", `[{"name":"LEVEL","value":"debug"}]`)
		w.settle()
		for path, uid := range w.uids() {
			if first[path] == uid {
				w.Fatalf("seed %d: %s was not recreated", seed, path)
			}
		}
		first = w.uids()
		w.size = 2
		w.set("/spec/size", "2")
		w.settle()
		for path, uid := range w.uids() {
			if first[path] != uid {
				w.Fatalf("seed %d: %s was recreated", seed, path)
			}
		}
		w.replicas, w.established = 2, false
		w.set("/spec/replicas", "2")
		w.settle()
	}
}

// world is a server with an operator that dies now and then.
type world struct {
	*testing.T
	*server

	seed           uint64
	random         *rand.Rand
	kills          int
	replicas, size int
	images         map[string]string
	// established means that all groups were in traffic once.
	established bool
}

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	log.SetOutput(io.Discard)
	w := &world{
		T: t, seed: seed, random: rand.New(rand.NewPCG(seed, 0)), replicas: replicas, size: size, images: map[string]string{
			"leader": "leader:0", "worker": "worker:0",
		},
	}
	w.server = &server{objects: map[string]map[string]any{}, pods: map[string]*corev1.Pod{}, changed: w.check}
	spec := map[string]any{"replicas": replicas, "size": size, "maxUnavailable": "50%"}
	for role, image := range w.images {
		spec[role] = corev1.PodTemplateSpec{
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image}}},
		}
	}
	w.put(pathOfTeam, map[string]any{
		"metadata": metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "team"}, "spec": spec,
	})
	return w
}

// set replaces a field of the team.
func (w *world) set(pointer, value string) {
	patch := fmt.Sprintf(`[{"op":"add","path":%q,"value":%s}]`, pointer, value)
	if code, answer := w.patch(pathOfTeam, "", types.JSONPatchType, []byte(patch)); code != 200 {
		w.Fatal(answer)
	}
}

func (w *world) setImage(role string, version int) {
	w.images[role] = fmt.Sprintf("%s:%d", role, version)
	w.set("/spec/"+role+"/spec/containers/0/image", fmt.Sprintf("%q", w.images[role]))
}

// step is one pass of a new process, which dies at one of its writes by chance, and something that the nodes do.
func (w *world) step() {
	ctx, cancel := context.WithCancel(w.Context())
	defer cancel()
	w.writes, w.diesAt, w.diesAfter, w.die = 0, 0, w.random.IntN(2) == 0, func() { w.kills++; cancel() }
	if w.random.IntN(2) == 0 {
		w.diesAt = 1 + w.random.IntN(8)
	}
	late := w.late != nil
	o := operator{Clientset: w.client()}
	err := o.reconcileAll(ctx)
	if err != nil && ctx.Err() == nil && (!late || w.late != nil) {
		w.Fatalf("seed %d: %v", w.seed, err)
	}
	for range w.random.IntN(3) {
		w.runPods(w.random)
	}
}

// settle waits until all groups are whole, in traffic, and as the team asks for.
func (w *world) settle() {
	w.Helper()
	var reason string
	for range 400 {
		w.step()
		if reason = w.unsettled(); reason == "" {
			w.established = true
			return
		}
	}
	w.Fatalf("seed %d: %s", w.seed, reason)
}

// unsettled returns what is not yet as the team asks for.
func (w *world) unsettled() string {
	if len(w.pods) != w.replicas*w.size {
		return fmt.Sprintf("%d pods", len(w.pods))
	}
	t := decode[team](w.objects[pathOfTeam])
	in, err := t.input(nil, revision.ControlledBy(&t, w.revisions()))
	if err != nil || len(in.Store.Next()) > 0 || in.Update.Name != t.Status.CurrentRevision {
		return fmt.Sprintf("revision %s, current %s: %v", in.Update.Name, t.Status.CurrentRevision, err)
	}
	for path, pod := range w.pods {
		role := "worker"
		if pod.Labels[memberLabel] == "leader" {
			role = "leader"
		}
		image := pod.Status.ContainerStatuses
		if !serves(pod) || len(image) == 0 || image[0].Image != w.images[role] ||
			pod.Labels[kruise.PodRevisionLabelKey] != in.Update.Name {
			return fmt.Sprintf("pod %s runs %v at %s instead of %s",
				path, image, pod.Labels[kruise.PodRevisionLabelKey], in.Update.Name)
		}
	}
	return ""
}

// check holds after each change of an object: no more pods than wanted, no container changes in traffic, and no more
// groups than allowed are out of traffic.
func (w *world) check() {
	serving, changing := map[string]int{}, map[string]string{}
	for path, pod := range w.pods {
		group := pod.Labels[groupLabel]
		if serves(pod) {
			serving[group]++
		}
		if s := pod.Status.ContainerStatuses; len(s) > 0 && s[0].Image != "" && s[0].Image != pod.Spec.Containers[0].Image {
			changing[group] = path
		}
	}
	whole := 0
	for group, n := range serving {
		if path := changing[group]; path != "" && n > 0 {
			w.Fatalf("seed %d: %s changes while %d pods of its group are in traffic", w.seed, path, n)
		}
		if n >= w.size {
			whole++
		}
	}
	if w.established && whole < w.replicas-unavailable {
		w.Fatalf("seed %d: %d of %d groups are in traffic, at most %d may be unavailable",
			w.seed, whole, w.replicas, unavailable)
	}
	if !w.established && len(w.pods) > replicas*size {
		w.Fatalf("seed %d: %d pods", w.seed, len(w.pods))
	}
}

// serves reports whether the pod is in traffic, or about to be.
func serves(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && isTrue(pod, corev1.PodReady) && isTrue(pod, kruise.InPlaceUpdateReady)
}

func (w *world) revisions() []appsv1.ControllerRevision {
	var all []appsv1.ControllerRevision
	for path, object := range w.objects {
		if strings.Contains(path, "/controllerrevisions/") {
			all = append(all, decode[appsv1.ControllerRevision](object))
		}
	}
	return all
}

func (w *world) uids() map[string]types.UID {
	uids := map[string]types.UID{}
	for path, pod := range w.pods {
		uids[strings.TrimPrefix(path, "/api/v1/namespaces/ns/pods/")] = pod.UID
	}
	return uids
}
