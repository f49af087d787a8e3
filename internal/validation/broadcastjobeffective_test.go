package validation_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/validation"
)

// What admission rejects has a valid value of the same effect. What is valid stays.
func TestEffective(t *testing.T) {
	for name, c := range map[string]struct{ spec, want string }{
		"nothing": {`{}`, `{}`},
		"valid": {
			`{"parallelism":"50%","completionPolicy":{"type":"Never"},"failurePolicy":{"type":"Pause","restartLimit":3}}`, ``,
		},
		"unknown": {
			`{"completionPolicy":{"type":"never"},"failurePolicy":{"type":"failFast"}}`,
			`{"completionPolicy":{"type":"Always"},"failurePolicy":{"type":"Continue"}}`,
		},
		"negative": {
			`{"parallelism":-3,"completionPolicy":{"activeDeadlineSeconds":-1,"ttlSecondsAfterFinished":-1},"failurePolicy":{"restartLimit":-1}}`,
			`{"parallelism":0,"completionPolicy":{"activeDeadlineSeconds":0,"ttlSecondsAfterFinished":0}}`,
		},
		"a negative percentage": {`{"parallelism":"-1%"}`, `{"parallelism":0}`},
		"words":                 {`{"parallelism":"many"}`, ``},
	} {
		t.Run(name, func(t *testing.T) {
			var spec, want v1beta1.BroadcastJobSpec
			if c.want == "" {
				c.want = c.spec
			}
			if err := json.Unmarshal([]byte(c.spec), &spec); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(c.want), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&want, validation.EffectiveBroadcastJob(&spec)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
