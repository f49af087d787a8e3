package workloadspread

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/driver/runtimeclient"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/replicas"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/internal/workloadspread"
	"github.com/kruisekit/kruisekit/internal/workloadspread/subset"
	"github.com/kruisekit/kruisekit/ledger"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/write"
)

// snapshot is what one pass looks at. Objects may be the cache's and are only read.
type snapshot struct {
	spread *subset.Spread
	// malformed is why the spec cannot be read.
	malformed error
	target    workloadspread.Target
	pods      []*corev1.Pod
	// allowed are further kinds of targets.
	allowed []schema.GroupKind
	// unmarked reports that pods lack what the plan gives them.
	unmarked bool
	// versioned are the kinds whose pods have versions.
	versioned []string
	// nodes of the pods that are not annotated.
	nodes map[string]*corev1.Node
	// later are pods that a later pass adopts.
	later map[types.UID]bool
	// newest is the version of pods that the target creates.
	newest string
	now    time.Time
	// early is how long the pass waits for further events of pods.
	early time.Duration
	// gone means that the WorkloadSpread is gone. pods are then those that its annotation is on.
	gone bool
}

func (s *snapshot) key() types.NamespacedName { return client.ObjectKeyFromObject(s.spread) }

// version returns the version of a pod.
func (s *snapshot) version(pod *corev1.Pod) string {
	kind := ""
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		kind = owner.Kind
	}
	return subset.VersionOf(pod, kind, s.versioned)
}

// settled reports whether the target has the pods that it wants, all of one revision.
func (s *snapshot) settled() bool {
	active, revisions := int32(0), map[[2]string]bool{}
	for _, pod := range s.pods {
		if subset.Active(pod) {
			active++
			revisions[[2]string{
				pod.Labels[appsv1.ControllerRevisionHashLabelKey], pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey],
			}] = true
		}
	}
	return !s.target.Base.Unknown && active == s.target.Base.Replicas && len(revisions) <= 1
}

// observe makes the snapshot; nil when there is nothing to do.
func (r *Reconciler) observe(ctx context.Context, name types.NamespacedName) (*snapshot, error) {
	latest, err := r.spreads.Latest(ctx, r.api.Cached, name)
	if err != nil {
		return nil, err
	}
	if latest.Object == nil || latest.Object.GetDeletionTimestamp() != nil {
		if !latest.Cached {
			return r.forget(ctx, name)
		}
		return nil, nil
	}
	if err := r.watchWorkloads(); err != nil {
		return nil, err
	}
	s := &snapshot{versioned: r.options.Versioned, now: r.api.Now()}
	if s.spread, s.malformed, err = stored.Decode[subset.Spread](latest.Object); err != nil {
		return nil, err
	}
	if target, is := workloadspread.TargetOf(s.spread); is && !workloadspread.BuiltIn(schema.GroupKind{
		Group: target.Group, Kind: target.Kind,
	}) {
		s.allowed = r.targets.Kinds.Read(ctx).Targets
	}
	if s.target, err = r.targets.Read(ctx, s.spread); err != nil {
		return nil, err
	}
	if err := r.readPods(ctx, s); err != nil {
		return nil, err
	}
	if s.early = r.pace.early(name, s.settled(), s.now); s.early > 0 {
		return s, nil
	}
	if err := r.readNodes(ctx, s); err != nil {
		return nil, err
	}
	if err := r.readWhole(ctx, s); err != nil {
		return nil, err
	}
	return s, r.readNewest(ctx, s)
}

