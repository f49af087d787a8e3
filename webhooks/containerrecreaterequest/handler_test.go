package containerrecreaterequest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kruisekit/kruisekit/test/rig/plaintest"
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
		labels = `{"op":"add","path":"/metadata/labels","value":{"crr.apps.kruise.io/active":"true",` +
			`"crr.apps.kruise.io/node-name":"n1","crr.apps.kruise.io/pod-uid":"u1"}}`
		context = `{"op":"add","path":"/spec/containers/0/statusContext","value":{"containerID":"containerd://1",` +
			`"restartCount":2}}`
		strategy = `{"op":"add","path":"/spec/strategy","value":{"failurePolicy":"Fail"}}`
	)
	cases := map[string]struct {
		why, now string
		with     func(*world)
		want     string
	}{
		"plain": {"labels, the context, the defaults", asked, nil, labels + "," + context + "," + strategy},
		"labels of the user": {
			why: "those that the daemon goes by are overwritten, others stay",
			now: `{"metadata":{"labels":{"crr.apps.kruise.io/pod-uid":"other","crr.apps.kruise.io/active":"false",` +
				`"team":"a"}},"spec":{"podName":"web","containers":[{"name":"app"}]}}`,
			want: `{"op":"add","path":"/metadata/labels/crr.apps.kruise.io~1active","value":"true"},` +
				`{"op":"add","path":"/metadata/labels/crr.apps.kruise.io~1node-name","value":"n1"},` +
				`{"op":"add","path":"/metadata/labels/crr.apps.kruise.io~1pod-uid","value":"u1"},` + context + "," + strategy,
		},
		"virtual node": {
			why: "no daemon of ours runs there", now: asked,
			with: func(w *world) { w.node.Labels = map[string]string{"type": "virtual-kubelet"} },
			want: strings.Replace(labels, `"u1"`, `"u1","type":"virtual-kubelet"`, 1) + "," + context + "," + strategy,
		},
		"another type of node": {
			why: "only that type is reported", now: asked,
			with: func(w *world) { w.node.Labels = map[string]string{"type": "gpu"} },
			want: labels + "," + context + "," + strategy,
		},
		"fields of the future": {
			why: "they stay as they are",
			now: `{"metadata":{},"spec":{"podName":"web","new":1,"containers":[{"name":"app","new":1}],"strategy":{"new":1,` +
				`"failurePolicy":"Ignore"}}}`,
			want: labels + "," + context,
		},
	}
	for name, c := range cases {
		for _, version := range both {
			t.Run(name+"/"+version, func(t *testing.T) {
				w := newWorld()
				if c.with != nil {
					c.with(w)
				}
				answer := w.review(t, containerrecreaterequest.Options{}, [3]string{version, c.now, ""})
				plaintest.Patches(t, c.why, c.want, answer)
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
			why: "nothing is read for it", now: `{"spec":{"podName":"","containers":[],"activeDeadlineSeconds":2}}`, code: 400,
			causes: []string{
				"spec.podName: FieldValueRequired", "spec.containers: FieldValueRequired",
				"spec.activeDeadlineSeconds: FieldValueInvalid",
			},
		},
		"wrong by itself, and the pod cannot be read": {
			why: "what is wrong comes first", now: `{"spec":{"podName":"web","containers":[]}}`,
			with: func(w *world) { w.fail["pod"] = errors.New("down") }, code: 400,
			causes: []string{"spec.containers: FieldValueRequired"},
		},
		"no such pod": {
			why: "it is gone", now: asked, with: func(w *world) { w.pod = nil }, code: 400,
			causes: []string{"spec.podName: FieldValueNotFound"}, read: onPod,
		},
		"no name of a pod": {
			why: "nothing can be called so", now: strings.Replace(asked, "web", "../nodes", 1), code: 400,
			causes: []string{"spec.podName: FieldValueNotFound"},
		},
		"no node yet": {
			why: "no node is read", now: asked, with: func(w *world) { w.pod.Spec.NodeName = "" }, code: 400,
			causes: []string{"spec.podName: FieldValueInvalid"}, read: onPod,
		},
		"node is gone": {
			why: "no daemon is there", now: asked, with: func(w *world) { w.node = nil }, code: 400,
			causes: []string{"spec.podName: FieldValueInvalid"}, read: onNode,
		},
		"pod unreadable": {
			why: "the request may be right", now: asked, with: func(w *world) { w.fail["pod"] = errors.New("down") }, code: 500,
			read: onPod,
		},
		"node unreadable": {
			why: "the request may be right", now: asked, with: func(w *world) { w.fail["node"] = errors.New("down") }, code: 500,
			read: onNode,
		},
		"no container": {
			why: "of that name", now: strings.Replace(asked, "app", "other", 1), code: 400,
			causes: []string{"spec.containers[0].name: FieldValueNotFound"}, read: onNode,
		},
		"a context given": {
			why: "it is the pod's",
			now: strings.Replace(asked, `"app"`, `"app","statusContext":{"containerID":"x","restartCount":0}`, 1), code: 400,
			causes: []string{"spec.containers[0].statusContext: FieldValueForbidden"}, read: onNode,
		},
		"a wrong type": {
			why: "the place is known", now: `{"spec":{"podName":7}}`, code: 400,
			causes: []string{"spec.podName: FieldValueTypeInvalid"},
		},
	}
	for name, c := range cases {
		for _, version := range both {
			t.Run(name+"/"+version, func(t *testing.T) {
				w := newWorld()
				if c.with != nil {
					c.with(w)
				}
				answer := w.review(t, containerrecreaterequest.Options{}, [3]string{version, c.now, ""})
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
		labels = `"labels":{"crr.apps.kruise.io/active":"true","crr.apps.kruise.io/node-name":"n1",` +
			`"crr.apps.kruise.io/pod-uid":"u1"}`
		spec   = `"spec":{"podName":"web","containers":[{"name":"app"}]}`
		stored = `{"metadata":{` + labels + `},` + spec + `}`
		grace  = `{"metadata":{"annotations":{"crr.apps.kruise.io/unready-acquired":"2024-05-06T07:08:09Z"},` + labels +
			`},` + spec + `}`
	)
	cases := map[string]struct {
		why, stored, now string
		versions         []string
		causes           []string
	}{
		"nothing": {"nothing changes", stored, stored, both, nil},
		"no longer live": {
			why: "the label active may go", stored: stored,
			now: strings.Replace(stored, `"crr.apps.kruise.io/active":"true",`, "", 1), versions: both,
		},
		"defaults": {
			why: "what is zero is what is left out", stored: stored,
			now: strings.Replace(stored, `"web"`, `"web","activeDeadlineSeconds":null`, 1), versions: both,
		},
		"spec": {
			why: "a daemon may have begun with it", stored: stored, now: strings.Replace(stored, `"web"`, `"other"`, 1),
			versions: both, causes: []string{"spec: FieldValueForbidden"},
		},
		"a deadline": {
			why: "one that comes later is a change as well", stored: stored,
			now: strings.Replace(stored, `"web"`, `"web","activeDeadlineSeconds":9`, 1), versions: both,
			causes: []string{"spec: FieldValueForbidden"},
		},
		"pod": {
			why: "its containers are those of the old one", stored: stored, now: strings.Replace(stored, `"u1"`, `"u2"`, 1),
			versions: both, causes: []string{"metadata.labels[crr.apps.kruise.io/pod-uid]: FieldValueForbidden"},
		},
		"no labels": {
			why: "its daemon would not find it", stored: stored, now: `{"metadata":{},` + spec + `}`, versions: both,
			causes: []string{
				"metadata.labels[crr.apps.kruise.io/pod-uid]: FieldValueForbidden",
				"metadata.labels[crr.apps.kruise.io/node-name]: FieldValueForbidden",
			},
		},
		"the grace begins":  {"its controller says so", stored, grace, both, nil},
		"the grace goes on": {"nothing changes", grace, grace, both, nil},
		"the grace is lost": {
			why: "the pod would be forgotten", stored: grace, now: stored, versions: both[:1],
			causes: []string{"metadata.annotations[crr.apps.kruise.io/unready-acquired]: FieldValueForbidden"},
		},
		"the grace moves": {
			why: "it would never end", stored: grace, now: strings.Replace(grace, "2024", "2025", 1), versions: both[:1],
			causes: []string{"metadata.annotations[crr.apps.kruise.io/unready-acquired]: FieldValueForbidden"},
		},
		"the annotation means nothing": {"v1beta1 has it in its status", grace, stored, both[1:], nil},
	}
	for name, c := range cases {
		for _, version := range c.versions {
			t.Run(name+"/"+version, func(t *testing.T) {
				w := newWorld()
				answer := w.review(t, containerrecreaterequest.Options{}, [3]string{version, c.now, c.stored})
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
	answer := newWorld().review(t, containerrecreaterequest.Options{},
		[3]string{"v1beta1", strings.Replace(stored, `"app"`, `"b"`, 1), stored})
	if want := "spec of ContainerRecreateRequest is immutable"; !strings.Contains(answer.Result.Message, want) {
		t.Errorf("want %q, got %q", want, answer.Result.Message)
	}
}

// Without a daemon there are no new requests and no changes, and what is being deleted can lose its finalizer.
func TestNoDaemon(t *testing.T) {
	const leaving = `{"metadata":{"deletionTimestamp":"2024-05-06T07:08:09Z"},"spec":{}}`
	closed := plaintest.Want{Code: 403, Text: "no container is restarted: feature gate KruiseDaemon is off"}
	for name, c := range map[string]struct {
		now, stored string
		want        plaintest.Want
	}{
		"new":     {now: asked, want: closed},
		"changed": {now: asked, stored: asked, want: closed},
		"leaving": {now: leaving, stored: leaving},
	} {
		for _, version := range both {
			answer := newWorld().review(t, containerrecreaterequest.Options{NoDaemon: true}, [3]string{version, c.now, c.stored})
			plaintest.Answers(t, name, c.want, answer)
		}
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
	w, err := containerrecreaterequest.New(hanging, containerrecreaterequest.Options{Timeout: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	r := plaintest.Request(plaintest.Kind("ContainerRecreateRequest"), "v1beta1", asked, "")
	plaintest.Answers(t, "hanging", plaintest.Want{Code: 500}, w[containerrecreaterequest.MutatePath](t.Context(), r))
	if deadline.IsZero() {
		t.Error("there is no deadline")
	}
}
