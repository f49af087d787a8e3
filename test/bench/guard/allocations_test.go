package guard_test

import (
	"context"
	"fmt"
	"reflect"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cached answers a list as the cache of a manager does that is asked not to copy: with what it answered before, in a
// slice of its own.
type cached struct {
	client.WithWatch

	lists map[string]client.ObjectList
}

func (c cached) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	o := (&client.ListOptions{}).ApplyOptions(opts)
	key := fmt.Sprintf("%T %v %v %s", into, o.FieldSelector, o.LabelSelector, o.Namespace)
	stored, is := c.lists[key]
	if !is {
		if err := c.WithWatch.List(ctx, into, opts...); err != nil {
			return err
		}
		stored, is = into.DeepCopyObject().(client.ObjectList)
		if !is {
			return fmt.Errorf("the copy of %T is no list", into)
		}
		c.lists[key] = stored
	}
	to, from := reflect.ValueOf(into).Elem(), reflect.ValueOf(stored).Elem()
	to.Set(from)
	items := reflect.MakeSlice(from.FieldByName("Items").Type(), 0, from.FieldByName("Items").Len())
	to.FieldByName("Items").Set(reflect.AppendSlice(items, from.FieldByName("Items")))
	return nil
}

// most are the allocations, for each pod of the largest workload, of a pass that has nothing to do: a fifth more than
// were measured.
func most() map[string]float64 {
	return map[string]float64{"CloneSet": 1.8, "StatefulSet": 11.5, "DaemonSet": 6.7}
}

// The allocations of a pass grow with the pods and no faster, and do not exceed their figures.
func TestAllocations(t *testing.T) {
	sizes := []int{10, 100, 500}
	for name := range kinds() {
		t.Run(name, func(t *testing.T) {
			each := 0.0
			for _, n := range sizes {
				w := settled(t, name, n)
				before := each
				each = testing.AllocsPerRun(3, w.Model.Reconcile) / float64(n)
				t.Logf("%5d pods: %.1f allocations a pod in a pass that has nothing to do", n, each)
				if n > sizes[0] && each > before*1.01 {
					t.Errorf("%.1f allocations a pod with %d pods, and fewer with fewer", each, n)
				}
			}
			if each > most()[name] {
				t.Errorf("%.1f allocations a pod with %d pods, want %.1f at most", each, sizes[len(sizes)-1], most()[name])
			}
		})
	}
}

// settled has a workload of n pods with which nothing is left to do, and a reconciler that reads from a cache.
func settled(t *testing.T, name string, n int) *world {
	t.Helper()
	k := kinds()[name]
	w, _, _ := newWorld(t, k, name, n)
	w.Still()
	w.use(k, cached{w.Server, map[string]client.ObjectList{}})
	w.Model.Reconcile()
	if w.Server.Requests(); len(w.Pods()) != n {
		t.Fatalf("%d pods, want %d", len(w.Pods()), n)
	}
	return w
}
