package imagepull

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/imagepull"
	"github.com/kruisekit/kruisekit/test/bubbletest"
	"github.com/kruisekit/kruisekit/test/rig/nodetest"
)

// world is a node with its NodeImage, in a bubble whose time passes by itself.
type world struct {
	*testing.T
	store   *store
	images  *images
	events  *events
	options Options
	// end ends the process on the node, as a manager would. It is called at the end of each test.
	end func()
}

// inWorld runs a test in a world. Nothing runs on the node before begin.
func inWorld(t *testing.T, test func(w *world)) {
	t.Helper()
	bubbletest.Test(t, func(t *testing.T) {
		w := &world{T: t, store: newStore(), images: newImages(), events: &events{}, end: func() {}}
		w.options = Options{Recorder: w.events, Secrets: w.store.client()}
		defer func() { w.end() }()
		test(w)
	})
}

// settle lets everything happen that can happen now.
func (*world) settle() { bubbletest.Wait() }

// begin starts the process on the node.
func (w *world) begin() *Reconciler {
	w.Helper()
	r, err := New(w.store.client(), "n1", w.images, w.options)
	if err != nil {
		w.Fatal(err)
	}
	p := nodetest.StartProcess(w.Context(), r, r.api.Start, r.keep)
	w.store.watch(func() { p.Queue.Add(r.request()) })
	w.end = sync.OnceFunc(func() {
		p.Kill()
		p.Wait()
	})
	p.Queue.Add(r.request())
	w.settle()
	return r
}

// wait lets time pass.
func (w *world) wait(d time.Duration) {
	timer := time.NewTimer(d)
	<-timer.C
	w.settle()
}

// spec changes what the NodeImage asks for.
func (w *world) spec(change ...func(*v1beta1.NodeImage)) {
	w.store.change(func(n *v1beta1.NodeImage) {
		for _, c := range change {
			c(n)
		}
	})
	w.settle()
}

// asks adds a tag, or changes it.
func asks(image string, version int64, change ...func(*v1beta1.ImageTagSpec)) func(*v1beta1.NodeImage) {
	return func(n *v1beta1.NodeImage) {
		ref := mustParse(image)
		i := n.Spec.Images[ref.Name]
		t := v1beta1.ImageTagSpec{
			Tag: ref.Tag, Version: version, PullPolicy: &v1beta1.ImageTagPullPolicy{},
			OwnerReferences: []corev1.ObjectReference{{Kind: "ImagePullJob", Namespace: "shop", Name: "job"}},
		}
		for _, c := range change {
			c(&t)
		}
		i.Tags = slices.DeleteFunc(i.Tags, func(t v1beta1.ImageTagSpec) bool { return t.Tag == ref.Tag })
		i.Tags = append(i.Tags, t)
		if n.Spec.Images == nil {
			n.Spec.Images = map[string]v1beta1.ImageSpec{}
		}
		n.Spec.Images[ref.Name] = i
	}
}

func leaves(name string) func(*v1beta1.NodeImage) {
	return func(n *v1beta1.NodeImage) { delete(n.Spec.Images, name) }
}

func logsInWith(name string, secrets ...string) func(*v1beta1.NodeImage) {
	return func(n *v1beta1.NodeImage) {
		i := n.Spec.Images[name]
		for _, s := range secrets {
			i.PullSecrets = append(i.PullSecrets, v1beta1.ReferenceObject{Namespace: "config", Name: s})
		}
		n.Spec.Images[name] = i
	}
}

func ifNotPresent(t *v1beta1.ImageTagSpec) { t.ImagePullPolicy = v1beta1.PullIfNotPresent }

func limited(backoff int32) func(*v1beta1.ImageTagSpec) {
	return func(t *v1beta1.ImageTagSpec) { t.PullPolicy.BackoffLimit = &backoff }
}

func within(timeout int32) func(*v1beta1.ImageTagSpec) {
	return func(t *v1beta1.ImageTagSpec) { t.PullPolicy.TimeoutSeconds = &timeout }
}

func before(deadline int64) func(*v1beta1.ImageTagSpec) {
	return func(t *v1beta1.ImageTagSpec) { t.PullPolicy.ActiveDeadlineSeconds = &deadline }
}

func mustParse(image string) imagepull.Reference {
	ref, err := imagepull.Parse(image)
	if err != nil {
		panic(err)
	}
	return ref
}

// tag is the status of an image.
func (w *world) tag(image string) v1beta1.ImageTagStatus {
	w.Helper()
	ref := mustParse(image)
	for _, t := range w.store.stored().Status.ImageStatuses[ref.Name].Tags {
		if t.Tag == ref.Tag {
			return t
		}
	}
	return v1beta1.ImageTagStatus{}
}

// told is what a status says of all tags, shortly.
func (w *world) told() string {
	var all []string
	for name, image := range w.store.stored().Status.ImageStatuses {
		for _, t := range image.Tags {
			all = append(all, fmt.Sprintf("%s v%d %s", imagepull.Reference{Name: name, Tag: t.Tag}, t.Version, t.Phase))
		}
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// wants says what the status must be.
func (w *world) wants(told string) {
	w.Helper()
	if got := w.told(); got != told {
		w.Errorf("the status tells %q, want %q", got, told)
	}
}
