package webhooks_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/kruisekit/kruisekit/config/crd"
	"github.com/kruisekit/kruisekit/webhooks"
)

func TestConversionsAreTheCRDsOfTwoVersions(t *testing.T) {
	all, err := crd.Both(apiextensionsv1.WebhookClientConfig{})
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, c := range all {
		if len(c.Spec.Versions) > 1 {
			want = append(want, c.Name)
		}
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, webhooks.Conversions()); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}
