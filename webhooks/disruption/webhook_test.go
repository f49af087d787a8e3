package disruption_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	policyv1beta1 "github.com/kruisekit/kruisekit/api/policy/v1beta1"
	"github.com/kruisekit/kruisekit/pub"
	"github.com/kruisekit/kruisekit/webhooks/disruption"
)

func noon() time.Time { return time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC) }

// newPod is the pod web-0.
func newPod(change func(*corev1.Pod)) *corev1.Pod {
	pod := web("web-0")
	if change != nil {
		change(pod)
	}
	return pod
}

func raw(t *testing.T, object any) runtime.RawExtension {
	t.Helper()
	if object == nil {
		return runtime.RawExtension{}
	}
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return runtime.RawExtension{Raw: data}
}

// request is about the pod web-0.
type request struct {
	operation   admissionv1.Operation
	subresource string
	before      any
	after       any
	dryRun      bool
}

func (r request) review(t *testing.T) admission.Request {
	t.Helper()
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID:         "1",
		Operation:   r.operation,
		Resource:    metav1.GroupVersionResource{Version: "v1", Resource: "pods"},
		SubResource: r.subresource,
		Namespace:   "shop",
		Name:        "web-0",
		Object:      raw(t, r.after),
		OldObject:   raw(t, r.before),
		DryRun:      &r.dryRun,
		UserInfo:    authenticationv1.UserInfo{Username: "ann"},
	}}
}

// world is a cluster with the budget web, and the pod web-0.
type world struct {
	*cluster

	// writing fails the writes of statuses.
	writing error
	// exempt users are never refused.
	exempt []string
}

func newWorld(t *testing.T, allowed int32, change func(*policyv1beta1.PodUnavailableBudget)) *world {
	t.Helper()
	w := &world{cluster: newCluster(t)}
	w.put("web", allowed, change)
	if err := w.Put(newPod(nil)); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) webhook(t *testing.T, o disruption.Options) *disruption.Webhook {
	t.Helper()
	failing := interceptor.NewClient(w.Server, interceptor.Funcs{SubResourcePatch: func(
		ctx context.Context, c client.Client, name string, object client.Object, p client.Patch,
		options ...client.SubResourcePatchOption,
	) error {
		if w.writing != nil {
			return w.writing
		}
		return c.SubResource(name).Patch(ctx, object, p, options...)
	}})
	guard, x := w.replica(func(l *disruption.GuardLookups, g *disruption.GuardOptions) {
		l.Client, g.Policy = failing, pub.Policy{ExemptUsers: w.exempt}
	})
	w.show(x, "web")
	hook, err := disruption.New(guard, reader{w.cluster}, o)
	if err != nil {
		t.Fatal(err)
	}
	return hook
}

