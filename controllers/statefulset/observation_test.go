package statefulset

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/driver/runtimeclient"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/workloads"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/test/rig/apiserver"
	"github.com/kruisekit/kruisekit/test/rig/podtest"
	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/write"
)

// observation is a StatefulSet, and all that it owns, of which a test plans one pass.
type observation struct {
	*testing.T

	options Options
	set     *v1beta1.StatefulSet
	// template is that of all stored revisions, but for the image.
	template corev1.PodTemplateSpec
	server   *apiserver.Server
}

// observe is a set of n pods of image web:1, and what changes make of it. Its current revision is that of web:1.
func observe(t *testing.T, n int32, changes ...func(*v1beta1.StatefulSet)) *observation {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	o := &observation{T: t, options: Options{Now: podtest.Noon}}
	o.server = apiserver.New(scheme, podtest.Noon)
	if err := owned.Index(t.Context(), o.server, &corev1.Pod{}); err != nil {
		t.Fatal(err)
	}
	if err := workloads.IndexOrphans(t.Context(), o.server, kind, setOf); err != nil {
		t.Fatal(err)
	}
	o.set = &v1beta1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "set", Generation: 1}}
	o.set.Spec.Replicas, o.set.Spec.ServiceName = &n, "front"
	o.set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	o.set.Spec.Template.Labels = map[string]string{"app": "web"}
	o.set.Spec.Template.Spec.Containers = []corev1.Container{{Name: podtest.Container, Image: "web:1"}}
	o.set.Spec.Template.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: kruise.InPlaceUpdateReady}}
	o.template = *o.set.Spec.Template.DeepCopy()
	o.set.Status.CurrentRevision = o.revision("web:1")
	for _, change := range changes {
		change(o.set)
	}
	return o
}

// revision stores the template with an image as a revision, and returns its name.
func (o *observation) revision(image string) string {
	o.Helper()
	template := o.template.DeepCopy()
	template.Spec.Containers[0].Image = image
	data, err := revision.Encode(template)
	if err != nil {
		o.Fatal(err)
	}
	name := revision.Resolve(revision.Input{Owner: o.set.Name, Data: data}).Name
	rev := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Data:       runtime.RawExtension{Raw: data},
		Revision:   int64(image[len(image)-1] - '0'),
	}
	o.own(rev, types.UID(name))
	return name
}

// own stores an object that the set controls.
func (o *observation) own(object client.Object, uid types.UID) {
	o.Helper()
	object.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(o.set, gvk())})
	o.put(object, uid)
}

func (o *observation) put(object client.Object, uid types.UID) {
	o.Helper()
	object.SetNamespace(o.set.Namespace)
	object.SetUID(uid)
	if err := o.server.Put(object); err != nil {
		o.Fatal(err)
	}
}

// pods stores pods. They get the labels of the template and of their name, the revision of their image, and volumes of
// the claim templates. A pod with the label orphan has no owner.
func (o *observation) pods(pods ...*corev1.Pod) {
	o.Helper()
	for _, pod := range pods {
		for key, value := range map[string]string{
			"app": "web", appsv1.StatefulSetPodNameLabel: pod.Name,
			kruise.PodRevisionLabelKey: o.revision(pod.Spec.Containers[0].Image),
		} {
			if _, given := pod.Labels[key]; !given {
				pod.Labels[key] = value
			}
		}
		if _, orphan := pod.Labels["orphan"]; orphan {
			o.put(pod, pod.UID)
			continue
		}
		o.own(pod, pod.UID)
	}
}

// plan plans a pass.
func (o *observation) plan() (*snapshot, *plan) {
	o.Helper()
	if err := o.server.Put(o.set); err != nil {
		o.Fatal(err)
	}
	o.options.Live = o.server
	r, err := New(o.server, o.options)
	if err != nil {
		o.Fatal(err)
	}
	s, err := r.observe(o.Context(), client.ObjectKeyFromObject(o.set))
	if err != nil {
		o.Fatal(err)
	}
	p, err := r.options.plan(s)
	if err != nil {
		o.Fatal(err)
	}
	return s, p
}

