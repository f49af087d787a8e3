package daemonset_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/daemonset"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/workloads"
	"github.com/kruisekit/kruisekit/test/objects"
	"github.com/kruisekit/kruisekit/workload/eligible"
)

// model runs the reconciler of DaemonSets on nodes in memory.
type model struct {
	*testing.T
	*objects.Model

	options daemonset.Options
	// unready are nodes on which pods do not become ready.
	unready map[string]bool
}

// newModel has nodes n1, n2 and so on.
func newModel(t *testing.T, nodes int, o daemonset.Options) *model {
	t.Helper()
	m := &model{
		T:       t,
		Model:   objects.NewModel(t, &v1beta1.DaemonSetList{}, v1beta1.AddToScheme),
		options: o,
		unready: map[string]bool{},
	}
	m.Kubelet.Unready = func(pod *corev1.Pod) bool {
		return m.unready[pod.Spec.NodeName]
	}
	for _, object := range []client.Object{&corev1.Pod{}, &appsv1.ControllerRevision{}} {
		if err := owned.Index(t.Context(), m.Server, object); err != nil {
			t.Fatal(err)
		}
	}
	if err := workloads.IndexOrphans(t.Context(), m.Server, "DaemonSet", workloads.OwnerOfPod); err != nil {
		t.Fatal(err)
	}
	for i := range nodes {
		m.addNode(fmt.Sprint("n", i+1))
	}
	m.restart(m.Server)
	return m
}

// restart starts another reconciler in the place of the one before, with a client of the server.
func (m *model) restart(c client.Client) {
	m.Helper()
	o := m.options
	o.Now, o.Recorder, o.Live = m.Now, m.Server, m.Live
	r, err := daemonset.New(c, o)
	if err != nil {
		m.Fatal(err)
	}
	m.Reconciler = r
}

func (m *model) addNode(name string, changes ...func(*corev1.Node)) {
	m.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}}
	for _, change := range changes {
		change(node)
	}
	if err := m.Server.Create(m.Context(), node); err != nil {
		m.Fatal(err)
	}
}

// node returns a node; an empty one where the node does not exist.
func (m *model) node(name string) *corev1.Node {
	node := &corev1.Node{}
	_ = m.Server.Get(m.Context(), types.NamespacedName{Name: name}, node)
	return node
}

func (m *model) changeNode(name string, change func(*corev1.Node)) {
	m.Helper()
	node := m.node(name)
	before := node.DeepCopy()
	change(node)
	if err := m.Server.Patch(m.Context(), node, client.MergeFrom(before)); err != nil {
		m.Fatal(err)
	}
}

// label sets a label of a node; a value of "-" removes it.
func (m *model) label(node, key, value string) {
	m.Helper()
	m.changeNode(node, func(n *corev1.Node) {
		if value == "-" {
			delete(n.Labels, key)
			return
		}
		n.Labels[key] = value
	})
}

func (m *model) taint(node string, effects ...corev1.TaintEffect) {
	m.Helper()
	m.changeNode(node, func(n *corev1.Node) {
		n.Spec.Taints = nil
		for _, effect := range effects {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "test", Effect: effect})
		}
	})
}

// create creates a set with nothing but what is required, and what changes add.
func (m *model) create(changes ...func(*v1beta1.DaemonSet)) *v1beta1.DaemonSet {
	m.Helper()
	set := &v1beta1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "agent"}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "agent"}}
	set.Spec.Template.Labels = map[string]string{"app": "agent"}
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: "agent:1"}}
	for _, change := range changes {
		change(set)
	}
	if err := m.Server.Create(m.Context(), set); err != nil {
		m.Fatal(err)
	}
	return set
}

// change patches the set.
func (m *model) change(set *v1beta1.DaemonSet, changes ...func(*v1beta1.DaemonSet)) {
	m.Helper()
	objects.Change(m.Model, set, func(set *v1beta1.DaemonSet) {
		for _, change := range changes {
			change(set)
		}
	})
}

