package daemonset_test

import (
	"testing"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/daemonset"
)

// A pod with the label apps.kruise.io/specified-delete stays, as in the reference: DaemonSets do not delete pods by it.
func TestSpecifiedDeleteHasNoEffect(t *testing.T) {
	m := newModel(t, 2, daemonset.Options{})
	set := m.create()
	m.becomes(set, "n1:1 n2:1")
	m.eventually(set, settled(2))
	pod := m.on("n1")
	m.edit(pod, `{"metadata":{"labels":{"`+kruise.SpecifiedDeleteKey+`":"true"}}}`)
	m.becomes(set, "n1:1 n2:1")
	m.idle()
	if is := m.on("n1"); is.UID != pod.UID {
		t.Errorf("%s replaces %s", is.Name, pod.Name)
	}
}
