package workloads_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/workloads"
	"github.com/kruisekit/kruisekit/revision"
)

// A takeover from a controller that lost a field of the template records the field at the revision, and recreates no
// pod.
func TestTakeOverOfUnknownFields(t *testing.T) {
	const with, without = `{"spec":{"containers":[{"name":"a","image":"a:1"}],"newer":"x"}}`,
		`{"spec":{"containers":[{"name":"a","image":"a:1"}]}}`
	for name, c := range map[string]struct {
		wanted, stored string
		generation     int64
		recorded       string
		verdict        revision.Verdict
		record         bool
	}{
		"observed, and lost": {with, without, 1, "", revision.Use, true},
		"added since":        {with, without, 2, "", revision.Create, false},
		"recorded":           {with, without, 2, `{"spec":{"newer":"x"}}`, revision.Use, false},
		"another since the record": {
			strings.Replace(with, `"x"`, `"y"`, 1), without, 2, `{"spec":{"newer":"x"}}`, revision.Create, false,
		},
		"removed since the record": {without, without, 2, `{"spec":{"newer":"x"}}`, revision.Create, false},
		"another change":           {with, strings.Replace(without, "a:1", "a:0", 1), 1, "", revision.Create, false},
		"stored as it is":          {with, with, 1, "", revision.Use, false},
		"known by now": {
			strings.Replace(with, "newer", "hostname", 1), without, 2, `{"spec":{"hostname":"x"}}`, revision.Use, false,
		},
		"a record that is no JSON": {with, without, 2, "{", revision.Create, false},
	} {
		set := &v1beta1.CloneSet{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web", UID: "u", Generation: c.generation,
		}}
		set.Status.ObservedGeneration, set.Status.UpdateRevision = 1, "web-1"
		rev := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: "web-1", UID: "r"}, Revision: 1}
		rev.Data.Raw = encoded(t, c.stored)
		if c.recorded != "" {
			rev.Annotations = map[string]string{revision.UnknownFieldsKey: c.recorded}
		}
		before := rev.DeepCopy()
		o := &workloads.Observation{Object: set, Kind: v1beta1.GroupVersion.WithKind("CloneSet")}
		o.Revisions = revision.Complete([]*appsv1.ControllerRevision{rev})
		of := workloads.Revision{
			Template: decoded(t, c.wanted), Update: "web-1", ObservedGeneration: set.Status.ObservedGeneration,
		}
		if _, err := o.Plan(of); err != nil { // a pass may be planned twice
			t.Fatal(err)
		}
		plan, err := o.Plan(of)
		if err != nil {
			t.Fatal(err)
		}
		if plan.Resolution.Verdict != c.verdict {
			t.Errorf("%s: %s, want %s", name, plan.Resolution.Verdict, c.verdict)
		}
		record := false
		for _, w := range plan.Store.Next() {
			data, err := w.Data()
			if err != nil {
				t.Fatal(err)
			}
			record = record || w.Object == rev && bytes.Contains(data, []byte(`{\"spec\":{\"newer\":\"x\"}}`))
		}
		if record != c.record {
			t.Errorf("%s: the record is written: %v", name, record)
		}
		if c.verdict == revision.Use && name != "known by now" {
			stored, err := revision.Decode(plan.Resolution.Update.Data.Raw)
			if err != nil || !revision.HasUnknownFields(stored) {
				t.Errorf("%s: pods of the revision would lack the field: %v", name, err)
			}
		}
		if !bytes.Equal(before.Data.Raw, rev.Data.Raw) {
			t.Errorf("%s: the revision of the cache has changed", name)
		}
	}
}

func decoded(t *testing.T, text string) *corev1.PodTemplateSpec {
	t.Helper()
	template, values := &corev1.PodTemplateSpec{}, map[string]any{}
	if err := json.Unmarshal([]byte(text), template); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(text), &values); err != nil {
		t.Fatal(err)
	}
	if err := revision.KeepUnknownFields(template, values); err != nil {
		t.Fatal(err)
	}
	return template
}

func encoded(t *testing.T, text string) []byte {
	t.Helper()
	data, err := revision.Encode(decoded(t, text))
	if err != nil {
		t.Fatal(err)
	}
	return data
}
