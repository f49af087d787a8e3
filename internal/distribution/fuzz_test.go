package distribution_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/json"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/distribution"
)

// FuzzSpec has specs of any shape: nothing panics, what is valid is distributed, and a copy of it is settled after one
// read.
func FuzzSpec(f *testing.F) {
	f.Add([]byte(plain), []byte(`{"allNamespaces":true}`), `{"labels":["a"]}`)
	f.Add(
		[]byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"pull","labels":{"a":"b"},"finalizers":["a/b","a/b"],"ownerReferences":[{"uid":"uid-registry","name":"x","kind":"y","apiVersion":"v1"}]},"immutable":true,"type":"x"}`),
		[]byte(`{"includedNamespaces":{"list":[{"name":"shop"},{}]}}`), `{`)
	f.Add([]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":null,"data":null}`),
		[]byte(`{"namespaceSelector":{"matchExpressions":[{"operator":"In"}]}}`), "[]")
	f.Fuzz(func(t *testing.T, resource, targets []byte, recorded string) {
		d := &v1beta1.ResourceDistribution{}
		if json.Unmarshal(targets, &d.Spec.Targets) != nil {
			return
		}
		d.Spec.Resource.Raw = resource
		faults := distribution.Validate(d)
		distribution.ValidateUpdate(d, d)
		r, err := distribution.Read(resource)
		s, invalid := distribution.Select(d.Spec.Targets)
		if len(faults) == 0 && (err != nil || invalid != nil) {
			t.Fatalf("a valid spec cannot be read: %v, %v", err, invalid)
		}
		in := distribution.Input{
			Owner: me, Resource: r, Targets: s, Namespaces: []distribution.Namespace{{Name: "shop"}}, Now: at(0),
		}
		p := distribution.Plan(in)
		p.Status(d.Status, 1, at(0))
		if r == nil || s == nil || !s.Match("shop", nil) {
			return
		}
		made := r.Copy("shop", me)
		if !me.Controls(made) && len(faults) == 0 {
			t.Fatal("a copy is not controlled")
		}
		if len(faults) > 0 {
			return
		}
		made.SetUID("1")
		made.SetResourceVersion("2")
		step := p.Steps[0]
		step = p.Answer(step, made, nil)
		if !step.Ended() || step.Failure != nil {
			t.Fatalf("the creation ends in %+v", step)
		}
		in.Copies, in.Known = map[string]distribution.Copy{"shop": {UID: "1", Version: "2", Controlled: true}}, nil
		p = distribution.Plan(in)
		if step = p.Answer(p.Steps[0], made, nil); !step.Ended() || step.Failure != nil {
			t.Fatalf("a copy differs from its resource: %+v", step)
		}
		annotations := made.GetAnnotations()
		annotations[distribution.KeysAnnotation] = recorded
		made.SetAnnotations(annotations)
		made.SetLabels(map[string]string{"else": "x"})
		if step = p.Answer(p.Steps[0], made, nil); step.Action == distribution.Update {
			if _, err := r.Patch(step, me); err != nil {
				t.Fatal(err)
			}
		}
	})
}
