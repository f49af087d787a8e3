package distribution_test

import (
	"errors"
	"testing"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kruisekit/kruisekit/internal/distribution"
)

const plain = `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"pull"},"stringData":{"user":"reader"}}`

func read(t testing.TB, raw string) *unstructured.Unstructured {
	t.Helper()
	object, err := distribution.Read([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"uid", "resourceVersion"} { // no copy has them
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	return object
}

// Resources that API servers store alike are the same, however they are written.
func TestRead(t *testing.T) {
	for name, c := range map[string]struct {
		a, b string
		same bool
	}{
		"stringData is data": {
			plain, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"pull"},"type":"Opaque","data":{"user":"cmVhZGVy"}}`,
			true,
		},
		"stringData wins": {
			plain,
			`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"pull"},"data":{"user":"eA=="},"stringData":{"user":"reader"}}`,
			true,
		},
		"a namespace": {
			plain,
			`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"pull","namespace":"a","uid":"x","resourceVersion":"1"},"stringData":{"user":"reader"}}`,
			true,
		},
		"empty maps": {
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`,
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labels":{}},"data":{},"immutable":false}`, true,
		},
		"the order of keys": {
			plain, `{"stringData":{"user":"reader"},"kind":"Secret","metadata":{"name":"pull"},"apiVersion":"v1"}`, true,
		},
		"other data": {
			plain, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"pull"},"stringData":{"user":"writer"}}`, false,
		},
		"a label": {
			plain,
			`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"pull","labels":{"a":"b"}},"stringData":{"user":"reader"}}`,
			false,
		},
		"another type": {
			plain, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"pull"},"type":"x/y","stringData":{"user":"reader"}}`,
			false,
		},
		"immutable": {
			plain,
			`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"pull"},"immutable":true,"stringData":{"user":"reader"}}`,
			false,
		},
		"binary is not text": {
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"a":"x"}}`,
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"binaryData":{"a":"eA=="}}`, false,
		},
		"keys are cased": {
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"a":"x"}}`,
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"Data":{"a":"x"}}`, false,
		},
	} {
		if a, b := read(t, c.a), read(t, c.b); apiequality.Semantic.DeepEqual(a.Object, b.Object) != c.same {
			t.Errorf("%s: the resources are the same: %t\n%v\n%v", name, !c.same, a, b)
		}
	}
}

// What is no Secret or ConfigMap is an error, and a kind is named.
func TestReadFails(t *testing.T) {
	for raw, kind := range map[string]string{
		``:     "-",
		`null`: "",
		`7`:    "-",
		`{`:    "-",
		`{}`:   "",
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"}}`: "Deployment",
		`{"apiVersion":"v2","kind":"Secret"}`:                                  "Secret",
		`{"apiVersion":"v1","kind":"secret"}`:                                  "secret",
		`{"apiVersion":"v1","kind":"Pod"}`:                                     "Pod",
		`{"apiVersion":"v1","kind":"Secret","data":{"a":"no base64!"}}`:        "-",
		`{"apiVersion":"v1","kind":"ConfigMap","data":{"a":7}}`:                "-",
	} {
		_, err := distribution.Read([]byte(raw))
		var is *distribution.KindError
		if err == nil || errors.As(err, &is) != (kind != "-") || is != nil && is.Kind != kind {
			t.Errorf("%s: %v", raw, err)
		}
	}
}
