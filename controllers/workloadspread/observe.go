package workloadspread

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/replicas"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/internal/workloadspread"
	"github.com/kruisekit/kruisekit/internal/workloadspread/subset"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/write"
)

// snapshot holds the objects that one reconcile read. They may be those of the cache, and are only read.
type snapshot struct {
	// spread is nil after its deletion; pods are then those that its annotation is on.
	spread *subset.Spread
	// malformed is why the spec cannot be decoded.
	malformed error
	target    workloadspread.Target
	pods      []*corev1.Pod
	// allowed are further kinds of targets.
	allowed []schema.GroupKind
	// versioned are the kinds whose pods have versions.
	versioned []string
	// nodes of the pods that are not annotated.
	nodes map[string]*corev1.Node
	// later are pods that a later reconcile adopts.
	later map[types.UID]bool
	// newest is the version of pods that the target creates.
	newest string
	now    time.Time
}

// assignment returns what pods are given a subset by.
func (s *snapshot) assignment(limits []int32) subset.Assignment {
	return subset.Assignment{
		Spread:  s.spread,
		Limits:  limits,
		Pods:    s.pods,
		Version: func(pod *corev1.Pod) string { return subset.VersionOf(pod, s.versioned) },
		Node:    func(name string) *corev1.Node { return s.nodes[name] },
	}
}

// observe reads the snapshot. It returns nil if there is nothing to do.
func (r *Reconciler) observe(ctx context.Context, name types.NamespacedName) (*snapshot, error) {
	ws, malformed := r.index.Read(name)
	if ws == nil {
		return r.forget(ctx, name)
	}
	if ws.DeletionTimestamp != nil {
		return nil, nil
	}
	s := &snapshot{spread: ws, malformed: malformed, versioned: r.options.Versioned, now: r.api.Now()}
	if !workloadspread.BuiltIn(workloadspread.KindOf(ws)) {
		s.allowed = r.targets.Kinds.Read(ctx).Targets
	}
	var err error
	if s.target, err = r.targets.Read(ctx, ws); err != nil {
		return nil, err
	}
	if err := r.readPods(ctx, s); err != nil {
		return nil, err
	}
	if err := r.readNodes(ctx, s); err != nil {
		return nil, err
	}
	if err := r.readWhole(ctx, s); err != nil {
		return nil, err
	}
	return s, r.readNewest(ctx, s)
}

// forget drops the state of a WorkloadSpread that was deleted, and lists the pods that have its annotation. A
// WorkloadSpread that the cache lacks and that exists is left to another manager, and so are its pods.
func (r *Reconciler) forget(ctx context.Context, name types.NamespacedName) (*snapshot, error) {
	r.pods.Forget(name)
	r.emitted.Forget(name)
	pods, err := r.list(ctx, client.InNamespace(name.Namespace), client.MatchingFields{matchField: name.Name})
	if err != nil || len(pods) == 0 {
		return nil, err
	}
	if exists, err := stored.Metadata(ctx, r.api.Live, workloadspread.Kind(), name); err != nil || exists != nil {
		return nil, err
	}
	return &snapshot{pods: pods}, nil
}

func (r *Reconciler) list(ctx context.Context, o ...client.ListOption) ([]*corev1.Pod, error) {
	var list corev1.PodList
	if err := r.api.Client.List(ctx, &list, append(o, client.UnsafeDisableDeepCopy)...); err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	return stored.Pointers(list.Items), nil
}

// readPods lists the pods of the target that the filter selects and no other WorkloadSpread has, as the own writes left
// them.
func (r *Reconciler) readPods(ctx context.Context, s *snapshot) error { //nolint:gocyclo // one list after the other
	name := client.ObjectKeyFromObject(s.spread)
	if s.target.Gone {
		r.pods.Forget(name)
		return nil
	}
	owners := []types.UID{s.target.UID}
	kind := workloadspread.KindOf(s.spread)
	if kind == replicas.Deployments() {
		var err error
		if owners, err = r.targets.Finder.ReplicaSetsOf(ctx, name.Namespace, s.target.UID); err != nil {
			return err
		}
	}
	var lists [][]client.ListOption
	for _, uid := range owners {
		lists = append(lists, owned.In(name.Namespace, uid))
	}
	further := !workloadspread.BuiltIn(kind)
	if further { // its pods may be below other controllers: those that were spread, and those that its scale selects
		lists = append(lists, []client.ListOption{
			client.InNamespace(name.Namespace), client.MatchingFields{matchField: name.Name},
		})
		if selector := replicas.Selector(s.target.Selector); selector != nil {
			lists = append(lists, []client.ListOption{
				client.InNamespace(name.Namespace), client.MatchingLabelsSelector{Selector: selector},
			})
		}
	}
	var found []*corev1.Pod
	seen := map[types.UID]bool{}
	for _, o := range lists {
		pods, err := r.list(ctx, o...)
		if err != nil {
			return err
		}
		for _, pod := range pods {
			owner := metav1.GetControllerOfNoCopy(pod)
			if owner != nil && !seen[pod.UID] && (further || slices.Contains(owners, owner.UID)) {
				seen[pod.UID] = true
				found = append(found, pod)
			}
		}
	}
	written, _, err := r.pods.Overlay(ctx, name, found)
	if err != nil {
		return err
	}
	s.pods = slices.DeleteFunc(written, func(pod *corev1.Pod) bool {
		return !subset.Selects(s.spread, pod.Labels) || r.index.Others(s.spread, pod)
	})
	return nil
}

