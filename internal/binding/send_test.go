package binding_test

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/write"
)

// deleter answers the deletion of each object by its name.
type deleter struct {
	client.Client

	errs map[string]error
}

func (d deleter) Delete(_ context.Context, o client.Object, _ ...client.DeleteOption) error {
	return d.errs[o.GetName()]
}

func TestSendEach(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "a", nil)
	tests := map[string]struct {
		errs map[string]error
		want []bool // for each answer about a, b and c: whether it is an error
	}{
		"all succeed":                              {nil, []bool{false, false, false}},
		"a conflict concerns one object":           {map[string]error{"a": conflict}, []bool{true, false, false}},
		"no more is sent to a server that is down": {map[string]error{"a": errClient}, []bool{true}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b, err := binding.New("web", deleter{errs: test.errs}, binding.Options{})
			if err != nil {
				t.Fatal(err)
			}
			var writes []*write.Write
			for _, pod := range []string{"a", "b", "c"} {
				writes = append(writes, &write.Write{
					Verb: write.Delete, Object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: pod}},
				})
			}
			answers := b.SendEach(t.Context(), types.NamespacedName{}, writes)
			if len(answers) != len(test.want) {
				t.Fatalf("%d answers, want %d", len(answers), len(test.want))
			}
			for i, answer := range answers {
				if failed := answer.Err != nil; failed != test.want[i] {
					t.Errorf("%s: %v", writes[i], answer.Err)
				}
				if want := test.errs[writes[i].Object.GetName()]; want != nil && !errors.Is(answer.Err, want) {
					t.Errorf("%s: %v for %v", writes[i], answer.Err, want)
				}
			}
		})
	}
}
