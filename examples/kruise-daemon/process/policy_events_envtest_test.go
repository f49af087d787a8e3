//go:build envtest

package process

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeclient "sigs.k8s.io/controller-runtime/pkg/client"
)

// testEvents has a daemon on node-a create events, and patch its own, those of a daemon on node-b and those of
// kubelets.
func testEvents(t *testing.T, p policyGround, onA runtimeclient.Client) {
	p.grantEvents(t)
	for _, e := range []*corev1.Event{
		event("mine", "kruise-daemon-crr", "node-a"), event("of-b", "kruise-daemon-crr", "node-b"),
		event("of-kubelet-a", "kubelet", "node-a"), event("of-kubelet-b", "kubelet", "node-b"),
		event("of-scheduler", "default-scheduler", ""),
	} {
		if err := p.Client.Create(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	type write = func(context.Context, runtimeclient.Client) error
	const taken = `{"message":"forged","reason":"Started","type":"Normal",` +
		`"source":{"component":"kruise-daemon-crr","host":"node-a"},"reportingComponent":"kruise-daemon-crr","reportingInstance":"node-a"}`
	cases := map[string]struct {
		write   write
		refused string
	}{
		"its event: events name their node": {createEvent(event("", "kruise-daemon-crr", "node-a")), ""},
		"once more: the recorder counts repeats": {
			patchEvent("mine", `{"count":2,"lastTimestamp":"2026-01-01T00:00:00Z","message":"b"}`), "",
		},
		"of another node: users would look at the wrong node": {
			createEvent(event("", "kruise-daemon-crr", "node-b")), "of this node",
		},
		"by another instance: kubectl prints it": {
			createEvent(func() runtimeclient.Object {
				e := event("", "kruise-daemon-crr", "node-a")
				e.ReportingInstance = "node-b"
				return e
			}()), "that it reports",
		},
		"of the newer API: it has no host": {createEvent(newEvent("kruise-daemon-crr", "node-a")), "of this node"},
		"in the name of the kubelet: only the daemon reports in its own name": {
			createEvent(event("", "kubelet", "node-a")), "that it reports",
		},
		"with a finalizer: no controller would remove it": {
			createEvent(func() runtimeclient.Object {
				e := event("", "kruise-daemon-crr", "node-a")
				e.Finalizers = []string{"a.b/c"}
				return e
			}()), "must not change labels",
		},
		"that of another node becomes its own: the stored host counts": {patchEvent("of-b", taken), "of this node"},
		"that of another kubelet becomes its own: the stored host counts": {
			patchEvent("of-kubelet-b", taken), "of this node",
		},
		"that of the kubelet of its node: the kubelet reports it": {
			patchEvent("of-kubelet-a", `{"message":"forged"}`), "that it reports",
		},
		"that of the kubelet of its node, its own now: the stored reporter counts": {
			patchEvent("of-kubelet-a", taken), "that it reports",
		},
		"that of no node: the scheduler reports it": {patchEvent("of-scheduler", taken), "of this node"},
		"its event goes to another node: the new host counts too": {
			patchEvent("mine", `{"source":{"host":"node-b"}}`), "of this node",
		},
		"its event gets a finalizer: no controller would remove it": {
			patchEvent("mine", `{"metadata":{"finalizers":["a.b/c"]}}`), "must not change labels",
		},
		"its event gets a label: tools select by it": {
			patchEvent("mine", `{"metadata":{"labels":{"a":"b"}}}`), "must not change labels",
		},
		"its event gets an annotation: tools read it": {
			patchEvent("mine", `{"metadata":{"annotations":{"a":"b"}}}`), "runtime-containers-meta alone",
		},
		"its event has another reason: it is another event then": {
			patchEvent("mine", `{"reason":"Started"}`), "reason of an event",
		},
		"that of the kubelet through the newer API: both APIs have the same events": {
			func(ctx context.Context, c runtimeclient.Client) error {
				e := &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "of-kubelet-a"}}
				return c.Patch(ctx, e, runtimeclient.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`)))
			}, "that it reports",
		},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			err := test.write(t.Context(), onA)
			if test.refused == "" && err != nil || test.refused != "" && !refusedByPolicy(err, test.refused) {
				t.Errorf("%v, want %q", err, test.refused)
			}
		})
	}
}

// grantEvents has the daemons write events of the newer group, as the role of another installation may.
func (p policyGround) grantEvents(t *testing.T) {
	t.Helper()
	name := metav1.ObjectMeta{Name: "newer-events"}
	for _, o := range []runtimeclient.Object{
		&rbacv1.ClusterRole{ObjectMeta: name, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch"},
		}}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: name, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name.Name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "kruise-system", Name: "kruise-daemon"}},
		},
	} {
		if err := p.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

// event is one as the recorder of a component makes it. Without a name the API server gives it one.
func event(name, component, host string) *corev1.Event {
	e := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "shop", Name: name},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "pod-a"},
		Reason:         "Killing", Message: "a", Type: corev1.EventTypeNormal, Count: 1,
		Source:              corev1.EventSource{Component: component, Host: host},
		ReportingController: component, ReportingInstance: host,
	}
	if name == "" {
		e.GenerateName = "event-"
	}
	return e
}

func newEvent(component, host string) *eventsv1.Event {
	return &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", GenerateName: "event-"},
		Regarding:  corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "pod-a"},
		EventTime:  metav1.NowMicro(), Action: "Kill", Reason: "Killing", Note: "a", Type: corev1.EventTypeNormal,
		ReportingController: component, ReportingInstance: host,
	}
}

func createEvent(e runtimeclient.Object) func(context.Context, runtimeclient.Client) error {
	return func(ctx context.Context, c runtimeclient.Client) error { return c.Create(ctx, e) }
}

func patchEvent(name, body string) func(context.Context, runtimeclient.Client) error {
	return func(ctx context.Context, c runtimeclient.Client) error {
		e := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		return c.Patch(ctx, e, runtimeclient.RawPatch(types.MergePatchType, []byte(body)))
	}
}
