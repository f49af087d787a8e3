package sidecarset_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/sidecarset"
	"github.com/kruisekit/kruisekit/controllers/sidecarset/rollout"
	"github.com/kruisekit/kruisekit/test/objects"
)

// model runs the reconciler of SidecarSets.
type model struct {
	user
	*objects.Model
}

// newModel gives the reconciler a client that may fail; nil for the server itself.
func newModel(t *testing.T, o sidecarset.Options, wrap func(client.WithWatch) client.WithWatch) *model {
	t.Helper()
	m := &model{Model: objects.NewModel(t, &v1beta1.SidecarSetList{}, v1beta1.AddToScheme)}
	m.user = user{t: t, client: m.Server, namespace: "shop", until: m.Eventually}
	m.Kubelet.Unready = func(pod *corev1.Pod) bool { _, is := pod.Annotations[unready]; return is }
	bySet := func(o client.Object) []string {
		pod, _ := o.(*corev1.Pod)
		return rollout.Sets(pod)
	}
	if err := m.Server.IndexField(t.Context(), &corev1.Pod{}, "kruisekit.dev/sidecarset", bySet); err != nil {
		t.Fatal(err)
	}
	o.Namespace, o.Now, o.Recorder = m.namespace, m.Now, m.Server
	if o.Live == nil {
		o.Live = m.Server
	}
	var c client.WithWatch = m.Server
	if wrap != nil {
		c = wrap(c)
	}
	r, err := sidecarset.New(c, o)
	if err != nil {
		t.Fatal(err)
	}
	m.Reconciler = r
	return m
}

// events returns how many events of a reason are about a set.
func (m *model) events(set *v1beta1.SidecarSet, reason string) int {
	return len(m.Server.Events(set, reason))
}
