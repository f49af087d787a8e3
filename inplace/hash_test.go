package inplace_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
)

// TestEnvHash has variables that must hash as one fed variable does, or not: the daemon restarts a container for
// another hash.
func TestEnvHash(t *testing.T) {
	labels, annotations := map[string]string{"l1": "a", "l2": "b"}, map[string]string{"n1": "c"}
	l1, l2 := fed("E1", "metadata.labels['l1']"), fed("E2", "metadata.labels['l2']")
	hash := func(c corev1.Container) uint64 {
		t.Helper()
		h, err := inplace.EnvHash(&c, labels, annotations)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	one := hash(container("c", "i", l1))
	for why, c := range map[string]struct {
		container corev1.Container
		same      bool
	}{
		"only variables count": {container("d", "j", l1), true},
		"literal values are fixed anyway": {
			container("c", "i", l1, func(c *corev1.Container) {
				c.Env = append(c.Env, corev1.EnvVar{Name: "X", Value: "x"})
			}), true,
		},
		"an address is no label": {container("c", "i", l1, fed("IP", "status.podIP"), fed("ALL", "metadata.labels"),
			fed("ODD", "metadata.labels['l1"), fed("N", "metadata.annotations")), true},
		"sidecars must not restart for the version of their SidecarSet": {
			container("c", "i", l1, fed(kruise.SidecarSetVersionEnvName, "metadata.annotations['n1']"),
				fed(kruise.SidecarSetVersionAltEnvName, "metadata.annotations['n1']")), true,
		},
		"the value differs":                    {container("c", "i", fed("E1", "metadata.labels['l2']")), false},
		"the name differs":                     {container("c", "i", fed("E9", "metadata.labels['l1']")), false},
		"an annotation feeds like a label":     {container("c", "i", l1, fed("N1", "metadata.annotations['n1']")), false},
		"a variable of no label is there, too": {container("c", "i", l1, fed("E3", "metadata.labels['l3']")), false},
	} {
		if (hash(c.container) == one) != c.same {
			t.Errorf("%s: same is %v", why, !c.same)
		}
	}
	if hash(container("c", "i", l1, l2)) != hash(container("c", "i", l2, l1)) {
		t.Error("the order of variables counts")
	}
	if none := hash(corev1.Container{}); none != 86995377 {
		t.Errorf("no variable has a hash of its own, as recorded: got %d", none)
	}
}
