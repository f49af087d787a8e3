package uniteddeployment_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/test/podbench"
	"github.com/kruisekit/kruisekit/test/requests"
	"github.com/kruisekit/kruisekit/test/rig/apiserver"
)

// chaos is an object of which a user, nodes and faults do something at random at each turn.
type chaos struct {
	*model

	rand   *rand.Rand
	seed   uint64
	faults *podbench.Chance
	u      *v1beta1.UnitedDeployment
	// cache of the process, and what that of the next one shows of the object at first.
	cache   *apiserver.Lagging
	earlier *apiserver.Server
	// began is the generation of the object when the process started.
	began int64
	// knows means that the process has written the status, and knows the object as the answer showed it.
	knows bool

	// mu guards what follows: lists are read at the same time.
	mu sync.Mutex
	// stale are lists as the cache showed them some time ago, by their kind.
	stale map[string]*unstructured.UnstructuredList
	lag   bool
}

// Whatever happens, no subset ever has two workloads, no workload goes above the maximum of its subset, and others stay
// as they are. Once the faults end, the object settles at its allocation, and then costs no write.
func TestRandom(t *testing.T) {
	seeds := uint64(12)
	if testing.Short() {
		seeds = 4
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			c := newChaos(t, seed)
			for range 40 {
				c.act()
				c.turn()
			}
			c.settle()
		})
	}
}

func newChaos(t *testing.T, seed uint64) *chaos {
	t.Helper()
	c := &chaos{
		model: newModel(t),
		rand:  rand.New(rand.NewPCG(seed, 1)),
		seed:  seed,
		stale: map[string]*unstructured.UnstructuredList{},
	}
	kinds := []string{"CloneSet", "Deployment", "Advanced", "StatefulSet"}
	changes := []change{of(kinds[seed%4])}
	if c.rand.IntN(3) > 0 {
		changes = append(changes, adaptive(10, 30, c.rand.IntN(2) == 0))
	}
	c.u = c.create("web", int32(c.rand.IntN(8)), []string{"a<3,b", "a<2,b>1,c", "a,b,c<2"}[c.rand.IntN(3)], changes...)
	c.faults = &podbench.Chance{Seed: seed, Of: 10}
	c.reboot()
	return c
}

// reboot starts another process, which has no memory, behind a client that fails at random, and a cache that lags, and
// that may show an older object for a while.
func (c *chaos) reboot() {
	c.Helper()
	c.Look(c.u)
	c.cache, c.began, c.knows = c.Behind(c.earlier), c.u.Generation, false
	if c.rand.IntN(2) == 0 {
		c.cache.Thaw()
	}
	c.restart(interceptor.NewClient(podbench.Writes(c.cache, c.faults.Do), interceptor.Funcs{List: c.list}))
}

// list shows workloads as they are, or as they were.
func (c *chaos) list(ctx context.Context, from client.WithWatch, into client.ObjectList, o ...client.ListOption) error {
	list, is := into.(*unstructured.UnstructuredList)
	if !is {
		return from.List(ctx, into, o...)
	}
	kind := list.GroupVersionKind().String()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lag && c.stale[kind] != nil {
		c.stale[kind].DeepCopyInto(list)
		return nil
	}
	if err := from.List(ctx, list, o...); err != nil {
		return err
	}
	c.stale[kind] = list.DeepCopy()
	return nil
}

// act is what the user, a zone or a fault does.
func (c *chaos) act() {
	c.Helper()
	r := c.rand
	switch r.IntN(16) {
	case 0:
		c.change(c.u, scaled(int32(r.IntN(9))))
	case 1:
		c.change(c.u, image(fmt.Sprint("web:", 1+r.IntN(3))))
	case 2:
		if c.u.Spec.Template.DeploymentTemplate == nil {
			c.change(c.u, partitions(map[string]int32{"a": int32(r.IntN(3)), "b": int32(r.IntN(3))}))
		}
	case 3:
		c.room["a"] = r.IntN(4)
	case 4:
		delete(c.room, "a")
	case 5:
		c.kill([]string{"a", "b", "c"}[r.IntN(3)])
	case 6:
		c.change(c.u, topology([][]string{{"a<3", "b"}, {"b", "a"}, {"c", "a<1", "b>1"}}[r.IntN(3)]...))
	case 7:
		c.drift()
	case 8:
		c.reboot()
	case 9:
		c.Advance(time.Minute)
	case 10:
		c.setLag(true)
	case 11, 12:
		c.setLag(false)
	case 14:
		c.earlier = c.Server.Snapshot()
	case 15:
		c.cache.Thaw()
	case 13:
		if all := c.children(c.u); len(all) > 0 {
			_ = c.Server.Delete(c.Context(), all[r.IntN(len(all))].Object)
		}
	}
}

func (c *chaos) setLag(lag bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lag = lag
}

