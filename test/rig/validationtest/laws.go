package validationtest

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Object is an object with defaults.
type Object[T any] interface {
	*T
	runtime.Object
	Default()
}

// Rules are those of a kind.
type Rules[T any, P Object[T]] struct {
	Check func(P) field.ErrorList
	// Update returns the changes that are forbidden; nil for a kind whose fields can all change.
	Update func(object, stored P) field.ErrorList
	// NeedsDefaults is for rules that are about objects with defaults alone.
	NeedsDefaults bool
}

// Specs are seeds of a fuzz test. They are odd in the fields that several kinds have.
func Specs() []string {
	return []string{
		`{}`, `null`, `{"selector":{}}`,
		`{"replicas":-1,"updateStrategy":{"rollingUpdate":{"maxUnavailable":"x%","partition":"9999999999%"}}}`,
		`{"updateStrategy":{"rollingUpdate":{"inPlaceUpdateStrategy":{"imagePreDownloadParallelism":"-1"},` +
			`"scatterStrategy":[{}],"priorityStrategy":{"weightPriority":[{"weight":-1}]}}}}`,
		`{"image":":","images":[":",""],"selector":{"names":["",""]},"podSelector":{},"parallelism":"x",` +
			`"completionPolicy":{"type":"Never","activeDeadlineSeconds":1}}`,
	}
}

// Fuzz decodes two objects: the rules neither panic nor change an object, the same object has the same faults again,
// and an object that does not change is a valid update. Defaults do not change the faults.
func Fuzz[T any, P Object[T]](f *testing.F, rules Rules[T, P], specs ...string) {
	for _, spec := range append(Specs(), specs...) {
		f.Add(`{"metadata":{"name":"a","annotations":{"apps.kruise.io/sidecarset-canary":"true",`+
			`"apps.kruise.io/sidecarset-base":"a"}},"spec":`+spec+`}`, `{}`)
	}
	if rules.Update == nil {
		rules.Update = func(P, P) field.ErrorList { return nil }
	}
	f.Fuzz(func(t *testing.T, object, stored string) {
		now, before := P(new(T)), P(new(T))
		if json.Unmarshal([]byte(object), now) != nil || json.Unmarshal([]byte(stored), before) != nil {
			return
		}
		rules.hold(t, now, before)
	})
}

func (r Rules[T, P]) hold(t *testing.T, now, before P) {
	was, had := now.DeepCopyObject(), before.DeepCopyObject()
	faults := Places(r.Check(now))
	_ = r.Update(now, before)
	if again := Places(r.Check(now)); !cmp.Equal(faults, again) {
		t.Errorf("the faults are %v, and then %v", faults, again)
	}
	if forbidden := r.Update(now, now.DeepCopyObject().(P)); len(forbidden) > 0 {
		t.Errorf("no change is forbidden: %v", forbidden)
	}
	quantities := cmp.Comparer(func(a, b resource.Quantity) bool { return a.Cmp(b) == 0 })
	if diff := cmp.Diff([]any{was, had}, []any{now, before}, quantities, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("an object has changed: %s", diff)
	}
	if now.Default(); !r.NeedsDefaults && !cmp.Equal(faults, Places(r.Check(now))) {
		t.Errorf("the faults are %v, and with defaults %v", faults, Places(r.Check(now)))
	}
}
