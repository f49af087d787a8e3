package workload_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/driver/runtimeclient"
	"github.com/kruisekit/kruisekit/scale"
	"github.com/kruisekit/kruisekit/test/objects"
	"github.com/kruisekit/kruisekit/test/podbench"
	"github.com/kruisekit/kruisekit/test/storytest"
	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/write"
)

// fleet is an operator whose instances are StatefulSets, which have a controller of their own.
type fleet struct {
	*testing.T
	*objects.Model

	client                              client.Client
	image, current                      string
	replicas, maxUnavailable, partition int32
	slots                               bool
	repeats                             workload.Repeats
	broken                              []string
	passing                             bool
	live                                map[string]client.Object
	created                             int
	// traffic takes objects out of traffic for an update, which a hook allows.
	traffic  bool
	strategy workload.Strategy
}

const childRevision = "example.com/revision"

func newFleet(t *testing.T, slots bool) *fleet {
	t.Helper()
	f := &fleet{
		T: t, image: "web:1", replicas: 3, maxUnavailable: 1, slots: slots, live: map[string]client.Object{},
		strategy: workload.InPlaceIfPossible,
	}
	f.Model = objects.NewModel(t, &appsv1.StatefulSetList{}, func(*runtime.Scheme) error { return nil })
	f.client = f.Server
	f.Server.OnChange(f.changed)
	return f
}

func (f *fleet) children() (all []write.Object) {
	f.Helper()
	var list appsv1.StatefulSetList
	if err := f.Server.List(f.Context(), &list); err != nil {
		f.Fatal(err)
	}
	for k := range list.Items {
		all = append(all, &list.Items[k])
	}
	return all
}

func imageOf(o write.Object) string {
	set, _ := o.(*appsv1.StatefulSet)
	return set.Spec.Template.Spec.Containers[0].Image
}

// serves reports whether the controller of a child has brought the child to its spec.
func serves(o client.Object) bool {
	set, _ := o.(*appsv1.StatefulSet)
	return set != nil && set.DeletionTimestamp == nil && set.Status.ReadyReplicas == 1 &&
		set.Status.UpdateRevision == imageOf(set) && len(set.Status.Conditions) == 0
}

func observeChild(o write.Object) workload.Child {
	set, _ := o.(*appsv1.StatefulSet)
	child := workload.Child{Revision: o.GetLabels()[childRevision], Ready: serves(o), Updated: isUpdated(set)}
	if len(set.Status.Conditions) > 0 {
		child.HeldSince = set.Status.Conditions[0].LastTransitionTime.Time
	}
	if isBroken(set) {
		child.Failed = "its pods crash"
	}
	return child
}

// patchChild changes the image of a child. An image without a colon is one that no running child takes.
func patchChild(o write.Object, to *workload.Revision) (*write.Write, error) {
	image := string(to.Data)
	if image == "fixed" || imageOf(o) == "fixed" {
		return nil, errors.New("spec.volumeClaimTemplates differ")
	}
	return write.JSON(o, write.Main,
		write.Test("/metadata/resourceVersion", o.GetResourceVersion()),
		write.Replace("/spec/template/spec/containers/0/image", image),
		write.Replace(write.Pointer("metadata", "labels", childRevision), to.Name),
	), nil
}

func (f *fleet) build(creations []workload.Creation) (all [][]write.Object, _ error) {
	for _, c := range creations {
		name := c.Slot
		if name == "" {
			f.created++
			name = fmt.Sprintf("web-r%d", f.created)
		}
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, Labels: map[string]string{childRevision: c.Revision, drained: "no"},
		}}
		image := f.image
		if c.Revision != revisionOf(f.image) {
			image = f.current
		}
		set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "app", Image: image}}
		all = append(all, []write.Object{set})
	}
	return all, nil
}

// revisionOf is the name of the revision of an image.
func revisionOf(image string) string {
	return "web-" + fmt.Sprintf("%x", image)
}

func (f *fleet) reconcile() {
	f.Helper()
	if f.current == "" {
		f.current = f.image
	}
	rev := func(image string) workload.Revision {
		return workload.Revision{Name: revisionOf(image), Data: []byte(image)}
	}
	in := workload.Input{
		Scale:  scale.Input{Now: f.Now(), Limits: scale.Limits{MaxUnavailable: f.maxUnavailable, Partition: f.partition}},
		Update: rev(f.image), Current: rev(f.current), Strategy: f.strategy, Build: f.build,
		Repeats:  f.repeats,
		Children: &workload.Children{Observe: observeChild, Patch: patchChild},
	}
	if f.traffic {
		in.Children.Hold, in.GraceSeconds, in.Scale.Hooks = f.holdChild, 3, hooksOfChildren()
	}
	if in.Scale.Limits.Replicas = f.replicas; f.slots {
		in.Scale.Slots = []string{}
		for n := range f.replicas {
			in.Scale.Slots = append(in.Scale.Slots, fmt.Sprintf("web-%d", n))
		}
	}
	in.Instances = in.Children.Instances(&in, f.children())
	pass, err := workload.Plan(in)
	if err != nil {
		f.Fatal(err)
	}
	f.passing = true
	err = driver.Run(f.Context(), pass, driver.Options[*workload.Write]{
		Send: runtimeclient.Sender(f.client, f.client), Owner: client.ObjectKey{Name: "web"},
	})
	f.passing = false
	if err != nil {
		f.Log(err)
	}
	f.repeats = pass.Repeats()
	f.current, _ = pass.Promote(f.current)
	if f.current == revisionOf(f.image) {
		f.current = f.image
	}
	if len(f.broken) > 0 {
		f.Fatal(f.broken[0])
	}
}

