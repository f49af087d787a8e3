package review_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	evanphx "gopkg.in/evanphx/json-patch.v4" // the one in the API server

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/review"
	"github.com/kruisekit/kruisekit/test/rig/plaintest"
	"github.com/kruisekit/kruisekit/write"
)

type request = appsv1beta1.ContainerRecreateRequest

// hooked changes a request in every way that there is: in maps, in lists, in objects that are there or not.
func hooked(r *request) {
	if r.Labels == nil {
		r.Labels = map[string]string{}
	}
	r.Labels["a/b~c"] = "ours"
	r.Default()
	for i := range r.Spec.Containers {
		r.Spec.Containers[i].StatusContext = &appsv1beta1.ContainerRecreateRequestContainerContext{ContainerID: "x"}
	}
}

func TestChanges(t *testing.T) {
	cases := map[string]struct {
		why, sent string
		change    func(*request)
		want      string
	}{
		"nothing changed": {
			"there is nothing to send", `{"spec":{"podName":"p","unknown":1}}`, func(*request) {}, `null`,
		},
		"nothing there": {
			why:    "what is missing comes whole",
			sent:   `{"metadata":{"name":"r"},"spec":{"podName":"p"}}`,
			change: hooked,
			want:   `[{"op":"add","path":"/metadata/labels","value":{"a/b~c":"ours"}},{"op":"add","path":"/spec/strategy","value":{"failurePolicy":"Fail"}}]`,
		},
		"something there": {
			why:    "only what changed is sent",
			sent:   `{"metadata":{"labels":{"x":"y"}},"spec":{"strategy":{"forceRecreate":true}}}`,
			change: hooked,
			want:   `[{"op":"add","path":"/metadata/labels/a~1b~0c","value":"ours"},{"op":"add","path":"/spec/strategy/failurePolicy","value":"Fail"}]`,
		},
		"a value of the user": {
			why:    "it is replaced: whoever calls has decided so",
			sent:   `{"metadata":{"labels":{"a/b~c":"theirs"}},"spec":{"strategy":{"failurePolicy":"Fail"}}}`,
			change: hooked,
			want:   `[{"op":"add","path":"/metadata/labels/a~1b~0c","value":"ours"}]`,
		},
		"null and empty": {
			why:    "they are as good as nothing",
			sent:   `{"metadata":{"labels":null},"spec":{"strategy":{"failurePolicy":""}}}`,
			change: hooked,
			want:   `[{"op":"add","path":"/metadata/labels","value":{"a/b~c":"ours"}},{"op":"add","path":"/spec/strategy/failurePolicy","value":"Fail"}]`,
		},
		"a list": {
			why:    "element by element, so that unknown fields stay",
			sent:   `{"metadata":{"labels":{"a/b~c":"ours"}},"spec":{"strategy":{"failurePolicy":"Fail"},"containers":[{"name":"a","new":1},{"name":"b"}]}}`,
			change: hooked,
			want:   `[{"op":"add","path":"/spec/containers/0/statusContext","value":{"containerID":"x","restartCount":0}},{"op":"add","path":"/spec/containers/1/statusContext","value":{"containerID":"x","restartCount":0}}]`,
		},
		"a value taken away": {
			why:  "it is removed with what is unknown in it",
			sent: `{"metadata":{"labels":{"x":"y","z":"w"}},"spec":{"strategy":{"terminationGracePeriodSeconds":5,"new":1}}}`,
			change: func(r *request) {
				delete(r.Labels, "x")
				r.Spec.Strategy.TerminationGracePeriodSeconds = nil
			},
			want: `[{"op":"remove","path":"/metadata/labels/x"},{"op":"remove","path":"/spec/strategy/terminationGracePeriodSeconds"}]`,
		},
		"a list taken away": {
			why:    "it is removed",
			sent:   `{"metadata":{"finalizers":["a"]},"spec":{"containers":[{"name":"a","statusContext":{"containerID":"x","restartCount":0}}]}}`,
			change: func(r *request) { r.Finalizers, r.Spec.Containers[0].StatusContext = nil, nil },
			want:   `[{"op":"remove","path":"/metadata/finalizers"},{"op":"remove","path":"/spec/containers/0/statusContext"}]`,
		},
		"a value taken away that is unknown": {
			why:    "what only the user's notation has stays",
			sent:   `{"metadata":{"labels":{"x":"y"},"unknown":1},"spec":{"strategy":null}}`,
			change: func(r *request) { r.Labels = nil },
			want:   `[{"op":"remove","path":"/metadata/labels"}]`,
		},
		"null in a list": {
			why:    "its neighbours stay where they are",
			sent:   `{"metadata":{"labels":{"a/b~c":"ours"}},"spec":{"strategy":{"failurePolicy":"Fail"},"containers":[null,{"name":"b","statusContext":{"containerID":"x","restartCount":0}}]}}`,
			change: hooked,
			want:   `[{"op":"replace","path":"/spec/containers/0","value":{"name":"","statusContext":{"containerID":"x","restartCount":0}}}]`,
		},
		"a longer list": {
			"it comes whole", `{"metadata":{"finalizers":["a"]}}`, func(r *request) { r.Finalizers = append(r.Finalizers, "b") },
			`[{"op":"add","path":"/metadata/finalizers","value":["a","b"]}]`,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			before := &request{}
			if err := review.Unmarshal([]byte(c.sent), before); err != nil {
				t.Fatal(err)
			}
			after := before.DeepCopy()
			c.change(after)
			got := plaintest.Encode(t, changes(t, c.sent, before, after))
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
		})
	}
}