// writes are all writes of a pass in their order. Each is answered with what the API server would store. after is when
// the next pass is due.
func (o *observation) writes() (sent []string, after time.Duration) {
	o.Helper()
	s, p := o.plan()
	sent = o.send(s, p)
	if !p.Runs(&s.Observation) {
		return sent, 0
	}
	return sent, p.Pass.RequeueAfter()
}

// send sends the writes of a plan.
func (o *observation) send(s *snapshot, p *plan) []string {
	o.Helper()
	sent := []string{}
	if !p.Runs(&s.Observation) {
		return sent
	}
	for writes := p.Pass.Next(); len(writes) > 0; writes = p.Pass.Next() {
		for len(writes) > 0 {
			w := writes[0]
			answer, err := runtimeclient.Send(o.Context(), o.server, &w.Write)
			if err != nil {
				o.Errorf("%s: %v", w, err)
			}
			sent = append(sent, described(w, answer))
			writes = append(writes[1:], p.Pass.Answer(podtest.Noon(), w, answer, err)...)
		}
	}
	return sent
}

// described is a write in a few words.
func described(w *workload.Write, answer write.Object) string {
	name := w.Object.GetName()
	pod, isPod := answer.(*corev1.Pod)
	claim, isClaim := answer.(*corev1.PersistentVolumeClaim)
	switch {
	case w.Action == workload.ActionCreate && isPod:
		return fmt.Sprintf("create %s of %s", name, pod.Spec.Containers[0].Image)
	case w.Action == workload.ActionMove && isPod:
		return "move " + name + " to " + pod.Labels[kruise.LifecycleStateKey]
	case w.Action == workload.ActionUpdate && isPod:
		return "update " + name + " to " + pod.Spec.Containers[0].Image
	case w.Action == workload.ActionUnready:
		return "take " + name + " out of traffic"
	case isClaim:
		owners := []string{}
		for _, ref := range claim.OwnerReferences {
			owners = append(owners, ref.Kind+" "+ref.Name)
		}
		return strings.ToLower(string(w.Verb)) + " " + name + " of [" + strings.Join(owners, " ") + "]"
	}
	return strings.ToLower(string(w.Verb)) + " " + name
}

// parse reads pods as "0:1 1:2-": the ordinal, and the release of the image. A dash is not ready, a star terminating, a
// bang failed, m marked for deletion, and h held by a hook.
func parse(text string) []*corev1.Pod {
	changes := map[rune]podtest.Change{
		'-': podtest.NotReady, '*': podtest.Terminating(0), '!': podtest.Phase(corev1.PodFailed), 'h': held,
		'm': podtest.Label(kruise.SpecifiedDeleteKey, ""),
	}
	var all []*corev1.Pod
	for field := range strings.FieldsSeq(text) {
		ordinal, release, _ := strings.Cut(field, ":")
		pod := podtest.New("web-"+ordinal, "web:"+release[:1])
		for _, mark := range release[1:] {
			changes[mark](pod)
		}
		all = append(all, pod)
	}
	return all
}

func parallel(s *v1beta1.StatefulSet) { s.Spec.PodManagementPolicy = appsv1.ParallelPodManagement }

func withImage(image string) func(*v1beta1.StatefulSet) {
	return func(s *v1beta1.StatefulSet) { s.Spec.Template.Spec.Containers[0].Image = image }
}

// rolling changes the strategy of a set.
func rolling(change func(*v1beta1.RollingUpdateStatefulSetStrategy)) func(*v1beta1.StatefulSet) {
	return func(s *v1beta1.StatefulSet) {
		if s.Spec.UpdateStrategy.RollingUpdate == nil {
			s.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateStatefulSetStrategy{}
		}
		change(s.Spec.UpdateStrategy.RollingUpdate)
	}
}

