package v1alpha1_test

import (
	"testing"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/internal/roundtrip/roundtriptest"
)

func TestBroadcastJobConversionLosesNothing(t *testing.T) {
	roundtriptest.Check[v1alpha1.BroadcastJob, v1beta1.BroadcastJob](t, roundtriptest.Losses{})
}
