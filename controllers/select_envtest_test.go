//go:build envtest

package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/sidecarset"
	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/test/requests"
	"github.com/kruisekit/kruisekit/test/standin"
)

// team is the label of the selectors.
const team = "teams.example.com/name"

// shared is an API server with a manager of each of two teams.
type shared struct {
	*testing.T

	c         *cluster.Cluster
	namespace string
	// sent are the requests of the managers, by their team.
	sent map[string]*requests.Recorder
}

// Two managers with different selectors share an API server: each writes only to its own objects and their pods, and an
// object whose label changes is handed over.
func TestSelectors(t *testing.T) {
	scheme := managerOptions(t).Scheme
	c := cluster.Start(t, cluster.Options{CRDDirs: []string{"../config/crd/bases"}, Scheme: scheme})
	s := &shared{T: t, c: c, namespace: c.Namespace(t), sent: map[string]*requests.Recorder{}}
	s.start("kubelet", ctrl.Options{Scheme: scheme}, func(mgr ctrl.Manager) error {
		return (&standin.Kubelet{Client: mgr.GetClient(), Namespace: s.namespace, Node: "node-1"}).SetupWithManager(mgr)
	})
	for _, of := range []string{"red", "blue"} {
		s.create(s.cloneSet(of), s.sidecarSet(of), s.markedPod(of))
		s.start(of, managerOptions(t), func(mgr ctrl.Manager) error {
			return AddToManager(t.Context(), mgr, Options{
				Names:      []string{"cloneset", "sidecarset", "statefulset", "uniteddeployment", "workloadspread"},
				Selector:   labels.SelectorFromSet(labels.Set{team: s.namespace + "-" + of}),
				SidecarSet: sidecarset.Options{Namespace: s.namespace},
				Controller: func(string) controller.Options { return controller.Options{SkipNameValidation: ptr.To(true)} },
			})
		})
	}
	s.runs("red", "app:1")
	s.runs("blue", "app:1")
	s.wroteTo("red", "red")
	s.wroteTo("blue", "blue")

	s.patch("red", func(set *v1beta1.CloneSet) { set.Spec.Template.Spec.Containers[0].Image = "app:2" })
	s.runs("red", "app:2")
	s.wroteTo("red", "red")
	s.wroteTo("blue")

	s.patch("red", func(set *v1beta1.CloneSet) { set.Labels[team] = s.namespace + "-blue" })
	s.relabel("red", "blue")
	s.still()
	s.patch("red", func(set *v1beta1.CloneSet) { set.Spec.Template.Spec.Containers[0].Image = "app:3" })
	s.runs("red", "app:3")
	s.wroteTo("red")
	s.wroteTo("blue", "red")
}

func managerOptions(t *testing.T) ctrl.Options {
	t.Helper()
	o, err := ManagerOptions()
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// start starts a manager that ends with the test.
func (s *shared) start(of string, mo ctrl.Options, add func(ctrl.Manager) error) {
	s.Helper()
	mo.Metrics = metricsserver.Options{BindAddress: "0"}
	config := rest.CopyConfig(s.c.Config)
	s.sent[of] = &requests.Recorder{Namespace: s.namespace}
	config.Wrap(s.sent[of].Wrap)
	mgr, err := ctrl.NewManager(config, mo)
	if err != nil {
		s.Fatal(err)
	}
	if err := add(mgr); err != nil {
		s.Fatal(err)
	}
	ctx, stop := context.WithCancel(s.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	s.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			s.Error(err)
		}
	})
}

func (s *shared) create(objects ...client.Object) {
	s.Helper()
	for _, object := range objects {
		pod, isPod := object.DeepCopyObject().(*corev1.Pod)
		if err := s.c.Client.Create(s.Context(), object); err != nil {
			s.Fatal(err)
		}
		s.Cleanup(func() { // the context of the test is over
			err := s.c.Client.Delete(context.WithoutCancel(s.Context()), object)
			if client.IgnoreNotFound(err) != nil {
				s.Error(err)
			}
		})
		if !isPod {
			continue
		}
		bare := pod.DeepCopy()
		bare.Status = corev1.PodStatus{}
		if err := s.c.Client.Status().Patch(s.Context(), pod, client.StrategicMergeFrom(bare)); err != nil {
			s.Fatal(err)
		}
	}
}

func (s *shared) meta(of string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: s.namespace, Name: of, Labels: map[string]string{team: s.namespace + "-" + of}}
}

func (s *shared) cloneSet(of string) *v1beta1.CloneSet {
	app := map[string]string{"app": of}
	return &v1beta1.CloneSet{ObjectMeta: s.meta(of), Spec: v1beta1.CloneSetSpec{
		Replicas: ptr.To(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: app},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: app},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:1"}}},
		},
		UpdateStrategy: v1beta1.CloneSetUpdateStrategy{RollingUpdate: &v1beta1.RollingUpdateCloneSetStrategy{
			PodUpdatePolicy: v1beta1.InPlaceIfPossibleCloneSetPodUpdateStrategyType,
		}},
	}}
}