func changes(t *testing.T, sent string, before, after any) []write.Op {
	t.Helper()
	content, err := review.Decode([]byte(sent))
	if err != nil {
		t.Fatal(err)
	}
	same, err := review.Decode([]byte(sent))
	if err != nil {
		t.Fatal(err)
	}
	patch, err := review.Changes(content, before, after)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(same, content); diff != "" {
		t.Errorf("the input was changed (-was +is):\n%s", diff)
	}
	return patch
}

// FuzzChanges: an API server that applies the patch reads what was meant, of what a webhook changes and of any other
// object.
func FuzzChanges(f *testing.F) {
	f.Add(`{"metadata":{"labels":{"a/b~c":"theirs"}},"spec":{"strategy":null,"containers":[{"name":"a"},null,{"statusContext":{"containerID":"y"}}]}}`,
		`{}`)
	f.Add(`{}`, `{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"a"}]}}`)
	f.Add(`{"metadata":null,"spec":null}`, `{"spec":{"strategy":{"minStartedSeconds":1}}}`)
	f.Add(`{"metadata":{"labels":{"x":"y"},"finalizers":["a"]},"spec":{"strategy":{"terminationGracePeriodSeconds":5}}}`,
		`{"metadata":{"finalizers":[]}}`)
	f.Fuzz(func(t *testing.T, sent, meant string) {
		before, other := &request{}, &request{}
		if _, err := review.Decode([]byte(sent)); err != nil || !json.Valid([]byte(sent)) ||
			review.Unmarshal([]byte(sent), before) != nil {
			t.Skip()
		}
		after := before.DeepCopy()
		hooked(after)
		becomes(t, sent, before, after)
		if json.Valid([]byte(meant)) && review.Unmarshal([]byte(meant), other) == nil {
			becomes(t, sent, before, other)
		}
	})
}

// becomes fails the test unless the patch makes of an object, as it was sent, the other one.
func becomes(t *testing.T, sent string, before, after *request) {
	t.Helper()
	patch := plaintest.Encode(t, changes(t, sent, before, after))
	applied := []byte(sent)
	if patch != "null" {
		p, err := evanphx.DecodePatch([]byte(patch))
		if err != nil {
			t.Fatal(err)
		}
		if applied, err = p.Apply(applied); err != nil {
			t.Fatalf("%v: %s does not fit", err, patch)
		}
	}
	got := &request{}
	if err := review.Unmarshal(applied, got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(plaintest.Encode(t, after), plaintest.Encode(t, got)); diff != "" {
		t.Errorf("%s is applied (-want +got):\n%s", patch, diff)
	}
}
