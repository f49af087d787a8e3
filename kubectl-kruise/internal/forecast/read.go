package forecast

import (
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/kinds"
)

// Lister lists the objects of a kind in the version that the API server prefers: those of one namespace, or of all
// where the namespace is empty.
type Lister interface {
	List(kind schema.GroupKind, namespace string, options metav1.ListOptions) ([]unstructured.Unstructured, error)
}

// Snapshot is what was read of a cluster.
type Snapshot struct {
	// Objects are for Input.Objects.
	Objects []client.Object
	// Unread are the kinds that may not be read, with what the forecast lacks without them.
	Unread []string
}

// Read reads what a forecast of a workload needs: its pods, revisions and claims by the selector of the workload, the
// budgets of the namespace, with all pods of the namespace where a budget guards one of the workload, and nodes where
// the kind looks at them. It needs the right to list these. Without the right to list claims, budgets or nodes of a
// CloneSet the snapshot lacks them.
func Read(l Lister, live client.Object) (*Snapshot, error) {
	k, err := kindOf(live)
	if err != nil {
		return nil, err
	}
	f := k.facts(live)
	if f.pods == nil {
		return nil, fmt.Errorf("read %s: the selector is missing", live.GetName())
	}
	selector, err := metav1.LabelSelectorAsSelector(f.pods)
	if err != nil {
		return nil, fmt.Errorf("read selector: %w", err)
	}
	r := &reader{lister: l, namespace: live.GetNamespace(), snapshot: &Snapshot{}}
	selected := metav1.ListOptions{LabelSelector: selector.String()}
	if live.GetNamespace() == "" {
		r.injected(k, live, selected)
		return r.snapshot, r.err
	}
	owner := owners{live.GetUID(): true}
	if f.ownTemplates {
		r.subsets(owner)
	}
	stored := selected
	if _, ok := live.(*appsv1.Deployment); ok {
		add(r, list(r, builtInApps("ReplicaSet"), selected, read[appsv1.ReplicaSet]))
		stored = everything() // the revisions of a Deployment have no labels
	}
	pods := list(r, schema.GroupKind{Kind: "Pod"}, selected, read[corev1.Pod])
	revisions := list(r, builtInApps("ControllerRevision"), stored, read[appsv1.ControllerRevision])
	for i := range revisions {
		if owner.control(revisions[i]) {
			r.snapshot.Objects = append(r.snapshot.Objects, revisions[i])
		}
	}
	if f.claims {
		r.optional = "the claims of its pods"
		add(r, list(r, schema.GroupKind{Kind: "PersistentVolumeClaim"}, selected, read[corev1.PersistentVolumeClaim]))
	}
	if f.nodes {
		if r.optional = ""; k.place == nil {
			r.optional = "the order in which spread constraints delete pods"
		}
		r.namespace = ""
		add(r, list(r, schema.GroupKind{Kind: "Node"}, everything(), read[corev1.Node]))
		r.namespace = live.GetNamespace()
	}
	r.optional = "the budgets that its updates wait for"
	budget := schema.GroupKind{Group: kinds.Policy, Kind: "PodUnavailableBudget"}
	budgets := list(r, budget, everything(), kinds.ReadBudget)
	add(r, budgets)
	guards := func(pod *corev1.Pod) bool { return newGuardOf(r.namespace, r.snapshot.Objects).guarding(pod) >= 0 }
	if len(budgets) > 0 && slices.ContainsFunc(pods, guards) {
		if all := list(r, schema.GroupKind{Kind: "Pod"}, everything(), read[corev1.Pod]); len(all) > 0 {
			pods = all
		}
	}
	add(r, pods)
	return r.snapshot, r.err
}

// owners are the UIDs of objects that control others.
type owners map[types.UID]bool

func (o owners) control(object metav1.Object) bool {
	ref := metav1.GetControllerOfNoCopy(object)
	return ref != nil && o[ref.UID]
}

// subsets reads the workloads of the subsets of a UnitedDeployment.
func (r *reader) subsets(owner owners) {
	united := maps.Clone(owner)
	keep := func(child client.Object) {
		if united.control(child) {
			owner[child.GetUID()] = true
			r.snapshot.Objects = append(r.snapshot.Objects, child)
		}
	}
	for _, set := range list(r, ours(kinds.CloneSet), everything(), kinds.ReadCloneSet) {
		keep(set)
	}
	for _, set := range list(r, ours(kinds.StatefulSet), everything(), kinds.ReadStatefulSet) {
		keep(set)
	}
	for _, set := range list(r, builtInApps(kinds.StatefulSet), everything(), read[appsv1.StatefulSet]) {
		keep(set)
	}
	for _, set := range list(r, builtInApps("Deployment"), everything(), read[appsv1.Deployment]) {
		keep(set)
	}
}

// injected reads what a SidecarSet needs: the pods that have its containers, the other sets, and namespaces.
func (r *reader) injected(k *kind, live client.Object, selected metav1.ListOptions) {
	for _, pod := range list(r, schema.GroupKind{Kind: "Pod"}, selected, read[corev1.Pod]) {
		if k.owns(client.ObjectKeyFromObject(live), pod) {
			r.snapshot.Objects = append(r.snapshot.Objects, pod)
		}
	}
	for _, set := range list(r, ours(kinds.SidecarSet), everything(), kinds.ReadSidecarSet) {
		if set.Name != live.GetName() {
			r.snapshot.Objects = append(r.snapshot.Objects, set)
		}
	}
	r.optional = "the labels of namespaces"
	add(r, list(r, schema.GroupKind{Kind: "Namespace"}, everything(), read[corev1.Namespace]))
}

func ours(kind string) schema.GroupKind { return schema.GroupKind{Group: kinds.Apps, Kind: kind} }

func builtInApps(kind string) schema.GroupKind {
	return schema.GroupKind{Group: appsv1.GroupName, Kind: kind}
}

// everything lists all objects.
func everything() metav1.ListOptions { return metav1.ListOptions{} }

// reader reads lists until one fails.
type reader struct {
	lister    Lister
	namespace string
	// optional is what a snapshot lacks without the next list; empty where there is no snapshot without it.
	optional string
	snapshot *Snapshot
	err      error
}

// list reads the objects of a kind.
func list[T any](
	r *reader, kind schema.GroupKind, o metav1.ListOptions, decode func(*unstructured.Unstructured) (*T, error),
) []*T {
	if r.err != nil {
		return nil
	}
	items, err := r.lister.List(kind, r.namespace, o)
	switch {
	case meta.IsNoMatchError(err) && r.optional != "": // not installed
		return nil
	case apierrors.IsForbidden(err) && r.optional != "":
		unread := fmt.Sprintf("%s: the forecast ignores %s: %v", kind.Kind, r.optional, err)
		r.snapshot.Unread = append(r.snapshot.Unread, unread)
		return nil
	case err != nil:
		r.err = fmt.Errorf("list %s: %w", kind.Kind, err)
		return nil
	}
	all := make([]*T, 0, len(items))
	for i := range items {
		object, err := decode(&items[i])
		if err != nil {
			r.err = err
			return nil
		}
		all = append(all, object)
	}
	return all
}

func read[T any](o *unstructured.Unstructured) (*T, error) { return kinds.Read[T](o) }

// add adds objects to the snapshot.
func add[T any, P interface {
	*T
	client.Object
}](r *reader, objects []*T) {
	for _, o := range objects {
		r.snapshot.Objects = append(r.snapshot.Objects, P(o))
	}
}