func partition(n int32) func(*v1beta1.StatefulSet) {
	return rolling(func(u *v1beta1.RollingUpdateStatefulSetStrategy) { u.Partition = &n })
}

func maxUnavailable(v any) func(*v1beta1.StatefulSet) {
	return rolling(func(u *v1beta1.RollingUpdateStatefulSetStrategy) {
		u.MaxUnavailable = ptr.To(intstr.Parse(fmt.Sprint(v)))
	})
}

func minReady(seconds int32) func(*v1beta1.StatefulSet) {
	return rolling(func(u *v1beta1.RollingUpdateStatefulSetStrategy) { u.MinReadySeconds = &seconds })
}

var (
	inPlace = rolling(func(u *v1beta1.RollingUpdateStatefulSetStrategy) {
		u.PodUpdatePolicy = v1beta1.InPlaceIfPossiblePodUpdateStrategyType
	})
	paused    = rolling(func(u *v1beta1.RollingUpdateStatefulSetStrategy) { u.Paused = true })
	unordered = rolling(func(u *v1beta1.RollingUpdateStatefulSetStrategy) {
		u.UnorderedUpdate = &v1beta1.UnorderedUpdateStrategy{}
	})
)

func onDelete(s *v1beta1.StatefulSet) {
	s.Spec.UpdateStrategy.Type, s.Spec.UpdateStrategy.RollingUpdate = appsv1.OnDeleteStatefulSetStrategyType, nil
}

func scalesWith(v any) func(*v1beta1.StatefulSet) {
	return func(s *v1beta1.StatefulSet) {
		s.Spec.ScaleStrategy = &v1beta1.StatefulSetScaleStrategy{MaxUnavailable: ptr.To(intstr.Parse(fmt.Sprint(v)))}
	}
}

func reserve(items ...any) func(*v1beta1.StatefulSet) {
	return func(s *v1beta1.StatefulSet) {
		for _, item := range items {
			s.Spec.ReserveOrdinals = append(s.Spec.ReserveOrdinals, intstr.Parse(fmt.Sprint(item)))
		}
	}
}

func start(n int32) func(*v1beta1.StatefulSet) {
	return func(s *v1beta1.StatefulSet) { s.Spec.Ordinals = &v1beta1.StatefulSetOrdinals{Start: n} }
}

func hooks(h kruise.Lifecycle) func(*v1beta1.StatefulSet) {
	return func(s *v1beta1.StatefulSet) { s.Spec.Lifecycle = &h }
}

func byLabel() *kruise.LifecycleHook {
	return &kruise.LifecycleHook{LabelsHandler: map[string]string{"example.com/hook": "true"}}
}

var held = podtest.Label("example.com/hook", "true")

func withClaims(whenDeleted, whenScaled v1beta1.PersistentVolumeClaimRetentionPolicyType) func(*v1beta1.StatefulSet) {
	return func(s *v1beta1.StatefulSet) {
		s.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{
			ObjectMeta: metav1.ObjectMeta{Name: "data"},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{"storage": resource.MustParse("1Gi")}},
			},
		}}
		s.Spec.PersistentVolumeClaimRetentionPolicy = &v1beta1.StatefulSetPersistentVolumeClaimRetentionPolicy{
			WhenDeleted: whenDeleted, WhenScaled: whenScaled,
		}
	}
}

// mounting gives pods the volume of the claim of their name.
func mounting(pods ...*corev1.Pod) []*corev1.Pod {
	for _, pod := range pods {
		pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-" + pod.Name},
		}}}
	}
	return pods
}

// claimOf is a claim of a pod of some size, with owners.
func claimOf(pod, size string, owners ...metav1.OwnerReference) *corev1.PersistentVolumeClaim {
	amount := corev1.ResourceList{"storage": resource.MustParse(size)}
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "data-" + pod, OwnerReferences: owners},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: amount},
		},
		Status: corev1.PersistentVolumeClaimStatus{Capacity: amount},
	}
}

func terminating(ago time.Duration) podtest.Change { return podtest.Terminating(ago) }