// forget drops what is known of a WorkloadSpread that is gone, and lists the pods that have its annotation. A
// WorkloadSpread that the cache lacks and that exists is left to another manager, and so are its pods.
func (r *Reconciler) forget(ctx context.Context, name types.NamespacedName) (*snapshot, error) {
	r.spreads.Writes.Forget(name)
	r.pods.Forget(name)
	r.index.Delete(name)
	for _, code := range reported() {
		r.emitted.Forget(about{name, code})
	}
	var list corev1.PodList
	matched := client.MatchingFields{matchField: name.Name}
	err := r.api.Client.List(ctx, &list, client.InNamespace(name.Namespace), matched, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	if len(list.Items) == 0 {
		return nil, nil
	}
	if exists, err := stored.Metadata(ctx, r.api.Live, workloadspread.Kind(), name); err != nil || exists != nil {
		return nil, err
	}
	return &snapshot{gone: true, pods: stored.Pointers(list.Items)}, nil
}

// readPods lists the pods of the target that the filter selects and no other WorkloadSpread takes, as the own writes
// left them.
func (r *Reconciler) readPods(ctx context.Context, s *snapshot) error {
	target, is := workloadspread.TargetOf(s.spread)
	if !is || s.target.Gone {
		r.pods.Forget(s.key())
		return nil
	}
	owners := []types.UID{s.target.UID}
	of := replicas.Workload{Namespace: s.spread.Namespace, Target: target}
	if of.GroupKind() == replicas.Deployments() {
		sets, err := r.targets.Finder.ReplicaSetsOf(ctx, s.spread.Namespace, s.target.UID)
		if err != nil {
			return err
		}
		owners = sets
	}
	var found []*corev1.Pod
	for _, uid := range owners {
		var list corev1.PodList
		if err := r.api.Client.List(ctx, &list,
			append(owned.In(s.spread.Namespace, uid), client.UnsafeDisableDeepCopy)...); err != nil {
			return fmt.Errorf("list pods: %w", err)
		}
		for i := range list.Items {
			if ref := metav1.GetControllerOfNoCopy(&list.Items[i]); ref != nil && ref.UID == uid {
				found = append(found, &list.Items[i])
			}
		}
	}
	if !workloadspread.BuiltIn(of.GroupKind()) {
		more, err := r.distantPods(ctx, s)
		if err != nil {
			return err
		}
		found = append(found, more...)
	}
	written, _, err := r.pods.Overlay(ctx, s.key(), distinct(found))
	if err != nil {
		return err
	}
	selected := slices.DeleteFunc(written, func(pod *corev1.Pod) bool { return !subset.Selects(s.spread, pod.Labels) })
	s.pods, err = r.targets.Own(ctx, r.index, s.spread, selected)
	return err
}

// distantPods lists the pods that a target of a further kind may have below other controllers: those that admission has
// spread, and those that the selector of its scale selects.
func (r *Reconciler) distantPods(ctx context.Context, s *snapshot) ([]*corev1.Pod, error) {
	ways := []client.ListOption{client.MatchingFields{matchField: s.spread.Name}}
	if selector := replicas.Selector(s.target.Selector); selector != nil {
		ways = append(ways, client.MatchingLabelsSelector{Selector: selector})
	}
	var found []*corev1.Pod
	for _, way := range ways {
		var list corev1.PodList
		if err := r.api.Client.List(ctx, &list, client.InNamespace(s.spread.Namespace), way,
			client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list pods: %w", err)
		}
		for i := range list.Items {
			if metav1.GetControllerOfNoCopy(&list.Items[i]) != nil {
				found = append(found, &list.Items[i])
			}
		}
	}
	return found, nil
}

// distinct returns each pod once.
func distinct(pods []*corev1.Pod) []*corev1.Pod {
	seen := make(map[types.UID]bool, len(pods))
	return slices.DeleteFunc(pods, func(pod *corev1.Pod) bool {
		was := seen[pod.UID]
		seen[pod.UID] = true
		return was
	})
}

// readNodes reads the nodes of the pods that the annotation gives no subset of this WorkloadSpread.
func (r *Reconciler) readNodes(ctx context.Context, s *snapshot) error {
	s.nodes = map[string]*corev1.Node{}
	for _, pod := range s.pods {
		name := pod.Spec.NodeName
		if m, is := subset.MatchOf(pod); name == "" || is && m.Name == s.spread.Name || s.nodes[name] != nil {
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

// maxWhole is how many whole pods a pass reads and holds: a tenant can make each of them several MiB.
const maxWhole = 20

// readWhole reads pods live that are compared with patches: a cache lacks most of their specs. A pod that is adopted is
// read once. A pod that cannot be adopted, such as one that rejects its patch, is read again: each pass begins behind
// the pods of the last one, so that no such pod keeps others from their turn.
func (r *Reconciler) readWhole(ctx context.Context, s *snapshot) error {
	if s.malformed != nil {
		return nil //nolint:nilerr // the object's fault: nothing is adopted
	}
	assignment := s.assignment(nil)
	undecided := assignment.Undecided()
	if n := len(undecided); n > maxWhole {
		slices.SortFunc(undecided, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
		first := int(r.api.Now().Unix()%int64(n)) * maxWhole % n
		undecided = slices.Concat(undecided[first:], undecided[:first])
		s.later = map[types.UID]bool{}
		for _, pod := range undecided[maxWhole:] {
			s.later[pod.UID] = true
		}
		undecided = undecided[:maxWhole]
	}
	whole := make(map[types.UID]*corev1.Pod)
	var questions []*write.Write
	for _, pod := range undecided {
		questions = append(questions, &write.Write{Verb: write.Get, Object: pod})
	}
	var mu sync.Mutex
	err := driver.Run(ctx, driver.Writes(questions...), driver.Options[*write.Write]{
		Send: runtimeclient.Sender(r.api.Client, r.api.Live), Now: r.api.Now,
		Answered: func(w *write.Write, answer write.Object, err error) {
			live, is := answer.(*corev1.Pod)
			if err != nil || !is || live.UID != w.Object.GetUID() {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			whole[live.UID] = live
		},
	})
	if err != nil {
		return fmt.Errorf("read pods that lack the annotation: %w", err)
	}
	for i, pod := range s.pods {
		if live := whole[pod.UID]; live != nil {
			s.pods[i] = live
		}
	}
	return nil
}

// assignment returns what pods are given a subset by.
func (s *snapshot) assignment(limits []int32) subset.Assignment {
	return subset.Assignment{
		Spread:  s.spread,
		Limits:  limits,
		Pods:    s.pods,
		Version: s.version,
		Node:    func(name string) *corev1.Node { return s.nodes[name] },
	}
}

// readNewest finds the newest version, by which the pods have their costs. It reads the target or its ReplicaSets live
// while there are several versions, because no cache has annotations of ReplicaSets.
func (r *Reconciler) readNewest(ctx context.Context, s *snapshot) error {
	sets := map[string]string{}
	s.newest = appsv1beta1.WorkloadSpreadVersionIgnored
	for _, pod := range s.pods {
		if owner := metav1.GetControllerOfNoCopy(pod); owner != nil && subset.Active(pod) {
			s.newest = s.version(pod)
			sets[s.newest] = owner.Name
		}
	}
	if len(sets) < 2 || !workloadspread.HasCosts(s.spread) {
		return nil
	}
	var err error
	if target, _ := workloadspread.TargetOf(s.spread); target.Kind == "CloneSet" {
		s.newest, err = r.newestOfCloneSet(ctx, s)
	} else {
		s.newest, err = r.newestOfReplicaSets(ctx, s, sets)
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
func (r *Reconciler) newestOfReplicaSets(ctx context.Context, s *snapshot, sets map[string]string) (string, error) {
	most, newest := int64(-1), ""
	for version, name := range sets {
		set, err := stored.Metadata(ctx, r.api.Live, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"), types.NamespacedName{
			Namespace: s.spread.Namespace, Name: name,
		})
		if err != nil {
			return "", fmt.Errorf("read replicaset %s: %w", name, err)
		}
		if set == nil {
			continue
		}
		number, err := strconv.ParseInt(set.Annotations["deployment.kubernetes.io/revision"], 10, 64)
		if err != nil {
			number = 0
		}
		if number > most || number == most && version > newest {
			most, newest = number, version
		}
	}
	return newest, nil
}

// patched are the own patches of pods. A pod that was deleted stays in its subset until the cache shows the deletion.
type patched struct {
	*ledger.Ledger[*corev1.Pod]
}

// Record takes the answer to a patch of a pod.
func (p patched) Record(owner types.NamespacedName, w *write.Write, answer write.Object, err error) {
	if w.Verb == write.Patch {
		p.Ledger.Record(owner, w, answer, err)
	}
}
