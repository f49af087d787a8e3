package revision_test

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/revision"
)

func image(image string) []byte {
	data, err := revision.Encode(&corev1.PodTemplateSpec{
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: image}}},
	})
	if err != nil {
		panic(err)
	}
	return data
}

func stored(name string, number int64, data []byte) *appsv1.ControllerRevision {
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Revision: number, Data: runtime.RawExtension{Raw: data},
	}
}

func TestResolve(t *testing.T) {
	v1, v2 := image("i:1"), image("i:2")
	v1Name := revision.Name("web", revision.Hash(v1, ptr.To[int32](0)))
	v1Collided := revision.Name("web", revision.Hash(v1, ptr.To[int32](1)))
	withDefaults := []byte(`{"spec":{"template":{"$patch":"replace","spec":{"containers":[{"image":"i:1","imagePullPolicy":"Always","name":"c","terminationMessagePath":"/dev/termination-log"}],"dnsPolicy":"ClusterFirst"}}}}`)
	cases := map[string]struct {
		have       []*appsv1.ControllerRevision
		data       []byte
		current    string
		collisions *int32

		verdict        revision.Verdict
		name, from     string
		number         int64
		wantCollisions *int32
	}{
		"first: a workload starts with revision 1, and a collision count": {
			data: v1, verdict: revision.Create, name: v1Name, number: 1, wantCollisions: ptr.To[int32](0),
		},
		"unchanged: the newest revision holds the template": {
			have: []*appsv1.ControllerRevision{stored("web-a", 1, v1)}, data: v1, current: "web-a",
			verdict: revision.Use, name: "web-a", from: "web-a", number: 1,
		},
		"changed: a new template takes the next number": {
			have: []*appsv1.ControllerRevision{stored("web-a", 7, v2)}, data: v1, current: "web-a",
			verdict: revision.Create, name: v1Name, from: "web-a", number: 8, wantCollisions: ptr.To[int32](0),
		},
		"rolled back: an older revision is used again under a higher number": {
			have: []*appsv1.ControllerRevision{stored("web-b", 2, v2), stored("web-a", 1, v1)}, data: v1, current: "web-b",
			verdict: revision.Bump, name: "web-a", from: "web-b", number: 3,
		},
		"what another release encoded or the API server defaulted restarts nothing": {
			have: []*appsv1.ControllerRevision{stored("web-a", 1, withDefaults)}, data: v1, current: "web-a",
			verdict: revision.Use, name: "web-a", from: "web-a", number: 1,
		},
		"of two revisions that mean the same, the one with the very bytes is used": {
			have: []*appsv1.ControllerRevision{stored("web-a", 1, v1), stored("web-b", 2, withDefaults)}, data: v1,
			verdict: revision.Bump, name: "web-a", from: "web-a", number: 3,
		},
		"collision: the name is taken by another template": {
			have: []*appsv1.ControllerRevision{stored(v1Name, 1, v2)}, data: v1, current: v1Name, collisions: ptr.To[int32](0),
			verdict: revision.Create, name: v1Collided, from: v1Name, number: 2, wantCollisions: ptr.To[int32](1),
		},
		"current is gone: pods of a deleted revision count as of the update revision's past": {
			have: []*appsv1.ControllerRevision{stored("web-a", 1, v1)}, data: v1, current: "web-gone",
			verdict: revision.Use, name: "web-a", from: "web-a", number: 1,
		},
		"broken history: a revision that cannot be read is another one": {
			have: []*appsv1.ControllerRevision{stored("web-a", 3, []byte("nonsense"))}, data: v1, current: "web-a",
			verdict: revision.Create, name: v1Name, from: "web-a", number: 4, wantCollisions: ptr.To[int32](0),
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := revision.Resolve(revision.Input{
				Owner: "web", Data: c.data, Have: c.have, Current: c.current, Collisions: c.collisions,
			})
			from := ""
			if r.Current != nil {
				from = r.Current.Name
			}
			got := []any{r.Verdict, r.Name, from, r.Number, r.Collisions}
			if diff := cmp.Diff([]any{c.verdict, c.name, c.from, c.number, c.wantCollisions}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if (r.Update == nil) != (r.Verdict == revision.Create) {
				t.Errorf("verdict %s with update revision %v", r.Verdict, r.Update)
			}
		})
	}
}

