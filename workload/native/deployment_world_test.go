package native_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/driver/runtimeclient"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/test/objects"
	"github.com/kruisekit/kruisekit/test/standin"
	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/workload/native"
	"github.com/kruisekit/kruisekit/write"
)

// world is a Deployment with the controllers of Kubernetes, its user, the policy that holds it, and an operator that
// makes the plans of this package and may be killed at any write.
type world struct {
	*testing.T
	*objects.Model

	builtIn *standin.Deployments
	rand    *rand.Rand
	name    types.NamespacedName
	// caches are those of the built-in controller, of ReplicaSets, and of the operator, of all but pods and revisions.
	caches  [2]client.Reader
	rollout native.Rollout
	// left is how many writes the operator makes before it is killed.
	left int
	// rolls means that the built-in controller may roll out: a change was not possible in place, or nothing held it.
	rolls bool
	// observed are the replicas that the operator has observed.
	observed int32
	// templates counts those of the user, by the generation of the Deployment too, and known those that the operator has
	// observed.
	templates, known int
	numbers          map[int64]int
	seen             map[types.UID]*born
	pods             map[string]*corev1.Pod
	sets             map[string]*appsv1.ReplicaSet
	latest           *appsv1.Deployment
	inPlace          int
	broken           []string
}

// born is what is known of a pod.
type born struct{ templates, images int }

var errKilled = errors.New("the operator is killed")

func newWorld(t *testing.T, seed uint64, changes ...func(*appsv1.Deployment)) *world {
	t.Helper()
	w := &world{
		T: t, Model: objects.NewModel(t, &appsv1.DeploymentList{}, appsv1.AddToScheme), rand: rand.New(rand.NewPCG(seed, 0)),
		name: types.NamespacedName{Namespace: "shop", Name: "web"}, left: 1 << 30,
		numbers: map[int64]int{}, seen: map[types.UID]*born{},
		pods: map[string]*corev1.Pod{}, sets: map[string]*appsv1.ReplicaSet{},
	}
	w.builtIn = &standin.Deployments{Client: w.Server}
	w.Server.OnChange(w.observe)
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web", Annotations: map[string]string{native.RolloutKey: "{}"},
	}}
	d.Spec.Replicas, d.Spec.RevisionHistoryLimit = ptr.To(int32(3)), ptr.To(int32(3))
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	d.Spec.Template.Labels = map[string]string{"app": "web"}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: "web:1"}}
	for _, change := range changes {
		change(d)
	}
	if err := w.Server.Create(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	w.settle()
	return w
}

func (w *world) breaks(format string, args ...any) {
	w.broken = append(w.broken, fmt.Sprintf(format, args...))
}

// observe takes each change of an object, and judges it.
func (w *world) observe(before, after client.Object) {
	if after == nil {
		switch of := before.(type) {
		case *corev1.Pod:
			delete(w.pods, of.Name)
		case *appsv1.ReplicaSet:
			delete(w.sets, of.Name)
		}
		return
	}
	switch of := after.(type) {
	case *corev1.Pod:
		old, _ := before.(*corev1.Pod)
		w.judgePod(old, of)
		w.pods[of.Name] = of
	case *appsv1.ReplicaSet:
		old, _ := before.(*appsv1.ReplicaSet)
		w.judgeSet(old, of)
		w.sets[of.Name] = of
	case *appsv1.Deployment:
		w.latest = of
		w.judgeStatus(of)
		if w.numbers[of.Generation] == 0 {
			w.numbers[of.Generation] = w.templates
		}
	}
}

// user changes the Deployment. The policy holds a changed template of a Deployment that asks for it in the same write.
func (w *world) user(change func(*appsv1.Deployment)) {
	w.Helper()
	objects.Change(w.Model, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: w.name.Namespace, Name: w.name.Name,
	}}, func(d *appsv1.Deployment) {
		before := d.DeepCopy()
		change(d)
		changed := !revision.Same(&before.Spec.Template, &d.Spec.Template)
		if changed {
			w.templates++
			from, to := before.Spec.Template.Spec.Containers[0], d.Spec.Template.Spec.Containers[0]
			w.rolls = w.rolls || !slices.Equal(from.Env, to.Env) ||
				d.Spec.Template.Annotations[restartedAt] != before.Spec.Template.Annotations[restartedAt]
		}
		_, asks := d.Annotations[native.RolloutKey]
		_, held := d.Annotations[native.HoldKey]
		if asks && !d.Spec.Paused && (changed || held) {
			d.Spec.Paused = true
			if !held {
				d.Annotations[native.HoldKey] = strconv.FormatInt(before.Generation, 10)
			}
		}
		w.rolls = w.rolls || !d.Spec.Paused && (changed || before.Spec.Paused) || held && !asks
	})
}

