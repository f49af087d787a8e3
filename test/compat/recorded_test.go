package compat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	appsv1alpha1 "github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	policyv1alpha1 "github.com/kruisekit/kruisekit/api/policy/v1alpha1"
	policyv1beta1 "github.com/kruisekit/kruisekit/api/policy/v1beta1"
	"github.com/kruisekit/kruisekit/webhooks/conversion"
)

// TestRecordedObjectsAreKept decodes what a running reference stored, strictly, and encodes it again.
func TestRecordedObjectsAreKept(t *testing.T) {
	scheme := newScheme(t)
	for file, objects := range recorded(t, "*.v1*.yaml") {
		for _, raw := range objects {
			want := fields(t, raw)
			t.Run(file+"/"+nameOf(want), func(t *testing.T) {
				gvk := schema.FromAPIVersionAndKind(want["apiVersion"].(string), want["kind"].(string))
				obj, err := scheme.New(gvk)
				if err != nil {
					t.Fatal(err)
				}
				if err := yaml.UnmarshalStrict(raw, obj); err != nil {
					t.Fatalf("decode: %v", err)
				}
				data, err := json.Marshal(obj)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(without(want), without(fields(t, data))); diff != "" {
					t.Errorf("encoded again (-recorded +ours):\n%s", diff)
				}
			})
		}
	}
}

// TestRecordedVersionsAgree converts each recorded object and compares it with the same object as the reference
// served it in the other version.
func TestRecordedVersionsAgree(t *testing.T) {
	for file, objects := range recorded(t, "*.v1*.yaml") {
		other := otherVersion(file)
		counterparts := map[string][]byte{}
		for _, raw := range recorded(t, filepath.Base(other))[other] {
			counterparts[nameOf(fields(t, raw))] = shared(t, raw)
		}
		for _, raw := range objects {
			raw = shared(t, raw)
			obj := fields(t, raw)
			counterpart, ok := counterparts[nameOf(obj)]
			if !ok {
				continue // the kind has one version
			}
			t.Run(file+"/"+nameOf(obj), func(t *testing.T) {
				want := fields(t, counterpart)
				got := fields(t, convert(t, raw, want["apiVersion"].(string)))
				if kept := annotation(got, kruise.ConversionDataKey); kept != "" {
					t.Errorf("the other version cannot hold something of a recorded object: %s", kept)
				}
				if diff := cmp.Diff(without(want), without(got)); diff != "" {
					t.Errorf("converted (-recorded +ours):\n%s", diff)
				}
			})
		}
	}
}

// onlyHub lists by kind what v1alpha1 has no field for. It returns when an object is converted back; the tests of
// the API prove that.
func onlyHub() map[string][]string {
	return map[string][]string{
		"StatefulSet": {
			"spec.persistentVolumeClaimRetentionPolicy", "spec.reserveOrdinals", "spec.volumeClaimUpdateStrategy.type",
			"status.updatedAvailableReplicas", "status.updatedReadyReplicas",
		},
	}
}

// shared is an object without what only v1beta1 has.
func shared(t *testing.T, raw []byte) []byte {
	t.Helper()
	obj := fields(t, raw)
	kind, _ := obj["kind"].(string)
	if version, _ := obj["apiVersion"].(string); !strings.HasSuffix(version, "/v1beta1") {
		return raw
	}
	for _, path := range onlyHub()[kind] {
		unstructured.RemoveNestedField(obj, strings.Split(path, ".")...)
	}
	data, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func convert(t *testing.T, raw []byte, wanted string) []byte {
	t.Helper()
	body, err := json.Marshal(apiextensionsv1.ConversionReview{Request: &apiextensionsv1.ConversionRequest{
		DesiredAPIVersion: wanted, Objects: []runtime.RawExtension{{Raw: raw}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	conversion.NewHandler().ServeHTTP(w, httptest.NewRequest(http.MethodPost, conversion.Path, bytes.NewReader(body)))
	review := apiextensionsv1.ConversionReview{}
	if err := json.Unmarshal(w.Body.Bytes(), &review); err != nil {
		t.Fatalf("decode answer: %v\n%s", err, w.Body)
	}
	if len(review.Response.ConvertedObjects) != 1 {
		t.Fatalf("not converted: %s", review.Response.Result.Message)
	}
	return review.Response.ConvertedObjects[0].Raw
}

// recorded gives the objects of the lists whose file name matches, by step and file name.
func recorded(t *testing.T, pattern string) map[string][][]byte {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "recorded", "[123]-*", pattern))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][][]byte{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		list := struct{ Items []json.RawMessage }{}
		if err := yaml.Unmarshal(data, &list); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		short, _ := filepath.Rel(filepath.Join("testdata", "recorded"), file)
		for _, item := range list.Items {
			all[short] = append(all[short], item)
		}
	}
	if len(all) == 0 {
		t.Fatalf("nothing recorded matches %s", pattern)
	}
	return all
}

func otherVersion(file string) string {
	if strings.Contains(file, ".v1alpha1.") {
		return strings.Replace(file, ".v1alpha1.", ".v1beta1.", 1)
	}
	return strings.Replace(file, ".v1beta1.", ".v1alpha1.", 1)
}

func fields(t *testing.T, raw []byte) map[string]any {
	t.Helper()
	obj := map[string]any{}
	if err := json.Unmarshal(raw, &obj); err != nil {
		t.Fatal(err)
	}
	return obj
}

func nameOf(obj map[string]any) string {
	meta, _ := obj["metadata"].(map[string]any)
	return fmt.Sprintf("%v-%v", meta["namespace"], meta["name"])
}

// without drops nulls, which are as good as absent, and the copy of the manifest that kubectl keeps.
func without(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if value == nil || key == "kubectl.kubernetes.io/last-applied-configuration" {
				delete(v, key)
				continue
			}
			v[key] = without(value)
		}
	case []any:
		for i := range v {
			v[i] = without(v[i])
		}
	}
	return v
}

// annotation is the value of an annotation, empty if there is none.
func annotation(obj map[string]any, key string) string {
	meta, _ := obj["metadata"].(map[string]any)
	values, _ := meta["annotations"].(map[string]any)
	value, _ := values[key].(string)
	return value
}

// newScheme knows every kind of the API.
func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		appsv1alpha1.AddToScheme, appsv1beta1.AddToScheme, policyv1alpha1.AddToScheme, policyv1beta1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}
