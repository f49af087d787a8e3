//go:build envtest

package nodeimage_test

import (
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/imagepull"
)

// daemons answer for all nodes of the test: with an image, or, where fails says so, a message.
func (b *bench) daemons(fails func(imagepull.Reference) bool) {
	b.Helper()
	b.Beside(func(mgr ctrl.Manager) error {
		return ctrl.NewControllerManagedBy(mgr).Named("daemon-" +
			b.Namespace).For(&v1beta1.NodeImage{}).Complete(&daemon{mgr.GetClient(), fails})
	})
}

// daemon is a stand-in for the daemons of nodes: it pulls at once, and writes the whole status, as they do.
type daemon struct {
	client client.Client
	fails  func(imagepull.Reference) bool
}

func (d *daemon) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var image v1beta1.NodeImage
	if err := d.client.Get(ctx, request.NamespacedName, &image); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	now := time.Now()
	pulls := imagepull.Work(&image, nil).Start
	for i := range pulls {
		pulls[i], _ = pulls[i].Next(now)
		if d.fails(pulls[i].Reference) {
			pulls[i].Attempts = 1 << 20
			pulls[i] = pulls[i].Fail("no such image", now)
		} else {
			pulls[i] = pulls[i].Succeed("sha256:0", now)
		}
	}
	status := imagepull.Work(&image, pulls).Status
	if apiequality.Semantic.DeepEqual(status, image.Status) {
		return ctrl.Result{}, nil
	}
	image.Status = status
	return ctrl.Result{}, client.IgnoreNotFound(d.client.Status().Update(ctx, &image))
}

func (b *bench) name(short string) string { return b.Namespace + "-" + short }

// node makes a node that is ready, unless change says something else.
func (b *bench) node(short string, change ...func(*corev1.Node)) *corev1.Node {
	b.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: b.name(short), Labels: map[string]string{benchKey: b.Namespace, "zone": "a"},
	}}
	node.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(b.clock.now()),
	}}
	for _, c := range change {
		c(node)
	}
	status := node.Status
	if err := b.Client.Create(b.Context(), node); err != nil {
		b.Fatal(err)
	}
	node.Status = status
	if err := b.Client.Status().Update(b.Context(), node); err != nil {
		b.Fatal(err)
	}
	return node
}

// image makes a NodeImage of the test.
func (b *bench) image(short string, change ...func(*v1beta1.NodeImage)) *v1beta1.NodeImage {
	b.Helper()
	image := &v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{
		Name: b.name(short), Labels: map[string]string{benchKey: b.Namespace, "zone": "a"},
	}}
	for _, c := range change {
		c(image)
	}
	if err := b.Client.Create(b.Context(), image); err != nil {
		b.Fatal(err)
	}
	return image
}

// job makes a pull job.
func (b *bench) job(name string) *v1beta1.ImagePullJob {
	b.Helper()
	job := &v1beta1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: name}}
	job.Spec.Image = "nginx:1"
	if err := b.Client.Create(b.Context(), job); err != nil {
		b.Fatal(err)
	}
	return job
}

// tag adds a tag of nginx for its owners.
func (b *bench) tag(tag string, owners ...*v1beta1.ImagePullJob) func(*v1beta1.NodeImage) {
	return func(n *v1beta1.NodeImage) {
		created := metav1.NewTime(b.clock.now())
		t := v1beta1.ImageTagSpec{Tag: tag, CreatedAt: &created}
		for _, o := range owners {
			t.OwnerReferences = append(t.OwnerReferences, corev1.ObjectReference{
				APIVersion: "apps.kruise.io/v1beta1", Kind: "ImagePullJob", Namespace: o.Namespace, Name: o.Name, UID: o.UID,
			})
		}
		if n.Spec.Images == nil {
			n.Spec.Images = map[string]v1beta1.ImageSpec{}
		}
		image := n.Spec.Images["nginx"]
		image.Tags = append(image.Tags, t)
		n.Spec.Images["nginx"] = image
	}
}

// change reads an object and patches it.
func change[T client.Object](b *bench, object T, how ...func(T)) {
	b.Helper()
	before := refresh(b, object)
	for _, h := range how {
		h(object)
	}
	if err := b.Client.Patch(b.Context(), object, client.MergeFrom(before)); err != nil {
		b.Fatal(err)
	}
}

// changeStatus is change for the subresource.
func changeStatus[T client.Object](b *bench, object T, how func(T)) {
	b.Helper()
	before := refresh(b, object)
	how(object)
	if err := b.Client.Status().Patch(b.Context(), object, client.MergeFrom(before)); err != nil {
		b.Fatal(err)
	}
}

func refresh[T client.Object](b *bench, object T) client.Object {
	b.Helper()
	if err := b.Client.Get(b.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		b.Fatal(err)
	}
	before, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		b.Fatalf("%T is no object", object)
	}
	return before
}

func (b *bench) remove(objects ...client.Object) {
	b.Helper()
	for _, o := range objects {
		if err := b.Client.Delete(b.Context(), o); err != nil {
			b.Fatal(err)
		}
	}
}

// tags of a NodeImage, as "nginx:1".
func tags(n *v1beta1.NodeImage) string {
	var all []string
	for name, image := range n.Spec.Images {
		for _, t := range image.Tags {
			all = append(all, imagepull.Reference{Name: name, Tag: t.Tag}.String())
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}
