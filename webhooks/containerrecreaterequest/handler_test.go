package containerrecreaterequest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kruisekit/kruisekit/internal/review/plaintest"
	"github.com/kruisekit/kruisekit/webhooks/containerrecreaterequest"
)

var (
	both   = []string{"v1alpha1", "v1beta1"}
	onPod  = []string{"pod shop/web"}
	onNode = []string{"pod shop/web", "Node /n1"}
)

const asked = `{"metadata":{"name":"again"},"spec":{"podName":"web","containers":[{"name":"app"}]}}`

// TestCreate compares patches, word by word.
func TestCreate(t *testing.T) {
	const (
		labels   = `{"op":"add","path":"/metadata/labels","value":{"crr.apps.kruise.io/active":"true","crr.apps.kruise.io/node-name":"n1","crr.apps.kruise.io/pod-uid":"u1"}}`
		context  = `{"op":"add","path":"/spec/containers/0/statusContext","value":{"containerID":"containerd://1","restartCount":2}}`
		strategy = `{"op":"add","path":"/spec/strategy","value":{"failurePolicy":"Fail"}}`
	)
	cases := map[string]struct {
		why, now string
		with     func(*world)
		want     string
	}{
		"plain": {"labels, the context, the defaults", asked, nil, labels + "," + context + "," + strategy},
		"labels of the user": {
			"those that the daemon goes by are overwritten, others stay",
			`{"metadata":{"labels":{"crr.apps.kruise.io/pod-uid":"other","crr.apps.kruise.io/active":"false","team":"a"}},"spec":{"podName":"web","containers":[{"name":"app"}]}}`, nil,
			`{"op":"add","path":"/metadata/labels/crr.apps.kruise.io~1active","value":"true"},` +
				`{"op":"add","path":"/metadata/labels/crr.apps.kruise.io~1node-name","value":"n1"},` +
				`{"op":"add","path":"/metadata/labels/crr.apps.kruise.io~1pod-uid","value":"u1"},` + context + "," + strategy,
		},
		"virtual node": {
			"no daemon of ours runs there", asked, func(w *world) { w.node.Labels = map[string]string{"type": "virtual-kubelet"} },
			strings.Replace(labels, `"u1"`, `"u1","type":"virtual-kubelet"`, 1) + "," + context + "," + strategy,
		},
		"another type of node": {
			"only that type is reported", asked, func(w *world) { w.node.Labels = map[string]string{"type": "gpu"} },
			labels + "," + context + "," + strategy,
		},
		"fields of the future": {
			"they stay as they are", `{"metadata":{},"spec":{"podName":"web","new":1,"containers":[{"name":"app","new":1}],"strategy":{"new":1,"failurePolicy":"Ignore"}}}`, nil,
			labels + "," + context,
		},
	}
	for name, c := range cases {
		for _, version := range both {
			t.Run(name+"/"+version, func(t *testing.T) {
				w := newWorld()
				if c.with != nil {
					c.with(w)
				}
				answer := w.webhook(t, containerrecreaterequest.Options{}).Mutate(t.Context(), newRequest(version, c.now, ""))
				if !answer.Allowed {
					t.Fatal(answer.Result)
				}
				if diff := cmp.Diff("["+c.want+"]", string(answer.Patch)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", c.why, diff)
				}
				if diff := cmp.Diff(onNode, w.read); diff != "" {
					t.Errorf("reads (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// TestRefusals is about the way to an answer, and what is read on it; containerrestart has the table of what is wrong.
func TestRefusals(t *testing.T) {
	cases := map[string]struct {
		why, now string
		with     func(*world)
		code     int32
		causes   []string
		read     []string
	}{
		"wrong by itself": {
			"nothing is read for it", `{"spec":{"podName":"","containers":[],"activeDeadlineSeconds":2}}`, nil, 400,
			[]string{"spec.podName: FieldValueRequired", "spec.containers: FieldValueRequired", "spec.activeDeadlineSeconds: FieldValueInvalid"},
			nil,
		},
		"wrong by itself, and the pod cannot be read": {
			"what is wrong comes first", `{"spec":{"podName":"web","containers":[]}}`, func(w *world) { w.fail["pod"] = errors.New("down") },
			400,
			[]string{"spec.containers: FieldValueRequired"},
			nil,
		},
		"no such pod":      {"it is gone", asked, func(w *world) { w.pod = nil }, 400, []string{"spec.podName: FieldValueNotFound"}, onPod},
		"no name of a pod": {"nothing can be called so", strings.Replace(asked, "web", "../nodes", 1), nil, 400, []string{"spec.podName: FieldValueNotFound"}, nil},
		"no node yet":      {"no node is read", asked, func(w *world) { w.pod.Spec.NodeName = "" }, 400, []string{"spec.podName: FieldValueInvalid"}, onPod},
		"node is gone":     {"no daemon is there", asked, func(w *world) { w.node = nil }, 400, []string{"spec.podName: FieldValueInvalid"}, onNode},
		"pod unreadable":   {"the request may be right", asked, func(w *world) { w.fail["pod"] = errors.New("down") }, 500, nil, onPod},
		"node unreadable":  {"the request may be right", asked, func(w *world) { w.fail["node"] = errors.New("down") }, 500, nil, onNode},
		"no container":     {"of that name", strings.Replace(asked, "app", "other", 1), nil, 400, []string{"spec.containers[0].name: FieldValueNotFound"}, onNode},
		"a context given":  {"it is the pod's", strings.Replace(asked, `"app"`, `"app","statusContext":{"containerID":"x","restartCount":0}`, 1), nil, 400, []string{"spec.containers[0].statusContext: FieldValueForbidden"}, onNode},
		"a wrong type":     {"the place is known", `{"spec":{"podName":7}}`, nil, 400, []string{"spec.podName: FieldValueTypeInvalid"}, nil},
		"nothing":          {"there is nothing to judge", ``, nil, 400, nil, nil},
		"null":             {"everything is missing", `null`, nil, 400, []string{"spec.podName: FieldValueRequired", "spec.containers: FieldValueRequired"}, nil},
	}
	for name, c := range cases {
		for _, version := range both {
			t.Run(name+"/"+version, func(t *testing.T) {
				w := newWorld()
				if c.with != nil {
					c.with(w)
				}
				answer := w.webhook(t, containerrecreaterequest.Options{}).Mutate(t.Context(), newRequest(version, c.now, ""))
				if answer.Allowed || answer.Result.Code != c.code {
					t.Errorf("%s: %+v", c.why, answer.Result)
				}
				if diff := cmp.Diff(c.causes, plaintest.Causes(answer)); diff != "" {
					t.Errorf("%s: causes (-want +got):\n%s", c.why, diff)
				}
				if diff := cmp.Diff(c.read, w.read); diff != "" {
					t.Errorf("%s: reads (-want +got):\n%s", c.why, diff)
				}
			})
		}
	}
}

func TestUpdate(t *testing.T) {
	const (
		labels = `"labels":{"crr.apps.kruise.io/active":"true","crr.apps.kruise.io/node-name":"n1","crr.apps.kruise.io/pod-uid":"u1"}`
		spec   = `"spec":{"podName":"web","containers":[{"name":"app"}]}`
		stored = `{"metadata":{` + labels + `},` + spec + `}`
		grace  = `{"metadata":{"annotations":{"crr.apps.kruise.io/unready-acquired":"2024-05-06T07:08:09Z"},` + labels + `},` + spec + `}`
	)
	cases := map[string]struct {
		why, stored, now string
		versions         []string
		causes           []string
	}{
		"nothing":        {"nothing changes", stored, stored, both, nil},
		"no longer live": {"the label active may go", stored, strings.Replace(stored, `"crr.apps.kruise.io/active":"true",`, "", 1), both, nil},
		"defaults":       {"what is zero is what is left out", stored, strings.Replace(stored, `"web"`, `"web","activeDeadlineSeconds":null`, 1), both, nil},
		"spec":           {"a daemon may have begun with it", stored, strings.Replace(stored, `"web"`, `"other"`, 1), both, []string{"spec: FieldValueForbidden"}},
		"a deadline":     {"one that comes later is a change as well", stored, strings.Replace(stored, `"web"`, `"web","activeDeadlineSeconds":9`, 1), both, []string{"spec: FieldValueForbidden"}},
		"pod": {
			"its containers are those of the old one", stored, strings.Replace(stored, `"u1"`, `"u2"`, 1), both,
			[]string{"metadata.labels[crr.apps.kruise.io/pod-uid]: FieldValueForbidden"},
		},
		"no labels": {
			"its daemon would not find it", stored, `{"metadata":{},` + spec + `}`, both,
			[]string{"metadata.labels[crr.apps.kruise.io/pod-uid]: FieldValueForbidden", "metadata.labels[crr.apps.kruise.io/node-name]: FieldValueForbidden"},
		},
		"the grace begins":  {"its controller says so", stored, grace, both, nil},
		"the grace goes on": {"nothing changes", grace, grace, both, nil},
		"the grace is lost": {
			"the pod would be forgotten", grace, stored, both[:1],
			[]string{"metadata.annotations[crr.apps.kruise.io/unready-acquired]: FieldValueForbidden"},
		},
		"the grace moves": {
			"it would never end", grace, strings.Replace(grace, "2024", "2025", 1), both[:1],
			[]string{"metadata.annotations[crr.apps.kruise.io/unready-acquired]: FieldValueForbidden"},
		},
		"the annotation means nothing": {"v1beta1 has it in its status", grace, stored, both[1:], nil},
	}
	for name, c := range cases {
		for _, version := range c.versions {
			t.Run(name+"/"+version, func(t *testing.T) {
				w := newWorld()
				answer := w.webhook(t, containerrecreaterequest.Options{}).Mutate(t.Context(), newRequest(version, c.now, c.stored))
				if diff := cmp.Diff(c.causes, plaintest.Causes(answer)); diff != "" {
					t.Errorf("%s: causes (-want +got):\n%s", c.why, diff)
				}
				if answer.Allowed != (c.causes == nil) || !answer.Allowed && answer.Result.Code != 403 || answer.Patch != nil {
					t.Errorf("%s: %+v", c.why, answer)
				}
				if len(w.read) > 0 {
					t.Errorf("%q was read", w.read)
				}
			})
		}
	}
	w := newWorld()
	answer := w.webhook(t, containerrecreaterequest.Options{}).Mutate(t.Context(), newRequest("v1beta1", strings.Replace(stored, `"app"`, `"b"`, 1), stored))
	if want := "spec of ContainerRecreateRequest is immutable"; !strings.Contains(answer.Result.Message, want) {
		t.Errorf("want %q, got %q", want, answer.Result.Message)
	}
}

// TestRequests: whom and what the webhook answers.
func TestRequests(t *testing.T) {
	const leaving = `{"metadata":{"deletionTimestamp":"2024-05-06T07:08:09Z"},"spec":{}}`
	change := func(r admission.Request, f func(*admission.Request)) admission.Request {
		f(&r)
		return r
	}
	cases := map[string]struct {
		why     string
		request admission.Request
		off     bool
		code    int32
		patched bool
	}{
		"new": {"it is completed", newRequest("v1beta1", asked, ""), false, 200, true},
		"asked for in another version": {
			"the object has the version of the resource",
			change(newRequest("v1alpha1", asked, ""), func(r *admission.Request) {
				r.RequestKind = &metav1.GroupVersionKind{Group: "apps.kruise.io", Version: "v1beta1", Kind: "ContainerRecreateRequest"}
				r.RequestResource = &metav1.GroupVersionResource{Group: "apps.kruise.io", Version: "v1beta1", Resource: crr}
			}), false, 200, true,
		},
		"status":          {"it is not ours", change(newRequest("v1beta1", "{}", "{}"), func(r *admission.Request) { r.SubResource = "status" }), true, 200, false},
		"deleted":         {"everything may go", change(newRequest("v1beta1", "", "{}"), func(r *admission.Request) { r.Operation = admissionv1.Delete }), true, 200, false},
		"another version": {"we would read it wrong", newRequest("v1", asked, ""), false, 400, false},
		"another kind":    {"somebody misconfigured us", change(newRequest("v1beta1", asked, ""), func(r *admission.Request) { r.Resource.Resource = "pods" }), false, 400, false},
		"an odd stored":   {"nobody knows what changes", newRequest("v1alpha1", asked, "7"), false, 400, false},

		"no daemon":          {"nobody would stop containers", newRequest("v1alpha1", asked, ""), true, 403, false},
		"no daemon, changed": {"what stays is not open to changes", newRequest("v1beta1", asked, asked), true, 403, false},
		"no daemon, leaving": {"its finalizer must come off", newRequest("v1beta1", leaving, leaving), true, 200, false},
		"no daemon, odd":     {"the answer is the same for all", newRequest("v1beta1", "7", ""), true, 403, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			answer := newWorld().webhook(t, containerrecreaterequest.Options{NoDaemon: c.off}).Mutate(t.Context(), c.request)
			if answer.Result.Code != c.code || (answer.Patch != nil) != c.patched {
				t.Errorf("%s: %d %s, patch %s", c.why, answer.Result.Code, answer.Result.Message, answer.Patch)
			}
			if c.code == 403 && !strings.Contains(answer.Result.Message, "feature gate KruiseDaemon is off") {
				t.Errorf("the reason is not told: %s", answer.Result.Message)
			}
		})
	}
}

// TestTimeout: an API server that hangs is not waited for longer than the options say.
func TestTimeout(t *testing.T) {
	var deadline time.Time
	hanging := interceptor.NewClient(nil, interceptor.Funcs{
		Get: func(ctx context.Context, _ client.WithWatch, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
			deadline, _ = ctx.Deadline()
			<-ctx.Done()
			return ctx.Err()
		},
	})
	webhook, err := containerrecreaterequest.New(hanging, containerrecreaterequest.Options{Timeout: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if answer := webhook.Mutate(t.Context(), newRequest("v1beta1", asked, "")); answer.Result.Code != 500 || deadline.IsZero() {
		t.Errorf("%+v with deadline %s", answer.Result, deadline)
	}
}

func TestNew(t *testing.T) {
	if _, err := containerrecreaterequest.New(nil, containerrecreaterequest.Options{}); err == nil {
		t.Error("nothing to read with")
	}
	if _, err := containerrecreaterequest.New(newWorld().reader(), containerrecreaterequest.Options{Timeout: -1}); err == nil {
		t.Error("a timeout below zero")
	}
}

// FuzzMutate: no request makes the webhook panic, and what is refused has a reason.
func FuzzMutate(f *testing.F) {
	f.Add(asked, "", true)
	f.Add(asked, asked, false)
	f.Add(`{"metadata":{"labels":null,"annotations":{"crr.apps.kruise.io/unready-acquired":"x","crr.apps.kruise.io/sync-container-statuses":"["}},"spec":{"containers":[null,{"ports":[]}]}}`, `null`, true)
	f.Fuzz(func(t *testing.T, now, stored string, old bool) {
		version := "v1beta1"
		if old {
			version = "v1alpha1"
		}
		answer := newWorld().webhook(t, containerrecreaterequest.Options{}).Mutate(t.Context(), newRequest(version, now, stored))
		if !answer.Allowed && answer.Result.Message == "" {
			t.Errorf("refused without a word: %+v", answer.Result)
		}
	})
}