// drift changes a workload behind the back of the reconciler.
func (c *chaos) drift() {
	c.Helper()
	all := c.children(c.u)
	if len(all) == 0 {
		return
	}
	o := all[c.rand.IntN(len(all))].Object.DeepCopy()
	patch := fmt.Sprintf(`{"spec":{"replicas":%d}}`, c.rand.IntN(9))
	if err := c.Server.Patch(c.Context(), o, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		c.Fatal(err)
	}
}

// turn is a pass, what must hold after it, and a step of the rest of the world.
func (c *chaos) turn() {
	c.Helper()
	drifted := map[string]int32{}
	for _, child := range c.children(c.u) {
		drifted[child.Object.GetName()] = child.Replicas
	}
	c.Server.Requests()
	specs := c.specs(c.u)
	c.Reconcile()
	c.check(drifted)
	c.checkBehind(specs)
	c.world()
	c.Advance(time.Second)
}

// check checks what a pass must never do. A workload that another writer has scaled may be above its maximum until it
// is written.
func (c *chaos) check(before map[string]int32) {
	c.Helper()
	c.Look(c.u)
	seen := map[string]bool{}
	for _, child := range c.children(c.u) {
		i := slices.IndexFunc(c.u.Spec.Topology.Subsets, func(s v1beta1.Subset) bool { return s.Name == child.Subset })
		if seen[child.Subset] {
			c.Fatalf("seed %d: subset %s has two workloads: %s", c.seed, child.Subset, c.picture(c.u))
		}
		seen[child.Subset] = true
		if i < 0 {
			continue // its deletion has failed
		}
		most := c.u.Spec.Topology.Subsets[i].MaxReplicas
		was, is := before[child.Object.GetName()]
		if !is && c.cache.IsFrozen() {
			continue // an older object may create a workload, and changes none
		}
		if most != nil && child.Replicas > most.IntVal && (!is || was != child.Replicas) {
			c.Fatalf("seed %d: subset %s was written with %d replicas, above its maximum %d",
				c.seed, child.Subset, child.Replicas, most.IntVal)
		}
		if !owned.Controls(c.u, child.Object) {
			c.Fatalf("seed %d: %s belongs to another", c.seed, child.Object.GetName())
		}
	}
}

// checkBehind expects that an object that is older than the stored one was when the process started deletes and changes
// no workload.
func (c *chaos) checkBehind(before map[string]string) {
	c.Helper()
	older := &v1beta1.UnitedDeployment{}
	if err := c.cache.Get(c.Context(), client.ObjectKeyFromObject(c.u), older); err != nil {
		c.Fatal(err)
	}
	after, behind := c.specs(c.u), !c.knows && older.Generation < c.began
	c.knows = c.knows || len(requests.About(c.Server.Requests(), "/status")) > 0
	for subset, spec := range before {
		if behind && after[subset] != spec {
			c.Fatalf("seed %d: an older object changes the workload of subset %s: %s became %s",
				c.seed, subset, spec, after[subset])
		}
	}
}

// settle expects the object to get to what its spec asks for, without another fault.
func (c *chaos) settle() {
	c.Helper()
	c.mu.Lock()
	c.faults.Of, c.lag = 0, false
	c.mu.Unlock()
	c.cache.Thaw()
	clear(c.room)
	c.pass(20 * time.Minute)
	c.Look(c.u)
	want, ready := *c.u.Spec.Replicas, int32(0)
	for _, pod := range c.pods(func(p *corev1.Pod) bool { return true }) {
		if !isReady(pod) {
			c.Fatalf("seed %d: %s is not ready: %s", c.seed, pod.Name, c.picture(c.u))
		}
		ready++
	}
	s := c.u.Status
	if ready != want || s.Replicas != want || s.ReadyReplicas != want || s.ReservedPods != 0 ||
		s.ObservedGeneration != c.u.Generation {
		c.Fatalf("seed %d: %d ready of %d: %s\nstatus %+v", c.seed, ready, want, c.picture(c.u), s)
	}
	held := int32(0)
	for _, child := range c.children(c.u) {
		if child.Partition > child.Replicas {
			c.Fatalf("seed %d: partition %d of %d in %s", c.seed, child.Partition, child.Replicas, child.Subset)
		}
		held += child.Partition
	}
	if s.UpdatedReplicas < want-held {
		c.Fatalf("seed %d: %d updated of %d, %d held: %s", c.seed, s.UpdatedReplicas, want, held, c.picture(c.u))
	}
	if held == 0 && s.CurrentRevision != s.UpdatedRevision {
		c.Fatalf("seed %d: status %+v", c.seed, s)
	}
	c.Server.Requests()
	c.Reconcile()
	if requests := c.Server.Requests(); len(requests) > 0 {
		c.Fatalf("seed %d: an idle pass asks %s", c.seed, strings.Join(requests, ", "))
	}
}
