//go:build envtest

package daemonset_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/daemonset"
	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/test/podbench"
	"github.com/kruisekit/kruisekit/test/standin"
	"github.com/kruisekit/kruisekit/workload/eligible"
)

func TestMain(m *testing.M) { os.Exit(cluster.MainAtOnce(m, 8)) }

// The API server accepts all writes, and events of nodes reconcile the set. Nodes have no namespace, so that the test
// has a control plane of its own.
func TestServer(t *testing.T) {
	scheme := podbench.Scheme(t)
	c := cluster.Start(t, cluster.Options{
		Private: true, Scheme: scheme, CRDDirs: []string{"../../config/crd/bases/apps.kruise.io_daemonsets.yaml"},
	})
	s := &server{Bench: podbench.On(t, c, scheme)}
	s.Patience = time.Minute
	s.Beside(func(mgr ctrl.Manager) error {
		return (&standin.Kubelet{Client: mgr.GetClient(), Namespace: s.Namespace, Node: "n1"}).SetupWithManager(mgr)
	})
	s.Run(func(mgr ctrl.Manager, c client.WithWatch) error {
		r, err := daemonset.New(c, daemonset.Options{})
		if err != nil {
			return err
		}
		return r.SetupWithManager(t.Context(), mgr, controller.Options{MaxConcurrentReconciles: 2})
	})
	for _, name := range []string{"n1", "n2"} {
		s.addNode(t, name)
	}
	set := &v1beta1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "agent"}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "agent"}}
	set.Spec.Template.Labels = map[string]string{"app": "agent"}
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: "agent:1"}}
	inPlace(set)
	if err := s.Client.Create(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	s.until(set, "n1:1 n2:1", settled(2))
	first := s.uids(t)

	s.addNode(t, "n3")
	s.until(set, "n1:1 n2:1 n3:1", settled(3))
	s.change(t, set, image("agent:2"))
	s.until(set, "n1:2 n2:2 n3:2", settled(3))
	if now := s.uids(t); !slices.Equal(first, now[:2]) {
		t.Errorf("pods %v became %v", first, now)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n3"}}
	taint := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"taints":[{"key":"a","effect":"NoExecute"}]}}`))
	if err := s.Client.Patch(t.Context(), node, taint); err != nil {
		t.Fatal(err)
	}
	s.until(set, "n1:2 n2:2", settled(2))
	s.change(t, set, image("agent:3"), func(d *v1beta1.DaemonSet) {
		d.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateDaemonSet{
			MaxSurge: amount("1"), MaxUnavailable: amount("0"),
		}
	})
	s.until(set, "n1:3 n2:3", settled(2))
	if err := s.Client.Delete(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	s.until(set, "n1:3 n2:3", settled(2))
}

type server struct{ *podbench.Bench }

func (s *server) addNode(t *testing.T, name string) {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}}
	// The API server gives new nodes a taint until they are ready.
	ready := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"taints":null}}`))
	if err := errors.Join(s.Client.Create(t.Context(), node), s.Client.Patch(t.Context(), node, ready)); err != nil {
		t.Fatal(err)
	}
}

func (s *server) change(t *testing.T, set *v1beta1.DaemonSet, changes ...func(*v1beta1.DaemonSet)) {
	t.Helper()
	if err := s.Look(set); err != nil {
		t.Fatal(err)
	}
	before := set.DeepCopy()
	for _, change := range changes {
		change(set)
	}
	if err := s.Client.Patch(t.Context(), set, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

func (s *server) pods(t *testing.T) []corev1.Pod {
	t.Helper()
	var list corev1.PodList
	if err := s.Client.List(t.Context(), &list, client.InNamespace(s.Namespace)); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int {
		return strings.Compare(eligible.NodeOf(&a), eligible.NodeOf(&b))
	})
	return list.Items
}

func (s *server) uids(t *testing.T) []string {
	t.Helper()
	return uids(s.pods(t))
}

// until waits for pods on nodes, and for a status.
func (s *server) until(set *v1beta1.DaemonSet, picture string, check func(*v1beta1.DaemonSet) error) {
	s.Helper()
	s.Until(func() error {
		var all []string
		for _, pod := range s.pods(s.T) {
			all = append(all,
				fmt.Sprintf("%s:%s", eligible.NodeOf(&pod), strings.TrimPrefix(pod.Spec.Containers[0].Image, "agent:")))
		}
		if got := strings.Join(all, " "); got != picture {
			return fmt.Errorf("pods %q, want %q", got, picture)
		}
		return errors.Join(s.Look(set), check(set))
	})
}