// TestResolveLaws drives random histories of template changes and checks them against a dumb model: a list of
// the images in the order in which they became wanted.
func TestResolveLaws(t *testing.T) {
	for seed := range int64(2000) {
		random := rand.New(rand.NewSource(seed))
		var have []*appsv1.ControllerRevision
		var collisions *int32
		for range 12 {
			wanted := fmt.Sprintf("i:%d", random.Intn(4))
			in := revision.Input{Owner: "web", Data: image(wanted), Have: have, Collisions: collisions}
			r := revision.Resolve(in)
			known := slices.ContainsFunc(have, func(h *appsv1.ControllerRevision) bool {
				return string(h.Data.Raw) == string(in.Data)
			})
			if known == (r.Verdict == revision.Create) {
				t.Fatalf("seed %d: %s is known: %v, verdict %s", seed, wanted, known, r.Verdict)
			}
			have, collisions = carryOut(have, in.Data, r), r.Collisions
			random.Shuffle(len(have), func(i, j int) { have[i], have[j] = have[j], have[i] })

			newest := slices.MaxFunc(have, func(a, b *appsv1.ControllerRevision) int { return int(a.Revision - b.Revision) })
			if string(newest.Data.Raw) != string(in.Data) {
				t.Fatalf("seed %d: the newest revision does not hold %s", seed, wanted)
			}
			in.Have, in.Collisions = have, collisions
			if again := revision.Resolve(in); again.Verdict != revision.Use || again.Name != r.Name {
				t.Fatalf("seed %d: resolving again gives %s of %s after %s", seed, again.Verdict, again.Name, r.Name)
			}
		}
		if len(have) > 4 {
			t.Fatalf("seed %d: %d revisions of 4 templates", seed, len(have))
		}
	}
}

func carryOut(have []*appsv1.ControllerRevision, data []byte, r revision.Resolution) []*appsv1.ControllerRevision {
	switch r.Verdict {
	case revision.Create:
		return append(have, stored(r.Name, r.Number, data))
	case revision.Bump:
		r.Update.Revision = r.Number
	case revision.Use:
	}
	return have
}

func TestTrim(t *testing.T) {
	have := func() []*appsv1.ControllerRevision {
		return []*appsv1.ControllerRevision{
			stored("w-c", 3, nil), stored("w-a", 1, nil), stored("w-d", 4, nil), stored("w-b", 2, nil),
		}
	}
	cases := map[string]struct {
		live  []string
		limit int32
		want  []string
	}{
		"room: nothing is deleted within the limit":                  {[]string{"w-d"}, 10, nil},
		"oldest first: the oldest go":                                {[]string{"w-d"}, 1, []string{"w-a", "w-b"}},
		"live are kept: a revision in use does not count":            {[]string{"w-d", "w-a"}, 0, []string{"w-b", "w-c"}},
		"hash of a pod: pods may carry the hash alone":               {[]string{"w-d", "a"}, 0, []string{"w-b", "w-c"}},
		"below zero: a negative limit keeps the live ones":           {[]string{"w-d", "w-c", "w-b"}, -3, []string{"w-a"}},
		"nothing in use: even the newest goes when it is not in use": {nil, 0, []string{"w-a", "w-b", "w-c", "w-d"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, r := range revision.Trim(have(), c.live, c.limit) {
				got = append(got, r.Name)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSort(t *testing.T) {
	at := func(r *appsv1.ControllerRevision, second int64) *appsv1.ControllerRevision {
		r.CreationTimestamp = metav1.Unix(second, 0)
		return r
	}
	want := []*appsv1.ControllerRevision{
		at(stored("z", 1, nil), 9), at(stored("y", 2, nil), 1), at(stored("a", 2, nil), 2), at(stored("b", 2, nil), 2),
	}
	got := slices.Clone(want)
	slices.Reverse(got)
	revision.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("number, creation, name (-want +got):\n%s", diff)
	}
}

// A revision that cannot be read is an error with its cause, and matches no template.
func TestUnreadable(t *testing.T) {
	for name, data := range map[string]string{
		"no JSON": "{", "no template": `{"spec":{}}`, "another type": `{"spec":{"template":7}}`,
	} {
		_, err := revision.DecodeRoles([]byte(data))
		if _, single := revision.Decode([]byte(data)); err == nil || single == nil {
			t.Errorf("%s: decoded", name)
		}
		if !strings.Contains(err.Error(), "read revision data: ") {
			t.Errorf("%s: %v", name, err)
		}
		have := []*appsv1.ControllerRevision{stored("web-a", 1, []byte(data))}
		if r := revision.Resolve(revision.Input{
			Owner: "web", Data: image("i:1"), Have: have,
		}); r.Verdict != revision.Create || r.Number != 2 {
			t.Errorf("%s: %s of number %d", name, r.Verdict, r.Number)
		}
		if r := revision.Resolve(revision.Input{
			Owner: "web", Data: []byte(data), Have: []*appsv1.ControllerRevision{stored("web-a", 1, image("i:1"))},
		}); r.Verdict != revision.Create {
			t.Errorf("%s is wanted: %s", name, r.Verdict)
		}
	}
}

// The name of a revision is a valid name, however long that of its owner is.
func TestLongName(t *testing.T) {
	name := revision.Name(strings.Repeat("a", 253), "5b6c7d8f9b")
	if len(name) > 253 || !strings.HasSuffix(name, "-5b6c7d8f9b") || revision.Short(name) != "5b6c7d8f9b" {
		t.Errorf("%d letters: %s", len(name), name)
	}
}
