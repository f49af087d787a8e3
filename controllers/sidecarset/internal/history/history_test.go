package history_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/sidecarset/internal/history"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/sidecar"
)

// TestRecordedNames: a set that has no history yet gets the revision that a running reference gave it, by name.
func TestRecordedNames(t *testing.T) {
	for _, step := range []string{"1-created", "3-updated"} {
		data, err := os.ReadFile("../../../../test/compat/testdata/recorded/" + step + "/sidecarsets.v1beta1.yaml")
		if err != nil {
			t.Fatal(err)
		}
		var list v1beta1.SidecarSetList
		if err := yaml.Unmarshal(data, &list); err != nil {
			t.Fatal(err)
		}
		if len(list.Items) == 0 {
			t.Fatal("there are no sets")
		}
		for i := range list.Items {
			set := &list.Items[i]
			content, err := history.Encode(set)
			if err != nil {
				t.Fatal(err)
			}
			if got := revision.Resolve(revision.Input{
				Owner: set.Name, Data: content,
			}); got.Verdict != revision.Create || got.Name != set.Status.LatestRevision {
				t.Errorf("%s: want %s, got %s", step, set.Status.LatestRevision, got.Name)
			}
		}
	}
}

// TestSame: what two revisions hold is compared by what it means.
func TestSame(t *testing.T) {
	set := &v1beta1.SidecarSet{}
	set.Spec.Containers = []v1beta1.SidecarContainer{{Container: corev1.Container{Name: "mesh", Image: "mesh:1"}}}
	data, err := history.Encode(set)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"spec":{"$patch":"replace","containers":[{"image":"mesh:1","name":"mesh","resources":{},"shareVolumePolicy":{},"upgradeStrategy":{}}],` +
		`"imagePullSecrets":null,"initContainers":null,"patchPodMetadata":null,"volumes":null}}`
	if string(data) != want {
		t.Errorf("want %s, got %s", want, data)
	}
	set.Spec.Volumes, set.Spec.InitContainers = []corev1.Volume{}, []v1beta1.SidecarContainer{}
	if data, err = history.Encode(set); err != nil || string(data) != want {
		t.Errorf("empty lists: want %s, got %s, %v", want, data, err)
	}
	for text, want := range map[string]bool{
		want: true,
		`{"spec":{"containers":[{"name":"mesh","image":"mesh:1"}],"volumes":[]}}`: true,
		`{"spec":{"containers":[{"name":"mesh","image":"mesh:2"}]}}`:              false,
		`{}`: false, `{`: false,
	} {
		if got := history.Same(data, []byte(text)); got != want {
			t.Errorf("%s: want %t", text, want)
		}
	}
}

func TestSurplus(t *testing.T) {
	var revisions []*appsv1.ControllerRevision
	for i, version := range []string{"v1", "v2", "v2", "", ""} {
		rev := &appsv1.ControllerRevision{
			ObjectMeta: metav1.ObjectMeta{Name: "mesh-" + string(rune('a'+i))}, Revision: int64(i),
		}
		rev.Labels = map[string]string{v1beta1.SidecarSetCustomVersionLabel: version}
		revisions = append(revisions, rev)
	}
	pin := func(name, version *string) *v1beta1.SidecarSetInjectRevision {
		return &v1beta1.SidecarSetInjectRevision{RevisionName: name, CustomVersion: version}
	}
	cases := map[string]struct {
		limit  *int32
		pin    *v1beta1.SidecarSetInjectRevision
		newest string
		onPods []string
		want   []string
	}{
		"within the default limit":           {nil, nil, "mesh-e", nil, nil},
		"beyond the limit: the oldest first": {ptr.To[int32](3), nil, "mesh-e", nil, []string{"mesh-a", "mesh-b"}},
		"one always stays": {
			limit: ptr.To[int32](0), newest: "mesh-e", want: []string{"mesh-a", "mesh-b", "mesh-c", "mesh-d"},
		},
		"less than none is none": {
			limit: ptr.To[int32](-1), newest: "mesh-e", want: []string{"mesh-a", "mesh-b", "mesh-c", "mesh-d"},
		},
		"the newest stays, however old": {
			limit: ptr.To[int32](1), newest: "mesh-a", want: []string{"mesh-b", "mesh-c", "mesh-d", "mesh-e"},
		},
		"those of pods stay": {
			limit: ptr.To[int32](2), newest: "mesh-e", onPods: []string{"mesh-a", "mesh-c"}, want: []string{"mesh-b", "mesh-d"},
		},
		"the pinned name stays": {
			limit:  ptr.To[int32](2),
			pin:    pin(ptr.To("mesh-b"), nil),
			newest: "mesh-e",
			want:   []string{"mesh-a", "mesh-c", "mesh-d"},
		},
		"the newest pinned version stays": {
			limit: ptr.To[int32](2), pin: pin(nil, ptr.To("v2")), newest: "mesh-e", want: []string{"mesh-a", "mesh-b", "mesh-d"},
		},
		"a pinned version that is gone": {ptr.To[int32](4), pin(nil, ptr.To("v9")), "mesh-e", nil, []string{"mesh-a"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			set := &v1beta1.SidecarSet{}
			set.Spec.RevisionHistoryLimit, set.Spec.InjectionStrategy.Revision = c.limit, c.pin
			var got []string
			for _, rev := range history.Surplus(set, revisions, c.newest, c.onPods) {
				got = append(got, rev.Name)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// A revision has the fields that the types lack, and a change of one is another revision.
func TestUnknownFields(t *testing.T) {
	encode := func(value string) string {
		set := &v1beta1.SidecarSet{}
		set.Spec.Containers = []v1beta1.SidecarContainer{{Container: corev1.Container{Name: "a"}}, {}}
		set.Spec.Containers[1].Name = "b"
		if err := sidecar.KeepUnknownFields(set, map[string]any{
			"containers": []any{map[string]any{"name": "a"}, map[string]any{"name": "b", "newer": value}},
		}); err != nil {
			t.Fatal(err)
		}
		data, err := history.Encode(set)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	x := encode("x")
	if !strings.Contains(x, `"name":"b","newer":"x"`) || strings.Contains(x, revision.UnknownFieldsKey) {
		t.Errorf("stored as %s", x)
	}
	if !history.Same([]byte(x+" "), []byte(x)) || history.Same([]byte(x), []byte(encode("y"))) {
		t.Error("the field does not count")
	}
}