// changed holds the bounds after each write of a pass.
func (f *fleet) changed(before, after client.Object) {
	if after == nil {
		delete(f.live, before.GetName())
	} else {
		f.live[after.GetName()] = after
	}
	if !f.passing {
		return
	}
	f.checkTraffic(before, after)
	up, all := int32(0), int32(0)
	for _, child := range f.live {
		if serves(child) {
			up++
		}
		if child.GetDeletionTimestamp() == nil {
			all++
		}
	}
	if before != nil && serves(before) && (after == nil || !serves(after)) && up < f.replicas-f.maxUnavailable {
		f.broken = append(f.broken, fmt.Sprintf("%s leaves %d available", before.GetName(), up))
	}
	if before == nil && all > f.replicas && !f.slots {
		f.broken = append(f.broken, fmt.Sprintf("%s is one of %d", after.GetName(), all))
	}
}

// controlChild is the controller of the children: it brings one to its spec.
func (f *fleet) controlChild(r *rand.Rand) {
	for _, o := range f.children() {
		set, _ := o.(*appsv1.StatefulSet)
		if set == nil || isUpdated(set) || isBroken(set) || r != nil && r.IntN(3) == 0 {
			continue
		}
		before := set.DeepCopy()
		set.Status.ReadyReplicas, set.Status.UpdateRevision = 1, imageOf(set)
		if err := f.Server.Status().Patch(f.Context(), set, client.MergeFrom(before)); err != nil {
			f.Fatal(err)
		}
	}
}

// TestChildren: a fleet of objects rolls within its bounds whatever users and faults do, in place where the objects
// allow that.
func TestChildren(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 12))
			f := newFleet(t, seed%2 == 0)
			f.maxUnavailable = int32(1 + r.IntN(2))
			faults := &podbench.Chance{Seed: seed, Of: 12}
			for range 80 {
				switch r.IntN(10) {
				case 0:
					f.image = []string{"web:1", "web:2", "web:3", "fixed"}[r.IntN(4)]
				case 1:
					f.replicas = int32(r.IntN(6))
				case 2:
					f.partition = int32(r.IntN(3))
				case 3:
					f.client, f.repeats = podbench.Writes(f.Server, faults.Do), workload.Repeats{}
				}
				f.reconcile()
				f.controlChild(r)
				f.Advance(time.Second)
			}
			f.client, f.image, f.partition = f.Server, "web:9", 0
			for range 100 {
				f.reconcile()
				f.controlChild(r)
				f.Advance(time.Second)
			}
			for _, child := range f.children() {
				if imageOf(child) != "web:9" || !serves(child) {
					t.Errorf("%s runs %s", child.GetName(), imageOf(child))
				}
			}
			if n := len(f.children()); n != int(f.replicas) {
				t.Errorf("%d children, want %d", n, f.replicas)
			}
			before := f.Server.Version()
			if f.reconcile(); f.Server.Version() != before {
				t.Error("writes although nothing is left to do")
			}
		})
	}
}

// A story of a fleet: two of its objects are updated in place, and then all of them are recreated, one at a time.
func TestChildStory(t *testing.T) {
	f := newFleet(t, true)
	told := &strings.Builder{}
	fmt.Fprintln(told, "# instances that are objects of another kind roll in place where they can, one at a time")
	for _, image := range []string{"web:1", "web:2", "fixed"} {
		f.image, f.partition = image, 0
		if image == "web:2" {
			f.partition = 1
		}
		fmt.Fprintf(told, "\n        # the user wants %s, and %d of the old ones\n", image, f.partition)
		for range 12 {
			f.reconcile()
			var all []string
			for _, child := range f.children() {
				text := strings.TrimPrefix(child.GetName(), "web-") + ":" + imageOf(child)
				if !serves(child) {
					text += "-"
				}
				all = append(all, text)
			}
			requests := f.Server.Requests()
			if slices.Sort(requests); len(requests) > 0 {
				fmt.Fprintf(told, "%s\n        %s\n", strings.Join(all, " "), strings.Join(requests, "\n        "))
			}
			f.controlChild(nil)
			f.Server.Requests()
			f.Advance(time.Second)
		}
	}
	storytest.Compare(t, "children", told.String())
}

// What a user of the namespace writes on an object must not have the pass write to a pod of the object's name.
func TestChildWithKeysOfPods(t *testing.T) {
	f := newFleet(t, true)
	r := rand.New(rand.NewPCG(1, 2))
	settle := func() {
		for range 10 {
			f.reconcile()
			f.controlChild(r)
			f.Advance(time.Second)
		}
	}
	settle()
	f.image = "web:2"
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:"PreparingDelete"},"annotations":{%q:"{\"revision\":\"x\"}",%q:"x"}}}`,
		kruise.LifecycleStateKey, kruise.InPlaceUpdateStateKey, kruise.PendingRevisionKey)
	for _, child := range f.children() {
		if err := f.Server.Patch(t.Context(), child, client.RawPatch(types.MergePatchType, patch)); err != nil {
			t.Fatal(err)
		}
	}
	f.Server.Requests()
	settle()
	for _, request := range f.Server.Requests() {
		if strings.Contains(request, " pods/") {
			t.Error(request)
		}
	}
	for _, child := range f.children() {
		if imageOf(child) != "web:2" {
			t.Errorf("%s runs %s", child.GetName(), imageOf(child))
		}
	}
}
