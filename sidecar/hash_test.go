package sidecar_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/sidecar"
)

func TestHash(t *testing.T) {
	one := func(changes ...containerChange) []v1beta1.SidecarContainer {
		c := v1beta1.SidecarContainer{Container: corev1.Container{Name: "container1", Image: "test-image"}}
		for _, change := range changes {
			change(&c)
		}
		return []v1beta1.SidecarContainer{c}
	}
	const (
		plain        = "w26c4x8fz245642fdv499b464248f974xddx4x55z5dw55bc6x66464fxz77dc78"
		plainBare    = "8wzddb4dvv9c6x8zdc77z4z75987424f457dfv6724ddw6zbdx467wz5x24fc759"
		isNative     = "4xwx4d4844vd4v9x79wb4xbxf4xb29475cc4446v8cz2c2f2f5c5bw448vd42z8w"
		isNativeBare = "5725fw8bwbx249bw57v5892c847dzf48bww9zb7c86xb95264fdz26654847b2c8"
	)
	cases := map[string]struct {
		why        string
		spec       v1beta1.SidecarSetSpec
		want, bare string
	}{
		"a container": {
			why: "the reference computes this", want: plain, bare: plainBare,
			spec: v1beta1.SidecarSetSpec{Containers: one()},
		},
		"a native sidecar": {
			why: "it counts, in the list of init containers", want: isNative, bare: isNativeBare,
			spec: v1beta1.SidecarSetSpec{Containers: one(), InitContainers: one(native)},
		},
		"what does not count": {
			why: "plain init containers, volumes, secrets and metadata make no other hash", want: plain, bare: plainBare,
			spec: v1beta1.SidecarSetSpec{
				Containers: one(), InitContainers: one(), Volumes: emptyDirs("", "a"), ImagePullSecrets: references("a"),
				PatchPodMetadata: []v1beta1.SidecarSetPatchPodMetadata{{Annotations: pairs("a", "b")}},
			},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			set := &v1beta1.SidecarSet{Spec: c.spec}
			got, bare := hashes(t, set)
			if got != c.want || bare != c.bare {
				t.Errorf("%s: got %s and %s", c.why, got, bare)
			}
		})
	}
}

func TestHashOfNothing(t *testing.T) {
	absent, absentBare := hashes(t, &v1beta1.SidecarSet{})
	empty, emptyBare := hashes(t,
		&v1beta1.SidecarSet{Spec: v1beta1.SidecarSetSpec{Containers: []v1beta1.SidecarContainer{}}})
	if absent != empty || absentBare != emptyBare || absent != absentBare || len(absent) != 64 {
		t.Errorf("no containers is no containers, however written: %s %s %s %s", absent, empty, absentBare, emptyBare)
	}
}

// TestRecordedHashes hashes the sets that a running reference stored, and their revisions.
func TestRecordedHashes(t *testing.T) {
	for _, step := range []string{"1-created", "2-updating", "3-updated"} {
		for _, set := range recordedSets(t, step) {
			got, bare := hashes(t, &set)
			if got != set.Annotations[kruise.SidecarSetHashKey] ||
				bare != set.Annotations[kruise.SidecarSetHashWithoutImageKey] {
				t.Errorf("%s: sidecarset %s has %s and %s", step, set.Name, got, bare)
			}
		}
	}
}

func hashes(t *testing.T, set *v1beta1.SidecarSet) (full, bare string) {
	t.Helper()
	full, err := sidecar.Hash(set)
	if err != nil {
		t.Fatal(err)
	}
	bare, err = sidecar.HashWithoutImage(set)
	if err != nil {
		t.Fatal(err)
	}
	return full, bare
}
