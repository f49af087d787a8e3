package kruiseapi

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	theirs "github.com/openkruise/kruise-api/apps/v1alpha1"
	theirsbeta "github.com/openkruise/kruise-api/apps/v1beta1"
	theirpolicy "github.com/openkruise/kruise-api/policy/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	ours "github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	oursbeta "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	ourpolicy "github.com/kruisekit/kruisekit/api/policy/v1alpha1"
)

// One scheme cannot have the types of both projects.
func TestOneScheme(t *testing.T) {
	for name, adds := range map[string][2]func(*runtime.Scheme) error{
		"apps/v1alpha1":   {theirs.AddToScheme, ours.AddToScheme},
		"apps/v1beta1":    {theirsbeta.AddToScheme, oursbeta.AddToScheme},
		"policy/v1alpha1": {theirpolicy.AddToScheme, ourpolicy.AddToScheme},
	} {
		why := panicOf(func() {
			s := runtime.NewScheme()
			for _, add := range adds {
				if err := add(s); err != nil {
					t.Error(err)
				}
			}
		})
		if !strings.Contains(why, "Double registration of different types") {
			t.Errorf("%s: %q", name, why)
		}
	}
}

func panicOf(f func()) (why string) {
	defer func() {
		if r := recover(); r != nil {
			why = fmt.Sprint(r)
		}
	}()
	f()
	return ""
}

// Objects go from one scheme to the other as JSON or unstructured, and back.
func TestSchemeEach(t *testing.T) {
	their, our := runtime.NewScheme(), runtime.NewScheme()
	for s, adds := range map[*runtime.Scheme][]func(*runtime.Scheme) error{
		their: {theirs.AddToScheme, theirsbeta.AddToScheme, theirpolicy.AddToScheme},
		our:   {ours.AddToScheme, oursbeta.AddToScheme, ourpolicy.AddToScheme},
	} {
		for _, add := range adds {
			if err := add(s); err != nil {
				t.Fatal(err)
			}
		}
	}
	tested := 0
	for _, sample := range samples(t) {
		kind := sample.GroupVersionKind()
		if !their.Recognizes(kind) {
			continue // a version that OpenKruise 1.8 lacks
		}
		tested++
		// A field that only one of them has is lost in the other one, such as one of a later version.
		from := made(t, their, sample)
		to := made(t, our, content(t, from))
		if diff := cmp.Diff(content(t, from), content(t, made(t, their, content(t, to)))); diff != "" {
			t.Errorf("%s there and back (-want +got):\n%s", kind, diff)
		}
	}
	if tested < 12 {
		t.Errorf("%d samples", tested)
	}
}

// made returns an object of the Go type that a scheme has.
func made(t *testing.T, s *runtime.Scheme, from *unstructured.Unstructured) runtime.Object {
	t.Helper()
	object, err := s.New(from.GroupVersionKind())
	if err != nil {
		t.Fatal(err)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(from.Object, object); err != nil {
		t.Fatal(err)
	}
	return object
}

// content returns an object as its JSON.
func content(t *testing.T, object runtime.Object) *unstructured.Unstructured {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(text); err != nil {
		t.Fatal(err)
	}
	return u
}

// samples returns one object of each kind and version that were recorded on a cluster with OpenKruise.
func samples(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "compat", "testdata", "recorded", "2-updating", "*.v1*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	var all []*unstructured.Unstructured
	for _, file := range files {
		text, err := os.ReadFile(file) //nolint:gosec // recorded
		if err != nil {
			t.Fatal(err)
		}
		var list struct {
			Items []map[string]any `json:"items"`
		}
		if err := yaml.Unmarshal(text, &list); err != nil {
			t.Fatal(err)
		}
		if len(list.Items) > 0 {
			all = append(all, &unstructured.Unstructured{Object: list.Items[0]})
		}
	}
	return all
}