// readNodes reads the nodes of the pods that the annotation gives no subset of this WorkloadSpread.
func (r *Reconciler) readNodes(ctx context.Context, s *snapshot) error {
	s.nodes = map[string]*corev1.Node{}
	for _, pod := range s.pods {
		name := pod.Spec.NodeName
		if m, ok := subset.MatchOf(pod); name == "" || ok && m.Name == s.spread.Name || s.nodes[name] != nil {
			continue
		}
		node := &corev1.Node{}
		if err := r.api.Client.Get(ctx, types.NamespacedName{Name: name}, node,
			client.UnsafeDisableDeepCopy); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("read node %s: %w", name, err)
		} else if err == nil {
			s.nodes[name] = node
		}
	}
	return nil
}

// maxWhole is how many whole pods a reconcile reads and holds: a tenant can make each of them several MiB.
const maxWhole = 20

// readWhole reads pods live that are compared with patches: a cache lacks most of their specs. A pod that is adopted is
// read once. Beyond the bound, a reconcile begins at any of the pods: some may never be adopted.
func (r *Reconciler) readWhole(ctx context.Context, s *snapshot) error {
	if s.malformed != nil {
		return nil //nolint:nilerr // the object's fault: nothing is adopted
	}
	assignment := s.assignment(nil)
	undecided := assignment.Undecided()
	if n := len(undecided); n > maxWhole {
		first := rand.Intn(n)
		undecided = slices.Concat(undecided[first:], undecided[:first])
		s.later = map[types.UID]bool{}
		for _, pod := range undecided[maxWhole:] {
			s.later[pod.UID] = true
		}
		undecided = undecided[:maxWhole]
	}
	var reads []*write.Write
	for _, pod := range undecided {
		reads = append(reads, &write.Write{Verb: write.Get, Object: pod})
	}
	whole := map[types.UID]*corev1.Pod{}
	for _, answer := range r.api.SendEach(ctx, client.ObjectKeyFromObject(s.spread), reads) {
		if client.IgnoreNotFound(answer.Err) != nil {
			return fmt.Errorf("read pods that lack the annotation: %w", answer.Err)
		}
		if live, ok := answer.Object.(*corev1.Pod); ok {
			whole[live.UID] = live
		}
	}
	for i, pod := range s.pods {
		if live := whole[pod.UID]; live != nil {
			s.pods[i] = live
		}
	}
	return nil
}

// readNewest finds the newest version, by which the pods have their costs. It reads the target or its ReplicaSets live
// while there are several versions, because no cache has annotations of ReplicaSets.
func (r *Reconciler) readNewest(ctx context.Context, s *snapshot) error {
	sets := map[string]string{}
	s.newest = appsv1beta1.WorkloadSpreadVersionIgnored
	for _, pod := range s.pods {
		if owner := metav1.GetControllerOfNoCopy(pod); owner != nil && subset.Active(pod) {
			s.newest = subset.VersionOf(pod, s.versioned)
			sets[s.newest] = owner.Name
		}
	}
	if len(sets) < 2 || !workloadspread.HasCosts(s.spread) {
		return nil
	}
	var err error
	if workloadspread.KindOf(s.spread).Kind == "CloneSet" {
		s.newest, err = r.newestOfCloneSet(ctx, s)
	} else {
		s.newest, err = r.newestOfReplicaSets(ctx, s.spread.Namespace, sets)
	}
	return err
}

// newestOfCloneSet returns the version to which a CloneSet updates its pods.
func (r *Reconciler) newestOfCloneSet(ctx context.Context, s *snapshot) (string, error) {
	set := stored.Untyped(appsv1beta1.GroupVersion.WithKind("CloneSet"))
	name := types.NamespacedName{Namespace: s.spread.Namespace, Name: s.spread.Spec.TargetReference.Name}
	if err := r.api.Live.Get(ctx, name, set); client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("read cloneset %s: %w", name.Name, err)
	}
	updated, _, _ := stored.Value[string](set, "status", "updateRevision")
	return revision.Short(updated), nil
}

// newestOfReplicaSets returns the version of the newest ReplicaSet, of names by version.
func (r *Reconciler) newestOfReplicaSets(
	ctx context.Context, namespace string, sets map[string]string,
) (string, error) {
	highest, newest := int64(-1), ""
	for version, name := range sets {
		set, err := stored.Metadata(ctx, r.api.Live, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"),
			types.NamespacedName{Namespace: namespace, Name: name})
		if err != nil {
			return "", fmt.Errorf("read replicaset %s: %w", name, err)
		}
		if set == nil {
			continue
		}
		// An annotation that is no number counts as 0.
		number, _ := strconv.ParseInt(set.Annotations["deployment.kubernetes.io/revision"], 10, 64)
		if number > highest || number == highest && version > newest {
			highest, newest = number, version
		}
	}
	return newest, nil
}
