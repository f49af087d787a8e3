package containermeta

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/test/rig/nodetest"
)

const here = "node-1"

// web is the name of the pod.
func web() types.NamespacedName { return types.NamespacedName{Namespace: "shop", Name: "web"} }

// world has one pod with the containers app, log and mesh. An annotation feeds the first two.
type world struct {
	*nodetest.World

	scheme *runtime.Scheme
	// reconciler is that of the last daemon.
	reconciler *Reconciler
}

// fedBy is a variable that comes from an annotation.
func fedBy(name, key string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{
		FieldPath: "metadata.annotations['" + key + "']",
	}}}
}

func newWorld(seed int64, ways map[string]nodetest.Way) *world {
	w := &world{scheme: runtime.NewScheme()}
	if err := corev1.AddToScheme(w.scheme); err != nil {
		panic(err)
	}
	w.World = nodetest.NewWorld(seed, w.scheme, nodetest.New(here, ways))
	w.Late, w.Start, w.Learned = catchUp-time.Second, w.begin, w.learned
	if err := w.Put(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web", UID: "u1", Annotations: map[string]string{"conf": "0"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps.kruise.io/v1beta1", Kind: "CloneSet", Controller: ptr.To(true),
			}},
		},
		Spec: corev1.PodSpec{
			NodeName: here, RestartPolicy: corev1.RestartPolicyAlways, TerminationGracePeriodSeconds: ptr.To(int64(30)),
			Containers: []corev1.Container{
				{Name: "app", Env: []corev1.EnvVar{fedBy("CONF", "conf")}},
				{Name: "log", Env: []corev1.EnvVar{{Name: "LEVEL", Value: "1"}, fedBy("CONF", "conf")}},
				{Name: "mesh"},
			},
		},
	}); err != nil {
		panic(err)
	}
	return w
}

func (w *world) pod() *corev1.Pod {
	pod := &corev1.Pod{}
	if err := w.Get(context.Background(), web(), pod); err != nil {
		panic(err)
	}
	return pod
}

// told is the annotation that describes the containers.
func (w *world) told() string { return w.pod().Annotations[kruise.RuntimeContainerMetaKey] }

// writes are those of daemons.
func (w *world) writes() int {
	n, _ := w.Writes("web")
	return n
}

// change is one write of a user, of the status or of the rest.
func (w *world) change(how func(*corev1.Pod)) {
	before := w.pod()
	after := before.DeepCopy()
	how(after)
	var err error
	if apiequality.Semantic.DeepEqual(before.Status, after.Status) {
		err = w.Patch(context.Background(), after, client.MergeFrom(before))
	} else {
		err = w.Status().Patch(context.Background(), after, client.StrategicMergeFrom(before))
	}
	if err != nil {
		panic(err)
	}
}

// complete says whether an in-place update would find what it waits for.
func (w *world) complete() bool {
	var set kruise.RuntimeContainerMetaSet
	pod := w.pod()
	if json.Unmarshal([]byte(w.told()), &set) != nil || len(set.Containers) != len(pod.Spec.Containers) {
		return false
	}
	for i, c := range pod.Spec.Containers {
		want, err := inplace.EnvHash(&c, pod.Labels, pod.Annotations)
		meta, status := set.Containers[i], pod.Status.ContainerStatuses[i]
		if err != nil || meta.ContainerID != status.ContainerID || meta.Hashes.ExtractedEnvFromMetadataHash != want ||
			!status.Ready {
			return false
		}
	}
	return true
}

// reader reads pods from the cache of a daemon, or past it.
func (w *world) reader(d *nodetest.Daemon, live bool) client.WithWatch {
	return interceptor.NewClient(w.Server, interceptor.Funcs{
		Get: func(
			ctx context.Context, _ client.WithWatch, key client.ObjectKey, o client.Object, _ ...client.GetOption,
		) error {
			if err := d.Reach(); err != nil || live {
				return errors.Join(err, w.Get(ctx, key, o))
			}
			for _, seen := range d.Seen() {
				seen.(*corev1.Pod).DeepCopyInto(o.(*corev1.Pod))
			}
			return nil
		},
		SubResourcePatch: d.PatchStatus,
	})
}

// newReconciler makes the real one.
func (w *world) newReconciler(d *nodetest.Daemon) *Reconciler {
	r, err := New(w.reader(d, false), here, []nodetest.Connection{d.Runtime()}, Options{Live: w.reader(d, true)})
	if err != nil {
		panic(err)
	}
	return r
}

func (w *world) begin(ctx context.Context, d *nodetest.Daemon) *nodetest.Process {
	w.reconciler = w.newReconciler(d)
	return nodetest.StartProcess(ctx, w.reconciler, w.reconciler.api.Start, w.reconciler.workers.Work)
}

func (w *world) learned(d *nodetest.Daemon, before, after client.Object) {
	events := w.reconciler.podEvents()
	if before == nil && events.Create(event.CreateEvent{Object: after}) ||
		before != nil && events.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}) {
		d.Queue.Add(reconcile.Request{NamespacedName: web()})
	}
}
