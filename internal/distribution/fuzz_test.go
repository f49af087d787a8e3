package distribution_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/json"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/distribution"
)

// FuzzSpec has specs of any shape: nothing panics, and what is valid can be read.
func FuzzSpec(f *testing.F) {
	f.Add([]byte(plain), []byte(`{"allNamespaces":true}`))
	f.Add(
		[]byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"pull","labels":{"a":"b"},"finalizers":["a/b","a/b"],"ownerReferences":[{"uid":"uid-registry","name":"x","kind":"y","apiVersion":"v1"}]},"immutable":true,"type":"x"}`),
		[]byte(`{"includedNamespaces":{"list":[{"name":"shop"},{}]}}`))
	f.Add([]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":null,"data":null}`),
		[]byte(`{"namespaceSelector":{"matchExpressions":[{"operator":"In"}]}}`))
	f.Fuzz(func(t *testing.T, resource, targets []byte) {
		d := &v1beta1.ResourceDistribution{}
		if json.Unmarshal(targets, &d.Spec.Targets) != nil {
			return
		}
		d.Spec.Resource.Raw = resource
		faults := distribution.Validate(d, "own")
		distribution.ValidateUpdate(d, d)
		object, err := distribution.Read(resource)
		s, invalid := distribution.Select(d.Spec.Targets, "own")
		if len(faults) == 0 && (err != nil || invalid != nil || object.GetName() == "") {
			t.Fatalf("a valid spec cannot be read: %v, %v", err, invalid)
		}
		if invalid == nil && s.Match("own", nil) {
			t.Fatal("the reserved namespace is a target")
		}
	})
}
