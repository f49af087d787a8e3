package v1alpha1_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/internal/roundtrip"
	"github.com/kruisekit/kruisekit/api/internal/roundtrip/roundtriptest"
)

// An object that is defaulted in this version is the one that v1beta1 makes of it: whichever webhook sees it.
func TestDefaultAgreesWithV1beta1(t *testing.T) {
	t.Run("AdvancedCronJob", defaultAgrees[v1alpha1.AdvancedCronJob, v1beta1.AdvancedCronJob])
	t.Run("BroadcastJob", defaultAgrees[v1alpha1.BroadcastJob, v1beta1.BroadcastJob])
	t.Run("ContainerRecreateRequest", defaultAgrees[v1alpha1.ContainerRecreateRequest, v1beta1.ContainerRecreateRequest])
	t.Run("ImageListPullJob", defaultAgrees[v1alpha1.ImageListPullJob, v1beta1.ImageListPullJob])
	t.Run("ImagePullJob", defaultAgrees[v1alpha1.ImagePullJob, v1beta1.ImagePullJob])
	t.Run("NodeImage", defaultAgrees[v1alpha1.NodeImage, v1beta1.NodeImage])
}

type defaulter[T any] interface {
	roundtrip.Object[T]
	Default()
}

func defaultAgrees[O, H any, PO interface {
	roundtriptest.Old[O, H]
	Default()
}, PH defaulter[H]](t *testing.T) {
	t.Helper()
	for seed := range int64(100) {
		plain := PO(new(O))
		roundtriptest.Filler(seed).Fill(plain)
		defaulted := PO(new(O))
		roundtriptest.Filler(seed).Fill(defaulted)
		defaulted.Default()

		want, got := PH(new(H)), PH(new(H))
		if err := plain.ConvertTo(want); err != nil {
			t.Fatal(err)
		}
		if err := defaulted.ConvertTo(got); err != nil {
			t.Fatal(err)
		}
		want.Default()
		got.Default()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("seed %d (-v1beta1 +v1alpha1):\n%s", seed, diff)
		}
	}
}