// pods returns the pods, those that terminate included, by node and age.
func (m *model) pods() []corev1.Pod {
	m.Helper()
	var list corev1.PodList
	if err := m.Server.List(m.Context(), &list, client.InNamespace("shop"),
		client.MatchingLabels{"app": "agent"}); err != nil {
		m.Fatal(err)
	}
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int {
		return cmp.Or(cmp.Compare(eligible.NodeOf(&a), eligible.NodeOf(&b)),
			a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return list.Items
}

// on returns the first pod of a node.
func (m *model) on(node string) *corev1.Pod {
	m.Helper()
	for _, pod := range m.pods() {
		if eligible.NodeOf(&pod) == node {
			return &pod
		}
	}
	m.Fatalf("no pod on %s: %s", node, m.picture())
	return nil
}

// edit changes a pod by a merge patch.
func (m *model) edit(pod *corev1.Pod, patch string) {
	m.Helper()
	if err := m.Server.Patch(m.Context(), pod, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		m.Fatal(err)
	}
}

// fail has a pod fail.
func (m *model) fail(pod *corev1.Pod) {
	m.Helper()
	if err := m.Server.Status().Patch(m.Context(), pod,
		client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Failed"}}`))); err != nil {
		m.Fatal(err)
	}
}

func (m *model) delete(o client.Object) {
	m.Helper()
	if err := m.Server.Delete(m.Context(), o); err != nil {
		m.Fatal(err)
	}
}

// eventually runs until the check returns nil. It moves the clock to the next requeue where nothing else is left to do.
func (m *model) eventually(set *v1beta1.DaemonSet, check func(*v1beta1.DaemonSet) error) {
	m.Helper()
	m.Eventually(func() error {
		m.Look(set)
		if err := check(set); err != nil {
			return fmt.Errorf("%w\nstatus: %+v\npods: %s", err, set.Status, m.picture())
		}
		return nil
	})
}

// becomes runs until the set has settled with pods as in a picture.
func (m *model) becomes(set *v1beta1.DaemonSet, picture string) {
	m.Helper()
	m.eventually(set, func(*v1beta1.DaemonSet) error {
		if got := m.picture(); got != picture {
			return fmt.Errorf("pods %q, want %q", got, picture)
		}
		return nil
	})
	m.stays(picture)
}

// stays expects a picture when there is nothing left to do now.
func (m *model) stays(picture string) {
	m.Helper()
	m.Still()
	if got := m.picture(); got != picture {
		m.Errorf("pods %q, want %q", got, picture)
	}
}

// idle expects a set that costs no request while nothing changes, also when it is reconciled again.
func (m *model) idle() {
	m.Helper()
	m.Still()
	m.Advance(workloads.StalledAfter) // the condition Stalled changes at most once more
	m.Still()
	m.Idle()
}

// picture is the pods in a few characters each: the node and the release of the image; a dash for not ready, a star for
// terminating.
func (m *model) picture() string {
	m.Helper()
	var all []string
	for _, pod := range m.pods() {
		text := fmt.Sprintf("%s:%s", eligible.NodeOf(&pod), strings.TrimPrefix(pod.Spec.Containers[0].Image, "agent:"))
		switch {
		case pod.DeletionTimestamp != nil:
			text += "*"
		case pod.Status.Phase == corev1.PodFailed:
			text += "!"
		case !isReady(&pod):
			text += "-"
		}
		all = append(all, text)
	}
	return strings.Join(all, " ")
}

// settled expects a status that reports a pod that is updated and available on as many nodes.
func settled(n int32) func(*v1beta1.DaemonSet) error {
	return func(set *v1beta1.DaemonSet) error {
		s := set.Status
		if s.ObservedGeneration != set.Generation || s.DesiredNumberScheduled != n || s.CurrentNumberScheduled != n ||
			s.UpdatedNumberScheduled != n || s.NumberAvailable != n {
			return fmt.Errorf("status has not settled at %d", n)
		}
		return nil
	}
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func uids(pods []corev1.Pod) []string {
	var all []string
	for i := range pods {
		all = append(all, string(pods[i].UID))
	}
	return all
}

func image(name string) func(*v1beta1.DaemonSet) {
	return func(s *v1beta1.DaemonSet) { s.Spec.Template.Spec.Containers[0].Image = name }
}

func rolling(change func(*v1beta1.RollingUpdateDaemonSet)) func(*v1beta1.DaemonSet) {
	return func(s *v1beta1.DaemonSet) {
		if s.Spec.UpdateStrategy.RollingUpdate == nil {
			s.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateDaemonSet{}
		}
		change(s.Spec.UpdateStrategy.RollingUpdate)
	}
}

func inPlace(s *v1beta1.DaemonSet) {
	rolling(func(u *v1beta1.RollingUpdateDaemonSet) { u.Type = v1beta1.InplaceRollingUpdateType })(s)
}

func amount(text string) *intstr.IntOrString { return ptr.To(intstr.Parse(text)) }

func unavailable(text string) func(*v1beta1.DaemonSet) {
	return rolling(func(u *v1beta1.RollingUpdateDaemonSet) { u.MaxUnavailable = amount(text) })
}

func surge(text string) func(*v1beta1.DaemonSet) {
	return rolling(func(u *v1beta1.RollingUpdateDaemonSet) { u.MaxSurge = amount(text) })
}

func partition(text string) func(*v1beta1.DaemonSet) {
	return rolling(func(u *v1beta1.RollingUpdateDaemonSet) { u.Partition = amount(text) })
}

func paused(is bool) func(*v1beta1.DaemonSet) {
	return rolling(func(u *v1beta1.RollingUpdateDaemonSet) { u.Paused = &is })
}

func progressive(s *v1beta1.DaemonSet) {
	s.Spec.ScaleStrategy = &v1beta1.DaemonSetScaleStrategy{PartitionedScaling: true}
}

func hooked(s *v1beta1.DaemonSet) {
	s.Spec.Template.Labels["hold"] = "true"
	s.Spec.Lifecycle = &kruise.Lifecycle{
		PreDelete: &kruise.LifecycleHook{LabelsHandler: map[string]string{"hold": "true"}},
	}
}
