package imagelistpulljob_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/imagelistpulljob"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/test/objects"
)

// refuses is a client that may neither create nor delete the jobs of one image.
type refuses struct {
	client.Client

	image, name string
}

func refusal(o client.Object) error {
	return apierrors.NewForbidden(schema.GroupResource{Group: "apps.kruise.io", Resource: "imagepulljobs"}, o.GetName(),
		errors.New("a policy refuses it"))
}

func (r *refuses) Create(ctx context.Context, o client.Object, options ...client.CreateOption) error {
	if image, _, _ := unstructured.NestedString(o.(*unstructured.Unstructured).Object, "spec", "image"); image == r.image {
		return refusal(o)
	}
	return r.Client.Create(ctx, o, options...)
}

func (r *refuses) Delete(ctx context.Context, o client.Object, options ...client.DeleteOption) error {
	if o.GetName() == r.name {
		return refusal(o)
	}
	return r.Client.Delete(ctx, o, options...)
}

// newModel has a list of images and no reconciler yet.
func newModel(t *testing.T, images ...string) (*objects.Model, *v1beta1.ImageListPullJob) {
	t.Helper()
	m := objects.NewModel(t, &v1beta1.ImageListPullJobList{}, v1beta1.AddToScheme)
	if err := owned.Index(t.Context(), m.Server, &v1beta1.ImagePullJob{}); err != nil {
		t.Fatal(err)
	}
	list := &v1beta1.ImageListPullJob{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "ahead"}}
	list.Spec.Images = images
	m.Put(list)
	return m, list
}

// restart starts a reconciler in the place of the one before.
func restart(t *testing.T, m *objects.Model, c client.Client) *record.FakeRecorder {
	t.Helper()
	events := record.NewFakeRecorder(100)
	r, err := imagelistpulljob.New(c, imagelistpulljob.Options{Now: m.Now, Recorder: events, Live: m.Server})
	if err != nil {
		t.Fatal(err)
	}
	m.Reconciler = r
	return events
}

// uids returns those of the jobs by image.
func uids(t *testing.T, m *objects.Model) map[string]types.UID {
	t.Helper()
	all := &v1beta1.ImagePullJobList{}
	if err := m.Server.List(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	byImage := map[string]types.UID{}
	for i := range all.Items {
		byImage[all.Items[i].Spec.Image] = all.Items[i].UID
	}
	return byImage
}

// A cache that shows nothing of what was written, as that of a process that has just started, has nothing written
// again. A job that is deleted before the cache shows it is created again, by a pass that no event asks for.
func TestLaggingCache(t *testing.T) {
	m, _ := newModel(t, "a:1", "b:1")
	stale := m.Server.Lagging()
	stale.Freeze()
	var first map[string]types.UID
	for process := range 2 {
		restart(t, m, stale)
		m.Server.Requests()
		for range 3 {
			m.Advance(time.Second) // each status would have another time
			m.Reconcile()
		}
		writes := m.Server.Requests()
		if process == 0 {
			if first = uids(t, m); len(first) != 2 || len(writes) != 4 {
				t.Errorf("jobs %v after %q, want two jobs, the label and the status", first, writes)
			}
		} else if diff := cmp.Diff(first, uids(t, m)); diff != "" {
			t.Errorf("other jobs after %q (-before +after):\n%s", writes, diff)
		}
	}
	all := &v1beta1.ImagePullJobList{}
	if err := m.Server.List(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	if err := m.Server.Delete(t.Context(), &all.Items[0]); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		m.Reconcile()
		m.Clock = m.Due
	}
	if got := uids(t, m); len(got) != 2 {
		t.Errorf("jobs %v", got)
	}
}

// A job that may not be created or deleted keeps those of other images from nothing.
func TestOneRefusedImage(t *testing.T) {
	m, list := newModel(t, "a:1", "b:1", "c:1", "d:1")
	c := &refuses{Client: m.Server, image: "a:1"}
	events := restart(t, m, c)
	jobs := func() map[string]string {
		all := &v1beta1.ImagePullJobList{}
		if err := m.Server.List(t.Context(), all); err != nil {
			t.Fatal(err)
		}
		names := map[string]string{}
		for i := range all.Items {
			names[all.Items[i].Spec.Image] = all.Items[i].Name
		}
		return names
	}
	try := func(want string) {
		t.Helper()
		m.Reconcile()
		if m.Due.IsZero() {
			t.Error("the refused job is not tried again")
		}
		var images []string
		for image := range jobs() {
			images = append(images, image)
		}
		slices.Sort(images)
		if got := strings.Join(images, " "); got != want {
			t.Errorf("jobs of %q, want %q", got, want)
		}
	}
	try("b:1 c:1 d:1")
	m.Look(list)
	if told := <-events.Events; list.Status.Desired != 4 || !strings.Contains(told, "FailedCreate") ||
		!strings.Contains(told, "a policy refuses it") {
		t.Errorf("status %+v, event %s", list.Status, told)
	}
	objects.Change(m, list, func(l *v1beta1.ImageListPullJob) { l.Spec.Images = []string{"a:1"} })
	c.name = slices.Min([]string{jobs()["b:1"], jobs()["c:1"], jobs()["d:1"]})
	var kept string
	for image, name := range jobs() {
		if name == c.name {
			kept = image
		}
	}
	try(kept)
}
