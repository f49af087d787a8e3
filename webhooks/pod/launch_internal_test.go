package pod

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The answer to a pod of many faults names the first hundred: each more would cost the text of all before.
func TestManyFaultyPriorities(t *testing.T) {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	for i := range 20_000 {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{
			Name: fmt.Sprintf("c%d", i), Env: []corev1.EnvVar{{Name: "KRUISE_CONTAINER_PRIORITY", Value: "high"}},
		})
	}
	_, err := Launch().Apply(t.Context(), Request{Pod: p, UID: types.UID("1")})
	var invalid *InvalidError
	if !errors.As(err, &invalid) || len(invalid.Causes) != 100 ||
		invalid.Causes[99].Field != "spec.containers[99].env[0].value" {
		t.Fatalf("%d bytes", len(fmt.Sprint(err)))
	}
	if text := invalid.Error(); len(text) > 20_000 || !strings.HasSuffix(text, "(and more)") {
		t.Errorf("the text has %d bytes, and ends with %q", len(text), text[max(0, len(text)-20):])
	}
}
