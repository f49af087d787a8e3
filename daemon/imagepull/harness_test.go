package imagepull

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/daemon/cri"
	"github.com/kruisekit/kruisekit/imagepull"
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
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, store: newStore(), images: newImages(), events: &events{}, end: func() {}}
		w.options = Options{Recorder: w.events, Secrets: w.store.client()}
		defer func() { w.end() }()
		test(w)
	})
}

// begin starts the process on the node.
func (w *world) begin() *Reconciler {
	w.Helper()
	r, err := New(w.store.client(), "n1", w.images, w.options)
	if err != nil {
		w.Fatal(err)
	}
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](leastPause, mostPause))
	r.bell.hang(queue, r.request())
	w.store.watch(func() { queue.Add(r.request()) })
	ctx, cancel := context.WithCancel(w.Context())
	var all sync.WaitGroup
	all.Go(func() { reconcileAll(ctx, r, queue) })
	all.Go(func() {
		if err := (keeper{r}).Start(ctx); err != nil {
			w.Error(err)
		}
	})
	w.end = sync.OnceFunc(func() {
		cancel()
		queue.ShutDown()
		all.Wait()
	})
	queue.Add(r.request())
	w.settle()
	return r
}

func reconcileAll(ctx context.Context, r *Reconciler, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	for {
		request, ended := queue.Get()
		if ended {
			return
		}
		result, err := r.Reconcile(ctx, request)
		switch {
		case err != nil:
			queue.AddRateLimited(request)
		case result.RequeueAfter > 0:
			queue.Forget(request)
			queue.AddAfter(request, result.RequeueAfter)
		default:
			queue.Forget(request)
		}
		queue.Done(request)
	}
}

// settle lets everything happen that can happen now.
func (*world) settle() { synctest.Wait() }

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

// store is an API server with one NodeImage, and secrets.
type store struct {
	mu      sync.Mutex
	object  *v1beta1.NodeImage
	version int
	notify  func()
	// cached is what readers see instead, if it is set.
	cached *v1beta1.NodeImage
	// writes are when the status was written.
	writes []time.Time
	// history are the statuses that were written.
	history []v1beta1.NodeImageStatus
	// refuse is what a write is answered with.
	refuse error
	// lose has writes done, and answered with an error.
	lose    bool
	secrets map[string]*corev1.Secret
	reads   []string
}

func newStore() *store {
	return &store{object: &v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "u1", ResourceVersion: "1"}}, version: 1, secrets: map[string]*corev1.Secret{}}
}

func (s *store) watch(notify func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notify = notify
}

func (s *store) stored() *v1beta1.NodeImage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.object.DeepCopy()
}

func (s *store) written() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.writes)
}

// change writes as somebody else.
func (s *store) change(how func(*v1beta1.NodeImage)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.object.DeepCopy()
	how(n)
	s.put(n)
}

func (s *store) put(n *v1beta1.NodeImage) {
	s.version++
	n.ResourceVersion = strconv.Itoa(s.version)
	s.object = n
	if s.notify != nil {
		s.notify()
	}
}

// set changes how the store behaves.
func (s *store) set(how func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	how()
}

func (s *store) client() client.Client {
	return interceptor.NewClient(nil, interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
			return s.get(key, o)
		},
		SubResourcePatch: func(_ context.Context, _ client.Client, resource string, o client.Object, p client.Patch, _ ...client.SubResourcePatchOption) error {
			if resource != "status" {
				return fmt.Errorf("a patch of %q", resource)
			}
			return s.patch(o.(*v1beta1.NodeImage), p)
		},
	})
}

func (s *store) get(key client.ObjectKey, o client.Object) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch into := o.(type) {
	case *v1beta1.NodeImage:
		from := s.object
		if s.cached != nil {
			from = s.cached
		}
		if key.Name != from.Name {
			return apierrors.NewNotFound(schema.GroupResource{Resource: "nodeimages"}, key.Name)
		}
		from.DeepCopyInto(into)
	case *corev1.Secret:
		s.reads = append(s.reads, key.String())
		secret := s.secrets[key.String()]
		if secret == nil {
			return apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, key.Name)
		}
		secret.DeepCopyInto(into)
	default:
		return fmt.Errorf("a read of %T", o)
	}
	return nil
}

