//go:build envtest

package forecast_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/cloneset"
	"github.com/kruisekit/kruisekit/controllers/statefulset"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/forecast"
	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/test/podbench"
	"github.com/kruisekit/kruisekit/test/standin"
)

func TestMain(m *testing.M) { os.Exit(cluster.MainAtOnce(m, 8)) }

// lister lists by a client.
type lister struct {
	*testing.T
	client.Client
}

// List implements forecast.Lister.
func (l lister) List(
	kind schema.GroupKind, namespace string, options metav1.ListOptions,
) ([]unstructured.Unstructured, error) {
	mapping, err := l.RESTMapper().RESTMapping(kind)
	if err != nil {
		return nil, err
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(mapping.GroupVersionKind)
	err = l.Client.List(l.Context(), list, client.InNamespace(namespace), &client.ListOptions{Raw: &options})
	return list.Items, err
}

// newKit has a kubelet and the managers of both kinds.
func newKit(t *testing.T) *podbench.Bench {
	t.Helper()
	t.Parallel()
	const bases = "../../../config/crd/bases/apps.kruise.io_"
	kit := podbench.New(t, cluster.Options{CRDDirs: []string{bases + "clonesets.yaml", bases + "statefulsets.yaml"}})
	kit.Beside(func(mgr ctrl.Manager) error {
		return (&standin.Kubelet{Client: mgr.GetClient(), Namespace: kit.Namespace, Node: "node-1"}).SetupWithManager(mgr)
	})
	kit.Run(func(mgr ctrl.Manager, c client.WithWatch) error {
		sets, err := cloneset.New(c, cloneset.Options{})
		if err != nil {
			return err
		}
		if err := sets.SetupWithManager(t.Context(), mgr, controller.Options{}); err != nil {
			return err
		}
		named, err := statefulset.New(c, statefulset.Options{})
		if err != nil {
			return err
		}
		return named.SetupWithManager(t.Context(), mgr, controller.Options{})
	})
	return kit
}

// podsOf are the pods of a namespace by their UID.
func podsOf(kit *podbench.Bench) map[types.UID]*corev1.Pod {
	kit.Helper()
	var list corev1.PodList
	if err := kit.Client.List(kit.Context(), &list, client.InNamespace(kit.Namespace)); err != nil {
		kit.Fatal(err)
	}
	pods := map[types.UID]*corev1.Pod{}
	for i := range list.Items {
		pods[list.Items[i].UID] = &list.Items[i]
	}
	return pods
}

// available fails unless as many pods are available as a workload asks for.
func available(kit *podbench.Bench, set client.Object, counts func() (observed int64, available, wanted int32)) {
	kit.Helper()
	kit.Until(func() error {
		if err := kit.Look(set); err != nil {
			return err
		}
		observed, available, wanted := counts()
		if observed != set.GetGeneration() || available != wanted {
			return fmt.Errorf("%d of %d available", available, wanted)
		}
		return nil
	})
	kit.Still()
}

// compareServer forecasts a change, applies the change, and compares.
func compareServer[T workload](
	kit *podbench.Bench, set T, change func(T), counts func() (observed int64, available, wanted int32),
) {
	kit.Helper()
	set.SetNamespace(kit.Namespace)
	set.SetUID("")
	set.SetResourceVersion("")
	if err := kit.Client.Create(kit.Context(), set); err != nil {
		kit.Fatal(err)
	}
	available(kit, set, counts)
	read, err := forecast.Read(lister{kit.T, kit.Client}, set)
	if err != nil {
		kit.Fatal(err)
	}
	wanted, is := set.DeepCopyObject().(T)
	if !is {
		kit.Fatalf("the copy of %T is another type", set)
	}
	change(wanted)
	wanted.Default()
	f, err := forecast.Of(kit.Context(), forecast.Input{
		Now: time.Now(), Live: set, Wanted: wanted, Objects: read.Objects,
	})
	if err != nil {
		kit.Fatal(err)
	}
	before := podsOf(kit)
	if err := kit.Client.Update(kit.Context(), wanted); err != nil {
		kit.Fatal(err)
	}
	available(kit, set, counts)
	pods := make([]*corev1.Pod, 0, len(before))
	for _, pod := range podsOf(kit) {
		pods = append(pods, pod)
	}
	if diff := cmp.Diff(happened(before, pods), fatesOf(f)); diff != "" {
		kit.Errorf("fates (-happened +forecast):\n%s", diff)
	}
}

// What the forecast shows of a CloneSet on an API server, the production manager then does.
func TestCloneSetOnServer(t *testing.T) {
	for name, change := range map[string]func(*v1beta1.CloneSet){
		"in place":  image("web:2"),
		"partition": all(image("web:2"), partition("2")),
		"a variable": func(set *v1beta1.CloneSet) {
			set.Spec.Template.Spec.Containers[1].Env = []corev1.EnvVar{{Name: "LEVEL", Value: "1"}}
		},
		"scale in": all(image("web:2"), func(set *v1beta1.CloneSet) { *set.Spec.Replicas = 3 }),
	} {
		t.Run(name, func(t *testing.T) {
			set := web(5)
			compareServer(newKit(t), set, change, func() (int64, int32, int32) {
				wanted := *set.Spec.Replicas
				if s := set.Status; s.UpdatedAvailableReplicas < s.ExpectedUpdatedReplicas || s.Replicas != wanted {
					return s.ObservedGeneration, 0, wanted
				}
				return set.Status.ObservedGeneration, set.Status.AvailableReplicas, wanted
			})
		})
	}
}

// What the forecast shows of a StatefulSet on an API server, the production manager then does.
func TestStatefulSetOnServer(t *testing.T) {
	for name, change := range map[string]func(*v1beta1.StatefulSet){
		"in place": func(set *v1beta1.StatefulSet) { set.Spec.Template.Spec.Containers[0].Image = "web:2" },
		"partition": func(set *v1beta1.StatefulSet) {
			set.Spec.Template.Spec.Containers[0].Image = "web:2"
			set.Spec.UpdateStrategy.RollingUpdate.Partition = ptrTo(int32(2))
		},
		"a variable": func(set *v1beta1.StatefulSet) {
			set.Spec.Template.Spec.Containers[1].Env = []corev1.EnvVar{{Name: "LEVEL", Value: "1"}}
		},
		"scale in": func(set *v1beta1.StatefulSet) {
			set.Spec.Template.Spec.Containers[0].Image = "web:2"
			*set.Spec.Replicas = 2
		},
	} {
		t.Run(name, func(t *testing.T) {
			set := database(4, func(set *v1beta1.StatefulSet) { set.Spec.PodManagementPolicy = appsv1.ParallelPodManagement })
			compareServer(newKit(t), set, change, func() (int64, int32, int32) {
				s, wanted := set.Status, *set.Spec.Replicas
				due := wanted - min(ptrValue(set.Spec.UpdateStrategy.RollingUpdate.Partition), wanted)
				if s.UpdatedReplicas < due || s.Replicas != wanted {
					return s.ObservedGeneration, 0, wanted
				}
				return s.ObservedGeneration, s.AvailableReplicas, wanted
			})
		})
	}
}

func ptrValue(v *int32) int32 {
	if v == nil {
		return 0
	}
	return *v
}
