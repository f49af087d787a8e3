package conversion_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/kruisekit/kruisekit/webhooks/conversion"
)

// BenchmarkConvert converts a recorded CloneSet, as one of the hundred in a review of a list.
func BenchmarkConvert(b *testing.B) {
	file, err := os.ReadFile("../../test/compat/testdata/recorded/3-updated/clonesets.v1alpha1.yaml")
	if err != nil {
		b.Fatal(err)
	}
	list := struct{ Items []json.RawMessage }{}
	if err := yaml.Unmarshal(file, &list); err != nil {
		b.Fatal(err)
	}
	request := &apiextensionsv1.ConversionRequest{DesiredAPIVersion: "apps.kruise.io/v1beta1"}
	for range 100 {
		request.Objects = append(request.Objects, runtime.RawExtension{Raw: list.Items[0]})
	}
	body, err := json.Marshal(apiextensionsv1.ConversionReview{Request: request})
	if err != nil {
		b.Fatal(err)
	}
	handler := conversion.NewHandler()
	for b.Loop() {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, conversion.Path, bytes.NewReader(body)))
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/100, "µs/object")
}
