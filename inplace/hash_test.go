package inplace_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
)

// TestEnvHash has pairs of containers that must hash alike or not: the daemon restarts a container for another hash.
func TestEnvHash(t *testing.T) {
	labels, annotations := map[string]string{"l1": "a", "l2": "b"}, map[string]string{"n1": "c"}
	l1, l2 := fed("E1", "metadata.labels['l1']"), fed("E2", "metadata.labels['l2']")
	literal := func(c *corev1.Container) { c.Env = append(c.Env, corev1.EnvVar{Name: "LITERAL", Value: "x"}) }
	cases := map[string]struct {
		why  string
		a, b corev1.Container
		want bool
	}{
		"order": {
			why:  "the order of variables is no matter",
			a:    container("c", "i", l1, l2),
			b:    container("c", "i", l2, l1),
			want: true,
		},
		"other label": {
			why: "the value differs",
			a:   container("c", "i", fed("E1", "metadata.labels['l1']")),
			b:   container("c", "i", fed("E1", "metadata.labels['l2']")),
		},
		"other name": {
			why: "the variable differs", a: container("c", "i", l1), b: container("c", "i", fed("E9", "metadata.labels['l1']")),
		},
		"image": {
			why: "only variables count", a: container("c", "i", l1), b: container("d", "j", l1), want: true,
		},
		"literal": {
			why: "literal values are fixed anyway", a: container("c", "i", l1), b: container("c", "i", l1, literal), want: true,
		},
		"other fields": {
			why: "an address is no label",
			a:   container("c", "i", l1),
			b: container("c", "i", l1, fed("IP", "status.podIP"), fed("ALL", "metadata.labels"),
				fed("ODD", "metadata.labels['l1"), fed("N", "metadata.annotations")),
			want: true,
		},
		"version of a SidecarSet": {
			why: "sidecars must not restart for it",
			a:   container("c", "i", l1),
			b: container("c", "i", l1, fed(kruise.SidecarSetVersionEnvName, "metadata.annotations['n1']"),
				fed(kruise.SidecarSetVersionAltEnvName, "metadata.annotations['n1']")),
			want: true,
		},
		"annotation": {
			why: "it feeds like a label",
			a:   container("c", "i", l1),
			b:   container("c", "i", l1, fed("N1", "metadata.annotations['n1']")),
		},
		"missing label": {
			why: "the variable is there, and empty",
			a:   container("c", "i", l1),
			b:   container("c", "i", l1, fed("E3", "metadata.labels['l3']")),
		},
		"two missing": {
			why:  "empty is empty",
			a:    container("c", "i", fed("E3", "metadata.labels['l3']")),
			b:    container("c", "i", fed("E3", "metadata.annotations['l1']")),
			want: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a, err := inplace.EnvHash(&tc.a, labels, annotations)
			if err != nil {
				t.Fatal(err)
			}
			b, err := inplace.EnvHash(&tc.b, labels, annotations)
			if err != nil {
				t.Fatal(err)
			}
			if (a == b) != tc.want {
				t.Errorf("%s: %d and %d", tc.why, a, b)
			}
		})
	}
	if none, err := inplace.EnvHash(&corev1.Container{}, nil, nil); err != nil || none != 86995377 {
		t.Errorf("no variable has a hash of its own, as recorded: got %d, %v", none, err)
	}
}
