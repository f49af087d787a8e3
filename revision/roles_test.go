package revision_test

import (
	"encoding/json"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/revision"
)

func roles(t *testing.T, leader, worker string) map[string]*corev1.PodTemplateSpec {
	t.Helper()
	all := map[string]*corev1.PodTemplateSpec{}
	for role, image := range map[string]string{"leader": leader, "worker": worker} {
		if image != "" {
			all[role] = template(t, `{spec: {containers: [{name: c, image: "`+image+`"}]}}`)
		}
	}
	return all
}

func encodeRoles(t *testing.T, templates map[string]*corev1.PodTemplateSpec) []byte {
	t.Helper()
	data, err := revision.EncodeRoles(templates)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestRolesRoundTrip(t *testing.T) {
	templates := roles(t, "a:1", "b:1")
	data := encodeRoles(t, templates)
	if again := encodeRoles(t, templates); string(again) != string(data) {
		t.Errorf("two encodings: %s %s", data, again)
	}
	got, err := revision.DecodeRoles(data)
	if err != nil || !revision.SameRoles(got, templates) {
		t.Errorf("%v\n%s", err, cmp.Diff(templates, got))
	}
	for name, text := range map[string]string{
		"nothing": `{}`, "no roles": `{"spec":{"templates":{}}}`, "no template": `{"spec":{"templates":{"a":null}}}`,
		"no object": `7`, "not JSON": ``,
	} {
		if _, err := revision.DecodeRoles([]byte(text)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for name, broken := range map[string]map[string]*corev1.PodTemplateSpec{
		"nothing": nil, "no template": {"a": nil}, "no name": {"": templates["leader"], "a": templates["leader"]},
	} {
		if data, err := revision.EncodeRoles(broken); err == nil {
			t.Errorf("%s: no error but %s", name, data)
		}
	}
}

// The single template has the bytes that it always had.
func TestSingleRole(t *testing.T) {
	single := template(t, `{spec: {containers: [{name: c, image: "a:1"}]}}`)
	want, err := revision.Encode(single)
	if err != nil {
		t.Fatal(err)
	}
	got := encodeRoles(t, map[string]*corev1.PodTemplateSpec{revision.SingleRole: single})
	if string(got) != string(want) {
		t.Errorf("want %s, got %s", want, got)
	}
	decoded, err := revision.DecodeRoles(want)
	if err != nil || len(decoded) != 1 || !revision.Same(decoded[revision.SingleRole], single) {
		t.Errorf("%v %v", decoded, err)
	}
}

// A second template beside spec.template counts, wherever a workload keeps it.
func TestSecondTemplateCounts(t *testing.T) {
	data := func(more map[string]any) []byte {
		spec := map[string]any{
			"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "c", "image": "a:1"}}}},
		}
		maps.Copy(spec, more)
		text, err := json.Marshal(map[string]any{"spec": spec})
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	worker := func(image string) map[string]any {
		return map[string]any{"workerTemplate": map[string]any{
			"spec": map[string]any{"containers": []any{map[string]any{"name": "c", "image": image}}},
		}}
	}
	if revision.SameData(data(worker("b:1")), data(worker("b:2"))) {
		t.Error("another second template is the same")
	}
	if revision.SameData(data(worker("b:1")), data(nil)) {
		t.Error("no second template is the same")
	}
	if !revision.SameData(data(worker("b:1")), append(data(worker("b:1")), ' ')) {
		t.Error("equal second templates differ")
	}
	// What the reference stores beside the template in some releases is no change of pods.
	claims := map[string]any{"volumeClaimTemplates": []any{map[string]any{"metadata": map[string]any{"name": "data"}}}}
	if !revision.SameData(data(claims), data(nil)) {
		t.Error("claims make another revision")
	}
	if !revision.SameData(data(map[string]any{"volumeClaimTemplates": nil}), data(nil)) {
		t.Error("null makes another revision")
	}
	r := revision.Resolve(revision.Input{
		Owner: "g", Data: data(worker("b:2")), Have: []*appsv1.ControllerRevision{stored("g-1", 1, data(worker("b:1")))},
	})
	if r.Verdict != revision.Create {
		t.Errorf("%s of a revision with another second template", r.Verdict)
	}
}

func TestPromote(t *testing.T) {
	cases := map[string]struct {
		progress revision.Progress
		want     string
		promoted bool
	}{
		"first pass: nothing was updated before": {revision.Progress{Update: "b", Replicas: 3}, "b", true},
		"complete: all have the update revision": {
			progress: revision.Progress{Current: "a", Update: "b", Replicas: 3, Existing: 3, Updated: 3},
			want:     "b",
			promoted: true,
		},
		"scaled to 0: no instance needs the older one": {revision.Progress{Current: "a", Update: "b"}, "b", true},
		"under way: one is old": {
			progress: revision.Progress{Current: "a", Update: "b", Replicas: 3, Existing: 3, Updated: 2},
			want:     "a",
		},
		"too few: what is missing may be created old": {
			progress: revision.Progress{Current: "a", Update: "b", Replicas: 3, Existing: 2, Updated: 2},
			want:     "a",
		},
		"too many: a surge is not over": {
			progress: revision.Progress{Current: "a", Update: "b", Replicas: 3, Existing: 4, Updated: 4},
			want:     "a",
		},
		"the same one: nothing changes": {
			progress: revision.Progress{Current: "b", Update: "b", Replicas: 3, Existing: 3, Updated: 3},
			want:     "b",
		},
	}
	for name, c := range cases {
		if got, promoted := revision.Promote(c.progress); got != c.want || promoted != c.promoted {
			t.Errorf("%s: got %s, %v", name, got, promoted)
		}
	}
}
