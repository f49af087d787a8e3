package cloneset

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/driver/runtimeclient"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/test/rig/apiserver"
	"github.com/kruisekit/kruisekit/test/rig/podtest"
	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/write"
)

// observation is a CloneSet, and all that it owns, of which a test plans one pass.
type observation struct {
	*testing.T

	options Options
	set     *v1beta1.CloneSet
	// template is that of all stored revisions, but for the image.
	template corev1.PodTemplateSpec
	server   *apiserver.Server
	now      time.Time
}

// observe is a set of n pods of image web:1, and what change makes of it. Its current revision is that of web:1.
func observe(t *testing.T, n int32, change func(*v1beta1.CloneSet)) *observation {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	o := &observation{T: t, now: podtest.Noon()}
	o.server = apiserver.New(scheme, func() time.Time { return o.now })
	if err := owned.Index(t.Context(), o.server, &corev1.Pod{}); err != nil {
		t.Fatal(err)
	}
	next := 'a'
	o.options = Options{Now: func() time.Time { return o.now }, NewID: func() string {
		next++
		return "new-" + string(next-1)
	}}
	o.set = &v1beta1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "set", Generation: 1}}
	o.set.Spec.Replicas = &n
	o.set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	o.set.Spec.Template.Labels = map[string]string{"app": "web"}
	o.set.Spec.Template.Spec.Containers = []corev1.Container{{Name: podtest.Container, Image: "web:1"}}
	o.template = *o.set.Spec.Template.DeepCopy()
	o.set.Status.CurrentRevision = o.revision("web:1")
	if change != nil {
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
	object.SetNamespace(o.set.Namespace)
	object.SetUID(uid)
	object.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(o.set, gvk())})
	if err := o.server.Put(object); err != nil {
		o.Fatal(err)
	}
}

// pods stores pods. They get the labels of the template, the id of their name and the revision of their image.
func (o *observation) pods(pods ...*corev1.Pod) {
	o.Helper()
	for _, pod := range pods {
		name := o.revision(pod.Spec.Containers[0].Image)
		for key, value := range map[string]string{
			"app": "web", kruise.CloneSetInstanceIDKey: pod.Name[len("web-"):], kruise.PodRevisionLabelKey: name,
			kruise.PodTemplateHashLabelKey: revision.Short(name),
		} {
			if _, given := pod.Labels[key]; !given {
				pod.Labels[key] = value
			}
		}
		o.own(pod, pod.UID)
	}
}

// claims stores claims of the template data, by the ids of their pods.
func (o *observation) claims(ids ...string) {
	o.Helper()
	for _, id := range ids {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
			Name: "data-web-" + id, Labels: map[string]string{kruise.CloneSetInstanceIDKey: id},
		}}
		o.own(claim, types.UID("claim-"+id))
	}
}

// plan plans a pass.
func (o *observation) plan() (*snapshot, *plan) {
	o.Helper()
	if err := o.server.Put(o.set); err != nil {
		o.Fatal(err)
	}
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

// writes are all writes of a pass in their order. Each is answered with what the API server would store.
func (o *observation) writes() []string {
	o.Helper()
	s, p := o.plan()
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
			writes = append(writes[1:], p.Pass.Answer(o.now, w, answer, err)...)
		}
	}
	return sent
}

// described is a write in a few words.
func described(w *workload.Write, answer write.Object) string {
	name := w.Object.GetName()
	pod, isPod := answer.(*corev1.Pod)
	switch {
	case w.Action == workload.ActionCreate && isPod:
		return "create " + name + " of " + pod.Spec.Containers[0].Image
	case w.Action == workload.ActionMove && isPod:
		return "move " + name + " to " + pod.Labels[kruise.LifecycleStateKey]
	case w.Action == workload.ActionUpdate && isPod:
		return "update " + name + " to " + pod.Spec.Containers[0].Image
	case w.Action == workload.ActionUnready:
		return "take " + name + " out of traffic"
	case w.Action == workload.ActionMark:
		return "mark " + name
	case isPod || w.Action == workload.ActionDelete:
		return strings.ToLower(string(w.Verb)) + " " + name
	}
	return strings.ToLower(string(w.Verb)) + " claim " + name
}

// status is the status after a pass without its writes.
func (o *observation) status() *v1beta1.CloneSetStatus {
	o.Helper()
	s, p := o.plan()
	p.ScaleErr = p.Invalid
	return p.status(s)
}

func withImage(image string) func(*v1beta1.CloneSet) {
	return func(s *v1beta1.CloneSet) { s.Spec.Template.Spec.Containers[0].Image = image }
}

// rolling is an update strategy of a set whose template has image web:2.
func rolling(strategy v1beta1.RollingUpdateCloneSetStrategy) func(*v1beta1.CloneSet) {
	return func(s *v1beta1.CloneSet) {
		withImage("web:2")(s)
		s.Spec.UpdateStrategy.RollingUpdate = &strategy
	}
}

func both(changes ...func(*v1beta1.CloneSet)) func(*v1beta1.CloneSet) {
	return func(s *v1beta1.CloneSet) {
		for _, change := range changes {
			change(s)
		}
	}
}

// several are pods web-a, web-b ... of an image.
func several(n int, image string, changes ...podtest.Change) []*corev1.Pod {
	var pods []*corev1.Pod
	for i := range n {
		pods = append(pods, podtest.New(fmt.Sprintf("web-%c", 'a'+rune(i)), image, changes...))
	}
	return pods
}

// parse reads pods as "a:1 b:2-": the id, and the release of the image. A dash is not ready, a bang failed, and h held
// by a hook.
func parse(text string) []*corev1.Pod {
	changes := map[rune]podtest.Change{'-': podtest.NotReady, '!': podtest.Phase(corev1.PodFailed), 'h': held}
	var pods []*corev1.Pod
	for field := range strings.FieldsSeq(text) {
		id, release, _ := strings.Cut(field, ":")
		pod := podtest.New("web-"+id, "web:"+release[:1])
		for _, mark := range release[1:] {
			changes[mark](pod)
		}
		pods = append(pods, pod)
	}
	return pods
}