// operate is one reconcile of the operator, which reads from a cache that may lag. A ledger keeps its pods fresh.
func (w *world) operate(cache client.Reader) error {
	d := &appsv1.Deployment{}
	if err := cache.Get(w.Context(), w.name, d); err != nil {
		return err
	}
	var sets appsv1.ReplicaSetList
	var pods corev1.PodList
	var revisions appsv1.ControllerRevisionList
	for list, from := range map[client.ObjectList]client.Reader{&sets: cache, &pods: w.Server, &revisions: w.Server} {
		if err := from.List(w.Context(), list, client.InNamespace("shop")); err != nil {
			return err
		}
	}
	w.observed, w.known = *d.Spec.Replicas, w.numbers[d.Generation]
	_, asks := d.Annotations[native.RolloutKey]
	plan := native.Deployment(d, native.Observed{
		Now: w.Now(), ReplicaSets: pointers(sets.Items), Pods: pointers(pods.Items), Revisions: pointers(revisions.Items),
	}, w.rollout)
	if !asks {
		plan = plan.Release(plan.Notes...)
	}
	pass, err := workload.Plan(plan.Input)
	if err != nil {
		return err
	}
	c := interceptor.NewClient(w.Server, interceptor.Funcs{
		Create: func(ctx context.Context, in client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return w.unlessKilled(func() error { return in.Create(ctx, o, opts...) })
		},
		Delete: func(ctx context.Context, in client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return w.unlessKilled(func() error { return in.Delete(ctx, o, opts...) })
		},
		Patch: func(
			ctx context.Context, in client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption,
		) error {
			return w.unlessKilled(func() error { return in.Patch(ctx, o, p, opts...) })
		},
	})
	send := runtimeclient.Sender(c, w.Server)
	if err := driver.Run(w.Context(), pass, driver.Options[*workload.Write]{Send: send, Now: w.Now}); err != nil {
		return err
	}
	for _, follows := range plan.Writes(pass) {
		if _, err := send(w.Context(), follows); err != nil && !write.IsOutdated(err) {
			return err
		}
	}
	return nil
}

func pointers[T any](items []T) []*T {
	all := make([]*T, len(items))
	for k := range items {
		all[k] = &items[k]
	}
	return all
}

func (w *world) unlessKilled(send func() error) error {
	if w.left--; w.left <= 0 {
		return errKilled
	}
	return send()
}

// settle runs all controllers until nothing changes.
func (w *world) settle() {
	w.Helper()
	w.left, w.builtIn.Cache = 1<<30, nil
	for range 500 {
		version := w.Server.Version()
		err := errors.Join(w.builtIn.Step(w.Context(), w.name), w.operate(w.Server))
		w.RunPods()
		w.Advance(1e9)
		if err == nil && w.Server.Version() == version {
			w.rolls = false
			return
		}
	}
	w.Fatalf("the world does not come to rest:\n%s", w.story())
}

// story is what there is.
func (w *world) story() string {
	var b strings.Builder
	d := w.latest
	fmt.Fprintf(&b, "deployment %s paused %v, annotations %v, status %+v\n", d.Spec.Template.Spec.Containers[0].Image,
		d.Spec.Paused, d.Annotations, d.Status)
	for _, set := range w.sets {
		fmt.Fprintf(&b, "%s: %d of %s, %v\n", set.Name, *set.Spec.Replicas, set.Spec.Template.Spec.Containers[0].Image,
			set.Annotations)
	}
	for _, pod := range w.pods {
		fmt.Fprintf(&b, "%s: %s %v %v\n", pod.Name, pod.Spec.Containers[0].Image, pod.Labels, serves(pod))
	}
	return b.String()
}