// TestReview: which request disrupts, with which code it is refused, and what it costs.
func TestReview(t *testing.T) {
	image := newPod(func(p *corev1.Pod) { p.Spec.Containers[0].Image = "web:2" })
	escape := newPod(func(p *corev1.Pod) { p.Spec.Containers[0].Image, p.Labels = "web:2", nil })
	label := newPod(func(p *corev1.Pod) { p.Labels["unavailable-pod.kruise.io/x"] = "y" })
	annotation := newPod(func(p *corev1.Pod) { p.Annotations = map[string]string{"a": "b"} })
	eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "web-0"}}
	dryEviction := &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Name: "web-0"}, DeleteOptions: &metav1.DeleteOptions{DryRun: []string{"All"}},
	}
	evict := request{operation: admissionv1.Create, subresource: "eviction", after: eviction}
	remove := request{operation: admissionv1.Delete, before: newPod(nil)}
	update := request{operation: admissionv1.Update, before: newPod(nil), after: image}
	pods := policyv1beta1.GroupVersion.WithResource("podunavailablebudgets").GroupResource()
	for name, c := range map[string]struct {
		why     string
		request request
		allowed int32
		budget  func(*policyv1beta1.PodUnavailableBudget)
		options disruption.Options
		change  func(*world)
		code    int32 // 200 is admitted
		text    string
		writes  int
		reads   int32
	}{
		"deletion": {
			why:     "a deletion without room is 403",
			request: remove,
			code:    403,
			text:    `podunavailablebudget "web" is forbidden: pub unavailable allowed is negative`,
		},
		"deletion admitted": {why: "one with room costs one write", request: remove, allowed: 1, code: 200, writes: 1},
		"deletion in dry run": {
			why:     "a dry run records nothing",
			request: request{operation: admissionv1.Delete, before: newPod(nil), dryRun: true},
			allowed: 1,
			code:    200,
		},
		"deletion without a pod": {
			why: "a request without the old object is admitted", request: request{operation: admissionv1.Delete}, code: 200,
		},
		"deletions off": {
			why: "the gate is off", request: remove, options: disruption.Options{NoDeletes: true, Updates: true}, code: 200,
		},
		"eviction": {
			why:     "an eviction without room is 429",
			request: evict,
			code:    429,
			text:    `podunavailablebudget "web" is forbidden: pub unavailable allowed is negative`,
			reads:   1,
		},
		"eviction admitted": {
			why: "one with room costs a read and a write", request: evict, allowed: 1, code: 200, writes: 1, reads: 1,
		},
		"eviction in dry run": {
			why:     "the options of the deletion ask for the dry run",
			request: request{operation: admissionv1.Create, subresource: "eviction", after: dryEviction},
			allowed: 1,
			code:    200,
			reads:   1,
		},
		"eviction without a body": {
			why:     "an eviction may be empty",
			request: request{operation: admissionv1.Create, subresource: "eviction"},
			code:    429,
			reads:   1,
		},
		"evictions off": {
			why: "the gate is off", request: evict, options: disruption.Options{NoDeletes: true}, code: 200,
		},
		"eviction of no pod": {
			why: "a pod that does not exist is 400, as in the reference", request: evict, code: 400, text: "not found", reads: 1,
			change: func(w *world) { w.fault = apierrors.NewNotFound(corev1.Resource("pods"), "web-0") },
		},
		"eviction without an answer": {
			why:     "a pod that cannot be read is 429, so that clients wait",
			request: evict,
			code:    429,
			text:    "read pod web-0",
			reads:   1,
			change:  func(w *world) { w.fault = errors.New("connection reset") },
		},
		"malformed eviction": {
			why:     "what cannot be decoded is 400",
			request: request{operation: admissionv1.Create, subresource: "eviction", after: []int{1}},
			code:    400,
			text:    "decode eviction",
		},
		"malformed pod": {
			why:     "what cannot be decoded is 400",
			request: request{operation: admissionv1.Delete, before: map[string]any{"spec": 1}},
			code:    400,
			text:    "decode pod",
		},
		"creation": {
			why:     "a new pod is another webhook's",
			request: request{operation: admissionv1.Create, after: newPod(nil)},
			code:    200,
		},
		"update": {
			why:     "an update in place without room is 403",
			request: update,
			options: disruption.Options{Updates: true},
			code:    403,
			text:    "is forbidden",
		},
		"updates off": {why: "the gate is off by default", request: update, code: 200},
		"escape": {
			why:     "an update is judged by the pod before it",
			request: request{operation: admissionv1.Update, before: newPod(nil), after: escape},
			options: disruption.Options{Updates: true},
			code:    403,
			text:    "is forbidden",
		},
		"label": {
			why:     "a label that makes the pod unavailable is a disruption",
			request: request{operation: admissionv1.Update, before: newPod(nil), after: label},
			options: disruption.Options{Updates: true},
			code:    403,
			text:    "is forbidden",
		},
		"annotation": {
			why:     "an update without an effect asks no budget",
			request: request{operation: admissionv1.Update, before: newPod(nil), after: annotation},
			options: disruption.Options{Updates: true},
			code:    200,
		},
		"status": {
			why:     "a status is no update of a pod",
			request: request{operation: admissionv1.Update, subresource: "status", before: newPod(nil), after: image},
			options: disruption.Options{Updates: true},
			code:    200,
		},
		"unsynced": {
			why:     "a budget without a status for its spec has clients wait",
			request: remove,
			allowed: 1,
			code:    429,
			text:    "has not been computed",
			budget:  func(b *policyv1beta1.PodUnavailableBudget) { b.Generation = 2 },
		},
		"record forbidden": {
			why:     "a record that the API server refuses is 403 with its text",
			request: remove,
			allowed: 1,
			code:    403,
			text:    "no right",
			change:  func(w *world) { w.writing = apierrors.NewForbidden(pods, "web", errors.New("no right")) },
		},
		"record without an answer": {
			why: "a record without an answer is 503", request: remove, allowed: 1, code: 503, text: "connection reset",
			change: func(w *world) { w.writing = errors.New("connection reset") },
		},
		"budget gone": {
			why: "a budget that is deleted meanwhile admits", request: remove, allowed: 1, code: 200,
			change: func(w *world) { w.writing = apierrors.NewNotFound(pods, "web") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.allowed, c.budget)
			if c.change != nil {
				c.change(w)
			}
			got := w.webhook(t, c.options).Review(t.Context(), c.request.review(t))
			code, text := int32(200), ""
			if !got.Allowed {
				code, text = got.Result.Code, got.Result.Message
			}
			if code != c.code || !strings.Contains(text, c.text) {
				t.Fatalf("%s: %d %q", c.why, code, text)
			}
			if writes := len(w.Requests()); writes != c.writes || w.reads.Load() != c.reads {
				t.Errorf("%s: %d writes, %d live reads", c.why, writes, w.reads.Load())
			}
			if code == 429 && !apierrors.IsTooManyRequests(&apierrors.StatusError{ErrStatus: *got.Result}) {
				t.Errorf("%s: no client waits after %+v", c.why, got.Result)
			}
		})
	}
}

// TestReviewEnds: a review ends before the API server stops to wait for it.
func TestReviewEnds(t *testing.T) {
	w := newWorld(t, 1, nil)
	w.writing = apierrors.NewConflict(policyv1beta1.GroupVersion.WithResource("podunavailablebudgets").GroupResource(),
		"web", errors.New("another writer"))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	got := w.webhook(t, disruption.Options{}).Review(ctx, request{
		operation: admissionv1.Delete, before: newPod(nil),
	}.review(t))
	if got.Allowed || got.Result.Code != 504 {
		t.Errorf("conflicts until the end: %+v", got.Result)
	}
}