func (s *shared) sidecarSet(of string) *v1beta1.SidecarSet {
	set := &v1beta1.SidecarSet{ObjectMeta: s.meta(of), Spec: v1beta1.SidecarSetSpec{
		Selector:   &metav1.LabelSelector{MatchLabels: map[string]string{"marked": of}},
		Containers: []v1beta1.SidecarContainer{{Container: corev1.Container{Name: "proxy", Image: "proxy"}}},
	}}
	set.Namespace, set.Name = "", s.namespace+"-"+of
	return set
}

// markedPod is a pod with a condition about the SidecarSet, which a reconciler removes where the set is gone.
func (s *shared) markedPod(of string) *corev1.Pod {
	set := s.sidecarSet(of).Name
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: of + "-marked", Labels: map[string]string{"marked": of}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:1"}}},
	}
	pod.Annotations = map[string]string{kruise.SidecarSetInjectedListKey: set}
	pod.Status.Conditions = []corev1.PodCondition{{
		Type: kruise.SidecarSetUpgradable, Status: corev1.ConditionFalse, Message: fmt.Sprintf(`{"%s":false}`, set),
	}}
	return pod
}

func (s *shared) patch(name string, change func(*v1beta1.CloneSet)) {
	s.Helper()
	set := s.cloneSet(name)
	if err := s.c.Client.Get(s.Context(), client.ObjectKeyFromObject(set), set); err != nil {
		s.Fatal(err)
	}
	before := client.MergeFrom(set.DeepCopy())
	change(set)
	if err := s.c.Client.Patch(s.Context(), set, before); err != nil {
		s.Fatal(err)
	}
}

// relabel hands the SidecarSet of one team to another.
func (s *shared) relabel(of, to string) {
	s.Helper()
	set := s.sidecarSet(of)
	before := client.MergeFrom(set.DeepCopy())
	set.Labels[team] = s.namespace + "-" + to
	if err := s.c.Client.Patch(s.Context(), set, before); err != nil {
		s.Fatal(err)
	}
}

// runs waits until the pods of a CloneSet run an image, and the status of the set is up to date.
func (s *shared) runs(of, image string) {
	s.Helper()
	set, pods := s.cloneSet(of), &corev1.PodList{}
	check := func(ctx context.Context) error {
		if err := errors.Join(
			s.c.Client.Get(ctx, client.ObjectKeyFromObject(set), set),
			s.c.Client.List(ctx, pods, client.InNamespace(s.namespace), client.MatchingLabels{"app": of}),
		); err != nil {
			return err
		}
		for i := range pods.Items {
			if got := pods.Items[i].Spec.Containers[0].Image; got != image {
				return fmt.Errorf("pod of %s runs %s", of, got)
			}
		}
		if st := set.Status; st.ObservedGeneration != set.Generation || st.UpdatedReadyReplicas != 2 || len(pods.Items) != 2 {
			return fmt.Errorf("status of %s: %+v", of, st)
		}
		return nil
	}
	var last error
	if err := wait.PollUntilContextTimeout(s.Context(), 50*time.Millisecond, time.Minute, true,
		func(context.Context) (bool, error) { last = check(s.Context()); return last == nil, nil }); err != nil {
		s.Fatal(errors.Join(err, last))
	}
	s.still()
}

// still waits until no manager has sent a request for a second.
func (s *shared) still() {
	s.Helper()
	sent, since := -1, time.Now()
	if err := wait.PollUntilContextTimeout(s.Context(), 50*time.Millisecond, time.Minute, true,
		func(context.Context) (bool, error) {
			if now := s.sent["red"].Sent() + s.sent["blue"].Sent(); now != sent {
				sent, since = now, time.Now()
			}
			return time.Since(since) > time.Second, nil
		}); err != nil {
		s.Fatal(err)
	}
}

// wroteTo expects the teams to whose objects the manager of a team has written since the last call.
func (s *shared) wroteTo(by string, want ...string) {
	s.Helper()
	var got, writes []string
	for _, request := range s.sent[by].Take() {
		if strings.HasPrefix(request, "GET ") || strings.Contains(request, " namespaces/") { // of other tests
			continue
		}
		writes = append(writes, request)
		for _, of := range []string{"red", "blue"} {
			if strings.Contains(request, of) {
				got = append(got, of)
			}
		}
	}
	slices.Sort(got)
	if got = slices.Compact(got); !slices.Equal(got, want) {
		s.Errorf("the manager of %s wrote to the objects of %v, want %v:\n%s", by, got, want, strings.Join(writes, "\n"))
	}
}