func (s *store) patch(o *v1beta1.NodeImage, p client.Patch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes = append(s.writes, time.Now())
	if s.refuse != nil {
		return s.refuse
	}
	data, err := p.Data(o)
	if err != nil {
		return err
	}
	var asked struct {
		Metadata metav1.ObjectMeta
		Spec     json.RawMessage
	}
	if err := json.Unmarshal(data, &asked); err != nil {
		return err
	}
	if asked.Spec != nil {
		return fmt.Errorf("a patch of the spec: %s", data)
	}
	if v := asked.Metadata.ResourceVersion; v != "" && v != s.object.ResourceVersion {
		return apierrors.NewConflict(schema.GroupResource{Resource: "nodeimages"}, o.Name, fmt.Errorf("it is at %s, not at %s", s.object.ResourceVersion, v))
	}
	document, err := json.Marshal(s.object)
	if err != nil {
		return err
	}
	if document, err = jsonpatch.MergePatch(document, data); err != nil {
		return err
	}
	n := &v1beta1.NodeImage{}
	if err := json.Unmarshal(document, n); err != nil {
		return err
	}
	s.put(n)
	s.history = append(s.history, *n.Status.DeepCopy())
	n.DeepCopyInto(o)
	if s.lose {
		return fmt.Errorf("the answer is lost")
	}
	return nil
}

// images is a container runtime.
type images struct {
	mu      sync.Mutex
	link    cri.Connection
	changed chan struct{}
	present map[string]cri.Image
	// pull answers; nil answers at once. It is called with the number of the call for this image, from 1 on.
	pull func(ctx context.Context, c call) (string, error)
	// find answers instead of present.
	find  func(reference string) (cri.Image, error)
	calls []call
	looks int
	// running now, and at most.
	running, most int
}

// call is one of Pull.
type call struct {
	reference string
	login     cri.Credentials
	sandbox   cri.SandboxConfig
	number    int
	at        time.Time
}

func newImages() *images {
	return &images{link: cri.Connection{Up: true, Generation: 1}, changed: make(chan struct{}), present: map[string]cri.Image{}}
}

func (i *images) Connection() (cri.Connection, <-chan struct{}) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.link, i.changed
}

// connect changes the connection.
func (i *images) connect(up bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.link.Up = up
	if up {
		i.link.Generation++
	}
	close(i.changed)
	i.changed = make(chan struct{})
}

func (i *images) Image(_ context.Context, reference string) (cri.Image, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.looks++
	if i.find != nil {
		return i.find(reference)
	}
	found, ok := i.present[reference]
	if !ok {
		return cri.Image{}, cri.ErrNotFound
	}
	return found, nil
}

func (i *images) Pull(ctx context.Context, reference string, login cri.Credentials, s cri.SandboxConfig) (string, error) {
	i.mu.Lock()
	c := call{reference: reference, login: login, sandbox: s, number: 1, at: time.Now()}
	for _, before := range i.calls {
		if before.reference == reference {
			c.number++
		}
	}
	i.calls = append(i.calls, c)
	i.running++
	i.most = max(i.most, i.running)
	pull := i.pull
	i.mu.Unlock()
	defer func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.running--
	}()
	if pull == nil {
		return "sha256:" + reference, nil
	}
	return pull(ctx, c)
}

// pulled are the references that Pull was called with. Calls that begin in one pass come in any order.
func (i *images) pulled() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	var all []string
	for _, c := range i.calls {
		all = append(all, c.reference)
	}
	return all
}

// asked is how often the runtime was called in all, and now are the pulls under way.
func (i *images) asked() (all, now int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return len(i.calls) + i.looks, i.running
}

// takes is a pull of some time.
func takes(d time.Duration) func(context.Context, call) (string, error) {
	return func(ctx context.Context, _ call) (string, error) {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			return "sha256:1", nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// fails is a pull that fails at once.
func fails(err error) func(context.Context, call) (string, error) {
	return func(context.Context, call) (string, error) { return "", err }
}

// events records what is told, as "object: type reason message".
type events struct {
	mu  sync.Mutex
	all []string
}

var _ record.EventRecorder = &events{}

func (e *events) Event(o runtime.Object, eventType, reason, message string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	what := fmt.Sprintf("%T", o)
	switch o := o.(type) {
	case *v1beta1.NodeImage:
		what = o.Name
	case *corev1.ObjectReference:
		what = o.Namespace + "/" + o.Name
	}
	e.all = append(e.all, what+": "+eventType+" "+reason+" "+message)
}

func (e *events) Eventf(o runtime.Object, eventType, reason, format string, args ...any) {
	e.Event(o, eventType, reason, fmt.Sprintf(format, args...))
}

func (e *events) AnnotatedEventf(o runtime.Object, _ map[string]string, eventType, reason, format string, args ...any) {
	e.Event(o, eventType, reason, fmt.Sprintf(format, args...))
}

func (e *events) take() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := e.all
	e.all = nil
	return all
}
